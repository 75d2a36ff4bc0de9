//! When reuse or latency changed for good, from the batches of a run: `docs/reference/audit.md` has
//! the method. Must not call a change of latency one of the connections.

use super::batches::{Batch, Batches, Sums};
use intact_document::unobserved::Unobserved;
use intact_ledger::{Evidence, Producer, Run};
use intact_reading::Reading;
use intact_statistics::{ChangePoint, Interval, change_points, difference_of_means};
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
/// Changes that are reported at most.
const SHOWN: usize = 3;
/// Groups of each side, from whose means an interval is made.
const GROUPS: usize = 10;

/// What changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Shifted {
    /// The share of requests that reused a connection.
    Reuse,
    /// Latency, while reuse did not change, or is not known.
    Latency,
}

/// A change of level with what was the case on both sides. It describes; only an experiment shows
/// the cause.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
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
    /// Mean latency after it minus that before, in milliseconds; absent where latency is not
    /// known.
    pub difference_ms: Option<Interval>,
    /// Before it.
    pub before: StepSide,
    /// From it on.
    pub after: StepSide,
}

/// One side of a change of level.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct StepSide {
    /// Requests.
    pub requests: u64,
    /// Their mean latency, in milliseconds; absent where it is not known.
    pub mean_ms: Option<f64>,
    /// The share of them that reused a connection.
    pub reuse: Reading,
    /// The same of those where that is known.
    #[serde(skip)]
    pub known_reuse: Option<f64>,
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
            reuse: Unobserved::default().reuse(sums.reused, known, requests),
            known_reuse: (known > 0).then(|| share(sums.reused, known)),
            opened_per_request: share(sums.opened, requests),
        })
    }

    /// The share that reused a connection, in words.
    fn reuse_words(&self) -> Option<String> {
        let reuse = &self.reuse;
        (!reuse.is_unknown()).then(|| reuse.shown(whole_percent))
    }
}

impl LevelShift {
    /// The changes, those of reuse first, then by size. `needed`: the connections that the requests
    /// needed. Their first requests are no sign of a change: at the beginning of a run there is
    /// nothing to reuse.
    pub(super) fn find(batches: &Batches, run: &Run, needed: u64) -> Vec<LevelShift> {
        let batches = batches.all();
        let cuts = Series::of(batches, needed).cuts(run);
        let found = LevelShift::between(cuts, batches, run).into_iter();
        let mut found: Vec<LevelShift> = found.map(|(_, shift)| shift).collect();
        found.sort_by(|a, b| b.size().total_cmp(&a.size()));
        // the change of latency alone may have any cause
        found.sort_by_key(|one| !one.has_other_reuse());
        found.truncate(SHOWN);
        found
    }

    /// The changes at these cuts, each with the time to the cuts next to it. Where both sides are
    /// too much alike, there is no cut.
    fn between(mut cuts: Vec<Cut>, batches: &[Batch], run: &Run) -> Vec<(Cut, LevelShift)> {
        let shift = |cuts: &[Cut], nth: usize| {
            let from = nth.checked_sub(1).map_or(0, |nth| cuts[nth].at);
            let to = cuts.get(nth + 1).map_or(batches.len(), |next| next.at);
            let shift = LevelShift::at(&batches[from..to], run, cuts[nth].moved_by(from));
            shift.filter(LevelShift::is_worth_reporting)
        };
        loop {
            let shifts: Vec<_> = (0..cuts.len()).map(|nth| shift(&cuts, nth)).collect();
            match shifts.iter().position(Option::is_none) {
                None => return cuts.into_iter().zip(shifts.into_iter().flatten()).collect(),
                Some(alike) => cuts.remove(alike),
            };
        }
    }

    /// How large a change is: in latency, where that is known, else in reuse.
    fn size(&self) -> f64 {
        let of_reuse = self.before.known_reuse.zip(self.after.known_reuse);
        let latency = self.difference_ms.map(|difference| difference.value.abs());
        latency
            .or_else(|| of_reuse.map(|(before, after)| (after - before).abs()))
            .unwrap_or_default()
    }

    fn at(
        batches: &[Batch],
        run: &Run,
        Cut {
            at: cut,
            shifted,
            p_value,
        }: Cut,
    ) -> Option<LevelShift> {
        let (before, after) = batches.split_at(cut);
        let (last, first) = (before.last()?, after.first()?);
        let started: jiff::Timestamp = run.started.parse().ok()?;
        let at = started + jiff::SignedDuration::from_nanos(i64::try_from(first.from).ok()?);
        let timed = run.sees(Evidence::Durations);
        let of_groups = difference_of_means(&groups(before), &groups(after));
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

    /// Whether the sides differ in reuse by enough.
    fn has_other_reuse(&self) -> bool {
        let both = self.before.known_reuse.zip(self.after.known_reuse);
        both.is_some_and(|(before, after)| (after - before).abs() >= SHARE)
    }

    /// Whether more requests reuse a connection after it, by enough.
    pub(super) fn is_better_reuse(&self) -> bool {
        let both = self.before.known_reuse.zip(self.after.known_reuse);
        self.has_other_reuse() && both.is_some_and(|(before, after)| after > before)
    }

    /// Whether both sides differ by enough.
    fn is_worth_reporting(&self) -> bool {
        let (before, after) = (&self.before, &self.after);
        match self.shifted {
            Shifted::Reuse => self.has_other_reuse(),
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

    /// What changed, from one side to the other: `-412 ms per request (-431 ms to -393 ms), reuse 0
    /// % -> 97 %`.
    pub fn words(&self) -> String {
        let latency = self.difference_ms.map(|Interval { value, low, high }| {
            let [value, low, high] = [value, low, high].map(signed_time);
            match low == high {
                true => format!("{value} per request"),
                false => format!("{value} per request ({low} to {high})"),
            }
        });
        let shows_latency = self
            .difference_ms
            .is_none_or(|difference| difference.excludes_zero());
        let reuse = self.before.reuse_words().zip(self.after.reuse_words());
        let is_same = self.shifted == Shifted::Latency && !self.has_other_reuse();
        let reuse = reuse.map(|(before, after)| match is_same {
            false => format!("reuse {before} -> {after}"),
            true => format!("reuse did not change with it ({before} before, {after} after)"),
        });
        match (latency, reuse) {
            // what may be no change at all does not lead
            (Some(latency), Some(reuse)) if !shows_latency => {
                format!("{reuse}, latency about the same: {latency}")
            }
            (latency, reuse) => {
                let parts: Vec<String> = latency.into_iter().chain(reuse).collect();
                parts.join(", ")
            }
        }
    }

    /// The headline of a page.
    pub fn sentence(&self) -> String {
        format!("Since {}: {}", self.moment(), self.words())
    }
}

/// A place where a level changes.
#[derive(Clone, Copy, Debug)]
struct Cut {
    /// The first batch after it.
    at: usize,
    shifted: Shifted,
    p_value: f64,
}

impl Cut {
    /// The same cut of the batches from `start` on.
    fn moved_by(self, start: usize) -> Cut {
        Cut {
            at: self.at - start,
            ..self
        }
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

    /// The cuts, in their order: of reuse, and between those of latency. A program's latency also
    /// follows what else the machine does.
    fn cuts(&self, run: &Run) -> Vec<Cut> {
        let worth = |within: Range<usize>, shifted: Shifted| {
            let cuts = self.changes(&within, shifted);
            let batches = &self.batches[within.clone()];
            let cuts: Vec<Cut> = cuts.iter().map(|cut| cut.moved_by(within.start)).collect();
            let kept = LevelShift::between(cuts, batches, run).into_iter();
            kept.map(move |(cut, _)| Cut {
                at: cut.at + within.start,
                ..cut
            })
        };
        let end = self.batches.len();
        let of_reuse: Vec<Cut> = worth(0..end, Shifted::Reuse).collect();
        if !run.sees(Evidence::Durations) || run.producer == Producer::Watch {
            return of_reuse;
        }
        let mut cuts = Vec::new();
        let mut from = 0;
        let to_each = of_reuse.iter().map(Some).chain([None]);
        for cut in to_each {
            let to = cut.map_or(end, |cut| cut.at);
            cuts.extend(worth(from..to, Shifted::Latency));
            cuts.extend(cut.copied());
            from = to;
        }
        cuts
    }

    /// The changes of a level within these batches. Blocks stay as long as they are, because
    /// shorter ones depend more on each other.
    fn changes(&self, within: &Range<usize>, shifted: Shifted) -> Vec<Cut> {
        let value = |blocks: &Range<usize>| {
            let sums = self.rest[blocks.clone()].iter().copied();
            value_of(sums.fold(Sums::default(), Sums::and), shifted)
        };
        let each = self
            .blocks
            .iter()
            .filter(|block| within.start <= block.start && block.end <= within.end)
            .filter_map(|block| Some((block, value(block)?)));
        let (blocks, values): (Vec<&Range<usize>>, Vec<f64>) = each.unzip();
        let scale: fn(f64) -> f64 = match shifted {
            Shifted::Reuse => |share| share,
            Shifted::Latency => f64::ln,
        };
        let changes = change_points(&values, scale, LEVEL).into_iter();
        let cut = |change: ChangePoint| {
            let around = blocks[change.at - 1].start..blocks[change.at].end;
            Cut {
                at: self.nearest(around, shifted, &change, scale),
                shifted,
                p_value: change.p_value,
            }
        };
        changes.map(cut).collect()
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

/// Mean latencies of groups of batches, in milliseconds: long enough to depend little on each
/// other.
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
