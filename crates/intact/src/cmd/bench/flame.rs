//! `bench --flamegraph`: where the engine's threads and the server's process spent processor time,
//! a graph for each variant.

use crate::cmd::watch::sampler;
use crate::console;
use crate::exit::Failed;
use anyhow::anyhow;
use intact_ledger::Run;
use intact_profile::{Profile, SampleTarget, Sampling};
use std::path::{Path, PathBuf};

/// How the engine's threads begin their names. Other threads of this process are not part of the
/// load.
const ENGINE: &str = "engine-";

/// A running sampler of a bench.
pub(in crate::cmd) struct FlameGraphs {
    sampling: Sampling,
    path: PathBuf,
}

impl FlameGraphs {
    /// Begins to sample this process, and the server's if it is known. Before the engine's threads
    /// are started.
    pub(in crate::cmd) fn start(path: &Path, server: Option<u32>) -> Result<FlameGraphs, Failed> {
        let processes = std::iter::once(std::process::id()).chain(server);
        let targets: Vec<SampleTarget> = processes
            .map(|process| SampleTarget::Processes(vec![process]))
            .collect();
        let sampling = Sampling::start(&targets).map_err(|error| {
            let error = anyhow!("--flamegraph: {error}");
            Failed::forbidden(error)
        })?;
        Ok(FlameGraphs {
            sampling,
            path: path.to_owned(),
        })
    }

    /// A variant begins to run in a round; round 0 is that of the first requests, which no graph
    /// has.
    pub(in crate::cmd) fn begin(&self, variant: u32, round: u32) {
        self.sampling.mark(part(variant, round));
    }

    /// Ends it and draws.
    pub(in crate::cmd) fn finish(self, run: &Run) {
        let profile = self.sampling.finish();
        console::note_unwritten("--flamegraph", &self.path, draw(&profile, run, &self.path));
    }
}

/// The part of the profile.
fn part(variant: u32, round: u32) -> u32 {
    if round == 0 { 0 } else { variant + 1 }
}

fn draw(profile: &Profile, run: &Run, path: &Path) -> anyhow::Result<()> {
    let variants = (0..).zip(&run.variants);
    let graphs = variants.map(|(index, variant)| {
        let of_variant = profile.filtered(|stack| {
            let is_load = stack.subject > 0 || stack.command.starts_with(ENGINE);
            is_load && stack.part == part(index, 1)
        });
        (variant.name.as_str(), of_variant)
    });
    let graphs: Vec<(&str, Profile)> = graphs.collect();
    let graphs: Vec<(&str, &Profile)> = graphs.iter().map(|(name, one)| (*name, one)).collect();
    sampler::draw(&graphs, path)
}
