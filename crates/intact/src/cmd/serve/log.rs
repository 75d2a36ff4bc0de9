//! The server's ledger on disk, written while it serves.

use crate::console;
use anyhow::Context;
use intact_ledger::store::Writer;
use intact_ledger::{Event, Run, Sink, Tally};
use intact_units::plural::counted;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A ledger that any thread of the server writes to.
#[derive(Clone)]
pub(super) struct Log(Arc<Mutex<Inner>>);

struct Inner {
    /// Absent once the ledger is complete.
    writer: Option<Writer>,
    flushed: Instant,
    lost: u64,
}

impl Log {
    /// Makes a new folder.
    pub(super) fn create(folder: &Path, run: &Run) -> anyhow::Result<Log> {
        Ok(Log(Arc::new(Mutex::new(Inner {
            writer: Some(Writer::create(folder, run).context("--ledger")?),
            flushed: Instant::now(),
            lost: 0,
        }))))
    }

    /// Writes the rest, the counts, and the end mark unless events were lost.
    pub(super) fn finish(&self, tally: &Tally) -> anyhow::Result<()> {
        let mut inner = self.inner();
        let Some(mut writer) = inner.writer.take() else {
            return Ok(());
        };
        if inner.lost > 0 {
            let lost = inner.lost;
            console::unwritten(format_args!("--ledger: lost {}", counted(lost, "event")));
        }
        writer.flush().context("--ledger")?;
        writer.replace_tally(tally).context("--ledger")?;
        if inner.lost == 0 {
            writer.finish(jiff::Timestamp::now()).context("--ledger")?;
        }
        Ok(())
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink for Log {
    fn record(&mut self, event: Event<'_>) {
        let mut guard = self.inner();
        let inner = &mut *guard;
        let Some(writer) = &mut inner.writer else {
            return;
        };
        let mut written = writer.append(event);
        if inner.flushed.elapsed() >= Duration::from_secs(1) {
            inner.flushed = Instant::now();
            written = written.and_then(|()| writer.flush());
        }
        if let Err(error) = written {
            inner.lost += 1;
            if inner.lost == 1 {
                console::note(&format!("intact: --ledger: {error}; serving goes on"));
            }
        }
    }
}
