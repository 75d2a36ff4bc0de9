//! `--live` in a build without the feature `live`, and on systems without Unix terminals: an error.

use super::Args;
use super::windows::Windows;
use crate::cmd::missing_feature;
use crate::exit::Failed;
use anyhow::anyhow;
use intact_watch::{Attached, Clock, Config, Outcome};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Fails: this build has no view.
pub(super) fn run(_: &Args, _: Config, _: Clock, _: &mut Windows<'_>) -> Result<Outcome, Failed> {
    Err(Failed::usage(anyhow!(missing_feature::NO_LIVE_VIEW)))
}

/// Fails: this build has no view.
pub(super) fn follow(
    _: &Args,
    _: Attached,
    _: Arc<AtomicBool>,
    _: &mut Windows<'_>,
) -> Result<Option<i32>, Failed> {
    Err(Failed::usage(anyhow!(missing_feature::NO_LIVE_VIEW)))
}
