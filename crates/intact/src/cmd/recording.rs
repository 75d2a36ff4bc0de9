//! What happens to the events of a run: ledger, CSV, the first calls for the report, progress. Trouble with a file does not end
//! the measurement: it is told, and what could not be written is counted.

use crate::console;
use anyhow::{Context, anyhow};
use bench::{Observer, Position};
use findings::timeline::Timeline;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use ledger::export::csv;
use ledger::store::Writer;
use ledger::{Caveat, Exchange, Row, Run, Sink, Tally};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::interrupt::Interrupt;

/// The first calls of each variant that reports show.
const FIRST: usize = 100;
/// How often a ledger reaches the disk.
const FLUSH: Duration = Duration::from_secs(1);

/// Takes the events of a bench.
pub(crate) struct Recording {
    run: Run,
    ledger: Option<Writer>,
    csv: Option<BufWriter<File>>,
    lost: u64,
    trouble: Option<String>,
    first: BTreeMap<u32, Vec<Exchange>>,
    timeline: Timeline,
    flushed: Instant,
    bar: ProgressBar,
    interrupt: Interrupt,
    gauge: Arc<bench::Gauge>,
}

/// What a recording leaves beside its files.
pub(crate) struct Recorded {
    /// The run's head.
    pub(crate) run: Run,
    /// The first calls of each variant.
    pub(crate) first: Vec<Exchange>,
    /// The first connections of each variant; empty when no rows of connections were kept.
    pub(crate) timeline: Timeline,
    /// What could not be written.
    pub(crate) caveat: Option<Caveat>,
}

impl Recording {
    /// Opens the files that were asked for.
    pub(crate) fn start(
        run: Run,
        ledger: Option<&Path>,
        csv: Option<&Path>,
        interrupt: Interrupt,
        gauge: Arc<bench::Gauge>,
    ) -> anyhow::Result<Recording> {
        let ledger = ledger
            .map(|folder| Writer::create(folder, &run).context("--ledger"))
            .transpose()?;
        let csv = csv
            .map(|path| -> anyhow::Result<BufWriter<File>> {
                let file = File::create(path)
                    .with_context(|| format!("--csv: cannot write {}", path.display()))?;
                let mut out = BufWriter::new(file);
                out.write_all(csv::HEAD.as_bytes())?;
                Ok(out)
            })
            .transpose()?;
        let bar = if std::io::stderr().is_terminal() {
            ProgressBar::with_draw_target(Some(1), ProgressDrawTarget::stderr_with_hz(10))
        } else {
            ProgressBar::hidden()
        };
        let style = ProgressStyle::with_template("{bar:30} {msg}")
            .map_err(|error| anyhow!("progress: {error}"))?;
        bar.set_style(style);
        Ok(Recording {
            run,
            ledger,
            csv,
            lost: 0,
            trouble: None,
            first: BTreeMap::new(),
            timeline: Timeline::of_variants(),
            flushed: Instant::now(),
            bar,
            interrupt,
            gauge,
        })
    }

    /// Ends the recording.
    pub(crate) fn finish(mut self) -> Recorded {
        self.bar.finish_and_clear();
        self.flush();
        if let Some(csv) = &mut self.csv
            && let Err(error) = csv.flush()
        {
            self.stumble(format!("--csv: {error}"));
        }
        let caveat = self.trouble.map(|trouble| Caveat {
            id: "not-written".to_owned(),
            words: format!("{trouble}; {} rows were not written", self.lost),
        });
        Recorded {
            run: self.run,
            first: self.first.into_values().flatten().collect(),
            timeline: self.timeline,
            caveat,
        }
    }

    fn flush(&mut self) {
        self.flushed = Instant::now();
        if let Some(ledger) = &mut self.ledger
            && let Err(error) = ledger.flush()
        {
            self.ledger = None;
            self.stumble(format!("--ledger: {error}"));
        }
    }

    fn stumble(&mut self, trouble: String) {
        self.bar
            .suspend(|| console::note(&format!("intact: {trouble}; measuring goes on")));
        self.trouble.get_or_insert(trouble);
    }

    fn row(&mut self, row: &Row) {
        self.timeline.record(row.as_event());
        if let Row::Exchange(exchange) = row {
            let first = self.first.entry(exchange.variant.unwrap_or(0)).or_default();
            if first.len() < FIRST {
                first.push((**exchange).clone());
            }
            if let Some(csv) = &mut self.csv {
                let variant = exchange
                    .variant
                    .and_then(|variant| self.run.variants.get(variant as usize))
                    .map_or("", |variant| &variant.name);
                if let Err(error) = csv::write_row(csv, &self.run.id, variant, exchange) {
                    self.csv = None;
                    self.stumble(format!("--csv: {error}"));
                }
            }
        }
        if let Some(ledger) = &mut self.ledger
            && let Err(error) = ledger.append(row.as_event())
        {
            self.ledger = None;
            self.stumble(format!("--ledger: {error}"));
        }
        if self.trouble.is_some() {
            self.lost += 1;
        }
    }
}

impl Observer for Recording {
    fn rows(&mut self, rows: &[Row]) {
        for row in rows {
            self.row(row);
        }
        if self.flushed.elapsed() >= FLUSH {
            self.flush();
        }
    }

    fn round_over(&mut self, tally: &Tally) {
        self.flush();
        if let Some(ledger) = &mut self.ledger
            && let Err(error) = ledger.replace_tally(tally)
        {
            self.ledger = None;
            self.stumble(format!("--ledger: {error}"));
        }
    }

    fn warn(&mut self, words: &str) {
        self.bar
            .suspend(|| console::note(&format!("warning: {words}")));
    }

    fn tick(&mut self, position: Position) {
        if self.interrupt.signal().is_some() {
            self.gauge.stop.store(true, Ordering::Relaxed);
        }
        if self.flushed.elapsed() >= FLUSH {
            self.flush();
        }
        let (done, all) = position.turns;
        self.bar.set_length(u64::from(all.max(1)));
        self.bar.set_position(u64::from(done));
        let left = (done > 0).then(|| {
            position.elapsed.as_secs_f64() / f64::from(done) * f64::from(all.saturating_sub(done))
        });
        let variant = self
            .run
            .variants
            .get(position.variant as usize)
            .map_or("", |variant| &variant.name);
        let round = if position.round == 0 {
            "first requests".to_owned()
        } else {
            format!("round {} of {}", position.round, position.rounds)
        };
        let left = left.map_or(String::new(), |left| format!(", {left:.0} s left"));
        self.bar.set_message(format!(
            "{round}, {variant}, {} requests{left}",
            position.exchanges
        ));
    }
}
