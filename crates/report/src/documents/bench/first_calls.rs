//! The part of a bench's page on first calls: the first requests of each variant in their order.

use crate::documents::common::{GROUPS, first_of};
use crate::documents::populations;
use crate::page::*;
use intact_experiments::bench::{BenchFacts, FirstCall, VariantFacts};
use intact_ledger::Reuse;
use intact_units::Quantity::Time;

pub(super) fn section(variants: &[VariantFacts]) -> Section {
    let called: Vec<&VariantFacts> = variants
        .iter()
        .filter(|one| !one.first_calls.is_empty())
        .collect();
    let point = |(nth, call): (usize, &FirstCall)| Point {
        x: (nth + 1) as f64,
        y: call.ms,
        tone: if call.ok {
            populations::tone(call.reuse)
        } else {
            Tone::Alarm
        },
        hollow: call.warmup,
    };
    let series = called.iter().take(GROUPS).map(|one| Series {
        name: if called.len() == 1 {
            String::new()
        } else {
            one.name.clone()
        },
        points: one.first_calls.iter().enumerate().map(point).collect(),
        levels: one
            .tiers
            .iter()
            .flat_map(|tiers| &tiers.levels)
            .map(|tier| (tier.mean_ms, Time(tier.mean_ms).to_string()))
            .collect(),
    });
    let scatter = Scatter(series.collect());
    let tiers = called.iter().filter_map(|one| {
        let tiers = one.tiers.as_ref()?;
        Some(text!("{}: {}.", &one.name, &tiers.sentence).into())
    });
    let shown = || called.iter().take(GROUPS).flat_map(|one| &one.first_calls);
    let has = |reuse: Reuse| shown().any(|call| call.ok && call.reuse == Some(reuse));
    let marks = [
        (has(Reuse::Fresh), "◆ waited for a new connection"),
        (has(Reuse::Reused), "● ran on a reused one"),
        (shown().any(|call| !call.ok), "× failed"),
    ];
    let marks = marks.iter().filter(|mark| mark.0).map(|mark| mark.1);
    let marks = marks.collect::<Vec<&str>>().join(", ");
    let warm_up = match shown().any(|call| call.warmup) {
        true => ". Hollow marks are warm-up, which is not in the latencies.",
        false => ".",
    };
    let words = marks + warm_up;
    let chart = Chart::new(
        "first-calls",
        "The first calls in their order",
        scatter,
        words,
    )
    .notes(first_of(GROUPS, called.len(), "variants"));
    Section::new("first-calls", "First calls, in order")
        .weighing(Weight::Detail)
        .summary(if called.len() > 1 {
            chart.wide()
        } else {
            chart
        })
        .summary(tiers.collect::<Vec<Block>>())
}

/// The first calls of every variant.
pub(super) fn table(facts: &BenchFacts) -> Table {
    let variants = facts.variants.iter();
    let rows = variants.flat_map(|one| {
        let calls = one.first_calls.iter().enumerate();
        calls.map(move |(nth, call)| (&one.name, nth as u64 + 1, call))
    });
    let rows: Vec<_> = rows.collect();
    Rows::of(&rows)
        .column("variant", |row| row.0)
        .column("call", |row| row.1)
        .column("latency", |row| Time(row.2.ms))
        .column("reuse", |row| row.2.reuse.map(Reuse::as_str))
        .column("warmup", |row| row.2.warmup.to_string())
        .column("ok", |row| row.2.ok.to_string())
        .table()
}
