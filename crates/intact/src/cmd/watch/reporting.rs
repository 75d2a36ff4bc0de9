//! With `--live`, events go to the files and facts of the run, and to the view.

#[cfg(not(all(feature = "live", unix)))]
use super::no_live::Reporter;
use super::windows::Windows;
use intact_ledger::{Event, Sink};
#[cfg(all(feature = "live", unix))]
use intact_live::Reporter;
use intact_watch::{Mark, WatchSink};

/// Records, and reports to the view.
pub(super) struct Reporting<'a, 'b> {
    pub(super) recording: &'a mut Windows<'b>,
    pub(super) reporter: Reporter,
}

impl Sink for Reporting<'_, '_> {
    fn record(&mut self, event: Event<'_>) {
        self.reporter.record(event);
        self.recording.record(event);
    }
}

impl WatchSink for Reporting<'_, '_> {
    fn tick(&mut self) {
        self.recording.tick();
        self.reporter.tick(|| self.recording.facts());
    }

    fn mark(&mut self, mark: &Mark) {
        self.recording.mark(mark);
    }
}
