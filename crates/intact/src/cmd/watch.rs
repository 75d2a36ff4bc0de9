//! `intact watch -- CMD`: does my program reuse its connections?

mod faults;
#[cfg(all(feature = "live", unix))]
mod live;
#[cfg(not(all(feature = "live", unix)))]
#[path = "watch/no_live.rs"]
mod live;
pub(super) mod processor;
pub(super) mod sampler;
mod service;
mod windows;

use service::ServiceOptions;
use windows::{Control, Windows};

use super::conclusion::{Conclusion, FileOutput};
use super::config::Config;
use super::gates::Gates;
use super::observing::Observing;
use super::options;
use super::output_files::OutputFiles;
use super::places::PlaceOptions;
use super::resolver;
use super::run_header;
use crate::console;
use crate::exit::{self, Failed};
use intact_document::requirement::DocumentKind;
use intact_findings::Document;
use intact_ledger::{Caveat, Producer, Rows, Run, Vantage};
use intact_traffic::TrafficAnalysis;
use intact_watch::{AttachConfig, Clock, Ended, KeyLogging, Mode, Outcome, WatchError};
use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Does my program reuse its connections?
#[derive(clap::Args)]
#[command(after_help = "Examples:
  intact watch -- node server.js
  intact watch -- pytest
  intact watch --ledger before -- ./my-go-binary --flag
  intact watch --require 'avoidable == 0' --json=watch.json -- npm test
  intact watch --resolver 127.0.0.9 -- node client.js
  intact watch --live -- npm run dev
  intact watch --cpu --flamegraph time.svg -- node server.js
  intact watch --fault black-hole --require 'fault.black-hole: hung < 10s' \\
    -- ./client
  intact watch --fault each --fault-host api.example.com -- ./client
  intact watch --windows -- pytest
  intact watch --pid $(pgrep -d, gunicorn) --for 30s
  intact watch --name nginx --side server --for 60s
  intact watch --unit my.service --live
  intact watch --name nginx --every 5m --for 10s --ledger day
  intact watch -- sh -c 'for i in 1 2; do curl -s http://localhost:8080/; done'

The program runs unchanged. The page is printed at the end, on standard error. Exit code: the program's own,
128+n after signal n; 1 when a requirement failed; with several faults that of the run without a fault; 127 not found, 126 not runnable, 125 own failure, 4 not permitted here")]
pub(crate) struct Args {
    /// Source of TLS keys; with keys, requests are counted, without, inferred. `auto` has programs
    /// log keys (SSLKEYLOGFILE unless it is set, NODE_OPTIONS). It reads the memory of
    /// programs that log none (Go, Java, rustls). `on` sets SSLKEYLOGFILE in any case. `off`
    /// does neither
    #[arg(long, value_enum, default_value_t = Keys::Auto, help_heading = "Watching")]
    keys: Keys,
    /// How connections are followed. `relay` carries the data, so that requests are seen.
    /// `passthrough` leaves the data to the kernel, and counts connections and bytes. `auto`
    /// relays where possible
    #[arg(long, value_parser = options::words(MODES), default_value = "auto", help_heading = "Watching")]
    mode: Mode,
    /// Add a round trip to each connection, from its SYN on: what the program would cost over that
    /// distance
    #[arg(long, value_name = "TIME", value_parser = super::bench::time, help_heading = "Watching")]
    rtt: Option<Duration>,
    /// Have the program look names up at this name server, port 53, by a private resolv.conf; see
    /// `intact serve --dns`
    #[arg(long, value_name = "ADDRESS", value_parser = super::resolver::address, conflicts_with = "running", help_heading = "Watching")]
    resolver: Option<IpAddr>,
    #[command(flatten)]
    service: ServiceOptions,
    /// Show the program in a pane of its own, and next to it what its connections do; all keys are
    /// the program's. With programs that run already, the whole terminal shows their connections,
    /// and q ends it
    #[arg(long, conflicts_with = "fault", help_heading = "Watching")]
    live: bool,
    /// Let tests of the program judge the part of the run that they cause. Kits for pytest,
    /// node:test, JUnit 5 and Go find the socket in INTACT_CONTROL
    #[arg(long, conflicts_with_all = ["running", "fault"], help_heading = "Watching")]
    windows: bool,
    #[command(flatten)]
    faults: faults::FaultArgs,
    #[command(flatten)]
    places: PlaceOptions,
    #[command(flatten)]
    processor: processor::Options,
    #[command(flatten)]
    files: OutputFiles,
    #[command(flatten)]
    output: FileOutput,
    /// Print no page
    #[arg(long, short, help_heading = "Output")]
    quiet: bool,
    #[command(flatten)]
    gates: Gates,
    /// The program and its arguments; all words from the program on are its own
    #[arg(required_unless_present_any = ["require", "running"], trailing_var_arg = true, value_name = "CMD")]
    command: Vec<OsString>,
}

const MODES: &[(&str, Mode)] = &[
    ("auto", Mode::Auto),
    ("relay", Mode::Relay),
    ("passthrough", Mode::Passthrough),
];

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Keys {
    Auto,
    On,
    Off,
}

/// Runs the program, then prints the page to standard error; its exit code is ours.
pub(crate) fn run(config: &Config<Args>) -> Result<ExitCode, Failed> {
    let args = &config.options;
    let document = match args.faults.is_any() {
        true => DocumentKind::Fault,
        false => DocumentKind::Watch,
    };
    let conclusion = Conclusion::begin(args.output.clone(), &args.gates, document)?;
    let service = service(args)?;
    resolver::enter(args.resolver)?;
    if args.faults.is_any() {
        return faults::run(config, &conclusion);
    }
    let clock = Clock::start();
    let stop = service.as_ref().map(|config| config.stop.clone());
    let service = service.map(|config| intact_watch::attach(config, clock));
    let service = service.transpose().map_err(not_run)?;
    let mut head = head(config);
    head.add_evidence(match &service {
        None => args.mode.evidence(),
        Some(service) => service.evidence(),
    });
    let mut recording = Observing::start(TrafficAnalysis::new(&head), &head, &args.files)?;
    let measuring = args.processor.start(&args.service.pid)?;
    let (code, cpu) = match service {
        None => {
            let (outcome, missing) = run_command(args, clock, &mut recording)?;
            let code = match (outcome.ended, missing) {
                (Ended::Code(0), Some(reason)) => {
                    console::note(&format!(
                        "--windows: a window has passed, but a part of the traffic was not observed: {reason}"
                    ));
                    exit::REQUIREMENT
                }
                (ended, _) => exit::of_program(ended),
            };
            (code, Some(outcome.cpu))
        }
        Some(service) => {
            let mut recording = Windows::new(&mut recording, None);
            let signal = match args.live {
                false => service.follow(&mut recording),
                true => {
                    let stop = stop.unwrap_or_default();
                    live::follow(args, service, stop, &mut recording)?
                }
            };
            let code = signal.map_or(exit::FINE, |number| exit::by_signal(number as usize));
            (code, None)
        }
    };
    let observed = recording.finish();
    let mut facts = observed.facts();
    let counted = &facts.totals.counted;
    let is_client = facts.totals.lookups.seen > 0;
    let has_nothing = counted.is_empty() && !is_client && counted.unobserved.missing().is_none();
    if !args.command.is_empty() && has_nothing {
        facts.caveats.push(opened_nothing());
    }
    if let Some(measuring) = measuring {
        let title = head.subject.as_deref().unwrap_or_default();
        let cpu = measuring.finish(cpu, title);
        facts.caveats.extend(cpu.caveats());
        facts.cpu = Some(cpu);
    }
    let charts = observed.pictures(&head);
    let document = Document::observed(head, facts, charts);
    Ok(conclusion.finish_after(&document, code, args.quiet)?)
}

/// What is followed instead of a command, if anything is.
fn service(args: &Args) -> Result<Option<AttachConfig>, Failed> {
    let service = args.service.config(args.keys, args.mode)?;
    if args.command.is_empty() && service.is_none() {
        let missing = anyhow::anyhow!("name the program to run: intact watch -- CMD");
        return Err(Failed::usage(missing));
    }
    if args.mode == Mode::Passthrough && args.rtt.is_some() {
        let clash = anyhow::anyhow!("--rtt needs the relay: leave --mode passthrough out");
        return Err(Failed::usage(clash));
    }
    Ok(service)
}

/// What else to do about a program that opened no connection: it may be a server.
fn opened_nothing() -> Caveat {
    let words = "the program opened no TCP connection. If it is a server: `intact watch --pid PID --side server` shows what its clients do while it runs, `intact check URL` whether it keeps connections";
    Caveat::new("opened-nothing", words)
}

fn head(config: &Config<Args>) -> Run {
    let args = &config.options;
    let words = run_header::with_dashes(&config.words, args.command.len());
    let mut head = run_header::head(Producer::Watch, Vantage::OnPath, &words);
    head.rows = Rows::All;
    head.subject = Some(subject(args));
    head.link = args
        .rtt
        .map(|rtt| format!("{rtt:?} of round trip added to each connection (--rtt)"));
    head
}

/// Runs the program to its end. Also what the run lacks, if a window has passed without regard to
/// it.
fn run_command(
    args: &Args,
    clock: Clock,
    recording: &mut Observing<TrafficAnalysis>,
) -> Result<(Outcome, Option<String>), Failed> {
    let key = run_header::fingerprint_key()?;
    let mut config = intact_watch::Config::new(args.command.clone(), key);
    config.mode = args.mode;
    config.keys = key_logging(args.keys);
    config.round_trip = args.rtt.unwrap_or_default();
    config.code = args.places.reading(None);
    config.environment = args.processor.environment();
    if let (Some(logging), Some((_, options))) = (
        &mut config.keys,
        config
            .environment
            .iter()
            .find(|(key, _)| key == "NODE_OPTIONS"),
    ) {
        logging.node_options = Some(options.clone());
    }
    let control = args
        .windows
        .then(|| intact_watch::without_signals(Control::start));
    let control = control.transpose()?;
    if let Some(control) = &control {
        config.environment.push(control.environment());
        config.marker = control.marker();
    }
    let orders = control.as_ref().map(Control::orders);
    let mut windows = Windows::new(recording, orders);
    let outcome = match args.live {
        false => intact_watch::run(&config, clock, &mut windows).map_err(not_run),
        true => live::run(args, config, clock, &mut windows),
    };
    Ok((outcome?, windows.finish()))
}

/// Where keys come from. A key log that the person has set up is read along with them; with `on` it
/// is replaced.
pub(super) fn key_logging(keys: Keys) -> Option<KeyLogging> {
    let own_file = std::env::var_os("SSLKEYLOGFILE")
        .filter(|path| keys == Keys::Auto && !path.is_empty())
        .map(PathBuf::from);
    (keys != Keys::Off).then(|| KeyLogging {
        own_file,
        node_options: Some(std::env::var_os("NODE_OPTIONS").unwrap_or_default()),
    })
}

/// What is watched, on one line and without secrets.
fn subject(args: &Args) -> String {
    const LONGEST: usize = 120;
    if let Some(service) = args.service.subject() {
        return service;
    }
    let words: Vec<String> = args
        .command
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let line = intact_ledger::redact::argv(&words).join(" ");
    let mut line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() > LONGEST {
        line = line.chars().take(LONGEST).chain(['…']).collect();
    }
    line
}

/// The program was not run: a wrapper's exit codes.
pub(super) fn not_run(error: WatchError) -> Failed {
    let code = match error {
        WatchError::NotFound(_) => exit::NOT_FOUND,
        WatchError::NotRunnable { .. } => exit::NOT_RUNNABLE,
        WatchError::Unsupported | WatchError::Refused(_) | WatchError::Closed(..) => {
            exit::NOT_PERMITTED
        }
        WatchError::NoProcess(_) | WatchError::NoSuch(_) => exit::UNREACHABLE,
        WatchError::Nested | WatchError::Setup(..) => exit::WRAPPER_FAILURE,
    };
    Failed::with_code(code, error)
}
