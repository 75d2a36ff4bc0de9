//! With `--live`, events go to the files and facts of the run, and to the view.

#[cfg(not(feature = "live"))]
use super::no_live::Reporter;
use crate::cmd::observing::Observing;
use intact_findings::traffic::TrafficAnalysis;
use intact_ledger::{Event, Sink};
#[cfg(feature = "live")]
use intact_live::Reporter;
use intact_watch::WatchSink;

/// Records, and reports to the view.
pub(super) struct Reporting<'a> {
    pub(super) recording: &'a mut Observing<TrafficAnalysis>,
    pub(super) reporter: Reporter,
}

impl Sink for Reporting<'_> {
    fn record(&mut self, event: Event<'_>) {
        self.reporter.record(event);
        self.recording.record(event);
    }
}

impl WatchSink for Reporting<'_> {
    fn tick(&mut self) {
        self.recording.tick();
        self.reporter.tick(|| self.recording.fold().facts());
    }
}
