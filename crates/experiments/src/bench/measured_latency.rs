//! The latency of a variant with what its client and its rounds leave open: bounds where the
//! client was late, an interval where the rounds vary, no upper end where they are too few. Must
//! not judge the client.

use intact_document::figures::{Latency, NANOS_PER_MS};
use intact_ledger::{Group, Histogram};
use intact_reading::{Reading, Why};
use intact_statistics::{MIN_ROUNDS, QuantileInterval, RoundValues, quantile_interval};
use intact_units::number::time;

/// The share of a figure from which the client's lateness makes bounds of it.
const LATE: f64 = 0.1;
/// A number stands for its interval where neither end is further away than this factor.
const WIDE: f64 = 1.5;
/// What the client itself may have made.
pub(crate) const CLIENT_LATE: Why = Why::cannot_see(
    "the client started requests late: the lower end is without its lateness, the upper one with it",
);

/// The complete requests of one round.
#[derive(Clone, Debug)]
pub(super) struct RoundRequests {
    /// Their histograms.
    pub(super) ok: Group,
    /// Requests that took longer than all of them; how long is not known.
    pub(super) unfinished: u64,
    /// Whether it is a part of a step of a search, which is judged by what it is and run again.
    pub(super) is_step: bool,
}

/// The rounds, or the time of the one round of an open loop in slices: what shows how the latency
/// varies.
fn batches(rounds: &[RoundRequests], side: Side) -> Vec<RoundValues> {
    let in_rounds = || rounds.iter().map(|round| values(round, side)).collect();
    if rounds.len() >= MIN_ROUNDS || !matches!(side, Side::Whole) {
        return in_rounds();
    }
    let in_slices = rounds.iter().map(RoundRequests::slices);
    let in_slices: Option<Vec<Vec<RoundValues>>> = in_slices.collect();
    in_slices.map_or_else(in_rounds, |slices| slices.concat())
}

impl RoundRequests {
    /// The complete requests by the time at which they were due; absent where not all requests
    /// have one.
    fn slices(&self) -> Option<Vec<RoundValues>> {
        let over_time = &self.ok.open_loop.as_deref()?.over_time;
        let count: u64 = over_time.slices().map(|(.., slice)| slice.count()).sum();
        if self.unfinished > 0 || self.is_step || count != self.ok.count() {
            return None;
        }
        let slices = over_time.slices().filter(|(.., slice)| !slice.is_empty());
        let slices = slices.map(|(.., slice)| round_values(slice, 0));
        Some(slices.collect())
    }
}

/// Which latency of a group is read: with setup or without.
#[derive(Clone, Copy)]
pub(super) enum Side {
    /// Setup included.
    Whole,
    /// Without connection setup.
    WithoutSetup,
}

impl Side {
    fn of(self, group: &Group) -> &Histogram {
        match self {
            Side::Whole => &group.latency,
            Side::WithoutSetup => &group.without_setup,
        }
    }

    /// The same without the client's lateness; absent in a closed loop, and in a ledger that has
    /// it not.
    fn on_time(self, group: &Group) -> Option<&Histogram> {
        let times = group.open_loop.as_deref()?;
        let on_time = match self {
            Side::Whole => &times.on_time,
            Side::WithoutSetup => &times.on_time_without_setup,
        };
        (on_time.count() == group.count()).then_some(on_time)
    }
}

/// A figure that is `least` without the client's lateness.
pub(super) fn bounded_by_lateness(value: f64, least: Option<f64>) -> Reading {
    match least.filter(|least| is_late(value, *least)) {
        Some(least) => bounds(least, value),
        None => Reading::known(value),
    }
}

/// A latency that the client's lateness bounds. That it is above 0 is no bound.
fn bounds(least: f64, most: f64) -> Reading {
    match least > 0.0 {
        true => Reading::between(least, most, CLIENT_LATE),
        false => Reading::at_most(most, CLIENT_LATE),
    }
}

fn is_late(value: f64, least: f64) -> bool {
    value - least > LATE * value
}

/// The latency of `all`, the requests of these rounds, which took `seconds`; and the names of the
/// percentiles that the client itself may have made.
pub(super) fn latency(
    all: Option<&Group>,
    rounds: &[RoundRequests],
    seconds: Option<f64>,
    side: Side,
) -> (Latency, Vec<&'static str>) {
    let Some(all) = all else {
        return (Latency::default(), Vec::new());
    };
    let unfinished = rounds.iter().map(|round| round.unfinished).sum();
    let mut latency = Latency::beyond(side.of(all), unfinished);
    let on_time = side.on_time(all);
    let rounds = batches(rounds, side);
    let mut late = Vec::new();
    for (name, q, reading) in latency.percentiles_mut() {
        let Some(value) = reading.value() else {
            continue;
        };
        let interval = quantile_interval(&rounds, q);
        let total = all.count() + unfinished;
        let at = |share: f64| on_time.and_then(|all| quantile_ms(all, share, total));
        match at(q).filter(|least| is_late(value, *least)) {
            Some(least) => {
                late.push(name);
                *reading = with_lateness(value, least, interval, at, seconds);
            }
            None => {
                if let Some(interval) = interval {
                    *reading = by_chance(value, interval, seconds);
                }
            }
        }
    }
    let ms = |nanos: Option<f64>| nanos.map(|nanos| nanos / NANOS_PER_MS);
    let max = |all: &Histogram| all.max().map(|max| max as f64);
    for (reading, least) in [
        (&mut latency.mean, ms(on_time.and_then(Histogram::mean))),
        (&mut latency.max, ms(on_time.and_then(max))),
    ] {
        if let Some(value) = reading.value() {
            *reading = bounded_by_lateness(value, least);
        }
    }
    (latency, late)
}

/// Both: what the client may have made, and chance.
fn with_lateness(
    value: f64,
    least: f64,
    interval: Option<QuantileInterval>,
    at: impl Fn(f64) -> Option<f64>,
    seconds: Option<f64>,
) -> Reading {
    let Some(interval) = interval else {
        return bounds(least, value);
    };
    let low = at(interval.shares[0].max(0.0)).unwrap_or(0.0).min(least);
    match interval.high {
        Some(high) => bounds(low, high.max(value)),
        None if low > 0.0 => Reading::at_least(low, too_short(interval, seconds)),
        None => Reading::unknown(too_short(interval, seconds)),
    }
}

/// The interval of a percentile, where it is wide.
fn by_chance(value: f64, interval: QuantileInterval, seconds: Option<f64>) -> Reading {
    let low = interval.low.min(value);
    match interval.high.map(|high| high.max(value)) {
        None => Reading::at_least(low, too_short(interval, seconds)),
        Some(high) if low * WIDE < value || high > value * WIDE => {
            Reading::interval(value, low, high)
        }
        Some(_) => Reading::known(value),
    }
}

/// Why a percentile has no upper end.
fn too_short(interval: QuantileInterval, seconds: Option<f64>) -> Why {
    let more = seconds.map(|seconds| seconds * (interval.length_needed - 1.0).max(0.1));
    let more = more.map_or_else(
        || "a longer run would do".to_owned(),
        |more| format!("about {} more would do", time((more * 1e3).ceil().max(1e3))),
    );
    Why::from(format!(
        "this run cannot show it: too few of the rounds have its slow requests; {more}"
    ))
}

fn values(round: &RoundRequests, side: Side) -> RoundValues {
    round_values(side.of(&round.ok), round.unfinished)
}

fn round_values(histogram: &Histogram, unfinished: u64) -> RoundValues {
    let buckets = histogram.buckets();
    let middle = |low: u64, high: u64| (low as f64 + (high - low) as f64 / 2.0) / NANOS_PER_MS;
    let values = buckets.map(|(low, high, count)| (middle(low, high), count));
    RoundValues::new(values, unfinished)
}

/// The value at this share of `total` values, of which those that are not in the histogram are
/// larger.
fn quantile_ms(histogram: &Histogram, share: f64, total: u64) -> Option<f64> {
    let of_all = share * total as f64 / histogram.count().max(1) as f64;
    Some(histogram.quantile(of_all)? / NANOS_PER_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_above_0_is_no_lower_bound() {
        let shown = |least| bounded_by_lateness(181.0, Some(least)).shown(|one| one.to_string());
        assert_eq!(shown(0.0), "at most 181");
        assert_eq!(shown(20.0), "20 to 181");
    }
}
