//! `intact fleet run`: fills the queue, keeps local workers alive until all messages are processed,
//! reports.

use super::secrets::WorkerSecrets;
use super::{STORE, Shown, load, open_store, own, report, work};
use crate::cmd::internal::{self, Job};
use crate::cmd::{progress, run_header};
use crate::console;
use crate::exit::{self, Failed};
use crate::interrupt::Interrupt;
use crate::system;
use anyhow::{Context, anyhow};
use intact_fleet::{Counts, Ending, Plan, Queue, Store, StoreError};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// How often workers and queue are looked at.
const LOOK: Duration = Duration::from_millis(200);
/// Workers that may end one after the other with nothing finished in between.
const FRUITLESS: u32 = 20;

/// A campaign from here.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  intact fleet run rig.toml\n  intact fleet run rig.toml --dir here --workers 4\n  intact fleet run rig.toml --queue sqs://rig --store s3://bucket/rig \\\n    --workers 0"
)]
pub(crate) struct Args {
    /// The plan (TOML)
    plan: PathBuf,
    /// Folder for queue and store [default: fleet-PLAN]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// The queue [default: sqlite:DIR/queue.sqlite]; `{label}` in its name stands for the label: a
    /// queue per label
    #[arg(long)]
    queue: Option<String>,
    /// The store: a folder, or a URL such as s3://BUCKET/PREFIX [default: DIR/store]
    #[arg(long)]
    store: Option<String>,
    /// Local workers [default: as the plan says]; 0: only fill the queue
    #[arg(long, value_name = "N")]
    workers: Option<u32>,
    #[command(flatten)]
    shown: Shown,
}

/// Runs a campaign.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failed> {
    let requirements = args.shown.begin()?;
    let plan = load(&args.plan)?;
    let workers = args.workers.unwrap_or(plan.limits.workers);
    if workers > plan.limits.workers {
        return Err(Failed::usage(anyhow!(
            "--workers {workers}: the plan shares its rate among {}: raise limits.workers",
            plan.limits.workers
        )));
    }
    if workers > 0 {
        check_secrets(&plan)?;
    }
    system::make_private_files();
    let dir = args
        .dir
        .clone()
        .unwrap_or_else(|| PathBuf::from(format!("fleet-{}", plan.id)));
    let (queues, store_name) = places(args, &plan, &dir)?;
    let store = open_store(&store_name)?;
    console::note_lines(&intact_fleet::plan_page(&plan));
    if !cfg!(feature = "parquet") {
        console::note("rows are kept as CSV only: Parquet needs a build with `--features parquet`");
    }
    store.put_plan(&plan).map_err(own)?;
    let share = work::Share {
        plan: plan.id.clone(),
        at_once: plan.limits.workers,
    };
    let open = |name: &str| share.open(name, plan.limits.deliveries);
    for (name, label) in &queues {
        let mut queue = open(name)?;
        let mut messages = plan
            .messages()
            .filter(|message| label.as_ref().is_none_or(|label| *label == message.label));
        let new = queue.send(&mut messages).map_err(own)?;
        console::note(&format!("{name}: {new} messages sent"));
    }
    if workers == 0 {
        return Ok(ExitCode::from(exit::FINE));
    }
    let interrupt = Interrupt::listen()?;
    let token = run_header::seed();
    let mut crews: Vec<Crew> = Vec::new();
    for (name, _) in &queues {
        crews.push(Crew {
            queue_name: name.clone(),
            store: store_name.clone(),
            queue: open(name)?,
            share: share.clone(),
            token,
            alive: Vec::new(),
            started: 0,
            fruitless: 0,
            left: None,
            waiting: 0,
        });
    }
    let each = workers.div_ceil(queues.len() as u32);
    let ended = process_all(&mut crews, each, &plan, &store, &interrupt);
    for crew in &mut crews {
        crew.stop();
    }
    ended?;
    for crew in &mut crews {
        bury(&mut *crew.queue, &store, &plan).map_err(own)?;
    }
    let code = report(&store, Some(&plan.id), &args.shown, &requirements)?;
    Ok(match interrupt.signal() {
        Some(signal) => {
            console::note(&format!(
                "the rest stays in the queue: the same command goes on with it ({})",
                dir.display()
            ));
            ExitCode::from(exit::by_signal(signal))
        }
        None => code,
    })
}

/// A queue's name, and the label whose messages it gets where it does not get all.
type QueueOf = (String, Option<String>);

/// The queues, and the store.
fn places(args: &Args, plan: &Plan, dir: &Path) -> Result<(Vec<QueueOf>, String), Failed> {
    if args.queue.is_none() || args.store.is_none() {
        intact_fleet::make_folder(dir)
            .with_context(|| format!("--dir: cannot make {}", dir.display()))?;
    }
    let store = args
        .store
        .clone()
        .unwrap_or_else(|| dir.join(STORE).display().to_string());
    let queue = args
        .queue
        .clone()
        .unwrap_or_else(|| format!("sqlite:{}", dir.join("queue.sqlite").display()));
    let queues = if queue.contains("{label}") {
        plan.labels
            .iter()
            .map(|label| (queue.replace("{label}", label), Some(label.clone())))
            .collect()
    } else {
        vec![(queue, None)]
    };
    Ok((queues, store))
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

/// What the queue gave up becomes part of the store.
fn bury(queue: &mut dyn Queue, store: &Store, plan: &Plan) -> anyhow::Result<()> {
    for dead in queue.dead()? {
        if dead.plan == plan.id {
            let letter = intact_ledger::DeadLetter {
                message: dead.message,
                reason: dead.reason,
            };
            store.put_dead(&plan.id, &letter)?;
        }
    }
    Ok(())
}

/// The workers of one queue.
struct Crew {
    queue_name: String,
    store: String,
    queue: Box<dyn Queue>,
    share: work::Share,
    /// Part of its workers' names: another coordinator's workers have other names, and what they
    /// hold stays with them.
    token: u64,
    alive: Vec<(String, Child)>,
    started: u32,
    fruitless: u32,
    /// The fewest messages that were left so far.
    left: Option<u64>,
    /// Messages that waited when the queue was last asked.
    waiting: u64,
}

impl Crew {
    fn start_one(&mut self) -> anyhow::Result<()> {
        self.started += 1;
        let name = format!("w{}-{:08x}", self.started, self.token);
        let mut child = internal::command()?
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .context("cannot start a worker")?;
        let worker =
            work::Args::of_worker(&self.queue_name, &self.store, &name, self.share.clone());
        if let Some(stdin) = &mut child.stdin {
            // a worker that ended early reads nothing; `look` reports it
            let _ = internal::send(&Job::Work(Box::new(worker)), stdin);
        }
        self.alive.push((name, child));
        Ok(())
    }

    /// Notices workers that are gone: what they had in their hands comes back at once.
    fn look(&mut self) -> anyhow::Result<()> {
        let mut index = 0;
        while index < self.alive.len() {
            let Some(status) = self.alive[index].1.try_wait()? else {
                index += 1;
                continue;
            };
            let (name, _) = self.alive.swap_remove(index);
            if !status.success() {
                let back = match self.queue.abandon(&name)? {
                    Some(back) => format!("{back} messages come back"),
                    None => "what it had comes back when its time is over".to_owned(),
                };
                // one that was killed with nothing waiting stood idle: what is left is hidden until
                // its time is over
                let stood_idle = status.code().is_none() && self.waiting == 0;
                self.fruitless += u32::from(!stood_idle);
                console::note(&format!("worker {name} ended ({status}); {back}"));
            }
        }
        Ok(())
    }

    fn stop(&mut self) {
        for (_, child) in &mut self.alive {
            drop(child.stdin.take());
        }
        for (_, child) in &mut self.alive {
            let _ = child.wait();
        }
    }
}

fn process_all(
    crews: &mut [Crew],
    each: u32,
    plan: &Plan,
    store: &Store,
    interrupt: &Interrupt,
) -> anyhow::Result<()> {
    let mut ending = Ending::default();
    let template = "{bar:30} {pos} of {len} messages, {eta} left, {wide_msg}";
    let bar = progress::bar(Some(plan.len()), 5, template)?;
    while interrupt.signal().is_none() {
        let mut all = Counts::default();
        let mut remembers = true;
        for crew in &mut *crews {
            crew.look()?;
            let counts = crew.queue.counts()?;
            let left = counts.waiting + counts.claimed;
            crew.waiting = counts.waiting;
            // not every queue remembers what was done
            if crew.left.is_none_or(|before| left < before) {
                crew.left = Some(left);
                crew.fruitless = 0;
            }
            remembers &= counts.done.is_some();
            all.waiting += counts.waiting;
            all.claimed += counts.claimed;
            all.dead = Some(all.dead.unwrap_or(0) + counts.dead.unwrap_or(0));
            if counts.is_over() {
                continue;
            }
            if crew.fruitless >= FRUITLESS {
                return Err(anyhow!(
                    "{FRUITLESS} workers ended one after the other with nothing finished: {} has what is left",
                    crew.queue_name
                ));
            }
            let wanted = u64::from(each).min(counts.waiting + counts.claimed);
            while (crew.alive.len() as u64) < wanted {
                crew.start_one()?;
            }
        }
        let left = all.waiting + all.claimed;
        bar.set_position(plan.len().saturating_sub(left));
        bar.set_message(match all.dead {
            Some(dead) if dead > 0 => format!("{dead} given up"),
            _ => String::new(),
        });
        let dead = all.dead.unwrap_or(0);
        let is_complete = || Ok::<_, StoreError>(store.finished(&plan.id)? + dead >= plan.len());
        if ending.is_over(left, remembers, Instant::now(), is_complete)? {
            break;
        }
        std::thread::sleep(LOOK);
    }
    bar.finish_and_clear();
    Ok(())
}
