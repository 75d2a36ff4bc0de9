//! What a person sees while a bench runs on a terminal: a block of lines after a while, or with
//! `--live` the whole screen. The key q ends the run and keeps what was measured.

use crate::cmd::recording::Shown;
use crate::exit::Failed;
use intact_bench::{Gauge, Position, Progress};
use intact_ledger::Run;
use intact_live::{BenchScreen, BenchState, Key, Keyboard, LiveError, VariantState};
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Runs that take longer have the block of lines.
const LONG: Duration = Duration::from_secs(5);
/// The time between two states.
const PACE: Duration = Duration::from_millis(100);

/// What is shown.
enum Surface {
    /// A line, until the run turns out to be a long one.
    Line,
    /// Lines of the terminal; with keys, if they are to be had.
    Block(Option<Keyboard>),
    /// The screen, before it is taken over.
    Waiting,
    Screen(Box<BenchScreen>),
    /// No terminal, or the terminal was given back.
    Nothing,
}

/// The view of a bench.
pub(in crate::cmd) struct BenchView {
    surface: Surface,
    gauge: Arc<Gauge>,
    began: Instant,
    shown: Option<Instant>,
    is_scenario: bool,
}

impl BenchView {
    /// A view of the run; `is_whole`: of the whole screen, which needs a terminal.
    pub(in crate::cmd) fn new(
        run: &Run,
        gauge: Arc<Gauge>,
        is_whole: bool,
    ) -> Result<BenchView, Failed> {
        let has_screen = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        let surface = match is_whole {
            true if !has_screen => return Err(Failed::usage(LiveError::NoTerminal)),
            true => Surface::Waiting,
            false if std::io::stderr().is_terminal() => Surface::Line,
            false => Surface::Nothing,
        };
        Ok(BenchView {
            surface,
            gauge,
            began: Instant::now(),
            shown: None,
            is_scenario: run.scenario.is_some(),
        })
    }

    /// Whether nothing but this view may draw.
    pub(in crate::cmd) fn is_whole(&self) -> bool {
        matches!(self.surface, Surface::Waiting | Surface::Screen(_))
    }

    /// Gives the terminal back. Nothing is drawn any more.
    pub(in crate::cmd) fn end(&mut self) {
        self.surface = Surface::Nothing;
    }

    /// Shows where the run is, and returns what its caller is to draw.
    pub(in crate::cmd) fn tick(&mut self, run: &Run, position: &Position) -> Shown {
        // one turn has all sessions of a scenario: its figures are those of the report
        if self.is_scenario && !self.is_whole() {
            return Shown::Line;
        }
        if self.shown.is_some_and(|shown| shown.elapsed() < PACE) {
            return Shown::Nothing;
        }
        self.begin(position);
        self.shown = Some(Instant::now());
        match &mut self.surface {
            Surface::Line => Shown::Line,
            Surface::Nothing | Surface::Waiting => Shown::Nothing,
            Surface::Block(keys) => {
                let state = state(run, &self.gauge, position, keys.is_some());
                let (columns, rows) = size();
                Shown::Block(state.lines(columns, rows).join("\n"))
            }
            Surface::Screen(screen) => {
                let state = state(run, &self.gauge, position, true);
                // a terminal that cannot be drawn on any more is given back; the run goes on
                if screen.show(&state).is_err() {
                    self.end();
                }
                Shown::Nothing
            }
        }
    }

    /// Takes the terminal once there is a reason.
    fn begin(&mut self, position: &Position) {
        let is_long = self.began.elapsed() + position.left.unwrap_or_default() > LONG;
        let is_measuring = position.round > 0;
        let on_key = on_key(self.gauge.clone());
        match self.surface {
            Surface::Line if is_measuring && is_long => {
                self.surface = Surface::Block(Keyboard::take(on_key).ok());
            }
            Surface::Waiting if is_measuring => {
                let screen = BenchScreen::start(on_key);
                self.surface =
                    screen.map_or(Surface::Nothing, |one| Surface::Screen(Box::new(one)));
            }
            _ => {}
        }
    }
}

/// Ends the run, as q asks for; Ctrl-C is the signal that it would be.
fn on_key(gauge: Arc<Gauge>) -> impl FnMut(Key) + Send + 'static {
    move |key| match key {
        Key::Stop => gauge.stop.store(true, Ordering::Relaxed),
        Key::Interrupt => {
            let _ = signal_hook::low_level::raise(signal_hook::consts::SIGINT);
        }
    }
}

fn state(run: &Run, gauge: &Gauge, position: &Position, has_keys: bool) -> BenchState {
    let all = gauge.pulse.read();
    let running = position.variant as usize;
    let variants = run.variants.iter().enumerate().map(|(index, variant)| {
        let progress = all.get(&(index as u32)).cloned().unwrap_or_default();
        let left = match run.variants.len() {
            1 => position.left,
            _ => left(&progress, position.rounds, index == running),
        };
        VariantState {
            name: variant.name.clone(),
            latency: progress.latency,
            requests: progress.requests,
            failed: progress.failed,
            reused: progress.reused,
            opened: progress.opened,
            nanos: progress.nanos,
            left,
        }
    });
    BenchState {
        subject: run.subject.clone().unwrap_or_default(),
        round: (position.round, position.rounds),
        left: position.left,
        running,
        has_keys,
        variants: variants.collect(),
    }
}

/// The time that a variant will still be measured, by that of its rounds so far. Its present round
/// counts as half over.
fn left(progress: &Progress, rounds: u32, is_running: bool) -> Option<Duration> {
    let over = f64::from(progress.rounds) + if is_running { 0.5 } else { 0.0 };
    if progress.rounds == 0 {
        return None;
    }
    let left = progress.nanos as f64 / over * (f64::from(rounds) - over).max(0.0);
    Some(Duration::from_nanos(left as u64))
}

/// Columns and rows of the terminal that has the lines. One column and one row less: a line that is
/// full may wrap.
fn size() -> (usize, usize) {
    let size = terminal_size::terminal_size_of(std::io::stderr());
    let (columns, rows) = size.map_or((80, 24), |(columns, rows)| (columns.0, rows.0));
    let less = |one: u16, least| usize::from(one).saturating_sub(1).max(least);
    (less(columns, 20), less(rows, 5))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_of_a_variant_is_that_of_its_rounds() {
        let progress = |rounds, nanos| Progress {
            rounds,
            nanos,
            ..Progress::default()
        };
        let left =
            |progress, is_running| left(&progress, 4, is_running).map(|left| left.as_nanos());
        assert_eq!(left(progress(0, 7), true), None);
        assert_eq!(left(progress(2, 20), false), Some(20));
        // half of the third round is over
        assert_eq!(left(progress(2, 25), true), Some(15));
        assert_eq!(left(progress(4, 40), false), Some(0));
    }
}
