//! `cargo xtask clients`: measures the clients of the catalogue against `intact serve` and writes
//! `clients/measured.json`. Measures proxies and servers, with `intact serve` behind them. With
//! `--check` it compares these files with a new measurement.

mod catalogue_run;
mod check;
mod client_traits;
mod closed_loop;
mod environment;
mod hops;
mod idle_survival;
mod lifetime;
mod lock;
mod measure;
mod name_server;
mod namespace;
mod peer;
mod program;
mod server;
mod under_faults;
mod watch_counts;

use crate::tally::Tally;
pub(crate) use environment::install_runtimes;
pub(crate) use namespace::{Args as NamespaceArgs, run as run_in_namespace};
pub(crate) use server::Server;

use crate::tool;
use anyhow::{Context, bail};
use catalogue_run::{CatalogueRun, read, refresh_snippets, snippet};
use environment::{Environment, Launch};
use intact_fix::{Catalogue, Client, Measurement, Role, Variant};
use measure::{Bench, Part, Watching};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// Measures the clients of the catalogue.
#[derive(Clone, Default, clap::Args)]
pub(crate) struct Args {
    /// Clients, proxies and servers to measure, or CLIENT/VARIANT; none: all
    names: Vec<String>,
    /// Compare the catalogue with a new measurement, and write nothing
    #[arg(long)]
    check: bool,
    /// Print what is measured as JSON, and write nothing
    #[arg(long, conflicts_with = "check")]
    show: bool,
    /// Only the clients that need little to be installed, and of each the newest runtime
    #[arg(long)]
    quick: bool,
    /// Measure only this part again, and keep the rest of what was measured
    #[arg(long, value_name = "PART", conflicts_with_all = ["check", "show"])]
    only: Option<Part>,
    /// Watch idle connections for 130 s instead of 7
    #[arg(long)]
    full: bool,
    /// Instead: make 100 requests with pauses around SECONDS to a server with this idle limit
    #[arg(long, value_name = "SECONDS", conflicts_with_all = ["check", "show", "full"])]
    survive: Option<f64>,
    /// Instead: run the clients under `intact watch`; compare its counts with the server's, and
    /// the clients' output with their output without it
    #[arg(long, conflicts_with_all = ["check", "show", "full", "only", "survive"])]
    watched: bool,
    /// Instead: run the clients under `intact watch`, and check that the gate which its page prints
    /// fails for a client that wastes connections and passes for the remedy
    #[arg(long = "loop", conflicts_with_all = ["check", "show", "full", "only", "survive", "watched"])]
    closes: bool,
    /// Copy the snippets of programs whose marks have moved, without measuring; verify the result
    /// with --check
    #[arg(long)]
    snippets: bool,
    /// Instead: print how each program is started, as a line of JSON (words, folder, variables)
    #[arg(long, conflicts_with_all = ["check", "show", "full", "only", "survive", "watched", "snippets"])]
    commands: bool,
    /// Variants measured at a time
    #[arg(long, default_value_t = 2)]
    jobs: usize,
}

impl Args {
    /// How long idle connections are watched.
    fn idle_for(&self) -> Duration {
        Duration::from_secs(if self.full { 130 } else { 7 })
    }

    /// The check of the catalogue: of all clients, or as CI does it for each change.
    pub(crate) fn check(all: bool) -> Args {
        Args {
            check: true,
            quick: !all,
            jobs: 4,
            ..Args::default()
        }
    }

    /// The checks: what each compares, and its arguments.
    pub(crate) fn checks(all: bool) -> [(&'static str, Args); 3] {
        let other = |names: &[&str]| Args {
            names: match all {
                true => Vec::new(),
                false => names.iter().map(|&name| name.to_owned()).collect(),
            },
            quick: !all,
            jobs: 2,
            ..Args::default()
        };
        let (watched, closes) = (true, true);
        [
            (
                "the catalogue of clients, compared with the clients:",
                Args::check(all),
            ),
            (
                "what `intact watch` counts, compared with servers and real clients:",
                Args {
                    watched,
                    ..other(&WATCHED)
                },
            ),
            (
                "printed gates, on clients that waste connections and on their remedies:",
                Args {
                    closes,
                    ..other(&LOOPS)
                },
            ),
        ]
    }
}

/// The variants with which CI checks that the loop closes: wasteful ones, of each cause, and such
/// as keep their connections. `cargo xtask clients --loop` takes all.
const LOOPS: [&str; 9] = [
    "curl/default",
    "fetch/default",
    "go-net-http/default",
    "go-net-http/per-call",
    "node-http/default",
    "node-http/new-agent",
    "node-http/per-request",
    "requests/default",
    "requests/session",
];

/// The clients with which CI checks the counts of `intact watch`. They differ in language, TLS
/// library, HTTP version and reuse.
const WATCHED: [&str; 15] = [
    "curl/many-urls",
    "wget/many-urls",
    "requests/session",
    "urllib3/pool-manager",
    "httpx/client",
    "aiohttp/session",
    "node-http/keepalive",
    "fetch/default",
    "axios/default",
    "aws-sdk-js-3/default",
    "aws-sdk-js-3/agent-false",
    "go-net-http/default",
    "java-net-http/default",
    "java-httpurlconnection/default",
    "reqwest/client",
];

/// One variant on one runtime.
#[derive(Clone, Copy)]
struct Job<'a> {
    client: &'a Client,
    variant: &'a Variant,
    runtime: Option<&'a str>,
}

impl<'a> Job<'a> {
    /// The smallest change that lets the same client keep connections: what `intact fix` prints.
    fn remedy(&self, catalogue: &Catalogue) -> Option<Job<'a>> {
        let client = self.client;
        let of = |role| client.variant(role);
        let keeps = |variant: &&Variant| {
            let mut measured = catalogue.of(client, variant);
            measured.any(|one| {
                (one.facts.plain.as_ref()).is_some_and(|load| load.sequential.is_reused())
            })
        };
        let named = |id: &String| client.variants.iter().find(|one| one.id == *id);
        let instead = self.variant.instead.as_ref().and_then(named);
        let default = || of(Role::Default).filter(keeps);
        let variant = instead.or_else(|| of(Role::Remedy)).or_else(default)?;
        Some(Job { variant, ..*self })
    }

    /// The name that the command line takes.
    fn plain_name(&self) -> String {
        format!("{}/{}", self.client.id, self.variant.id)
    }

    /// Whether the command line means it by this name.
    fn is(&self, name: &str) -> bool {
        name == self.client.id || name == self.plain_name()
    }

    fn name(&self) -> String {
        let name = self.plain_name();
        self.runtime
            .map_or(name.clone(), |version| format!("{name} on {version}"))
    }
}

/// Limit of differing claims that are measured again. If more differ, the machine's speed is not
/// the cause.
const MOST_AGAIN: usize = 8;

/// Measures all variants, several concurrently. Many results depend on timing, so differing
/// variants are measured again, one at a time. A variant fails only if it differs twice.
pub(crate) fn run(args: &Args) -> anyhow::Result<Tally> {
    let first = run_once(args)?;
    if !(args.check || args.watched || args.closes)
        || first.failed.is_empty()
        || first.failed.len() > MOST_AGAIN
    {
        return Ok(first);
    }
    let mut names = first.failed;
    names.sort_unstable();
    names.dedup();
    println!("again, one at a time: {}", names.join(", "));
    let mut second = run_once(&Args {
        names,
        jobs: 1,
        ..args.clone()
    })?;
    second.passed += first.passed;
    Ok(second)
}

fn run_once(args: &Args) -> anyhow::Result<Tally> {
    if args.snippets {
        return refresh_snippets();
    }
    let catalogue = read()?;
    let mut hop_names = Vec::new();
    let mut args = args.clone();
    for name in std::mem::take(&mut args.names) {
        match hops::is_hop(&name)? {
            true => hop_names.push(name),
            false => args.names.push(name),
        }
    }
    let is_all = args.names.is_empty() && hop_names.is_empty();
    let args = &args;
    let jobs = match hop_names.is_empty() || !args.names.is_empty() {
        true => choose(&catalogue, args)?,
        false => Vec::new(),
    };
    if args.commands {
        return print_commands(&jobs);
    }
    let intact = build()?;
    if let Some(seconds) = args.survive {
        let server_idle = Duration::try_from_secs_f64(seconds).context("--survive")?;
        return survive_all(&jobs, &intact, server_idle);
    }
    if args.watched {
        println!("| client | scheme | in turn: connections, requests | at once |");
        println!("| --- | --- | --- | --- |");
        let hold = |job: &Job<'_>| {
            let watched = watch_counts::hold(&intact, &launch_of(job, None)?)?;
            Ok(move || Ok(watched))
        };
        let done = Tally::default();
        return Ok(for_each(&jobs, args.jobs, done, hold, Tally::note_watched));
    }
    if args.closes {
        println!("| client | requests | connections | findings | printed gate | loop |");
        println!("| --- | --- | ---: | --- | --- | --- |");
        let close = |job: &Job<'_>| {
            let remedy = job
                .remedy(&catalogue)
                .map(|remedy| launch_of(&remedy, None));
            let launch = launch_of(job, None)?;
            let loops = closed_loop::close(&intact, &launch, remedy.transpose()?.as_ref())?;
            Ok(move || Ok(loops))
        };
        let done = Tally::default();
        return Ok(for_each(&jobs, args.jobs, done, close, Tally::note_loops));
    }
    let watching = Watching {
        how_long: args.idle_for(),
        only: args.only,
        // CI confirms what takes no waiting
        has_faults: !args.quick && matches!(args.only, None | Some(Part::Faults)),
    };
    let intact = &*intact;
    let measure = |job: &Job<'_>| {
        let launch = launch_of(job, None)?;
        let mut measured = measure_one(job, &launch, intact, args)?;
        Ok(move || {
            let launch = &launch;
            measure::watch(&Bench { intact, launch }, &mut measured.facts, watching)?;
            Ok(measured)
        })
    };
    let catalogue_run = CatalogueRun {
        catalogue: catalogue.clone(),
        done: Tally::default(),
    };
    let note = |run: &mut CatalogueRun, job: &Job<'_>, measured| run.note(job, measured, args);
    let mut done = for_each(&jobs, args.jobs, catalogue_run, measure, note).done;
    if args.only.is_some() || !is_all && hop_names.is_empty() {
        return Ok(done);
    }
    done.add(hops::run(intact, &hop_names, args)?);
    Ok(done)
}

/// Installs and builds each program, and prints how it is started.
fn print_commands(jobs: &[Job<'_>]) -> anyhow::Result<Tally> {
    for job in jobs {
        let launch = launch_of(job, None)?;
        let mut line = serde_json::to_value(launch)?;
        line["name"] = job.name().into();
        println!("{line}");
    }
    Ok(Tally::default())
}

/// Prints for each variant how many of a hundred requests it lost. Limits are set as `intact fix
/// --server-idle` says.
fn survive_all(jobs: &[Job<'_>], intact: &Path, server_idle: Duration) -> anyhow::Result<Tally> {
    let mut done = Tally::default();
    for job in jobs {
        let idle = intact_fix::client_idle(server_idle).as_millis() as u64;
        let launch = launch_of(job, Some(idle))?;
        let survived = idle_survival::survive(intact, &launch, server_idle)?;
        let lost = survived.errors.len();
        println!(
            "{}: {} of {} answered on {} connections{}",
            job.name(),
            survived.answered,
            survived.answered + lost,
            survived.connections,
            survived
                .errors
                .first()
                .map_or(String::new(), |error| format!("; lost to {error}")),
        );
        if lost == 0 || job.variant.role != Role::Limit {
            done.passed += 1;
        } else {
            done.failed.push(job.plain_name());
        }
    }
    Ok(done)
}

/// Runs each variant, several concurrently. `run` gives the part of the work that takes no CPU: the
/// next variant runs meanwhile. `note` takes in and prints what that gives.
fn for_each<One: Sync, State: Send, Rest: FnOnce() -> anyhow::Result<Done> + Send, Done>(
    jobs: &[One],
    threads: usize,
    state: State,
    run: impl Fn(&One) -> anyhow::Result<Rest> + Sync,
    note: impl Fn(&mut State, &One, anyhow::Result<Done>) + Sync,
) -> State {
    let (queue, state) = (Mutex::new(jobs.iter()), Mutex::new(state));
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let take_in = |job, done| {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        note(&mut state, job, done);
    };
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                while let Some(job) = next() {
                    let ran = run(job);
                    let take_in = &take_in;
                    scope.spawn(move || take_in(job, ran.and_then(|rest| rest())));
                }
            });
        }
    });
    state.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Installs and builds what a variant needs, one at a time: variants of one client share its
/// folder.
/// `idle_ms`: the client's idle limit, if it is set.
fn launch_of(job: &Job<'_>, idle_ms: Option<u64>) -> anyhow::Result<Launch> {
    let _alone = lock::take(lock::FOLDERS)?;
    Environment::prepare(job.client, job.runtime)?.launch(job.client, job.variant, idle_ms)
}

fn measure_one(
    job: &Job<'_>,
    launch: &Launch,
    intact: &Path,
    args: &Args,
) -> anyhow::Result<Measurement> {
    let bench = Bench { intact, launch };
    let (about, facts) = match args.only {
        Some(part) => measure::measure_part(&bench, part)?,
        None => measure::measure(&bench)?,
    };
    Ok(Measurement {
        client: job.client.id.clone(),
        variant: job.variant.id.clone(),
        versions: about.versions,
        date: jiff::Zoned::now().date().to_string(),
        snippet: snippet(job.client, job.variant)?,
        facts,
    })
}

fn choose<'a>(catalogue: &'a Catalogue, args: &Args) -> anyhow::Result<Vec<Job<'a>>> {
    let mut jobs = Vec::new();
    for client in &catalogue.clients {
        for variant in &client.variants {
            let job = Job {
                client,
                variant,
                runtime: None,
            };
            let is_wanted = match args.names.is_empty() {
                true => client.quick || !args.quick || catalogue.is_recommended(client, variant),
                false => args.names.iter().any(|name| job.is(name)),
            };
            let runtimes = client.runtimes.iter().map(|version| Some(version.as_str()));
            let mut runtimes: Vec<_> = runtimes.collect();
            if runtimes.is_empty() {
                runtimes.push(None);
            }
            // the newest is the last
            let skipped = if args.quick { runtimes.len() - 1 } else { 0 };
            let each = runtimes.into_iter().skip(skipped);
            let each = each.map(|runtime| Job { runtime, ..job });
            jobs.extend(each.filter(|_| is_wanted));
        }
    }
    for name in &args.names {
        if !jobs.iter().any(|job| job.is(name)) {
            bail!("clients/catalogue.toml has no {name}");
        }
    }
    Ok(jobs)
}

/// Where the program is named that the tests were built with.
pub(crate) const BUILT: &str = "INTACT_BUILT";

static BUILT_PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Keeps the path of `intact`, which was just built.
pub(crate) fn set_built(program: PathBuf) {
    let _ = BUILT_PROGRAM.set(program);
}

/// The path of `intact`, if it was just built.
pub(crate) fn built() -> Option<PathBuf> {
    let named = std::env::var_os(BUILT).map(PathBuf::from);
    BUILT_PROGRAM.get().cloned().or(named)
}

/// Builds `intact`, and `xtask` next to it, unless that was just done. Returns its path.
pub(crate) fn build() -> anyhow::Result<PathBuf> {
    if let Some(program) = built() {
        return Ok(program);
    }
    tool::output(tool::cargo().args(["build", "--quiet", "-p", "intact", "-p", "xtask"]))?;
    let own = std::env::current_exe()?;
    own.ancestors()
        .map(|folder| folder.join("intact"))
        .find(|program| program.is_file())
        .context("intact is not next to xtask in the target folder")
}

#[cfg(test)]
mod tests;
