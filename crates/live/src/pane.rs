//! The program's pane: a pseudo-terminal, and the screen that a terminal would show of its output.

use crate::error::LiveError;
use rustix::fs::{Mode, OFlags, fcntl_getfl, fcntl_setfl};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};
use vt100::{Callbacks, Parser, Screen};

/// Lines that have scrolled out of the pane and are kept, to be printed at the end.
const SCROLLBACK: usize = 2000;
/// Bytes that wait for a program that does not read what is typed.
const MAX_TYPED: usize = 64 * 1024;
/// Bytes that are taken before the next picture, and the time for them.
const MAX_TAKEN: usize = 256 * 1024;
const MAX_TIME: Duration = Duration::from_millis(30);
/// The smallest pane: the emulator panics where it has less.
const LEAST: u16 = 2;
/// Digits of a number in a control sequence: more rows or columns no terminal has, and the emulator
/// moves cells once for each.
const DIGITS: u8 = 3;

pub(crate) struct Pane {
    near: OwnedFd,
    parser: Parser<TerminalReplies>,
    sequence: Sequence,
    typed: Vec<u8>,
}

/// Responses of the terminal to queries of the program.
#[derive(Default)]
struct TerminalReplies(Vec<u8>);

impl Pane {
    /// A pane of that size, and the program's end of it.
    pub(crate) fn open(columns: u16, rows: u16) -> Result<(Pane, OwnedFd), LiveError> {
        let (columns, rows) = (columns.max(LEAST), rows.max(LEAST));
        let open = || -> rustix::io::Result<(OwnedFd, OwnedFd)> {
            let near = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
            rustix::io::fcntl_setfd(&near, rustix::io::FdFlags::CLOEXEC)?;
            grantpt(&near)?;
            unlockpt(&near)?;
            let name = ptsname(&near, Vec::new())?;
            let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
            let far = rustix::fs::open(name, flags, Mode::empty())?;
            fcntl_setfl(&near, fcntl_getfl(&near)? | OFlags::NONBLOCK)?;
            Ok((near, far))
        };
        let (near, far) = open().map_err(|error| LiveError::Pane(error.into()))?;
        let pane = Pane {
            near,
            parser: Parser::new_with_callbacks(
                rows,
                columns,
                SCROLLBACK,
                TerminalReplies::default(),
            ),
            sequence: Sequence::Text,
            typed: Vec::new(),
        };
        pane.set_size(columns, rows);
        Ok((pane, far))
    }

    /// Our end.
    pub(crate) fn near(&self) -> BorrowedFd<'_> {
        self.near.as_fd()
    }

    /// Changes its size; the kernel notifies the program.
    pub(crate) fn resize(&mut self, columns: u16, rows: u16) {
        let (columns, rows) = (columns.max(LEAST), rows.max(LEAST));
        if self.parser.screen().size() != (rows, columns) {
            self.parser.screen_mut().set_size(rows, columns);
            self.set_size(columns, rows);
        }
    }

    fn set_size(&self, columns: u16, rows: u16) {
        let size = Winsize {
            ws_row: rows,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        // a program that has closed its terminal needs no size
        let _ = tcsetwinsize(&self.near, size);
    }

    /// Takes the program's output; returns whether there was any.
    pub(crate) fn take(&mut self) -> bool {
        let (mut taken, begun) = (0, Instant::now());
        let mut chunk = [0; 1024];
        while taken < MAX_TAKEN
            && begun.elapsed() < MAX_TIME
            && let Ok(count @ 1..) = rustix::io::read(&self.near, &mut chunk)
        {
            taken += count;
            let mut kept = chunk[..count].to_vec();
            kept.retain(|byte| self.sequence.keeps(*byte));
            self.parser.process(&kept);
        }
        let answers = std::mem::take(&mut self.parser.callbacks_mut().0);
        if self.typed.len() < MAX_TYPED {
            self.typed.extend(answers);
        }
        taken > 0
    }

    /// The same, without interpreting it.
    pub(crate) fn take_raw(&mut self) -> Vec<u8> {
        let mut chunk = vec![0; 8192];
        let count = rustix::io::read(&self.near, &mut chunk).unwrap_or(0);
        chunk.truncate(count);
        chunk
    }

    /// Whether the program reads too little of what is typed to take more.
    pub(crate) fn is_full(&self) -> bool {
        self.typed.len() >= MAX_TYPED
    }

    /// Hands on what is typed.
    pub(crate) fn type_in(&mut self) {
        let mut keys = [0; 4096];
        while !self.is_full() && is_readable(rustix::stdio::stdin()) {
            match rustix::io::read(rustix::stdio::stdin(), &mut keys) {
                Ok(count @ 1..) => self.typed.extend(&keys[..count]),
                _ => break,
            }
        }
        while !self.typed.is_empty()
            && let Ok(count @ 1..) = rustix::io::write(&self.near, &self.typed)
        {
            self.typed.drain(..count);
        }
    }

    /// What it shows.
    pub(crate) fn screen(&self) -> &Screen {
        self.parser.screen()
    }

    /// The keyboard and mouse modes that the program has set, as sequences for the user's terminal.
    pub(crate) fn modes(&self) -> Vec<u8> {
        self.parser.screen().input_mode_formatted()
    }

    /// The last lines that the program printed, with their colours, to be printed on the previous
    /// screen.
    pub(crate) fn last_words(&mut self) -> Vec<u8> {
        // what a full-screen program shows is no output
        self.parser.process(b"\x1b[?1049l");
        let screen = self.parser.screen_mut();
        let (_, columns) = screen.size();
        screen.set_scrollback(usize::MAX);
        let mut lines = Vec::new();
        for back in (1..=screen.scrollback()).rev() {
            screen.set_scrollback(back);
            let line = screen.rows_formatted(0, columns).next().unwrap_or_default();
            let is_cut = screen.row_wrapped(0);
            lines.push((line, is_cut));
        }
        screen.set_scrollback(0);
        let now: Vec<Vec<u8>> = screen.rows_formatted(0, columns).collect();
        let filled = screen.rows(0, columns).collect::<Vec<_>>();
        let filled = filled.iter().rposition(|row| !row.trim().is_empty());
        let filled = filled.map_or(0, |last| last + 1);
        for (number, line) in now.into_iter().take(filled).enumerate() {
            lines.push((line, screen.row_wrapped(number as u16)));
        }
        let mut words = Vec::new();
        for (line, is_cut) in lines {
            words.extend(line);
            words.extend(if is_cut { &b"\x1b[m"[..] } else { b"\x1b[m\n" });
        }
        words
    }
}

/// Where the output stands in a control sequence (ECMA-48, 5.4).
enum Sequence {
    Text,
    Escape,
    /// Within the parameters: the digits of the current one.
    Parameters(u8),
    /// The parameters of a private mode, which are numbers of modes.
    Private,
}

impl Sequence {
    /// Whether the emulator gets this byte.
    fn keeps(&mut self, byte: u8) -> bool {
        *self = match (&*self, byte) {
            (_, 0x1b) => Sequence::Escape,
            (Sequence::Escape, b'[') => Sequence::Parameters(0),
            (Sequence::Parameters(_), b'<'..=b'?') => Sequence::Private,
            (Sequence::Parameters(DIGITS), b'0'..=b'9') => return false,
            (Sequence::Parameters(digits), b'0'..=b'9') => Sequence::Parameters(digits + 1),
            (Sequence::Parameters(_), b':' | b';') => Sequence::Parameters(0),
            // controls within a sequence are obeyed at once
            (Sequence::Parameters(digits), ..0x20) => Sequence::Parameters(*digits),
            (Sequence::Private, ..0x20 | b'0'..=b'?') => Sequence::Private,
            _ => Sequence::Text,
        };
        true
    }
}

impl Callbacks for TerminalReplies {
    fn unhandled_csi(
        &mut self,
        screen: &mut Screen,
        first: Option<u8>,
        _second: Option<u8>,
        parameters: &[&[u16]],
        last: char,
    ) {
        let parameter = parameters.first().and_then(|one| one.first()).copied();
        let answer = match (first, parameter, last) {
            (None, Some(5), 'n') => "\x1b[0n".to_owned(),
            (None, Some(6), 'n') => {
                let (row, column) = screen.cursor_position();
                format!("\x1b[{};{}R", row + 1, column + 1)
            }
            // a VT100 with advanced video, the usual response
            (None, None | Some(0), 'c') => "\x1b[?1;2c".to_owned(),
            (Some(b'>'), None | Some(0), 'c') => "\x1b[>0;0;0c".to_owned(),
            _ => return,
        };
        self.0.extend(answer.into_bytes());
    }
}

fn is_readable(descriptor: BorrowedFd<'_>) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut one = [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
    poll(&mut one, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
        && one[0].revents().contains(PollFlags::IN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn shown(printed: &[u8]) -> Pane {
        let (mut pane, far) = Pane::open(20, 3).unwrap();
        std::fs::File::from(far.try_clone().unwrap())
            .write_all(printed)
            .unwrap();
        while !pane.take() {}
        pane
    }

    #[test]
    fn what_scrolled_away_is_among_the_last_words() {
        let mut pane = shown(b"one\ntwo\nthree\nfour\nfive");
        let words = String::from_utf8(pane.last_words()).unwrap();
        let words = words.replace("\x1b[m", "");
        assert_eq!(words, "one\ntwo\nthree\nfour\nfive\n");
    }

    #[test]
    fn a_program_that_asks_where_its_cursor_is_gets_an_answer() {
        let mut pane = shown(b"abc\x1b[6n");
        assert_eq!(pane.typed, b"\x1b[1;4R");
        pane.typed.clear();
    }

    #[test]
    fn numbers_of_sequences_are_cut_and_modes_are_not() {
        let kept = |printed: &str| {
            let mut sequence = Sequence::Text;
            let kept = printed.bytes().filter(|byte| sequence.keeps(*byte));
            String::from_utf8(kept.collect()).unwrap()
        };
        for (printed, shown) in [
            ("a65535@\x1b[65535@b65535", "a65535@\x1b[655@b65535"),
            ("\x1b[1234;\n5678H", "\x1b[123;\n567H"),
            ("\x1b[?1049h 2004", "\x1b[?1049h 2004"),
            ("\x1b[38:2:1000:0mé", "\x1b[38:2:100:0mé"),
            ("\x1b]0;12345\x07", "\x1b]0;12345\x07"),
        ] {
            assert_eq!(kept(printed), shown);
        }
    }

    #[test]
    fn the_smallest_terminal_shows_what_fits() {
        let (mut pane, far) = Pane::open(1, 1).unwrap();
        pane.resize(0, 0);
        let printed = "\x1b[1;1Hwide \u{4e16}\u{754c}\r\n\x1b[2Lx\x1b[9@\x1b[9P\x1b[3M\x1b[9;9Hy";
        std::fs::File::from(far)
            .write_all(printed.as_bytes())
            .unwrap();
        while pane.take() {}
        assert_eq!(pane.screen().size(), (2, 2));
    }

    #[test]
    fn a_full_screen_leaves_no_words() {
        let mut pane = shown(b"before\r\n\x1b[?1049hFULL");
        let words = String::from_utf8(pane.last_words()).unwrap();
        assert!(
            words.contains("before") && !words.contains("FULL"),
            "{words}"
        );
    }
}
