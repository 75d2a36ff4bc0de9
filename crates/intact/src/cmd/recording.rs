//! What happens to the events of a bench: its files, the first calls for the report, progress.

use super::bench::{BenchView, FlameGraphs};
use super::output_files::{OpenOutputs, OutputFiles};
use super::progress;
use crate::console;
use crate::exit::Failed;
use indicatif::{ProgressBar, ProgressStyle};
use intact_bench::{BenchObserver, Position};
use intact_ledger::{Caveat, Exchange, Row, Run, Sink, Tally};
use intact_traffic::timeline::Timeline;
use intact_units::foreign_text::escape;
use intact_units::plural::counted;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::interrupt::Interrupt;

/// The first calls of each variant that reports show.
const FIRST: usize = 100;

/// Takes the events of a bench.
pub(crate) struct Recording {
    run: Run,
    kept: OpenOutputs,
    first: BTreeMap<u32, Vec<Exchange>>,
    timeline: Timeline,
    bar: ProgressBar,
    view: BenchView,
    interrupt: Interrupt,
    gauge: Arc<intact_bench::Gauge>,
    /// What is being done, instead of the round and its variant.
    step: Option<String>,
    /// Samples where processor time is spent, if that was asked for.
    pub(super) flame: Option<FlameGraphs>,
}

/// What is drawn next to the counts.
#[cfg_attr(
    not(all(feature = "live", unix)),
    allow(dead_code, reason = "only the view of the feature has others")
)]
pub(crate) enum Shown {
    /// The line of progress.
    Line,
    /// These lines in its place.
    Block(String),
    /// Nothing: the screen has it, or there is nothing new.
    Nothing,
}

/// What a recording leaves in addition to its files.
pub(crate) struct Recorded {
    /// The run's head.
    pub(crate) run: Run,
    /// The first calls of each variant.
    pub(crate) first: Vec<Exchange>,
    /// The first connections of each variant; empty when no rows of connections were kept.
    pub(crate) timeline: Timeline,
}

impl Recording {
    /// Opens the files that were asked for. `is_live`: the whole terminal shows the run.
    pub(crate) fn start(
        run: Run,
        files: &OutputFiles,
        interrupt: Interrupt,
        gauge: Arc<intact_bench::Gauge>,
        is_live: bool,
    ) -> Result<Recording, Failed> {
        let view = BenchView::new(&run, gauge.clone(), is_live)?;
        let kept = files.open(&run)?.counted_elsewhere();
        let bar = match view.is_whole() {
            true => ProgressBar::hidden(),
            false => progress::bar(Some(1), 10, "{bar:30} {wide_msg}")?,
        };
        Ok(Recording {
            run,
            kept,
            first: BTreeMap::new(),
            timeline: Timeline::of_variants(),
            bar,
            view,
            interrupt,
            gauge,
            step: None,
            flame: None,
        })
    }

    /// Ends the recording. `tally` gets these caveats, which are stored with it, and those about
    /// files that could not be written.
    pub(crate) fn finish(mut self, tally: &mut Tally, caveats: Vec<Caveat>) -> Recorded {
        tally.caveats.extend(caveats);
        self.kept.replace_tally(tally);
        self.kept.write_latencies(tally);
        self.view.end();
        self.bar.finish_and_clear();
        if let Some(flame) = self.flame.take() {
            flame.finish(&self.run);
        }
        tally.caveats.extend(self.kept.finish());
        Recorded {
            run: self.run,
            first: self.first.into_values().flatten().collect(),
            timeline: self.timeline,
        }
    }

    fn print_news(&mut self) {
        if let Some(trouble) = self.kept.news() {
            self.bar
                .suspend(|| console::note(&format!("intact: {trouble}; measuring goes on")));
        }
    }

    fn row(&mut self, row: &Row) {
        self.timeline.record(row.as_event());
        if let Row::Exchange(exchange) = row {
            let first = self.first.entry(exchange.variant.unwrap_or(0)).or_default();
            if first.len() < FIRST {
                first.push((**exchange).clone());
            }
        }
        self.kept.record(row.as_event());
    }
}

impl BenchObserver for Recording {
    fn rows(&mut self, rows: &[Row]) {
        for row in rows {
            self.row(row);
        }
        self.kept.flush_now_and_then();
        self.print_news();
    }

    fn round_over(&mut self, tally: &Tally) {
        self.kept.flush();
        self.kept.replace_tally(tally);
        self.print_news();
    }

    fn turn(&mut self, variant: u32, round: u32) {
        if let Some(flame) = &self.flame {
            flame.begin(variant, round);
        }
    }

    fn describe(&mut self, step: &str) {
        self.step = Some(step.to_owned());
    }

    fn warn(&mut self, words: &str) {
        self.bar
            .suspend(|| console::note(&format!("warning: {words}")));
    }

    fn tick(&mut self, position: Position) {
        if self.interrupt.signal().is_some() {
            self.gauge.stop.store(true, Ordering::Relaxed);
            // the second signal ends the process at once: by then the terminal is given back
            self.view.end();
        }
        self.kept.flush_now_and_then();
        self.print_news();
        match self.view.tick(&self.run, &position) {
            Shown::Line => self.show_line(&position),
            Shown::Block(lines) => {
                if let Ok(style) = ProgressStyle::with_template("{msg}") {
                    self.bar.set_style(style);
                }
                self.bar.set_message(lines);
            }
            Shown::Nothing => {}
        }
    }
}

impl Recording {
    /// The line of progress.
    fn show_line(&self, position: &Position) {
        let (done, all) = position.turns;
        self.bar.set_length(u64::from(all.max(1)));
        self.bar.set_position(u64::from(done));
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
        let left = position.left.map_or(String::new(), |left| {
            format!(", {:.0} s left", left.as_secs_f64())
        });
        let requests = counted(position.exchanges, "request");
        let words = match (&self.step, &self.run.scenario) {
            (Some(step), _) => format!("{step}, {requests} in all"),
            // its sessions run at the same time
            (None, Some(_)) => format!("{requests}{left}"),
            (None, None) => format!("{round}, {variant}, {requests}{left}"),
        };
        self.bar.set_message(escape(&words));
    }
}
