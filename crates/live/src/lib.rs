//! The terminal views of `--live`. For `watch`, [`LiveView`] shows the program in a pane, and the
//! state of its connections next to it. One thread passes all keys to the program, reads its
//! output, and draws. [`BoardView`] shows that state alone. [`Reporter`] receives events and facts.
//!
//! For `bench`, [`BenchState`] formats the state of a run as lines, and [`BenchScreen`] shows it on
//! the whole screen. A key ends the run.
//!
//! This library owns the terminal, so it prints, unlike others. It must not watch the program, open
//! sockets, or compute facts. It is empty on systems without Unix terminals.
#![cfg(unix)]

mod bench;
mod bench_screen;
mod board_view;
mod error;
mod keyboard;
mod pane;
mod snapshot;
mod terminal;
mod view;

pub use bench::{BenchState, VariantState};
pub use bench_screen::BenchScreen;
pub use board_view::BoardView;
pub use error::LiveError;
pub use keyboard::{Key, Keyboard};
pub use snapshot::Reporter;

use pane::Pane;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use snapshot::Snapshot;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use terminal::Terminal;

/// The longest interval between two redraws: the clock and the rates change even if the program
/// prints nothing.
const PACE: Duration = Duration::from_millis(100);
/// The shortest interval between two redraws.
const FRAME: Duration = Duration::from_millis(33);

/// Pieces of output that are still passed on when drawing has failed and the program has ended.
const LAST_CHUNKS: usize = 64;

/// Draws until the end.
type Drawing = fn(&mut Terminal, &mut Pane, &Snapshot, &AtomicBool) -> io::Result<()>;

/// The view, while the program runs.
pub struct LiveView {
    snapshot: Arc<Snapshot>,
    end: Arc<AtomicBool>,
    /// Absent once it was joined; returns the last lines of the program's pane.
    thread: Option<JoinHandle<Vec<u8>>>,
    /// The program's end of its terminal.
    far: Arc<OwnedFd>,
}

impl LiveView {
    /// Takes the terminal over; an error where standard input or output is no terminal. The thread
    /// that draws inherits the caller's signal mask: block the signals that another thread
    /// waits for.
    pub fn start(subject: &str) -> Result<LiveView, LiveError> {
        LiveView::drawn_by(subject, draw_until)
    }

    fn drawn_by(subject: &str, draw: Drawing) -> Result<LiveView, LiveError> {
        let terminal = Terminal::take_over()?;
        let (columns, rows) = terminal::size();
        let pane = view::Areas::of(columns, rows).pane;
        let (pane, far) = Pane::open(pane.width, pane.height)?;
        let snapshot = Arc::new(Snapshot::new(subject));
        let end = Arc::new(AtomicBool::new(false));
        let thread = {
            let (snapshot, end) = (snapshot.clone(), end.clone());
            let show = move || show(terminal, pane, &snapshot, &end, draw);
            std::thread::Builder::new()
                .name(terminal::SCREEN.to_owned())
                .spawn(show)
                .map_err(LiveError::Thread)?
        };
        Ok(LiveView {
            snapshot,
            end,
            thread: Some(thread),
            far: Arc::new(far),
        })
    }

    /// The terminal that the program is to have.
    pub fn terminal(&self) -> Arc<OwnedFd> {
        self.far.clone()
    }

    /// Takes events and facts for this view.
    pub fn reporter(&self) -> Reporter {
        Reporter::new(self.snapshot.clone())
    }

    /// Gives the terminal back, and prints the last lines of the program's pane there.
    pub fn finish(mut self) {
        self.end.store(true, Ordering::Release);
        let last = self.thread.take().map(JoinHandle::join);
        if let Some(Ok(last)) = last {
            // a terminal that is gone takes no page either
            let _ = terminal::write(&last);
        }
    }
}

impl Drop for LiveView {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Draws until the end; returns the last lines of the pane. If drawing fails, keys and output are
/// still passed on, so that the program does not block.
fn show(
    mut terminal: Terminal,
    mut pane: Pane,
    snapshot: &Snapshot,
    end: &AtomicBool,
    draw: Drawing,
) -> Vec<u8> {
    let drawn = catch_unwind(AssertUnwindSafe(|| {
        draw(&mut terminal, &mut pane, snapshot, end)
    }));
    if let Ok(Ok(())) = drawn {
        drop(terminal);
        return pane.last_words();
    }
    terminal::leave_screen();
    // the failure may be in the pane itself
    let shown = catch_unwind(AssertUnwindSafe(|| pane.last_words())).unwrap_or_default();
    print_raw(&shown);
    loop {
        let over = end.load(Ordering::Acquire);
        for _ in 0..if over { LAST_CHUNKS } else { 1 } {
            let _ = terminal::write(&pane.take_raw());
        }
        if over {
            break;
        }
        pane.type_in();
        wait(&pane, true);
    }
    drop(terminal);
    Vec::new()
}

/// Prints lines on a terminal in raw mode.
fn print_raw(lines: &[u8]) {
    let mut out = io::stdout().lock();
    for line in lines.split_inclusive(|byte| *byte == b'\n') {
        let (line, end): (_, &[u8]) = match line.strip_suffix(b"\n") {
            Some(line) => (line, b"\r\n"),
            None => (line, b""),
        };
        let _ = out.write_all(line).and_then(|()| out.write_all(end));
    }
    let _ = out.flush();
}

fn draw_until(
    terminal: &mut Terminal,
    pane: &mut Pane,
    snapshot: &Snapshot,
    end: &AtomicBool,
) -> io::Result<()> {
    let mut screen = view::screen()?;
    let mut drawn = Instant::now();
    let mut size = (0, 0);
    let mut dirty = true;
    loop {
        let over = end.load(Ordering::Acquire);
        if view::fit(&mut screen, &mut size)? {
            let area = view::Areas::of(size.0, size.1).pane;
            pane.resize(area.width, area.height);
            dirty = true;
        }
        dirty |= pane.take();
        pane.type_in();
        let since = drawn.elapsed();
        if (dirty && since >= FRAME) || since >= PACE || over {
            drawn = Instant::now();
            dirty = false;
            terminal.set_modes(&pane.modes())?;
            let shown = snapshot.read();
            screen.draw(|frame| view::draw(frame, pane, &shown))?;
        }
        if over {
            return Ok(());
        }
        wait(pane, !dirty);
    }
}

/// Waits until something is typed or printed.
fn wait(pane: &Pane, long: bool) {
    let time = if long { PACE } else { FRAME };
    let time = Timespec {
        tv_sec: 0,
        tv_nsec: time.subsec_nanos().into(),
    };
    let keyboard = rustix::stdio::stdin();
    let mut both = [
        PollFd::from_borrowed_fd(pane.near(), PollFlags::IN),
        PollFd::from_borrowed_fd(keyboard, PollFlags::IN),
    ];
    // stops reading the keyboard while the program does not read
    let watched = if pane.is_full() { 1 } else { 2 };
    // interrupted or not: the caller's loop continues
    let _ = poll(&mut both[..watched], Some(&time));
    // the terminal of a program that has closed it stays readable for ever
    if both[0].revents().contains(PollFlags::HUP) {
        std::thread::sleep(FRAME);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::termios::tcgetattr;
    use std::process::{Command, Stdio};

    /// What ends the view: the screen that was there before.
    const LEAVE: &str = "\x1b[?1049l";

    /// Set where the test starts itself on a terminal.
    const INSIDE: &str = "INTACT_TEST_INSIDE";

    fn run_a_view_that_breaks() {
        let live = LiveView::drawn_by("it", |_, pane, _, _| {
            while !pane.screen().contents().contains("begun") {
                pane.take();
                wait(pane, true);
            }
            panic!("drawing broke")
        })
        .unwrap();
        let far = || Stdio::from(live.terminal().try_clone().unwrap());
        let mut program = Command::new("sh")
            .args(["-c", "echo begun; read word; echo got $word"])
            .stdin(far())
            .stdout(far())
            .stderr(far())
            .spawn()
            .unwrap();
        assert!(program.wait().unwrap().success());
        live.finish();
    }

    #[test]
    fn where_the_view_breaks_keys_and_words_still_pass_and_the_terminal_is_given_back() {
        if std::env::var_os(INSIDE).is_some() {
            return run_a_view_that_breaks();
        }
        let (mut pane, far) = Pane::open(80, 24).unwrap();
        let modes = || {
            let all = tcgetattr(&far).unwrap();
            (all.input_modes, all.output_modes, all.local_modes)
        };
        let before = modes();
        let end = || Stdio::from(far.try_clone().unwrap());
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--nocapture", "where_the_view_breaks"])
            .env(INSIDE, "1")
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .unwrap();
        let mut sent = Vec::new();
        let mut raw = false;
        loop {
            let over = child.try_wait().unwrap();
            let printed = pane.take_raw();
            if let Some(status) = over
                && printed.is_empty()
            {
                assert!(status.success());
                break;
            }
            sent.extend(printed);
            if !raw && String::from_utf8_lossy(&sent).contains("drawing broke") {
                raw = true;
                assert_ne!(modes(), before);
                rustix::io::write(pane.near(), b"milk\r").unwrap();
            }
            let mut one = [PollFd::from_borrowed_fd(pane.near(), PollFlags::IN)];
            let time = Timespec {
                tv_sec: 0,
                tv_nsec: PACE.subsec_nanos().into(),
            };
            let _ = poll(&mut one, Some(&time));
        }
        assert_eq!(modes(), before);
        let sent = String::from_utf8(sent).unwrap();
        let (_, after) = sent.split_once(LEAVE).unwrap();
        let at = |words: &str| {
            after
                .find(words)
                .unwrap_or_else(|| panic!("{words}: {sent:?}"))
        };
        assert!(at("drawing broke") < at("begun\x1b[m\r\n"), "{sent:?}");
        assert!(at("begun") < at("got milk"), "{sent:?}");
    }
}
