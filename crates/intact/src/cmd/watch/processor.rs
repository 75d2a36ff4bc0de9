//! `--cpu`, `--flamegraph`, `--also-pid`: what the programs took of the processors and for what. Trouble with sampling does not
//! end the watch: the times are there without it, and why is told.

use super::not_run;
use super::sampler::Sampler;
use crate::exit::{self, Failed};
use anyhow::anyhow;
use intact_findings::cpu::{CpuFacts, CpuUse, OtherProcess};
use intact_watch::{Cpu, WatchError};
use std::ffi::OsString;
use std::path::PathBuf;

/// The options.
#[derive(clap::Args, Clone)]
#[command(next_help_heading = "Processor time")]
pub(crate) struct Options {
    /// Tell the processor time of the program and all that it starts, and what share of it sockets, TLS and lookups take,
    /// by sampling
    #[arg(long)]
    cpu: bool,
    /// Draw where processor time was spent; Node and Python (3.12 and newer) are asked to tell their functions' names,
    /// in NODE_OPTIONS and PYTHONPERFSUPPORT
    #[arg(long, value_name = "FILE.svg")]
    flamegraph: Option<PathBuf>,
    /// The same of a process beside it that works for the program, such as the resolver's daemon
    #[arg(long, value_name = "PID,..", value_delimiter = ',')]
    also_pid: Vec<u32>,
}

/// What is under way; [`Options::start`] makes it before the program is started.
pub(crate) struct Measuring {
    sampler: Sampler,
    /// Processes that run already and are what is watched; none where we start the program.
    subjects: Vec<Running>,
    beside: Vec<Running>,
    flamegraph: Option<PathBuf>,
}

/// A process that runs already.
struct Running {
    pid: u32,
    command: String,
    before: Times,
}

/// Processor time so far, in milliseconds: its own, and in the kernel.
#[derive(Clone, Copy)]
struct Times {
    user: f64,
    system: f64,
}

impl Options {
    /// Begins to measure, if that was asked for. `subjects`: processes that run already; none for a program that this thread
    /// starts next.
    pub(crate) fn start(&self, subjects: &[u32]) -> Result<Option<Measuring>, Failed> {
        if !self.cpu && self.flamegraph.is_none() && self.also_pid.is_empty() {
            return Ok(None);
        }
        let running = |pids: &[u32]| {
            let running = pids.iter().map(|&pid| Running::find(pid));
            running.collect::<Result<Vec<_>, _>>()
        };
        let (watched, beside) = (running(subjects)?, running(&self.also_pid)?);
        let sampler = Sampler::start(subjects, &self.also_pid);
        if let (Some(reason), Some(_)) = (sampler.silence(), &self.flamegraph) {
            let error = anyhow!("--flamegraph: {reason}");
            return Err(Failed::wrapper(exit::NOT_PERMITTED, error));
        }
        Ok(Some(Measuring {
            sampler,
            subjects: watched,
            beside,
            flamegraph: self.flamegraph.clone(),
        }))
    }

    /// What the program's environment must say so that its runtime tells the names of its functions.
    pub(crate) fn environment(&self) -> Vec<(OsString, OsString)> {
        if self.flamegraph.is_none() {
            return Vec::new();
        }
        let mut node = std::env::var_os("NODE_OPTIONS").unwrap_or_default();
        if !node.is_empty() {
            node.push(" ");
        }
        // silent, allowed there since Node 12, and without the log that --perf-basic-prof leaves in the working folder
        node.push("--perf-basic-prof-only-functions --interpreted-frames-native-stack");
        vec![
            ("NODE_OPTIONS".into(), node),
            ("PYTHONPERFSUPPORT".into(), "1".into()),
        ]
    }
}

impl Measuring {
    /// Ends it: what was taken, and the flame graph is written. `program`: what the program took, where we started it.
    pub(crate) fn finish(self, program: Option<Cpu>, title: &str) -> anyhow::Result<CpuFacts> {
        let taken = |pid: u32, took: CpuUse, command: String| OtherProcess { pid, command, took };
        let beside = self.beside.into_iter();
        let beside = beside.map(|one| taken(one.pid, one.took(), one.command));
        let program = match program {
            Some(cpu) => CpuUse {
                user_ms: Some(cpu.user.as_secs_f64() * 1e3),
                system_ms: Some(cpu.system.as_secs_f64() * 1e3),
                work: None,
            },
            None => sum(self.subjects.iter().map(Running::took)),
        };
        let mut facts = CpuFacts {
            program,
            other_processes: beside.collect(),
            samples_per_s: None,
            not_sampled: None,
            gaps: Vec::new(),
        };
        self.sampler
            .finish(&mut facts, self.flamegraph.as_deref(), title)?;
        Ok(facts)
    }
}

impl Running {
    fn find(pid: u32) -> Result<Running, Failed> {
        let command = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok();
        let found = command.zip(Times::of(pid));
        let (command, before) = found.ok_or_else(|| not_run(WatchError::NoProcess(pid)))?;
        Ok(Running {
            pid,
            command: command.trim_end().to_owned(),
            before,
        })
    }

    /// What it took since; unknown of one that has ended.
    fn took(&self) -> CpuUse {
        let now = Times::of(self.pid);
        CpuUse {
            user_ms: now.map(|now| now.user - self.before.user),
            system_ms: now.map(|now| now.system - self.before.system),
            work: None,
        }
    }
}

impl Times {
    /// By `/proc/PID/stat`, with the children that the process has waited for.
    fn of(pid: u32) -> Option<Times> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // the name before may hold anything
        let (_, rest) = stat.rsplit_once(") ")?;
        let ticks: Vec<f64> = rest
            .split_ascii_whitespace()
            .skip(11)
            .take(4)
            .filter_map(|word| word.parse().ok())
            .collect();
        let [user, system, children_user, children_system] = ticks[..] else {
            return None;
        };
        let a_tick = 1e3 / rustix::param::clock_ticks_per_second() as f64;
        Some(Times {
            user: (user + children_user) * a_tick,
            system: (system + children_system) * a_tick,
        })
    }
}

/// Unknown where one is.
fn sum(all: impl Iterator<Item = CpuUse>) -> CpuUse {
    let zero = CpuUse {
        user_ms: Some(0.0),
        system_ms: Some(0.0),
        work: None,
    };
    all.fold(zero, |sum, one| CpuUse {
        user_ms: sum.user_ms.zip(one.user_ms).map(|(a, b)| a + b),
        system_ms: sum.system_ms.zip(one.system_ms).map(|(a, b)| a + b),
        work: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_this_process_are_read_and_of_none_are_not() {
        let own = Times::of(std::process::id()).unwrap();
        assert!(own.user >= 0.0 && own.system >= 0.0);
        assert!(Times::of(u32::MAX).is_none());
    }

    #[test]
    fn a_sum_with_an_unknown_part_is_unknown() {
        let known = CpuUse {
            user_ms: Some(1.0),
            system_ms: Some(2.0),
            work: None,
        };
        let unknown = CpuUse::default();
        assert_eq!(sum([known, known].into_iter()).user_ms, Some(2.0));
        assert_eq!(sum([known, unknown].into_iter()).user_ms, None);
    }
}
