//! Where the events of an observed run go: a fold that derives their meaning, and the files that
//! were asked for.

use super::output_files::{OpenOutputs, OutputFiles};
use intact_document::body_arrival::BodyArrival;
use intact_ledger::{ConnectionId, Event, Run, Sink};
use intact_traffic::TrafficAnalysis;
use intact_watch::WatchSink;

/// Takes the events; `F` derives their meaning.
pub(crate) struct Observing<F> {
    fold: F,
    kept: OpenOutputs,
}

impl<F: Sink> Observing<F> {
    /// Opens the files.
    pub(crate) fn start(fold: F, run: &Run, files: &OutputFiles) -> anyhow::Result<Observing<F>> {
        Ok(Observing {
            fold,
            kept: files.open(run)?,
        })
    }

    /// The results so far.
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
    fn expect(&mut self, connections: &[ConnectionId]) {
        self.fold.expect(connections);
    }

    fn record(&mut self, event: Event<'_>) {
        self.fold.record(event);
        self.kept.record(event);
    }
}

impl<F: Sink + Send> WatchSink for Observing<F> {
    fn tick(&mut self) {
        self.kept.flush();
    }
}

/// What an audit derives: traffic as `watch` sees it, and how responses arrived.
pub(crate) struct Audited {
    /// The traffic.
    pub(crate) observed: TrafficAnalysis,
    /// How answers came.
    pub(crate) responses: BodyArrival,
}

impl Sink for Audited {
    fn expect(&mut self, connections: &[ConnectionId]) {
        self.observed.expect(connections);
    }

    fn record(&mut self, event: Event<'_>) {
        self.observed.record(event);
        self.responses.record(event);
    }
}
