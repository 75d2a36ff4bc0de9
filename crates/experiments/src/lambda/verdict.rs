//! The sentences of a function's page.

use super::frozen::FreezeEffect;
use super::variant::{Kind, VariantFacts};
use crate::time_difference::TimeDifference;
use intact_document::{Claim, ClaimKind, Claims};
use intact_ledger::InvocationOutcome;
use intact_statistics::Interval;
use intact_traffic::ObservedFacts;
use intact_units::number::{mean, time};

/// What ends an invocation before its limit.
const TIMEOUT_REMEDY: &str =
    "; limit its requests to less than --timeout (`intact fix CLIENT`), or raise --timeout";

pub(super) fn claims(variants: &[VariantFacts], comparisons: &[TimeDifference]) -> Claims {
    let of = |kind: ClaimKind, sentence: String| Claim::new(kind, 0.0, sentence);
    let unlike = unlike(variants).into_iter();
    let mut claims: Vec<Claim> = unlike.map(|one| of(ClaimKind::Unseen, one)).collect();
    if let [only] = variants {
        // a connection that died in a freeze had to be opened again
        let wasteful = only.wasteful().filter(|_| only.died_in_freeze() == 0);
        claims.extend(wasteful.and_then(waste));
    }
    claims.extend(comparisons.iter().map(|one| {
        // what differs most comes first
        let shown = one.saved_ms.filter(Interval::excludes_zero);
        let share = shown.map_or(0.0, |saved| saved.value.abs() / one.a_ms);
        Claim::new(ClaimKind::Time, share, sentence(one))
    }));
    for variant in variants {
        let whose = if variants.len() > 1 {
            format!("{}: ", variant.name)
        } else {
            String::new()
        };
        for kind in &variant.kinds {
            claims.extend(failed(&whose, kind));
            claims.extend(pauses(&whose, kind).map(|one| of(ClaimKind::Where, one)));
        }
        let (first, warm) = (&variant.cold_start_ms, &variant.warm_ms.mean);
        if let (true, Some((first, warm))) =
            (comparisons.is_empty(), first.value().zip(warm.value()))
        {
            claims.push(of(
                ClaimKind::Note,
                format!(
                    "{whose}a first call takes {} with the start of its environment, later ones {}",
                    time(first),
                    time(warm)
                ),
            ));
        }
    }
    Claims::ranked(claims)
}

/// What a function lost by avoidable connections.
fn waste(observed: &ObservedFacts) -> Option<Claim> {
    let mut claims = observed.verdict.iter();
    let is_waste = |claim: &&Claim| matches!(claim.kind, ClaimKind::Time | ClaimKind::Opened);
    claims.find(is_waste).cloned()
}

/// The invocations of a kind that failed.
fn failed(whose: &str, kind: &Kind) -> Option<Claim> {
    let (words, count) = kind.failures.first().filter(|_| kind.failed > 0)?;
    let of_them = match *count < kind.failed {
        true => format!(", {count} of them"),
        false => String::new(),
    };
    let is_slow = words == InvocationOutcome::Timeout.id();
    let remedy = if is_slow { TIMEOUT_REMEDY } else { "" };
    let text = format!(
        "{whose}{} of {} {} invocations failed{of_them}: {words}{remedy}",
        kind.failed, kind.count, kind.name
    );
    let share = kind.failed as f64 / kind.count as f64;
    Some(Claim::new(ClaimKind::Failed, share, text))
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
            "the variants did not do the same work: requests per invocation are {} in {} and {} in {}",
            each(one),
            one.name,
            each(first),
            first.name
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
