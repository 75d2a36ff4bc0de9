//! Which streams of a connection are over, to separate a frame that was under way from a wrong one
//! (RFC 9113 section 5.1).

use std::collections::VecDeque;

/// Closed streams that are remembered, to separate a late frame from a wrong one.
const REMEMBERED: usize = 128;

/// How a stream came to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClosedStreams {
    /// By us: frames of it may be under way.
    Reset,
    /// By the client, or by both in good order: no frame of it can come.
    Ended,
}

/// The last ones, as many as a client can reasonably have frames under way for.
#[derive(Debug, Default)]
pub(super) struct PastStreams(VecDeque<(u32, ClosedStreams)>);

impl PastStreams {
    /// Remembers one, and forgets the oldest.
    pub(super) fn add(&mut self, id: u32, past: ClosedStreams) {
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back((id, past));
    }

    /// How one came to be closed, if it is remembered.
    pub(super) fn find(&self, id: u32) -> Option<ClosedStreams> {
        let found = self.0.iter().find(|(past, _)| *past == id);
        found.map(|&(_, past)| past)
    }
}
