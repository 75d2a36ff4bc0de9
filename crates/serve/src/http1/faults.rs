//! Answers in HTTP/1 that are wrong on purpose.

use super::head::Framing;
use super::{Http1Connection, Request};
use crate::config::Close;
use crate::connection::CloseReason;
use crate::fault::Fault;
use crate::response::Body;
use intact_ledger::Outcome;
use std::io;
use std::time::Duration;

/// Between two bytes of a trickle.
const TRICKLE: Duration = Duration::from_millis(50);
/// How much of something endless goes at a time, in repetitions.
const REPEAT: usize = 100;

/// Bytes that no HTTP message starts with.
const GARBAGE: &[u8] = b"\x00\xff\x13\x37 this is not HTTP \xfe\x01\r\n\r\n";

impl Http1Connection<'_> {
    /// Answers one request by a fault; `Some`: the connection ends.
    pub(super) async fn answer_badly(
        &mut self,
        mut request: Box<Request>,
        fault: Fault,
    ) -> Option<CloseReason> {
        let usual = self.state.config.close;
        // half of a body and the rest of it need at least a byte each
        let body = &mut request.plan.answer.body;
        if body.len() < 2 {
            *body = Body::Filler(2);
        }
        let done = match fault {
            Fault::Stall => {
                self.channel.hold().await;
                Ok(Some(CloseReason::Theirs))
            }
            Fault::StallMidBody => match self.half(&mut request).await {
                Ok(()) => {
                    self.channel.hold().await;
                    Ok(Some(CloseReason::Theirs))
                }
                failed => failed.map(|()| None),
            },
            Fault::ResetMidBody => {
                let half = self.half(&mut request).await;
                half.map(|()| Some(CloseReason::Ours(Close::Rst)))
            }
            Fault::TruncatedBody => {
                let half = self.half(&mut request).await;
                half.map(|()| Some(CloseReason::Ours(Close::Fin)))
            }
            Fault::CloseAfterHead => {
                let framing = Framing::Length(request.plan.answer.body.len());
                self.write_head(&mut request, framing);
                let sent = self.channel.flush().await;
                sent.map(|()| Some(CloseReason::Ours(Close::Fin)))
            }
            Fault::Trickle => self.trickle(&mut request).await,
            Fault::Garbage => self
                .send(GARBAGE)
                .await
                .map(|()| Some(CloseReason::Ours(Close::Fin))),
            Fault::BadChunk => {
                self.write_head(&mut request, Framing::Chunked);
                let sent = self.send(b"xyz\r\n").await;
                sent.map(|()| Some(CloseReason::Ours(Close::Fin)))
            }
            Fault::EndlessInterim => {
                self.send_endlessly(b"HTTP/1.1 102 Processing\r\n\r\n")
                    .await
            }
            Fault::EndlessHead => {
                self.channel.out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
                self.send_endlessly(b"X-Padding: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n")
                    .await
            }
            Fault::TwoAnswers => self.twice(&mut request).await,
            Fault::CloseBeforeAnswer => Ok(Some(CloseReason::Ours(usual))),
            Fault::ResetBeforeAnswer => Ok(Some(CloseReason::Ours(Close::Rst))),
            Fault::KeepAliveThenClose => {
                request.persistent = true;
                self.record.announced_by.set(None);
                self.write(&mut request)
                    .await
                    .map(|()| Some(CloseReason::Ours(usual)))
            }
        };
        let leave = done.unwrap_or(Some(CloseReason::Theirs));
        if let Some(pending) = request.pending {
            // what it is recorded as is the fault's
            pending.end(Outcome::Ok);
        }
        leave
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
