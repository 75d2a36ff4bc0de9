//! What goes to the client: header sections of responses, and bodies up to its windows (RFC 9113
//! section 5.2).

use super::closed_streams::ClosedStreams;
use super::{Listener, Session};
use crate::response::Body;
use intact_wire::h2::hpack::Indexing;
use intact_wire::h2::{ErrorCode, writer};

/// Bytes that gather before they are sent.
const BATCH: usize = 64 * 1024;

/// What is to be sent on a stream.
pub(super) struct Outgoing {
    body: Body,
    at: u64,
    until: u64,
    /// The stream ends with it.
    end: bool,
}

/// Adds a field, name and value, to a header section.
pub(in super::super) type AddField<'a> = dyn FnMut(&[u8], &[u8]) + 'a;

impl Session {
    /// Appends a header section with these fields; `end`: nothing follows it.
    pub(in super::super) fn head(
        &mut self,
        id: u32,
        fields: impl FnOnce(&mut AddField<'_>),
        end: bool,
        out: &mut Vec<u8>,
    ) -> u64 {
        // a client without a table is served with blocks that are always the same
        let indexing = if self.client.header_table_size == 0 {
            Indexing::Without
        } else {
            Indexing::Incremental
        };
        let mut block = Vec::with_capacity(64);
        self.encoder.begin(&mut block);
        let encoder = &mut self.encoder;
        fields(&mut |name, value| encoder.encode(name, value, indexing, &mut block));
        let before = out.len();
        let most = self.client.max_frame_size as usize;
        writer::write_headers(out, id, &block, end, most);
        let written = out.len() - before;
        if end {
            self.end_response(id, out);
        }
        written as u64
    }

    /// Notes the end of a response. A client that is still sending its request is asked to stop
    /// (RFC 9113 section 8.1).
    fn end_response(&mut self, id: u32, out: &mut Vec<u8>) {
        let is_receiving = self.streams.get(&id).is_some_and(|one| one.receiving);
        let past = if is_receiving {
            writer::write_reset(out, id, ErrorCode::NO_ERROR);
            ClosedStreams::Reset
        } else {
            ClosedStreams::Ended
        };
        self.forget(id, past);
    }

    /// Gives the bytes `from..until` of a body to be sent as the windows allow.
    pub(in super::super) fn give(&mut self, id: u32, body: Body, from: u64, until: u64, end: bool) {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.outgoing = Some(Outgoing {
                body,
                at: from,
                until,
                end,
            });
            if !std::mem::replace(&mut stream.queued, true) {
                self.sending.push_back(id);
            }
        }
    }

    /// Appends DATA, a frame of each stream in turn, until a batch is full or the windows are
    /// empty.
    pub(in super::super) fn pump(&mut self, out: &mut Vec<u8>, listener: &mut impl Listener) {
        while self.window > 0 && out.len() < BATCH {
            let Some(id) = self.sending.pop_front() else {
                return;
            };
            let Some(stream) = self.streams.get_mut(&id) else {
                continue;
            };
            stream.queued = false;
            let Some(outgoing) = &mut stream.outgoing else {
                continue;
            };
            let room = self.window.min(stream.window).max(0) as usize;
            let left = outgoing.until - outgoing.at;
            let most = (self.client.max_frame_size as usize)
                .min(room)
                .min(usize::try_from(left).unwrap_or(usize::MAX));
            if most == 0 && left > 0 {
                // until its WINDOW_UPDATE
                continue;
            }
            let piece = outgoing.body.piece(outgoing.at, most);
            outgoing.at += piece.len() as u64;
            stream.window -= piece.len() as i64;
            self.window -= piece.len() as i64;
            let done = outgoing.at == outgoing.until;
            let end = done && outgoing.end;
            writer::write_data(out, id, piece, end);
            if !done {
                stream.queued = true;
                self.sending.push_back(id);
                continue;
            }
            stream.outgoing = None;
            if end {
                self.end_response(id, out);
            }
            listener.sent(id);
        }
    }
}
