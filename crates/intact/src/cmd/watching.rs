//! What happens to the events of a check: rows for the facts, ledger, progress with a countdown. Trouble with a file does not
//! end the check: it is told.

use crate::console;
use crate::interrupt::Interrupt;
use anyhow::{Context, anyhow};
use check::{Card, Observer, Stage};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use ledger::store::{StoreError, Writer};
use ledger::{Caveat, Event, Row, Run, Sink, Tally};
use std::io::IsTerminal;
use std::path::Path;
use std::time::{Duration, Instant};

/// How often a ledger reaches the disk.
const FLUSH: Duration = Duration::from_secs(1);

/// Takes the events of a check. Their number is bounded by the check's budget, so that all are kept.
pub(crate) struct Watching {
    rows: Vec<Row>,
    tally: Tally,
    ledger: Option<Writer>,
    trouble: Option<String>,
    flushed: Instant,
    bar: ProgressBar,
    interrupt: Interrupt,
    stage: Option<Stage>,
}

impl Watching {
    /// Opens the ledger that was asked for.
    pub(crate) fn start(
        run: &Run,
        ledger: Option<&Path>,
        interrupt: Interrupt,
    ) -> anyhow::Result<Watching> {
        let ledger = ledger
            .map(|folder| Writer::create(folder, run).context("--ledger"))
            .transpose()?;
        let bar = if std::io::stderr().is_terminal() {
            ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10))
        } else {
            ProgressBar::hidden()
        };
        let style = ProgressStyle::with_template("{spinner} {msg}")
            .map_err(|error| anyhow!("progress: {error}"))?;
        bar.set_style(style);
        Ok(Watching {
            rows: Vec::new(),
            tally: Tally::new(),
            ledger,
            trouble: None,
            flushed: Instant::now(),
            bar,
            interrupt,
            stage: None,
        })
    }

    /// Ends the recording: the rows, and what could not be written.
    pub(crate) fn finish(mut self, card: &Card) -> (Vec<Row>, Option<Caveat>) {
        self.bar.finish_and_clear();
        let tally = std::mem::take(&mut self.tally);
        self.write(|ledger| {
            ledger.replace_card(card)?;
            ledger.replace_tally(&tally)?;
            ledger.flush()
        });
        let caveat = self.trouble.map(|words| Caveat {
            id: "not-written".to_owned(),
            words,
        });
        (self.rows, caveat)
    }

    fn write(&mut self, what: impl FnOnce(&mut Writer) -> Result<(), StoreError>) {
        if let Some(ledger) = &mut self.ledger
            && let Err(error) = what(ledger)
        {
            self.ledger = None;
            let trouble = format!("--ledger: {error}; the ledger ends there");
            self.bar
                .suspend(|| console::note(&format!("intact: {trouble}; the check goes on")));
            self.trouble = Some(trouble);
        }
    }

    fn flush_now_and_then(&mut self) {
        if self.flushed.elapsed() >= FLUSH {
            self.flushed = Instant::now();
            self.write(Writer::flush);
        }
    }
}

impl Observer for Watching {
    fn event(&mut self, event: Event<'_>) {
        self.tally.record(event);
        self.rows.push(event.to_row());
        self.write(|ledger| ledger.append(event));
        self.flush_now_and_then();
    }

    fn stage(&mut self, stage: Stage, card: &Card) {
        self.stage = Some(stage);
        self.bar.set_message(stage.name());
        self.bar.tick();
        self.write(|ledger| {
            ledger.replace_card(card)?;
            ledger.flush()
        });
    }

    fn waiting(&mut self, left: Duration) {
        let stage = self.stage.map_or("", Stage::name);
        self.bar.set_message(format!(
            "{stage}: waiting, {} s at most; Ctrl-C keeps the card",
            left.as_secs() + 1
        ));
        self.bar.tick();
        self.flush_now_and_then();
    }

    fn stopped(&self) -> bool {
        self.interrupt.signal().is_some()
    }
}
