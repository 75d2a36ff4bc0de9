//! The server's ledger on disk, written while it serves.

use crate::cmd::output_files::{OpenOutputs, OutputFiles};
use crate::console;
use intact_ledger::{Event, Run, Sink, Tally};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A ledger that any thread of the server writes to; absent once it is complete.
#[derive(Clone)]
pub(super) struct Log(Arc<Mutex<Option<OpenOutputs>>>);

impl Log {
    /// Makes a new folder.
    pub(super) fn create(folder: &Path, run: &Run) -> anyhow::Result<Log> {
        let files = OutputFiles::of(Some(folder.to_owned()), None);
        let kept = files.open(run)?.counted_elsewhere();
        Ok(Log(Arc::new(Mutex::new(Some(kept)))))
    }

    /// Writes the rest, the counts, and the end mark; what is lost is printed.
    pub(super) fn finish(&self, tally: &Tally) {
        if let Some(mut kept) = self.kept().take() {
            kept.replace_tally(tally);
            kept.finish();
        }
    }

    fn kept(&self) -> MutexGuard<'_, Option<OpenOutputs>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink for Log {
    fn record(&mut self, event: Event<'_>) {
        if let Some(kept) = &mut *self.kept() {
            kept.record(event);
            kept.flush_now_and_then();
            if let Some(trouble) = kept.news() {
                console::note(&format!("intact: {trouble}; serving goes on"));
            }
        }
    }
}
