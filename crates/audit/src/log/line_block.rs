//! Lines of a log in blocks, so that two threads can parse them. Must not change their order.

use super::line::Line;
use super::log_format::LogFormat;
use crate::input::TextLine;
use crate::unread_lines::LineState;
use std::ops::Range;
use std::thread;

/// Bytes of a block.
const FULL: usize = 1 << 20;
/// Fewest lines that are worth a second thread.
const WORTH: usize = 512;
/// Lines of a block that the second thread parses, in percent: the first one also records them.
const OF_SECOND: usize = 60;

/// Lines, one after another.
#[derive(Default)]
pub(super) struct LineBlock {
    bytes: Vec<u8>,
    lines: Vec<BlockLine>,
}

/// A line of a block.
#[derive(Clone, Debug)]
pub(super) struct BlockLine {
    range: Range<usize>,
    pub(super) is_cut: bool,
    pub(super) is_too_long: bool,
}

/// A line, what it is, and what it says.
pub(super) type Parsed<'l, 'a> = (&'l BlockLine, LineState, Option<&'l Line<'a>>);

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

    /// Passes on the lines in their order, and empties the block. What is not UTF-8 is replaced.
    pub(super) fn drain(&mut self, dialect: &LogFormat, take: impl FnMut(Parsed<'_, '_>)) {
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

    fn pass_on(&self, text: &str, dialect: &LogFormat, mut take: impl FnMut(Parsed<'_, '_>)) {
        let second = match self.lines.len() >= WORTH && has_two_cores() {
            true => self.lines.len() * OF_SECOND / 100,
            false => 0,
        };
        let (first, second) = self.lines.split_at(self.lines.len() - second);
        thread::scope(|scope| {
            let worker = (!second.is_empty()).then(|| {
                let each = second.iter().map(|line| parse(text, line, dialect));
                scope.spawn(move || each.collect::<Vec<_>>())
            });
            for line in first {
                let (state, values) = parse(text, line, dialect);
                take((line, state, values.as_ref()));
            }
            let parsed = match worker.map(thread::ScopedJoinHandle::join) {
                Some(Ok(parsed)) => parsed,
                Some(Err(panic)) => std::panic::resume_unwind(panic),
                None => Vec::new(),
            };
            for (line, (state, values)) in second.iter().zip(&parsed) {
                take((line, *state, values.as_ref()));
            }
        });
    }
}

/// What a line of this text is, and what it says.
fn parse<'a>(
    text: &'a str,
    line: &BlockLine,
    dialect: &LogFormat,
) -> (LineState, Option<Line<'a>>) {
    let indented = text[line.range.clone()].trim_end();
    let text = indented.trim_start();
    let is_whole = || !(line.is_cut && dialect.lacks_words(text));
    let values = dialect.read(text).filter(|_| is_whole());
    let state = match values {
        Some(_) => LineState::Read,
        None if dialect.is_other(indented) => LineState::Other,
        None => LineState::Unread,
    };
    (state, values)
}

fn has_two_cores() -> bool {
    thread::available_parallelism().is_ok_and(|cores| cores.get() > 1)
}
