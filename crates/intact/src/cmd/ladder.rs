//! Packets in time: from what an audit finds in a capture to what a page lays out.

use anyhow::Context;
use intact_audit::{Audit, Input, InputOptions, KeyLog, Ladder, LadderSelection, Options};
use intact_check::Packets;
use intact_document::body_arrival::{BodyArrival, BodyArrivalFacts};
use intact_report::documents::LadderFacts;
use intact_report::page::Arrow;
use std::io::Cursor;
use std::path::Path;

/// A ladder for a page.
pub(crate) fn facts(ladder: &Ladder) -> LadderFacts {
    let first = ladder.steps.first().map_or(0, |step| step.at);
    let packets = ladder.steps.iter().map(|step| Arrow {
        at_ms: step.at.saturating_sub(first) as f64 / 1e6,
        until_ms: None,
        from: usize::from(!step.by_client),
        to: usize::from(step.by_client),
        label: words(step),
        is_alarm: step.again,
    });
    let ends = [ladder.client.to_string(), ladder.server.to_string()];
    let connection = format!("connection {}", ladder.connection.0);
    LadderFacts::new(connection, ends, packets.collect(), ladder.left_out)
}

/// Flags, then what is in a packet; where that has no name, its length.
fn words(step: &intact_audit::LadderStep) -> String {
    let mut words: Vec<String> = step.flags.iter().map(|flag| (*flag).to_owned()).collect();
    words.extend(step.names.iter().cloned());
    if step.len > 0 && step.names.is_empty() {
        words.push(format!("{} bytes", step.len));
    }
    let again = if step.again { " (again)" } else { "" };
    words.join(", ") + again
}

/// A ladder for each connection that a check captured, and how its answers came.
pub(crate) fn of_packets(
    packets: &Packets,
) -> anyhow::Result<(Vec<LadderFacts>, Vec<BodyArrivalFacts>)> {
    let mut ladders = Vec::new();
    let mut arrivals = Vec::new();
    for (number, what) in (1..).zip(&packets.spoken) {
        let file = Box::new(Cursor::new(packets.file.clone()));
        let input = Input::from_reader(Path::new("packets"), file, None, &InputOptions::default())
            .context("packets")?;
        let mut audit = Audit::new(Options {
            keys: KeyLog::default(),
            ladder: Some(LadderSelection::Number(number)),
            random: super::run_header::fingerprint_key()?,
            base: 0,
        });
        let mut answers = BodyArrival::default();
        audit
            .read(input, &mut answers, &mut || true)
            .context("packets")?;
        audit.finish(&mut answers);
        ladders.extend(audit.ladder().map(|ladder| LadderFacts {
            connection: what.clone(),
            ..facts(&ladder)
        }));
        // each pass reads all of them
        arrivals = answers.facts();
    }
    Ok((ladders, arrivals))
}
