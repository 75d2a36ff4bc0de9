//! With `--live`, the program runs in a pane; events go to the files and facts of the run, and to
//! the view. A service that runs already has no pane: the view has the whole terminal.

use super::windows::Windows;
use super::{Args, not_run, subject};
use crate::exit::Failed;
use intact_ledger::{Event, Sink};
use intact_live::{BoardView, Key, LiveView, Reporter};
use intact_watch::{Attached, Clock, Mark, Outcome, WatchSink};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Runs the program in a pane, next to what its connections do.
pub(super) fn run(
    args: &Args,
    mut config: intact_watch::Config,
    clock: Clock,
    recording: &mut Windows<'_>,
) -> Result<Outcome, Failed> {
    // signals are for the thread that watches, not for the one that draws
    let live = intact_watch::without_signals(|| LiveView::start(&subject(args)));
    let live = live.map_err(Failed::usage)?;
    config.terminal = Some(live.terminal());
    // the pane understands what an xterm does, whatever the terminal around it is
    config
        .environment
        .push(("TERM".into(), "xterm-256color".into()));
    let mut reporting = Reporting {
        recording,
        reporter: live.reporter(),
    };
    let outcome = intact_watch::run(&config, clock, &mut reporting);
    live.finish();
    outcome.map_err(not_run)
}

/// Follows programs that run already, and shows what their connections do. The q key sets `stop`.
pub(super) fn follow(
    args: &Args,
    service: Attached,
    stop: Arc<AtomicBool>,
    recording: &mut Windows<'_>,
) -> Result<Option<i32>, Failed> {
    let on_key = move |key| match key {
        Key::Stop => stop.store(true, Ordering::Relaxed),
        Key::Interrupt => crate::system::interrupt_self(),
    };
    let live = intact_watch::without_signals(|| BoardView::start(&subject(args), on_key));
    let live = live.map_err(Failed::usage)?;
    let mut reporting = Reporting {
        recording,
        reporter: live.reporter(),
    };
    Ok(service.follow(&mut reporting))
}

/// Records, and reports to the view.
struct Reporting<'a, 'b> {
    recording: &'a mut Windows<'b>,
    reporter: Reporter,
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
