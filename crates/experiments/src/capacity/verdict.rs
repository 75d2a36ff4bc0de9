//! The sentences of a capacity: the rates, what keep-alive does to them, and the recoveries. Must
//! not compute figures.

use super::{
    CapacityFacts, CapacityInterval, CapacityRatio, Recovery, StepFigures, VariantCapacity,
};
use crate::bench::{SHARED, no_success_claim};
use intact_document::{Claim, ClaimKind, Claims};
use intact_ledger::Tally;
use intact_units::number::{per_second, time};

/// What is claimed of the capacities.
pub(super) fn claims(facts: &CapacityFacts, tally: &Tally) -> Claims {
    let errors = &facts.errors;
    if let Some(claim) = no_success_claim(&facts.counted, errors, tally, &[]) {
        return Claims::ranked([claim]);
    }
    let of = |kind: ClaimKind, sentence: String| Claim::new(kind, 0.0, sentence);
    let ratios = facts.ratios.iter().map(ratio);
    let mut claims: Vec<Claim> = ratios.map(|one| of(ClaimKind::Time, one)).collect();
    let conditions = facts.conditions.join(", ");
    for one in &facts.variants {
        if one.is_searched {
            let kind = match one.confirmed {
                _ if one.lowest_fails() => ClaimKind::Failed,
                true => ClaimKind::Time,
                false => ClaimKind::Unseen,
            };
            claims.extend(stopped(one).map(|sentence| of(ClaimKind::Failed, sentence)));
            claims.push(of(kind, capacity(one, &conditions)));
        }
        match &one.recovery {
            Some(recovery) => {
                let kind = match recovery {
                    recovery if recovery.is_lost() => ClaimKind::Failed,
                    recovery if recovery.has_broken_nothing() => ClaimKind::Well,
                    recovery if recovery.recovered_after_s.is_unknown() => ClaimKind::Unseen,
                    _ => ClaimKind::Time,
                };
                claims.push(of(kind, recovered(one, recovery)));
            }
            None if !one.is_searched => claims.push(of(
                ClaimKind::Unseen,
                format!(
                    "{}: the run ended before the overload was over, so nothing is known of a recovery.",
                    one.name
                ),
            )),
            None => {}
        }
    }
    // a search looks for the rate at which there are some
    let share = errors.share();
    claims.extend(share.map(|share| of(ClaimKind::Note, format!("{share}."))));
    Claims::ranked(claims)
}

fn rate(per_s: f64) -> String {
    format!("{} requests/s", per_second(per_s))
}

fn ratio(one: &CapacityRatio) -> String {
    let range = match one.high {
        Some(high) => format!("{:.1} to {high:.1} times", one.low),
        None => format!("at least {:.1} times", one.low),
    };
    let CapacityRatio { a, b, value, .. } = one;
    format!("{b} carries {value:.1} times as many requests as {a} ({range}).")
}

fn capacity(one: &VariantCapacity, conditions: &str) -> String {
    let name = &one.name;
    if one.steps.is_empty() {
        return format!(
            "{name}: the search ended before its first step was over, so it is not known which rate meets {conditions}."
        );
    }
    let Some(CapacityInterval { low, high }) = one.interval else {
        let lowest = one.steps.iter().map(|step| step.rate_per_s);
        let lowest = lowest.fold(f64::INFINITY, f64::min);
        let missed = one.lowest().and_then(|step| step.reason.as_deref());
        let missed = missed.unwrap_or("it was missed");
        if one.lowest_fails() {
            return format!(
                "{name}: {missed} at {}, the lowest rate: none met the conditions ({conditions}, and at most 1 % failures).",
                rate(lowest)
            );
        }
        return match one.bounded_by {
            "client" => format!(
                "{name}: the client's limit, not the server's: from {} on our client was late or busy, and no lower rate met {conditions}.",
                rate(lowest)
            ),
            "machine" => format!(
                "{name}: the machine is the limit: {SHARED}. They were busy from {} on, and no lower rate met {conditions}.",
                rate(lowest)
            ),
            "undecided" => format!(
                "{name}: no step decided {conditions}: {missed}; a longer --step would, or a percentile that needs fewer requests (p90).",
            ),
            _ => match no_longer_met(&one.steps) {
                Some((met, missed)) => {
                    let later = match missed.rate_per_s == met.rate_per_s {
                        true => "no longer did".to_owned(),
                        false => format!("{} did not", rate(missed.rate_per_s)),
                    };
                    format!(
                        "{name}: {} met {conditions} in step {}, and {later} in step {}: the server or its load changed during the search.",
                        rate(met.rate_per_s),
                        met.step,
                        missed.step
                    )
                }
                None => format!(
                    "{name}: no rate from {} on met {conditions}: {missed}; a step at a lower rate has too few requests, so use {}.",
                    rate(lowest),
                    longer_step(one, lowest)
                ),
            },
        };
    };
    if !one.confirmed {
        let missed = high.map_or_else(String::new, |high| format!(", {} once did not", rate(high)));
        let limit = match one.bounded_by {
            "client" => {
                "; above it our client was late or busy, so the server may carry more".to_owned()
            }
            "machine" => format!(
                "; above it the machine was the limit: {SHARED}, and the server alone may carry more"
            ),
            "undecided" => {
                "; above it the steps decided nothing, so the server may carry more (a longer --step)"
                    .to_owned()
            }
            _ => String::new(),
        };
        return format!(
            "{name}: not confirmed: {} met {conditions}{missed}, and the search ended before enough fresh runs{limit}.",
            rate(low)
        );
    }
    let runs = |one: super::FreshRuns, is_met: bool| {
        let count = if is_met { one.met } else { one.runs - one.met };
        format!("{count} of {} fresh runs", one.runs)
    };
    let held = match one.fresh_at_low.runs {
        0 => String::new(),
        _ => format!(" in {}", runs(one.fresh_at_low, true)),
    };
    let begin = format!("{name}: {} met {conditions}{held}", rate(low));
    match (one.bounded_by, high) {
        ("server", Some(high)) => {
            let missed = match one.fresh_at_high.runs {
                0 => String::new(),
                _ => format!(" in {}", runs(one.fresh_at_high, false)),
            };
            format!("{begin}; {} did not{missed}.", rate(high))
        }
        ("client", _) => format!(
            "{begin}; above it is the client's limit, not the server's: the server may carry more (--threads, or another machine)."
        ),
        ("machine", _) => format!(
            "{begin}; above it the machine is the limit: {SHARED}, and the server alone may carry more."
        ),
        ("undecided", _) => format!(
            "{begin}; above it the steps decided nothing, so the server may carry more (a longer --step)."
        ),
        ("most-rate", _) => format!("{begin}; no higher rate was tried (--max-rate)."),
        _ => format!("{begin}; the search ended before a higher rate was known to miss them."),
    }
}

/// What lets a search try lower rates than `lowest`: steps for half of it, or a percentile that
/// needs fewer requests.
fn longer_step(one: &VariantCapacity, lowest: f64) -> String {
    let requests = one.lowest().map_or(0, |step| step.requests);
    let seconds = (2.0 * requests as f64 / lowest).ceil().max(1.0);
    format!(
        "--step {seconds}s, or a condition on a percentile that needs fewer requests (p90, p50)"
    )
}

/// The highest step that met the conditions, and a later one that missed them at its rate or a
/// lower one.
fn no_longer_met(steps: &[StepFigures]) -> Option<(&StepFigures, &StepFigures)> {
    let met = steps.iter().filter(|step| step.is_met());
    let met = met.max_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s))?;
    let mut later = steps.iter().filter(|one| one.step > met.step);
    let missed = later.find(|one| !one.is_met() && one.rate_per_s <= met.rate_per_s)?;
    Some((met, missed))
}

/// Whether the server stopped responding: in the last steps no request succeeded, although one of
/// these rates had met the conditions.
fn stopped(one: &VariantCapacity) -> Option<String> {
    let all_failed = |step: &&StepFigures| step.failed == step.requests;
    let silent = one.steps.iter().rev().take_while(all_failed).last()?;
    let before = one.steps.iter().filter(|step| step.step < silent.step);
    let met = before.filter(|step| step.is_met());
    let met = met.map(|step| step.rate_per_s).fold(0.0, f64::max);
    let mut after = one.steps.iter().filter(|step| step.step >= silent.step);
    after.any(|step| step.rate_per_s <= met).then(|| {
        format!(
            "{}: from step {} on no request succeeded: the server stopped responding, so check it and search again.",
            one.name, silent.step
        )
    })
}

fn recovered(one: &VariantCapacity, recovery: &Recovery) -> String {
    let name = &one.name;
    let overload = format!(
        "{} for {}",
        rate(recovery.overload_per_s),
        time(recovery.overload_s * 1e3)
    );
    let lower = rate(recovery.rate_per_s);
    if !recovery.held_before {
        return format!(
            "{name}: the conditions did not hold at {lower} even before the overload, so nothing is known of a recovery."
        );
    }
    let limit = recovery.limited_by.map(|limit| match limit {
        "machine" => "the machine, whose processors client, server and other processes share",
        "undecided" => "the number of requests, which decided nothing",
        _ => "the client",
    });
    let Some(after) = recovery.held_again_s else {
        if let Some(limit) = limit {
            return format!(
                "{name}: nothing is known of a recovery after {overload}: at {lower}, {limit}, was the limit until the traffic stopped."
            );
        }
        let paused = match recovery.held_after_pause {
            Some(true) => "; after 5 s without traffic the conditions held again",
            Some(false) => {
                "; after 5 s without traffic they did not hold either, so work was still queued"
            }
            None => "",
        };
        return format!(
            "{name}: after {overload} the server did not recover within {} at {lower}, until the traffic stopped{paused}.",
            time(recovery.watched_s * 1e3)
        );
    };
    if recovery.has_broken_nothing() {
        return format!(
            "{name}: {overload} broke no condition, so there was nothing to recover from."
        );
    }
    match after {
        0.0 => format!("{name}: after {overload} the conditions held at once at {lower}."),
        after => format!(
            "{name}: after {overload} the conditions held again {} later, at {lower}{}.",
            time(after * 1e3),
            limit.map_or_else(String::new, |limit| format!(
                "; until then the limit was {limit}, so the server may have recovered before"
            ))
        ),
    }
}
