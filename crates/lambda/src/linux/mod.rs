//! The platform itself: it needs process groups, `/proc` and control groups of Linux.

mod adapter;
mod api;
mod cgroup;
mod environment;
mod freezer;
#[cfg(fuzzing)]
pub mod fuzz;
mod mailbox;
mod platform;
mod watcher;

pub use platform::Platform;
pub use watcher::follow;

use cgroup::ControlGroup;

/// Whether this process may make control groups that freeze.
pub(crate) fn can_freeze_groups() -> bool {
    ControlGroup::freezer(0).is_ok()
}

/// Whether a share of the processor can be given here.
pub(crate) fn can_share_cpu() -> bool {
    ControlGroup::cpu(0, 1.0).is_ok()
}
