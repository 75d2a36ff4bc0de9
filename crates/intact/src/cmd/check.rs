//! `intact check`: the profile of a server.

mod chain;
mod drain;

use super::bench::{http_version, time};
use super::conclusion::{Conclusion, Output};
use super::config::Config;
use super::connect_options::ConnectOptions;
use super::expect::Expect;
use super::gates::Gates;
use super::options;
use super::output_files::OutputFiles;
use super::run_header;
use super::watching::{Early, Wanted, Watched, Watching};
use crate::console;
use crate::exit::{Failed, refuse};
use crate::interrupt::Interrupt;
use anyhow::Context;
use chain::ChainArgs;
use drain::DrainArgs;
use intact_check::{
    Budget, CONNECTIONS_PER_S, Capture, CaptureError, Check, CheckError, ExtraRequest, MAX_TIME,
};
use intact_client::Clock;
use intact_client::tls::Verify;
use intact_document::ClaimKind;
use intact_document::requirement::DocumentKind;
use intact_findings::{Document, Parts};
use intact_ledger::{Method, Producer, Protocol, Vantage, private_file};
use intact_report::documents::{CheckPart, CheckRun, check as check_page};
use intact_report::page::Page;
use intact_report::terminal::Length;
use intact_servers::check::CheckFacts;
use intact_units::plural::counted;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Lines around the two parts of the profile: what will be sent, what comes next.
const NOTES: usize = 3;

/// Requests that can be named in addition to the URL's.
const MOST_TRIES: usize = 20;

/// Does this server keep connections alive, how long, for how many requests?
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// URL to probe
    #[arg(required_unless_present_any = ["require", "chain"])]
    url: Option<String>,

    /// Whether a bench follows, which measures times better.
    #[arg(skip)]
    pub(super) is_next_to_bench: bool,

    /// Leave out the wait for the server to end idle connections
    #[arg(long)]
    pub(super) no_idle: bool,
    /// The longest an idle connection is watched
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "90s", conflicts_with = "no_idle")]
    idle_limit: Duration,
    /// Measure the idle timeout again while N other connections idle
    #[arg(long, value_name = "N", conflicts_with = "no_idle", default_value_t = 0, hide_default_value = true, value_parser = clap::value_parser!(u32).range(0..=1000))]
    idle_connections: u32,
    /// 1,100 requests on one connection, more methods and statuses, the race at long limits,
    /// maximum age
    #[arg(long)]
    thorough: bool,
    /// See whether a connection survives this request too; may be repeated, POST, PUT and PATCH
    /// carry {}
    #[arg(long = "try", value_name = "[METHOD ]PATH")]
    tries: Vec<ExtraRequest>,
    /// HTTP version for limits and waterfall [default: 1.1, or what there is]
    #[arg(long, value_name = "1.0|1.1|2|3", value_parser = http_version)]
    http: Option<Protocol>,

    /// Show the packets in time of one exchange of each version (needs the right to capture)
    #[arg(long)]
    ladder: bool,

    /// Follow redirects
    #[arg(short = 'L', long = "location", help_heading = "Request")]
    follow: bool,
    /// Method: one that is safe to repeat a hundred times
    #[arg(
        short = 'X',
        long,
        value_name = "METHOD",
        default_value = "GET",
        help_heading = "Request"
    )]
    method: String,
    /// Header field, may be repeated
    #[arg(
        short = 'H',
        long = "header",
        value_name = "NAME: VALUE",
        help_heading = "Request"
    )]
    pub(super) headers: Vec<String>,
    /// The longest a request, or a dial, may take
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "10s", help_heading = "Request")]
    timeout: Duration,

    /// The longest that all probes may take, without the time that idle connections are watched
    /// [default: 60s, 5m with --thorough]
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = "Request")]
    max_time: Option<Duration>,

    #[command(flatten)]
    chain: ChainArgs,
    #[command(flatten)]
    drain: DrainArgs,

    #[command(flatten)]
    pub(super) expect: Expect,

    #[command(flatten)]
    pub(super) reach: ConnectOptions,

    #[command(flatten)]
    output: Output,
    /// Keep the ledger in a new folder
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    ledger: Option<PathBuf>,
    /// Keep the packets of one exchange of each version with the secrets that decrypt them (needs
    /// the right to capture)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pcapng: Option<PathBuf>,
    #[command(flatten)]
    gates: Gates,
}

const EXAMPLES: &str = "Examples:
  # the card, then the wait for the idle limit (90 s at most)
  intact check https://my.server/health
  # the card only: a few seconds
  intact check https://my.server/ --no-idle
  intact check https://my.server/ --require 'idle-timeout >= 61s' \\
    --fail-on error
  # one server behind the balancer
  intact check https://my.server/ --connect-to ::10.0.0.7:8443 --insecure
  intact check https://my.server/ --idle-limit 10m --thorough
  # is the connection kept after these?
  intact check https://my.server/ --try 'POST /orders' --try /empty
  sudo intact check https://my.server/ --no-idle --ladder \\
    --pcapng packets.pcapng
  intact check https://my.server/ --json | jq .idle_timeout
  # what does a restart lose?
  intact check http://localhost:8080/ --drain --drain-slow /report \\
    -- node server.js
  # which hop loses requests?
  intact check --chain client=60s alb nginx=/etc/nginx/nginx.conf app=5s \\
    --gaps app=access.log

Probes run one after the other, and the maximum number of requests is printed first. Ctrl-C ends the waiting and keeps the profile.";

impl Args {
    /// The options of `intact check URL`.
    pub(super) fn of_url(url: String) -> Args {
        Args {
            url: Some(url),
            ..options::defaults(&["http://localhost/"])
        }
    }
}

/// Runs a check and prints its profile.
pub(crate) fn run(config: Config<Args>) -> Result<ExitCode, Failed> {
    if config.options.chain.is_wanted() {
        return chain::run(&config.options, &config.words);
    }
    Ok(of_server(config)?.0)
}

/// Checks a server. Also returns whether it keeps connections, if that was seen.
pub(super) fn of_server(config: Config<Args>) -> Result<(ExitCode, Option<bool>), Failed> {
    let Config {
        options: args,
        words,
    } = config;
    let conclusion = Conclusion::begin(args.output.clone(), &args.gates, DocumentKind::Check)?;
    let interrupt = Interrupt::listen()?;
    let output = args.output.clone();
    let files = OutputFiles::of(args.ledger.clone(), None);
    let (capture, wanted) = capture(&args)?;
    let is_next_to_bench = args.is_next_to_bench;
    let (config, drain) = check_config(args)?;
    let check = Check::new(config).map_err(Failed::usage)?;
    let server = drain.start(check.config())?;
    announce(check.budget(), check.config());
    let mut head = run_header::head(Producer::Check, Vantage::Client, &words);
    head.subject = Some(check.config().url());
    head.add_evidence(intact_client::EVIDENCE);
    // without a wait, one page is soon there
    let early = (!output.is_json() && check.config().idle).then(|| Early {
        run: head.clone(),
        next: next(check.budget(), check.config()),
        printed: None,
        length: output.report.length().split(NOTES).0,
    });
    let mut watching = Watching::start(&head, &files, interrupt.clone(), early, wanted)?;
    let clock = Clock::start();
    let profile = match server {
        Some(mut server) => check.run_drain(clock, &mut server, &mut watching),
        None => check.run(clock, capture, &mut watching),
    };
    let profile = profile.map_err(|error| match error {
        CheckError::Config(error) => Failed::usage(error),
        CheckError::Loop(_) => Failed::from(anyhow::Error::from(error)),
        CheckError::Server(_) => Failed::unreachable(error),
    })?;
    let Watched {
        rows,
        caveats,
        printed,
        ladders,
    } = watching.finish(&profile);
    let mut facts = CheckFacts::new(&profile, &rows);
    facts.add_caveats(caveats);
    if is_next_to_bench {
        facts.verdict = facts.verdict.without(ClaimKind::Note);
    }
    let keeps = facts.keeps();
    let document = Document::new(head, Parts::Check(Box::new(facts)));
    let print = |page: &Page<'_>, length: Length| {
        console::print_written(&match (&printed, &document.parts) {
            (Some(profile), Parts::Check(facts)) => {
                let run = &document.run;
                let part = CheckPart::Rest(&profile.facts);
                let mut rest = check_page(CheckRun { run, facts }, part);
                rest.gate = page.gate;
                let paper = console::paper(length.split(NOTES).1);
                intact_report::terminal::write_rest(&rest, paper, &profile.part)
            }
            _ => intact_report::terminal::write(page, console::paper(length)) + &ladders,
        });
    };
    let code = conclusion.finish_with(&document, interrupt.signal(), print)?;
    Ok((code, keeps))
}

/// What will be sent, before it is.
fn announce(budget: &Budget, config: &intact_check::Config) {
    let most = counted(u64::from(budget.requests()), "request");
    if let Some(drain) = &config.drain {
        let seconds = drain.limit.as_secs_f64();
        return console::note_lines(&format!(
            "at most {most}; {} to the server, SIGKILL after {seconds} s",
            drain.signal.name()
        ));
    }
    let mut line = format!(
        "sending at most {most}: {} for a profile, {} for the request limit",
        budget.profile, budget.cap
    );
    if config.idle {
        line.push_str(&format!(", {} for idle limits", budget.idle));
    }
    if !config.is_local() {
        line.push_str(&format!(
            "\nat most {CONNECTIONS_PER_S} new connections a second"
        ));
    }
    console::note_lines(&line);
}

/// What follows the profile.
fn next(budget: &Budget, config: &intact_check::Config) -> String {
    let mut line = format!(
        "next: {} on one connection",
        counted(u64::from(budget.cap), "request")
    );
    if config.idle {
        line.push_str(&format!(
            ", then up to {} s idle (not with --no-idle)",
            config.idle_limit.as_secs_f64()
        ));
    }
    line
}

/// The means to capture packets where they are wanted, found out before anything is sent.
fn capture(args: &Args) -> Result<(Option<Capture>, Wanted), Failed> {
    if args.ladder && args.output.is_json() {
        refuse!(
            "--ladder is part of the page, which --json replaces: write --json=FILE, or --pcapng FILE instead of --ladder"
        );
    }
    let mut wanted = Wanted {
        ladder: args.ladder,
        pcapng: None,
    };
    if !args.ladder && args.pcapng.is_none() {
        return Ok((None, wanted));
    }
    let capture = Capture::open().map_err(|error| match error {
        CaptureError::Forbidden(_) | CaptureError::Platform => Failed::forbidden(error),
        CaptureError::Own(_) => Failed::from(anyhow::Error::from(error)),
    })?;
    if let Some(path) = &args.pcapng {
        let file =
            private_file::create(path).with_context(|| format!("--pcapng {}", path.display()))?;
        wanted.pcapng = Some(file);
    }
    Ok((Some(capture), wanted))
}

fn check_config(args: Args) -> Result<(intact_check::Config, DrainArgs), Failed> {
    let Some(url) = &args.url else {
        refuse!("name a URL");
    };
    let mut config = intact_check::Config::new(url).map_err(Failed::usage)?;
    config.method = Method::new(&args.method);
    config.headers = args.headers;
    config.credentials = args.reach.credentials(Verify::System)?;
    config.route = args.reach.route();
    config.timeout = args.timeout;
    config.max_time = args.max_time.unwrap_or(if args.thorough {
        MAX_TIME * 5
    } else {
        MAX_TIME
    });
    config.http = args.http;
    config.follow = args.follow;
    config.expect = args.expect.expect;
    config.idle = !args.no_idle;
    config.idle_limit = args.idle_limit;
    config.hold = args.idle_connections;
    config.thorough = args.thorough;
    if args.tries.len() > MOST_TRIES {
        refuse!(
            "--try can be given {MOST_TRIES} times, not {}",
            args.tries.len()
        );
    }
    config.tries = args.tries;
    config.drain = args.drain.config();
    Ok((config, args.drain))
}
