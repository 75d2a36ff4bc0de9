//! The requests: on new connections and on reused ones, the first of new connections, after idle
//! times, and how their responses arrived.

use super::DESTINATIONS;
use crate::documents::populations;
use crate::page::*;
use intact_document::body_arrival::BodyArrivalFacts;
use intact_traffic::{Charts, Destination, Figures, GapPanel};
use intact_units::Quantity::{Count, Share, Time, Timer};

/// Reuses below which the distribution of idle times says nothing.
const REUSES: u64 = 10;

/// Requests on new connections and on reused ones.
pub(super) fn fresh_and_reused(totals: &Figures, charts: &Charts) -> Section {
    let phases = totals.phases_ms.as_ref().map(|phases| {
        let mut rows = vec![("new", &phases.fresh), ("reused", &phases.reused)];
        rows.retain(|row| row.1.values().any(Option::is_some));
        populations::phases(
            "connection",
            &rows,
            |row| row.0,
            |row, phase| populations::mean(row.1, phase),
        )
    });
    let latency = Histogram(vec![populations::panel("", &charts.latency)]);
    let words = text!(
        "Latency of complete requests to all destinations, setup included. {}",
        populations::heights(&latency, "requests")
    );
    let bars = populations::bars("", &charts.latency);
    let phase = "Mean time that each phase adds to a request. A request is new if it waited for any part of its connection's setup.";
    Section::new("latency", "Phases: mean over the requests that had them")
        .weighing(Weight::Detail)
        .summary(phases)
        .full(Chart::new(
            "latency",
            "Latency: new and reused connections",
            latency,
            words,
        ))
        .full(populations::waterfall(bars, phase))
}

/// The tiers of the first requests of new connections, and their causes.
pub(super) fn first_calls(all: &[Destination]) -> Section {
    let tiers = all.iter().filter_map(|one| {
        let tiers = one.tiers.as_ref()?;
        Some(Block::from(text!("{}: {}.", &one.origin, &tiers.sentence)))
    });
    let lines: Vec<Block> = tiers.take(DESTINATIONS).collect();
    Section::new("first-calls", "First requests of new connections").summary(lines)
}

/// Idle times before reuse, and how many came close to the server's limit.
pub(super) fn idle_times(totals: &Figures, charts: &Charts) -> Section {
    let panel = |panel: &GapPanel| Panel {
        name: panel.name.clone(),
        populations: vec![Population {
            name: String::new(),
            words: format!("{} reuses", Count(panel.count)),
            tone: Tone::Reused,
            buckets: panel.buckets.clone(),
        }],
        band: panel.danger_ms.map(|(from, to)| Band {
            from,
            to,
            words: format!("the server closes at {}", Timer(to)),
        }),
    };
    let histogram = Histogram(charts.gaps.iter().map(panel).collect());
    let gaps = totals
        .idle_gaps
        .as_ref()
        .filter(|gaps| gaps.count >= REUSES);
    let danger = gaps.filter(|gaps| gaps.in_danger > 0).map(|gaps| {
        alarm(text!(
            "{} of {} reuses came when the server was about to close, or later.",
            gaps.in_danger,
            gaps.count
        ))
    });
    let heights = populations::heights(&histogram, "reuses");
    let words = match histogram.0.iter().any(|panel| panel.band.is_some()) {
        true => text!(
            "In the band the server is about to close. A request that is sent then may be lost. {}",
            heights
        ),
        false => heights,
    };
    Section::new("idle", "Idle time before a connection was used again")
        .detail_if(danger.is_none())
        .summary(Chart::new(
            "gaps",
            "Idle time before reuse",
            histogram,
            words,
        ))
        .summary(danger)
}

/// How responses arrived: header section and body in one packet or in two.
pub fn answers(answers: &[BodyArrivalFacts]) -> Section {
    let line = |one: &BodyArrivalFacts| {
        let counts =
            "HTTP/{}: {} with header section and body together, {} with the body in a later packet";
        let counts = text!(
            counts,
            one.http,
            one.body_with_headers,
            one.body_after_headers
        );
        let gap = one.gap_ms.map_or_else(Text::default, |gap| {
            text!(", {} later on average", Time(gap))
        });
        let share = one.gap_share.filter(|share| *share > 0.0);
        let share = share.map_or_else(Text::default, |share| {
            text!(", {} of their time", Share(share))
        });
        Block::from(text!("{}{}{}.", counts, gap, share))
    };
    let lines: Vec<Block> = answers.iter().map(line).collect();
    Section::new("responses", "How responses arrived").summary(lines)
}
