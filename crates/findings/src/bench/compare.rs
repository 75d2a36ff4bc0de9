//! Variants that differ in one axis, held against each other round by round, and the sentences that say so.

use super::variant::{RoundFigures, VariantFacts};
use crate::stats::{
    Adjusted, Comparison, Confidence, Interval, MIN_ROUNDS, adjust, paired_difference,
    paired_share_saved, requests_until_alike,
};
use ledger::Run;
use serde::Serialize;

/// One comparison: what `b` saves against `a`.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    /// The variant held against: keep-alive off, resumption off, else the axis' first value.
    pub a: String,
    /// The variant that might save something.
    pub b: String,
    /// The axis in which they differ.
    pub axis: String,
    /// `mean`, `p50` or `p99` of the latency, set-up included.
    pub statistic: &'static str,
    /// The mean of the statistic over rounds, in milliseconds, of `a` and `b`.
    pub a_ms: f64,
    /// See `a_ms`.
    pub b_ms: f64,
    /// `a - b` in milliseconds; negative when `b` is slower. Absent with fewer than 8 rounds.
    pub saved_ms: Option<Interval>,
    /// `(a - b) / a`.
    pub saved_share: Option<Interval>,
    /// p-value of no difference (Holm's, with more than ten comparisons).
    pub p_value: Option<f64>,
    /// Whether a difference was shown.
    pub differs: Option<bool>,
    /// Why there is no interval.
    pub refused: Option<String>,
    #[serde(skip)]
    pub(super) indices: (usize, usize),
}

/// What makes a comparison: axis, and the indices of `a` and `b`.
struct Pair {
    axis: String,
    a: usize,
    b: usize,
}

/// Compares all pairs that differ in one axis from its reference value.
pub fn compare(run: &Run, variants: &[VariantFacts]) -> Vec<Compared> {
    let pairs = pairs(run);
    let mut compared = Vec::new();
    for (statistic, of) in STATISTICS {
        let mut group: Vec<Compared> = pairs
            .iter()
            .filter_map(|pair| one(pair, statistic, of, variants))
            .collect();
        hold_together(&mut group, of, variants);
        compared.extend(group);
    }
    compared
}

type Statistic = fn(&RoundFigures) -> Option<f64>;

const STATISTICS: [(&str, Statistic); 3] = [
    ("mean", |round| round.mean_ms),
    ("p50", |round| round.p50_ms),
    ("p99", |round| round.p99_ms),
];

fn pairs(run: &Run) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for axis in &run.varied {
        for (b, variant) in run.variants.iter().enumerate() {
            let rest = |index: usize| {
                let mut axes = run.variants[index].axes.clone();
                axes.remove(axis);
                axes
            };
            let same_rest = |&a: &usize| a != b && rest(a) == rest(b);
            let value = |index: usize| run.variants[index].axes.get(axis).cloned();
            let family: Vec<usize> = (0..run.variants.len())
                .filter(|index| *index == b || same_rest(index))
                .collect();
            // keep-alive and resumption are remedies: they are held against doing without
            let off = matches!(axis.as_str(), "keepalive" | "resume")
                .then(|| {
                    family
                        .iter()
                        .find(|&&index| value(index).as_deref() == Some("off"))
                })
                .flatten();
            let reference = *off.unwrap_or(&family[0]);
            if reference == b {
                continue;
            }
            let already = pairs
                .iter()
                .any(|pair: &Pair| (pair.a, pair.b) == (reference, b));
            if !already
                && (variant.axes.get(axis) != run.variants[reference].axes.get(axis)
                    || family.iter().all(|&index| value(index) == value(b)))
            {
                pairs.push(Pair {
                    axis: axis.clone(),
                    a: reference,
                    b,
                });
            }
        }
    }
    pairs
}

/// The statistic of both over the rounds that both completed.
fn series(pair: (usize, usize), of: Statistic, variants: &[VariantFacts]) -> (Vec<f64>, Vec<f64>) {
    let (a, b) = (&variants[pair.0], &variants[pair.1]);
    a.rounds
        .iter()
        .filter_map(|ours| {
            let theirs = b.rounds.iter().find(|theirs| theirs.round == ours.round)?;
            Some((of(ours)?, of(theirs)?))
        })
        .unzip()
}

fn one(
    pair: &Pair,
    statistic: &'static str,
    of: Statistic,
    variants: &[VariantFacts],
) -> Option<Compared> {
    let (a, b) = series((pair.a, pair.b), of, variants);
    if a.is_empty() {
        return None;
    }
    let complete = variants[pair.a]
        .rounds
        .len()
        .min(variants[pair.b].rounds.len());
    // a percentile that some rounds cannot support is not compared on the others
    if statistic != "mean" && a.len() < complete {
        return None;
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let difference = paired_difference(&a, &b, Confidence::P95);
    Some(Compared {
        a: variants[pair.a].name.clone(),
        b: variants[pair.b].name.clone(),
        axis: pair.axis.clone(),
        statistic,
        a_ms: mean(&a),
        b_ms: mean(&b),
        saved_ms: None,
        saved_share: None,
        p_value: None,
        differs: None,
        refused: difference.err().map(|refusal| refusal.to_string()),
        indices: (pair.a, pair.b),
    })
}

/// Fills in intervals and p-values, adjusted for each other where there are many.
fn hold_together(group: &mut [Compared], of: Statistic, variants: &[VariantFacts]) {
    let held = |scale: fn(&[f64], &[f64]) -> Option<Comparison>, group: &[Compared]| {
        let mut where_from = Vec::new();
        let mut comparisons = Vec::new();
        for (at, compared) in group.iter().enumerate() {
            let (a, b) = series(compared.indices, of, variants);
            if let Some(comparison) = scale(&a, &b) {
                where_from.push(at);
                comparisons.push(comparison);
            }
        }
        let adjusted: Vec<(usize, Adjusted)> = where_from
            .into_iter()
            .zip(adjust(&comparisons, Confidence::P95))
            .collect();
        adjusted
    };
    for (at, adjusted) in held(|a, b| paired_difference(a, b, Confidence::P95).ok(), group) {
        group[at].saved_ms = Some(adjusted.interval);
        group[at].p_value = Some(adjusted.p_value);
        group[at].differs = Some(adjusted.differs);
    }
    for (at, adjusted) in held(|a, b| paired_share_saved(a, b, Confidence::P95).ok(), group) {
        group[at].saved_share = Some(adjusted.interval);
    }
}

/// The comparisons of means, the one that matters most first: keep-alive at one connection.
pub(super) fn by_weight<'a>(
    variants: &[VariantFacts],
    comparisons: &'a [Compared],
) -> Vec<&'a Compared> {
    let mut means: Vec<&Compared> = comparisons
        .iter()
        .filter(|compared| compared.statistic == "mean")
        .collect();
    means.sort_by_key(|compared| {
        let at_one = variants[compared.indices.1].concurrency != 1;
        (compared.axis != "keepalive", at_one)
    });
    means
}

/// The sentences, the one about keep-alive first.
pub(super) fn verdicts(
    run: &Run,
    variants: &[VariantFacts],
    comparisons: &[Compared],
    rounds: u32,
) -> Vec<String> {
    let means = by_weight(variants, comparisons);
    let mut sentences: Vec<String> = means
        .iter()
        .map(|compared| sentence(run, variants, compared))
        .collect();
    if !means.is_empty() && rounds < MIN_ROUNDS as u32 {
        sentences.push(format!(
            "{rounds} rounds: no intervals, they need at least {MIN_ROUNDS} (--rounds 20)"
        ));
    }
    sentences.extend(tls_break_even(variants));
    sentences
}

fn sentence(run: &Run, variants: &[VariantFacts], compared: &Compared) -> String {
    let b = &variants[compared.indices.1];
    let a = &variants[compared.indices.0];
    let value = |index: usize| {
        run.variants[index]
            .axes
            .get(&compared.axis)
            .map_or("", String::as_str)
    };
    let same = value(compared.indices.0) == value(compared.indices.1);
    let what = match compared.axis.as_str() {
        _ if same => format!("{} against itself", compared.axis),
        "keepalive" => "keep-alive".to_owned(),
        "resume" => "resuming TLS sessions".to_owned(),
        axis => format!(
            "{axis}={} instead of {}",
            value(compared.indices.1),
            value(compared.indices.0)
        ),
    };
    let others: Vec<String> = run
        .varied
        .iter()
        .filter(|axis| **axis != compared.axis && *axis != "c")
        .filter_map(|axis| {
            Some(format!(
                "{axis}={}",
                run.variants[compared.indices.1].axes.get(axis)?
            ))
        })
        .collect();
    let mut place = if compared.axis == "c" {
        String::new()
    } else {
        format!("At -c {}", b.concurrency)
    };
    if !others.is_empty() {
        place = format!("{place} with {}", others.join(" "))
            .trim_start()
            .to_owned();
    }
    let place = if place.is_empty() {
        String::new()
    } else {
        format!("{place}, ")
    };
    let saturated = |variant: &VariantFacts| {
        variant.client_busy.is_some_and(|busy| busy > 0.9)
            || variant.server_busy.is_some_and(|busy| busy > 0.95)
    };
    let throughput = match (a.rate_per_s, b.rate_per_s) {
        (Some(a_rate), Some(b_rate)) if b.concurrency > 1 && (saturated(a) || saturated(b)) => {
            format!(
                "; a side is saturated, so read the throughput: {a_rate:.0} against {b_rate:.0} requests/s"
            )
        }
        _ => String::new(),
    };
    let (Some(saved), Some(differs)) = (compared.saved_ms, compared.differs) else {
        let change = compared.a_ms - compared.b_ms;
        let verb = if change >= 0.0 { "saved" } else { "cost" };
        return format!(
            "{place}{what} {verb} {} of {} per request (no interval){throughput}",
            ms(change.abs()),
            ms(compared.a_ms)
        );
    };
    if !differs {
        return format!(
            "{place}{what} makes no difference that {} rounds could show: {} per request, the difference lies between {} and {}{throughput}",
            b.rounds.len(),
            ms(compared.b_ms),
            signed(saved.low),
            signed(saved.high),
        );
    }
    let share = compared.saved_share.map_or(String::new(), |share| {
        shown_share(share, saved.value / compared.a_ms)
    });
    if saved.value >= 0.0 {
        format!(
            "{place}{what} saves {} of {} per request{share}{throughput}",
            ms(saved.value),
            ms(compared.a_ms)
        )
    } else {
        format!(
            "{place}{what} is slower: it costs {} on top of {} per request{share}{throughput}",
            ms(-saved.value),
            ms(compared.a_ms)
        )
    }
}

/// The share in brackets. It is the mean of the rounds' log ratios; where a few bad rounds set the means, that is not the quotient of the two means, and a reader who
/// divides is told so.
fn shown_share(share: Interval, quotient: f64) -> String {
    let sign = quotient.signum();
    let percent = |share: f64| format!("{:.0}", share * sign * 100.0);
    let (low, high) = if sign < 0.0 {
        (share.high, share.low)
    } else {
        (share.low, share.high)
    };
    let typical = if (share.value - quotient).abs() > 0.03 {
        " in a typical round"
    } else {
        ""
    };
    let to = if low * sign < 0.0 { " to " } else { "-" };
    format!(
        " ({} %{typical}, {}{to}{} %)",
        percent(share.value),
        percent(low),
        percent(high)
    )
}

/// From how many requests on a connection it hardly matters whether TLS 1.2 or 1.3 set it up.
fn tls_break_even(variants: &[VariantFacts]) -> Option<String> {
    let full = |version: &str| {
        variants.iter().find(|variant| {
            variant.tls.as_deref() == Some(version)
                && variant.keepalive
                && variant.concurrency == 1
                && variant.resumed_share == Some(0.0)
        })
    };
    let (old, new) = (full("1.2")?, full("1.3")?);
    let per_request = new.latency_without_setup_ms.mean?;
    let requests = requests_until_alike(old.setup_ms?, new.setup_ms?, per_request, 0.01)?;
    Some(format!(
        "From {requests} requests on one connection on, TLS 1.2 and 1.3 (full handshakes, set-up {} and {}) differ by less than 1 % per request",
        ms(old.setup_ms?),
        ms(new.setup_ms?)
    ))
}

/// Milliseconds or microseconds, three digits.
pub(super) fn ms(value: f64) -> String {
    match value.abs() {
        small if small < 0.9995 => format!("{:.0} µs", value * 1e3),
        small if small < 9.995 => format!("{value:.2} ms"),
        small if small < 99.95 => format!("{value:.1} ms"),
        _ => format!("{value:.0} ms"),
    }
}

fn signed(value: f64) -> String {
    if value < 0.0 {
        format!("-{}", ms(-value))
    } else {
        format!("+{}", ms(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(value: f64, low: f64, high: f64) -> Interval {
        Interval { value, low, high }
    }

    #[test]
    fn a_share_that_division_gives_is_told_plainly() {
        let shown = shown_share(interval(0.66, 0.64, 0.68), 61.0 / 92.0);
        assert_eq!(shown, " (66 %, 64-68 %)");
        let slower = shown_share(interval(-0.2, -0.3, -0.1), -0.21);
        assert_eq!(slower, " (20 %, 10-30 %)");
    }

    #[test]
    fn a_share_that_division_does_not_give_says_what_it_is() {
        let shown = shown_share(interval(0.65, -0.03, 0.79), 0.49);
        assert_eq!(shown, " (65 % in a typical round, -3 to 79 %)");
    }
}
