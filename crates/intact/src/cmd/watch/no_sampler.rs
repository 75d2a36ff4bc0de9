//! The sampler of a build without the feature `profile`: there is none, and that is said.

use intact_findings::cpu::CpuFacts;
use std::path::Path;

const NOT_BUILT_IN: &str =
    "this intact was built without its sampler: build it with `--features profile`, a default";

/// No sampler.
pub(super) struct Sampler;

impl Sampler {
    /// Begins nothing.
    pub(super) fn start(_subjects: &[u32], _beside: &[u32]) -> Sampler {
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
