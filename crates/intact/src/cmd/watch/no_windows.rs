//! `--windows` on a system where no program can be watched: an error.

use crate::cmd::observing::Observing;
use anyhow::bail;
use intact_ledger::{Event, Sink};
use intact_traffic::{ObservedFacts, TrafficAnalysis};
use intact_watch::{Marker, WatchSink};
use std::convert::Infallible;
use std::ffi::OsString;

/// No socket.
pub(super) struct Control(Infallible);

/// No orders.
pub(super) struct Orders(Infallible);

impl Control {
    /// Fails.
    pub(super) fn start() -> anyhow::Result<Control> {
        bail!("--windows needs Linux, as `watch` does: run it in a container")
    }

    /// The variable for the program.
    pub(super) fn environment(&self) -> (OsString, OsString) {
        match self.0 {}
    }

    /// What requests marks of the run.
    pub(super) fn marker(&self) -> Marker {
        match self.0 {}
    }

    /// What tests ask for.
    pub(super) fn orders(&self) -> Orders {
        match self.0 {}
    }
}

/// Records the run.
pub(super) struct Windows<'a>(&'a mut Observing<TrafficAnalysis>);

impl<'a> Windows<'a> {
    /// Records into `recording`.
    pub(super) fn new(
        recording: &'a mut Observing<TrafficAnalysis>,
        _: Option<Orders>,
    ) -> Windows<'a> {
        Windows(recording)
    }

    /// What was found out so far.
    #[cfg_attr(
        not(all(feature = "live", unix)),
        allow(dead_code, reason = "only the live view asks")
    )]
    pub(super) fn facts(&self) -> ObservedFacts {
        self.0.fold().facts()
    }

    /// No window has passed.
    pub(super) fn finish(self) -> Option<String> {
        None
    }
}

impl Sink for Windows<'_> {
    fn record(&mut self, event: Event<'_>) {
        self.0.record(event);
    }
}

impl WatchSink for Windows<'_> {
    fn tick(&mut self) {
        self.0.tick();
    }
}
