//! The live view of a build without the feature `live`: there is none, and that is said.

use crate::cmd::observing::Observing;
use anyhow::bail;
use intact_findings::traffic::TrafficAnalysis;
use intact_ledger::{Event, Sink};
use intact_watch::WatchSink;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// No place for facts.
#[derive(Clone, Copy)]
pub(crate) struct Snapshot(std::convert::Infallible);

/// No view.
pub(crate) struct LiveView(std::convert::Infallible);

impl LiveView {
    /// Tells that there is none.
    pub(crate) fn start(_subject: &str) -> anyhow::Result<LiveView> {
        bail!(
            "this intact was built without its live view: build it with `--features live`, a default"
        )
    }

    /// The terminal that the program is to have.
    pub(crate) fn terminal(&self) -> Arc<OwnedFd> {
        match self.0 {}
    }

    /// Where facts would be put.
    pub(crate) fn board(&self) -> Snapshot {
        match self.0 {}
    }

    /// Gives the terminal back.
    pub(crate) fn finish(self) {
        match self.0 {}
    }
}

/// Records.
pub(crate) struct Reporting<'a>(&'a mut Observing<TrafficAnalysis>);

impl<'a> Reporting<'a> {
    /// Records, and reports to nobody.
    pub(crate) fn new(
        recording: &'a mut Observing<TrafficAnalysis>,
        board: Snapshot,
    ) -> Reporting<'a> {
        let _ = recording;
        match board.0 {}
    }
}

impl Sink for Reporting<'_> {
    fn record(&mut self, event: Event<'_>) {
        self.0.record(event);
    }
}

impl WatchSink for Reporting<'_> {
    fn tick(&mut self) {
        self.0.tick();
    }
}
