//! What changed over time, in a few lines.

use super::page::Page;
use super::{Style, TerminalOptions};
use crate::number::maybe_percent;
use intact_findings::traffic::{LevelShift, StepSide};
use intact_units::number::{count, time};

/// A step in latency; `at` is its wall time.
pub fn change(step: &LevelShift, at: &str, paper: TerminalOptions) -> String {
    let mut page = Page::on(paper);
    page.title("What changed over time");
    page.wrapped(
        Some(Style::Strong),
        &format!(
            "From {at} on (within {}) a request took {} instead of {}",
            time(step.within_s * 1e3),
            time(step.after.mean_ms),
            time(step.before.mean_ms)
        ),
        "  ",
    );
    for (name, side) in [("before", step.before), ("after", step.after)] {
        page.wrapped(None, &step_side(name, side), "  ");
    }
    let told =
        "that one came with the other is no proof that it caused it (`intact compare` gives one)";
    page.wrapped(Some(Style::Faint), told, "  ");
    page.text
}

/// What was the case on one side of a change.
pub(crate) fn step_side(name: &str, side: StepSide) -> String {
    format!(
        "{name}: {} requests, {} of them reused a connection, {:.2} new connections a request",
        count(side.requests),
        maybe_percent(side.reuse),
        side.opened_per_request
    )
}
