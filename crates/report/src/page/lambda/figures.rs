//! The pictures of a function.

use crate::page::{Figure, by_round};
use crate::svg::{self, Tone};
use intact_findings::lambda::{InvocationFacts, Kind, LambdaFacts, VariantFacts};
use intact_units::number::{count, tick, time};

/// Variants in one picture.
const GROUPS: usize = 8;

/// Invocations of a variant that are drawn one by one: a page stays small.
const FIRST: usize = 500;

/// All that have something to show.
pub(super) fn all(facts: &LambdaFacts) -> Vec<Figure> {
    [times(facts), means(facts), over_rounds(facts), calls(facts)]
        .into_iter()
        .flatten()
        .collect()
}

/// Cold as what waits for a setup, warm as what does not, after a freeze as neither.
fn tone(kind: &str) -> Tone {
    match kind {
        "cold" => Tone::Fresh,
        "warm" => Tone::Reused,
        _ => Tone::Plain,
    }
}

fn name(facts: &LambdaFacts, variant: &VariantFacts) -> String {
    if facts.variants.len() == 1 {
        String::new()
    } else {
        variant.name.clone()
    }
}

fn left_out(notes: &mut Vec<String>, facts: &LambdaFacts) {
    let all = facts.variants.len();
    if all > GROUPS {
        notes.push(format!("The first {GROUPS} of {all} variants."));
    }
}

fn times(facts: &LambdaFacts) -> Option<Figure> {
    let population = |kind: &Kind| {
        let middle = match (kind.latency_ms.p50, kind.latency_ms.mean) {
            (Some(median), _) => format!("median {}", time(median)),
            (None, Some(mean)) => format!("mean {}", time(mean)),
            (None, None) => return None,
        };
        let answered = count(kind.count - kind.failed);
        Some(svg::Population {
            words: format!("{}: {middle}, {answered} answered", kind.name),
            tone: tone(&kind.name),
            buckets: kind.buckets.clone(),
        })
    };
    let shown = facts.variants.iter().take(GROUPS);
    let panels: Vec<svg::Panel> = shown
        .map(|variant| svg::Panel {
            name: name(facts, variant),
            populations: variant.kinds.iter().filter_map(population).collect(),
            band: None,
        })
        .filter(|panel| !panel.populations.is_empty())
        .collect();
    if panels.is_empty() {
        return None;
    }
    let mut notes = vec![
        "The function's own time of each answered invocation; the start of the environment is not in it. Heights within a panel are on one scale.".to_owned(),
    ];
    left_out(&mut notes, facts);
    let label = tick;
    let picture = svg::Histogram { panels, label };
    Some(Figure::new("latency", "Time of an invocation", picture, notes).across())
}

fn means(facts: &LambdaFacts) -> Option<Figure> {
    let bars: Vec<svg::Bar> = facts
        .variants
        .iter()
        .take(GROUPS)
        .enumerate()
        .filter_map(|(nth, variant)| {
            let value = variant.warm_ms.mean?;
            let mut words = time(value);
            if let Some(each) = variant
                .sent
                .as_ref()
                .and_then(|sent| sent.connections_per_invocation)
            {
                words = format!("{words}, {each:.2} connections");
            }
            Some(svg::Bar {
                name: variant.name.clone(),
                tone: if nth == 0 { Tone::Plain } else { Tone::Reused },
                value,
                interval: None,
                words,
            })
        })
        .collect();
    if bars.len() < 2 {
        return None;
    }
    let mut notes = vec![
        "Mean time of an invocation that found its environment there, and the connections that it opened. Whether variants differ is for the comparison round by round to say."
            .to_owned(),
    ];
    left_out(&mut notes, facts);
    let picture = svg::Bars { bars, label: tick };
    let title = "Mean time of an invocation, by variant";
    Some(Figure::new("means", title, picture, notes))
}

fn over_rounds(facts: &LambdaFacts) -> Option<Figure> {
    let shown = facts.variants.iter().take(GROUPS).enumerate();
    let lines: Vec<svg::Line> = shown
        .map(|(nth, variant)| {
            let each = variant.rounds.iter();
            let each = each.map(|round| (round.round, round.mean_ms));
            by_round::line(nth, &variant.name, each)
        })
        .collect();
    let picture = by_round::picture(lines, Vec::new())?;
    let mut notes = vec![
        "Mean time in each round, without cold and failed invocations: how steady the run was. What befell all variants in one round cancels out in the comparison."
            .to_owned(),
    ];
    left_out(&mut notes, facts);
    Some(Figure::new("rounds", "Over the rounds", picture, notes))
}

fn calls(facts: &LambdaFacts) -> Option<Figure> {
    let point = |nth: usize, call: &InvocationFacts| svg::Point {
        x: (nth + 1) as f64,
        y: call.duration_ms,
        tone: match (call.is_ok(), call.init_ms) {
            (false, _) => Tone::Alarm,
            (true, Some(_)) => Tone::Fresh,
            (true, None) => Tone::Reused,
        },
        hollow: call.frozen_ms.is_some(),
    };
    let clouds: Vec<svg::Series> = facts
        .variants
        .iter()
        .take(GROUPS)
        .enumerate()
        .map(|(index, variant)| {
            let ours = facts
                .invocations
                .iter()
                .filter(|call| call.variant == index);
            svg::Series {
                name: name(facts, variant),
                points: ours
                    .take(FIRST)
                    .enumerate()
                    .map(|(nth, call)| point(nth, call))
                    .collect(),
                levels: Vec::new(),
            }
        })
        .collect();
    if clouds.iter().all(|cloud| cloud.points.is_empty()) {
        return None;
    }
    let mut notes = vec![
        "Each invocation in its order, the first 500 of a variant. ◆ cold, ● warm, ○ after a freeze, × not answered.".to_owned(),
    ];
    left_out(&mut notes, facts);
    let picture = svg::Scatter {
        clouds,
        x_label: |nth| format!("{nth:.0}"),
        y_label: tick,
    };
    Some(Figure::new("invocations", "The first invocations", picture, notes).across())
}
