//! Where the events of an observed run go: a fold that works out what they mean, and the files that were asked for.

use super::files::{Files, Kept};
use intact_findings::answers::Answers;
use intact_findings::observe::Observed;
use intact_ledger::{Event, Run, Sink};
use intact_watch::Observer;

/// Takes the events; `F` works out what they mean.
pub(crate) struct Observing<F> {
    fold: F,
    kept: Kept,
}

impl<F: Sink> Observing<F> {
    /// Opens the files.
    pub(crate) fn start(fold: F, run: &Run, files: &Files) -> anyhow::Result<Observing<F>> {
        Ok(Observing {
            fold,
            kept: files.open(run)?,
        })
    }

    /// What was worked out so far.
    #[cfg(feature = "live")]
    pub(crate) fn fold(&self) -> &F {
        &self.fold
    }

    /// Ends the files and gives the fold back.
    pub(crate) fn finish(mut self) -> F {
        for caveat in self.kept.finish() {
            self.fold.record(Event::Caveat(&caveat));
        }
        self.fold
    }
}

impl<F: Sink> Sink for Observing<F> {
    fn record(&mut self, event: Event<'_>) {
        self.fold.record(event);
        self.kept.record(event);
    }
}

impl<F: Sink + Send> Observer for Observing<F> {
    fn tick(&mut self) {
        self.kept.flush();
    }
}

/// What an audit works out: traffic as `watch` sees it, and how answers came.
pub(crate) struct Audited {
    /// The traffic.
    pub(crate) observed: Observed,
    /// How answers came.
    pub(crate) responses: Answers,
}

impl Sink for Audited {
    fn record(&mut self, event: Event<'_>) {
        self.observed.record(event);
        self.responses.record(event);
    }
}
