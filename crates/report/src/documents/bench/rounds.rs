//! The part of a bench's page on rounds: variants compared round by round, and each round of each
//! variant.

use super::variant_tone;
use crate::documents::common::{GROUPS, by_round, each_part, first_of, round_line, significance};
use crate::page::*;
use intact_experiments::bench::{BenchFacts, Charts, TimeDifference};
use intact_units::Quantity::{Probability, Rate, Share, Time};

/// Variants compared round by round.
pub(super) fn section(facts: &BenchFacts, charts: &Charts) -> Section {
    Section::new("comparisons", "Comparisons, round by round")
        .full(comparison_table(&facts.comparisons))
        .full(over_rounds(facts, charts))
}

/// What the second of two variants saves.
pub(crate) fn comparison_table(all: &[TimeDifference]) -> Table {
    Rows::of(all)
        .column("of", |one| format!("{} against {}", one.b, one.a))
        .column("statistic", |one| one.statistic.words())
        .column("first", |one| Time(one.a_ms))
        .about("mean over rounds")
        .column("second", |one| Time(one.b_ms))
        .about("mean over rounds")
        .column("saved", |one| Cell::interval(one.saved_ms, Time))
        .about("by the second, with the 95 % interval")
        .column("share", |one| Cell::interval(one.saved_share, Share))
        .about("saved, with the 95 % interval")
        .column("p", |one| one.p_value.map(Probability))
        .about("of no difference; adjusted if there are more than ten comparisons")
        .column("result", |one| significance(one.significant))
        .column("no interval because", |one| one.no_interval_reason.as_ref())
        .table()
}

fn over_rounds(facts: &BenchFacts, charts: &Charts) -> Chart {
    let variants = &facts.variants;
    let (mut lines, mut marks, mut changes) = (Vec::new(), Vec::new(), Vec::new());
    for (nth, (variant, level)) in variants.iter().zip(&charts.levels).enumerate() {
        let rounds = variant
            .rounds
            .iter()
            .filter_map(|round| Some((round.round, round.typical_ms?)));
        let rounds: Vec<(u32, f64)> = rounds.collect();
        if let Some(change) = level.change {
            let round = rounds.get(change.at).map_or(0, |round| round.0);
            let [before, after] = [change.before, change.after].map(Time);
            let words = "{}: the level changed at round {}, from {} to {} (p = {}).";
            changes.push(text!(
                words,
                &variant.name,
                round,
                before,
                after,
                Probability(change.p_value)
            ));
            if nth < GROUPS {
                marks.push(Mark {
                    x: f64::from(round) - 0.5,
                    words: format!("{before} → {after}"),
                });
            }
        }
        if nth < GROUPS {
            let tone = variant_tone(variants, nth);
            lines.push(round_line(tone, &variant.name, rounds.into_iter()));
        }
    }
    if changes.is_empty() {
        changes.push("No variant changed its level within the run.".into());
    }
    let words = "Typical latency in each round. What affected all variants in one round cancels out in the comparison.";
    Chart::new(
        "rounds",
        "Latency over the rounds",
        by_round(lines, marks),
        words,
    )
    .notes(changes)
    .notes(first_of(GROUPS, variants.len(), "variants"))
}

/// Every round of every variant.
pub(super) fn table(facts: &BenchFacts) -> Table {
    let rows = each_part(&facts.variants, |one| &one.rounds);
    Rows::of(&rows)
        .column("variant", |row| &row.0.name)
        .column("round", |row| u64::from(row.1.round))
        .column("requests", |row| row.1.requests)
        .column("typical", |row| row.1.typical_ms.map(Time))
        .column("mean", |row| row.1.mean_ms.map(Time))
        .column("p50", |row| row.1.p50_ms.map(Time))
        .column("p99", |row| row.1.p99_ms.map(Time))
        .column("rate per s", |row| row.1.rate_per_s.map(Rate))
        .if_any("due per s", |row| row.1.requested_per_s.map(Rate))
        .table()
}
