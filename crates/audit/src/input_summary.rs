//! The summary of one input: what was read and what was skipped.

use crate::counters::UpstreamCounts;
use crate::format::Format;
use crate::input;
use intact_ledger::kinds;
use std::path::PathBuf;

kinds! {
    /// The parts that an input consists of.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Unit, as_str {
        /// Packets of a capture.
        Packets = "packets",
        /// Entries of a HAR file or rows of a load generator.
        Entries = "entries",
        /// Lines of a log.
        Lines = "lines",
        /// Values of counters.
        Counters = "counters",
        /// Events of a ledger.
        Events = "events",
    }
}

impl Unit {
    /// A count with the noun.
    pub(crate) fn many(self, count: u64) -> String {
        let word = match (self, count) {
            (Unit::Packets, 1) => "packet",
            (Unit::Entries, 1) => "entry",
            (Unit::Lines, 1) => "line",
            (Unit::Counters, 1) => "counter",
            (Unit::Events, 1) => "event",
            _ => self.as_str(),
        };
        format!("{count} {word}")
    }
}

/// The summary of one input.
#[derive(Clone, Debug)]
pub struct InputSummary {
    /// The input.
    pub path: PathBuf,
    /// The detected format.
    pub format: Format,
    /// The unit of `read` and `skipped`.
    pub unit: Unit,
    /// Number of units that were read.
    pub read: u64,
    /// Number of units without usable content.
    pub skipped: u64,
    /// Bytes read, after decompression.
    pub bytes: u64,
    /// The evidence that identifies connections, for the user.
    pub evidence: Option<String>,
    /// Configuration lines that make the server's log show more, ready to paste.
    pub advice: Vec<String>,
    /// What counters show of each upstream.
    pub upstreams: Vec<UpstreamCounts>,
}

impl InputSummary {
    /// The summary with the evidence that identifies connections.
    pub(crate) fn with_evidence(self, evidence: impl Into<String>) -> InputSummary {
        InputSummary {
            evidence: Some(evidence.into()),
            ..self
        }
    }

    /// The input's name that users see.
    pub fn name(&self) -> String {
        input::name(&self.path)
    }
}
