//! The terminal: pages and documents to standard output, notes to standard error. Foreign text is
//! escaped here or by the writer of the page, never by a command.
//!
//! An output that could not be written is named at once and turns the exit code into a failure,
//! after everything else was saved. A reader of standard output that goes away (`| head`) ends the
//! printing only.
#![allow(clippy::print_stderr, reason = "this is where the binary talks")]

use crate::system;
use intact_report::terminal::{Length, TerminalOptions, wrap};
use intact_units::foreign_text;
use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether an output could not be written.
static INCOMPLETE: AtomicBool = AtomicBool::new(false);

/// Prints plain text to standard output.
pub(crate) fn print(text: &str) {
    print_written(&foreign_text::escape_lines(text));
}

/// Prints to standard output what a writer of pages or documents made, which has escaped foreign
/// text.
pub(crate) fn print_written(text: &str) {
    written("standard output", io::stdout().lock(), text, 1);
}

/// A note of one line to standard error.
pub(crate) fn note(line: &str) {
    let line = foreign_text::disarm(&foreign_text::escape(line));
    annotate(&wrapped(&line, note_width()));
}

/// A note of several lines to standard error. Line breaks of foreign text are those of the note:
/// none may be in it.
pub(crate) fn note_lines(text: &str) {
    annotate(&wrapped(&foreign_text::escape_lines(text), note_width()));
}

/// Columns of standard error, if it is a terminal.
fn note_width() -> Option<usize> {
    let paper = error_paper(Length::Full);
    paper.height.map(|_| paper.width)
}

/// Breaks lines of notes that are wider than a terminal at words. The new lines are indented, so
/// that they cannot imitate another note. Indented lines stay: they have columns.
fn wrapped(text: &str, width: Option<usize>) -> String {
    let Some(width) = width else {
        return text.to_owned();
    };
    let lines = text.split('\n').map(|line| match line {
        line if line.starts_with(' ') || line.chars().count() <= width => line.to_owned(),
        line => wrap(line, width, "  ").join("\n"),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Why a command failed. The lines after the first are indented, so that a message cannot imitate
/// another one.
pub(crate) fn fail(error: &str) {
    note_lines(&format!("intact: {}", error.replace('\n', "\n  ")));
}

/// A line to standard error that is escaped already: an annotation that a CI reads.
pub(crate) fn annotate(line: &str) {
    // where standard error cannot be written, there is no place to report it
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// A page to standard error, where standard output is the program's.
pub(crate) fn note_written(page: &str) {
    written("standard error", io::stderr().lock(), page, 2);
}

/// Prints a page below what a program printed, which may lack its last newline.
pub(crate) fn note_after_program(page: &str) {
    if io::stdout().is_terminal() && io::stderr().is_terminal() {
        note_written("\n");
    }
    note_written(page);
}

/// Names an output that could not be written. The command goes on; its exit code is a failure.
pub(crate) fn unwritten(problem: impl Display) {
    note(&format!("intact: {problem:#}"));
    INCOMPLETE.store(true, Ordering::Relaxed);
}

/// Names the file of an option, if it could not be written.
pub(crate) fn note_unwritten(option: &str, path: &Path, written: Result<(), impl Display>) {
    if let Err(error) = written {
        let path = path.display();
        unwritten(format_args!("{option}: cannot write {path}: {error:#}"));
    }
}

/// As [`unwritten`], for an output whose failure was named before.
pub(crate) fn unwritten_as_noted() {
    INCOMPLETE.store(true, Ordering::Relaxed);
}

/// Whether an output could not be written.
pub(crate) fn is_incomplete() -> bool {
    INCOMPLETE.load(Ordering::Relaxed)
}

/// Prints the help or the error of the command line. Returns the exit code of clap. Where a word of
/// the command line has hidden letters, an error has no colours: clap's own escape sequences could
/// not be distinguished from foreign ones.
pub(crate) fn print_clap(error: &clap::Error) -> i32 {
    let text = error.render();
    let paper = if error.use_stderr() {
        error_paper(Length::Full)
    } else {
        paper(Length::Full)
    };
    let is_clean = |word: std::ffi::OsString| {
        let word = word.to_string_lossy();
        foreign_text::escape(&word) == word
    };
    let text = if paper.colour && std::env::args_os().all(is_clean) {
        text.ansi().to_string()
    } else {
        foreign_text::escape_lines(&text.to_string())
    };
    if error.use_stderr() {
        annotate(text.trim_end());
    } else {
        print_written(&text);
    }
    error.exit_code()
}

/// Writes to a standard stream with this descriptor.
fn written(name: &str, mut stream: impl Write, text: &str, descriptor: i32) {
    let written = stream
        .write_all(text.as_bytes())
        .and_then(|()| stream.flush());
    drop(stream);
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            unwritten(format_args!("{name} cannot be written: {error}"));
        }
        Ok(()) if system::was_closed(descriptor) => {
            unwritten(format_args!("{name} is closed"));
        }
        _ => {}
    }
}

/// Standard output, for a page of this length.
pub(crate) fn paper(length: Length) -> TerminalOptions {
    paper_of(&io::stdout(), length)
}

/// Standard error, for a page of this length: the page goes there if standard output is the
/// program's.
pub(crate) fn error_paper(length: Length) -> TerminalOptions {
    paper_of(&io::stderr(), length)
}

fn paper_of(stream: &impl IsTerminal, length: Length) -> TerminalOptions {
    let terminal = stream.is_terminal();
    let columns = std::env::var("COLUMNS")
        .ok()
        .and_then(|text| text.parse().ok());
    let size = terminal_size::terminal_size().filter(|_| terminal);
    let (own_width, height) = size
        .map(|(width, height)| (usize::from(width.0), usize::from(height.0)))
        .unzip();
    TerminalOptions {
        width: own_width.or(columns).unwrap_or(120),
        height,
        length,
        colour: terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_broken_at_words_and_columns_stay() {
        let text = "sending at most 822 requests\n    rate > 100   and\nshort";
        let lines = "sending at most\n  822 requests\n    rate > 100   and\nshort";
        assert_eq!(wrapped(text, Some(16)), lines);
        assert_eq!(wrapped(text, None), text);
    }
}
