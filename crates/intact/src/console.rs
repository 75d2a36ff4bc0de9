//! Talking to the person: pages to standard output, notes to standard error. A reader that goes away ends the printing, not the run.
#![allow(clippy::print_stderr, reason = "this is where the binary talks")]

use intact_report::terminal::TerminalOptions;
use std::io::{IsTerminal, Write};

/// Prints to standard output; a broken pipe is no error.
pub(crate) fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// A note to standard error.
pub(crate) fn note(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// What standard output is printed on.
pub(crate) fn paper() -> TerminalOptions {
    paper_of(&std::io::stdout())
}

/// What standard error is printed on: there pages go whose standard output is the program's.
pub(crate) fn error_paper() -> TerminalOptions {
    paper_of(&std::io::stderr())
}

fn paper_of(stream: &impl IsTerminal) -> TerminalOptions {
    let terminal = stream.is_terminal();
    let columns = std::env::var("COLUMNS")
        .ok()
        .and_then(|text| text.parse().ok());
    let width = terminal_width()
        .filter(|_| terminal)
        .or(columns)
        .unwrap_or(120);
    TerminalOptions {
        width,
        colour: terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
    }
}

fn terminal_width() -> Option<usize> {
    terminal_size::terminal_size().map(|(width, _)| usize::from(width.0))
}
