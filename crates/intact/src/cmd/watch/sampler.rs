//! The sampler as `watch` uses it: the only module that knows the crate `profile`, which a build may leave out.

use crate::console;
use intact_findings::cpu::{CpuFacts, WorkShares};
use intact_ledger::private_file;
use intact_profile::{CategoryShares, Gap, Profile, SampleTarget, Sampling};
use intact_units::plural::counted;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::SystemTime;

/// A sampler that runs, or why none does.
pub(super) struct Sampler {
    state: Result<Sampling, String>,
    since: SystemTime,
}

impl Sampler {
    /// Begins: the processes that run already, or what this thread starts next; then the other processes, each on its own.
    pub(super) fn start(subjects: &[u32], beside: &[u32]) -> Sampler {
        let mut whom = vec![if subjects.is_empty() {
            SampleTarget::Children
        } else {
            SampleTarget::Processes(subjects.to_vec())
        }];
        whom.extend(beside.iter().map(|pid| SampleTarget::Processes(vec![*pid])));
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
        facts.program.work = shares(profile.shares(0));
        for (number, one) in facts.other_processes.iter_mut().enumerate() {
            one.took.work = shares(profile.shares(number + 1));
        }
        facts.gaps = profile.gaps.iter().map(words).collect();
        if let Some(path) = flamegraph
            && let Err(error) = draw(&profile, title, path)
        {
            let path = path.display();
            console::unwritten(format_args!("--flamegraph: cannot write {path}: {error:#}"));
        }
    }
}

fn draw(profile: &Profile, title: &str, path: &Path) -> anyhow::Result<()> {
    let mut out = BufWriter::new(private_file::create(path)?);
    intact_profile::flame_graph(profile, title, &mut out)?;
    out.flush()?;
    Ok(())
}

/// Removes the lists of functions that runtimes have written at our request; older ones are somebody else's.
fn tidy(profile: &Profile, since: SystemTime) {
    for path in &profile.maps {
        let born = std::fs::symlink_metadata(path).and_then(|about| about.created());
        if born.is_ok_and(|born| born >= since) {
            // one that cannot be removed lies there as it would without us
            let _ = std::fs::remove_file(path);
        }
    }
}

fn shares(shares: CategoryShares) -> Option<WorkShares> {
    let samples = shares.total();
    let of = |count: u64| count as f64 / samples as f64;
    (samples > 0).then(|| WorkShares {
        samples,
        socket: of(shares.socket),
        tls: of(shares.tls),
        dns: of(shares.dns),
        readiness: of(shares.readiness),
        other: of(shares.other),
    })
}

fn words(gap: &Gap) -> String {
    match gap {
        Gap::NoKernel => "time in the kernel is not sampled here, so sockets cannot be distinguished: kernel.perf_event_paranoid hides it (1 or less, or root)".to_owned(),
        Gap::NoKernelNames => "the kernel hides its functions' names, so sockets cannot be distinguished: kernel.kptr_restrict (0, or root)".to_owned(),
        Gap::Lost(count) => format!("lost {}", counted(*count, "sample")),
    }
}
