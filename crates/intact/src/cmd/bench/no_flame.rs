//! The sampler of a build without the feature `profile`: there is none, and `--flamegraph` is an
//! error.

use crate::exit::{self, Failed};
use anyhow::anyhow;
use intact_ledger::Run;
use std::convert::Infallible;
use std::path::Path;

/// No sampler.
pub(in crate::cmd) struct FlameGraphs(Infallible);

impl FlameGraphs {
    /// Fails: this build samples nothing.
    pub(in crate::cmd) fn start(_: &Path, _: Option<u32>) -> Result<FlameGraphs, Failed> {
        let error = anyhow!(
            "--flamegraph: this intact was built without its sampler: build it with `--features profile`, a default"
        );
        Err(Failed::wrapper(exit::NOT_PERMITTED, error))
    }

    /// Never called.
    pub(in crate::cmd) fn begin(&self, _: u32, _: u32) {
        match self.0 {}
    }

    /// Never called.
    pub(in crate::cmd) fn finish(self, _: &Run) {
        match self.0 {}
    }
}
