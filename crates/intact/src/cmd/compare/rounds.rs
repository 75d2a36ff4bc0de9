//! Programs run in interleaved rounds under `watch`, into one ledger.

use super::Args;
use super::commits::{self, Commits};
use super::programs::{self, Program};
use crate::cmd::config::Config;
use crate::cmd::fault_options;
use crate::cmd::observing::Observing;
use crate::cmd::progress;
use crate::cmd::run_header::{self, fingerprint_key, seed};
use crate::cmd::watch::processor::function_names;
use crate::cmd::watch::sampler::ProgramSampler;
use crate::cmd::watch::{key_logging, not_run};
use crate::console;
use crate::exit::{self, Failed};
use anyhow::{Context, anyhow};
use indicatif::ProgressBar;
use intact_document::cpu::ProgramWork;
use intact_experiment::order;
use intact_experiments::compare::{
    COMMIT_AXIS, CompareFacts, Comparison, PROGRAM_FAILED, WARMUP, programs_of,
};
use intact_ledger::{
    Caveat, Event, FaultEvent, Producer, Round, Rows, Run, Sink, Vantage, Variant, redact,
};
use intact_units::foreign_text::escape;
use intact_units::number::timer;
use intact_watch::{Clock, Ended, FaultConfig, Mode, Outcome, RunPosition, Streams};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs the programs; the exit code is that of a program which failed or was ended by a signal, if
/// one did.
pub(super) fn of_programs(
    config: &Config<Args>,
) -> Result<(Run, CompareFacts, Option<u8>), Failed> {
    let args = &config.options;
    let commits = args
        .commits
        .as_deref()
        .map(|commits| check_out(args, commits));
    let commits = commits.transpose()?;
    let parsed = match &commits {
        None => programs::parse(&args.programs, &args.env)?,
        Some(_) => Vec::new(),
    };
    let programs = commits.as_ref().map_or(&parsed, |both| &both.programs);
    let faults = args.fault.with_each(args.faults);
    let faults = match faults.is_any() {
        true => faults.planned()?,
        false => Vec::new(),
    };
    let run = described(config, programs, &faults);
    let mut rounds = Rounds {
        args,
        programs,
        clock: Clock::start(),
        recording: Observing::start(Comparison::new(&run), &run, &args.files)?,
        config: intact_watch::Config::new(Vec::new(), fingerprint_key()?),
        failures: BTreeMap::new(),
        sampler: sampler(args, programs.len())?,
        bar: bar(args, programs.len(), faults.len())?,
    };
    for caveat in commits.iter().flat_map(|both| &both.caveats) {
        rounds.recording.record(Event::Caveat(caveat));
    }
    let ended = rounds
        .all(run.seed.unwrap_or(0))
        .and_then(|ended| match ended {
            Some(_) => Ok(ended),
            None => rounds.under_faults(&faults),
        });
    rounds.bar.finish_and_clear();
    let ended = ended?;
    rounds.print_failures();
    let mut facts = rounds.recording.finish().facts();
    if let Some(sampler) = &rounds.sampler {
        add_work(&mut facts, sampler, &run, args.flamegraph.as_deref());
    }
    Ok((run, facts, ended))
}

/// Both commits, ready to run.
fn check_out(args: &Args, commits: &str) -> Result<Commits, Failed> {
    let bar = progress::bar(None, 10, "{wide_msg}")?;
    let request = commits::Request {
        commits,
        setup: args.setup.as_deref(),
        shows_output: args.show_output,
        words: &args.programs,
    };
    let both = commits::prepare(&request, |words| {
        bar.set_message(words.to_owned());
        bar.tick();
    });
    bar.finish_and_clear();
    both
}

/// A sampler, if that was asked for.
fn sampler(args: &Args, programs: usize) -> Result<Option<ProgramSampler>, Failed> {
    if !args.cpu && args.flamegraph.is_none() {
        return Ok(None);
    }
    let option = if args.cpu { "--cpu" } else { "--flamegraph" };
    let sampler = ProgramSampler::new(programs)
        .map_err(|reason| Failed::forbidden(anyhow!("{option}: {reason}")))?;
    Ok(Some(sampler))
}

/// What the programs took processor time for.
fn add_work(
    facts: &mut CompareFacts,
    sampler: &ProgramSampler,
    run: &Run,
    flamegraph: Option<&Path>,
) {
    let programs = programs_of(run).iter();
    let names: Vec<&str> = programs.map(|one| one.name.as_str()).collect();
    let work = names.iter().zip(sampler.work());
    let work = work.map(|(name, work)| ProgramWork {
        name: (*name).to_owned(),
        work,
    });
    facts.work = work.collect();
    let gaps = sampler.gaps().into_iter();
    facts
        .caveats
        .extend(gaps.map(|gap| Caveat::new("samples", gap)));
    if let Some(path) = flamegraph {
        sampler.draw(&names, path);
    }
}

fn described(config: &Config<Args>, programs: &[Program], faults: &[Option<FaultConfig>]) -> Run {
    let args = &config.options;
    let mut run = run_header::head(Producer::Compare, Vantage::OnPath, &config.words);
    run.rows = Rows::All;
    run.add_evidence(Mode::Auto.evidence());
    run.seed = Some(args.seed.unwrap_or_else(seed));
    let own = programs.iter().map(|one| one.variant.clone());
    let under_faults = programs.iter().flat_map(|one| {
        faults.iter().map(|fault| {
            let Variant { name, axes } = fault_options::variant(fault.as_ref());
            let name = format!("{} under {name}", one.variant.name);
            Variant { name, axes }
        })
    });
    run.variants = own.chain(under_faults).collect();
    run.varied = match args.commits {
        Some(_) => vec![COMMIT_AXIS.to_owned()],
        None => programs[0].variant.axes.keys().cloned().collect(),
    };
    run.link = args.rtt.map(|rtt| {
        format!(
            "{} of added round trip (--rtt)",
            timer(rtt.as_secs_f64() * 1e3)
        )
    });
    run
}

struct Rounds<'a> {
    args: &'a Args,
    programs: &'a [Program],
    clock: Clock,
    recording: Observing<Comparison>,
    config: intact_watch::Config,
    /// How often each program failed, and how it did last.
    failures: BTreeMap<usize, (u32, String)>,
    /// Samples what programs take processor time for.
    sampler: Option<ProgramSampler>,
    bar: ProgressBar,
}

impl Rounds<'_> {
    /// All rounds, until a program fails or a signal ends one.
    fn all(&mut self, seed: u64) -> Result<Option<u8>, Failed> {
        let (warm_up, counted) = (self.args.warm_up, self.args.rounds);
        let orders = order::balanced(self.programs.len(), (warm_up + counted) as usize, seed);
        for (nth, order) in (0u32..).zip(orders) {
            let round = if nth < warm_up {
                WARMUP
            } else {
                nth - warm_up + 1
            };
            for program in order {
                let outcome = self.one(program, round)?;
                self.bar.inc(1);
                let code = match outcome.interrupted {
                    Some(signal) => Some(self.interrupted(round, signal)),
                    None => self.judge(program, outcome.ended),
                };
                if code.is_some() {
                    return Ok(code);
                }
            }
        }
        Ok(None)
    }

    fn one(&mut self, index: usize, round: u32) -> Result<Outcome, Failed> {
        let program = &self.programs[index];
        self.bar.set_message(escape(&program.variant.name));
        if let Some(signal) = self.prepare()? {
            return Ok(Outcome::not_begun(signal, self.clock.now()));
        }
        let variant = index as u32;
        let mut config = self.of_program(program, variant, round);
        // reading stacks takes time, so the rounds that count go without
        if round == WARMUP {
            config.code = self.args.places.reading(program.code_root.as_deref());
        }
        if self.args.flamegraph.is_some() {
            config.environment.extend(function_names());
        }
        let sampler = self.sampler.as_mut().filter(|_| round != WARMUP);
        if let Some(sampler) = sampler {
            sampler.begin();
        }
        let outcome =
            intact_watch::run(&config, self.clock, &mut self.recording).map_err(not_run)?;
        if let Some(sampler) = &mut self.sampler {
            sampler.end(index);
        }
        if outcome.interrupted.is_none() {
            self.end_round(variant, round, &outcome);
        }
        Ok(outcome)
    }

    /// Ends the round of a program that has run undisturbed.
    fn end_round(&mut self, variant: u32, round: u32, outcome: &Outcome) {
        let cpu = outcome.cpu.user + outcome.cpu.system;
        self.recording.record(Event::Round(&Round {
            client_cpu: Some(u64::try_from(cpu.as_nanos()).unwrap_or(u64::MAX)),
            client_memory: Some(outcome.memory).filter(|bytes| *bytes > 0),
            ..Round::new(variant, round, outcome.span)
        }));
    }

    /// Each program once under each kind of fault, until a signal ends a run.
    fn under_faults(&mut self, faults: &[Option<FaultConfig>]) -> Result<Option<u8>, Failed> {
        let mut variant = self.programs.len() as u32;
        for program in self.programs {
            for fault in faults {
                if let Some(signal) = self.prepare()? {
                    return Ok(Some(exit::by_signal(signal as usize)));
                }
                let name = fault.as_ref().map_or("no fault", |fault| fault.kind.id());
                let name = format!("{} under {name}", program.variant.name);
                self.bar.set_message(escape(&name));
                let mut config = self.of_program(program, variant, 1);
                if fault.is_some() {
                    config.mode = Mode::Relay;
                }
                config.fault.clone_from(fault);
                let outcome =
                    intact_watch::run(&config, self.clock, &mut self.recording).map_err(not_run)?;
                self.bar.inc(1);
                let end = FaultEvent::Ended(outcome.fault_end(variant));
                self.recording.record(Event::Fault(&end));
                if let Some(signal) = outcome.interrupted {
                    return Ok(Some(exit::by_signal(signal as usize)));
                }
                variant += 1;
            }
        }
        Ok(None)
    }

    /// How a program is run.
    fn of_program(&self, program: &Program, variant: u32, round: u32) -> intact_watch::Config {
        let mut config = self.config.clone();
        config.command.clone_from(&program.command);
        config.environment.clone_from(&program.environment);
        config.directory.clone_from(&program.directory);
        config.place = Some(RunPosition {
            variant,
            round,
            environment: None,
        });
        config.keys = key_logging(self.args.keys);
        config.round_trip = self.args.rtt.unwrap_or_default();
        config.streams = match self.args.show_output {
            true => Streams::Shared,
            false => Streams::Null,
        };
        config
    }

    /// Runs what `--prepare` names; the signal that asked us to end meanwhile, if one did.
    fn prepare(&self) -> Result<Option<i32>, Failed> {
        let Some(line) = &self.args.prepare else {
            return Ok(None);
        };
        let mut command = Command::new("sh");
        command
            .args(["-c", line])
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let (status, signal) = self
            .config
            .signals
            .run(&mut command)
            .context("--prepare: sh cannot be run")?;
        if status.success() || signal.is_some() {
            return Ok(signal);
        }
        let line = redact::line(line);
        Err(anyhow!("--prepare failed ({status}): {line}").into())
    }

    /// The code to end with, if the comparison ends here.
    fn judge(&mut self, index: usize, ended: Ended) -> Option<u8> {
        let words = match ended {
            Ended::Code(0) => return None,
            Ended::Code(code) => format!("ended with exit code {code}"),
            Ended::Signal(number) => format!("was ended by signal {number}"),
        };
        let failed = self.failures.entry(index).or_insert((0, String::new()));
        *failed = (failed.0 + 1, words.clone());
        if self.args.ignore_failure {
            return None;
        }
        let program = &self.programs[index];
        let name = &program.variant.name;
        let is_absent = ended == Ended::Code(i32::from(exit::NOT_FOUND));
        let hint = match program.directory.is_some() && is_absent {
            true => "it may not exist in this commit; ",
            false => "",
        };
        self.bar.suspend(|| {
            console::note(&format!(
                "intact: {} {words}: the comparison ends here ({hint}--show-output shows what it says, \
                 --ignore-failure goes on)",
                escape(name)
            ));
        });
        Some(exit::of_program(ended))
    }

    /// The code of a comparison that a signal ends in this round.
    fn interrupted(&mut self, round: u32, signal: i32) -> u8 {
        let during = if round == WARMUP {
            "the warm-up".to_owned()
        } else {
            format!("round {round} of {}", self.args.rounds)
        };
        let words = format!("the comparison was interrupted in {during}");
        self.recording
            .record(Event::Caveat(&Caveat::new("interrupted", words)));
        exit::by_signal(signal as usize)
    }

    fn print_failures(&mut self) {
        for (&index, (times, how)) in &self.failures {
            let name = &self.programs[index].variant.name;
            self.recording.record(Event::Caveat(&Caveat::new(
                PROGRAM_FAILED,
                format!("{name} failed in {times} of its runs, warm-up included, last it {how}"),
            )));
        }
    }
}

fn bar(args: &Args, programs: usize, faults: usize) -> anyhow::Result<ProgressBar> {
    let runs = u64::from(args.rounds + args.warm_up) + faults as u64;
    let runs = runs * programs as u64;
    if args.show_output {
        return Ok(ProgressBar::hidden());
    }
    progress::bar(Some(runs), 10, "{bar:30} {pos}/{len} {wide_msg}")
}
