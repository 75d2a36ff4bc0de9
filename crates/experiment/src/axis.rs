//! The row of an axis: its option, its words, and where it has a meaning.
//!
//! The command line, the names of variants, the checks before a run and the comparison of variants
//! all read the same row. Must not know how a setting is applied.

use crate::axes::{NameLookup, TlsChoice};
use crate::{Arrivals, RequestRate, WhenBusy};
use intact_ledger::{Protocol, TlsVersion};

/// What is known of an axis, whatever the type of its values.
#[derive(Clone, Copy, Debug)]
pub struct AxisRow {
    /// The option with its dashes; without them it is the name of the axis.
    pub option: &'static str,
    /// The values of the option, as its help shows them.
    pub values: &'static str,
    /// The only words that there are; empty where they cannot be listed.
    pub choices: &'static [&'static str],
    /// The help of the option.
    pub help: &'static str,
    /// Where it has a meaning.
    pub meaning: Meaning,
    /// Which value variants are compared with.
    pub reference: Reference,
}

impl AxisRow {
    /// The name, as variants have it.
    pub fn name(&self) -> &'static str {
        self.option.trim_start_matches('-')
    }
}

/// A value of an axis, which the ledger has as a word.
pub trait AxisValue: Sized {
    /// What a word has to be, for messages.
    const WANTED: &'static str;
    /// The only words; empty where they cannot be listed.
    const CHOICES: &'static [&'static str] = &[];

    /// The value of a word.
    ///
    /// # Errors
    /// Why the word is none.
    fn read(word: &str) -> Result<Self, String>;

    /// The word; [`AxisValue::read`] reads it back.
    fn word(&self) -> String;
}

/// Values whose words are those of their text.
macro_rules! text_values {
    ($($value:ty: $wanted:literal,)*) => {$(
        impl AxisValue for $value {
            const WANTED: &'static str = $wanted;

            fn read(word: &str) -> Result<$value, String> {
                word.parse().map_err(|_| $wanted.to_owned())
            }

            fn word(&self) -> String {
                self.to_string()
            }
        }
    )*};
}

text_values! {
    NameLookup: "system, cached or per-connection",
    RequestRate: "a rate such as 500/s",
    Arrivals: "constant or poisson",
    WhenBusy: "queue or open",
}

impl AxisValue for bool {
    const WANTED: &'static str = "on or off";
    const CHOICES: &'static [&'static str] = &["on", "off"];

    fn read(word: &str) -> Result<bool, String> {
        match word {
            "on" => Ok(true),
            "off" => Ok(false),
            _ => Err(bool::WANTED.to_owned()),
        }
    }

    fn word(&self) -> String {
        if *self { "on" } else { "off" }.to_owned()
    }
}

impl AxisValue for u32 {
    const WANTED: &'static str = "a number from 1 on";

    fn read(word: &str) -> Result<u32, String> {
        let number = word.parse().ok().filter(|&number| number > 0);
        number.ok_or_else(|| u32::WANTED.to_owned())
    }

    fn word(&self) -> String {
        self.to_string()
    }
}

impl AxisValue for Protocol {
    const WANTED: &'static str = "1.0, 1.1, 2 or 3";
    const CHOICES: &'static [&'static str] = &["1.0", "1.1", "2", "3"];

    fn read(word: &str) -> Result<Protocol, String> {
        let version = word.parse().ok();
        let version = version.filter(|_| Protocol::CHOICES.contains(&word));
        version.ok_or_else(|| Protocol::WANTED.to_owned())
    }

    fn word(&self) -> String {
        self.to_string()
    }
}

impl AxisValue for TlsChoice {
    const WANTED: &'static str = "none, any or a TLS version";
    const CHOICES: &'static [&'static str] = &["none", "any", "1.2", "1.3"];

    fn read(word: &str) -> Result<TlsChoice, String> {
        match word {
            "none" => Ok(TlsChoice::None),
            "any" => Ok(TlsChoice::Any),
            version => version
                .parse::<TlsVersion>()
                .map(TlsChoice::Version)
                .map_err(|_| TlsChoice::WANTED.to_owned()),
        }
    }

    fn word(&self) -> String {
        self.as_str().to_owned()
    }
}

/// The value that variants are compared with where they differ in an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference {
    /// The first.
    First,
    /// `off`: a remedy is compared with doing without.
    Off,
    /// `off`, and the setting has this name.
    OffOf(&'static str),
}

/// The variants in which an axis has a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// All.
    Any,
    /// Those that keep connections.
    Kept,
    /// Those of HTTP/2.
    Http2,
    /// Those over TCP.
    Tcp,
    /// Those that keep connections of TCP.
    KeptTcp,
    /// Those that keep connections of HTTP/2.
    KeptHttp2,
}

impl Meaning {
    /// Whether variants with these settings are among them.
    pub fn includes(self, keepalive: bool, http: Protocol) -> bool {
        let is_spoken = match self {
            Meaning::Any | Meaning::Kept => true,
            Meaning::Tcp | Meaning::KeptTcp => http != Protocol::Http3,
            Meaning::Http2 | Meaning::KeptHttp2 => http == Protocol::Http2,
        };
        is_spoken && (keepalive || !self.needs().contains(&"keepalive"))
    }

    /// The axes whose first value may not do: the settings that a variant needs to be among them.
    pub fn needs(self) -> &'static [&'static str] {
        match self {
            Meaning::Any | Meaning::Tcp => &[],
            Meaning::Kept | Meaning::KeptTcp => &["keepalive"],
            Meaning::Http2 => &["http"],
            Meaning::KeptHttp2 => &["keepalive", "http"],
        }
    }

    /// Whether the setting is one of TCP itself.
    pub fn is_of_tcp(self) -> bool {
        matches!(self, Meaning::Tcp | Meaning::KeptTcp)
    }

    /// Why an axis has no effect where no variant is among them, with the remedy.
    pub fn missing(self) -> &'static str {
        match self {
            Meaning::Any => "no variant is measured",
            Meaning::Kept => {
                "without keep-alive each request has a connection of its own; add --keepalive on"
            }
            Meaning::Http2 => "it is one of HTTP/2; add --http 2",
            Meaning::Tcp => {
                "it is an option of TCP, and HTTP/3 uses UDP; add --http 1.1 or --http 2"
            }
            Meaning::KeptTcp => {
                "it needs a TCP connection that is kept; add --keepalive on, and --http 1.1 or 2"
            }
            Meaning::KeptHttp2 => {
                "it is one of kept connections of HTTP/2; add --http 2 --keepalive on"
            }
        }
    }
}
