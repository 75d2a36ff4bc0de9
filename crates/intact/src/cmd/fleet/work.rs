//! `intact fleet work`: measures one message of a plan and ends. A scheduler names its index and
//! keeps the number of retries and of concurrent workers; `intact fleet run` is one for a single
//! machine.

use super::measure::Measurer;
use super::secrets::WorkerSecrets;
use super::{load, open_store, own};
use crate::cmd::internal::{self, Control};
use crate::console;
use crate::exit::{self, Failed};
use crate::interrupt::Interrupt;
use crate::system;
use anyhow::{Context, anyhow};
use intact_fleet::{FailureAction, Message, MessageHandler, MessageOutcome};
use serde::{Deserialize, Serialize};
use std::process::ExitCode;

/// Where schedulers put the index of a job, and the first index that they count from.
const INDEX_VARIABLES: [(&str, u64); 4] = [
    ("JOB_COMPLETION_INDEX", 0),
    ("AWS_BATCH_JOB_ARRAY_INDEX", 0),
    ("SLURM_ARRAY_TASK_ID", 0),
    ("CI_NODE_INDEX", 1),
];

/// A worker.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  intact fleet work rig.toml --store s3://bucket/rig --index 3\n  # in an array job, with the index of its scheduler\n  intact fleet work env:INTACT_PLAN --store s3://bucket/rig\n\nExit code 2: a retry fails in the same way (podFailurePolicy of Kubernetes)."
)]
pub(crate) struct Args {
    /// The plan (TOML); env:NAME: its text is in this variable
    plan: String,
    /// The store: a folder, or a URL such as s3://BUCKET/PREFIX
    #[arg(long)]
    store: String,
    /// Which message, from 0 [default: JOB_COMPLETION_INDEX, AWS_BATCH_JOB_ARRAY_INDEX,
    /// SLURM_ARRAY_TASK_ID, or CI_NODE_INDEX, which counts from 1]
    #[arg(long, value_name = "N")]
    index: Option<u64>,
}

/// One delivery of a message, for a process of `intact fleet run`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Delivery {
    pub(super) message: Message,
    pub(super) attempt: u32,
    pub(super) store: String,
    /// The worker's name in results and lists of outliers.
    pub(super) worker: String,
}

/// Measures a message, and reports it.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failed> {
    let plan = load(&args.plan)?.0;
    let index = match args.index {
        Some(index) => index,
        None => index_of_job(|name| std::env::var(name).ok()).map_err(Failed::usage)?,
    };
    let message = plan.message(index).ok_or_else(|| {
        let last = plan.len().saturating_sub(1);
        Failed::usage(anyhow!(
            "--index {index}: the plan has messages 0 to {last}"
        ))
    })?;
    let interrupt = Interrupt::listen()?;
    open_store(&args.store)?.put_plan(&plan).map_err(own)?;
    let delivery = Delivery {
        message,
        attempt: 1,
        store: args.store.clone(),
        worker: host_name(),
    };
    Ok(match delivery.measure(&interrupt)? {
        MessageOutcome::Measured(message) => {
            console::note(&format!("{message}: measured"));
            ExitCode::from(exit::FINE)
        }
        MessageOutcome::AlreadyThere(message) => {
            console::note(&format!(
                "{message}: has a result, and was not measured again"
            ));
            ExitCode::from(exit::FINE)
        }
        MessageOutcome::Failed {
            message,
            reason,
            then,
        } => {
            let failed = anyhow!("{message}: {reason}");
            match (then, interrupt.signal()) {
                (FailureAction::GivenUp, _) => return Err(Failed::usage(failed)),
                (FailureAction::Untouched, Some(signal)) => ExitCode::from(exit::by_signal(signal)),
                _ => return Err(failed.into()),
            }
        }
    })
}

/// The index that a scheduler gives this job.
fn index_of_job(variable: impl Fn(&str) -> Option<String>) -> anyhow::Result<u64> {
    let mut all = INDEX_VARIABLES.iter();
    let given = all.find_map(|&(name, first)| Some((name, first, variable(name)?)));
    let (name, first, text) = given.context(
        "no --index, and no scheduler gives one (JOB_COMPLETION_INDEX, AWS_BATCH_JOB_ARRAY_INDEX, SLURM_ARRAY_TASK_ID, CI_NODE_INDEX)",
    )?;
    let index = text
        .parse()
        .ok()
        .and_then(|index: u64| index.checked_sub(first));
    index.with_context(|| format!("{name}={text}: is no index; set --index"))
}

/// Measures a message of `intact fleet run`, at most until standard input ends. The outcome is a
/// line of JSON on standard output.
pub(crate) fn run_as_child(delivery: Delivery, mut parent: Control) -> Result<ExitCode, Failed> {
    let interrupt = Interrupt::listen()?;
    let ended = interrupt.clone();
    std::thread::spawn(move || {
        // the pipe ends with the parent, however that ends
        let _ = std::io::copy(&mut parent, &mut std::io::sink());
        ended.end();
    });
    let id = delivery.message.id.clone();
    let outcome = delivery.measure(&interrupt).unwrap_or_else(|error| {
        // a full store or a missing secret is not the message's fault
        MessageOutcome::Failed {
            message: id,
            reason: error.to_string(),
            then: FailureAction::Untouched,
        }
    });
    internal::send(&outcome, &mut std::io::stdout()).context("standard output")?;
    Ok(ExitCode::from(exit::FINE))
}

impl Delivery {
    fn measure(self, interrupt: &Interrupt) -> Result<MessageOutcome, Failed> {
        system::make_private_files();
        let store = open_store(&self.store)?;
        let mut measure = Measurer {
            interrupt: interrupt.clone(),
        };
        let mut handler = MessageHandler {
            worker: self.worker,
            store: &store,
            measure: &mut measure,
            secrets: &WorkerSecrets,
        };
        handler.measure(self.message, self.attempt).map_err(own)
    }
}

fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map_or_else(|_| "worker".to_owned(), |name| name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_comes_from_the_variable_of_the_scheduler() {
        let of = |name: &str, value: &str| {
            index_of_job(|asked| (asked == name).then(|| value.to_owned()))
                .map_err(|error| error.to_string())
        };
        for (name, value, index) in [
            ("JOB_COMPLETION_INDEX", "0", 0),
            ("AWS_BATCH_JOB_ARRAY_INDEX", "9999", 9999),
            ("SLURM_ARRAY_TASK_ID", "7", 7),
            ("CI_NODE_INDEX", "1", 0),
        ] {
            assert_eq!(of(name, value), Ok(index), "{name}");
        }
        for (name, value) in [("CI_NODE_INDEX", "0"), ("JOB_COMPLETION_INDEX", "-1")] {
            let words = of(name, value).unwrap_err();
            assert!(
                words.contains(&format!("{name}={value}: is no index")),
                "{words}"
            );
        }
        assert!(of("OTHER", "1").unwrap_err().contains("no --index"));
    }
}
