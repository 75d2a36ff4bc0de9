//! `intact lambda -- CMD`: a function on a local platform, cold, hot and frozen.

mod behind;
mod functions;
mod output;
mod recording;

use super::gates::Gates;
use super::head::{self, fingerprint_key};
use super::link::Server;
use super::page::{PageFile, page_file};
use super::watch::{Keys, key_logging};
use crate::exit::{self, Failed};
use crate::interrupt::Interrupt;
use anyhow::{Context, anyhow};
use behind::Near;
use findings::lambda::UNWATCHED;
use findings::requirement::Document;
use lambda::{Freezer, Function, Gate, LambdaError, NoGate, Place, Plan, Platform, Shape, Watcher};
use ledger::{Caveat, Event, Rows, Run, Sink, Vantage, Variant, order};
use link::Spec;
use recording::Recording;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// What do cold starts, hot calls and the freeze in between do to my function?
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Invocations of each variant, over all rounds
    #[arg(long, short = 'n', default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..), help_heading = "Invoking")]
    invocations: u64,
    /// What each invocation is given: JSON, or a file with it
    #[arg(
        long,
        value_name = "JSON|FILE",
        conflicts_with = "event_shape",
        help_heading = "Invoking"
    )]
    event: Option<String>,
    /// An event that is built in
    #[arg(long, value_enum, help_heading = "Invoking")]
    event_shape: Option<EventShape>,
    /// How long the function rests, frozen, before an invocation; several are taken in turn
    #[arg(long, value_name = "TIME,..", value_delimiter = ',', default_value = "0s", value_parser = super::bench::time, help_heading = "Invoking")]
    idle: Vec<Duration>,
    /// What stands still while it rests [default: machine on a link, else processes]
    #[arg(long, value_enum, help_heading = "Invoking")]
    freeze: Option<Freeze>,
    /// How processes are made to stand still [default: cgroup where a control group may be made, else signals]
    #[arg(long, value_enum, help_heading = "Invoking")]
    freezer: Option<FreezerKind>,
    /// Idle times pass this many times faster than they say. Only where neither side gives up connections by a timer of its own: the run is
    /// marked
    #[arg(long, value_name = "FACTOR", value_parser = factor, help_heading = "Invoking")]
    time_scale: Option<f64>,
    /// Environments at once: so many invocations begin together
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=256), help_heading = "Invoking")]
    concurrency: u64,
    /// The share of one processor that each environment gets, or the memory (512MB) that buys it on Lambda: 1769 MB are one processor
    #[arg(long, value_name = "SHARE|MEMORY", value_parser = share, help_heading = "Invoking")]
    memory_cpu: Option<f64>,
    /// A new environment (a cold start) after so many invocations; each round begins with one in any case
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Invoking")]
    cold_every: Option<u64>,
    /// The function's limit
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = super::bench::time, help_heading = "Invoking")]
    timeout: Duration,
    /// The limit until it asks for its first event
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = super::bench::time, help_heading = "Invoking")]
    init_timeout: Duration,
    /// `_HANDLER`, for runtime clients that read it: app.handler
    #[arg(long, value_name = "NAME", help_heading = "Invoking")]
    handler: Option<OsString>,
    /// CMD is no runtime client but serves HTTP at the port that PORT tells: each invocation is a request to it (GET, with an event POST)
    #[arg(long, conflicts_with = "handler", help_heading = "Invoking")]
    http: bool,
    /// What --http asks for
    #[arg(
        long,
        value_name = "PATH",
        default_value = "/",
        requires = "http",
        help_heading = "Invoking"
    )]
    path: String,
    /// Put the function behind an emulated link, with our own server on the other side (INTACT_URL, INTACT_TLS_URL, INTACT_CA);
    /// `intact link --help` has the words: rtt=30ms
    #[arg(long, value_name = "SPEC", help_heading = "Link")]
    link: Option<Spec>,
    /// Run this shell command on the other side instead
    #[arg(long, value_name = "CMD", requires = "link", help_heading = "Link")]
    server: Option<String>,
    /// The port on which --server listens, and which is waited for [default: 80 or 443]
    #[arg(long, value_name = "PORT", requires = "server", help_heading = "Link")]
    port: Option<u16>,
    /// For our own use: the function is to run here, on the client side
    #[arg(long, hide = true)]
    linked: bool,
    /// Variants by their environment variables, each a word: --variants 'KEEPALIVE=0' 'KEEPALIVE=1 CACHE=1'; the first is what the others
    /// are held against
    #[arg(long, value_name = "KEY=VALUE ..", num_args = 1.., help_heading = "Comparing")]
    variants: Vec<String>,
    /// Rounds over which the invocations of each variant are spread, the variants in turn; from 8 on differences have intervals
    /// [default: 1, with several variants 10]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..), help_heading = "Comparing")]
    rounds: Option<u32>,
    /// Seed of the order of the variants
    #[arg(long, help_heading = "Comparing")]
    seed: Option<u64>,
    /// Whether the function's connections are followed, by a relay as `intact watch` does it
    #[arg(long, value_enum, default_value_t = OnOff::On, help_heading = "Invoking")]
    watch: OnOff,
    /// Keep the ledger in a new folder: invocations, connections, requests
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    ledger: Option<PathBuf>,
    /// Print JSON instead of the page, or write it to a file
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-", help_heading = "Output")]
    json: Option<PathBuf>,
    /// Write a row for each invocation
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    csv: Option<PathBuf>,
    /// Write the report as one page: .html works anywhere, .md is for a pull request or a CI summary
    #[arg(long, value_name = "FILE", value_parser = page_file, help_heading = "Output")]
    report: Option<PageFile>,
    #[command(flatten)]
    gates: Gates,
    /// The runtime client, or a program that speaks the Runtime API; several after a -- each are variants
    #[arg(required_unless_present = "require", last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum OnOff {
    On,
    Off,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Freeze {
    /// The processes are stopped, and the link drops everything: nobody answers for the function. Needs --link
    Machine,
    /// The processes are stopped; the kernel goes on and takes a server's FIN
    Processes,
    /// Nothing
    Off,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum FreezerKind {
    /// SIGSTOP to one process after the other
    Signals,
    /// A control group, all at once
    Cgroup,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum EventShape {
    /// A GET of an API Gateway HTTP API, format 2.0
    Apigw,
    /// One message of a queue
    Sqs,
}

const EXAMPLES: &str = "Examples:
  intact lambda --handler app.handler -- python3 -m awslambdaric app.handler
  intact lambda -n 100 --idle 0s,30s --handler index.handler -- npx aws-lambda-ric index.handler
  intact lambda --http --idle 0s,30s -- npm start
  intact lambda -n 1000 --variants 'KEEPALIVE=0' 'KEEPALIVE=1' -- ./bootstrap
  intact lambda --link rtt=30ms --idle 5s -- ./bootstrap
  intact lambda --link rtt=30ms,nat-idle=3s:silent --server 'nginx -c $PWD/n.conf' --idle 5s --timeout 10s -- ./bootstrap
  intact lambda --cold-every 10 --csv calls.csv -- ./before -- ./after

The function finds AWS_LAMBDA_RUNTIME_API and the other variables of Lambda; what it prints goes to standard error. Between
invocations it is stopped with SIGSTOP. That alone lets the kernel go on, which takes a server's FIN meanwhile; on a link nothing
passes either, and with nat-idle=TIME:silent the path forgets the connections too.

Exit code: 0; 3 when no invocation was answered; 127 not found, 126 not runnable, 125 own failure, 4 a link is not permitted here; 128+n after signal n,
what was measured until then being told";

/// Invokes, then prints the page.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failed> {
    if args.gates.list_if_asked(Document::Lambda) {
        return Ok(ExitCode::from(exit::FINE));
    }
    let own = |error: anyhow::Error| Failed::wrapper(exit::OWN_FAILURE, error);
    let requirements = args.gates.parse(Document::Lambda)?;
    let mut functions = functions::parse(&args.command, &args.variants, args.handler.as_ref())?;
    for (_, function) in &mut functions {
        function.serves = args.http.then(|| args.path.clone());
    }
    let plan = plan(args)?;
    let freeze = freeze(args)?;
    if let (Some(spec), false) = (&args.link, args.linked) {
        return behind::run(spec, server(args));
    }
    let interrupt = Interrupt::listen().map_err(own)?;
    let mut run = head(args, functions.iter().map(|(variant, _)| variant.clone()));
    let mut near = args
        .linked
        .then(|| Near::open(freeze == Freeze::Machine))
        .transpose()
        .map_err(own)?;
    if let Some(near) = &near {
        near.describe(&mut run);
    }
    let mut recording = Recording::start(&run, args).map_err(own)?;
    for caveat in caveats(args, freeze, &plan) {
        recording.record(Event::Caveat(&caveat));
    }
    let mut no_gate = NoGate;
    let gate: &mut dyn Gate = match &mut near {
        Some(near) => near,
        None => &mut no_gate,
    };
    invoke(
        args,
        &run,
        &functions,
        &plan,
        gate,
        &interrupt,
        &mut recording,
    )?;
    if let Some(near) = &mut near {
        for caveat in near.caveats().map_err(own)? {
            recording.record(Event::Caveat(&caveat));
        }
    }
    let facts = recording.finish();
    output::write(args, &run, &facts).map_err(own)?;
    let kept = args.gates.hold(&requirements, &run, &facts).map_err(own)?;
    Ok(ExitCode::from(match interrupt.signal() {
        Some(signal) => exit::by_signal(signal),
        None if facts.counts.ok == 0 => exit::UNREACHABLE,
        None if !kept => exit::REQUIREMENT,
        None => exit::FINE,
    }))
}

/// What follows the connections of an environment is told.
#[derive(clap::Args)]
pub(crate) struct WatcherArgs {
    /// The function
    #[arg(required = true, last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// Runs a function for the platform that started us.
pub(crate) fn follow(args: WatcherArgs) -> Result<ExitCode, Failed> {
    let keys = key_logging(Keys::Auto);
    let code = lambda::follow(args.command, keys)
        .context("no platform has started this")
        .map_err(Failed::usage)?;
    Ok(ExitCode::from(code))
}

/// All rounds of all variants, in an order of their own each, until a signal comes.
fn invoke(
    args: &Args,
    run: &Run,
    functions: &[(Variant, Function)],
    plan: &Plan,
    gate: &mut dyn Gate,
    interrupt: &Interrupt,
    recording: &mut Recording,
) -> Result<(), Failed> {
    let rounds = rounds(args, functions.len());
    let orders = order::balanced(functions.len(), rounds as usize, run.seed.unwrap_or(0));
    let mut platform = Platform::new(Instant::now(), gate);
    for (round, order) in (1u32..).zip(orders) {
        // what does not divide evenly is spread over the first rounds
        let extra = u64::from(u64::from(round) <= args.invocations % u64::from(rounds));
        let mut plan = plan.clone();
        plan.invocations = args.invocations / u64::from(rounds) + extra;
        for index in order {
            let over = || interrupt.signal().is_some();
            let variant = index as u32;
            recording.turn(variant, round, rounds);
            platform
                .run(
                    &functions[index].1,
                    &plan,
                    Place { variant, round },
                    &over,
                    recording,
                )
                .map_err(not_run)?;
        }
    }
    Ok(())
}

/// What stands still while the function rests.
fn freeze(args: &Args) -> Result<Freeze, Failed> {
    let on_link = args.link.is_some();
    match args.freeze {
        Some(Freeze::Machine) if !on_link => Err(Failed::usage(anyhow!(
            "--freeze machine needs a link that drops what is sent to it: --link rtt=30ms"
        ))),
        Some(told) => Ok(told),
        None if on_link => Ok(Freeze::Machine),
        None => Ok(Freeze::Processes),
    }
}

fn server(args: &Args) -> Server {
    match &args.server {
        None => Server::Builtin(Vec::new()),
        Some(command) => Server::Command {
            command: command.clone(),
            port: args.port,
        },
    }
}

fn rounds(args: &Args, variants: usize) -> u32 {
    let default = if variants > 1 { 10 } else { 1 };
    let most = u32::try_from(args.invocations).unwrap_or(u32::MAX);
    args.rounds.unwrap_or(default).min(most)
}

fn plan(args: &Args) -> Result<Plan, Failed> {
    let event = match (&args.event, args.event_shape) {
        (Some(told), _) => lambda::Event(event(told)?),
        (None, Some(EventShape::Apigw)) => Shape::ApiGateway.into(),
        (None, Some(EventShape::Sqs)) => Shape::Sqs.into(),
        (None, None) => Shape::Empty.into(),
    };
    if let (Some(_), Some(spec)) = (args.time_scale, &args.link)
        && spec.nat.is_some()
    {
        return Err(Failed::usage(anyhow!(
            "--time-scale beside nat-idle: the path has an idle limit of its own, which does not pass faster"
        )));
    }
    Ok(Plan {
        invocations: args.invocations,
        event,
        timeout: args.timeout,
        init_timeout: args.init_timeout,
        cold_every: args.cold_every,
        idle: args.idle.clone(),
        time_scale: args.time_scale.unwrap_or(1.0),
        freezer: (args.freeze != Some(Freeze::Off)).then(|| match args.freezer {
            Some(FreezerKind::Signals) => Freezer::Signals,
            Some(FreezerKind::Cgroup) => Freezer::ControlGroup,
            None => Freezer::best(),
        }),
        cpu_share: args.memory_cpu,
        concurrency: args.concurrency,
        watcher: match args.watch {
            OnOff::Off => None,
            OnOff::On => {
                Some(watcher().map_err(|error| Failed::wrapper(exit::OWN_FAILURE, error))?)
            }
        },
    })
}

/// For clap: how many times faster.
fn factor(word: &str) -> Result<f64, String> {
    let factor = word
        .parse()
        .ok()
        .filter(|factor| (1.0..=1e6).contains(factor));
    factor.ok_or_else(|| "a number from 1 on: --time-scale 10".to_owned())
}

/// For clap: a share of one processor, or the memory that buys it on Lambda.
fn share(word: &str) -> Result<f64, String> {
    const WHOLE: f64 = 1769.0;
    let number = |word: &str| word.trim().parse::<f64>().ok();
    let share = match word.strip_suffix("MB") {
        Some(memory) => number(memory).map(|memory| memory / WHOLE),
        None => number(word),
    };
    share
        .filter(|share| *share > 0.0 && *share <= 64.0)
        .ok_or_else(|| "a share of a processor (0.25) or an amount of memory (512MB)".to_owned())
}

/// Ourselves, to be started again above each environment.
fn watcher() -> anyhow::Result<Watcher> {
    let program = super::builtin::ourselves()?.get_program().to_owned();
    let words = ["lambda-watcher", "--"].map(OsString::from);
    Ok(Watcher {
        command: std::iter::once(program).chain(words).collect(),
        fingerprint_key: fingerprint_key()?,
    })
}

/// JSON as it is, or what is in a file.
fn event(told: &str) -> Result<Vec<u8>, Failed> {
    let is_json = |bytes: &[u8]| serde_json::from_slice::<serde_json::Value>(bytes).is_ok();
    if is_json(told.as_bytes()) {
        return Ok(told.as_bytes().to_vec());
    }
    match std::fs::read(told) {
        Ok(bytes) if is_json(&bytes) => Ok(bytes),
        Ok(_) => Err(Failed::unreadable(anyhow!(
            "--event {told}: the file holds no JSON"
        ))),
        Err(error) => Err(Failed::usage(anyhow!(
            "--event {told}: neither JSON nor a file ({error})"
        ))),
    }
}

fn head(args: &Args, variants: impl Iterator<Item = Variant>) -> Run {
    let mut argv = head::words();
    // said by ourselves, on the link's client side
    argv.retain(|word| !(args.linked && word == "--linked"));
    let mut head = head::with_words("lambda", Vantage::Middle, &argv);
    let seed = args.seed;
    head.rows = Rows::All;
    head.seed = Some(seed.unwrap_or_else(head::seed));
    head.variants = variants.collect();
    head
}

/// What a person would otherwise believe.
fn caveats(args: &Args, freeze: Freeze, plan: &Plan) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    let mut tell = |id: &str, words: &str| {
        caveats.push(Caveat {
            id: id.to_owned(),
            words: words.to_owned(),
        });
    };
    if args.watch == OnOff::Off {
        tell(
            UNWATCHED,
            "nobody followed the function's connections (--watch off): what died in a freeze is not told",
        );
    }
    if let Some(factor) = args.time_scale {
        tell(
            "time-scaled",
            &format!(
                "idle times passed {factor} times faster than they say: what gives up connections by a timer did not, so these figures are no measure of idle limits and are not for the catalogue of clients"
            ),
        );
    }
    if args.memory_cpu.is_some() && !Plan::can_share_cpu() {
        tell(
            "cpu-not-limited",
            "--memory-cpu: no control group may be made here, so the function had the whole processor",
        );
    }
    let rests = args.idle.iter().any(|idle| !idle.is_zero());
    let by = match plan.freezer {
        Some(Freezer::ControlGroup) => "by a control group",
        Some(Freezer::Signals) | None => "by SIGSTOP",
    };
    match freeze {
        Freeze::Processes if rests => tell(
            "emulated-freeze",
            &format!(
                "the function was stopped {by} and the kernel below it went on: it took a FIN meanwhile, and the monotonic clock ran; a paused virtual machine may miss both"
            ),
        ),
        Freeze::Machine if rests => tell(
            "emulated-freeze",
            &format!(
                "the function was stopped {by} and cut off from the network; the kernel's clock ran on meanwhile, which may differ on Lambda: timers of the client were due at the thaw"
            ),
        ),
        Freeze::Off | Freeze::Processes | Freeze::Machine => {}
    }
    caveats
}

fn not_run(error: LambdaError) -> Failed {
    let code = match error {
        LambdaError::NotFound(_) => exit::NOT_FOUND,
        LambdaError::NotRunnable { .. } => exit::NOT_RUNNABLE,
        LambdaError::Freezer(ref error) if error.kind() == ErrorKind::PermissionDenied => {
            exit::NOT_PERMITTED
        }
        LambdaError::Cpu(_) | LambdaError::Refused(_) => exit::NOT_PERMITTED,
        LambdaError::Listen(_)
        | LambdaError::Freezer(_)
        | LambdaError::Watcher(_)
        | LambdaError::Gate(_) => exit::OWN_FAILURE,
    };
    Failed::wrapper(code, error)
}
