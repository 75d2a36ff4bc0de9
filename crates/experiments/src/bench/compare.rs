//! Variants that differ in one axis, compared round by round, and the sentences about them.

use super::remedies;
use super::variant::{RoundFigures, VariantFacts};
use crate::time_difference::{self, ByRound, Pair, TimeDifference, TimeStatistic};
use intact_document::{Claim, ClaimKind};
use intact_experiment::{Reference, reference_of};
use intact_ledger::Run;
use intact_statistics::{Interval, MIN_ROUNDS, requests_until_alike};
use intact_units::number::{per_second, signed_time, time, whole_percent};
use intact_units::plural::counted;

/// Variants without a comparison that have a sentence.
const UNCOMPARED: usize = 4;

/// The most rounds that are worth a proposal.
const MOST_ROUNDS: f64 = 1_000.0;

/// What makes a comparison: axis, and the indices of `a` and `b`.
struct Partners {
    axis: Option<String>,
    a: usize,
    b: usize,
}

/// Compares all pairs that differ in one axis from its reference value.
pub fn compare(run: &Run, variants: &[VariantFacts]) -> Vec<TimeDifference> {
    let partners = partners(run);
    let of_each = STATISTICS.map(|(statistic, of)| {
        let pairs: Vec<Pair<'_>> = partners
            .iter()
            .filter_map(|one| pair(one, statistic, of, variants))
            .collect();
        time_difference::times(statistic, &pairs)
    });
    let mut all: Vec<TimeDifference> = of_each.into_iter().flatten().collect();
    all.extend(with_baseline(run, variants));
    all
}

/// Compares the remedies with the baseline: a family of its own. Those that differ from it in one
/// axis are compared already, but not with each other.
fn with_baseline(run: &Run, variants: &[VariantFacts]) -> Vec<TimeDifference> {
    let partners = remedies::compared(run).into_iter().map(|one| Partners {
        axis: None,
        a: one.reference,
        b: one.variant,
    });
    let partners: Vec<Partners> = partners.collect();
    let (statistic, of) = STATISTICS[0];
    let pairs = partners
        .iter()
        .filter_map(|one| pair(one, statistic, of, variants));
    time_difference::times(statistic, &pairs.collect::<Vec<Pair<'_>>>())
}

type Statistic = fn(&RoundFigures) -> Option<f64>;

const STATISTICS: [(TimeStatistic, Statistic); 4] = [
    (TimeStatistic::Typical, |round| round.typical_ms),
    (TimeStatistic::Mean, |round| round.mean_ms),
    (TimeStatistic::P50, |round| round.p50_ms),
    (TimeStatistic::P99, |round| round.p99_ms),
];

fn partners(run: &Run) -> Vec<Partners> {
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
            let mut others = family.iter();
            let off = others.find(|&&index| value(index).as_deref() == Some("off"));
            let off = off.filter(|_| reference_of(axis) != Reference::First);
            let reference = *off.unwrap_or(&family[0]);
            if reference == b {
                continue;
            }
            let already = pairs
                .iter()
                .any(|pair: &Partners| (pair.a, pair.b) == (reference, b));
            if !already
                && (variant.axes.get(axis) != run.variants[reference].axes.get(axis)
                    || family.iter().all(|&index| value(index) == value(b)))
            {
                pairs.push(Partners {
                    axis: Some(axis.clone()),
                    a: reference,
                    b,
                });
            }
        }
    }
    pairs
}

/// The figures of a pair; none where they would mislead.
fn pair<'a>(
    partners: &'a Partners,
    statistic: TimeStatistic,
    of: Statistic,
    variants: &'a [VariantFacts],
) -> Option<Pair<'a>> {
    let (a, b) = (&variants[partners.a], &variants[partners.b]);
    if a.no_success.or(b.no_success).is_some() || a.may_be_late() || b.may_be_late() {
        return None;
    }
    let by_round = |one: &VariantFacts| -> ByRound {
        let rounds = one.rounds.iter();
        rounds
            .filter_map(|round| Some((round.round, of(round)?)))
            .collect()
    };
    let values = time_difference::paired(&by_round(a), &by_round(b));
    let had = values.0.len();
    // a percentile that some rounds cannot support is not compared on the others
    let is_percentile = matches!(statistic, TimeStatistic::P50 | TimeStatistic::P99);
    let whole = !is_percentile || had >= a.rounds.len().min(b.rounds.len());
    (had > 0 && whole).then(|| Pair {
        a: &a.name,
        b: &b.name,
        axis: partners.axis.as_deref(),
        indices: (partners.a, partners.b),
        values,
    })
}

/// The comparisons of typical latencies, the one that matters most first: keep-alive at one
/// connection.
pub(super) fn by_weight<'a>(
    variants: &[VariantFacts],
    comparisons: &'a [TimeDifference],
) -> Vec<&'a TimeDifference> {
    let typical = comparisons.iter();
    let mut typical: Vec<&TimeDifference> = typical
        .filter(|compared| compared.statistic == TimeStatistic::Typical)
        .collect();
    typical.sort_by_key(|compared| {
        let at_one = variants[compared.indices.1].concurrency != 1;
        (compared.axis.as_deref() != Some("keepalive"), at_one)
    });
    typical
}

/// The comparison of the same variants by the mean, where it shows the opposite: a few slow
/// requests outweigh what the typical one saves.
pub(super) fn opposite_mean<'a>(
    typical: &TimeDifference,
    comparisons: &'a [TimeDifference],
) -> Option<&'a TimeDifference> {
    let mean = comparisons.iter().find(|one| {
        one.statistic == TimeStatistic::Mean
            && one.indices == typical.indices
            && one.axis == typical.axis
    })?;
    let change = |one: &TimeDifference| one.a_ms - one.b_ms;
    let is_shown = mean.significant != Some(false);
    (is_shown && change(mean) * change(typical) < 0.0).then_some(mean)
}

/// What is claimed of the comparisons, the one about keep-alive first, at most `most` of them.
pub(super) fn claims(
    run: &Run,
    variants: &[VariantFacts],
    comparisons: &[TimeDifference],
    rounds: u32,
    most: usize,
) -> Vec<Claim> {
    let mut compared = by_weight(variants, comparisons);
    keep_widest_loads(variants, &mut compared);
    // their order is that of the settings, not that of the time that each saves
    let of = |kind: ClaimKind, sentence: String| Claim::new(kind, 0.0, sentence);
    let time = |sentence| of(ClaimKind::Time, sentence);
    let mut claims: Vec<Claim> = compared
        .iter()
        .take(most)
        .map(|one| match unknown_saving(run, variants, one) {
            Some(unknown) => of(ClaimKind::Unseen, unknown),
            None => {
                let opposite = opposite_mean(one, comparisons);
                let opposite = opposite.map_or_else(String::new, of_opposite_mean);
                time(format!("{}{opposite}", sentence(run, variants, one)))
            }
        })
        .collect();
    if !compared.is_empty() && rounds < MIN_ROUNDS as u32 {
        let rounds = counted(u64::from(rounds), "round");
        claims.push(of(
            ClaimKind::Note,
            format!("{rounds}: no intervals, they need at least {MIN_ROUNDS} (--rounds 20)"),
        ));
    }
    if compared.is_empty() {
        let uncompared = variants.iter().filter_map(uncompared);
        claims.extend(uncompared.take(UNCOMPARED).map(time));
    }
    let break_even = tls_break_even(variants);
    claims.extend(break_even.map(|sentence| of(ClaimKind::Note, sentence)));
    claims.extend(unmeasured(variants).map(|sentence| of(ClaimKind::Unseen, sentence)));
    claims
}

/// What a variant did that is compared with none.
fn uncompared(variant: &VariantFacts) -> Option<String> {
    let (rate, typical) = (variant.rate_per_s.value()?, &variant.typical_ms);
    if typical.is_unknown() {
        return None;
    }
    let due = variant.open_loop.as_ref();
    let due = due.and_then(|open| open.requested_per_s);
    let due = due.map_or_else(String::new, |due| format!(" of {}", per_second(due)));
    let late = variant.may_be_late();
    let late = late.then(|| "the client was late, so the exact value is unknown".to_owned());
    let side = variant.saturation.map(|side| side.words().to_owned());
    let who = late.into_iter().chain(side).map(|who| format!("; {who}"));
    let who: String = who.collect();
    Some(format!(
        "{} at -c {}: {}{due} requests/s, a typical request takes {}{who}",
        variant.name,
        variant.concurrency,
        per_second(rate),
        typical.shown(time),
    ))
}

/// The variants without a round, where others have one: their first requests failed.
fn unmeasured(variants: &[VariantFacts]) -> Option<String> {
    let without = |one: &&VariantFacts| one.rounds.is_empty();
    let names = variants.iter().filter(without);
    let names: Vec<&str> = names.map(|one| one.name.as_str()).collect();
    let is_any = !names.is_empty() && names.len() < variants.len();
    is_any.then(|| {
        format!(
            "Nothing is known of {}: the caveats have the reason",
            names.join(", ")
        )
    })
}

/// Of several numbers of connections, the comparison with the highest has the sentence; a table and
/// a chart have the others.
pub(super) fn keep_widest_loads(variants: &[VariantFacts], compared: &mut Vec<&TimeDifference>) {
    let concurrency = |one: &TimeDifference| variants[one.indices.1].concurrency;
    let loads: Vec<(usize, u64)> = compared
        .iter()
        .filter(|one| is_about_load(one))
        .map(|one| (one.indices.0, concurrency(one)))
        .collect();
    compared.retain(|one| {
        let mut others = loads.iter().filter(|load| load.0 == one.indices.0);
        !is_about_load(one) || others.all(|load| load.1 <= concurrency(one))
    });
}

/// Whether the variants differ in the number of connections: a load, no setting that saves time.
pub(super) fn is_about_load(compared: &TimeDifference) -> bool {
    compared.axis.as_deref() == Some("c")
}

/// What the mean shows instead.
fn of_opposite_mean(mean: &TimeDifference) -> String {
    format!(
        "; the slowest requests outweigh that: the mean is {} instead of {}",
        time(mean.b_ms),
        time(mean.a_ms)
    )
}

/// The settings at which two variants are compared.
fn place_of(run: &Run, variants: &[VariantFacts], compared: &TimeDifference) -> String {
    let of_b = compared.indices.1;
    match &compared.axis {
        Some(axis) => place(run, of_b, &variants[of_b], axis),
        None => format!("At -c {}, ", variants[of_b].concurrency),
    }
}

fn inactive(
    compared: &TimeDifference,
    variants: &[VariantFacts],
) -> Vec<(&'static str, &'static str)> {
    let (a, b) = compared.indices;
    remedies::inactive(&variants[b], &variants[a])
}

/// Why the setting that a comparison is about never acted, if it did not. Of keep-alive see
/// [`without_reuse`].
pub(super) fn did_not_act(
    compared: &TimeDifference,
    variants: &[VariantFacts],
) -> Option<&'static str> {
    let axis = compared
        .axis
        .as_deref()
        .filter(|axis| *axis != "keepalive")?;
    let inactive = inactive(compared, variants);
    let mut inactive = inactive.into_iter().filter(|(one, _)| *one == axis);
    inactive.next().map(|(_, why)| why)
}

/// That nothing is known of a setting that never acted, as keep-alive where no request used it.
fn unknown_saving(
    run: &Run,
    variants: &[VariantFacts],
    compared: &TimeDifference,
) -> Option<String> {
    if let Some(why) = did_not_act(compared, variants) {
        return Some(format!(
            "{}{why}: what {} saves here is unknown",
            place_of(run, variants, compared),
            setting(run, variants, compared)
        ));
    }
    let kept = without_reuse(compared, variants)?;
    Some(format!(
        "{}no request of {} reused a connection: what keep-alive saves here is unknown",
        place_of(run, variants, compared),
        kept.name
    ))
}

fn sentence(run: &Run, variants: &[VariantFacts], compared: &TimeDifference) -> String {
    let (of_a, of_b) = compared.indices;
    let (a, b) = (&variants[of_a], &variants[of_b]);
    let what = setting(run, variants, compared);
    let place = place_of(run, variants, compared);
    let rates = a.rate_per_s.value().zip(b.rate_per_s.value());
    if let (true, Some((of_a, of_b))) = (is_about_load(compared), rates) {
        return format!(
            "{place}-c {} instead of {} carries {} instead of {} requests/s; a request takes {} instead of {}",
            b.concurrency,
            a.concurrency,
            per_second(of_b),
            per_second(of_a),
            time(compared.b_ms),
            time(compared.a_ms)
        );
    }
    let throughput = throughput(a, b);
    let (Some(saved), Some(differs)) = (compared.saved_ms, compared.significant) else {
        let change = compared.a_ms - compared.b_ms;
        let changed = match change >= 0.0 {
            true => format!("saved {} of", time(change)),
            false => format!("cost {} on top of", time(-change)),
        };
        return format!(
            "{place}{what} {changed} {} per request (no interval){throughput}",
            time(compared.a_ms)
        );
    };
    if !differs {
        let rounds = b.rounds.len() as u64;
        return format!(
            "{place}{} not decide: {what} saves between {} and {}, {} instead of {} per request{}{throughput}",
            match rounds {
                1 => "1 round does".to_owned(),
                rounds => format!("{} do", counted(rounds, "round")),
            },
            signed_time(saved.low),
            signed_time(saved.high),
            time(compared.b_ms),
            time(compared.a_ms),
            rounds_needed(saved, rounds),
        );
    }
    let share = compared.saved_share.map_or(String::new(), shown_share);
    if saved.value >= 0.0 {
        format!(
            "{place}{what} saves {} of {} per request{share}{throughput}",
            time(saved.value),
            time(compared.a_ms)
        )
    } else {
        format!(
            "{place}{what} is slower: it costs {} on top of {} per request{share}{throughput}",
            time(-saved.value),
            time(compared.a_ms)
        )
    }
}

/// How many rounds would show a difference of the size that was seen.
fn rounds_needed(saved: Interval, rounds: u64) -> String {
    let needed = saved.times_needed().map(|times| times * rounds as f64);
    match needed.map(|needed| (needed / 10.0).ceil() * 10.0) {
        Some(needed) if needed <= MOST_ROUNDS => {
            format!("; --rounds {needed} would, if it is there")
        }
        _ => format!(
            "; even {MOST_ROUNDS} rounds would hardly, so it makes no difference that matters here"
        ),
    }
}

/// The setting that a comparison is about, such as `keep-alive` or `http=2 instead of 1.1`.
pub(super) fn setting(run: &Run, variants: &[VariantFacts], compared: &TimeDifference) -> String {
    let Some(axis) = compared.axis.as_deref() else {
        let inactive = inactive(compared, variants);
        return remedies::names(run, compared.indices, &inactive);
    };
    let value = |index: usize| {
        let axes = &run.variants[index].axes;
        axes.get(axis).map_or("", String::as_str)
    };
    let (of_a, of_b) = compared.indices;
    match reference_of(axis) {
        _ if value(of_a) == value(of_b) => format!("{axis} against itself"),
        Reference::OffOf(setting) => setting.to_owned(),
        _ => format!("{axis}={} instead of {}", value(of_b), value(of_a)),
    }
}

/// The variant with keep-alive of a comparison of keep-alive, where none of its requests reused a
/// connection: it does what the other does.
pub(super) fn without_reuse<'a>(
    compared: &TimeDifference,
    variants: &'a [VariantFacts],
) -> Option<&'a VariantFacts> {
    let (a, b) = compared.indices;
    let pair = [&variants[a], &variants[b]];
    let is_about_it = compared.axis.as_deref() == Some("keepalive");
    let mut kept = pair.into_iter().filter(|one| one.keepalive && is_about_it);
    kept.find(|one| one.counted.requests.ok > 0 && one.counted.reused == 0)
}

/// The settings that both variants have: `At -c 10 with http=2, `.
fn place(run: &Run, index: usize, variant: &VariantFacts, axis: &str) -> String {
    let mut others = other_settings(run, index, axis);
    others.retain(|one| !one.ends_with("=off") && one != "dns=system");
    let concurrency = (axis != "c").then(|| format!("At -c {}", variant.concurrency));
    let others = (!others.is_empty()).then(|| format!("with {}", others.join(" ")));
    let parts: Vec<String> = concurrency.into_iter().chain(others).collect();
    if parts.is_empty() {
        String::new()
    } else {
        format!("{}, ", parts.join(" "))
    }
}

/// The other varied settings of a variant, such as `http=2`; without the number of connections.
pub(super) fn other_settings(run: &Run, index: usize, axis: &str) -> Vec<String> {
    let varied = run.varied.iter();
    let others = varied.filter(|other| *other != axis && *other != "c");
    let axes = &run.variants[index].axes;
    others
        .filter_map(|other| Some(format!("{other}={}", axes.get(other)?)))
        .collect()
}

/// The throughput, where a side is saturated, so that latencies mislead.
fn throughput(a: &VariantFacts, b: &VariantFacts) -> String {
    let Some(saturation) = a.saturation.or(b.saturation) else {
        return String::new();
    };
    let who = saturation.words();
    match (a.rate_per_s.value(), b.rate_per_s.value()) {
        (Some(of_a), Some(of_b)) if b.concurrency * b.streams > 1 => format!(
            "; {who}, so compare throughput: {} instead of {} requests/s",
            per_second(of_b),
            per_second(of_a)
        ),
        _ => String::new(),
    }
}

/// The share in brackets, as a gain or as a loss.
fn shown_share(share: Interval) -> String {
    let (value, low, high) = match share.value < 0.0 {
        true => (-share.value, -share.high, -share.low),
        false => (share.value, share.low, share.high),
    };
    // a share beyond all of it is no part of it
    if share.value < 0.0 && high > 1.0 {
        let [value, low, high] = [value, low, high].map(|more| 1.0 + more);
        return format!(" ({value:.1} times as long, {low:.1} to {high:.1})");
    }
    let [value, low, high] = [value, low, high].map(whole_percent);
    format!(" ({value}, {low} to {high})")
}

/// From how many requests on a connection it hardly matters whether TLS 1.2 or 1.3 set it up.
fn tls_break_even(variants: &[VariantFacts]) -> Option<String> {
    let full = |version: &str| {
        variants.iter().find(|variant| {
            variant.tls.as_deref() == Some(version)
                && variant.keepalive
                && variant.concurrency == 1
                && variant.resumed_share.value() == Some(0.0)
        })
    };
    let (old, new) = (full("1.2")?, full("1.3")?);
    let per_request = new.latency_without_setup_ms.mean.value()?;
    let requests = requests_until_alike(old.setup_ms?, new.setup_ms?, per_request, 0.01)?;
    Some(format!(
        "From {requests} requests on one connection on, TLS 1.2 and 1.3 (full handshakes, setup {} and {}) differ by less than 1 % per request",
        time(old.setup_ms?),
        time(new.setup_ms?)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(value: f64, low: f64, high: f64) -> Interval {
        Interval { value, low, high }
    }

    #[test]
    fn a_share_is_shown_with_its_interval_as_a_gain_or_as_a_loss() {
        let shown = shown_share(interval(0.66, 0.64, 0.68));
        assert_eq!(shown, " (66 %, 64 % to 68 %)");
        let slower = shown_share(interval(-0.2, -0.3, -0.1));
        assert_eq!(slower, " (20 %, 10 % to 30 %)");
        let much = shown_share(interval(-2.0, -3.1, -0.9));
        assert_eq!(much, " (3.0 times as long, 1.9 to 4.1)");
        let wide = shown_share(interval(0.65, -0.03, 0.79));
        assert_eq!(wide, " (65 %, -3.0 % to 79 %)");
    }
}
