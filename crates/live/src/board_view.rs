//! `watch --pid --live`: the whole terminal for the state of connections, where no program is run.

use crate::error::LiveError;
use crate::keyboard::{Key, Keyboard};
use crate::snapshot::{Reporter, Snapshot};
use crate::terminal::{self, Terminal};
use crate::{PACE, view};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// The view. The terminal is what it was when this is dropped.
pub struct BoardView {
    snapshot: Arc<Snapshot>,
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<()>>>,
    /// Gives the terminal back, after the last drawing.
    _keyboard: Keyboard,
}

impl BoardView {
    /// Takes the terminal over; an error where standard input or output is no terminal. `on_key`
    /// runs in a thread of its own. Threads inherit the caller's signal mask: block the signals
    /// that another thread waits for.
    pub fn start(
        subject: &str,
        on_key: impl FnMut(Key) + Send + 'static,
    ) -> Result<BoardView, LiveError> {
        let keyboard = Keyboard::on(Terminal::take_over()?, on_key)?;
        let snapshot = Arc::new(Snapshot::new(subject));
        let end = Arc::new(AtomicBool::new(false));
        let (shown, over) = (snapshot.clone(), end.clone());
        let thread = std::thread::Builder::new()
            .name(terminal::SCREEN.to_owned())
            .spawn(move || draw_until(&shown, &over))
            .map_err(LiveError::Thread)?;
        Ok(BoardView {
            snapshot,
            end,
            thread: Some(thread),
            _keyboard: keyboard,
        })
    }

    /// Takes events and facts for this view.
    pub fn reporter(&self) -> Reporter {
        Reporter::new(self.snapshot.clone())
    }
}

impl Drop for BoardView {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // a screen that cannot be drawn on takes no message either
            let _ = thread.join();
        }
    }
}

fn draw_until(snapshot: &Snapshot, end: &AtomicBool) -> io::Result<()> {
    let mut screen = view::screen()?;
    let mut size = (0, 0);
    while !end.load(Ordering::Acquire) {
        view::fit(&mut screen, &mut size)?;
        screen.draw(|frame| view::draw_board(frame, &snapshot.read()))?;
        std::thread::sleep(PACE);
    }
    Ok(())
}
