//! What happens to the events of a watched program: ledger, tally, findings. Trouble with a file does not touch the
//! program: it is told at the end, and what could not be written is counted.

use anyhow::Context;
use findings::observe::Observed;
use ledger::store::{StoreError, Writer};
use ledger::{Caveat, Event, Run, Sink, Tally};
use std::path::Path;
use watch::Observer;

/// Takes the events of watched programs; `F` works out what they mean.
pub(crate) struct Recording<F = Observed> {
    fold: F,
    ledger: Option<(Writer, Tally)>,
    trouble: Option<String>,
    lost: u64,
}

impl Recording {
    /// Opens the ledger, if one was asked for.
    pub(crate) fn start(run: &Run, ledger: Option<&Path>) -> anyhow::Result<Recording> {
        Recording::with(Observed::new(run), run, ledger)
    }
}

impl<F: Sink> Recording<F> {
    /// The same for another fold.
    pub(crate) fn with(fold: F, run: &Run, ledger: Option<&Path>) -> anyhow::Result<Recording<F>> {
        let writer = ledger
            .map(|folder| Writer::create(folder, run).context("--ledger"))
            .transpose()?;
        Ok(Recording {
            fold,
            ledger: writer.map(|writer| (writer, Tally::new())),
            trouble: None,
            lost: 0,
        })
    }

    /// Writes what is left and gives the fold back.
    pub(crate) fn finish(mut self) -> F {
        if let Some((writer, tally)) = &mut self.ledger {
            let written = writer.flush().and_then(|()| writer.replace_tally(tally));
            if let Err(error) = written {
                self.stumble(&error);
            }
        }
        if let Some(trouble) = &self.trouble {
            self.fold.record(Event::Caveat(&Caveat {
                id: "not-written".to_owned(),
                words: format!("{trouble}; {} rows were not written", self.lost),
            }));
        }
        self.fold
    }

    fn stumble(&mut self, error: &StoreError) {
        self.ledger = None;
        self.trouble = Some(format!("--ledger: {error}"));
    }
}

impl<F: Sink> Sink for Recording<F> {
    fn record(&mut self, event: Event<'_>) {
        self.fold.record(event);
        if let Some((writer, tally)) = &mut self.ledger {
            tally.record(event);
            if let Err(error) = writer.append(event) {
                self.stumble(&error);
            }
        }
        if self.trouble.is_some() {
            self.lost += 1;
        }
    }
}

impl<F: Sink + Send> Observer for Recording<F> {
    fn tick(&mut self) {
        if let Some((writer, _)) = &mut self.ledger
            && let Err(error) = writer.flush()
        {
            self.stumble(&error);
        }
    }
}
