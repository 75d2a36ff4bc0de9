//! What an overload did: whether the conditions held before it, and how long after it they held
//! again. Must not compare variants.

use super::judge::{StepFigures, figures, judge, load};
use super::{Conditions, ceiling};
use intact_ledger::{Cell, LoadPurpose, Run, Tally};
use serde::Serialize;

/// A part of the overload's step.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// conditions held, in seconds; absent where they did not hold again.
    pub recovered_after_s: Option<f64>,
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
        self.held_before && self.recovered_after_s.is_none() && self.limited_by.is_none()
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
        let mut recovered_after_s = None;
        for window in part(LoadPurpose::After).rev() {
            if !window.figures.is_met() {
                break;
            }
            recovered_after_s = Some(window.from_s);
        }
        let unmet = part(LoadPurpose::After).rfind(|one| !one.figures.is_met());
        let limited_by = unmet.and_then(|one| one.figures.step_outcome().other_limit());
        let last = part(LoadPurpose::After).next_back()?;
        Some(Recovery {
            overload_per_s: part(LoadPurpose::Overload).next()?.figures.rate_per_s,
            overload_s: end.since(begin) as f64 / 1e9,
            rate_per_s: last.figures.rate_per_s,
            held_before: part(LoadPurpose::Before).all(|one| one.figures.is_met()),
            broke: part(LoadPurpose::Overload).any(|one| !one.figures.is_met()),
            recovered_after_s,
            limited_by: limited_by.map(ceiling),
            watched_s: last.from_s + last.seconds,
            held_after_pause,
            windows,
        })
    }
}
