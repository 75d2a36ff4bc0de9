//! `intact fleet`: campaigns of workers that a scheduler starts, and an object store.

#[cfg(feature = "aws")]
mod lambda;
mod measure;
mod run;
mod secrets;
#[cfg(feature = "aws")]
mod send;
mod work;

pub(super) use self::work::{Delivery, run_as_child as work_as_child};
use super::options;
use super::page::ReportFiles;
use super::requirements;
use crate::console;
use crate::exit::{self, Failed, refuse};
use anyhow::{Context, anyhow};
use clap::Subcommand;
use intact_document::Facts;
use intact_document::requirement::{DocumentKind, Requirement};
use intact_experiment::AxisError;
use intact_experiments::bench::Charts;
use intact_findings::check_requirement;
use intact_findings::fleet::{CampaignFacts, CheckGroups, Measured, TargetBench, outliers};
#[cfg(not(feature = "aws"))]
use intact_fleet::Counts;
#[cfg(feature = "aws")]
use intact_fleet::QueueError;
use intact_fleet::{
    Campaign, CheckResult, DeliveryResult, Kind, Manifest, Plan, PlanError, ReadSecret, Reference,
    Scheduler, Store, StoreError, StoreProgress, WorkerError,
};
use intact_ledger::Row;
use intact_report::{documents, json};
use intact_servers::check::CheckFacts;
use intact_traffic::timeline::Timeline;
use std::path::Path;
use std::process::ExitCode;

/// The same measurements at scale: a plan becomes messages, workers measure them, results go to a
/// store.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Act,
}

const EXAMPLES: &str = "Examples:
  # what will be sent, how long it takes
  intact fleet plan rig.toml
  # here: a folder as store, workers as processes
  intact fleet run rig.toml
  # an array job of a scheduler: a worker for each message
  intact fleet plan rig.toml --for kubernetes --store s3://bucket/rig
  intact fleet work rig.toml --store s3://bucket/rig --index 3
  intact fleet report s3://bucket/rig --report rig.html \\
    --require 'keepalive=on: p99 < 50ms'

A plan:
  name = \"rig\"
  repetitions = 10              # of each variant, per target and label
  duration = \"10m\"              # of each repetition
  slice = \"5m\"                  # of each message, so that a function's time limit holds
  labels = [\"eu-west-1\"]        # optional: regions, or any names of groups of workers
  [limits]
  requests = 200000             # to one target, over the whole campaign, repeated deliveries included
  rate = 100                    # requests a second to one target, over all workers
  workers = 4
  [[target]]
  name = \"origin\"
  url = \"https://origin.example/health\"
  i-own-this = \"origin.example\" # the host again: load on it is allowed
  measure = \"bench\"             # which is the default, or \"check\": the profile of the server, from each label
  [axes]                        # as in bench; their product are the variants of a bench
  http = [\"1.1\", \"2\"]
  tls = [\"1.2\", \"1.3\"]
  keepalive = [\"on\", \"off\"]";

#[derive(Subcommand)]
enum Act {
    /// Prints what a plan will send, and how long that takes
    #[command(
        after_help = "Examples:\n  intact fleet plan rig.toml\n  intact fleet plan rig.toml --json | jq .estimate.messages\n  intact fleet plan rig.toml --for slurm --store /shared/rig | sbatch"
    )]
    Plan {
        /// The plan (TOML); env:NAME: its text is in this variable
        plan: String,
        /// Print JSON
        #[arg(long, conflicts_with = "scheduler")]
        json: bool,
        /// Print the complete manifest of an array job: Kubernetes, AWS Batch, Slurm or GitHub
        /// Actions
        #[arg(long = "for", value_name = "SCHEDULER", requires = "store", value_parser = options::words(&Scheduler::ALL))]
        scheduler: Option<Scheduler>,
        /// The store of that job: a folder, or a URL such as s3://BUCKET/PREFIX
        #[arg(long, requires = "scheduler")]
        store: Option<String>,
        /// The image of that job
        #[arg(long, default_value = IMAGE, requires = "scheduler")]
        image: String,
    },
    /// Measure all messages with workers on this machine, report
    Run(run::Args),
    /// Measure one message, as a job of a scheduler
    Work(work::Args),
    /// Fill a queue of SQS, whose messages `intact fleet lambda` measures
    #[cfg(feature = "aws")]
    Send(send::Args),
    /// A worker as an AWS Lambda function that SQS feeds
    #[cfg(feature = "aws")]
    Lambda(lambda::Args),
    /// How far a campaign is
    #[command(
        after_help = "Examples:\n  intact fleet status fleet-rig-1a2b3c4d\n  intact fleet status s3://bucket/rig --queue sqs://rig"
    )]
    Status {
        /// The store: a folder, or a URL such as s3://BUCKET/PREFIX
        store: String,
        /// Which campaign, where the store has several
        #[arg(long, value_name = "ID")]
        plan: Option<String>,
        /// The queue, to count its messages: sqs://NAME
        #[cfg(feature = "aws")]
        #[arg(long)]
        queue: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// The report of a store
    #[command(
        after_help = "Examples:\n  intact fleet report fleet-rig-1a2b3c4d\n  intact fleet report s3://bucket/rig --report rig.html \\\n    --require 'keepalive=on: p99 < 50ms'"
    )]
    Report {
        /// The store: a folder, or a URL such as s3://BUCKET/PREFIX
        store: String,
        /// Which campaign, where the store has several
        #[arg(long, value_name = "ID")]
        plan: Option<String>,
        #[command(flatten)]
        shown: Shown,
    },
}

/// The image in manifests; each user's own has another name.
const IMAGE: &str = concat!("registry.example/intact:", env!("CARGO_PKG_VERSION"));

/// The most bytes of a plan.
const LARGEST_PLAN: u64 = 16 << 20;

/// What becomes of a report.
#[derive(clap::Args)]
struct Shown {
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    report: ReportFiles,
    /// A requirement for each target and label, may be repeated: 'keepalive=on: p99 < 50ms'; exit
    /// 1 if one fails; `help` lists what can be required
    #[arg(long, value_name = "EXPR")]
    require: Vec<String>,
}

/// Does what was asked.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failed> {
    match &args.command {
        Act::Plan {
            plan,
            json,
            scheduler,
            store,
            image,
        } => {
            let (plan, text) = load(plan)?;
            if let (Some(scheduler), Some(store)) = (scheduler, store) {
                let manifest = Manifest {
                    plan: &plan,
                    text: &text,
                    store,
                    image,
                };
                console::print(&manifest.write(*scheduler).map_err(Failed::usage)?);
            } else if *json {
                super::json::print(&intact_fleet::plan_json(&plan).context("--json")?);
            } else {
                console::print(&intact_fleet::plan_page(&plan));
            }
            Ok(ExitCode::from(exit::FINE))
        }
        Act::Run(args) => run::run(args),
        Act::Work(args) => work::run(args),
        #[cfg(feature = "aws")]
        Act::Send(args) => send::run(args),
        #[cfg(feature = "aws")]
        Act::Lambda(args) => lambda::run(args),
        Act::Status {
            store,
            plan,
            #[cfg(feature = "aws")]
            queue,
            json,
        } => {
            let seen = progress(store, plan.as_deref())?;
            #[cfg(feature = "aws")]
            let counts = queue
                .as_ref()
                .map(|queue| send::open_queue(queue)?.counts().map_err(own));
            #[cfg(not(feature = "aws"))]
            let counts: Option<Result<Counts, Failed>> = None;
            let counts = counts.transpose()?;
            if *json {
                super::json::print(&intact_fleet::status_json(seen, counts).context("--json")?);
            } else {
                console::print(&intact_fleet::status_page(&seen, counts.as_ref()));
            }
            Ok(ExitCode::from(exit::FINE))
        }
        Act::Report { store, plan, shown } => {
            let requirements = shown.begin()?;
            let store = open_existing(store)?;
            report(&store, plan.as_deref(), shown, &requirements)
        }
    }
}

impl Shown {
    /// The requirements, read before anything is sent.
    fn begin(&self) -> Result<Vec<Requirement>, Failed> {
        requirements::begin(&self.require, DocumentKind::Fleet)
    }
}

/// Prints the report of one campaign of a store, writes its page, compares it with the
/// requirements.
fn report(
    store: &Store,
    wanted: Option<&str>,
    shown: &Shown,
    requirements: &[Requirement],
) -> Result<ExitCode, Failed> {
    let plan = one_plan(store, wanted)?;
    let has_benches = targets(&plan, Kind::Bench).next().is_some();
    let places = targets(&plan, Kind::Check).flat_map(|target| {
        plan.labels
            .iter()
            .map(|label| (target.clone(), label.clone()))
    });
    let mut checks = CheckGroups::new(places, requirements);
    let mut add = |result: &DeliveryResult, checked: &CheckResult| {
        let exchanges = checked.waterfall.iter().cloned();
        let rows: Vec<Row> = exchanges.map(|one| Row::Exchange(Box::new(one))).collect();
        let facts = CheckFacts::of(&checked.profile, &result.tally, &rows);
        let place = (result.target.as_str(), result.label.as_str());
        checks.add(place, &result.message, &result.run, facts);
    };
    let campaign = Campaign::read(store, plan, jiff::Timestamp::now(), &mut add).map_err(unread)?;
    let facts = facts(campaign, &mut checks)
        .context("the plan of the store")
        .map_err(Failed::unreadable)?;
    // results hold counts and no single exchanges: the pages have no timeline
    let timeline = Timeline::of_variants();
    let benches = facts.benches.iter();
    let charts = benches.map(|one| Charts::new(&one.run, &one.tally, &one.facts, &timeline));
    let charts: Vec<Charts> = charts.collect();
    let mut pages = documents::campaign(&facts, &charts);
    if shown.json {
        super::json::print(&json::fleet(&facts).context("--json")?);
    } else {
        let paper = console::paper(shown.report.length());
        let pages = pages.iter();
        let pages = pages.map(|page| intact_report::terminal::write(page, paper));
        console::print_written(&pages.collect::<Vec<String>>().join("\n"));
    }
    pages.extend(documents::first_checks(&facts));
    shown.report.write(&pages)?;
    let messages = &facts.messages;
    let without = messages.planned.saturating_sub(messages.finished);
    let (mut kept, lines) = checks.judge(requirements, has_benches, without);
    for line in lines {
        console::note_lines(&line);
    }
    let of_benches: Vec<Requirement> = requirements
        .iter()
        .filter(|one| check_requirement(one, DocumentKind::Bench).is_ok())
        .cloned()
        .collect();
    for one in facts.benches.iter().filter(|_| !of_benches.is_empty()) {
        console::note(&format!("{} from {}:", one.target, one.label));
        kept &= requirements::hold(&of_benches, &one.facts);
    }
    let any_success =
        checks.any_success() || facts.benches.iter().any(|one| one.facts.any_success());
    Ok(ExitCode::from(if facts.messages.finished == 0 {
        exit::UNREADABLE
    } else if !any_success {
        exit::UNREACHABLE
    } else if kept {
        exit::FINE
    } else {
        exit::REQUIREMENT
    }))
}

/// The names of the targets that are measured so.
fn targets(plan: &Plan, kind: Kind) -> impl Iterator<Item = &String> {
    let of_kind = plan.targets.iter().filter(move |one| one.measure == kind);
    of_kind.map(|one| &one.name)
}

/// From what the store has to what it means.
fn facts(campaign: Campaign, checks: &mut CheckGroups<'_>) -> Result<CampaignFacts, AxisError> {
    let measured = campaign.messages.into_iter().map(|message| Measured {
        worker: message.worker,
        kind: message.of,
        mean_ms: message.mean_ms,
    });
    let groups = campaign.groups.into_iter();
    let benches = groups.map(|one| TargetBench::new(one.target, one.label, one.run, one.tally));
    Ok(CampaignFacts {
        plan: campaign.plan.id,
        messages: campaign.progress,
        outliers: outliers(&measured.collect::<Vec<_>>()),
        benches: benches.collect::<Result<_, _>>()?,
        checks: checks.take(),
    })
}

fn one_plan(store: &Store, wanted: Option<&str>) -> Result<Plan, Failed> {
    let mut plans = store.plans().map_err(unread)?;
    let ids: Vec<String> = plans.iter().map(|plan| plan.id.clone()).collect();
    if let Some(wanted) = wanted {
        plans.retain(|plan| plan.id == wanted || plan.name == wanted);
    }
    if plans.len() > 1 {
        refuse!(
            "the store has several campaigns: name one with --plan: {}",
            ids.join(", ")
        );
    }
    plans.pop().ok_or_else(|| {
        Failed::unreadable(anyhow!(if ids.is_empty() {
            "the store has no campaign".to_owned()
        } else {
            format!("the store has no such campaign; it has {}", ids.join(", "))
        }))
    })
}

/// A plan and its text, from a file or a variable.
fn load(place: &str) -> Result<(Plan, String), Failed> {
    let path = Path::new(place);
    let text = match place.strip_prefix("env:") {
        Some(name) => secrets::WorkerSecrets
            .read(&Reference::Env(name.to_owned()))
            .map_err(|reason| anyhow!("{place}: {reason}")),
        None => intact_ledger::input_file::read_text(path, LARGEST_PLAN)
            .with_context(|| format!("cannot read {place}")),
    };
    let text = text.map_err(Failed::usage)?;
    let plan = intact_fleet::parse(path, &text).map_err(|error: PlanError| Failed::usage(error))?;
    for warning in plan.warnings() {
        console::note(&format!("{place}: {warning}"));
    }
    Ok((plan, text))
}

fn open_store(name: &str) -> Result<Store, Failed> {
    Store::open(name).map_err(|error| match error {
        StoreError::Name(_) => Failed::usage(error),
        other => own(other),
    })
}

/// Opens a store to read it: opening a folder would make it.
fn open_existing(name: &str) -> Result<Store, Failed> {
    let folder = Path::new(name);
    if name.contains("://") {
        return open_store(name);
    }
    if !folder.is_dir() {
        return Err(Failed::unreadable(anyhow!("{name}: no such folder")));
    }
    open_store(name)
}

/// How far a campaign of a store is.
fn progress(store: &str, plan: Option<&str>) -> Result<StoreProgress, Failed> {
    let store = open_existing(store)?;
    let plan = one_plan(&store, plan)?;
    StoreProgress::list(&store, &plan).map_err(unread)
}

/// A store that cannot be read.
fn unread(error: StoreError) -> Failed {
    match error {
        StoreError::Forbidden(_) => Failed::forbidden(error),
        other => Failed::unreadable(other),
    }
}

/// A queue or store that does not do what was asked of it.
fn own(error: impl Into<anyhow::Error>) -> Failed {
    let error = error.into();
    let store = match error.downcast_ref::<WorkerError>() {
        Some(WorkerError::Store(error)) => Some(error),
        _ => error.downcast_ref(),
    };
    #[cfg(feature = "aws")]
    let is_forbidden = matches!(error.downcast_ref(), Some(QueueError::Forbidden(_)));
    #[cfg(not(feature = "aws"))]
    let is_forbidden = false;
    if is_forbidden || matches!(store, Some(StoreError::Forbidden(_))) {
        Failed::forbidden(error)
    } else if matches!(store, Some(StoreError::Absent(_)))
        || matches!(error.downcast_ref(), Some(WorkerError::Secret(_)))
    {
        Failed::usage(error)
    } else {
        Failed::from(error)
    }
}

/// The documents of `intact fleet --json`.
#[cfg(feature = "schema")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(untagged))]
#[expect(dead_code, reason = "only the schema is derived from it")]
enum FleetDocument<'a> {
    Report(json::FleetDocument<'a>),
    Plan(intact_fleet::PlanDocument<'a>),
    Status(intact_fleet::StatusDocument),
}

/// The schema of the documents.
#[cfg(feature = "schema")]
pub(crate) fn schema() -> schemars::Schema {
    intact_report::schema::of::<FleetDocument<'_>>(
        json::FLEET_SCHEMA,
        "`intact fleet report`, `run`, `plan` (`intact.fleet-plan/1`) and `status` (`intact.fleet-status/1`)",
    )
}
