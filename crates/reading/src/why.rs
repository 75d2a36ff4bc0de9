//! Why a figure has no value, or only bounds.

use intact_units::number::count;
use intact_units::plural::counted;
use std::borrow::Cow;

/// Why a figure has no value, or only bounds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    /// Nothing happened that it could have been measured on, such as a handshake on a plain
    /// connection.
    #[error("there was nothing to measure")]
    NothingHappened,
    /// There was no traffic at all, so nothing was judged.
    #[error("no request and no connection was observed")]
    NoTraffic,
    /// Too little happened.
    #[error("{} measured, at least {} needed", counted(*had, "sample"), count(*needed))]
    TooFew {
        /// Samples there were.
        had: u64,
        /// Samples there must be.
        needed: u64,
    },
    /// All or a part of it cannot be seen from where this was measured.
    #[error("{0}")]
    CannotSee(
        /// Why, such as "the stream is encrypted".
        Cow<'static, str>,
    ),
    /// It was not measured in this run, though it could have been.
    #[error("it was not measured; {0}")]
    NotMeasured(
        /// The way to have it measured, such as "add --server-pid".
        Cow<'static, str>,
    ),
    /// It is a comparison with this subject.
    #[error("the others are compared with it")]
    Baseline,
    /// The measurement ended before a limit was reached.
    #[error("the measurement ended before the limit was reached")]
    LimitNotReached,
    /// It was estimated, and lies within this interval.
    #[error("95 % interval")]
    Interval,
    /// The measured values differ.
    #[error("only this range is known")]
    OnlyRange,
}

impl Why {
    /// The reason of every document for a figure that it never has.
    pub const NOT_IN_DOCUMENT: Why = Why::cannot_see("this command does not measure it");

    /// All or a part of it cannot be seen.
    pub const fn cannot_see(reason: &'static str) -> Why {
        Why::CannotSee(Cow::Borrowed(reason))
    }

    /// It was not measured; the remedy has it measured.
    pub const fn not_measured(remedy: &'static str) -> Why {
        Why::NotMeasured(Cow::Borrowed(remedy))
    }
}

/// A part of what it is measured on was not observed.
impl From<String> for Why {
    fn from(reason: String) -> Why {
        Why::CannotSee(Cow::Owned(reason))
    }
}
