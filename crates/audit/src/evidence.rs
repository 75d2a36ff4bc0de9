//! What each format shows. A log of requests shows less than a capture, and a ledger what its
//! producer added. Must not know which figures need it.

use crate::format::{Format, Log};
use crate::input::Input;
use crate::log;
use intact_ledger::{Evidence, EvidenceSet};

/// Whether a request reused its connection, and how long the setup took. Every format can show
/// both, and some rows do not: the counts of these rows limit the figures.
const OF_ROWS: EvidenceSet = EvidenceSet::of(&[Evidence::Reuse, Evidence::Setup]);

impl Input {
    /// What all of these inputs show, from their formats and their first bytes.
    pub fn evidence(all: &[Input]) -> EvidenceSet {
        let connections = Format::Zeek(Log::Connections);
        let has_connections = all.iter().any(|input| input.format == connections);
        let each = all.iter().map(|input| match input.format {
            // for Zeek's other logs, conn.log shows the ends
            Format::Zeek(_) if has_connections => input.shows().union([Evidence::Ends].into()),
            _ => input.shows(),
        });
        each.reduce(EvidenceSet::intersection).unwrap_or_default()
    }

    /// What this input shows. Lookups are complete in a ledger only: a capture may have been
    /// filtered, and other formats do not record all of them.
    fn shows(&self) -> EvidenceSet {
        let kinds: &[Evidence] = match (&self.ledger, self.format) {
            (Some(reader), _) => return reader.run().evidence,
            (None, Format::Pcap | Format::Pcapng | Format::Snoop) => {
                let packets = [Evidence::Addresses, Evidence::Attempts];
                return intact_observe::EVIDENCE.union(packets.into());
            }
            (None, Format::NetLog) => &[
                Evidence::Announcements,
                Evidence::Attempts,
                Evidence::Durations,
                Evidence::Ends,
                Evidence::Handshakes,
                Evidence::Repeats,
            ],
            (None, Format::Tool(tool)) => tool.shows,
            (None, Format::Client(_)) => {
                &[Evidence::Attempts, Evidence::Durations, Evidence::Repeats]
            }
            (None, Format::Zeek(_)) => &[Evidence::Attempts, Evidence::Handshakes],
            (None, Format::AccessLog) => return OF_ROWS.union(self.log_shows()),
            (None, Format::Counters(_)) => return EvidenceSet::default(),
            (None, Format::Ledger) => &[],
        };
        OF_ROWS.union(EvidenceSet::of(kinds))
    }

    /// What the first lines of an access log show.
    fn log_shows(&self) -> EvidenceSet {
        let format = self.dialect.as_ref();
        let lines = format.map(|format| log::shows(self.window.available(), format));
        lines.unwrap_or_default()
    }
}
