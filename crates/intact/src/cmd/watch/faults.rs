//! `--fault`: the program runs under faults on its own connections, and the page is a card: what it did about each.
//!
//! With one kind the program runs once, and its exit code is ours. With several kinds, or `each`, it runs once without a fault first,
//! then once for each kind. Must not judge: `findings::fault` does.

use super::{Args, How, key_logging, not_run, subject};
use crate::cmd::conclusion::Conclusion;
use crate::cmd::config::Config;
use crate::cmd::observing::Observing;
use crate::cmd::{progress, run_header};
use crate::console;
use crate::exit::{self, Failed};
use anyhow::anyhow;
use indicatif::ProgressBar;
use intact_findings::fault::{AXIS, FaultAnalysis, NO_FAULT};
use intact_findings::requirement::Requirement;
use intact_ledger::{
    Event, FaultEnd, FaultEvent, FaultKind, Producer, Rows, Run, Sink, Vantage, Variant,
};
use intact_report::documents::{FaultCard, Source};
use intact_report::page::Page;
use intact_units::{duration, suggest};
use intact_watch::{Clock, Ended, FaultConfig, FaultHost, Mode, Outcome, RunPosition, Streams};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

/// All kinds.
const EACH: &str = "each";

/// The options.
#[derive(clap::Args, Clone)]
#[command(next_help_heading = "Faults")]
pub(crate) struct FaultArgs {
    /// Break kept connections of the program, and report what it does: stale, fin-race, rst, reset-mid-response,
    /// early-close-after-headers, nat-idle[=5s], black-hole, goaway, max-age[=30s], slow-close, drain. Several kinds, or `each`:
    /// the program runs once without a fault, then once for each kind
    #[arg(long, value_name = "KIND[=TIME],..", value_delimiter = ',', value_parser = choice, conflicts_with_all = ["pid", "all", "live", "cpu", "flamegraph", "also_pid"])]
    fault: Vec<FaultChoice>,
    /// Limit faults to this destination, may be repeated [default: all]
    #[arg(long, value_name = "HOST[:PORT]", value_parser = host, requires = "fault")]
    fault_host: Vec<FaultHost>,
    /// Seed of the choice of connections [default: 0]
    #[arg(long, value_name = "N", requires = "fault")]
    fault_seed: Option<u64>,
    /// Reset a connection that stalls for this long, so that the program can go on [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = crate::cmd::bench::time, requires = "fault")]
    fault_wait: Option<Duration>,
    /// Let the program print, and read standard input, in each run; without it in the first run only
    #[arg(long, requires = "fault")]
    show_output: bool,
}

/// What one word of `--fault` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FaultChoice {
    Each,
    Kind(FaultKind, Option<Duration>),
}

/// For clap: `each`, a kind, or a kind with its time.
fn choice(word: &str) -> Result<FaultChoice, String> {
    if word == EACH {
        return Ok(FaultChoice::Each);
    }
    let (id, time) = match word.split_once('=') {
        Some((id, time)) => (id, Some(time)),
        None => (word, None),
    };
    let Some(kind) = FaultKind::from_id(id) else {
        let known = || FaultKind::ALL.iter().map(|kind| kind.id()).chain([EACH]);
        return Err(match suggest::nearest(id, known()) {
            Some(meant) => format!("unknown kind of fault; did you mean `{meant}`?"),
            None => format!(
                "unknown kind of fault; there is {}",
                known().collect::<Vec<_>>().join(", ")
            ),
        });
    };
    let Some(time) = time else {
        return Ok(FaultChoice::Kind(kind, None));
    };
    if kind.default_after().is_none() {
        return Err(format!(
            "`{kind}` takes no time; `nat-idle` and `max-age` do"
        ));
    }
    let time = crate::cmd::bench::time(time).map_err(|error| error.to_string())?;
    if time.is_zero() {
        return Err("the time is above zero".to_owned());
    }
    Ok(FaultChoice::Kind(kind, Some(time)))
}

/// For clap.
fn host(word: &str) -> Result<FaultHost, String> {
    FaultHost::parse(word).ok_or_else(|| "write HOST or HOST:PORT, without a scheme".to_owned())
}

impl FaultArgs {
    /// Whether faults were asked for.
    pub(super) fn is_any(&self) -> bool {
        !self.fault.is_empty()
    }

    /// The faults, in the order of their kinds.
    fn faults(&self) -> Vec<FaultConfig> {
        let mut times: BTreeMap<FaultKind, Option<Duration>> = BTreeMap::new();
        for choice in &self.fault {
            match *choice {
                FaultChoice::Each => {
                    for kind in FaultKind::ALL {
                        times.entry(kind).or_insert(None);
                    }
                }
                FaultChoice::Kind(kind, time) => {
                    let known = times.entry(kind).or_insert(None);
                    *known = time.or(*known);
                }
            }
        }
        let fault = |(kind, time): (FaultKind, Option<Duration>)| {
            let mut fault = FaultConfig::new(kind);
            fault.after = time.unwrap_or(fault.after);
            fault.hosts.clone_from(&self.fault_host);
            fault.seed = self.fault_seed.unwrap_or(fault.seed);
            fault.wait = self.fault_wait.unwrap_or(fault.wait);
            fault
        };
        times.into_iter().map(fault).collect()
    }
}

/// Runs the program under its faults, then prints the card to standard error.
pub(super) fn run(config: &Config<Args>, requirements: &[Requirement]) -> Result<ExitCode, Failed> {
    let args = &config.options;
    if args.mode == How::Passthrough {
        let words = "--fault needs the relay: leave --mode passthrough out";
        return Err(Failed::usage(anyhow!(words)));
    }
    let own = |error| Failed::wrapper(exit::WRAPPER_FAILURE, error);
    let faults = args.faults.faults();
    let has_baseline = faults.len() > 1;
    let first = has_baseline.then_some(None).into_iter();
    let planned: Vec<Option<FaultConfig>> = first.chain(faults.into_iter().map(Some)).collect();
    let head = head(config, &planned);
    let key = run_header::fingerprint_key().map_err(own)?;
    let mut runs = Runs {
        args,
        clock: Clock::start(),
        recording: Observing::start(FaultAnalysis::new(&head), &head, &args.files).map_err(own)?,
        config: intact_watch::Config::new(args.command.clone(), key),
        bar: bar(args, planned.len()).map_err(own)?,
    };
    let ended = runs.all(&planned);
    runs.bar.finish_and_clear();
    let code = ended?;
    let facts = runs.recording.finish().facts();
    let conclusion = Conclusion {
        output: &(&args.output).into(),
        gates: &args.gates,
        requirements,
        run: &head,
        facts: &facts,
    };
    let card = FaultCard {
        run: &head,
        facts: &facts,
    };
    let print = |page: &Page<'_>| {
        if !args.quiet {
            let text = intact_report::terminal::write(page, console::error_paper());
            console::note_written(&text);
        }
    };
    let kept = conclusion.write(
        || intact_report::json::fault(&head, &facts),
        || Source::Fault(card).page(),
        print,
    );
    Ok(ExitCode::from(match code {
        exit::FINE if !kept.map_err(own)? => exit::REQUIREMENT,
        code => code,
    }))
}

/// The header: a variant for each run.
fn head(config: &Config<Args>, planned: &[Option<FaultConfig>]) -> Run {
    let args = &config.options;
    let mut head = run_header::head(Producer::Watch, Vantage::OnPath, &config.words);
    head.rows = Rows::All;
    head.subject = Some(subject(args));
    head.seed = planned.iter().flatten().map(|fault| fault.seed).next();
    head.varied = vec![AXIS.to_owned()];
    head.variants = planned
        .iter()
        .map(|fault| variant(fault.as_ref()))
        .collect();
    head.link = super::added_round_trip(args);
    head
}

fn variant(fault: Option<&FaultConfig>) -> Variant {
    let name = match fault {
        None => NO_FAULT.to_owned(),
        Some(fault) => match fault.kind.default_after() {
            Some(_) => format!("{}={}", fault.kind, duration::write(fault.after)),
            None => fault.kind.id().to_owned(),
        },
    };
    Variant {
        axes: BTreeMap::from([(AXIS.to_owned(), name.clone())]),
        name,
    }
}

struct Runs<'a> {
    args: &'a Args,
    clock: Clock,
    recording: Observing<FaultAnalysis>,
    config: intact_watch::Config,
    bar: ProgressBar,
}

impl Runs<'_> {
    /// All runs, until one without a fault fails or a person ends one. Returns our exit code without gates.
    fn all(&mut self, planned: &[Option<FaultConfig>]) -> Result<u8, Failed> {
        let is_alone = planned.len() == 1;
        for (variant, fault) in (0u32..).zip(planned) {
            let outcome = self.one(variant, fault.as_ref())?;
            self.bar.inc(1);
            let code = match outcome.ended {
                Ended::Code(code) => code as u8,
                Ended::Signal(number) => exit::by_signal(number as usize),
            };
            // a person's Ctrl-C reaches the program first; shells report it as a code
            let is_interrupted = [2, 15, 1].map(exit::by_signal).contains(&code);
            let has_failed = fault.is_none() && code != exit::FINE;
            if is_alone || is_interrupted || has_failed {
                return Ok(code);
            }
        }
        Ok(exit::FINE)
    }

    fn one(&mut self, variant: u32, fault: Option<&FaultConfig>) -> Result<Outcome, Failed> {
        let args = self.args;
        let mut config = self.config.clone();
        // not only a preference: a fault needs the relay
        config.mode = Mode::Relay;
        if fault.is_none() && args.mode == How::Auto {
            config.mode = Mode::Auto;
        }
        config.keys = key_logging(args.keys);
        config.round_trip = args.rtt.unwrap_or_default();
        config.fault = fault.cloned();
        config.place = Some(RunPosition {
            variant,
            round: 1,
            environment: None,
        });
        if variant > 0 && !args.faults.show_output {
            config.streams = Streams::Null;
        }
        let name = fault.map_or("without a fault", |fault| fault.kind.id());
        self.bar.set_message(name.to_owned());
        let outcome =
            intact_watch::run(&config, self.clock, &mut self.recording).map_err(not_run)?;
        let (code, signal) = match outcome.ended {
            Ended::Code(code) => (Some(code), None),
            Ended::Signal(number) => (None, Some(number)),
        };
        self.recording
            .record(Event::Fault(&FaultEvent::Ended(FaultEnd {
                variant: Some(variant),
                round: Some(1),
                span: outcome.span,
                code,
                signal,
            })));
        Ok(outcome)
    }
}

fn bar(args: &Args, runs: usize) -> anyhow::Result<ProgressBar> {
    if args.faults.show_output || runs == 1 {
        return Ok(ProgressBar::hidden());
    }
    progress::bar(Some(runs as u64), 10, "{bar:30} {pos}/{len} {wide_msg}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_takes_a_time_only_where_it_has_one() {
        let kind = |kind, time| Ok(FaultChoice::Kind(kind, time));
        assert_eq!(choice("each"), Ok(FaultChoice::Each));
        assert_eq!(choice("stale"), kind(FaultKind::Stale, None));
        let second = Some(Duration::from_secs(1));
        assert_eq!(choice("nat-idle=1s"), kind(FaultKind::NatIdle, second));
        assert!(choice("stale=1s").unwrap_err().contains("takes no time"));
        assert!(choice("max-age=0s").is_err() && choice("max-age=soon").is_err());
        assert!(choice("blackhole").unwrap_err().contains("`black-hole`"));
        assert!(choice("earthquake").unwrap_err().contains("drain, each"));
    }

    #[test]
    fn each_is_every_kind_once_and_a_time_next_to_it_counts() {
        let args = |words: &[&str]| FaultArgs {
            fault: words.iter().map(|word| choice(word).unwrap()).collect(),
            fault_host: Vec::new(),
            fault_seed: Some(7),
            fault_wait: None,
            show_output: false,
        };
        for words in [["each", "nat-idle=1s"], ["nat-idle=1s", "each"]] {
            let faults = args(&words).faults();
            let kinds: Vec<FaultKind> = faults.iter().map(|fault| fault.kind).collect();
            assert_eq!(kinds, FaultKind::ALL);
            let idle = faults.iter().find(|one| one.kind == FaultKind::NatIdle);
            let idle = idle.unwrap();
            assert_eq!((idle.after, idle.seed), (Duration::from_secs(1), 7));
            assert_eq!(variant(Some(idle)).name, "nat-idle=1s");
        }
        let one = args(&["stale", "stale"]).faults();
        assert_eq!(one.len(), 1);
    }
}
