//! Progress on standard error.

use anyhow::Context;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;

/// A bar that is drawn at most `hz` times a second, or hidden where standard error is no terminal.
/// It has no ticking thread, because a watched program is started while this process has one
/// thread.
pub(crate) fn bar(total: Option<u64>, hz: u8, template: &str) -> anyhow::Result<ProgressBar> {
    let bar = if std::io::stderr().is_terminal() {
        ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr_with_hz(hz))
    } else {
        ProgressBar::hidden()
    };
    bar.set_style(ProgressStyle::with_template(template).context("progress")?);
    Ok(bar)
}
