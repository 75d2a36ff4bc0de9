//! The sampler as `watch` and `compare` use it. A build without the feature `profile` has a crate
//! `profile` that refuses to start.

use crate::console;
use intact_document::cpu::{CpuFacts, WorkShares};
use intact_ledger::private_file;
use intact_profile::{CpuCategory, Gap, Profile, SampleTarget, Sampling};
use intact_units::plural::counted;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::SystemTime;

/// A sampler that runs, or why none does.
pub(super) struct Sampler {
    state: Result<Sampling, String>,
    since: SystemTime,
}

impl Sampler {
    /// Begins: the processes that run already, or what this thread starts next; then the other
    /// processes, each on its own.
    pub(super) fn start(subjects: &[u32], others: &[u32]) -> Sampler {
        let mut whom = vec![if subjects.is_empty() {
            SampleTarget::Children
        } else {
            SampleTarget::Processes(subjects.to_vec())
        }];
        whom.extend(others.iter().map(|pid| SampleTarget::Processes(vec![*pid])));
        Sampler {
            state: intact_watch::without_signals(|| Sampling::start(&whom))
                .map_err(|error| error.to_string()),
            since: SystemTime::now(),
        }
    }

    /// Why nothing is sampled.
    pub(super) fn silence(&self) -> Option<&str> {
        self.state.as_ref().err().map(String::as_str)
    }

    /// Ends it; fills in what the time went for, and draws it.
    pub(super) fn finish(self, facts: &mut CpuFacts, flamegraph: Option<&Path>, title: &str) {
        let profile = match self.state {
            Ok(sampling) => sampling.finish(),
            Err(reason) => {
                facts.not_sampled = Some(reason);
                return;
            }
        };
        tidy(&profile, self.since);
        facts.samples_per_s = Some(profile.per_second);
        facts.program.work = shares(&profile.shares(0));
        for (number, one) in facts.other_processes.iter_mut().enumerate() {
            one.took.work = shares(&profile.shares(number + 1));
        }
        facts.gaps = profile.gaps.iter().map(words).collect();
        if let Some(path) = flamegraph {
            console::note_unwritten("--flamegraph", path, draw(&[(title, &profile)], path));
        }
    }
}

pub(in crate::cmd) fn draw(graphs: &[(&str, &Profile)], path: &Path) -> anyhow::Result<()> {
    let mut out = BufWriter::new(private_file::create(path)?);
    intact_profile::flame_graph(graphs, &mut out)?;
    out.flush()?;
    Ok(())
}

/// Samples programs that are run one after the other, several times each.
pub(in crate::cmd) struct ProgramSampler {
    profiles: Vec<Profile>,
    since: SystemTime,
    under_way: Option<Sampling>,
}

impl ProgramSampler {
    /// For this number of programs; an error where this system does not let us sample.
    pub(in crate::cmd) fn new(programs: usize) -> Result<ProgramSampler, String> {
        // one that is refused is refused before a program was run
        Sampling::start(&[SampleTarget::Children]).map_err(|error| error.to_string())?;
        Ok(ProgramSampler {
            profiles: vec![Profile::default(); programs],
            since: SystemTime::now(),
            under_way: None,
        })
    }

    /// Begins to sample the program that this thread starts next.
    pub(in crate::cmd) fn begin(&mut self) {
        let sampling = intact_watch::without_signals(|| Sampling::start(&[SampleTarget::Children]));
        self.under_way = sampling.ok();
    }

    /// The program has ended.
    pub(in crate::cmd) fn end(&mut self, program: usize) {
        if let Some(sampling) = self.under_way.take() {
            let profile = sampling.finish();
            tidy(&profile, self.since);
            self.profiles[program].add(profile);
        }
    }

    /// What each program took processor time for.
    pub(in crate::cmd) fn work(&self) -> Vec<Option<WorkShares>> {
        let all = self.profiles.iter();
        all.map(|profile| shares(&profile.shares(0))).collect()
    }

    /// What could not be seen.
    pub(in crate::cmd) fn gaps(&self) -> BTreeSet<String> {
        let gaps = self.profiles.iter().flat_map(|profile| &profile.gaps);
        gaps.map(words).collect()
    }

    /// Draws the programs next to each other.
    pub(in crate::cmd) fn draw(&self, names: &[&str], path: &Path) {
        let graphs = names.iter().copied().zip(&self.profiles);
        let graphs: Vec<(&str, &Profile)> = graphs.collect();
        console::note_unwritten("--flamegraph", path, draw(&graphs, path));
    }
}

/// Removes the lists of functions that runtimes have written at our request; older ones are
/// somebody else's.
fn tidy(profile: &Profile, since: SystemTime) {
    for path in &profile.maps {
        let born = std::fs::symlink_metadata(path).and_then(|about| about.created());
        if born.is_ok_and(|born| born >= since) {
            // one that cannot be removed lies there as it would without us
            let _ = std::fs::remove_file(path);
        }
    }
}

fn shares(shares: &BTreeMap<CpuCategory, u64>) -> Option<WorkShares> {
    let samples = shares.values().sum();
    let of = |category| shares.get(&category).copied().unwrap_or(0) as f64 / samples as f64;
    (samples > 0).then(|| WorkShares {
        samples,
        socket: of(CpuCategory::Socket),
        tls: of(CpuCategory::Tls),
        dns: of(CpuCategory::Dns),
        readiness: of(CpuCategory::Readiness),
        other: of(CpuCategory::Other),
    })
}

fn words(gap: &Gap) -> String {
    match gap {
        Gap::NoKernel => "time in the kernel is not sampled here, so sockets cannot be distinguished: kernel.perf_event_paranoid hides it (1 or less, or root)".to_owned(),
        Gap::NoKernelNames => "the kernel hides its functions' names, so sockets cannot be distinguished: kernel.kptr_restrict (0, or root)".to_owned(),
        Gap::Lost(count) => format!("lost {}", counted(*count, "sample")),
    }
}
