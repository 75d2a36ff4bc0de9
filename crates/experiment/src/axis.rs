//! The row of an axis: its option, its words, and where it has a meaning.
//!
//! The command line, the names of variants, the checks before a run and the comparison of variants
//! all read the same row. Must not know how a setting is applied.

use intact_ledger::Protocol;

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
pub(crate) trait AxisValue: Sized {
    /// What a word has to be, for messages.
    const WANTED: &'static str;
    /// The only words; empty where they cannot be listed.
    const CHOICES: &'static [&'static str] = &[];

    /// The value of a word, or why it is none.
    fn read(word: &str) -> Result<Self, String>;

    /// The word; [`AxisValue::read`] reads it back.
    fn word(&self) -> String;
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
            Meaning::KeptHttp2 => http == Protocol::Http2,
        };
        is_spoken && (keepalive || !self.needs_keepalive())
    }

    /// Whether only variants that keep connections are among them.
    pub fn needs_keepalive(self) -> bool {
        !matches!(self, Meaning::Any | Meaning::Tcp)
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
            Meaning::Tcp => {
                "it is an option of TCP, and HTTP/3 uses UDP; add --http 1.1 or --http 2"
            }
            Meaning::KeptTcp => {
                "it needs a TCP connection that is kept; add --keepalive on, and --http 1.1 or 2"
            }
            Meaning::KeptHttp2 => {
                "only kept connections of HTTP/2 send PING; add --http 2 --keepalive on"
            }
        }
    }
}
