//! Axes of the connection's lifetime: its setup, its limits, and the probes while it is idle. Also
//! the axis for the use of cached responses.
//!
//! Each axis is absent unless the user sets it, so a variant names only the axes of its run. A new
//! axis is a row and a line of [`connection_axes`]. Must not know how a setting is applied.

use crate::CacheUse;
use crate::axes::{AxisError, AxisReader};
use crate::axis::{AxisRow, AxisValue, Meaning, Reference};
use intact_ledger::Protocol;
use intact_units::duration;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::num::NonZeroU32;
use std::time::Duration;

/// The requests after which a connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RequestLimit {
    /// After N.
    After(NonZeroU32),
    /// Never.
    Unlimited,
}

impl AxisValue for RequestLimit {
    const WANTED: &'static str = "a number from 1 on, or unlimited";

    fn read(word: &str) -> Result<RequestLimit, String> {
        let number = || word.parse().map(RequestLimit::After);
        match word {
            "unlimited" => Ok(RequestLimit::Unlimited),
            _ => number().map_err(|_| RequestLimit::WANTED.to_owned()),
        }
    }

    fn word(&self) -> String {
        match self {
            RequestLimit::After(most) => most.to_string(),
            RequestLimit::Unlimited => "unlimited".to_owned(),
        }
    }
}

/// A time, or `off`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Period {
    /// Not at all.
    Off,
    /// After this time, or each time that it has passed.
    Every(Duration),
}

impl Period {
    /// The time; `None` for `off`.
    pub fn time(self) -> Option<Duration> {
        match self {
            Period::Off => None,
            Period::Every(time) => Some(time),
        }
    }
}

impl Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Period::Off => f.write_str("off"),
            Period::Every(time) => f.write_str(&duration::write(*time)),
        }
    }
}

impl AxisValue for Period {
    const WANTED: &'static str = "off or a time such as 5s";

    fn read(word: &str) -> Result<Period, String> {
        match word {
            "off" => Ok(Period::Off),
            time => match duration::or_seconds(time) {
                Ok(time) => Ok(Period::Every(time)),
                Err(error) => Err(format!("off or a time; {error}")),
            },
        }
    }

    fn word(&self) -> String {
        self.to_string()
    }
}

impl AxisValue for Duration {
    const WANTED: &'static str = "a time such as 5s";

    fn read(word: &str) -> Result<Duration, String> {
        duration::or_seconds(word).map_err(|error| error.to_string())
    }

    fn word(&self) -> String {
        duration::write(*self)
    }
}

impl AxisValue for String {
    const WANTED: &'static str = "a name";

    fn read(word: &str) -> Result<String, String> {
        Ok(word.to_owned())
    }

    fn word(&self) -> String {
        self.clone()
    }
}

macro_rules! connection_axes {
    ($($(#[$about:meta])* $field:ident: $value:ty { $($cell:ident: $content:expr,)* })*) => {
        /// The values of each axis, in the order in which they were given; empty: the axis was not
        /// given.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        pub struct ConnectionAxes {
            $($(#[$about])* pub $field: Vec<$value>,)*
        }

        /// One value of each axis; absent: the axis was not given, or has no meaning with the other
        /// values.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct ConnectionSettings {
            $($(#[$about])* pub $field: Option<$value>,)*
        }

        /// The rows of all axes.
        struct Rows {
            $($field: AxisRow,)*
        }

        static ROWS: Rows = Rows {
            $($field: AxisRow { choices: <$value as AxisValue>::CHOICES, $($cell: $content,)* },)*
        };

        /// The axes, in the order of the command line's help.
        pub static CONNECTION_AXES: &[&AxisRow] = &[$(&ROWS.$field),*];

        impl ConnectionAxes {
            /// The axes with these words, by name; a word that is no value is an error.
            pub fn of_words<'a>(
                words: impl Fn(&'static str) -> Vec<&'a str>,
            ) -> Result<ConnectionAxes, String> {
                let words = |row: &AxisRow| words(row.name()).into_iter();
                Ok(ConnectionAxes {
                    $($field: words(&ROWS.$field).map(AxisValue::read).collect::<Result<_, _>>()?,)*
                })
            }

            /// The combinations that have a meaning with keep-alive on or off, and with this
            /// version of HTTP.
            pub(crate) fn choices(&self, keepalive: bool, http: Protocol) -> Vec<ConnectionSettings> {
                let mut all = vec![ConnectionSettings::default()];
                $(if ROWS.$field.meaning.includes(keepalive, http) {
                    expand(&mut all, &self.$field, |one| &mut one.$field);
                })*
                all
            }

            /// The axes, and how many values were given of each.
            pub fn given(&self) -> impl Iterator<Item = (&'static AxisRow, usize)> {
                CONNECTION_AXES.iter().copied().zip([$(self.$field.len()),*])
            }
        }

        impl ConnectionSettings {
            /// Writes the axes that were given.
            pub(crate) fn write(&self, axes: &mut BTreeMap<String, String>) {
                let words = [$(self.$field.as_ref().map(AxisValue::word)),*];
                for (row, word) in CONNECTION_AXES.iter().zip(words) {
                    axes.extend(word.map(|word| (row.name().to_owned(), word)));
                }
            }

            /// Reads the settings of a variant.
            pub(crate) fn read(axes: &AxisReader<'_>) -> Result<ConnectionSettings, AxisError> {
                Ok(ConnectionSettings { $($field: axes.optional(ROWS.$field.name())?,)* })
            }
        }
    };
}

connection_axes! {
    /// Requests after which a connection is closed.
    reuse: RequestLimit {
        option: "--reuse",
        values: "N,..|unlimited",
        help: "Close a connection after N requests",
        meaning: Meaning::Kept,
        reference: Reference::First,
    }
    /// Age at which a connection is closed.
    max_age: Period {
        option: "--max-age",
        values: "off,TIME",
        help: "Close a connection that is older than this, after its response",
        meaning: Meaning::Kept,
        reference: Reference::First,
    }
    /// The pause between the requests of a connection.
    idle: Duration {
        option: "--idle",
        values: "TIME,..",
        help: "Pause after each response of a connection, to meet idle limits",
        meaning: Meaning::Any,
        reference: Reference::First,
    }
    /// Whether the first data is sent with the SYN (RFC 7413).
    fast_open: bool {
        option: "--tcp-fastopen",
        values: "off,on",
        help: "Send the first data with the SYN to servers that gave a cookie (RFC 7413)",
        meaning: Meaning::Tcp,
        reference: Reference::OffOf("TCP Fast Open"),
    }
    /// Congestion control of the client's sockets.
    congestion: String {
        option: "--congestion",
        values: "cubic,bbr",
        help: "Congestion control of the client's sockets, by the kernel's name; for what the server sends: `serve --congestion`",
        meaning: Meaning::Tcp,
        reference: Reference::First,
    }
    /// Idle time after which the kernel probes the peer, and the time between its probes.
    tcp_keepalive: Period {
        option: "--tcp-keepalive",
        values: "off,TIME",
        help: "Let the kernel probe the server when a connection idles for TIME",
        meaning: Meaning::KeptTcp,
        reference: Reference::Off,
    }
    /// Idle time after which HTTP/2 sends PING.
    ping: Period {
        option: "--ping",
        values: "off,TIME",
        help: "Send PING when a connection of HTTP/2 idles for TIME; one without a reply ends the connection",
        meaning: Meaning::KeptHttp2,
        reference: Reference::Off,
    }
    /// What a client with a stored response sends.
    cache: CacheUse {
        option: "--cache",
        values: "off,revalidate",
        help: "Send the ETag of the last response back in If-None-Match, so that 304 has no body; only GET and HEAD",
        meaning: Meaning::Any,
        reference: Reference::Off,
    }
    /// Whether header fields are compressed by the dynamic table of HPACK, in both directions.
    header_table: bool {
        option: "--header-table",
        values: "off,on",
        help: "Let HTTP/2 send a header field that repeats as an index (the dynamic table of HPACK), in both directions",
        meaning: Meaning::KeptHttp2,
        reference: Reference::OffOf("the header table"),
    }
    /// Whether the content of `/` is asked for by a call of gRPC.
    as_grpc: bool {
        option: "--as-grpc",
        values: "off,on",
        help: "Get the content of / of the built-in server by GET, and by a call of gRPC",
        meaning: Meaning::Http2,
        reference: Reference::OffOf("gRPC"),
    }
}

/// Multiplies the combinations by the values of an axis, if it was given.
fn expand<T: Clone>(
    all: &mut Vec<ConnectionSettings>,
    values: &[T],
    place: impl Fn(&mut ConnectionSettings) -> &mut Option<T>,
) {
    if values.is_empty() {
        return;
    }
    let before = std::mem::take(all);
    for value in values {
        for mut one in before.iter().cloned() {
            *place(&mut one) = Some(value.clone());
            all.push(one);
        }
    }
}

impl ConnectionSettings {
    /// The requests after which the connection is closed; `None`: never.
    pub fn most_requests(&self) -> Option<NonZeroU32> {
        match self.reuse? {
            RequestLimit::After(most) => Some(most),
            RequestLimit::Unlimited => None,
        }
    }
}
