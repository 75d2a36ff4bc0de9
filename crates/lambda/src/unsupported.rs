//! Systems other than Linux, where no function can be frozen: to run one is an error.

use crate::{FreezeHook, Function, LambdaError, Plan, RunPosition};
use intact_ledger::Sink;
use intact_watch::KeyLogging;
use std::ffi::OsString;
use std::io;
use std::time::Instant;

/// A platform, of which there is none on this system.
#[derive(Debug)]
pub struct Platform;

impl Platform {
    /// A platform that runs nothing.
    pub fn new(_start: Instant, _hook: &mut dyn FreezeHook) -> Platform {
        Platform
    }

    /// Always [`LambdaError::Unsupported`].
    pub fn run(
        &mut self,
        _function: &Function,
        _plan: &Plan,
        _place: RunPosition,
        _over: &dyn Fn() -> bool,
        _sink: &mut dyn Sink,
    ) -> Result<u64, LambdaError> {
        Err(LambdaError::Unsupported)
    }
}

/// Always an error: there is no function to follow.
pub fn follow(
    _command: Vec<OsString>,
    _keys: Option<KeyLogging>,
    _node_options: OsString,
) -> io::Result<u8> {
    Err(io::ErrorKind::Unsupported.into())
}

/// There are no control groups.
pub(crate) fn can_freeze_groups() -> bool {
    false
}

/// There are no control groups.
pub(crate) fn can_share_cpu() -> bool {
    false
}
