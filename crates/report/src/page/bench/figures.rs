//! The pictures of a bench.

use super::BenchRun;
use super::tables::field;
use crate::page::download::Download;
use crate::page::populations;
use crate::page::{Figure, by_round};
use crate::svg::{self, Tone};
use intact_findings::bench::{LatencyPanel, VariantFacts};
use intact_units::number::{tick, time};

/// Variants, settings or lines in one picture.
const GROUPS: usize = 8;

/// All pictures that have something to show.
pub(super) fn all(one: &BenchRun<'_>) -> Vec<Figure> {
    [
        latency(one),
        phases(one),
        variants(one),
        rounds(one),
        sweep(one),
        first_calls(one),
        timeline(one),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// What was left out, if anything was.
fn left_out(notes: &mut Vec<String>, all: usize, what: &str) {
    if all > GROUPS {
        notes.push(format!(
            "The first {GROUPS} of {all} {what}; the numbers have all."
        ));
    }
}

fn panel_name(panel: &LatencyPanel, alone: bool) -> String {
    if alone {
        String::new()
    } else {
        panel.name.clone()
    }
}

fn latency(one: &BenchRun<'_>) -> Option<Figure> {
    let panels = &one.pictures.latency;
    if panels.is_empty() {
        return None;
    }
    let picture = svg::Histogram {
        panels: panels
            .iter()
            .take(GROUPS)
            .map(|panel| {
                let name = panel_name(panel, panels.len() == 1);
                populations::panel(name, &panel.populations)
            })
            .collect(),
        label: tick,
    };
    let mut notes = vec![
        "Latency of complete requests, setup included; a hump to the left is faster. Heights within a panel are on one scale."
            .to_owned(),
    ];
    left_out(&mut notes, panels.len(), "settings");
    let rows = panels.iter().flat_map(|panel| {
        let populations = panel.populations.iter();
        populations.flat_map(|population| populations::bucket_rows(&panel.name, population))
    });
    let head = populations::bucket_head("setting");
    Some(
        Figure::new(
            "latency",
            "Latency: new against reused connections",
            picture,
            notes,
        )
        .with_file(Download::csv("latency.csv", &head, rows)),
    )
}

fn variants(one: &BenchRun<'_>) -> Option<Figure> {
    let bars: Vec<svg::Bar> = one
        .facts
        .variants
        .iter()
        .zip(&one.pictures.levels)
        .filter_map(|(variant, level)| {
            let value = level
                .mean_ms
                .map(|interval| interval.value)
                .or(variant.latency_ms.mean)?;
            let words = match level.mean_ms {
                Some(one) => format!("{} ({} to {})", time(value), time(one.low), time(one.high)),
                None => time(value),
            };
            Some(svg::Bar {
                name: variant.name.clone(),
                tone: tone_of(variant.keepalive),
                value,
                interval: level.mean_ms.map(|one| (one.low, one.high)),
                words,
            })
        })
        .collect();
    if bars.is_empty() {
        return None;
    }
    let all = bars.len();
    let shown = 2 * GROUPS;
    let mut notes = vec![
        "Mean latency with its own 95 % interval over rounds. Whether two variants differ is for the comparison round by round to say, which is sharper than \
         two intervals side by side."
            .to_owned(),
    ];
    if all > shown {
        notes.push(format!(
            "The first {shown} of {all} variants; the table has all."
        ));
    }
    let picture = svg::Bars {
        bars: bars.into_iter().take(shown).collect(),
        label: tick,
    };
    Some(Figure::new(
        "means",
        "Mean latency of each variant",
        picture,
        notes,
    ))
}

fn phases(one: &BenchRun<'_>) -> Option<Figure> {
    let panels = &one.pictures.latency;
    let stacks: Vec<svg::Stack> = panels
        .iter()
        .take(GROUPS)
        .flat_map(|panel| {
            let name = panel_name(panel, panels.len() == 1);
            populations::stacks(&name, &panel.populations)
        })
        .collect();
    if stacks.is_empty() {
        return None;
    }
    let mut notes = vec![
        "Mean time that each phase adds to a request. Cold requests waited for a new connection; warm ones ran on one that was there."
            .to_owned(),
    ];
    left_out(&mut notes, panels.len(), "settings");
    let rows = panels.iter().flat_map(|panel| {
        let populations = panel.populations.iter();
        populations.flat_map(|population| populations::phase_rows(&panel.name, population))
    });
    let file = Download::csv("phases.csv", &populations::phase_head("setting"), rows);
    let picture = svg::Stacks {
        stacks,
        label: tick,
    };
    Some(
        Figure::new(
            "waterfall",
            "Where the time goes: cold against warm",
            picture,
            notes,
        )
        .with_file(file),
    )
}

fn first_calls(one: &BenchRun<'_>) -> Option<Figure> {
    let variants: Vec<&VariantFacts> = one
        .facts
        .variants
        .iter()
        .filter(|variant| !variant.first_calls.is_empty())
        .collect();
    if variants.is_empty() {
        return None;
    }
    let clouds = variants
        .iter()
        .take(GROUPS)
        .map(|variant| svg::Series {
            name: if variants.len() == 1 {
                String::new()
            } else {
                variant.name.clone()
            },
            points: variant
                .first_calls
                .iter()
                .enumerate()
                .map(|(nth, call)| svg::Point {
                    x: (nth + 1) as f64,
                    y: call.ms,
                    tone: match (call.ok, call.reuse) {
                        (false, _) => Tone::Alarm,
                        (true, reuse) => populations::tone(reuse),
                    },
                    hollow: call.warmup,
                })
                .collect(),
            levels: variant
                .tier_means_ms
                .iter()
                .flatten()
                .map(|&ms| (ms, time(ms)))
                .collect(),
        })
        .collect();
    let mut notes = vec![
        "The first calls in their order. ◆ waited for a new connection, ● ran on a reused one, × failed; hollow marks are warm-up, left out of the latencies."
            .to_owned(),
    ];
    notes.extend(variants.iter().take(GROUPS).filter_map(|variant| {
        let tiers = variant.tiers.as_ref()?;
        Some(if variants.len() == 1 {
            format!("{tiers}.")
        } else {
            format!("{}: {tiers}.", variant.name)
        })
    }));
    left_out(&mut notes, variants.len(), "variants");
    let picture = svg::Scatter {
        clouds,
        x_label: |nth| format!("{nth:.0}"),
        y_label: tick,
    };
    let figure = Figure::new("first-calls", "The first calls", picture, notes);
    Some(if variants.len() > 1 {
        figure.across()
    } else {
        figure
    })
}

fn rounds(one: &BenchRun<'_>) -> Option<Figure> {
    let variants = &one.facts.variants;
    let mut lines = Vec::new();
    let mut marks = Vec::new();
    let mut changes = Vec::new();
    for (nth, (variant, level)) in variants.iter().zip(&one.pictures.levels).enumerate() {
        let rounds: Vec<(u32, f64)> = variant
            .rounds
            .iter()
            .filter_map(|round| Some((round.round, round.mean_ms?)))
            .collect();
        if let Some(change) = level.change {
            let round = rounds.get(change.at).map_or(0, |round| round.0);
            changes.push(format!(
                "{}: the level changed at round {round}, from {} to {} (p = {:.3}).",
                variant.name,
                time(change.before),
                time(change.after),
                change.p_value
            ));
            if nth < GROUPS {
                marks.push(svg::Mark {
                    x: f64::from(round) - 0.5,
                    words: format!("{} → {}", time(change.before), time(change.after)),
                });
            }
        }
        if nth < GROUPS && !rounds.is_empty() {
            lines.push(by_round::line(nth, &variant.name, rounds.into_iter()));
        }
    }
    let picture = by_round::picture(lines, marks)?;
    let mut notes = vec![
        "Mean latency in each round: how steady the run was. What befell all variants in one round cancels out in the comparison.".to_owned(),
    ];
    if changes.is_empty() {
        notes.push("No variant changed its level within the run.".to_owned());
    } else {
        notes.extend(changes);
    }
    left_out(&mut notes, variants.len(), "variants");
    Some(Figure::new(
        "rounds",
        "Latency over the rounds",
        picture,
        notes,
    ))
}

fn sweep(one: &BenchRun<'_>) -> Option<Figure> {
    let sweeps = &one.pictures.sweeps;
    if sweeps.is_empty() {
        return None;
    }
    let named = |name: &str, keepalive: bool| {
        let connection = if keepalive { "reused" } else { "not reused" };
        let rest: Vec<&str> = name
            .split(' ')
            .filter(|axis| !axis.is_empty() && !axis.starts_with("keepalive="))
            .collect();
        if rest.is_empty() {
            connection.to_owned()
        } else {
            format!("{connection}, {}", rest.join(" "))
        }
    };
    let lines = sweeps
        .iter()
        .take(GROUPS)
        .enumerate()
        .map(|(nth, sweep)| svg::Line {
            name: named(&sweep.name, sweep.keepalive),
            tone: if sweeps.len() == 2 {
                tone_of(sweep.keepalive)
            } else {
                Tone::Series(nth as u8)
            },
            points: sweep
                .points
                .iter()
                .map(|point| svg::LinePoint {
                    x: point.concurrency as f64,
                    y: point.seconds,
                    interval: point.interval.map(|one| (one.low, one.high)),
                })
                .collect(),
            reach: None,
        })
        .collect();
    let mut notes = vec![
        "Time for a thousand requests by connections at once, with the 95 % interval over rounds."
            .to_owned(),
    ];
    left_out(&mut notes, sweeps.len(), "settings");
    let rows = sweeps.iter().flat_map(|sweep| {
        sweep.points.iter().map(|point| {
            vec![
                sweep.name.clone(),
                point.concurrency.to_string(),
                point.seconds.to_string(),
                field(point.interval.map(|one| one.low)),
                field(point.interval.map(|one| one.high)),
            ]
        })
    });
    let head = ["setting", "concurrency", "seconds_per_1000", "low", "high"];
    let file = Download::csv("sweep.csv", &head, rows);
    let picture = svg::Lines {
        lines,
        marks: Vec::new(),
        x_spread: svg::ScaleKind::Logarithmic,
        x_label: |c| format!("{c:.0}"),
        y_label: |seconds| tick(seconds * 1e3),
    };
    Some(Figure::new("sweep", "Total time by concurrency", picture, notes).with_file(file))
}

fn timeline(one: &BenchRun<'_>) -> Option<Figure> {
    let lanes = &one.pictures.timeline;
    if lanes.iter().all(|lane| lane.connections.is_empty()) {
        return None;
    }
    let picture = crate::page::timeline::picture(lanes);
    let notes = vec![
        "The first requests of each variant's first round on the connections that carried them; (+n): so many more are not drawn."
            .to_owned(),
    ];
    Some(Figure::new("timeline", "Connections over time", picture, notes).across())
}

/// The colour of a variant: that of the connections that its exchanges mostly find.
fn tone_of(keepalive: bool) -> Tone {
    if keepalive { Tone::Reused } else { Tone::Fresh }
}
