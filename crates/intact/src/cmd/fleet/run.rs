//! `intact fleet run`: a plan on this machine. Keeps a number of workers busy, each a process that
//! measures one message, and reports.

use super::secrets::WorkerSecrets;
use super::{Shown, load, open_store, own, report, work};
use crate::cmd::internal::{self, Job};
use crate::cmd::progress;
use crate::console;
use crate::exit::{self, Failed, refuse};
use crate::interrupt::Interrupt;
use crate::system;
use anyhow::{Context, anyhow};
use intact_fleet::{Attempt, FailureAction, Indices, MessageOutcome, Plan, Store};
use std::io::BufReader;
use std::path::Path;
use std::process::{Child, ExitCode, Stdio};
use std::time::Duration;

/// How often workers are looked at.
const LOOK: Duration = Duration::from_millis(5);
/// Workers that may end one after the other with nothing finished in between.
const FRUITLESS: u32 = 20;
/// The file that a coordinator locks, in its store.
const LOCK: &str = "lock";

/// A campaign from here.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  intact fleet run rig.toml\n  intact fleet run rig.toml --store here --workers 4\n  intact fleet run rig.toml --store s3://bucket/rig"
)]
pub(crate) struct Args {
    /// The plan (TOML); env:NAME: its text is in this variable
    plan: String,
    /// The store: a folder, or a URL such as s3://BUCKET/PREFIX [default: fleet-PLAN]
    #[arg(long)]
    store: Option<String>,
    /// Concurrent workers [default: as the plan says]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    workers: Option<u32>,
    #[command(flatten)]
    shown: Shown,
}

/// Runs a campaign.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failed> {
    let requirements = args.shown.begin()?;
    let plan = load(&args.plan)?.0;
    let workers = args.workers.unwrap_or(plan.limits.workers);
    if workers > plan.limits.workers {
        refuse!(
            "--workers {workers}: the plan shares its rate among {}: raise limits.workers",
            plan.limits.workers
        );
    }
    check_secrets(&plan)?;
    system::make_private_files();
    let default = format!("fleet-{}", plan.id);
    let store_name = args.store.as_ref().unwrap_or(&default);
    let store = open_store(store_name)?;
    let _lock = lock(store_name)?;
    console::note_lines(&intact_fleet::plan_page(&plan));
    store.put_plan(&plan).map_err(own)?;
    let indices = Indices::left(&plan, &store).map_err(own)?;
    let ended = plan.len() - indices.len();
    if ended > 0 {
        console::note(&format!(
            "{ended} messages have ended before, {} are left",
            indices.len()
        ));
    }
    let interrupt = Interrupt::listen()?;
    let mut crew = Crew {
        plan: &plan,
        store: &store,
        store_name,
        indices,
        working: Vec::new(),
        fruitless: 0,
        given_up: 0,
    };
    let ended = crew.work_all(workers, &interrupt);
    crew.stop();
    ended?;
    let code = report(&store, Some(&plan.id), &args.shown, &requirements)?;
    Ok(match interrupt.signal() {
        Some(signal) => {
            console::note(&format!(
                "the rest has no result yet: the same command goes on with it ({store_name})"
            ));
            ExitCode::from(exit::by_signal(signal))
        }
        None => code,
    })
}

/// Locks a folder against a second coordinator, which would double the plan's rate.
fn lock(store: &str) -> Result<Option<std::fs::File>, Failed> {
    if store.contains("://") {
        return Ok(None);
    }
    let path = Path::new(store).join(LOCK);
    let locked = system::lock(&path).with_context(|| format!("cannot lock {}", path.display()))?;
    match locked {
        Some(file) => Ok(Some(file)),
        None => Err(anyhow!(
            "{store}: another `intact fleet run` works on this store; wait for its end, or name another --store"
        )
        .into()),
    }
}

/// Whether each secret that the plan refers to can be read here, where its workers run.
fn check_secrets(plan: &Plan) -> Result<(), Failed> {
    for target in &plan.targets {
        for reference in target.references() {
            intact_fleet::read_secret(&reference, &WorkerSecrets)
                .map_err(|reason| Failed::usage(anyhow!("target {}: {reason}", target.name)))?;
        }
    }
    Ok(())
}

/// The workers, and what is left for them.
struct Crew<'a> {
    plan: &'a Plan,
    store: &'a Store,
    store_name: &'a str,
    indices: Indices,
    working: Vec<Working>,
    /// Workers that ended since the last one that finished a message.
    fruitless: u32,
    given_up: u64,
}

/// A worker and its message.
struct Working {
    /// Its number among the concurrent ones, from 1.
    slot: u32,
    attempt: Attempt,
    message: String,
    child: Child,
}

impl Crew<'_> {
    fn work_all(&mut self, workers: u32, interrupt: &Interrupt) -> anyhow::Result<()> {
        let template = "{bar:30} {pos} of {len} messages, {eta} left, {wide_msg}";
        let bar = progress::bar(Some(self.plan.len()), 5, template)?;
        while interrupt.signal().is_none() {
            while (self.working.len() as u32) < workers
                && let Some(attempt) = self.indices.take()
            {
                self.start(attempt)?;
            }
            if self.working.is_empty() {
                break;
            }
            self.look()?;
            if self.fruitless >= FRUITLESS {
                return Err(anyhow!(
                    "{FRUITLESS} workers ended one after the other with nothing finished: {} has what was measured",
                    self.store_name
                ));
            }
            let left = self.indices.len() + self.working.len() as u64;
            bar.set_position(self.plan.len().saturating_sub(left));
            if self.given_up > 0 {
                bar.set_message(format!("{} given up", self.given_up));
            }
            std::thread::sleep(LOOK);
        }
        bar.finish_and_clear();
        Ok(())
    }

    fn start(&mut self, attempt: Attempt) -> anyhow::Result<()> {
        let message = self.plan.message(attempt.index);
        let message = message.context("the plan has no such message")?;
        let is_free = |slot: &u32| self.working.iter().all(|other| other.slot != *slot);
        let slot = (1..).find(is_free).unwrap_or(0);
        let mut child = internal::command()?
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start a worker")?;
        let id = message.id.clone();
        let delivery = work::Delivery {
            message,
            attempt: attempt.number,
            store: self.store_name.to_owned(),
            worker: format!("w{slot}"),
        };
        if let Some(stdin) = &mut child.stdin {
            // a worker that ended early reads nothing; `look` reports it
            let _ = internal::send(&Job::Work(Box::new(delivery)), stdin);
        }
        self.working.push(Working {
            slot,
            attempt,
            message: id,
            child,
        });
        Ok(())
    }

    /// Notices workers that have ended.
    fn look(&mut self) -> anyhow::Result<()> {
        let mut index = 0;
        while index < self.working.len() {
            let Some(status) = self.working[index].child.try_wait()? else {
                index += 1;
                continue;
            };
            let mut worker = self.working.swap_remove(index);
            let outcome = worker.child.stdout.take().map(BufReader::new);
            let outcome = outcome.and_then(|mut line| internal::receive(&mut line).ok());
            let (reason, then) = match outcome {
                Some(MessageOutcome::Measured(_) | MessageOutcome::AlreadyThere(_)) => {
                    self.fruitless = 0;
                    continue;
                }
                Some(MessageOutcome::Failed { reason, then, .. }) => (reason, then),
                None => {
                    self.fruitless += 1;
                    (format!("its worker ended ({status})"), FailureAction::Again)
                }
            };
            self.failed(&worker, reason, then)?;
        }
        Ok(())
    }

    /// A delivery without a result.
    fn failed(
        &mut self,
        worker: &Working,
        reason: String,
        then: FailureAction,
    ) -> anyhow::Result<()> {
        let message = &worker.message;
        let comes_back = match then {
            FailureAction::GivenUp => false,
            FailureAction::Again => self.indices.again(worker.attempt),
            FailureAction::Untouched => {
                self.indices.release(worker.attempt);
                self.fruitless += 1;
                true
            }
        };
        if comes_back {
            console::note(&format!("{message}: {reason}; comes back"));
            return Ok(());
        }
        console::note(&format!("{message}: {reason}; given up"));
        self.given_up += 1;
        self.fruitless = 0;
        let letter = intact_ledger::DeadLetter {
            message: message.clone(),
            reason,
        };
        Ok(self.store.put_dead(&self.plan.id, &letter)?)
    }

    fn stop(&mut self) {
        for worker in &mut self.working {
            drop(worker.child.stdin.take());
        }
        for worker in &mut self.working {
            let _ = worker.child.wait();
        }
    }
}
