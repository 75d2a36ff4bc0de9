//! What was read of the inputs, and the packets of one connection.

use crate::page::*;
use intact_traffic::InputFacts;

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
            skipped => text!(", {} of them without use here", skipped),
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
