//! `intact bench`: variants side by side.

mod args;
mod capacity;
mod capacity_options;
mod connection_options;
mod flame;
mod grpc;
mod measurement;
mod scenario;
mod service;
mod targets;
#[cfg(all(feature = "live", unix))]
mod view;
#[cfg(not(all(feature = "live", unix)))]
#[path = "bench/no_view.rs"]
mod view;
pub(super) mod watched_service;

use super::builtin::Ready;
use super::link;
use super::on_link::{self, Near};
use super::production;
use super::recording::Recorded;
use super::resolver;
use super::run_header;
use super::serve;
use crate::console;
use crate::exit::{Failed, refuse};
use anyhow::{Context, anyhow};
pub(crate) use args::{Args, http_version, time};
pub(super) use flame::FlameGraphs;
use intact_bench::{Bench, BenchError, Length, RowPolicy, Target};
use intact_client::Clock;
use intact_client::tls::Verify;
use intact_experiment::{Axes, CacheUse, TlsChoice, Variation};
use intact_experiments::bench::{BenchFacts, Charts};
use intact_findings::{BenchParts, Document, Parts};
use intact_ledger::{Caveat, Protocol, Rows, Tally};
use intact_link::{SERVER_NAME, SERVER_V4};
use intact_units::plural::counted;
use measurement::Measurement;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
pub(super) use view::BenchView;

/// Time that all variants share when neither -n nor -z is given.
const LOCAL_TIME: Duration = Duration::from_secs(16);
/// The same of a short bench.
const SHORT_TIME: Duration = Duration::from_secs(8);

/// All that a bench depends on.
pub(crate) type Config = super::config::Config<Args>;

/// Runs a bench and prints its page; on a link in a process of its own.
pub(crate) fn run(mut config: Config) -> Result<ExitCode, Failed> {
    if config.options.url.is_none() {
        config.options.url = targets::named_url(&config.options.request)?;
    }
    config.options.add_remedies_of_builtin();
    let options = &config.options;
    options.gates.begin(options.document())?;
    if options.scenario.dry_run {
        return scenario::print_plan(options);
    }
    resolver::enter(options.resolver)?;
    let Some(spec) = &options.link else {
        return measure(&config, None);
    };
    if let Some(url) = &options.url {
        refuse!(
            "--link is for our own server, and {url} is not on it; to bench another one put both there: intact link {spec} --server CMD -- intact bench http://server.test/"
        );
    }
    #[cfg(feature = "metrics")]
    if options.metrics.has_collector() {
        refuse!(
            "--otlp: the client of a link reaches nothing but the server; write the metrics with --prometheus"
        );
    }
    let resolver = options.serves_names().then_some(SERVER_V4.into());
    let signals = link::signals()?;
    on_link::run(&link::start(spec, resolver)?, signals, config)
}

/// Measures from this process. `near`: the link on whose client side the process is.
pub(super) fn measure(config: &Config, near: Option<Near>) -> Result<ExitCode, Failed> {
    let args = &config.options;
    let mut measurement = Measurement::begin(config, near)?;
    let measured = if args.scenario.scenario.is_some() {
        scenario::measure(args, &mut measurement)
    } else if args.service.is_any() {
        service::measure(args, &measurement)
    } else if args.capacity.is_any() {
        capacity::measure(args, &mut measurement)
    } else {
        measure_variants(config, &mut measurement)
    };
    measurement.conclude(&measured?)
}

/// Runs the variants side by side.
fn measure_variants(
    config: &Config,
    measurement: &mut Measurement<'_>,
) -> Result<Document, Failed> {
    let args = &config.options;
    // read first: a wrong folder is found out before anything is sent
    let baseline = args
        .baseline
        .as_deref()
        .map(intact_findings::stored::bench)
        .transpose()
        .map_err(Failed::unreadable)?;
    let production = args.like.as_deref().map(|folder| {
        let host = args.url.as_deref().and_then(host_of);
        production::behaviour(folder, host.as_deref())
    });
    let production = production.transpose()?;
    if args.url.is_none() {
        measurement.start_server()?;
    }
    let ready = measurement.ready();
    let bench = bench(args, ready)?;
    let head = measurement.head(|head| bench.describe(head));
    let server = args.server_pid.or(ready.map(|ready| ready.pid));
    let flame = args.flamegraph.as_deref();
    let flame = flame.map(|path| FlameGraphs::start(path, server));
    let flame = flame.transpose()?;
    let mut recording = measurement.record(head, bench.gauge())?;
    recording.flame = flame;
    let mut tally = bench
        .run(Clock::start(), &mut recording)
        .map_err(usage_or_own)?;
    let recorded = recording.finish(&mut tally, measurement.caveats()?);
    document(recorded, &tally, |facts| {
        if let Some(then) = baseline {
            compare_with(facts, &then);
        }
        if let Some(production) = production {
            facts.compare_with_production(production);
        }
    })
}

/// The document of variants; `add` completes their facts.
fn document(
    recorded: Recorded,
    tally: &Tally,
    add: impl FnOnce(&mut BenchFacts),
) -> Result<Document, Failed> {
    let run = &recorded.run;
    let mut facts = BenchFacts::new(run, tally, &recorded.first).context("the axes of this run")?;
    add(&mut facts);
    let charts = Charts::new(run, tally, &facts, &recorded.timeline);
    let parts = BenchParts { facts, charts };
    Ok(Document::new(recorded.run, Parts::Bench(Box::new(parts))))
}

/// The host of a URL, for the destination of production that is the same.
fn host_of(url: &str) -> Option<String> {
    let address = intact_client::ServerUrl::parse(url).ok()?;
    Some(address.host)
}

/// Adds the differences from an earlier bench, and what limits its figures: not this run's counts.
fn compare_with(facts: &mut BenchFacts, (run, then): &(intact_ledger::Run, BenchParts)) {
    let then = &then.facts;
    facts.compare_with_baseline(run, then);
    let of_then = |one: &Caveat| Caveat::new(&*one.id, format!("--baseline: {}", one.message));
    let missing = then.caveats.iter().filter(|one| one.incomplete);
    facts.add_caveats(missing.map(of_then));
}

/// The bench of these options, announced. `ready`: the built-in server.
fn bench(args: &Args, ready: Option<&Ready>) -> Result<Bench, Failed> {
    let of_builtin = |ready: &Ready| match args.serves_names() {
        true => format!("http://{SERVER_NAME}:{}/", ready.plain.port()),
        false => ready.url(),
    };
    let url = args.url.clone().or(ready.map(of_builtin));
    let url = url.ok_or_else(|| Failed::usage(anyhow!("name a URL")))?;
    let request = &args.request;
    if let (Some(data), None) = (&request.data, &request.method)
        && data.ends_with(char::is_alphabetic)
        && time(data).is_ok()
    {
        refuse!(
            "-d {data} sends the body {data:?}, as in curl: `-z {data}` measures for that time; to send it, add `-X POST`"
        );
    }
    let config = bench_config(args, url, ready)?;
    let opening_per_s = config.opening_per_s;
    let bench = Bench::new(config).map_err(usage_or_own)?;
    announce(&bench, opening_per_s);
    Ok(bench)
}

fn usage_or_own(error: BenchError) -> Failed {
    match error {
        BenchError::Config(error) => Failed::usage(error),
        BenchError::Io(error) => Failed::forbidden(error),
        other => Failed::from(anyhow::Error::from(other)),
    }
}

/// What will be sent, before it is.
fn announce(bench: &Bench, opening_per_s: Option<f64>) {
    if let Some((requests, connections)) = bench.budget() {
        let pace = opening_per_s.map_or(String::new(), |rate| {
            format!(", {rate} new connections a second at most")
        });
        console::note(&format!(
            "sending at most {}, on {} if none ends early: {}, {}{pace}",
            counted(requests, "request"),
            counted(connections, "connection"),
            counted(bench.variants().len() as u64, "variant"),
            counted(u64::from(bench.rounds()), "round")
        ));
    }
}

fn bench_config(
    args: &Args,
    url: String,
    builtin: Option<&Ready>,
) -> Result<intact_bench::Config, Failed> {
    let otherwise = builtin.map_or(Verify::System, |ready| Verify::Roots(ready.roots()));
    let kind = args.request.content_type.iter();
    let kind = kind.map(|kind| format!("Content-Type: {kind}"));
    let grpc = &args.request.grpc;
    let url = grpc.url(url)?;
    let axes = axes(args, url.starts_with("https://"));
    check_ports(args, &axes, &url)?;
    let mut config = intact_bench::Config {
        target: Target {
            url: url.clone(),
            plain_port: args.plain_port,
            tls_port: args.tls_port.or(builtin.map(Ready::tls_port)),
        },
        length: Length::Exchanges(args.requests.unwrap_or(1)),
        rounds: args.rounds,
        threads: args.threads,
        seed: args.seed.unwrap_or_else(run_header::seed),
        timeout: args.request.timeout,
        method: args.request.method().to_owned(),
        headers: args
            .request
            .headers
            .iter()
            .cloned()
            .chain(kind)
            .chain(grpc.fields())
            .collect(),
        expect: args.request.expect.expect,
        credentials: args.reach.credentials(otherwise)?,
        route: args.reach.route(),
        coalesce: args.coalesce,
        proxy: args.proxy.clone(),
        unix_socket: args.unix_socket.clone(),
        io: args.io,
        keep: row_policy(args),
        server_pid: args.server_pid.or(builtin.map(|ready| ready.pid)),
        call: builtin.map(|_| grpc::call_of_builtin()),
        ..intact_bench::Config::new(url, axes)
    };
    config.body = grpc.body(&config, given_body(args)?)?;
    config.targets = targets::read(&args.request, config.seed)?;
    if args.scenario.scenario.is_some() {
        config.axes.keepalive = vec![true];
    } else if let Some(time) = args.time {
        config.length = Length::Time(time);
    } else if args.requests.is_none() {
        let time = if args.is_short {
            SHORT_TIME
        } else {
            LOCAL_TIME
        };
        config
            .set_default_length(builtin.is_some(), time)
            .map_err(Failed::usage)?;
    }
    Ok(config)
}

/// Refuses a port that no variant connects to: the URL names the port of its own scheme.
fn check_ports(args: &Args, axes: &Axes, url: &str) -> Result<(), Failed> {
    let secure = url.starts_with("https://");
    let (plain, tls): (Vec<TlsChoice>, Vec<TlsChoice>) =
        axes.tls.iter().partition(|&&tls| tls == TlsChoice::None);
    let unused = [
        (
            "--plain-port",
            args.plain_port,
            secure && !plain.is_empty(),
            "--tls none with an https:// URL",
        ),
        (
            "--tls-port",
            args.tls_port,
            !secure && !tls.is_empty(),
            "--tls with an http:// URL",
        ),
    ];
    for (option, port, is_used, needed) in unused {
        if port.is_some() && !is_used {
            refuse!("{option}: no variant connects to it; it needs {needed}");
        }
    }
    Ok(())
}

/// The value of an option, or the content of the file that it names after `@`.
fn text_or_file(text: &str, option: &str) -> Result<Vec<u8>, Failed> {
    let path = match text.strip_prefix('@') {
        None => return Ok(text.as_bytes().to_vec()),
        Some("-") => Path::new("/dev/stdin"),
        Some(path) => Path::new(path),
    };
    std::fs::read(path)
        .with_context(|| format!("{option} @{}", path.display()))
        .map_err(Failed::usage)
}

fn given_body(args: &Args) -> Result<Vec<u8>, Failed> {
    let request = &args.request;
    match (&request.data, &request.body_file) {
        (Some(data), _) => text_or_file(data, "--data"),
        (None, Some(path)) => std::fs::read(path)
            .with_context(|| format!("--body-file {}", path.display()))
            .map_err(Failed::usage),
        (None, None) => Ok(Vec::new()),
    }
}

fn speaks_http3(args: &Args) -> bool {
    args.axes.http.contains(&Protocol::Http3)
}

/// The built-in server that the variants need.
pub(super) fn server_config(args: &Args) -> anyhow::Result<serve::Config> {
    let connection = &args.axes.connection.axes;
    let sends_early = args.axes.early_data.contains(&true) || args.axes.remedies;
    let options = [
        ("--http3", speaks_http3(args)),
        ("--early-data", sends_early),
        ("--tcp-fastopen", connection.fast_open.contains(&true)),
        ("--etag", connection.cache.contains(&CacheUse::Revalidate)),
        ("--cache-max-age=60s", args.axes.remedies),
        ("--dns", args.serves_names()),
    ];
    let needed = options.iter().filter(|(_, is_needed)| *is_needed);
    let needed: Vec<&str> = needed.map(|(option, _)| *option).collect();
    Ok(serve::Config::with_options(&needed)?)
}

/// The variants; without `--tls` as the URL says.
fn axes(args: &Args, secure: bool) -> Axes {
    let mut tls = args.axes.tls.clone();
    let is_builtin = args.url.is_none();
    if tls.is_empty() {
        // of our own server both ports are known
        tls.push(
            if secure || is_builtin && (speaks_http3(args) || args.axes.remedies) {
                TlsChoice::Any
            } else {
                TlsChoice::None
            },
        );
    }
    // the first value of each is that of the baseline
    let remedy = |given: &[bool]| match args.axes.remedies {
        true => vec![false, true],
        false => given.to_vec(),
    };
    let has_tls = tls.iter().any(|&tls| tls != TlsChoice::None);
    let of_tls = |given: &[bool]| match has_tls {
        true => remedy(given),
        false => given.to_vec(),
    };
    let http = match (args.axes.http.is_empty(), args.axes.remedies && has_tls) {
        _ if args.request.grpc.is_any() => vec![Protocol::Http2],
        (true, true) => vec![Protocol::Http11, Protocol::Http2],
        (true, false) => vec![Protocol::Http11],
        (false, _) => args.axes.http.clone(),
    };
    Axes {
        keepalive: remedy(&args.axes.keepalive),
        http,
        tls,
        resume: of_tls(&args.axes.resume),
        early_data: match args.request.is_repeatable() {
            true => of_tls(&args.axes.early_data),
            false => args.axes.early_data.clone(),
        },
        dns: args.axes.dns.clone(),
        concurrency: match args.axes.concurrency.is_empty() {
            true => vec![1],
            false => args.axes.concurrency.clone(),
        },
        streams: args.axes.streams.clone(),
        connection: args.axes.connection.axes.clone(),
        load: args.open_loop.load(),
        variation: match args.axes.remedies {
            true => Variation::OneAtATime,
            false => Variation::Product,
        },
    }
}

fn row_policy(args: &Args) -> RowPolicy {
    // the page draws connections, which only the rows of a ledger have
    let needs_all = args.needs_all_rows();
    if args.ledger.is_none() && !needs_all && args.output.report.is_empty() {
        return RowPolicy::First;
    }
    RowPolicy::Ledger(args.rows.unwrap_or(match needs_all {
        true => Rows::All,
        false => Rows::Sample,
    }))
}
