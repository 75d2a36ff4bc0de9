//! `intact bench`: variants side by side.

use super::builtin::{Builtin, Ready};
use super::connect_options::ConnectOptions;
use super::expect::Expect;
use super::gates::Gates;
use super::gates::evaluate;
use super::json;
use super::link;
use super::on_link::{self, Near};
use super::options;
use super::output_files::OutputFiles;
use super::page::{PageFile, page_file, write_all};
use super::recording::Recording;
use super::run_header;
use crate::console;
use crate::exit::{self, Failed};
use crate::interrupt::Interrupt;
use anyhow::{Context, anyhow};
use clap::ValueEnum;
use intact_bench::{Bench, BenchError, Length, RowPolicy, Target};
use intact_dial::Clock;
use intact_dial::tls::Verify;
use intact_experiment::{Axes, TlsChoice};
use intact_findings::bench::{Baseline, BenchFacts, Charts};
use intact_findings::requirement::Document;
use intact_ledger::{Caveat, Producer, Protocol, Rows, TlsVersion, Vantage};
use intact_report::documents::{self, BenchRun, Source};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Requests that a target elsewhere gets when neither -n nor -z is given.
const POLITE_REQUESTS: u64 = 200;
/// New connections a second that a target elsewhere gets when neither -n nor -z is given.
const POLITE_OPENING: f64 = 10.0;
/// Time that all variants share when neither -n nor -z is given.
const LOCAL_SECONDS: u32 = 16;
/// The same of a short bench.
const SHORT_SECONDS: u32 = 8;

/// What does a new connection per request cost, and what does each remedy save?
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// URL to load; without it the built-in server
    pub(super) url: Option<String>,

    /// Measured requests per variant, over all rounds
    #[arg(short = 'n', value_name = "N", conflicts_with = "time")]
    requests: Option<u64>,
    /// Time per variant, over all rounds (10s, 2m, 500ms)
    #[arg(short = 'z', value_name = "TIME", value_parser = time)]
    pub(super) time: Option<Duration>,
    /// Rounds; every variant runs in each [default: 20, fewer where -n is too small for so many]
    #[arg(long, value_name = "N")]
    pub(super) rounds: Option<u32>,
    /// Engine threads
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: u32,
    /// Take answers in batches where they come faster than a wake-up each is worth (auto: with several streams); less CPU, longer client delay
    #[arg(long, value_name = "auto|on|off", default_value = "auto")]
    coalesce: Coalesce,
    /// Seed of the order of the variants and of the samples [default: random, and told]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Connections at once
    #[arg(
        short = 'c',
        value_name = "N,..",
        value_delimiter = ',',
        default_value = "1",
        help_heading = "Variants (comma lists; every combination is measured)"
    )]
    concurrency: Vec<u32>,
    /// Keep connections, or open one per request (in HTTP/2 too)
    #[arg(
        long,
        value_name = "on,off",
        value_delimiter = ',',
        default_value = "on,off",
        help_heading = "Variants (comma lists; every combination is measured)"
    )]
    keepalive: Vec<Switch>,
    /// HTTP version
    #[arg(long, value_name = "1.0,1.1,2", value_delimiter = ',', value_parser = http_version, default_value = "1.1", help_heading = "Variants (comma lists; every combination is measured)")]
    http: Vec<Protocol>,
    /// TLS: none, 1.2, 1.3, or any (negotiated) [default: as the URL says]
    #[arg(long, value_name = "none,1.2,1.3", value_delimiter = ',', value_parser = tls_choice, help_heading = "Variants (comma lists; every combination is measured)")]
    pub(super) tls: Vec<TlsChoice>,
    /// Resume TLS sessions, or make a full handshake each time
    #[arg(
        long,
        value_name = "off,on",
        value_delimiter = ',',
        default_value = "off",
        help_heading = "Variants (comma lists; every combination is measured)"
    )]
    resume: Vec<Switch>,
    /// Streams at once on each HTTP/2 connection
    #[arg(
        long,
        value_name = "N,..",
        value_delimiter = ',',
        default_value = "1",
        help_heading = "Variants (comma lists; every combination is measured)"
    )]
    streams: Vec<u32>,

    /// Method [default: GET, or POST with a body]
    #[arg(
        short = 'X',
        short_alias = 'm',
        long,
        value_name = "METHOD",
        help_heading = "Request"
    )]
    method: Option<String>,
    /// Header field, may be repeated
    #[arg(
        short = 'H',
        long = "header",
        value_name = "NAME: VALUE",
        help_heading = "Request"
    )]
    pub(super) headers: Vec<String>,
    /// Body
    #[arg(
        short = 'd',
        long = "data",
        value_name = "TEXT",
        conflicts_with = "body_file",
        help_heading = "Request"
    )]
    data: Option<String>,
    /// Body from a file
    #[arg(short = 'D', long, value_name = "FILE", help_heading = "Request")]
    body_file: Option<PathBuf>,
    /// Content-Type of the body
    #[arg(short = 'T', long, value_name = "TYPE", help_heading = "Request")]
    content_type: Option<String>,
    /// The longest a request, or a dial, may take
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "10s", help_heading = "Request")]
    timeout: Duration,
    #[command(flatten)]
    pub(super) expect: Expect,

    #[command(flatten)]
    pub(super) reach: ConnectOptions,
    /// Look the name up for every connection, or once
    #[arg(
        long,
        value_name = "each|once",
        default_value = "each",
        help_heading = "Connection"
    )]
    dns: Dns,
    /// HTTP proxy
    #[arg(long, short = 'x', value_name = "URL", help_heading = "Connection")]
    proxy: Option<String>,
    /// Connect to a Unix domain socket
    #[arg(long, value_name = "PATH", help_heading = "Connection")]
    unix_socket: Option<PathBuf>,
    /// Put the built-in server at the far end of an emulated link: rtt=30ms and more, see `intact link --help`
    #[arg(long, value_name = "SPEC", help_heading = "Connection")]
    link: Option<intact_link::Spec>,
    /// Port for --tls none where the URL is https with a port
    #[arg(long, value_name = "PORT", help_heading = "Connection")]
    plain_port: Option<u16>,
    /// Port for --tls 1.x where the URL is http with a port
    #[arg(long, value_name = "PORT", help_heading = "Connection")]
    tls_port: Option<u16>,
    /// The server's process, to tell its CPU time
    #[arg(long, value_name = "PID", help_heading = "Connection")]
    server_pid: Option<u32>,

    /// JSON to standard output, or to a file
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-", help_heading = "Output")]
    json: Option<PathBuf>,
    /// One row per request, hey's columns first
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    csv: Option<PathBuf>,
    /// Keep the ledger in a new folder
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    ledger: Option<PathBuf>,
    /// Write the page to a file, may be repeated: .html replaces it, .md is appended (for a pull request or $GITHUB_STEP_SUMMARY)
    #[arg(long, value_name = "FILE", value_parser = page_file, help_heading = "Output")]
    report: Vec<PageFile>,
    /// Set the stored ledger of an earlier bench beside this one
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    baseline: Option<PathBuf>,
    /// Which requests have a row in the ledger [default: sample; all with --csv]
    #[arg(
        long,
        value_name = "all|sample",
        conflicts_with = "csv",
        help_heading = "Output"
    )]
    rows: Option<RowChoice>,
    #[command(flatten)]
    gates: Gates,
}

const EXAMPLES: &str = "Examples:
  intact bench https://my.server/health          keep-alive on against off, polite: 200 requests at most
  intact bench https://my.server/ -n 2000 -c 1,10 --http 1.1,2 --tls 1.2,1.3
  intact bench https://my.server/ --keepalive off --resume off,on
  intact bench http://localhost:8080/ -z 10s --keepalive on,on    A/A: how far apart are two equal variants?
  intact bench --link rtt=30ms --tls 1.2,1.3     our server, 30 ms away
  intact bench https://my.server/ --require 'keepalive=on: p99 < 50ms' --fail-on warning --junit bench.xml
  intact bench --json | jq '.comparisons[0].saved_ms'

-n and -z are per variant over all rounds. Under keep-alive the first request on each connection that a round opens is warm-up.";

#[derive(Clone, Copy, Debug, ValueEnum, Serialize, Deserialize)]
enum Switch {
    On,
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
enum Coalesce {
    Auto,
    On,
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
enum Dns {
    Each,
    Once,
}

#[derive(Clone, Copy, Debug, ValueEnum, Serialize, Deserialize)]
enum RowChoice {
    All,
    Sample,
}

/// All that a bench depends on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Config {
    /// The options.
    pub(super) options: Args,
    /// The command line, as it is recorded.
    pub(super) words: Vec<String>,
    /// Half as long where neither -n nor -z sets the length.
    pub(super) short: bool,
    /// Whether the page ends with the conclusion of the demonstration.
    pub(super) demonstration: bool,
}

impl Args {
    /// The options of `intact bench` without an argument.
    pub(super) fn defaults() -> Args {
        options::defaults(&[])
    }
}

impl From<Args> for Config {
    fn from(options: Args) -> Config {
        Config {
            options,
            words: run_header::words(),
            short: false,
            demonstration: false,
        }
    }
}

/// Runs a bench and prints its page; on a link in a process of its own.
pub(crate) fn run(config: Config) -> Result<ExitCode, Failed> {
    let options = &config.options;
    if options.gates.list_if_asked(Document::Bench) {
        return Ok(ExitCode::from(exit::FINE));
    }
    let Some(spec) = &options.link else {
        return measure(config, None);
    };
    if let Some(url) = &options.url {
        return Err(Failed::usage(anyhow!(
            "--link is for our own server, and {url} is not on it; to bench another one put both there: intact link {spec} --server CMD -- intact bench http://server.test/"
        )));
    }
    on_link::run(&link::start(spec)?, config)
}

/// Measures from this process. `near`: the link on whose client side the process is.
pub(super) fn measure(config: Config, near: Option<Near>) -> Result<ExitCode, Failed> {
    let Config {
        options: args,
        words,
        short,
        demonstration,
    } = config;
    let interrupt = Interrupt::listen()?;
    let to = args.json.clone();
    let files = OutputFiles::of(args.ledger.clone(), args.csv.clone());
    let page_files = args.report.clone();
    let gates = args.gates.clone();
    let requirements = gates.parse(Document::Bench)?;
    // read first: a wrong folder is found out before anything is sent
    let baseline = args
        .baseline
        .as_deref()
        .map(super::report::load)
        .transpose()?
        .map(|then| (then.run, then.facts));
    let builtin = match (&args.url, &near) {
        (None, None) => Some(Builtin::start()?),
        _ => None,
    };
    let ready = match (&near, &builtin) {
        (Some(near), _) => Some(near.ready()),
        (None, builtin) => builtin.as_ref().map(Builtin::ready),
    };
    let url = match (&args.url, ready) {
        (Some(url), _) => url.clone(),
        (None, Some(ready)) => ready.url(),
        (None, None) => return Err(Failed::usage(anyhow!("name a URL"))),
    };
    let config = bench_config(args, short, url, ready)?;
    let polite = config.opening_per_s.is_some();
    let bench = Bench::new(config).map_err(usage_or_own)?;
    announce(&bench, polite);
    let mut head = run_header::with_words(Producer::Bench, Vantage::Client, &words);
    bench.describe(&mut head);
    if ready.is_some() {
        head.subject = None;
    }
    match &near {
        Some(near) => near.describe(&mut head),
        None if demonstration => {
            head.subject = Some("the built-in server on plain loopback, 0 ms away".to_owned());
        }
        None => {}
    }
    let mut recording = Recording::start(head, &files, interrupt.clone(), bench.gauge())?;
    let clock = Clock::start();
    let mut tally = bench.run(clock, &mut recording).map_err(usage_or_own)?;
    let recorded = recording.finish();
    let head = recorded.run;
    tally.caveats.extend(recorded.caveats);
    if let Some(near) = near {
        tally.caveats.extend(near.caveats()?);
    }
    let mut facts =
        BenchFacts::new(&head, &tally, &recorded.first).context("the axes of this run")?;
    if let Some((run, then)) = baseline {
        facts.baseline = Some(Baseline::new(&run, &then, &facts));
        // they limit the earlier figures, not this run's counts
        let of_then = |one: &Caveat| Caveat::new(&*one.id, format!("--baseline: {}", one.message));
        let missing = then.caveats.iter().filter(|one| one.incomplete);
        facts.caveats.extend(missing.map(of_then));
    }
    json::tell(to.as_deref(), || intact_report::json::bench(&head, &facts))?;
    let charts = Charts::new(&head, &tally, &facts, &recorded.timeline);
    let verdicts = evaluate(&requirements, &facts);
    let run = BenchRun {
        run: &head,
        facts: &facts,
        charts: &charts,
    };
    let mut page = Source::Bench(run).page();
    page.requirements.clone_from(&verdicts);
    if !json::takes_output(to.as_deref()) {
        console::print(&intact_report::terminal::write(&page, console::paper()));
    }
    if demonstration {
        let next = documents::demonstration(&facts);
        console::print(&intact_report::terminal::write_sections(
            &[next],
            console::paper(),
        ));
    }
    write_all(&page_files, &[page])?;
    let kept = gates.hold(&verdicts, &head, &facts)?;
    Ok(ExitCode::from(match interrupt.signal() {
        Some(signal) => exit::by_signal(signal),
        None if !facts.any_success() => exit::UNREACHABLE,
        None if !kept => exit::REQUIREMENT,
        None => exit::FINE,
    }))
}

fn usage_or_own(error: BenchError) -> Failed {
    match error {
        BenchError::Config(error) => Failed::usage(error),
        other => Failed::from(anyhow::Error::from(other)),
    }
}

/// What will be sent, before it is.
fn announce(bench: &Bench, polite: bool) {
    if let Some((requests, connections)) = bench.budget() {
        let pace = if polite {
            format!(", {POLITE_OPENING} new connections a second at most")
        } else {
            String::new()
        };
        console::note(&format!(
            "sending at most {requests} requests on {connections} connections: {} variants, {} rounds{pace}",
            bench.variants().len(),
            bench.rounds()
        ));
    }
}

fn bench_config(
    args: Args,
    short: bool,
    url: String,
    builtin: Option<&Ready>,
) -> Result<intact_bench::Config, Failed> {
    let on = |switches: &[Switch]| {
        switches
            .iter()
            .map(|switch| matches!(switch, Switch::On))
            .collect()
    };
    let secure = url.starts_with("https://");
    let body = match (&args.data, &args.body_file) {
        (Some(text), _) => text.clone().into_bytes(),
        (None, Some(path)) => std::fs::read(path)
            .with_context(|| format!("--body-file {}", path.display()))
            .map_err(Failed::usage)?,
        (None, None) => Vec::new(),
    };
    let method = args.method.unwrap_or_else(|| {
        let has_body = args.data.is_some() || args.body_file.is_some();
        if has_body { "POST" } else { "GET" }.to_owned()
    });
    let mut headers = args.headers;
    headers.extend(
        args.content_type
            .map(|kind| format!("Content-Type: {kind}")),
    );
    let axes = Axes {
        keepalive: on(&args.keepalive),
        http: args.http,
        tls: match args.tls {
            none if none.is_empty() => vec![if secure {
                TlsChoice::Any
            } else {
                TlsChoice::None
            }],
            some => some,
        },
        resume: on(&args.resume),
        concurrency: args.concurrency,
        streams: args.streams,
    };
    let rows = match (args.rows, &args.csv) {
        (Some(RowChoice::All), _) | (None, Some(_)) => Rows::All,
        (Some(RowChoice::Sample) | None, _) => Rows::Sample,
    };
    let mut config = intact_bench::Config {
        target: Target {
            url,
            plain_port: args.plain_port,
            tls_port: args.tls_port.or(builtin.map(Ready::tls_port)),
        },
        axes,
        length: Length::Exchanges(1),
        rounds: args.rounds,
        threads: args.threads,
        seed: args.seed.unwrap_or_else(run_header::seed),
        opening_per_s: None,
        requests_per_s: None,
        most: None,
        timeout: args.timeout,
        method,
        headers,
        body,
        user_agent: concat!("intact/", env!("CARGO_PKG_VERSION")).to_owned(),
        expect: args.expect.expect,
        credentials: args
            .reach
            .credentials(builtin.map_or(Verify::System, |ready| Verify::Roots(ready.roots())))?,
        route: args.reach.route(),
        coalesce: match args.coalesce {
            Coalesce::Auto => intact_bench::Coalesce::Streams,
            Coalesce::On => intact_bench::Coalesce::Always,
            Coalesce::Off => intact_bench::Coalesce::Never,
        },
        look_up_once: args.dns == Dns::Once,
        proxy: args.proxy,
        unix_socket: args.unix_socket,
        // the page draws connections, which only the rows of a ledger have
        keep: if args.ledger.is_some() || args.csv.is_some() || !args.report.is_empty() {
            RowPolicy::Ledger(rows)
        } else {
            RowPolicy::First
        },
        server_pid: args.server_pid.or(builtin.map(|ready| ready.pid)),
    };
    match (args.requests, args.time) {
        (Some(requests), _) => config.length = Length::Exchanges(requests),
        (None, Some(time)) => config.length = Length::Time(time),
        (None, None) => {
            let local_seconds = if short { SHORT_SECONDS } else { LOCAL_SECONDS };
            defaults(&mut config, builtin.is_some(), local_seconds)?;
        }
    }
    Ok(config)
}

/// Neither -n nor -z: a few seconds on this machine, a few requests elsewhere.
fn defaults(
    config: &mut intact_bench::Config,
    is_ours: bool,
    local_seconds: u32,
) -> Result<(), Failed> {
    let variants = config.axes.concurrency.len()
        * config.axes.keepalive.len()
        * config.axes.http.len()
        * config.axes.tls.len()
        * config.axes.resume.len()
        * config.axes.streams.len();
    let variants = variants.max(1) as u64;
    if is_ours || config.is_local().map_err(Failed::usage)? {
        let share = Duration::from_secs(u64::from(local_seconds)) / variants as u32;
        config.length = Length::Time(share.max(Duration::from_secs(1)));
        return Ok(());
    }
    config.opening_per_s = Some(POLITE_OPENING);
    let places = u64::from(*config.axes.concurrency.iter().max().unwrap_or(&1));
    // preflight and warm-up are requests too
    let for_rounds = |rounds: u64| (POLITE_REQUESTS / variants).checked_sub(1 + places * rounds);
    let rounds = config.rounds.map_or(20, u64::from);
    let (rounds, requests) = [rounds, rounds.min(8), 1]
        .into_iter()
        .filter_map(|rounds| Some((rounds, for_rounds(rounds)?)))
        .find(|(rounds, requests)| requests >= rounds)
        .ok_or_else(|| {
            Failed::usage(anyhow!(
                "{variants} variants at -c {places} do not fit into the {POLITE_REQUESTS} requests that another machine gets unasked: say how many with -n or -z"
            ))
        })?;
    config.rounds = Some(rounds as u32);
    config.length = Length::Exchanges(requests);
    Ok(())
}

/// `1.0`, `1.1` or `2`.
pub(crate) fn http_version(word: &str) -> Result<Protocol, String> {
    match word {
        "1.0" => Ok(Protocol::Http10),
        "1.1" | "1" => Ok(Protocol::Http11),
        "2" | "2.0" => Ok(Protocol::Http2),
        _ => Err("one of 1.0, 1.1, 2".to_owned()),
    }
}

fn tls_choice(word: &str) -> Result<TlsChoice, String> {
    match word {
        "none" => Ok(TlsChoice::None),
        "any" | "auto" => Ok(TlsChoice::Any),
        "1.2" => Ok(TlsChoice::Version(TlsVersion::Tls12)),
        "1.3" => Ok(TlsChoice::Version(TlsVersion::Tls13)),
        _ => Err("one of none, any, 1.2, 1.3".to_owned()),
    }
}

/// `10s`, `500ms`, `2m`, `1h`; a number alone is seconds, as in hey.
pub(crate) use intact_units::duration::or_seconds as time;
