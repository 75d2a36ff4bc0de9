//! Counts exchanges on their way to the recorder.

use crate::recorder::Recorder;
use intact_ledger::{Event, Nanos, Sink};

/// What went through a [`CountingSink`].
#[derive(Clone, Copy, Default)]
pub(super) struct Seen {
    pub(super) exchanges: u64,
    pub(super) last_end: Option<Nanos>,
}

/// Counts exchanges on their way to the recorder.
pub(super) struct CountingSink<'a> {
    recorder: &'a mut Recorder,
    pub(super) seen: Seen,
}

impl<'a> CountingSink<'a> {
    pub(super) fn new(recorder: &'a mut Recorder) -> CountingSink<'a> {
        CountingSink {
            recorder,
            seen: Seen::default(),
        }
    }
}

impl Sink for CountingSink<'_> {
    #[inline]
    fn record(&mut self, event: Event<'_>) {
        if let Event::Exchange(exchange) = event {
            self.seen.exchanges += 1;
            if !exchange.warmup {
                self.seen.last_end = self.seen.last_end.max(Some(exchange.end));
            }
        }
        self.recorder.record(event);
    }
}
