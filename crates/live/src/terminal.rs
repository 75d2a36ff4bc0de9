//! Takes the user's terminal over, and restores it at the end, also after a panic.

use crate::error::LiveError;
use rustix::stdio::{stdin, stdout};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, Once, PoisonError};
use std::thread::ThreadId;

/// The name of the thread that draws.
pub(crate) const SCREEN: &str = "screen";

/// Shows the alternate screen, cleared.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[2J\x1b[H";
/// Resets all modes that a program can set through its pane, then shows the previous screen and its
/// cursor.
const LEAVE: &[u8] = b"\x1b[?1l\x1b>\x1b[?2004l\x1b[?9l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1005l\x1b[?1006l\x1b[0m\x1b[?25h\x1b[?1049l";

/// The state of the terminal before it was taken over; `None` when it is released.
static BEFORE: Mutex<Option<Before>> = Mutex::new(None);
static HOOK: Once = Once::new();

struct Before {
    mode: Termios,
    /// Whether the alternate screen is shown.
    has_screen: bool,
    /// The thread whose panic restores the terminal; absent if panics are caught.
    owner: Option<ThreadId>,
}

/// The terminal, taken over by this process.
pub(crate) struct Terminal {
    modes: Vec<u8>,
}

impl Terminal {
    /// Takes the terminal over: keys arrive unprocessed and without echo.
    pub(crate) fn take_over() -> Result<Terminal, LiveError> {
        Terminal::take(true, None)
    }

    /// Like [`Terminal::take_over`], for the thread that draws. Its panic restores the previous
    /// screen, so the message is visible there.
    pub(crate) fn take_over_for_caller() -> Result<Terminal, LiveError> {
        Terminal::take(true, Some(std::thread::current().id()))
    }

    /// Takes the keys as they are typed; the screen stays.
    pub(crate) fn take_keys() -> Result<Terminal, LiveError> {
        Terminal::take(false, Some(std::thread::current().id()))
    }

    fn take(has_screen: bool, owner: Option<ThreadId>) -> Result<Terminal, LiveError> {
        let is_terminal = io::stdin().is_terminal() && (!has_screen || io::stdout().is_terminal());
        if !is_terminal {
            return Err(LiveError::NoTerminal);
        }
        let unusable = |error: rustix::io::Errno| LiveError::Terminal(error.into());
        let before = tcgetattr(stdin()).map_err(unusable)?;
        let mut raw = before.clone();
        raw.make_raw();
        if !has_screen {
            // line ends are still written for others
            raw.output_modes = before.output_modes;
        }
        *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(Before {
            mode: before,
            has_screen,
            owner,
        });
        HOOK.call_once(|| {
            let print = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                // a panic of another thread is caught there, and the view continues. After a panic
                // of this thread, keys are still passed on unprocessed
                if std::thread::current().name() == Some(SCREEN) {
                    leave_screen();
                }
                let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
                let owner = before.as_ref().and_then(|before| before.owner);
                drop(before);
                if owner == Some(std::thread::current().id()) {
                    restore();
                }
                print(panic);
            }));
        });
        tcsetattr(stdin(), OptionalActions::Flush, &raw).map_err(unusable)?;
        let terminal = Terminal { modes: Vec::new() };
        if has_screen {
            write(ENTER).map_err(LiveError::Terminal)?;
        }
        Ok(terminal)
    }

    /// Sets the keyboard and mouse modes of the program.
    pub(crate) fn set_modes(&mut self, modes: &[u8]) -> io::Result<()> {
        if self.modes != modes {
            self.modes = modes.to_vec();
            io::stdout().write_all(modes)?;
        }
        Ok(())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        restore();
    }
}

/// Columns and rows of the terminal.
pub(crate) fn size() -> (u16, u16) {
    match tcgetwinsize(stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col, size.ws_row),
        _ => (80, 24),
    }
}

/// Shows the previous screen; keys still arrive unprocessed.
pub(crate) fn leave_screen() {
    // a terminal that is gone needs nothing
    let _ = write(LEAVE);
}

/// Writes to the terminal at once.
pub(crate) fn write(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush())
}

/// Restores the terminal; only the first call has an effect.
pub(crate) fn restore() {
    let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(before) = before {
        if before.has_screen {
            leave_screen();
        }
        let _ = tcsetattr(stdin(), OptionalActions::Flush, &before.mode);
    }
}
