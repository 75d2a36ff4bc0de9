//! What was read of the inputs, and the packets of one connection.

use crate::page::*;
use intact_traffic::{InputFacts, UpstreamFacts};
use intact_units::Quantity::Mean;

/// The packets of one connection.
#[derive(Clone, Debug, PartialEq)]
pub struct LadderFacts {
    /// Which connection, such as `connection 3`.
    pub connection: String,
    /// Client, server and packets.
    pub packets: Sequence,
}

impl LadderFacts {
    /// Packets in the order of their capture; `at_ms` since the first of them.
    pub fn new(
        connection: String,
        ends: [String; 2],
        packets: Vec<Arrow>,
        more: u64,
    ) -> LadderFacts {
        LadderFacts {
            connection,
            packets: Sequence {
                lanes: ends.into(),
                arrows: packets,
                more: Some(more),
            },
        }
    }
}

/// The packets of one connection.
pub fn ladder(ladder: &LadderFacts) -> Section {
    Section::new("packets", text!("Packets of {}", &ladder.connection))
        .summary(Block::Sequence(ladder.packets.clone()))
}

/// What was read, and by which evidence connections were distinguished.
pub(super) fn inputs(inputs: &[InputFacts]) -> Section {
    let mut section = Section::new("inputs", "What was read");
    for one in inputs {
        let skipped = match one.skipped {
            0 => Text::default(),
            skipped => text!(", {} of them no requests, or not readable", skipped),
        };
        let evidence = one
            .evidence
            .as_ref()
            .map_or_else(Text::default, |words| text!("; {}", Text::prose(words)));
        let read = text!(
            "{} ({}): {} {}{}{}",
            &one.name,
            &one.format,
            one.read,
            &one.unit,
            skipped,
            evidence
        );
        section = section.summary(note(read));
        if !one.advice.is_empty() {
            let words = "For more figures, put this into the configuration of the server:";
            section = section
                .summary(Text::plain(words))
                .summary(Block::Code(one.advice.clone()));
        }
    }
    section
}

/// Upstreams in the terminal's table.
const UPSTREAMS: usize = 20;

/// What counters show of each upstream, and which of them are worth a recording.
pub(super) fn upstreams(inputs: &[InputFacts]) -> Option<Section> {
    let mut all: Vec<&UpstreamFacts> = inputs.iter().flat_map(|one| &one.upstreams).collect();
    if all.is_empty() {
        return None;
    }
    // most connections first: each could be one too many
    all.sort_by_key(|one| (!one.worth_a_watch, std::cmp::Reverse(one.connections)));
    let names: Vec<&str> = all
        .iter()
        .filter(|one| one.worth_a_watch)
        .take(UPSTREAMS)
        .map(|one| one.upstream.as_str())
        .collect();
    let words = match names.is_empty() {
        true => Text::plain("Counters show no upstream with many connections for few requests."),
        false => text!(
            "Worth a recording with `intact watch`, because they open many connections for few requests: {}.",
            names.join(", ")
        ),
    };
    let table = Rows::of(&all)
        .column("upstream", |one| one.upstream.as_str())
        .column("connections", |one| one.connections)
        .about("opened since the program started")
        .column("requests", |one| one.requests)
        .column("requests/connection", |one| {
            one.requests_per_connection.map(Mean)
        })
        .column(
            "worth a watch",
            |one| if one.worth_a_watch { "yes" } else { "" },
        )
        .table();
    let limits = "A counter does not show who opened a connection, why, or what it cost: that is unknown, not zero.";
    let section = Section::new("upstreams", "Requests per connection, by counters")
        .summary(words)
        .summary(table.brief(UPSTREAMS))
        .summary(note(Text::plain(limits)));
    Some(section)
}
