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

/// Lines as text.
#[derive(Default)]
pub(super) struct LineBlock {
    text: String,
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
pub(super) type Parsed<'a> = (&'a BlockLine, LineState, Option<Line<'a>>);

impl LineBlock {
    /// Adds a line. What is not UTF-8 is replaced.
    pub(super) fn push(&mut self, line: &TextLine<'_>) {
        let start = self.text.len();
        self.text.push_str(line.text().trim());
        self.lines.push(BlockLine {
            range: start..self.text.len(),
            is_cut: line.is_cut,
            is_too_long: line.is_too_long,
        });
    }

    pub(super) fn is_full(&self) -> bool {
        self.text.len() >= FULL
    }

    /// Passes on the lines in their order, and empties the block.
    pub(super) fn drain(&mut self, dialect: &LogFormat, mut take: impl FnMut(Parsed<'_>)) {
        let second = match self.lines.len() >= WORTH && has_two_cores() {
            true => self.lines.len() * OF_SECOND / 100,
            false => 0,
        };
        let (first, second) = self.lines.split_at(self.lines.len() - second);
        let text = self.text.as_str();
        let parse = |lines| Self::parse(text, lines, dialect);
        thread::scope(|scope| {
            let worker = (!second.is_empty())
                .then(|| scope.spawn(|| parse(second).collect::<Vec<Parsed<'_>>>()));
            parse(first).for_each(&mut take);
            match worker.map(thread::ScopedJoinHandle::join) {
                Some(Ok(parsed)) => parsed.into_iter().for_each(&mut take),
                Some(Err(panic)) => std::panic::resume_unwind(panic),
                None => {}
            }
        });
        self.text.clear();
        self.lines.clear();
    }

    fn parse<'a>(
        text: &'a str,
        lines: &'a [BlockLine],
        dialect: &'a LogFormat,
    ) -> impl Iterator<Item = Parsed<'a>> {
        lines.iter().map(move |line| {
            let text = &text[line.range.clone()];
            let values = dialect.read(text);
            let state = match values {
                Some(_) => LineState::Read,
                None if dialect.is_other(text) => LineState::Other,
                None => LineState::Unread,
            };
            (line, state, values)
        })
    }
}

fn has_two_cores() -> bool {
    thread::available_parallelism().is_ok_and(|cores| cores.get() > 1)
}
