//! `intact fleet work`: one worker.

use super::measure::Measurer;
use super::secrets::WorkerSecrets;
use super::{open_queue, open_store, own};
use crate::cmd::internal::Control;
use crate::console;
use crate::exit::{self, Failed};
use crate::interrupt::Interrupt;
use crate::system;
use clap::ValueEnum;
use intact_fleet::{FailureAction, MessageHandler, MessageOutcome, Queue, SqliteQueue, Worker};
use serde::{Deserialize, Serialize};
use std::process::ExitCode;
use std::time::Duration;

/// How long an empty queue is waited on.
const WAIT: Duration = Duration::from_secs(1);

/// A worker.
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize)]
#[command(
    after_help = "Examples:\n  intact fleet work --queue sqlite:here/queue.sqlite --store here/store\n  intact fleet work --queue sqs://rig --store s3://bucket/rig"
)]
pub(crate) struct Args {
    /// The queue: sqlite:PATH or sqs://NAME
    #[arg(long)]
    queue: String,
    /// The store: a folder, or a URL such as s3://BUCKET/PREFIX
    #[arg(long)]
    store: String,
    /// Its name in results and lists of outliers [default: host and process]
    #[arg(long)]
    name: Option<String>,
    /// When to end
    #[arg(long, value_enum, default_value = "empty")]
    until: Until,
    /// Which messages it takes; absent: all of the queue.
    #[arg(skip)]
    share: Option<Share>,
}

/// The messages of one plan, as coordinators of an embedded queue share them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Share {
    pub(super) plan: String,
    /// Messages that may be with workers at once.
    pub(super) at_once: u32,
}

impl Share {
    /// Opens a queue for the messages of this plan, where the queue can separate plans.
    pub(super) fn open(&self, name: &str, deliveries: u32) -> Result<Box<dyn Queue>, Failed> {
        let Some(path) = name.strip_prefix("sqlite:") else {
            return open_queue(name);
        };
        let queue = SqliteQueue::open(path.as_ref()).map_err(own)?;
        let queue = queue.with_deliveries(deliveries);
        Ok(Box::new(queue.of_plan(&self.plan, self.at_once)))
    }
}

impl Args {
    /// Those of a worker of `intact fleet run`: it ends when the queue is empty.
    pub(super) fn of_worker(queue: &str, store: &str, name: &str, share: Share) -> Args {
        Args {
            queue: queue.to_owned(),
            store: store.to_owned(),
            name: Some(name.to_owned()),
            until: Until::Empty,
            share: Some(share),
        }
    }
}

/// Works, and reports each message.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failed> {
    work(args, &Interrupt::listen()?, true)
}

/// Works without a report of each message, at most until standard input ends.
pub(crate) fn run_as_child(args: &Args, mut parent: Control) -> Result<ExitCode, Failed> {
    let interrupt = Interrupt::listen()?;
    let ended = interrupt.clone();
    std::thread::spawn(move || {
        // the pipe ends with the parent, however that ends
        let _ = std::io::copy(&mut parent, &mut std::io::sink());
        ended.end();
    });
    work(args, &interrupt, false)
}

fn work(args: &Args, interrupt: &Interrupt, reports: bool) -> Result<ExitCode, Failed> {
    system::make_private_files();
    let name = args.name.clone().unwrap_or_else(|| {
        let host = host_name();
        format!("{host}-{}", std::process::id())
    });
    let mut queue = match &args.share {
        // a worker sends nothing, so that it sets no deliveries
        Some(share) => share.open(&args.queue, 0)?,
        None => open_queue(&args.queue)?,
    };
    let store = open_store(&args.store)?;
    let mut measure = Measurer {
        interrupt: interrupt.clone(),
    };
    let mut worker = Worker {
        queue: &mut *queue,
        desk: MessageHandler {
            worker: name,
            store: &store,
            measure: &mut measure,
            secrets: &WorkerSecrets,
        },
    };
    loop {
        let done = worker.step(WAIT).map_err(own)?;
        match done {
            // what others have in their hands may still come back
            MessageOutcome::Idle
                if args.until == Until::Empty && worker.queue.counts().map_err(own)?.is_over() =>
            {
                return Ok(ExitCode::from(exit::FINE));
            }
            MessageOutcome::Idle => {}
            MessageOutcome::Measured(message) if reports => {
                console::note(&format!("{message}: measured"));
            }
            MessageOutcome::AlreadyThere(message) if reports => {
                console::note(&format!("{message}: an earlier delivery had finished it"));
            }
            MessageOutcome::Failed {
                message,
                reason,
                then,
            } if interrupt.signal().is_none() => {
                let then = if then == FailureAction::GivenUp {
                    "given up"
                } else {
                    "comes back"
                };
                console::note(&format!("{message}: {reason}; {then}"));
            }
            _ => {}
        }
        if let Some(signal) = interrupt.signal() {
            return Ok(ExitCode::from(exit::by_signal(signal)));
        }
    }
}

fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map_or_else(|_| "worker".to_owned(), |name| name.trim().to_owned())
}

/// How a worker processes its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
enum Until {
    /// Until it is empty.
    Empty,
    /// Until the worker is asked to end.
    Stopped,
}
