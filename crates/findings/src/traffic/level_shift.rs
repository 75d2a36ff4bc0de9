//! When reuse or latency changed for good, from the batches of a run: `docs/audit.md` has the method. Must not call a change of
//! latency one of the connections.

use super::batches::{Batch, Batches, Sums};
use crate::stats::{ChangePoint, Confidence, Interval, change_point, difference_of_means};
use intact_ledger::{Producer, Run};
use intact_units::date;
use intact_units::number::{signed_time, whole_percent};
use serde::Serialize;
use std::ops::Range;

/// Values of a series at most: neighbours are put together, so that they depend less on each other.
const BLOCKS: u64 = 64;
/// Requests of a value at least.
const BLOCK: u64 = 5;
/// A change is reported where chance shows as much of one this rarely, in either of two series.
const LEVEL: f64 = 0.005;
/// Requests that each side of a change must have.
const LEAST: u64 = 30;
/// The smallest ratio of latencies that is reported.
const RATIO: f64 = 1.2;
/// The smallest difference of reuse that is reported.
const SHARE: f64 = 0.1;
/// Groups of each side, from whose means an interval is made.
const GROUPS: usize = 10;

/// What changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Shifted {
    /// The share of requests that reused a connection.
    Reuse,
    /// Latency, while reuse did not change, or is not known.
    Latency,
}

/// A change of level with what was the case on both sides. It describes; only an experiment shows the cause.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LevelShift {
    /// When (RFC 3339, UTC).
    pub at: String,
    /// The same in seconds since the start of the run.
    pub at_s: f64,
    /// How closely that is known, in seconds.
    pub within_s: f64,
    /// What changed.
    pub shifted: Shifted,
    /// How often a run without a change shows as much of one; at least 0.001.
    pub p_value: f64,
    /// Mean latency after it minus that before, in milliseconds; absent where latency is not known.
    pub difference_ms: Option<Interval>,
    /// Before it.
    pub before: StepSide,
    /// From it on.
    pub after: StepSide,
}

/// One side of a change of level.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepSide {
    /// Requests.
    pub requests: u64,
    /// Their mean latency, in milliseconds; absent where it is not known.
    pub mean_ms: Option<f64>,
    /// The share of them that reused a connection, of those where that is known.
    pub reuse: Option<f64>,
    /// Lower and upper end of `reuse` over all requests; present where the state of some is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reuse_range: Option<[f64; 2]>,
    /// New connections for each request.
    pub opened_per_request: f64,
}

impl StepSide {
    fn of(batches: &[Batch], timed: bool) -> Option<StepSide> {
        let sums = sum(batches);
        let (requests, known) = (sums.requests, sums.first + sums.reused);
        let share = |part: u64, whole: u64| part as f64 / whole as f64;
        (requests >= LEAST).then(|| StepSide {
            requests,
            mean_ms: timed.then(|| mean_ms(sums)),
            reuse: (known > 0).then(|| share(sums.reused, known)),
            reuse_range: (known > 0 && known < requests).then(|| {
                let most = sums.reused + requests - known;
                [share(sums.reused, requests), share(most, requests)]
            }),
            opened_per_request: share(sums.opened, requests),
        })
    }

    /// The share that reused a connection, or its range, in words.
    fn reuse_words(&self) -> Option<String> {
        match (self.reuse_range, self.reuse) {
            (Some([low, high]), _) => {
                Some(format!("{} to {}", whole_percent(low), whole_percent(high)))
            }
            (None, reuse) => reuse.map(whole_percent),
        }
    }
}

impl LevelShift {
    /// The change, if there is one. `needed`: the connections that the requests needed. Their first requests are no sign of a
    /// change: at the beginning of a run there is nothing to reuse.
    pub(super) fn find(batches: &Batches, run: &Run, needed: u64) -> Option<LevelShift> {
        let batches = batches.all();
        let series = Series::of(batches, needed);
        let reuse = series.change(Shifted::Reuse);
        // a program's latency also follows what else the machine does
        let timed = run.durations_seen;
        let has_own_load = run.producer == Producer::Watch;
        let latency = || {
            let shift = (timed && !has_own_load).then(|| series.change(Shifted::Latency))??;
            let is_worth = |shift: &LevelShift| shift.is_worth_reporting();
            LevelShift::at(batches, run, Shifted::Latency, shift).filter(is_worth)
        };
        let found = reuse.and_then(|cut| LevelShift::at(batches, run, Shifted::Reuse, cut));
        found
            .filter(LevelShift::is_worth_reporting)
            .or_else(latency)
    }

    fn at(
        batches: &[Batch],
        run: &Run,
        shifted: Shifted,
        (cut, p_value): (usize, f64),
    ) -> Option<LevelShift> {
        let (before, after) = batches.split_at(cut);
        let (last, first) = (before.last()?, after.first()?);
        let started: jiff::Timestamp = run.started.parse().ok()?;
        let at = started + jiff::SignedDuration::from_nanos(i64::try_from(first.from).ok()?);
        let timed = run.durations_seen;
        let of_groups = difference_of_means(&groups(before), &groups(after), Confidence::P95);
        // groups are of about the same size: the sides themselves have the exact means
        let value = mean_ms(sum(after)) - mean_ms(sum(before));
        let difference = of_groups.map(
            |Interval {
                 value: around,
                 low,
                 high,
             }| Interval {
                value,
                low: low + value - around,
                high: high + value - around,
            },
        );
        Some(LevelShift {
            at: at.to_string(),
            at_s: first.from as f64 / 1e9,
            within_s: (first.to - last.from) as f64 / 1e9,
            shifted,
            p_value,
            difference_ms: difference.filter(|_| timed),
            before: StepSide::of(before, timed)?,
            after: StepSide::of(after, timed)?,
        })
    }

    /// Whether both sides differ by enough.
    fn is_worth_reporting(&self) -> bool {
        let (before, after) = (&self.before, &self.after);
        match self.shifted {
            Shifted::Reuse => {
                let both = before.reuse.zip(after.reuse);
                both.is_some_and(|(before, after)| (after - before).abs() >= SHARE)
            }
            Shifted::Latency => {
                let ratio = before
                    .mean_ms
                    .zip(after.mean_ms)
                    .map(|(before, after)| before / after);
                ratio.is_some_and(|ratio| ratio.max(ratio.recip()) >= RATIO)
                    && self
                        .difference_ms
                        .is_some_and(|difference| difference.excludes_zero())
            }
        }
    }

    /// When it was: `3 March 2026 14:05 UTC`.
    pub fn moment(&self) -> String {
        let at = self.at.parse::<jiff::Timestamp>();
        at.map_or_else(
            |_| self.at.clone(),
            |at| date::moment(at, self.within_s * 1e3),
        )
    }

    /// What changed, from one side to the other: `-412 ms per request (-431 ms to -393 ms), reuse 0 % -> 97 %`.
    pub fn words(&self) -> String {
        let latency = self.difference_ms.map(|Interval { value, low, high }| {
            let [value, low, high] = [value, low, high].map(signed_time);
            format!("{value} per request ({low} to {high})")
        });
        let reuse = self.before.reuse_words().zip(self.after.reuse_words());
        let reuse = match (reuse, self.shifted) {
            (Some((before, after)), Shifted::Reuse) => Some(format!("reuse {before} -> {after}")),
            (Some((before, after)), Shifted::Latency) => Some(format!(
                "reuse did not change with it ({before} before, {after} after)"
            )),
            (None, _) => None,
        };
        let parts: Vec<String> = latency.into_iter().chain(reuse).collect();
        parts.join(", ")
    }

    /// The headline of a page.
    pub fn sentence(&self) -> String {
        format!("Since {}: {}", self.moment(), self.words())
    }
}

/// The batches in blocks of about as many requests each.
struct Series<'a> {
    batches: &'a [Batch],
    /// Without the first requests of the connections that were needed.
    rest: Vec<Sums>,
    blocks: Vec<Range<usize>>,
}

impl<'a> Series<'a> {
    fn of(batches: &'a [Batch], mut needed: u64) -> Series<'a> {
        let mut rest: Vec<Sums> = batches.iter().map(|batch| batch.sums).collect();
        for sums in &mut rest {
            needed = sums.take_first(needed);
        }
        let requests: u64 = rest.iter().map(|sums| sums.requests).sum();
        let size = requests.div_ceil(BLOCKS).max(BLOCK);
        let mut blocks: Vec<Range<usize>> = Vec::new();
        let (mut from, mut filled) = (0, 0);
        for (nth, sums) in rest.iter().enumerate() {
            filled += sums.requests;
            if filled >= size {
                blocks.push(from..nth + 1);
                (from, filled) = (nth + 1, 0);
            }
        }
        // what is left over belongs to the last one
        if let Some(last) = blocks.last_mut() {
            last.end = rest.len();
        }
        Series {
            batches,
            rest,
            blocks,
        }
    }

    /// The first batch after a change of level, and the p-value.
    fn change(&self, shifted: Shifted) -> Option<(usize, f64)> {
        let value = |blocks: &Range<usize>| {
            let sums = self.rest[blocks.clone()].iter().copied();
            value_of(sums.fold(Sums::default(), Sums::and), shifted)
        };
        let each = self
            .blocks
            .iter()
            .filter_map(|block| Some((block, value(block)?)));
        let (blocks, values): (Vec<&Range<usize>>, Vec<f64>) = each.unzip();
        let scale: fn(f64) -> f64 = match shifted {
            Shifted::Reuse => |share| share,
            Shifted::Latency => f64::ln,
        };
        let change = change_point(&values, scale).filter(|change| change.p_value <= LEVEL)?;
        let around = blocks[change.at - 1].start..blocks[change.at].end;
        Some((
            self.nearest(around, shifted, &change, scale),
            change.p_value,
        ))
    }

    /// The cut among these batches that leaves each as near to the level of its side as possible.
    fn nearest(
        &self,
        around: Range<usize>,
        shifted: Shifted,
        change: &ChangePoint,
        scale: fn(f64) -> f64,
    ) -> usize {
        let levels = [change.before, change.after].map(scale);
        // how much nearer to the level after it a batch is
        let nearer = |nth: usize| {
            let Some(value) = value_of(self.rest[nth], shifted).map(scale) else {
                return 0.0;
            };
            let [before, after] = levels.map(|level| (value - level).powi(2));
            (before - after) * self.rest[nth].requests as f64
        };
        let mut best = (around.start + 1, 0.0);
        let mut sum = 0.0;
        for cut in (around.start + 1..around.end).rev() {
            sum += nearer(cut);
            if sum > best.1 || cut == around.end - 1 {
                best = (cut, sum);
            }
        }
        debug_assert!(best.0 < self.batches.len());
        best.0
    }
}

/// A value of a series; `None` where it is not known of all requests.
fn value_of(sums: Sums, shifted: Shifted) -> Option<f64> {
    if sums.requests == 0 {
        return None;
    }
    match shifted {
        Shifted::Reuse => {
            let is_known = sums.first + sums.reused == sums.requests;
            is_known.then(|| sums.reused as f64 / sums.requests as f64)
        }
        Shifted::Latency => Some(mean_ms(sums).max(1e-6)),
    }
}

fn sum(batches: &[Batch]) -> Sums {
    let sums = batches.iter().map(|batch| batch.sums);
    sums.fold(Sums::default(), Sums::and)
}

fn mean_ms(sums: Sums) -> f64 {
    sums.latency as f64 / sums.requests.max(1) as f64 / 1e6
}

/// Mean latencies of groups of batches, in milliseconds: long enough to depend little on each other.
fn groups(side: &[Batch]) -> Vec<f64> {
    let requests = sum(side).requests;
    let size = requests.div_ceil(GROUPS as u64).max(1);
    let mut groups: Vec<Sums> = vec![Sums::default()];
    for batch in side {
        match groups.last_mut() {
            Some(last) if last.requests < size => *last = last.and(batch.sums),
            _ => groups.push(batch.sums),
        }
    }
    groups.retain(|sums| sums.requests * 2 >= size);
    groups.into_iter().map(mean_ms).collect()
}

#[cfg(test)]
mod tests;
