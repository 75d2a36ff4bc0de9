//! `intact bench`: variants side by side.

mod args;

use super::builtin::{Builtin, Ready};
use super::gates::evaluate;
use super::json;
use super::link;
use super::on_link::{self, Near};
use super::output_files::OutputFiles;
use super::page::write_all;
use super::recording::Recording;
use super::run_header;
use crate::console;
use crate::exit::{self, Failed};
use crate::interrupt::Interrupt;
use anyhow::{Context, anyhow};
pub(crate) use args::{Args, http_version, time};
use args::{Coalesce, Dns, RowChoice, Switch};
use intact_bench::{Bench, BenchError, Length, RowPolicy, Target};
use intact_client::Clock;
use intact_client::tls::Verify;
use intact_experiment::{Axes, TlsChoice};
use intact_findings::bench::{Baseline, BenchFacts, Charts};
use intact_findings::requirement::Document;
use intact_ledger::{Caveat, Producer, Rows, Vantage};
use intact_report::documents::{self, BenchRun, Source};
use serde::{Deserialize, Serialize};
use std::process::ExitCode;
use std::time::Duration;

/// Time that all variants share when neither -n nor -z is given.
const LOCAL_TIME: Duration = Duration::from_secs(16);
/// The same of a short bench.
const SHORT_TIME: Duration = Duration::from_secs(8);

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
        .map(intact_findings::stored::bench)
        .transpose()
        .map_err(Failed::unreadable)?
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
    let opening_per_s = config.opening_per_s;
    let bench = Bench::new(config).map_err(usage_or_own)?;
    announce(&bench, opening_per_s);
    let mut head = run_header::head(Producer::Bench, Vantage::Client, &words);
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
fn announce(bench: &Bench, opening_per_s: Option<f64>) {
    if let Some((requests, connections)) = bench.budget() {
        let pace = opening_per_s.map_or(String::new(), |rate| {
            format!(", {rate} new connections a second at most")
        });
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
            let time = if short { SHORT_TIME } else { LOCAL_TIME };
            config
                .set_default_length(builtin.is_some(), time)
                .map_err(Failed::usage)?;
        }
    }
    Ok(config)
}
