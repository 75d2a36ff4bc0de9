//! Axes of the connection's lifetime: its setup, its limits, and the probes while it is idle. Also
//! the axis for the use of cached responses.
//!
//! Each axis is absent unless the user sets it, so a variant names only the axes of its run. Must
//! not know how a setting is applied.

use crate::CacheUse;
use crate::axes::{AxisError, AxisReader, ON_OFF, on_off, read_on_off};
use intact_ledger::Protocol;
use intact_units::duration::{self, DurationError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::num::{NonZeroU32, ParseIntError};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// The requests after which a connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RequestLimit {
    /// After N.
    After(NonZeroU32),
    /// Never.
    Unlimited,
}

impl Display for RequestLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestLimit::After(most) => most.fmt(f),
            RequestLimit::Unlimited => f.write_str("unlimited"),
        }
    }
}

impl FromStr for RequestLimit {
    type Err = ParseIntError;

    fn from_str(word: &str) -> Result<RequestLimit, ParseIntError> {
        match word {
            "unlimited" => Ok(RequestLimit::Unlimited),
            number => number.parse().map(RequestLimit::After),
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

impl FromStr for Period {
    type Err = DurationError;

    fn from_str(word: &str) -> Result<Period, DurationError> {
        match word {
            "off" => Ok(Period::Off),
            time => duration::or_seconds(time).map(Period::Every),
        }
    }
}

/// The values of each axis, in the order in which they were given; empty: the axis was not given.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConnectionAxes {
    /// Requests after which a connection is closed.
    pub reuse: Vec<RequestLimit>,
    /// Age at which a connection is closed.
    pub max_age: Vec<Period>,
    /// Pauses between the requests of a connection.
    pub idle: Vec<Duration>,
    /// Is the first data sent with the SYN?
    pub fast_open: Vec<bool>,
    /// Congestion control of the client's sockets.
    pub congestion: Vec<Arc<str>>,
    /// Idle times after which the kernel probes the peer.
    pub tcp_keepalive: Vec<Period>,
    /// Idle times after which HTTP/2 sends PING.
    pub ping: Vec<Period>,
    /// What a client with a stored response sends.
    pub cache: Vec<CacheUse>,
}

/// One value of each axis; absent: the axis was not given, or has no meaning with the other values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConnectionSettings {
    /// Requests after which the connection is closed.
    pub reuse: Option<RequestLimit>,
    /// Age at which the connection is closed.
    pub max_age: Option<Period>,
    /// The pause between the requests of a connection.
    pub idle: Option<Duration>,
    /// Whether the first data is sent with the SYN (RFC 7413).
    pub fast_open: Option<bool>,
    /// Congestion control of the client's socket.
    pub congestion: Option<Arc<str>>,
    /// Idle time after which the kernel probes the peer, and the time between its probes.
    pub tcp_keepalive: Option<Period>,
    /// Idle time after which HTTP/2 sends PING.
    pub ping: Option<Period>,
    /// What a client with a stored response sends.
    pub cache: Option<CacheUse>,
}

/// Names of the axes, in the order of the command line's help.
pub(crate) const REUSE: &str = "reuse";
pub(crate) const MAX_AGE: &str = "max-age";
const IDLE: &str = "idle";
const FAST_OPEN: &str = "tcp-fastopen";
const CONGESTION: &str = "congestion";
pub(crate) const TCP_KEEPALIVE: &str = "tcp-keepalive";
pub(crate) const PING: &str = "ping";
const CACHE: &str = "cache";

impl ConnectionAxes {
    /// The combinations that have a meaning with keep-alive on or off, and with this version of
    /// HTTP.
    pub(crate) fn choices(&self, keepalive: bool, http: Protocol) -> Vec<ConnectionSettings> {
        let is_tcp = http != Protocol::Http3;
        let has_ping = keepalive && http == Protocol::Http2;
        let mut all = vec![ConnectionSettings::default()];
        expand(&mut all, &self.reuse, keepalive, |one| &mut one.reuse);
        expand(&mut all, &self.max_age, keepalive, |one| &mut one.max_age);
        expand(&mut all, &self.idle, true, |one| &mut one.idle);
        expand(&mut all, &self.fast_open, is_tcp, |one| &mut one.fast_open);
        expand(&mut all, &self.congestion, is_tcp, |one| {
            &mut one.congestion
        });
        expand(&mut all, &self.tcp_keepalive, keepalive && is_tcp, |one| {
            &mut one.tcp_keepalive
        });
        expand(&mut all, &self.ping, has_ping, |one| &mut one.ping);
        expand(&mut all, &self.cache, true, |one| &mut one.cache);
        all
    }

    /// The axes and how many values each has; an axis that was not given has one.
    pub(crate) fn lengths(&self) -> [(&'static str, usize); 8] {
        let given = [
            (REUSE, self.reuse.len()),
            (MAX_AGE, self.max_age.len()),
            (IDLE, self.idle.len()),
            (FAST_OPEN, self.fast_open.len()),
            (CONGESTION, self.congestion.len()),
            (TCP_KEEPALIVE, self.tcp_keepalive.len()),
            (PING, self.ping.len()),
            (CACHE, self.cache.len()),
        ];
        given.map(|(axis, values)| (axis, values.max(1)))
    }
}

/// Multiplies the combinations by the values of an axis, if it has a meaning.
fn expand<T: Clone>(
    all: &mut Vec<ConnectionSettings>,
    values: &[T],
    has_meaning: bool,
    place: impl Fn(&mut ConnectionSettings) -> &mut Option<T>,
) {
    if values.is_empty() || !has_meaning {
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

    /// Writes the axes that were given.
    pub(crate) fn write(&self, axes: &mut BTreeMap<String, String>) {
        let texts = [
            (REUSE, self.reuse.map(|limit| limit.to_string())),
            (MAX_AGE, self.max_age.map(|age| age.to_string())),
            (IDLE, self.idle.map(duration::write)),
            (FAST_OPEN, self.fast_open.map(on_off)),
            (CONGESTION, self.congestion.as_deref().map(str::to_owned)),
            (TCP_KEEPALIVE, self.tcp_keepalive.map(|one| one.to_string())),
            (PING, self.ping.map(|one| one.to_string())),
            (CACHE, self.cache.map(|one| one.as_str().to_owned())),
        ];
        for (axis, text) in texts {
            if let Some(text) = text {
                axes.insert(axis.to_owned(), text);
            }
        }
    }

    /// Reads the settings of a variant.
    pub(crate) fn read(axes: &AxisReader<'_>) -> Result<ConnectionSettings, AxisError> {
        const PERIOD: &str = "off or a time such as 5s";
        let time = |word: &str| duration::or_seconds(word).ok();
        let period = |axis| axes.optional(axis, PERIOD, |word| word.parse().ok());
        Ok(ConnectionSettings {
            reuse: axes.optional(REUSE, "a number from 1 on, or unlimited", |word| {
                word.parse().ok()
            })?,
            max_age: period(MAX_AGE)?,
            idle: axes.optional(IDLE, "a time such as 5s", time)?,
            fast_open: axes.optional(FAST_OPEN, ON_OFF, read_on_off)?,
            congestion: axes.optional(CONGESTION, "a name", |word| Some(word.into()))?,
            tcp_keepalive: period(TCP_KEEPALIVE)?,
            ping: period(PING)?,
            cache: axes.optional(CACHE, "off or revalidate", |word| word.parse().ok())?,
        })
    }
}
