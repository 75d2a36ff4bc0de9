//! `intact fleet send`: fills a queue of SQS, whose messages a function measures.

use super::{load, open_store, own};
use crate::console;
use crate::exit::{self, Failed};
use intact_fleet::{QueueError, SqsQueue};
use std::process::ExitCode;

/// Messages for functions.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  intact fleet send rig.toml --queue sqs://rig --store s3://bucket/rig\n  intact fleet status s3://bucket/rig --queue sqs://rig"
)]
pub(crate) struct Args {
    /// The plan (TOML); env:NAME: its text is in this variable
    plan: String,
    /// The queue: sqs://NAME; `{label}` in its name stands for the label: a queue per label
    #[arg(long)]
    queue: String,
    /// The store of the functions: a URL such as s3://BUCKET/PREFIX
    #[arg(long)]
    store: String,
}

/// Stores the plan and sends its messages.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failed> {
    let plan = load(&args.plan)?.0;
    let store = open_store(&args.store)?;
    console::note_lines(&intact_fleet::plan_page(&plan));
    store.put_plan(&plan).map_err(own)?;
    let is_per_label = args.queue.contains("{label}");
    let labels = if is_per_label {
        &plan.labels[..]
    } else {
        &plan.labels[..1]
    };
    for label in labels {
        let name = args.queue.replace("{label}", label);
        let messages = plan.messages();
        let mut messages = messages.filter(|message| !is_per_label || message.label == *label);
        let sent = open_queue(&name)?.send(&mut messages).map_err(own)?;
        console::note(&format!("{name}: {sent} messages sent"));
    }
    Ok(ExitCode::from(exit::FINE))
}

pub(super) fn open_queue(name: &str) -> Result<SqsQueue, Failed> {
    SqsQueue::open(name).map_err(|error| match error {
        QueueError::Name(_) | QueueError::Missing(_) => Failed::usage(error),
        other => own(other),
    })
}
