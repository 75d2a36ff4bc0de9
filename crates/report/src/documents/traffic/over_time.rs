//! Latency and openings over time, and what differed on both sides of a lasting change.

use crate::documents::common::{line, time_axis};
use crate::documents::populations;
use crate::page::*;
use intact_ledger::Run;
use intact_traffic::{Charts, LevelShift, StepSide};
use intact_units::Quantity::{self, Mean, RoundShare, Time};
use intact_units::number::long_time;
use std::time::Duration;

/// Latency over time, openings where connections were `observed`, and what differed on both sides
/// of a change.
pub(super) fn over_time(run: &Run, charts: &Charts, observed: bool) -> Section {
    let section = Section::new("over-time", "Over time").summary(level_shifts(&charts.changes));
    if charts.periods.len() < 3 {
        return section;
    }
    let ends = charts.periods.first().zip(charts.periods.last());
    let x = time_axis(
        run,
        ends.map_or(0.0, |(first, last)| last.from_s - first.from_s),
    );
    let lines = |lines, marks, y| Lines {
        lines,
        marks,
        scale: ScaleKind::Linear,
        x,
        y,
    };
    let periods = || charts.periods.iter().map(|one| (one.from_s * 1e3, one));
    // a clock that is too coarse shows no time
    let is_timed = charts.periods.iter().any(|one| one.mean_ms > Some(0.0));
    let latency = Line {
        // an idle time of a few periods interrupts the line
        reach: Some(charts.period_s * 3.5e3),
        ..line(
            "mean latency",
            Tone::Reused,
            periods().filter_map(|(at, one)| Some((at, one.mean_ms.filter(|_| is_timed)?))),
        )
    };
    let period = long_time(Duration::from_secs_f64(charts.period_s));
    let mark = |step: &LevelShift| Mark {
        x: step.at_s * 1e3,
        words: change(step),
    };
    let marks: Vec<Mark> = charts.changes.iter().map(mark).collect();
    let requests = periods().map(|(at, one)| (at, one.requests as f64));
    let opened = periods().map(|(at, one)| (at, one.opened as f64));
    let opened = vec![
        line("requests", Tone::Reused, requests),
        line("connections opened", Tone::Fresh, opened),
    ];
    let section = section.full(Chart::new(
        "latency-over-time",
        "Latency over time",
        lines(vec![latency], marks, Axis::Time),
        text!(
            "Mean latency of the requests that ended in each {}.",
            &period
        ),
    ));
    // single events apart from each other make no curve
    let most = charts
        .periods
        .iter()
        .map(|one| one.requests.max(one.opened));
    if !observed || most.max() <= Some(1) {
        return section;
    }
    section.full(Chart::new(
        "openings",
        "Requests and connections opened",
        lines(opened, Vec::new(), Axis::Count),
        text!(
            "In each {}. Where the lines meet above 0, every request opens a connection.",
            period
        ),
    ))
}

/// What changed, for a mark in a chart.
fn change(step: &LevelShift) -> String {
    let (before, after) = (&step.before, &step.after);
    let words = |both: Option<(f64, f64)>, kind: fn(f64) -> Quantity| {
        both.map(|(before, after)| format!("{} → {}", kind(before), kind(after)))
    };
    let latency = words(before.mean_ms.zip(after.mean_ms), Time);
    latency
        .or_else(|| words(before.known_reuse.zip(after.known_reuse), RoundShare))
        .unwrap_or_default()
}

fn level_shifts(changes: &[LevelShift]) -> Vec<Block> {
    let mut blocks: Vec<Block> = changes.iter().flat_map(level_shift).collect();
    if !changes.is_empty() {
        blocks.push(note(
            "Two changes at one time are no proof that one caused the other. `intact compare` gives one.",
        ));
    }
    blocks
}

fn level_shift(step: &LevelShift) -> [Block; 3] {
    let within = long_time(Duration::from_secs_f64(step.within_s.max(0.0)));
    let words = text!("{} (known to {}).", step.sentence(), within);
    let side = |name, side: &StepSide| {
        let reused = populations::reuse(&side.reuse).text();
        let reused = reused.unwrap_or_else(|| "an unknown share".into());
        let opened = Mean((side.opened_per_request * 100.0).round() / 100.0);
        let words = "{}: {} requests, {} each; {} of them reused a connection, {} new connections per request.";
        let mean = side.mean_ms.map(Time);
        Block::from(text!(words, name, side.requests, mean, reused, opened))
    };
    [
        Block::Paragraph(Emphasis::Strong, words),
        side("Before", &step.before),
        side("After", &step.after),
    ]
}
