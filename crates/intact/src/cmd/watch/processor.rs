//! `--cpu`, `--flamegraph`, `--also-pid`: what the programs took of the processors and for what.
//! Trouble with sampling does not end the watch: the times are there without it, and the reason is
//! printed.

use super::not_run;
use super::sampler::Sampler;
use crate::exit::Failed;
use anyhow::anyhow;
use intact_document::cpu::{CpuFacts, CpuUse, OtherProcess};
use intact_watch::{Cpu, WatchError};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// The options.
#[derive(clap::Args, Clone)]
#[command(next_help_heading = "Processor time")]
pub(crate) struct Options {
    /// Report the processor time of the program and all that it starts, and what share of it
    /// sockets, TLS and lookups take, by sampling
    #[arg(long)]
    cpu: bool,
    /// Draw where processor time was spent; Node and Python (3.12 and newer) are asked to report
    /// their functions' names, in NODE_OPTIONS and PYTHONPERFSUPPORT
    #[arg(long, value_name = "FILE.svg")]
    flamegraph: Option<PathBuf>,
    /// The same of another process that works for the program, such as the resolver's daemon
    #[arg(long, value_name = "PID,..", value_delimiter = ',')]
    also_pid: Vec<u32>,
}

/// What is under way; [`Options::start`] makes it before the program is started.
pub(crate) struct Measuring {
    sampler: Sampler,
    /// Processes that run already and are what is watched; none where we start the program.
    subjects: Vec<Running>,
    others: Vec<Running>,
    flamegraph: Option<PathBuf>,
}

/// A process that runs already.
struct Running {
    pid: u32,
    command: String,
    before: Cpu,
}

impl Options {
    /// Whether any of it was asked for.
    pub(super) fn is_any(&self) -> bool {
        self.cpu || self.flamegraph.is_some() || !self.also_pid.is_empty()
    }

    /// Begins to measure, if that was asked for. `subjects`: processes that run already; none for a
    /// program that this thread starts next.
    pub(crate) fn start(&self, subjects: &[u32]) -> Result<Option<Measuring>, Failed> {
        if !self.is_any() {
            return Ok(None);
        }
        let running = |pids: &[u32]| {
            let running = pids.iter().map(|&pid| Running::find(pid));
            running.collect::<Result<Vec<_>, _>>()
        };
        let (watched, others) = (running(subjects)?, running(&self.also_pid)?);
        let sampler = Sampler::start(subjects, &self.also_pid);
        if let (Some(reason), Some(_)) = (sampler.silence(), &self.flamegraph) {
            let error = anyhow!("--flamegraph: {reason}");
            return Err(Failed::forbidden(error));
        }
        Ok(Some(Measuring {
            sampler,
            subjects: watched,
            others,
            flamegraph: self.flamegraph.clone(),
        }))
    }

    /// Environment variables that make the program's runtime write the names of its functions.
    pub(crate) fn environment(&self) -> Vec<(OsString, OsString)> {
        match self.flamegraph {
            Some(_) => function_names(),
            None => Vec::new(),
        }
    }
}

/// Environment variables that make Node and Python write the names of their functions.
pub(in crate::cmd) fn function_names() -> Vec<(OsString, OsString)> {
    let mut node = std::env::var_os("NODE_OPTIONS").unwrap_or_default();
    if !node.is_empty() {
        node.push(" ");
    }
    // silent, allowed there since Node 12, and without the log that --perf-basic-prof leaves in the
    // working folder
    node.push("--perf-basic-prof-only-functions --interpreted-frames-native-stack");
    vec![
        ("NODE_OPTIONS".into(), node),
        ("PYTHONPERFSUPPORT".into(), "1".into()),
    ]
}

impl Measuring {
    /// Ends it: what was taken, and the flame graph is written. `program`: what the program took,
    /// where we started it.
    pub(crate) fn finish(self, program: Option<Cpu>, title: &str) -> CpuFacts {
        let taken = |pid: u32, took: CpuUse, command: String| OtherProcess { pid, command, took };
        let others = self.others.into_iter();
        let others = others.map(|one| taken(one.pid, one.took(), one.command));
        let program = match program {
            Some(cpu) => CpuUse::of(cpu.user, cpu.system),
            None => self.subjects.iter().map(Running::took).sum(),
        };
        let mut facts = CpuFacts {
            program,
            other_processes: others.collect(),
            samples_per_s: None,
            not_sampled: None,
            gaps: Vec::new(),
        };
        self.sampler
            .finish(&mut facts, self.flamegraph.as_deref(), title);
        facts
    }
}

impl Running {
    fn find(pid: u32) -> Result<Running, Failed> {
        let command = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok();
        let found = command.zip(Cpu::of_process(pid));
        let (command, before) = found.ok_or_else(|| not_run(WatchError::NoProcess(pid)))?;
        Ok(Running {
            pid,
            command: command.trim_end().to_owned(),
            before,
        })
    }

    /// What it took since; unknown of one that has ended.
    fn took(&self) -> CpuUse {
        let now = Cpu::of_process(self.pid);
        now.map_or_else(CpuUse::default, |now| {
            let since = |now: Duration, then| now.saturating_sub(then);
            CpuUse::of(
                since(now.user, self.before.user),
                since(now.system, self.before.system),
            )
        })
    }
}
