//! `intact fleet work`: one worker.

use super::measure::Measurer;
use super::{open_queue, open_store, own};
use crate::console;
use crate::exit::{self, Failed};
use crate::interrupt::Interrupt;
use clap::ValueEnum;
use intact_fleet::{FailureAction, MessageHandler, MessageOutcome, Worker};
use std::process::ExitCode;
use std::time::Duration;

/// How long an empty queue is waited on.
const WAIT: Duration = Duration::from_secs(1);

/// A worker.
#[derive(clap::Args)]
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
    /// End with standard input, silent: how `run` starts workers
    #[arg(long, hide = true)]
    child: bool,
}

/// Works.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failed> {
    let interrupt = Interrupt::listen()?;
    if args.child {
        let interrupt = interrupt.clone();
        std::thread::spawn(move || {
            // whatever ends our parent ends its pipe
            let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
            interrupt.end();
        });
    }
    let name = args.name.clone().unwrap_or_else(|| {
        let host = host_name();
        format!("{host}-{}", std::process::id())
    });
    let mut queue = open_queue(&args.queue)?;
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
            MessageOutcome::Measured(message) if !args.child => {
                console::note(&format!("{message}: measured"));
            }
            MessageOutcome::AlreadyThere(message) if !args.child => {
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

/// How a worker's queue is worked off.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Until {
    /// Until it is empty.
    Empty,
    /// Until the worker is told to end.
    Stopped,
}
