//! Answers in HTTP/1 that are wrong on purpose.

use super::head::Framing;
use super::{Http1Connection, Request};
use crate::config::Close;
use crate::connection::CloseReason;
use crate::fault::{Fault, REPEAT, TRICKLE};
use crate::record::end_recorded;
use crate::response::Body;
use intact_ledger::Outcome;
use std::io;

/// Bytes that no HTTP message starts with.
const GARBAGE: &[u8] = b"\x00\xff\x13\x37 this is not HTTP \xfe\x01\r\n\r\n";

impl Http1Connection<'_> {
    /// Answers one request by a fault; `Some`: the connection ends.
    pub(super) async fn answer_badly(
        &mut self,
        mut request: Box<Request>,
        fault: Fault,
    ) -> Option<CloseReason> {
        // half of a body and the rest of it need at least a byte each
        let body = &mut request.plan.answer.body;
        if body.len() < 2 {
            *body = Body::Filler(2);
        }
        let done = self.write_badly(&mut request, fault).await;
        // what it is recorded as is the fault's
        end_recorded(request.pending, Outcome::Ok);
        done.unwrap_or(Some(CloseReason::Theirs))
    }

    /// Writes what the fault leaves of a response; `Some`: the connection ends.
    async fn write_badly(
        &mut self,
        request: &mut Request,
        fault: Fault,
    ) -> io::Result<Option<CloseReason>> {
        let close = match fault {
            Fault::Stall => {
                self.channel.hold().await;
                return Ok(Some(CloseReason::Theirs));
            }
            Fault::StallMidBody => {
                self.half(request).await?;
                self.channel.hold().await;
                return Ok(Some(CloseReason::Theirs));
            }
            Fault::ResetMidBody => {
                self.half(request).await?;
                Close::Rst
            }
            Fault::TruncatedBody => {
                self.half(request).await?;
                Close::Fin
            }
            Fault::CloseAfterHead => {
                let framing = Framing::Length(request.plan.answer.body.len());
                self.write_head(request, framing);
                self.channel.flush().await?;
                Close::Fin
            }
            Fault::Trickle => return self.trickle(request).await,
            Fault::Garbage => {
                self.send(GARBAGE).await?;
                Close::Fin
            }
            Fault::BadChunk => {
                self.write_head(request, Framing::Chunked);
                self.send(b"xyz\r\n").await?;
                Close::Fin
            }
            Fault::EndlessInterim => {
                let interim = b"HTTP/1.1 102 Processing\r\n\r\n";
                return self.send_endlessly(interim).await;
            }
            Fault::EndlessHead => {
                self.channel.out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
                let field = b"X-Padding: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n";
                return self.send_endlessly(field).await;
            }
            Fault::TwoAnswers => return self.twice(request).await,
            Fault::CloseBeforeAnswer => self.state.config.close,
            Fault::ResetBeforeAnswer => Close::Rst,
            Fault::KeepAliveThenClose => {
                request.persistent = true;
                self.record.announced_by.set(None);
                self.write(request).await?;
                self.state.config.close
            }
        };
        Ok(Some(CloseReason::Ours(close)))
    }

    async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.channel.out.extend_from_slice(bytes);
        self.channel.flush().await
    }

    /// Sends the head and half of the body.
    async fn half(&mut self, request: &mut Request) -> io::Result<()> {
        let body = request.plan.answer.body.clone();
        let framing = Framing::Length(body.len());
        self.write_head(request, framing);
        if let Some(pending) = &mut request.pending {
            pending.bytes.body = body.len() / 2;
        }
        self.write_body(&body, body.len() / 2, framing).await
    }

    async fn trickle(&mut self, request: &mut Request) -> io::Result<Option<CloseReason>> {
        let body = request.plan.answer.body.clone();
        self.write_head(request, Framing::Length(body.len()));
        self.channel.flush().await?;
        for at in 0..body.len() {
            tokio::time::sleep(TRICKLE).await;
            self.send(body.piece(at, 1)).await?;
        }
        Ok((!request.persistent).then_some(CloseReason::Ours(self.state.config.close)))
    }

    /// Repeats something until the client has had enough.
    async fn send_endlessly(&mut self, bytes: &[u8]) -> io::Result<Option<CloseReason>> {
        let block = bytes.repeat(REPEAT);
        loop {
            self.send(&block).await?;
        }
    }

    /// The same answer two times, in one write, so that no client can have asked in between.
    async fn twice(&mut self, request: &mut Request) -> io::Result<Option<CloseReason>> {
        let body = &mut request.plan.answer.body;
        let len = body.len().min(super::CHUNK as u64);
        *body = Body::Given(body.piece(0, super::CHUNK).to_vec());
        let body = body.clone();
        let framing = Framing::Length(len);
        self.write_head(request, framing);
        self.channel
            .out
            .extend_from_slice(body.piece(0, super::CHUNK));
        self.write_head(request, framing);
        self.write_body(&body, body.len(), framing).await?;
        Ok((!request.persistent).then_some(CloseReason::Ours(self.state.config.close)))
    }
}
