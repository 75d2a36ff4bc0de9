//! What the pictures of an observed run show beyond its tables. Computed here, because a report
//! only formats.

use super::level_shift::LevelShift;
use super::over_time::Period;
use super::{TrafficAnalysis, danger_from, server_limit};
use crate::timeline::TimelineGroup;
use intact_document::figures::NANOS_PER_MS;
use intact_document::population::{Population, buckets_ms};
use intact_ledger::{Cell, Run};
use serde::Serialize;
use std::cmp::Reverse;

/// Destinations whose idle gaps are drawn.
const GAPS: usize = 6;
/// Gaps that a destination needs to be drawn.
const ENOUGH: u64 = 10;

/// Everything that the page draws.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Charts {
    /// Latency of complete requests: fresh, reused, unknown.
    pub latency: Vec<Population>,
    /// Periods of equal length, from the first in which something happened.
    pub periods: Vec<Period>,
    /// Their length, in seconds.
    pub period_s: f64,
    /// The lasting changes of reuse or of latency, those of reuse first, then by size.
    pub changes: Vec<LevelShift>,
    /// Idle times before a connection was used again, by destination, those with most first.
    pub gaps: Vec<GapPanel>,
    /// The first connections of the first destinations.
    pub timeline: Vec<TimelineGroup>,
    /// Connections to destinations that the timeline has no room for.
    pub elsewhere: u64,
}

/// The idle gaps of one destination.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct GapPanel {
    /// The destination.
    pub name: String,
    /// How many.
    pub count: u64,
    /// The histogram: low, high (milliseconds), count.
    pub buckets: Vec<(f64, f64, u64)>,
    /// Where a reuse begins to race the server's timer, and the timer, in milliseconds; absent
    /// where no limit is known.
    pub danger_ms: Option<(f64, f64)>,
}

impl TrafficAnalysis {
    /// What the pictures show; `run` is the head that this was made with.
    pub fn pictures(&self, run: &Run) -> Charts {
        let tracker = &self.tracker;
        let whole: Vec<&Cell> = tracker
            .destinations
            .all
            .detail
            .iter()
            .map(|detail| &detail.cell)
            .collect();
        let all = &tracker.destinations;
        let mut gaps: Vec<GapPanel> = (all.counts.iter().enumerate())
            .filter_map(|(at, counts)| {
                let gaps = &counts.detail.as_deref()?.gaps;
                let limit = server_limit(counts);
                (gaps.count() >= ENOUGH).then(|| GapPanel {
                    name: all.name(at),
                    count: gaps.count(),
                    buckets: buckets_ms(gaps),
                    danger_ms: limit.map(|limit| {
                        let from = danger_from(limit) as f64 / NANOS_PER_MS;
                        (from, limit as f64 / NANOS_PER_MS)
                    }),
                })
            })
            .collect();
        gaps.sort_by_key(|panel| Reverse(panel.count));
        gaps.truncate(GAPS);
        Charts {
            latency: Population::all(&whole),
            periods: self.over_time.periods(),
            period_s: self.over_time.length_s(),
            changes: self.changes(),
            gaps,
            timeline: self.timeline.lanes(run, |key| all.name_of(key)),
            elsewhere: self.timeline.elsewhere(),
        }
    }
}
