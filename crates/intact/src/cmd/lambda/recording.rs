//! What happens to the events of a function's run: findings, ledger, progress.

use super::Args;
use crate::cmd::observing::Observing;
use crate::cmd::output_files::OutputFiles;
use crate::cmd::progress;
use indicatif::ProgressBar;
use intact_experiments::lambda::{Invocations, LambdaFacts};
use intact_ledger::{Event, FaultInvocations, InvocationOutcome, Run, Sink};
use intact_servers::fault::{FaultAnalysis, FaultFacts, is_of_faults};
use intact_units::foreign_text::escape;
use intact_watch::WatchSink;
use std::time::{Duration, Instant};

/// How often a ledger reaches the disk.
const FLUSH: Duration = Duration::from_secs(1);

/// Takes the events.
pub(super) struct Recording {
    observing: Observing<Fold>,
    names: Vec<String>,
    /// The invocations since [`Recording::turn`].
    outcomes: FaultInvocations,
    bar: ProgressBar,
    flushed: Instant,
}

impl Recording {
    /// Opens the ledger that was asked for.
    pub(super) fn start(run: &Run, args: &Args) -> anyhow::Result<Recording> {
        let files = OutputFiles::of(args.ledger.clone(), None);
        let template = "{bar:30} {pos} of {len} invocations, {eta} left, {wide_msg}";
        let bar = progress::bar(None, 10, template)?;
        bar.set_length(args.invocations * run.variants.len() as u64);
        Ok(Recording {
            observing: Observing::start(Fold::new(run), run, &files)?,
            outcomes: FaultInvocations::default(),
            names: run.variants.iter().map(|one| one.name.clone()).collect(),
            bar,
            flushed: Instant::now(),
        })
    }

    /// Names the variant whose turn it is.
    pub(super) fn turn(&mut self, variant: u32, round: u32, rounds: u32) {
        self.outcomes = FaultInvocations::default();
        let name = self.names.get(variant as usize);
        let name = name.map_or("", String::as_str);
        let words = format!("{name}, round {round} of {rounds}");
        self.bar.set_message(escape(&words));
    }

    /// The invocations since [`Recording::turn`].
    pub(super) fn outcomes(&self) -> FaultInvocations {
        self.outcomes
    }

    /// Whether a fault has struck several connections of a pool in the turns of a variant.
    pub(super) fn has_struck_pool(&self, variant: u32) -> bool {
        let faults = self.observing.fold().faults.as_ref();
        faults.is_some_and(|faults| faults.has_struck_pool(variant))
    }

    /// Ends the ledger; what was found out, and the card where the function ran under faults.
    pub(super) fn finish(self) -> (LambdaFacts, Option<FaultFacts>) {
        self.bar.finish_and_clear();
        let fold = self.observing.finish();
        let faults = fold.faults.map(|faults| faults.facts());
        (fold.invocations.facts(), faults)
    }
}

/// What the events mean.
struct Fold {
    invocations: Invocations,
    faults: Option<FaultAnalysis>,
}

impl Fold {
    fn new(run: &Run) -> Fold {
        Fold {
            invocations: Invocations::new(run),
            faults: is_of_faults(run).then(|| FaultAnalysis::new(run)),
        }
    }
}

impl Sink for Fold {
    fn record(&mut self, event: Event<'_>) {
        self.invocations.record(event);
        if let Some(faults) = &mut self.faults {
            faults.record(event);
        }
    }
}

impl Sink for Recording {
    fn record(&mut self, event: Event<'_>) {
        self.observing.record(event);
        if let Event::Invocation(one) = event {
            self.bar.inc(1);
            self.outcomes.made += 1;
            self.outcomes.failed += u64::from(!one.fate.is_answer());
            self.outcomes.timed_out += u64::from(one.fate == InvocationOutcome::Timeout);
        }
        if self.flushed.elapsed() >= FLUSH {
            self.flushed = Instant::now();
            self.observing.tick();
        }
    }
}
