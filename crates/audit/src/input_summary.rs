//! What was read of one input, and what stayed unread.

use crate::format::Format;
use crate::input;
use std::path::PathBuf;

/// What an input consists of, for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unit {
    /// Packets of a capture.
    Packets,
    /// Entries of a HAR file or of a tool's result.
    Entries,
    /// Lines of a log.
    Lines,
    /// Events of a ledger.
    Events,
}

impl Unit {
    /// The word, in the plural.
    pub fn as_str(self) -> &'static str {
        match self {
            Unit::Packets => "packets",
            Unit::Entries => "entries",
            Unit::Lines => "lines",
            Unit::Events => "events",
        }
    }

    /// A count with its unit, in words.
    pub(crate) fn many(self, count: u64) -> String {
        let word = match (self, count) {
            (Unit::Packets, 1) => "packet",
            (Unit::Entries, 1) => "entry",
            (Unit::Lines, 1) => "line",
            (Unit::Events, 1) => "event",
            _ => self.as_str(),
        };
        format!("{count} {word}")
    }
}

/// What was read of one input.
#[derive(Clone, Debug)]
pub struct InputSummary {
    /// The input.
    pub path: PathBuf,
    /// What it was taken for.
    pub format: Format,
    /// What it consists of.
    pub unit: Unit,
    /// How many of them were read.
    pub read: u64,
    /// How many of them said nothing that could be used.
    pub skipped: u64,
    /// Bytes read, after decompression.
    pub bytes: u64,
    /// By what evidence connections were told apart, in words.
    pub evidence: Option<String>,
    /// Lines for a server's configuration that make its log tell more, ready to paste.
    pub advice: Vec<String>,
}

impl InputSummary {
    /// The input's name for a person.
    pub fn name(&self) -> String {
        input::name(&self.path)
    }
}
