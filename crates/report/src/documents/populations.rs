//! New, preconnected and reused: how populations of exchanges and their phases are shown in all
//! documents.

use crate::page::*;
use intact_document as document;
use intact_experiments::bench::Mode;
use intact_ledger::{Phase, Reuse};
use intact_reading::Reading;
use intact_units::Quantity::{Share, Time};
use intact_units::plural::counted;

/// The tone of a kind of connection.
pub(super) fn tone(reuse: Option<Reuse>) -> Tone {
    match reuse {
        Some(Reuse::Fresh) => Tone::Fresh,
        Some(Reuse::Reused) => Tone::Reused,
        Some(Reuse::Preconnected) | None => Tone::Plain,
    }
}

/// The kind of connection in words.
fn name(reuse: Option<Reuse>) -> &'static str {
    match reuse {
        Some(Reuse::Fresh) => "new",
        Some(Reuse::Preconnected) => "preconnected",
        Some(Reuse::Reused) => "reused",
        None => "not known",
    }
}

/// The parts of a distribution in words: those of new and of reused connections, or two modes.
pub(super) fn modes(whose: &str, modes: &[Mode]) -> Text {
    let each = modes.iter().map(|mode| {
        let name = match mode.name {
            "fresh" => "new",
            name => name,
        };
        format!("{} {name} at {}", Share(mode.share), Time(mode.mean_ms))
    });
    let each = each.collect::<Vec<String>>().join(", ");
    text!("{}: {} on average.", whose, each)
}

/// The populations over one axis, each with its figures.
pub(super) fn panel(panel: &str, populations: &[document::Population]) -> Panel {
    let population = |one: &document::Population| Population {
        name: name(one.reuse).to_owned(),
        words: format!(
            "{}, {}",
            typical(one.p50_ms, Some(one.mean_ms)),
            counted(one.count, "request")
        ),
        tone: tone(one.reuse),
        buckets: one.buckets.clone(),
    };
    Panel {
        name: panel.to_owned(),
        populations: populations.iter().map(population).collect(),
        band: None,
    }
}

/// What the heights of a histogram of `things` are, for its caption.
pub(super) fn heights(histogram: &Histogram, things: &str) -> Text {
    let own = match histogram.0.len() {
        0 | 1 => "",
        _ => " Each panel has a scale of its own.",
    };
    Text::plain(format!("The scale on the left counts {things}.{own}"))
}

/// The populations of one run over one axis, each with its share.
pub(super) fn shares(populations: &[document::Population]) -> Panel {
    let all: u64 = populations.iter().map(|one| one.count).sum();
    let mut panel = panel("", populations);
    for (shown, one) in panel.populations.iter_mut().zip(populations) {
        let share = Share(one.count as f64 / all.max(1) as f64);
        shown.words = format!("{share}, {}", shown.words);
    }
    panel
}

/// The median, or the mean where there are too few values.
pub(super) fn typical(p50_ms: Option<f64>, mean_ms: Option<f64>) -> String {
    match (p50_ms, mean_ms) {
        (Some(median), _) => format!("median {}", Time(median)),
        (None, Some(mean)) => format!("mean {}", Time(mean)),
        (None, None) => "no value".to_owned(),
    }
}

/// The mean time of a request by phase; populations without phases are left out.
pub(super) fn bars(panel: &str, populations: &[document::Population]) -> Vec<Bar> {
    let seen = populations.iter().filter(|one| !one.phases_ms.is_empty());
    let bar = |one: &document::Population| Bar {
        name: match panel {
            "" => name(one.reuse).to_owned(),
            panel => format!("{}, {panel}", name(one.reuse)),
        },
        words: format!("{} per request", Time(one.mean_ms)),
        parts: segments(one.phases_ms.iter().copied()),
        interval: None,
    };
    seen.map(bar).collect()
}

/// The phases of requests as bars.
pub(super) fn waterfall(bars: Vec<Bar>, words: &str) -> Chart {
    Chart::new("waterfall", "Where the time goes", Bars(bars), words)
}

/// Phases as the parts of a bar.
pub(super) fn segments<'a>(phases: impl Iterator<Item = (&'a str, f64)>) -> Vec<Segment> {
    let segment = |(phase, ms): (&str, f64)| {
        let position = Phase::ALL.iter().position(|one| one.id() == phase);
        Segment {
            name: phase_words(phase).0.to_owned(),
            tone: Tone::Phase(position.unwrap_or(0) as u8),
            value: ms,
        }
    };
    phases.map(segment).collect()
}

/// A table of phases: a row for each of `rows`, a column for each phase that any of them has, in
/// milliseconds.
pub(super) fn phases<'a, T>(
    head: &str,
    rows: &'a [T],
    name: impl Fn(&'a T) -> &'a str,
    time: impl Fn(&'a T, &'static str) -> Option<f64>,
) -> Table {
    let mut table = Rows::of(rows).column(head, name);
    for phase in Phase::ALL {
        let (words, meaning) = phase_words(phase.id());
        table = table
            .column(words, |row| time(row, phase.id()).map(Time))
            .about(meaning);
    }
    table.table()
}

/// The name of a phase, and what it is.
pub(super) fn phase_words(phase: &str) -> (&'static str, &'static str) {
    match phase {
        "dns" => ("lookup", "of the name"),
        "connect" => ("TCP", "handshake of the transport"),
        "ssl" => ("TLS", "handshake"),
        "blocked" => ("blocked", "waiting for a free connection"),
        "send" => ("send", "writing the request"),
        "wait" => ("wait", "from the last byte sent to the first byte received"),
        "headers_to_body" => ("gap", "from the header section of the response to its body"),
        _ => ("receive", "reading the response"),
    }
}

/// Connections by the requests that they carried, shaded by their share of a row's connections.
pub(super) fn per_connection<'a, T>(
    head: &str,
    rows: &'a [T],
    name: impl Fn(&'a T) -> &'a str,
    classes: &[String],
    counts: impl Fn(&'a T) -> Vec<u64>,
) -> Table {
    let mut table = Rows::of(rows).column(head, name);
    for (nth, class) in classes.iter().enumerate() {
        let cell = |row| {
            let counts = counts(row);
            Cell::heat(counts.get(nth).copied().unwrap_or(0), counts.iter().sum())
        };
        table = table
            .column(class, cell)
            .about("connections that carried this number of requests");
    }
    let table = table
        .table()
        .caption("Connections by the requests that they carried");
    table.note("On the HTML page, a darker cell is a larger share of the row's connections. The first column is a connection per request.")
}

/// A mean of times of a phase, where it is known.
pub(super) fn mean(phases: &document::figures::PhaseTimes, phase: &'static str) -> Option<f64> {
    phases.get(phase)?.as_ref()?.mean.value()
}

/// The share of requests that reused a connection.
pub(super) fn reuse(share: &Reading) -> Cell {
    Cell::reading(share, Share)
}
