//! Lines of a log in blocks, so that several threads can parse them. Must not change their order.

use super::line::Line;
use super::log_format::LogFormat;
use crate::input::TextLine;
use crate::unread_lines::LineState;
use std::collections::BTreeMap;
use std::num::NonZero;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

/// Bytes of a block.
const FULL: usize = 1 << 20;
/// Lines that a thread parses at a time. Fewer are not worth a second thread.
const PART: usize = 256;
/// Threads that parse, with the one that records: it has no use for more.
const MOST_THREADS: usize = 4;

/// Lines, one after another.
#[derive(Default)]
pub(super) struct LineBlock {
    bytes: Vec<u8>,
    lines: Vec<BlockLine>,
}

/// A line of a block.
#[derive(Debug)]
pub(super) struct BlockLine {
    range: Range<usize>,
    pub(super) is_cut: bool,
    pub(super) is_too_long: bool,
}

/// A line, what it is, and what it says.
pub(super) struct Parsed<'a> {
    pub(super) line: &'a BlockLine,
    pub(super) state: LineState,
    pub(super) values: Option<Line<'a>>,
}

impl LineBlock {
    /// Adds a line.
    pub(super) fn push(&mut self, line: &TextLine<'_>) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(line.bytes);
        self.lines.push(BlockLine {
            range: start..self.bytes.len(),
            is_cut: line.is_cut,
            is_too_long: line.is_too_long,
        });
        // so that no character begins in one line and ends in the next
        self.bytes.push(b'\n');
    }

    pub(super) fn is_full(&self) -> bool {
        self.bytes.len() >= FULL
    }

    /// Passes on the lines in their order, some at a time, and empties the block. What is not UTF-8
    /// is replaced.
    pub(super) fn drain(&mut self, dialect: &LogFormat, take: impl FnMut(&[Parsed<'_>])) {
        match std::str::from_utf8(&self.bytes) {
            Ok(text) => self.pass_on(text, dialect, take),
            Err(_) => self.replaced().drain(dialect, take),
        }
        self.bytes.clear();
        self.lines.clear();
    }

    /// The lines without what is not UTF-8.
    fn replaced(&self) -> LineBlock {
        let mut block = LineBlock::default();
        for line in &self.lines {
            let text = String::from_utf8_lossy(&self.bytes[line.range.clone()]);
            block.push(&TextLine {
                bytes: text.as_bytes(),
                is_cut: line.is_cut,
                is_too_long: line.is_too_long,
            });
        }
        block
    }

    /// Threads parse one part after another. This one records, and parses where it has to wait.
    fn pass_on(&self, text: &str, dialect: &LogFormat, mut take: impl FnMut(&[Parsed<'_>])) {
        let parts: Vec<&[BlockLine]> = self.lines.chunks(PART).collect();
        let next = AtomicUsize::new(0);
        let parse_next = || {
            let nth = next.fetch_add(1, Ordering::Relaxed);
            let lines = parts.get(nth)?.iter();
            let parsed: Vec<_> = lines.map(|line| parse(text, line, dialect)).collect();
            Some((nth, parsed))
        };
        let (to, from) = mpsc::channel();
        thread::scope(|scope| {
            for _ in 1..parts.len().min(threads()) {
                let (to, parse_next) = (to.clone(), &parse_next);
                scope.spawn(move || {
                    while let Some(parsed) = parse_next() {
                        // this thread waits for all parts, unless it panics
                        let _ = to.send(parsed);
                    }
                });
            }
            drop(to);
            let mut waiting = BTreeMap::new();
            for nth in 0..parts.len() {
                let parsed = loop {
                    waiting.extend(from.try_iter());
                    if let Some(parsed) = waiting.remove(&nth) {
                        break parsed;
                    }
                    match parse_next().or_else(|| from.recv().ok()) {
                        Some((nth, parsed)) => waiting.insert(nth, parsed),
                        // a thread panicked, which the end of the scope reports
                        None => return,
                    };
                };
                take(&parsed);
            }
        });
    }
}

/// What a line of this text is, and what it says.
fn parse<'a>(text: &'a str, line: &'a BlockLine, dialect: &LogFormat) -> Parsed<'a> {
    let indented = text[line.range.clone()].trim_end();
    let text = indented.trim_start();
    let is_whole = || !(line.is_cut && dialect.lacks_words(text));
    let values = dialect.read(text).filter(|_| is_whole());
    let state = match values {
        Some(_) => LineState::Read,
        None if dialect.is_other(indented) => LineState::Other,
        None => LineState::Unread,
    };
    Parsed {
        line,
        state,
        values,
    }
}

fn threads() -> usize {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    cores.min(MOST_THREADS)
}
