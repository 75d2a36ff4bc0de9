//! `intact audit`: the findings of a capture, a HAR file or a log, offline.

use super::conclusion::{Conclusion, Output, exit_code, print};
use super::config::Config;
use super::gates::Gates;
use super::ladder;
use super::observing::{Audited, Observing};
use super::output_files::OutputFiles;
use super::progress;
use super::run_header::{fingerprint_key, of_words};
use crate::console;
use crate::exit::{Failed, refuse};
use crate::interrupt::Interrupt;
use anyhow::{Context, anyhow};
use indicatif::ProgressBar;
use intact_audit::{
    Audit, AuditError, Input, InputOptions, InputSummary, KeyLog, LadderSelection, Options,
    Pattern, record_on_thread,
};
use intact_document::body_arrival::BodyArrival;
use intact_document::requirement::DocumentKind;
use intact_findings::{AuditParts, Document, ObservedParts, Parts};
use intact_ledger::{Caveat, Event, Producer, Rows, Run, Sink, Vantage, input_file};
use intact_report::documents::{self, LadderFacts};
use intact_report::page::Page;
use intact_report::terminal::Length;
use intact_traffic::{InputFacts, TrafficAnalysis, UpstreamFacts};
use intact_units::plural::counted;
use std::io::BufReader;
use std::path::PathBuf;
use std::process::ExitCode;

/// The most bytes of a key log that are read: secrets of a million connections.
const LONGEST_KEY_LOG: u64 = 512 << 20;

/// Did connections get reused in this capture, HAR file, NetLog or access log?
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Captures, HAR files, NetLogs, access logs, Zeek's logs, rows of load generators, counters of
    /// proxies, ledgers, or folders of them; gzip and zstd are decompressed; - is standard input
    #[arg(required = true, value_name = "FILE")]
    inputs: Vec<PathBuf>,
    /// TLS secrets as SSLKEYLOGFILE writes them, may be repeated (those inside a pcapng are used
    /// anyway)
    #[arg(long, value_name = "FILE")]
    keylog: Vec<PathBuf>,
    /// Show the packets of one connection of a capture, by its number; without one, of the first
    /// that carries a request
    #[arg(long, value_name = "CONNECTION", num_args = 0..=1, require_equals = true, default_missing_value = "0")]
    ladder: Option<u64>,
    /// Format of an access log, as in the configuration of nginx, Apache or Envoy (usual formats
    /// are recognised)
    #[arg(long, value_name = "FORMAT", value_parser = pattern)]
    log_format: Option<Pattern>,

    #[command(flatten)]
    files: OutputFiles,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    gates: Gates,
}

const EXAMPLES: &str = "Examples:
  # record, then read
  tcpdump -i any -s 0 -w last-night.pcap port 443
  intact audit last-night.pcap --keylog keys.txt
  tcpdump -i lo -U -w - port 8080 | intact audit -
  intact audit /var/log/nginx/access.log*
  # Zeek's, joined
  intact audit conn.log ssl.log http.log
  # one stretch of time: what changed, and when
  intact audit before/ after/
  intact audit odd.log --log-format \\
    '$remote_addr [$time_local] $status $connection $connection_requests'
  # what a browser did, socket by socket: record, then read
  chromium --log-net-log=net.json URL
  intact audit net.json
  # packets in time: one for an answer, or two?
  intact audit trace.pcapng --ladder
  intact audit before.pcap --json | jq .totals.reuse
  intact audit ci.pcapng.gz --require 'reuse > 80%' --fail-on warning

TLS without keys is counted in connections, never as 0 % reuse. See docs/reference/audit.md";

/// Reads the inputs and prints the page.
pub(crate) fn run(config: &Config<Args>) -> Result<ExitCode, Failed> {
    let args = &config.options;
    let conclusion = Conclusion::begin(args.output.clone(), &args.gates, DocumentKind::Audit)?;
    let interrupt = Interrupt::listen()?;
    let keys = key_log(&args.keylog)?;
    let opened = open(&args.inputs, &args.log_format)?;
    let run = head(&opened.0, &config.words)?;
    let fold = Audited {
        observed: TrafficAnalysis::new(&run),
        responses: BodyArrival::default(),
    };
    let mut observing = Observing::start(fold, &run, &args.files)?;
    let ladder = args.ladder.map(|number| match number {
        0 => LadderSelection::First,
        number => LadderSelection::Number(number),
    });
    let (inputs, ladder) = read_all(opened, keys, ladder, &mut observing, &interrupt)?;
    let Audited {
        observed,
        responses,
    } = observing.finish();
    let charts = observed.pictures(&run);
    let answers = responses.facts();
    let parts = ObservedParts {
        facts: observed.facts(),
        charts,
        audit: Some(AuditParts {
            inputs,
            answers: answers.clone(),
            changes: observed.changes(),
        }),
    };
    let document = Document::new(run, Parts::Observed(Box::new(parts)));
    if args.ladder.is_none() {
        let kept = conclusion.write(&document)?;
        return Ok(exit_code(interrupt.signal(), true, kept));
    }
    // packets that were asked for are not cut
    let print = |page: &Page<'_>, _| {
        print(page, Length::Full);
        if ladder.is_none() {
            console::note(
                "no such connection: --ladder shows packets of a capture, and --ladder=NUMBER counts connections from 1 in the order of their first packets",
            );
        }
    };
    let mut page = documents::page(&document);
    page.section(documents::answers(&answers));
    page.section(ladder.as_ref().map(documents::ladder));
    let kept = conclusion.write_page(&document, page, print)?;
    Ok(exit_code(interrupt.signal(), true, kept))
}

/// The traffic of these inputs, without a page or a ledger.
pub(super) fn analysis(paths: &[PathBuf], words: &[String]) -> Result<TrafficAnalysis, Failed> {
    let opened = open(paths, &None)?;
    let mut traffic = TrafficAnalysis::new(&head(&opened.0, words)?);
    let (keys, interrupt) = (KeyLog::default(), Interrupt::default());
    read_all(opened, keys, None, &mut traffic, &interrupt)?;
    Ok(traffic)
}

/// Reads all inputs until a signal comes. Returns what was read, and the packets that `--ladder`
/// asks for.
fn read_all(
    opened: Opened,
    keys: KeyLog,
    ladder: Option<LadderSelection>,
    sink: &mut (impl Sink + Send),
    interrupt: &Interrupt,
) -> Result<(Vec<InputFacts>, Option<LadderFacts>), Failed> {
    record_on_thread(sink, |sink| {
        read_into(opened, keys, ladder, sink, interrupt)
    })
}

/// Reads all inputs on this thread.
fn read_into(
    (inputs, mut unread): Opened,
    keys: KeyLog,
    ladder: Option<LadderSelection>,
    sink: &mut dyn Sink,
    interrupt: &Interrupt,
) -> Result<(Vec<InputFacts>, Option<LadderFacts>), Failed> {
    let mut reading = Audit::new(Options {
        keys,
        ladder,
        random: fingerprint_key()?,
        base: begin(&inputs),
    });
    let bar = bar(&inputs)?;
    let mut accounts = Vec::new();
    for input in inputs {
        let gauge = input.gauge();
        let before = bar.position();
        let mut go_on = || {
            bar.set_position(before + gauge.get());
            interrupt.signal().is_none()
        };
        match reading.read(input, sink, &mut go_on) {
            Ok(account) => accounts.push(input_facts(&account)),
            Err(error) => unread.push(error),
        }
        bar.set_position(before + gauge.get());
    }
    reading.finish(sink);
    bar.finish_and_clear();
    if accounts.is_empty() {
        return Err(nothing_read(&unread));
    }
    for caveat in AuditError::caveats(&unread) {
        sink.record(Event::Caveat(&caveat));
    }
    if interrupt.signal().is_some() {
        sink.record(Event::Caveat(&Caveat::incomplete(
            "interrupted",
            "a signal ended the reading: the rest of the inputs was not read",
        )));
    }
    Ok((accounts, reading.ladder().as_ref().map(ladder::facts)))
}

fn pattern(text: &str) -> Result<Pattern, String> {
    Pattern::new(text).map_err(|error| error.to_string())
}

fn key_log(files: &[PathBuf]) -> Result<KeyLog, Failed> {
    let mut keys = KeyLog::default();
    for path in files {
        let wrong = input_file::Bounded::open(path, LONGEST_KEY_LOG)
            .and_then(|file| keys.add_lines(BufReader::new(file)))
            .with_context(|| format!("--keylog {}", path.display()))
            .map_err(Failed::unreadable)?;
        if wrong > 0 {
            console::note(&format!(
                "--keylog {}: {} left out, without a secret in the format of SSLKEYLOGFILE",
                path.display(),
                counted(wrong, "line")
            ));
        }
    }
    Ok(keys)
}

/// Inputs that can be read, and why others cannot.
type Opened = (Vec<Input>, Vec<AuditError>);

/// When the first input begins, in nanoseconds; 0 where that is not known.
fn begin(inputs: &[Input]) -> u64 {
    let begins = inputs.iter().filter_map(Input::begins_at);
    begins.min().unwrap_or(0)
}

/// Opens all inputs, in the order in which they are to be read; those that cannot be read are no
/// reason not to read the others.
fn open(paths: &[PathBuf], log_format: &Option<Pattern>) -> Result<Opened, Failed> {
    let (mut inputs, mut unread) = (Vec::new(), Vec::new());
    let hints = InputOptions {
        log_format: log_format.clone(),
    };
    for path in paths.iter().flat_map(|path| Input::files_of(path)) {
        match Input::open(&path, &hints) {
            Ok(input) => inputs.push(input),
            Err(error) => unread.push(error),
        }
    }
    if inputs.is_empty() {
        return Err(nothing_read(&unread));
    }
    let vantage = inputs[0].vantage();
    if let Some(other) = inputs.iter().find(|input| input.vantage() != vantage) {
        refuse!(
            "{} and {} were recorded from different places (client, server or between): audit them one at a time",
            inputs[0].format().as_str(),
            other.format().as_str()
        );
    }
    inputs.sort_by_key(Input::turn);
    Ok((inputs, unread))
}

fn nothing_read(errors: &[AuditError]) -> Failed {
    let all: Vec<String> = errors.iter().map(ToString::to_string).collect();
    Failed::unreadable(anyhow!("{}", all.join("\n")))
}

fn head(inputs: &[Input], words: &[String]) -> Result<Run, Failed> {
    let started = jiff::Timestamp::from_nanosecond(i128::from(begin(inputs)))
        .context("the input begins at a time that no calendar has")?;
    let vantage = inputs
        .first()
        .map_or(Vantage::OnPath, |input| input.vantage());
    let mut run = of_words(Producer::Audit, vantage, started, words);
    run.clock = "the input's".to_owned();
    run.rows = Rows::All;
    run.add_evidence(Input::evidence(inputs));
    run.time_step_ns = Input::time_step(inputs);
    run.subject = Some(Input::subject(inputs));
    Ok(run)
}

fn input_facts(account: &InputSummary) -> InputFacts {
    let upstreams = account.upstreams.iter().cloned();
    let upstreams =
        upstreams.map(|one| UpstreamFacts::new(one.upstream, one.connections, one.requests));
    InputFacts {
        name: account.name(),
        format: account.format.as_str().to_owned(),
        unit: account.unit.as_str().to_owned(),
        read: account.read,
        skipped: account.skipped,
        bytes: account.bytes,
        evidence: account.evidence.clone(),
        advice: account.advice.clone(),
        upstreams: upstreams.collect(),
    }
}

/// Progress in bytes of the inputs; hidden where their size is not known.
fn bar(inputs: &[Input]) -> anyhow::Result<ProgressBar> {
    let total: Option<u64> = inputs.iter().map(Input::size).sum();
    match total {
        Some(_) => progress::bar(total, 5, "{bar:30} {bytes} of {total_bytes}, {eta} left"),
        None => Ok(ProgressBar::hidden()),
    }
}
