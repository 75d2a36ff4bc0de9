//! The sampler of a build without the feature `profile`: there is none, and that is said.

use intact_document::cpu::{CpuFacts, WorkShares};
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::path::Path;

const NOT_BUILT_IN: &str =
    "this intact was built without its sampler: build it with `--features profile`, a default";

/// No sampler.
pub(super) struct Sampler;

impl Sampler {
    /// Begins nothing.
    pub(super) fn start(_subjects: &[u32], _others: &[u32]) -> Sampler {
        Sampler
    }

    /// Why nothing is sampled.
    pub(super) fn silence(&self) -> Option<&str> {
        Some(NOT_BUILT_IN)
    }

    /// Reports that nothing was sampled.
    pub(super) fn finish(self, facts: &mut CpuFacts, _flamegraph: Option<&Path>, _title: &str) {
        facts.not_sampled = Some(NOT_BUILT_IN.to_owned());
    }
}

/// No sampler of programs.
pub(in crate::cmd) struct ProgramSampler(Infallible);

impl ProgramSampler {
    /// Fails: this build samples nothing.
    pub(in crate::cmd) fn new(_: usize) -> Result<ProgramSampler, String> {
        Err(NOT_BUILT_IN.to_owned())
    }

    /// Never called.
    pub(in crate::cmd) fn begin(&mut self) {
        match self.0 {}
    }

    /// Never called.
    pub(in crate::cmd) fn end(&mut self, _: usize) {
        match self.0 {}
    }

    /// Never called.
    pub(in crate::cmd) fn work(&self) -> Vec<Option<WorkShares>> {
        match self.0 {}
    }

    /// Never called.
    pub(in crate::cmd) fn gaps(&self) -> BTreeSet<String> {
        match self.0 {}
    }

    /// Never called.
    pub(in crate::cmd) fn draw(&self, _: &[&str], _: &Path) {
        match self.0 {}
    }
}
