//! Answers in HTTP/3 that are wrong on purpose. What no encoder would write is written here.

use super::exchanges::{BATCH, write_body};
use super::{Http3Connection, code};
use crate::config::Close;
use crate::fault::{Fault, REPEAT, TRICKLE};
use crate::record::end_recorded;
use crate::response::Body;
use crate::stream_request::StreamRequest;
use intact_ledger::{Failure, Outcome};
use intact_wire::h3::{ErrorCode, qpack, writer};
use quinn::{SendStream, WriteError};
use tokio::time::sleep;

/// Bytes of a body that is sent twice, at most.
const ONCE: u64 = 16 * 1024;
/// Frame types that HTTP/3 forbids: PRIORITY and PING of HTTP/2.
const PRIORITY: u64 = 0x2;
const PING: u64 = 0x6;
/// HEADERS, with a length of 1 GB.
const ENDLESS_HEADERS: &[u8] = b"\x01\xc0\x00\x00\x00\x40\x00\x00\x00";

impl Http3Connection {
    /// Answers by a fault. Returns how the connection ends after it.
    pub(super) async fn answer_badly(
        &self,
        mut request: StreamRequest,
        fault: Fault,
        send: &mut SendStream,
    ) -> Option<Close> {
        // half of a body and the rest of it need at least a byte each
        let body = &mut request.plan.answer.body;
        if body.len() < 2 {
            *body = Body::Filler(2);
        }
        let written = self.write_badly(&mut request, fault, send).await;
        // the fault decides the outcome
        end_recorded(request.pending, Outcome::Failed(Failure::Aborted));
        match fault {
            Fault::CloseBeforeAnswer => Some(Close::Fin),
            Fault::ResetBeforeAnswer => Some(Close::Rst),
            Fault::KeepAliveThenClose if written.is_ok() => {
                let _ = send.stopped().await;
                Some(Close::Fin)
            }
            _ => None,
        }
    }

    async fn write_badly(
        &self,
        request: &mut StreamRequest,
        fault: Fault,
        send: &mut SendStream,
    ) -> Result<(), WriteError> {
        match fault {
            Fault::CloseBeforeAnswer | Fault::ResetBeforeAnswer => return Ok(()),
            Fault::Stall => hold(send).await,
            Fault::StallMidBody => {
                self.part(request, send, 2).await?;
                hold(send).await;
            }
            Fault::ResetMidBody => {
                self.part(request, send, 2).await?;
                let _ = send.reset(code(ErrorCode::H3_INTERNAL_ERROR));
            }
            Fault::TruncatedBody => self.part(request, send, 2).await?,
            Fault::CloseAfterHead => {
                let (head, _) = self.head(request);
                send.write_all(&head).await?;
            }
            Fault::Trickle => self.trickle(request, send).await?,
            Fault::KeepAliveThenClose => self.part(request, send, 1).await?,
            Fault::TwoAnswers => {
                let body = &mut request.plan.answer.body;
                *body = Body::Filler(body.len().min(ONCE));
                self.part(request, send, 1).await?;
                self.part(request, send, 1).await?;
            }
            Fault::Garbage => {
                let mut out = Vec::new();
                writer::write_unknown(&mut out, PRIORITY, b"this is no frame");
                send.write_all(&out).await?;
            }
            Fault::BadChunk => {
                let (mut out, _) = self.head(request);
                writer::write_unknown(&mut out, PING, b"no body");
                send.write_all(&out).await?;
            }
            Fault::EndlessInterim => {
                let mut block = Vec::new();
                qpack::begin(&mut block);
                qpack::encode(b":status", b"102", false, &mut block);
                let mut out = Vec::new();
                for _ in 0..REPEAT {
                    writer::write_headers(&mut out, &block);
                }
                endlessly(send, &[], &out).await?;
            }
            Fault::EndlessHead => {
                let mut block = Vec::new();
                for _ in 0..REPEAT {
                    qpack::encode(b"x-padding", &[b'a'; 32], false, &mut block);
                }
                endlessly(send, ENDLESS_HEADERS, &block).await?;
            }
        }
        // does nothing to a stream that was reset or stopped
        let _ = send.finish();
        Ok(())
    }

    /// The header section, the header of DATA, and its bytes: all of them, or half (`share` 2).
    async fn part(
        &self,
        request: &mut StreamRequest,
        send: &mut SendStream,
        share: u64,
    ) -> Result<(), WriteError> {
        let (mut out, _) = self.head(request);
        let body = &request.plan.answer.body;
        write_body(&mut out, body, body.len() / share, BATCH, send).await?;
        send.write_all(&out).await
    }

    async fn trickle(
        &self,
        request: &mut StreamRequest,
        send: &mut SendStream,
    ) -> Result<(), WriteError> {
        let (mut out, _) = self.head(request);
        let body = &request.plan.answer.body;
        let length = body.len();
        writer::write_data_header(&mut out, usize::try_from(length).unwrap_or(usize::MAX));
        for at in 0..length {
            out.extend_from_slice(body.piece(at, 1));
            send.write_all(&out).await?;
            out.clear();
            sleep(TRICKLE).await;
        }
        Ok(())
    }
}

/// Says nothing more, until the client gives up.
async fn hold(send: &SendStream) {
    let _ = send.stopped().await;
}

/// Sends `first`, then `again` and again, until the client does not want more.
async fn endlessly(send: &mut SendStream, first: &[u8], again: &[u8]) -> Result<(), WriteError> {
    send.write_all(first).await?;
    loop {
        send.write_all(again).await?;
    }
}
