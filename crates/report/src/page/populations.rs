//! Fresh and reused, cold and warm: how populations of exchanges are drawn and listed, whoever measured them.

use crate::svg::{self, Tone};
use intact_findings::Population;
use intact_ledger::{Phase, Reuse};
use intact_units::number::{count, time};

/// The colour and shape of a kind of connection.
pub(crate) fn tone(reuse: Option<Reuse>) -> Tone {
    match reuse {
        Some(Reuse::Fresh) => Tone::Fresh,
        Some(Reuse::Reused) => Tone::Reused,
        Some(Reuse::Preconnected) | None => Tone::Plain,
    }
}

/// The populations over one axis, each with its figures.
pub(crate) fn panel(name: String, populations: &[Population]) -> svg::Panel {
    svg::Panel {
        name,
        populations: populations
            .iter()
            .map(|population| svg::Population {
                words: format!(
                    "{}: {}, {} requests",
                    match population.reuse {
                        Some(Reuse::Fresh) => "new",
                        Some(Reuse::Preconnected) => "preconnected",
                        Some(Reuse::Reused) => "reused",
                        None => "not known",
                    },
                    middle(population),
                    count(population.count)
                ),
                tone: tone(population.reuse),
                buckets: population.buckets.clone(),
            })
            .collect(),
        band: None,
    }
}

fn middle(population: &Population) -> String {
    match population.p50_ms {
        Some(median) => format!("median {}", time(median)),
        None => format!("mean {}", time(population.mean_ms)),
    }
}

/// Where the time of each population goes; those whose phases were not seen are left out.
pub(crate) fn stacks(name: &str, populations: &[Population]) -> Vec<svg::Stack> {
    populations
        .iter()
        .filter(|population| !population.phases_ms.is_empty())
        .map(|population| {
            let connection = match population.reuse {
                Some(Reuse::Fresh) => "cold",
                Some(Reuse::Preconnected) => "preconnected",
                Some(Reuse::Reused) => "warm",
                None => "not known",
            };
            svg::Stack {
                name: if name.is_empty() {
                    connection.to_owned()
                } else {
                    format!("{connection}, {name}")
                },
                words: format!("{} per request", time(population.mean_ms)),
                segments: population
                    .phases_ms
                    .iter()
                    .map(|&(phase, ms)| svg::Segment {
                        name: phase_words(phase).0.to_owned(),
                        tone: tone_of_phase(phase),
                        value: ms,
                    })
                    .collect(),
            }
        })
        .collect()
}

/// The colour of a phase.
pub(crate) fn tone_of_phase(phase: &str) -> Tone {
    let place = Phase::ALL.iter().position(|one| one.id() == phase);
    Tone::Phase(place.unwrap_or(0) as u8)
}

/// The head of [`bucket_rows`] as CSV.
pub(crate) fn bucket_head(group: &str) -> [&str; 5] {
    [group, "connection", "low_ms", "high_ms", "count"]
}

/// The histogram of a population as rows.
pub(crate) fn bucket_rows<'a>(
    group: &'a str,
    population: &'a Population,
) -> impl Iterator<Item = Vec<String>> + 'a {
    population.buckets.iter().map(move |(low, high, count)| {
        vec![
            group.to_owned(),
            id(population.reuse).to_owned(),
            low.to_string(),
            high.to_string(),
            count.to_string(),
        ]
    })
}

/// The head of [`phase_rows`] as CSV.
pub(crate) fn phase_head(group: &str) -> [&str; 4] {
    [group, "connection", "phase", "mean_ms"]
}

/// The phases of a population as rows.
pub(crate) fn phase_rows<'a>(
    group: &'a str,
    population: &'a Population,
) -> impl Iterator<Item = Vec<String>> + 'a {
    population.phases_ms.iter().map(move |(phase, ms)| {
        vec![
            group.to_owned(),
            id(population.reuse).to_owned(),
            (*phase).to_owned(),
            ms.to_string(),
        ]
    })
}

fn id(reuse: Option<Reuse>) -> &'static str {
    reuse.map_or("unknown", Reuse::as_str)
}

/// What people call a phase, and what it is.
pub(crate) fn phase_words(phase: &str) -> (&'static str, &'static str) {
    match phase {
        "dns" => ("lookup", "of the name"),
        "connect" => ("TCP", "handshake of the transport"),
        "ssl" => ("TLS", "handshake"),
        "blocked" => ("blocked", "waiting for a connection to be free"),
        "send" => ("send", "writing the request"),
        "wait" => ("wait", "from the last byte sent to the first received"),
        "headers_to_body" => ("head → body", "from the head of the answer to its body"),
        _ => ("receive", "reading the answer"),
    }
}
