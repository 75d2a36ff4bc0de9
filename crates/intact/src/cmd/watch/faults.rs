//! `--fault`: the program runs under faults on its own connections, and the page is a card: what it
//! did about each.
//!
//! With one kind the program runs once, and its exit code is ours. With several kinds, `none` or
//! `each`, it runs once without a fault first, then once for each kind. Must not judge:
//! `findings::fault` does.

use super::{Args, key_logging, not_run};
use crate::cmd::conclusion::Conclusion;
use crate::cmd::config::Config;
use crate::cmd::fault_options::{self, FaultOptions};
use crate::cmd::observing::Observing;
use crate::cmd::{progress, run_header};
use crate::exit::{self, Failed, refuse};
use indicatif::ProgressBar;
use intact_findings::{Document, Parts};
use intact_ledger::{Event, FaultEvent, Run, Sink};
use intact_servers::fault::{AXIS, FaultAnalysis};
use intact_watch::{Clock, FaultConfig, Mode, Outcome, RunPosition, Streams};
use std::process::ExitCode;

/// The options.
#[derive(clap::Args, Clone)]
pub(crate) struct FaultArgs {
    #[command(flatten)]
    options: FaultOptions,
    /// Let the program print, and read standard input, in each run; without it in the first run
    /// only
    #[arg(long, requires = "fault", help_heading = "Faults")]
    show_output: bool,
}

impl FaultArgs {
    /// Whether faults were asked for.
    pub(super) fn is_any(&self) -> bool {
        self.options.is_any()
    }
}

/// Runs the program under its faults, then prints the card to standard error.
pub(super) fn run(config: &Config<Args>, conclusion: &Conclusion) -> Result<ExitCode, Failed> {
    let args = &config.options;
    if args.mode == Mode::Passthrough {
        let words = "--fault needs the relay: leave --mode passthrough out";
        refuse!(words);
    }
    if args.processor.is_any() {
        let words = "--fault runs the program several times: measure processor time without it";
        refuse!(words);
    }
    let planned = args.faults.options.planned()?;
    let head = head(config, &planned);
    let key = run_header::fingerprint_key()?;
    let mut runs = Runs {
        args,
        clock: Clock::start(),
        recording: Observing::start(FaultAnalysis::new(&head), &head, &args.files)?,
        config: intact_watch::Config::new(args.command.clone(), key),
        bar: bar(args, planned.len())?,
    };
    let ended = runs.all(&planned);
    runs.bar.finish_and_clear();
    let code = ended?;
    let facts = runs.recording.finish().facts();
    let document = Document::new(head, Parts::Fault(Box::new(facts)));
    Ok(conclusion.finish_after(&document, code, args.quiet)?)
}

/// The header: a variant for each run.
fn head(config: &Config<Args>, planned: &[Option<FaultConfig>]) -> Run {
    let mut head = super::head(config);
    head.add_evidence(Mode::Auto.evidence());
    head.seed = planned.iter().flatten().map(|fault| fault.seed).next();
    head.varied = vec![AXIS.to_owned()];
    head.variants = planned
        .iter()
        .map(|fault| fault_options::variant(fault.as_ref()))
        .collect();
    head
}

struct Runs<'a> {
    args: &'a Args,
    clock: Clock,
    recording: Observing<FaultAnalysis>,
    config: intact_watch::Config,
    bar: ProgressBar,
}

impl Runs<'_> {
    /// All runs, until one without a fault fails or a person ends one. Returns our exit code
    /// without gates.
    fn all(&mut self, planned: &[Option<FaultConfig>]) -> Result<u8, Failed> {
        let is_alone = planned.len() == 1;
        for (variant, fault) in (0u32..).zip(planned) {
            let before = variant.checked_sub(1);
            let has_pool = before.is_some_and(|one| self.recording.fold().has_struck_pool(one));
            let before = before.and_then(|before| planned[before as usize].as_ref());
            if fault_options::was_shown(before, fault.as_ref(), has_pool) {
                self.bar.inc(1);
                continue;
            }
            let outcome = self.one(variant, fault.as_ref())?;
            self.bar.inc(1);
            let code = exit::of_program(outcome.ended);
            let has_failed = fault.is_none() && code != exit::FINE;
            if is_alone || has_failed {
                return Ok(code);
            }
            if let Some(signal) = outcome.interrupted {
                return Ok(exit::by_signal(signal as usize));
            }
        }
        Ok(exit::FINE)
    }

    fn one(&mut self, variant: u32, fault: Option<&FaultConfig>) -> Result<Outcome, Failed> {
        let args = self.args;
        let mut config = self.config.clone();
        // not only a preference: a fault needs the relay
        config.mode = Mode::Relay;
        if fault.is_none() && args.mode == Mode::Auto {
            config.mode = Mode::Auto;
        }
        config.keys = key_logging(args.keys);
        config.round_trip = args.rtt.unwrap_or_default();
        config.code = args.places.reading(None);
        config.fault = fault.cloned();
        config.place = Some(RunPosition {
            variant,
            round: 1,
            environment: None,
        });
        if variant > 0 && !args.faults.show_output {
            config.streams = Streams::Null;
        }
        let name = match fault {
            None => "without a fault".to_owned(),
            Some(_) => fault_options::variant(fault).name,
        };
        self.bar.set_message(name);
        let outcome =
            intact_watch::run(&config, self.clock, &mut self.recording).map_err(not_run)?;
        let end = FaultEvent::Ended(outcome.fault_end(variant));
        self.recording.record(Event::Fault(&end));
        Ok(outcome)
    }
}

fn bar(args: &Args, runs: usize) -> anyhow::Result<ProgressBar> {
    if args.faults.show_output || runs == 1 {
        return Ok(ProgressBar::hidden());
    }
    progress::bar(Some(runs as u64), 10, "{bar:30} {pos}/{len} {wide_msg}")
}
