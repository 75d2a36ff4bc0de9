//! What strikes did to requests, as it is counted: a fold. Must not know what was not observed.

use intact_reading::{Reading, Why};

/// Counts over the strikes of a cell. One that no row decides is a range, with the reason.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct StrikeCounts {
    pub(super) struck: u64,
    pub(super) reached: Reading,
    pub(super) affected: u64,
    pub(super) met_again: u64,
    pub(super) recovered: Reading,
    pub(super) failed: Reading,
    pub(super) duplicated: Reading,
    pub(super) truncated: Reading,
    /// Responses of another server.
    pub(super) misled: u64,
    pub(super) leaked: u64,
    /// Requests were counted that were not sent because their connection was refused.
    pub(super) has_refused: bool,
    /// The longest wait; absent where nothing was shown.
    pub(super) hung_ms: Option<f64>,
    /// Whether no timeout of the program ended a wait.
    pub(super) is_open_ended: bool,
}

impl StrikeCounts {
    pub(super) fn new() -> StrikeCounts {
        let none = || Reading::count(0);
        StrikeCounts {
            struck: 0,
            reached: none(),
            affected: 0,
            met_again: 0,
            recovered: none(),
            failed: none(),
            duplicated: none(),
            truncated: none(),
            misled: 0,
            leaked: 0,
            has_refused: false,
            hung_ms: None,
            is_open_ended: false,
        }
    }
}

/// Adds one that is certain.
pub(super) fn add(count: &mut Reading) {
    *count = count.plus(&Reading::count(1));
}

/// Adds one that may be; `why` it is not certain.
pub(super) fn may_add(count: &mut Reading, why: &'static str) {
    *count = count.plus(&Reading::between(0.0, 1.0, Why::cannot_see(why)));
}

/// Whether there may be any.
pub(super) fn may_be(count: &Reading) -> bool {
    count.high() > 0.0
}
