//! The run's time base: nanoseconds on the producer's monotonic clock, counted from the start of
//! the run.
//!
//! This module has no clock. Producers read their clock and pass the value; they convert kernel
//! timestamps (`CLOCK_REALTIME`) before.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// A point in time, in nanoseconds since the start of the run.
///
/// A time that is read is at most [`Nanos::LATEST`].
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(transparent)]
pub struct Nanos(#[serde(deserialize_with = "not_too_late")] pub u64);

/// For serde: a time of a run.
fn not_too_late<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let nanos = u64::deserialize(deserializer)?;
    if nanos > Nanos::LATEST.0 {
        return Err(D::Error::custom("the time is later than 292 years"));
    }
    Ok(nanos)
}

impl Nanos {
    /// The largest time that a reader accepts: 292 years. No run is longer, and the sum of two
    /// times fits into 64 bits.
    pub const LATEST: Nanos = Nanos(i64::MAX as u64);

    /// Nanoseconds from `earlier` to `self`; zero if `earlier` is later.
    #[inline]
    pub fn since(self, earlier: Nanos) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The point `nanos` later.
    #[inline]
    pub fn after(self, nanos: u64) -> Nanos {
        Nanos(self.0.saturating_add(nanos))
    }

    /// Milliseconds since the start of the run, for input and output.
    pub fn as_ms(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

/// A time interval with start and end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(from = "(Nanos, Nanos)", into = "(Nanos, Nanos)")]
pub struct Span {
    /// The start.
    pub start: Nanos,
    /// The end; never before `start`.
    pub end: Nanos,
}

impl Span {
    /// A span from `start` to `end`; an empty span at `start` if the end is earlier.
    #[inline]
    pub fn new(start: Nanos, end: Nanos) -> Span {
        Span {
            start,
            end: end.max(start),
        }
    }

    /// Its duration in nanoseconds.
    #[inline]
    pub fn nanos(self) -> u64 {
        self.end.0 - self.start.0
    }

    /// The part at or after `from`; `None` if there is none.
    #[inline]
    pub fn clip_from(self, from: Nanos) -> Option<Span> {
        if self.end <= from {
            return None;
        }
        Some(Span {
            start: self.start.max(from),
            end: self.end,
        })
    }

    /// The span limited to `from` to `to`, for clocks that step back.
    #[inline]
    pub fn within(self, from: Nanos, to: Nanos) -> Span {
        let to = to.max(from);
        Span {
            start: self.start.clamp(from, to),
            end: self.end.clamp(from, to),
        }
    }

    /// Whether the two share any time.
    pub fn overlaps(self, other: Span) -> bool {
        self.start < other.end && other.start < self.end
    }
}

impl From<(Nanos, Nanos)> for Span {
    fn from((start, end): (Nanos, Nanos)) -> Span {
        Span::new(start, end)
    }
}

impl From<Span> for (Nanos, Nanos) {
    fn from(span: Span) -> (Nanos, Nanos) {
        (span.start, span.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_never_ends_before_it_starts() {
        assert_eq!(Span::new(Nanos(5), Nanos(3)).nanos(), 0);
    }

    #[test]
    fn a_span_from_a_clock_that_stepped_back_is_moved_inside() {
        let (from, to) = (Nanos(10), Nanos(20));
        assert_eq!(
            Span::new(Nanos(3), Nanos(15)).within(from, to),
            Span::new(from, Nanos(15))
        );
        assert_eq!(
            Span::new(Nanos(30), Nanos(40)).within(from, to),
            Span::new(to, to)
        );
    }

    #[test]
    fn clipping_keeps_only_what_comes_later() {
        let span = Span::new(Nanos(10), Nanos(20));
        assert_eq!(
            span.clip_from(Nanos(15)),
            Some(Span::new(Nanos(15), Nanos(20)))
        );
        assert_eq!(span.clip_from(Nanos(5)), Some(span));
        assert_eq!(span.clip_from(Nanos(20)), None);
    }
}
