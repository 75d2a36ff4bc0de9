//! Reads the keys of the user during a run: as they are typed, without echo, in a separate thread.

use crate::error::LiveError;
use crate::terminal::{self, Terminal};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::getpgrp;
use rustix::stdio::stdin;
use rustix::termios::tcgetpgrp;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// How often the thread looks whether it is over, in nanoseconds.
const LOOK: i64 = 50_000_000;

/// A key with a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// q: end the run, and keep what was measured.
    Stop,
    /// Ctrl-C, which is no signal while keys are read.
    Interrupt,
}

impl Key {
    fn of(byte: u8) -> Option<Key> {
        match byte {
            b'q' | b'Q' => Some(Key::Stop),
            0x03 => Some(Key::Interrupt),
            _ => None,
        }
    }
}

/// Reads keys until it is dropped; then restores the terminal.
pub struct Keyboard {
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// Given back last.
    _terminal: Terminal,
}

impl Keyboard {
    /// Starts to read keys; output goes to the screen as before. Fails if standard input is not a
    /// terminal, or if this process is a background job. `on_key` runs in the reading thread. The
    /// second Ctrl-C restores the terminal before it calls `on_key`.
    pub fn take(on_key: impl FnMut(Key) + Send + 'static) -> Result<Keyboard, LiveError> {
        // reading would stop a process in the background
        let is_ours = tcgetpgrp(stdin()).is_ok_and(|group| group == getpgrp());
        if !is_ours {
            return Err(LiveError::NoTerminal);
        }
        Keyboard::on(Terminal::take_keys()?, on_key)
    }

    /// Reads the keys of a terminal that was taken over.
    pub(crate) fn on(
        terminal: Terminal,
        mut on_key: impl FnMut(Key) + Send + 'static,
    ) -> Result<Keyboard, LiveError> {
        let end = Arc::new(AtomicBool::new(false));
        let over = end.clone();
        let mut interrupts = 0;
        let read = move || {
            while !over.load(Ordering::Acquire) {
                for key in typed() {
                    interrupts += u32::from(key == Key::Interrupt);
                    if interrupts > 1 {
                        terminal::restore();
                    }
                    on_key(key);
                }
            }
        };
        let thread = std::thread::Builder::new()
            .name("keys".to_owned())
            .spawn(read)
            .map_err(LiveError::Thread)?;
        Ok(Keyboard {
            end,
            thread: Some(thread),
            _terminal: terminal,
        })
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The keys that are typed within a short time.
fn typed() -> Vec<Key> {
    let mut keyboard = [PollFd::from_borrowed_fd(stdin(), PollFlags::IN)];
    let time = Timespec {
        tv_sec: 0,
        tv_nsec: LOOK,
    };
    let mut bytes = [0; 64];
    let read = match poll(&mut keyboard, Some(&time)) {
        Ok(1..) => rustix::io::read(stdin(), &mut bytes).unwrap_or(0),
        _ => 0,
    };
    if read == 0 && keyboard[0].revents().contains(PollFlags::HUP) {
        // a terminal that is gone is readable at all times
        std::thread::sleep(std::time::Duration::from_nanos(LOOK as u64));
    }
    bytes[..read].iter().copied().filter_map(Key::of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_some_keys_have_a_meaning() {
        assert_eq!(Key::of(b'q'), Some(Key::Stop));
        assert_eq!(Key::of(3), Some(Key::Interrupt));
        assert_eq!(Key::of(b'\r'), None);
    }
}
