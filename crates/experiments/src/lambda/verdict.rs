//! The sentences of a function's page.

use super::frozen::FreezeEffect;
use super::variant::{Kind, VariantFacts};
use crate::time_difference::TimeDifference;
use intact_statistics::Interval;
use intact_units::number::{mean, time};

pub(super) fn sentences(variants: &[VariantFacts], comparisons: &[TimeDifference]) -> Vec<String> {
    let mut ordered: Vec<&TimeDifference> = comparisons.iter().collect();
    // what differs most comes first; where nothing is shown the order stays
    let shown = |one: &TimeDifference| {
        let saved = one.saved_ms.filter(Interval::excludes_zero);
        saved.map_or(0.0, |saved| saved.value.abs())
    };
    ordered.sort_by(|a, b| shown(b).total_cmp(&shown(a)));
    let mut sentences = unlike(variants);
    if let [only] = variants {
        let wasteful = only.wasteful();
        sentences.extend(wasteful.and_then(|observed| observed.verdict.first().cloned()));
    }
    sentences.extend(ordered.into_iter().map(sentence));
    for variant in variants {
        let whose = if variants.len() > 1 {
            format!("{}: ", variant.name)
        } else {
            String::new()
        };
        for kind in &variant.kinds {
            // that invocations fail comes before the reason
            if let (true, Some((words, count))) = (kind.failed > 0, kind.failures.first()) {
                let of_them = match *count < kind.failed {
                    true => format!(", {count} of them"),
                    false => String::new(),
                };
                sentences.push(format!(
                    "{whose}{} of {} {} invocations failed{of_them}: {words}",
                    kind.failed, kind.count, kind.name
                ));
            }
            sentences.extend(pauses(&whose, kind));
        }
        if comparisons.is_empty()
            && let (Some(first), Some(warm)) = (variant.cold_start_ms, variant.warm_ms.mean)
        {
            sentences.push(format!(
                "{whose}a first call takes {} with the start of its environment, later ones {}",
                time(first),
                time(warm)
            ));
        }
    }
    sentences
}

/// Variants that send fewer requests than the first: their times are not of the same work.
fn unlike(variants: &[VariantFacts]) -> Vec<String> {
    let Some((first, others)) = variants.split_first() else {
        return Vec::new();
    };
    let fewer = others.iter().filter(|one| one.sends_fewer(first));
    let each = |one: &VariantFacts| mean(one.requests_per_invocation().unwrap_or_default());
    let words = |one: &VariantFacts| {
        format!(
            "the variants did not do the same work: {} sends {} requests per invocation, {} sends {}",
            one.name,
            each(one),
            first.name,
            each(first)
        )
    };
    fewer.map(words).collect()
}

fn sentence(compared: &TimeDifference) -> String {
    let TimeDifference { a, b, a_ms, .. } = compared;
    match compared.saved_ms {
        None => format!(
            "{b} takes {} per invocation, {a} {} (no interval: {})",
            time(compared.b_ms),
            time(*a_ms),
            compared.no_interval_reason.as_deref().unwrap_or_default()
        ),
        Some(saved) if !saved.excludes_zero() => format!(
            "{b} against {a}: no difference shown; it lies between {} and {} of {} per invocation",
            time(saved.low),
            time(saved.high),
            time(*a_ms)
        ),
        Some(saved) => {
            let (verb, sign) = if saved.value > 0.0 {
                ("saves", 1.0)
            } else {
                ("costs", -1.0)
            };
            let mut ends = [saved.low * sign, saved.high * sign];
            ends.sort_by(f64::total_cmp);
            format!(
                "{b} {verb} {} ({} to {}) against the {} per invocation of {a}",
                time(saved.value * sign),
                time(ends[0]),
                time(ends[1]),
                time(*a_ms)
            )
        }
    }
}

/// What the freezes of one length did to connections, if they did anything.
fn pauses(whose: &str, kind: &Kind) -> Option<String> {
    let pauses = kind.freezes.as_ref()?;
    let deaths = pauses
        .connection_states
        .iter()
        .filter(|(case, _)| case.is_death());
    let (mut dead, mut kinds) = (0, Vec::new());
    for (case, count) in deaths {
        dead += count;
        kinds.push(format!("{} {count}", case.words()));
    }
    if dead == 0 {
        return None;
    }
    let saw = |saw| pauses.effect.get(&saw).copied().unwrap_or(0);
    Some(format!(
        "{whose}{}: {dead} of {} open connections ended in the freeze ({}); of the next invocations {} recovered, {} failed",
        kind.name,
        pauses.open,
        kinds.join(", "),
        saw(FreezeEffect::Recovered),
        saw(FreezeEffect::Failed)
    ))
}
