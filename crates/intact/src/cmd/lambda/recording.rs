//! What happens to the events of a function's run: findings, ledger, progress.

use super::Args;
use crate::cmd::observing::Observing;
use crate::cmd::output_files::OutputFiles;
use crate::cmd::progress;
use indicatif::ProgressBar;
use intact_findings::lambda::{Invocations, LambdaFacts};
use intact_ledger::{Event, Run, Sink};
use intact_units::foreign_text::escape;
use intact_watch::WatchSink;
use std::time::{Duration, Instant};

/// How often a ledger reaches the disk.
const FLUSH: Duration = Duration::from_secs(1);

/// Takes the events.
pub(super) struct Recording {
    observing: Observing<Invocations>,
    names: Vec<String>,
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
            observing: Observing::start(Invocations::new(run), run, &files)?,
            names: run.variants.iter().map(|one| one.name.clone()).collect(),
            bar,
            flushed: Instant::now(),
        })
    }

    /// Tells which variant's turn it is.
    pub(super) fn turn(&self, variant: u32, round: u32, rounds: u32) {
        let name = self.names.get(variant as usize);
        let name = name.map_or("", String::as_str);
        let words = format!("{name}, round {round} of {rounds}");
        self.bar.set_message(escape(&words));
    }

    /// Ends the ledger; what was found out.
    pub(super) fn finish(self) -> LambdaFacts {
        self.bar.finish_and_clear();
        self.observing.finish().facts()
    }
}

impl Sink for Recording {
    fn record(&mut self, event: Event<'_>) {
        self.observing.record(event);
        if let Event::Invocation(_) = event {
            self.bar.inc(1);
        }
        if self.flushed.elapsed() >= FLUSH {
            self.flushed = Instant::now();
            self.observing.tick();
        }
    }
}
