//! What an overload did: whether the conditions held before it, and how long after it they held
//! again. Must not compare variants.

use super::Conditions;
use super::judge::{StepFigures, figures, judge, load};
use intact_experiment::Ceiling;
use intact_ledger::{Cell, LoadPurpose, Run, Tally};
use intact_reading::{Reading, Why};
use serde::Serialize;

/// The conditions are no measure of the server.
const NEVER_HELD: Why = Why::cannot_see("the conditions did not hold before the overload either");
/// There was nothing to recover from.
const UNBROKEN: Why = Why::cannot_see("the overload broke no condition; raise --overload");
/// The server may have recovered.
const NOT_THE_SERVER: Why =
    Why::cannot_see("the client or its machine was the limit after the overload");

/// A part of the overload's step.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RecoveryWindow {
    /// Its begin, in seconds after the end of the overload; negative before that.
    pub from_s: f64,
    /// How long requests fell due in it, in seconds.
    pub seconds: f64,
    /// Its figures: the requests that fell due in it.
    #[serde(flatten)]
    pub figures: StepFigures,
}

/// An overload and what followed.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Recovery {
    /// Requests a second during the overload.
    pub overload_per_s: f64,
    /// How long it lasted, in seconds.
    pub overload_s: f64,
    /// Requests a second before and after it.
    pub rate_per_s: f64,
    /// Whether the conditions held at that rate before the overload; if not, nothing is known of a
    /// recovery.
    pub held_before: bool,
    /// Whether the overload broke the conditions.
    pub broke: bool,
    /// From the end of the overload until the begin of the first window from which on the
    /// conditions held, in seconds.
    pub recovered_after_s: Reading,
    /// The same, whatever it says of the server; absent where the conditions did not hold again.
    #[serde(skip)]
    pub(super) held_again_s: Option<f64>,
    /// What kept the conditions from holding last, after the overload, if it was not the server:
    /// `client` or `machine`. The server may then have recovered before.
    pub limited_by: Option<&'static str>,
    /// How long requests fell due after the overload, until the traffic stopped, in seconds.
    pub watched_s: f64,
    /// Whether the conditions held at the same rate after a pause without traffic; absent where
    /// that was not tried.
    pub held_after_pause: Option<bool>,
    /// The windows.
    pub windows: Vec<RecoveryWindow>,
}

impl Recovery {
    /// Whether the server did not recover before the watch ended.
    pub fn is_lost(&self) -> bool {
        self.held_before && self.held_again_s.is_none() && self.limited_by.is_none()
    }

    /// Whether the conditions held all the time.
    pub(super) fn has_broken_nothing(&self) -> bool {
        self.held_before && !self.broke && self.held_again_s.is_some()
    }

    /// The overload of a variant; absent where there was none, or it was cut off.
    pub fn of(run: &Run, tally: &Tally, conditions: &Conditions, variant: u32) -> Option<Recovery> {
        let of_purpose = |purpose: LoadPurpose| {
            let cells = tally.of_variant(variant);
            let mut cells: Vec<&Cell> = cells
                .filter(|cell| load(cell).is_some_and(|load| load.purpose == purpose))
                .collect();
            cells.sort_by_key(|cell| cell.round);
            cells
        };
        let after = of_purpose(LoadPurpose::After);
        let overload = of_purpose(LoadPurpose::Overload);
        let due = |cell: &Cell| Some(cell.bounds.as_ref()?.schedule?.due);
        let end = due(overload.last()?)?.end;
        let begin = due(overload.first()?)?.start;
        let mut windows = Vec::new();
        for cell in of_purpose(LoadPurpose::Before)
            .into_iter()
            .chain(overload)
            .chain(after)
        {
            let due = due(cell)?;
            windows.push(RecoveryWindow {
                from_s: (due.start.0 as f64 - end.0 as f64) / 1e9,
                seconds: due.nanos() as f64 / 1e9,
                figures: figures(run, tally, conditions, &[cell])?,
            });
        }
        let part = |purpose: LoadPurpose| {
            let windows = windows.iter();
            windows.filter(move |one| one.figures.purpose == purpose)
        };
        let restart = of_purpose(LoadPurpose::Restart);
        let restart = restart.first().and_then(|cell| load(cell));
        let held_after_pause =
            restart.and_then(|load| Some(judge(run, tally, conditions, load.step)?.is_met()));
        let mut held_again_s = None;
        for window in part(LoadPurpose::After).rev() {
            if !window.figures.is_met() {
                break;
            }
            held_again_s = Some(window.from_s);
        }
        let unmet = part(LoadPurpose::After).rfind(|one| !one.figures.is_met());
        let limited_by = unmet.and_then(|one| one.figures.step_outcome().other_limit());
        let last = part(LoadPurpose::After).next_back()?;
        let watched_s = last.from_s + last.seconds;
        let held_before = part(LoadPurpose::Before).all(|one| one.figures.is_met());
        let broke = part(LoadPurpose::Overload).any(|one| !one.figures.is_met());
        let recovered_after_s = match (held_again_s, limited_by) {
            _ if !held_before => Reading::unknown(NEVER_HELD),
            _ if !broke => Reading::unknown(UNBROKEN),
            (None, Some(_)) => Reading::unknown(NOT_THE_SERVER),
            (Some(seconds), Some(_)) => Reading::between(0.0, seconds, NOT_THE_SERVER),
            (Some(seconds), None) => Reading::known(seconds),
            (None, None) => Reading::at_least(watched_s, Why::LimitNotReached),
        };
        Some(Recovery {
            overload_per_s: part(LoadPurpose::Overload).next()?.figures.rate_per_s,
            overload_s: end.since(begin) as f64 / 1e9,
            rate_per_s: last.figures.rate_per_s,
            held_before,
            broke,
            recovered_after_s,
            held_again_s,
            limited_by: limited_by.map(Ceiling::as_str),
            watched_s,
            held_after_pause,
            windows,
        })
    }
}
