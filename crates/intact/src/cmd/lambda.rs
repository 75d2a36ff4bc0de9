//! `intact lambda -- CMD`: a function on a local platform, cold, warm and frozen; with `--fault`
//! under faults that strike across a freeze, and the page is the card of `watch --fault`.

mod args;
mod faults;
mod functions;
mod on_link;
mod recording;

use super::conclusion::Conclusion;
use super::fault_options;
use super::link::Server;
use super::on_link::Near;
use super::run_header::{self, fingerprint_key};
use super::watch::{Keys, key_logging};
use crate::console;
use crate::exit::{self, Failed, refuse};
use crate::interrupt::Interrupt;
use anyhow::{Context, anyhow};
pub(crate) use args::Args;
use args::{EventShape, Freeze, FreezerKind};
use intact_document::requirement::DocumentKind;
use intact_experiment::order;
use intact_findings::{Document, Parts};
use intact_lambda::{
    FreezeHook, Freezer, Function, LambdaError, NoGate, Plan, Platform, RunPosition, Watcher,
};
use intact_ledger::{
    Event, Evidence, FaultEvent, Producer, Rows, Run, Sink, Vantage, Variant, input_file,
    private_file, redact,
};
use intact_servers::fault::AXIS;
use intact_watch::{FaultConfig, Mode};
use on_link::LinkFreeze;
use recording::Recording;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// All that a run of a function depends on.
pub(crate) type Config = super::config::Config<Args>;

/// Invokes, then prints the page; on a link in a process of its own.
pub(crate) fn run(config: Config) -> Result<ExitCode, Failed> {
    let args = &config.options;
    args.gates.begin(document(args))?;
    if let Some(spec) = args.link.clone() {
        // a mistake in the options is found before the link is made
        turns(args)?;
        plan(args)?;
        freeze(args)?;
        let server = Server::new(args.server.clone(), args.port, None);
        return on_link::run(&spec, server, config);
    }
    measure(&config, None)
}

/// What the page is about.
fn document(args: &Args) -> DocumentKind {
    match args.faults.is_any() {
        true => DocumentKind::Fault,
        false => DocumentKind::Lambda,
    }
}

/// Measures on the client side of a link.
pub(super) fn run_on_link(config: &Config, near: Near) -> Result<ExitCode, Failed> {
    let drops = freeze(&config.options)? == Freeze::Machine;
    measure(config, Some(LinkFreeze { near, drops }))
}

fn measure(config: &Config, mut on_link: Option<LinkFreeze>) -> Result<ExitCode, Failed> {
    let args = &config.options;
    let conclusion = Conclusion::begin(args.output.clone(), &args.gates, document(args))?;
    let turns = turns(args)?;
    let plan = plan(args)?;
    let freeze = freeze(args)?;
    let interrupt = Interrupt::listen()?;
    let mut run = head(config, turns.iter().map(|turn| turn.variant.clone()));
    if let Some(LinkFreeze { near, .. }) = &on_link {
        near.describe(&mut run);
    }
    let mut recording = Recording::start(&run, args)?;
    for caveat in plan.caveats(freeze == Freeze::Machine) {
        recording.record(Event::Caveat(&caveat));
    }
    let mut no_gate = NoGate;
    let gate: &mut dyn FreezeHook = match &mut on_link {
        Some(on_link) => on_link,
        None => &mut no_gate,
    };
    invoke(args, &run, &turns, &plan, gate, &interrupt, &mut recording)?;
    if let Some(LinkFreeze { near, .. }) = &mut on_link {
        for caveat in near.caveats()? {
            recording.record(Event::Caveat(&caveat));
        }
    }
    let (facts, faults) = recording.finish();
    if let Some(path) = &args.csv {
        let rows = intact_report::invocations::csv(&run, &facts.invocations);
        console::note_unwritten("--csv", path, private_file::write(path, rows));
    }
    let parts = match faults {
        None => Parts::Lambda(Box::new(facts)),
        Some(faults) => Parts::Fault(Box::new(faults)),
    };
    let document = Document::new(run, parts);
    Ok(conclusion.finish(&document, interrupt.signal())?)
}

/// The configuration of what follows the connections of an environment.
#[derive(clap::Args)]
pub(crate) struct WatcherArgs {
    /// The function
    #[arg(required = true, last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// Runs a function for the platform that started us.
pub(crate) fn follow(args: WatcherArgs) -> Result<ExitCode, Failed> {
    let keys = key_logging(Keys::Auto);
    let node_options = std::env::var_os("NODE_OPTIONS").unwrap_or_default();
    let code = intact_lambda::follow(args.command, keys, node_options)
        .context("no platform has started this")
        .map_err(Failed::usage)?;
    Ok(ExitCode::from(code))
}

/// All rounds of all variants, in an order of their own each, until a signal comes.
fn invoke(
    args: &Args,
    run: &Run,
    turns: &[Turn],
    plan: &Plan,
    gate: &mut dyn FreezeHook,
    interrupt: &Interrupt,
    recording: &mut Recording,
) -> Result<(), Failed> {
    let rounds = rounds(args, turns.len());
    let orders = match args.faults.is_any() {
        true => vec![(0..turns.len()).collect()],
        false => order::balanced(turns.len(), rounds as usize, run.seed.unwrap_or(0)),
    };
    let start = Instant::now();
    let mut platform = Platform::new(start, gate);
    for (round, order) in (1u32..).zip(orders) {
        // what does not divide evenly is spread over the first rounds
        let extra = u64::from(u64::from(round) <= args.invocations % u64::from(rounds));
        let mut plan = plan.clone();
        plan.invocations = args.invocations / u64::from(rounds) + extra;
        for index in order {
            let over = || interrupt.signal().is_some();
            let variant = index as u32;
            let place = RunPosition { variant, round };
            if let Some(before) = index.checked_sub(1) {
                let [before, own] = [before, index].map(|one| turns[one].fault.as_ref());
                if fault_options::was_shown(before, own, recording.has_struck_pool(variant - 1)) {
                    continue;
                }
            }
            recording.turn(variant, round, rounds);
            if let Some(watcher) = &mut plan.watcher {
                watcher.fault.clone_from(&turns[index].fault);
            }
            let began = start.elapsed();
            platform
                .run(&turns[index].function, &plan, place, &over, recording)
                .map_err(not_run)?;
            if args.faults.is_any() && !over() {
                let end = faults::end(place, [began, start.elapsed()], recording.outcomes());
                let has_failed = turns[index].fault.is_none() && !end.is_success();
                recording.record(Event::Fault(&FaultEvent::Ended(end)));
                if has_failed {
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}

/// What is invoked in turn: a variant of the function, or the function under a fault.
struct Turn {
    variant: Variant,
    function: Function,
    fault: Option<FaultConfig>,
}

fn turns(args: &Args) -> Result<Vec<Turn>, Failed> {
    let mut functions = functions::parse(&args.command, &args.variants, args.handler.as_ref())?;
    for (_, function) in &mut functions {
        function.serves = args.http.then(|| args.path.clone());
    }
    if args.faults.is_any() {
        return faults::turns(args, &functions);
    }
    let turn = |(variant, function)| Turn {
        variant,
        function,
        fault: None,
    };
    Ok(functions.into_iter().map(turn).collect())
}

/// What stands still while the function rests.
fn freeze(args: &Args) -> Result<Freeze, Failed> {
    let on_link = args.link.is_some();
    match args.freeze {
        Some(Freeze::Machine) if !on_link => Err(Failed::usage(anyhow!(
            "--freeze machine needs a link that drops what is sent to it: --link rtt=30ms"
        ))),
        Some(given) => Ok(given),
        None if on_link => Ok(Freeze::Machine),
        None => Ok(Freeze::Processes),
    }
}

/// By default each round has an invocation after each time of `--idle`, besides the cold one.
fn rounds(args: &Args, variants: usize) -> u32 {
    let at_most = |each: u64| u32::try_from(args.invocations / each.max(1)).unwrap_or(u32::MAX);
    let is_compared = variants > 1 && !args.faults.is_any();
    let whole = (1 + args.idle.len() as u64).saturating_mul(args.concurrency);
    match args.rounds {
        Some(rounds) => rounds.min(at_most(1)),
        None if is_compared => at_most(whole).clamp(1, 10),
        None => 1,
    }
}

fn plan(args: &Args) -> Result<Plan, Failed> {
    let event = match (&args.event, args.event_shape) {
        (Some(given), _) => intact_lambda::Event(event(given)?),
        (None, Some(EventShape::Apigw)) => intact_lambda::Event::API_GATEWAY.into(),
        (None, Some(EventShape::Sqs)) => intact_lambda::Event::SQS.into(),
        (None, None) => intact_lambda::Event::EMPTY.into(),
    };
    if let (Some(_), Some(spec)) = (args.time_scale, &args.link)
        && spec.nat.is_some()
    {
        refuse!(
            "--time-scale with nat-idle: the path has an idle limit of its own, which does not pass faster"
        );
    }
    Ok(Plan {
        invocations: args.invocations,
        event,
        timeout: args.timeout,
        init_timeout: args.init_timeout,
        cold_every: args.cold_every,
        idle: args.idle.clone(),
        time_scale: args.time_scale.unwrap_or(1.0),
        freezer: (args.freeze != Some(Freeze::Off)).then(|| match args.freeze_with {
            Some(FreezerKind::Signals) => Freezer::Signals,
            Some(FreezerKind::Cgroup) => Freezer::ControlGroup,
            None => Freezer::best(),
        }),
        cpu_share: args.memory_cpu,
        concurrency: args.concurrency,
        watcher: match args.watch {
            false => None,
            true => Some(watcher(args.places.root())?),
        },
    })
}

/// Ourselves, to be started again above each environment.
fn watcher(code_root: Option<PathBuf>) -> anyhow::Result<Watcher> {
    let program = super::builtin::ourselves()?.get_program().to_owned();
    let words = ["lambda-watcher", "--"].map(OsString::from);
    Ok(Watcher {
        command: std::iter::once(program).chain(words).collect(),
        fingerprint_key: fingerprint_key()?,
        code_root,
        fault: None,
    })
}

/// The most bytes of an event: ten times what Lambda takes.
const LARGEST_EVENT: u64 = 64 << 20;

/// JSON as it is, or what is in a file.
fn event(given: &str) -> Result<Vec<u8>, Failed> {
    let is_json = |bytes: &[u8]| serde_json::from_slice::<serde_json::Value>(bytes).is_ok();
    if is_json(given.as_bytes()) {
        return Ok(given.as_bytes().to_vec());
    }
    match input_file::read(Path::new(given), LARGEST_EVENT) {
        Ok(bytes) if is_json(&bytes) => Ok(bytes),
        Ok(_) => Err(Failed::unreadable(anyhow!(
            "--event {}: the file holds no JSON",
            redact::value_of("--event", given)
        ))),
        Err(error) => Err(Failed::usage(anyhow!(
            "--event {}: neither JSON nor a file ({error})",
            redact::value_of("--event", given)
        ))),
    }
}

fn head(config: &Config, variants: impl Iterator<Item = Variant>) -> Run {
    let mut head = run_header::head(Producer::Lambda, Vantage::OnPath, &config.words);
    let seed = config.options.seed;
    head.rows = Rows::All;
    if config.options.watch {
        // each environment is watched by a process of its own, and identities stay in its memory
        head.add_evidence(Mode::Auto.evidence().without(Evidence::Identities));
    }
    head.seed = Some(seed.unwrap_or_else(run_header::seed));
    head.variants = variants.collect();
    if config.options.faults.is_any() {
        head.varied = vec![AXIS.to_owned()];
        head.seed = Some(config.options.faults.seed());
    }
    head
}

fn not_run(error: LambdaError) -> Failed {
    let code = match error {
        LambdaError::NotFound(_) => exit::NOT_FOUND,
        LambdaError::NotRunnable { .. } => exit::NOT_RUNNABLE,
        LambdaError::Freezer(ref error) if error.kind() == ErrorKind::PermissionDenied => {
            exit::NOT_PERMITTED
        }
        LambdaError::Cpu(_) | LambdaError::Refused(_) | LambdaError::Unsupported => {
            exit::NOT_PERMITTED
        }
        LambdaError::Listen(_)
        | LambdaError::Freezer(_)
        | LambdaError::Watcher(_)
        | LambdaError::Gate(_) => exit::WRAPPER_FAILURE,
    };
    Failed::with_code(code, error)
}
