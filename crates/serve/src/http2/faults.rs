//! Answers in HTTP/2 that are wrong on purpose. What is no frame at all, or not one that a session
//! would write, is written here.

use super::Http2Connection;
use super::exchanges::{After, StreamStep};
use crate::config::Close;
use crate::connection::CloseReason;
use crate::fault::{Fault, REPEAT, TRICKLE};
use crate::response::Body;
use intact_wire::h2::writer;
use std::io;
use tokio::time::Instant;

/// Bytes of a body that is sent twice, at most: a frame.
const ONCE: usize = 16 * 1024;

/// A frame header of 16 MB, of no type and on no stream.
const GARBAGE: &[u8] = b"\xff\xff\xff\xee\xff\xff\xff\xff\xff this is no frame";
/// `:status: 200`, by its number in the static table (RFC 7541 appendix A).
const STATUS_200: &[u8] = b"\x88";
/// `:status: 102`, not to be indexed.
const STATUS_102: &[u8] = b"\x08\x03102";
/// A field, not to be indexed.
const FIELD: &[u8] = b"\x00\x09x-padding\x20aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

const HEADERS: u8 = 0x1;
const CONTINUATION: u8 = 0x9;

impl Http2Connection<'_> {
    /// Answers a stream by a fault; `Some`: the connection ends.
    pub(super) async fn answer_badly(
        &mut self,
        id: u32,
        fault: Fault,
        now: Instant,
    ) -> Option<CloseReason> {
        // who leaves in the middle does not say so before
        let abrupt = match self.state.config.close {
            Close::Goaway | Close::Slow => Close::Fin,
            other => other,
        };
        let exchanging = self.exchanges.all.get_mut(&id)?;
        // half of a body and the rest of it need at least a byte each
        let body = &mut exchanging.request.plan.answer.body;
        if body.len() < 2 {
            *body = Body::Filler(2);
        }
        match fault {
            Fault::Stall => exchanging.step = StreamStep::Wait,
            Fault::StallMidBody => self.half(id, After::Hold),
            Fault::ResetMidBody => self.half(id, After::Reset),
            Fault::TruncatedBody => self.half(id, After::Leave(Close::Fin)),
            Fault::Trickle => {
                self.answer(id);
                self.exchanges
                    .schedule(id, StreamStep::Trickle(0), now + TRICKLE);
            }
            Fault::KeepAliveThenClose => {
                exchanging.after = After::Leave(abrupt);
                self.answer(id);
                self.body(id);
            }
            Fault::CloseBeforeAnswer => {
                self.exchanges.end(id);
                return Some(CloseReason::Ours(abrupt));
            }
            Fault::ResetBeforeAnswer => {
                self.exchanges.end(id);
                return Some(CloseReason::Ours(Close::Rst));
            }
            Fault::CloseAfterHead => {
                self.answer(id);
                let sent = self.channel.flush().await;
                return Some(self.leave_after(id, &sent));
            }
            Fault::TwoAnswers => {
                let len = body.len().min(ONCE as u64);
                *body = Body::Filler(len);
                for _ in 0..2 {
                    let out = &mut self.channel.out;
                    writer::write_headers(out, id, STATUS_200, false, ONCE);
                    writer::write_data(out, id, Body::Filler(len).piece(0, ONCE), true);
                }
                self.session.end(id);
                self.exchanges.end(id);
            }
            Fault::Garbage => {
                let sent = self.send(GARBAGE).await;
                return Some(self.leave_after(id, &sent));
            }
            Fault::BadChunk => {
                self.answer(id);
                let mut frame = frame_header(2, 0x0, 0x8, id).to_vec();
                frame.extend_from_slice(b"\xffx");
                let sent = self.send(&frame).await;
                return Some(self.leave_after(id, &sent));
            }
            Fault::EndlessInterim => {
                let mut block = Vec::new();
                for _ in 0..REPEAT {
                    writer::write_headers(&mut block, id, STATUS_102, false, ONCE);
                }
                let failed = self.send_endlessly(&[], &block).await;
                return Some(self.leave_after(id, &failed));
            }
            Fault::EndlessHead => {
                let fields = FIELD.repeat(REPEAT);
                let mut start = frame_header(STATUS_200.len(), HEADERS, 0, id).to_vec();
                start.extend_from_slice(STATUS_200);
                let mut block = frame_header(fields.len(), CONTINUATION, 0, id).to_vec();
                block.extend_from_slice(&fields);
                let failed = self.send_endlessly(&start, &block).await;
                return Some(self.leave_after(id, &failed));
            }
        }
        None
    }

    /// Sends the head and half of the body.
    fn half(&mut self, id: u32, after: After) {
        self.answer(id);
        let Some(exchanging) = self.exchanges.all.get_mut(&id) else {
            return;
        };
        exchanging.after = after;
        let body = exchanging.request.plan.answer.body.clone();
        let half = body.len() / 2;
        if let Some(pending) = &mut exchanging.request.pending {
            pending.bytes.body = half;
        }
        self.session.give(id, body, 0, half, false);
    }

    /// Sends the byte at `at`, and plans the next one.
    pub(super) fn trickle(&mut self, id: u32, at: u64, now: Instant) {
        let Some(exchanging) = self.exchanges.all.get_mut(&id) else {
            return;
        };
        let body = exchanging.request.plan.answer.body.clone();
        let last = at + 1 >= body.len();
        exchanging.after = if last { After::End } else { After::Hold };
        self.session.give(id, body, at, at + 1, last);
        if !last {
            self.exchanges
                .schedule(id, StreamStep::Trickle(at + 1), now + TRICKLE);
        }
    }

    /// Repeats something until the client has had enough; returns when it has.
    async fn send_endlessly(&mut self, start: &[u8], block: &[u8]) -> io::Result<()> {
        self.channel.out.extend_from_slice(start);
        loop {
            self.send(block).await?;
        }
    }

    /// The end of a connection after which nothing can be read any more.
    fn leave_after(&mut self, id: u32, sent: &io::Result<()>) -> CloseReason {
        self.exchanges.end(id);
        match sent {
            Ok(()) => CloseReason::Ours(Close::Fin),
            Err(_) => CloseReason::Theirs,
        }
    }
}

/// The nine bytes before a payload (RFC 9113 section 4.1).
fn frame_header(len: usize, kind: u8, flags: u8, stream: u32) -> [u8; 9] {
    let [_, a, b, c] = (len as u32).to_be_bytes();
    let [s0, s1, s2, s3] = stream.to_be_bytes();
    [a, b, c, kind, flags, s0, s1, s2, s3]
}
