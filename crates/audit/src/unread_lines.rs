//! The lines of a text input that could not be read: counted in every format, so that none is lost
//! in silence. A line is read, known to be something else, or unread. Must not know any format.

use crate::event_writer::EventWriter;
use intact_units::number::count;

/// What a line of a log is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineState {
    /// A record, whether its content is used or not.
    Read,
    /// Known to be something else: a directive, or a message of the program.
    Other,
    /// Neither: what it records is not counted.
    Unread,
}

/// The lines of one input.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UnreadLines {
    pub(crate) all: u64,
    pub(crate) unread: u64,
    /// Of these, whether the last one has no end: the file was cut, or is still being written.
    is_cut: bool,
}

impl UnreadLines {
    /// Counts a line. Of a line that was cut, nothing shows that it is something else.
    pub(crate) fn count(&mut self, is_cut: bool, is_too_long: bool, state: LineState) {
        self.all += 1;
        let is_unread = match state {
            LineState::Read => is_too_long,
            LineState::Other => is_too_long || is_cut,
            LineState::Unread => true,
        };
        self.unread += u64::from(is_unread);
        self.is_cut |= is_unread && is_cut;
    }

    /// Records a caveat for the unread lines, with the remedy as a sentence of its own or nothing.
    pub(crate) fn record(&self, prefix: &str, remedy: &str, writer: &mut EventWriter<'_>) {
        if self.unread == 0 {
            return;
        }
        let last = match self.is_cut {
            true => "; the last line is cut off",
            false => "",
        };
        writer.incomplete(
            "lines-not-read",
            format!(
                "{prefix}{} of {} lines cannot be read: what they record is not counted{last}{remedy}",
                count(self.unread),
                count(self.all)
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_something_else_or_unread() {
        let unread = |is_cut, is_too_long, state| {
            let mut lines = UnreadLines::default();
            lines.count(is_cut, is_too_long, state);
            (lines.unread, lines.is_cut)
        };
        assert_eq!(unread(false, false, LineState::Read), (0, false));
        assert_eq!(unread(true, false, LineState::Read), (0, false));
        assert_eq!(unread(false, false, LineState::Other), (0, false));
        assert_eq!(unread(true, false, LineState::Other), (1, true));
        assert_eq!(unread(false, true, LineState::Other), (1, false));
        assert_eq!(unread(false, false, LineState::Unread), (1, false));
    }
}
