//! The view of a build without the feature `live`, and of systems without Unix terminals: the line
//! of progress. `--live` is an error.

use crate::cmd::missing_feature;
use crate::cmd::recording::Shown;
use crate::exit::Failed;
use anyhow::anyhow;
use intact_bench::{Gauge, Position};
use intact_ledger::Run;
use std::sync::Arc;

/// No view.
pub(in crate::cmd) struct BenchView;

impl BenchView {
    /// Fails with `--live`.
    pub(in crate::cmd) fn new(_: &Run, _: Arc<Gauge>, is_whole: bool) -> Result<BenchView, Failed> {
        match is_whole {
            false => Ok(BenchView),
            true => Err(Failed::usage(anyhow!(missing_feature::NO_LIVE_VIEW))),
        }
    }

    /// There is none.
    pub(in crate::cmd) fn is_whole(&self) -> bool {
        false
    }

    /// Nothing was taken.
    pub(in crate::cmd) fn end(&mut self) {}

    /// The line of progress.
    pub(in crate::cmd) fn tick(&mut self, _: &Run, _: &Position) -> Shown {
        Shown::Line
    }
}
