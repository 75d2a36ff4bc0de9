//! `--commits` on a system without `watch`: nothing could be run.
#![allow(dead_code, reason = "the request is refused, and nothing is made")]

use super::programs::{self, Program};
use crate::cmd::watch::not_run;
use crate::exit::Failed;
use intact_ledger::Caveat;
use intact_watch::WatchError;
use std::ffi::OsString;

/// Both sides of a change.
pub(super) struct Commits {
    pub(super) programs: Vec<Program>,
    pub(super) caveats: Vec<Caveat>,
}

/// What the command line asks for.
pub(super) struct Request<'a> {
    pub(super) commits: &'a str,
    pub(super) setup: Option<&'a str>,
    pub(super) shows_output: bool,
    pub(super) words: &'a [OsString],
}

/// Refuses.
pub(super) fn prepare(request: &Request<'_>, _: impl Fn(&str)) -> Result<Commits, Failed> {
    programs::one(request.words)?;
    Err(not_run(WatchError::Unsupported))
}
