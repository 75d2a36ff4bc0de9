//! HTTP/2 on one connection, with frames of our own, so that it can also be spoken badly.
//!
//! `session` is the protocol, `exchanges` what is asked and answered, `faults` what is answered
//! badly; here is the loop that moves bytes and time between them.

mod exchanges;
mod faults;
pub(crate) mod request;
mod session;

use crate::channel::Channel;
use crate::config::Close;
use crate::connection::CloseReason;
use crate::drain::DrainNotice;
use crate::read_buffers::ReadBuffer;
use crate::record::Record;
use crate::thread_state::{Peer, ThreadState};
use exchanges::{After, Called, Exchanges, StreamStep};
use intact_ledger::Side;
use intact_wire::h2::{Error, ErrorCode};
use session::{AddField, Session};
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until};

/// Bytes that may wait to be sent while we still listen: a client that asks and does not read is
/// not listened to.
const BACKLOG: usize = 1 << 20;

/// One connection and what belongs to it.
struct Http2Connection<'a> {
    channel: &'a mut Channel,
    session: Session,
    exchanges: Exchanges<'a>,
    state: &'a ThreadState,
    record: &'a Rc<Record>,
    peer: Peer,
    drain: DrainNotice,
    /// `--header`, with names as HTTP/2 wants them.
    headers: Vec<(Vec<u8>, Vec<u8>)>,
}

/// What made the loop go on.
enum Turn {
    Read(ReadBuffer),
    /// There is room to send more.
    Sent,
    /// A step is due, or the patience with an idle client is over.
    Due,
    /// The calls that a response waited for are over.
    Called(Called),
    /// The server begins to end.
    Drain,
    Gone,
}

/// Serves requests until either side ends the connection; `first` are its first bytes.
pub(crate) async fn serve(
    channel: &mut Channel,
    state: &ThreadState,
    record: &Rc<Record>,
    peer: Peer,
    first: ReadBuffer,
) -> CloseReason {
    let session = Session::start(&mut channel.out);
    let is_tls = channel.tls().is_some();
    let mut conversation = Http2Connection {
        channel,
        session,
        exchanges: Exchanges::new(state, record, peer),
        state,
        record,
        peer,
        drain: state.drain.notice(),
        headers: fields_of(state, is_tls),
    };
    if let Some(leave) = conversation.receive(&first).await {
        return leave;
    }
    drop(first);
    conversation.go_on().await
}

impl Http2Connection<'_> {
    async fn go_on(&mut self) -> CloseReason {
        loop {
            if let Some(leave) = self.work().await {
                return leave;
            }
            if self.session.is_closing() && self.exchanges.all.is_empty() {
                let sent = self.channel.flush().await;
                return sent.map_or(CloseReason::Theirs, |()| {
                    CloseReason::Ours(self.state.config.close)
                });
            }
            let idle_until = self.idle_until();
            let until = [idle_until, self.exchanges.due_at()]
                .into_iter()
                .flatten()
                .min();
            match self.turn(until).await {
                Turn::Read(bytes) => {
                    if let Some(leave) = self.receive(&bytes).await {
                        return leave;
                    }
                    // a client that sends or takes without end takes turns with the others
                    if bytes.is_full() {
                        yield_now().await;
                    }
                }
                Turn::Sent => yield_now().await,
                Turn::Due => {
                    if idle_until.is_some_and(|until| until <= Instant::now()) {
                        self.stop();
                    }
                }
                Turn::Called(called) => self.exchanges.take_called(called),
                Turn::Drain => self.stop(),
                Turn::Gone => return CloseReason::Theirs,
            }
        }
    }

    /// Takes bytes from the client; `Some`: the connection ends.
    async fn receive(&mut self, bytes: &[u8]) -> Option<CloseReason> {
        let taken = self
            .session
            .receive(bytes, &mut self.channel.out, &mut self.exchanges);
        if let Err(error) = taken {
            return Some(self.give_up(&error).await);
        }
        if self.exchanges.last {
            self.stop();
        }
        None
    }

    /// Takes no more requests, and says so if that is our way.
    fn stop(&mut self) {
        let announce = matches!(self.state.config.close, Close::Goaway | Close::Slow);
        if announce {
            self.record.announced_by.set(Some(Side::Server));
        }
        self.session.close(announce, &mut self.channel.out);
    }

    async fn give_up(&mut self, error: &Error) -> CloseReason {
        self.record.announced_by.set(Some(Side::Server));
        self.session.give_up(error, &mut self.channel.out);
        let _ = self.channel.flush().await;
        CloseReason::Ours(Close::Fin)
    }

    /// When an idle connection is ended.
    fn idle_until(&self) -> Option<Instant> {
        if !self.exchanges.all.is_empty() || self.session.is_closing() {
            return None;
        }
        let since = self.exchanges.idle_since.into_std();
        let until = self.state.idle_until(since, self.peer);
        until.map(Instant::from_std)
    }

    /// Sends what there is to send, and waits for the next thing to do.
    async fn turn(&mut self, until: Option<Instant>) -> Turn {
        let more = self.session.can_send();
        let buffers = &self.state.buffers;
        let channel = &mut *self.channel;
        let passing = poll_fn(|context| {
            let drained = match channel.poll_flush(context) {
                Poll::Ready(Err(_)) => return Poll::Ready(Turn::Gone),
                Poll::Ready(Ok(())) => true,
                Poll::Pending => false,
            };
            if channel.out.len() < BACKLOG
                && let Poll::Ready(read) = channel.poll_read(context, buffers)
            {
                return Poll::Ready(match read {
                    Ok(bytes) if !bytes.is_empty() => Turn::Read(bytes),
                    _ => Turn::Gone,
                });
            }
            if drained && more {
                return Poll::Ready(Turn::Sent);
            }
            Poll::Pending
        });
        let due = async {
            match until {
                Some(until) => sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            turn = passing => turn,
            () = self.drain.begun() => Turn::Drain,
            called = self.exchanges.next_called() => Turn::Called(called),
            () = due => Turn::Due,
        }
    }

    /// Does everything that is due now; `Some`: the connection ends.
    async fn work(&mut self) -> Option<CloseReason> {
        if self.exchanges.due_at().is_some() {
            let now = Instant::now();
            while let Some(id) = self.exchanges.next_due(now) {
                if let Some(leave) = self.step(id, now).await {
                    return Some(leave);
                }
            }
        }
        self.session
            .pump(&mut self.channel.out, &mut self.exchanges);
        while let Some((id, after)) = self.exchanges.followed.pop() {
            match after {
                After::End => self.exchanges.end(id),
                After::Hold => {}
                After::Trailers(status) => {
                    let status = status.to_string();
                    let fields = |add: &mut AddField<'_>| add(b"grpc-status", status.as_bytes());
                    self.session.head(id, fields, true, &mut self.channel.out);
                    self.exchanges.end(id);
                }
                After::Reset => {
                    let out = &mut self.channel.out;
                    let code = ErrorCode::INTERNAL_ERROR;
                    self.session.reset(id, code, out, &mut self.exchanges);
                }
                After::Leave(close) => {
                    self.exchanges.end(id);
                    let sent = self.channel.flush().await;
                    return Some(sent.map_or(CloseReason::Theirs, |()| CloseReason::Ours(close)));
                }
            }
        }
        None
    }

    /// Does the next step for a stream.
    async fn step(&mut self, id: u32, now: Instant) -> Option<CloseReason> {
        let exchanging = self.exchanges.all.get(&id)?;
        match exchanging.step {
            StreamStep::Wait => {}
            StreamStep::Answer => {
                if let Some(fault) = exchanging.request.plan.fault {
                    return self.answer_badly(id, fault, now).await;
                }
                if self.answer(id) {
                    match self.state.config.split {
                        None => self.body(id),
                        Some(gap) => {
                            // the head goes before the body is there to go with it
                            if self.channel.flush().await.is_err() {
                                return Some(CloseReason::Theirs);
                            }
                            self.put_off(id, now, gap);
                        }
                    }
                } else {
                    self.exchanges.end(id);
                }
            }
            StreamStep::Body => self.body(id),
            StreamStep::Trickle(at) => self.trickle(id, at, now),
        }
        None
    }

    fn put_off(&mut self, id: u32, now: Instant, gap: Duration) {
        if gap.is_zero() {
            self.body(id);
        } else {
            self.exchanges.schedule(id, StreamStep::Body, now + gap);
        }
    }

    /// Appends the head of an answer; whether a body follows.
    fn answer(&mut self, id: u32) -> bool {
        let Some(exchanging) = self.exchanges.all.get_mut(&id) else {
            return false;
        };
        let request = &mut exchanging.request;
        let follows = request.has_body();
        let fields = |add: &mut AddField<'_>| request.fields(&self.headers, add);
        let out = &mut self.channel.out;
        let written = self.session.head(id, fields, !follows, out);
        request.note_head(written);
        let answer = &request.plan.answer;
        if let Some(pending) = &mut request.pending {
            if let Some(call) = &mut pending.grpc {
                call.status = answer.grpc;
            }
            pending.bytes.body = if follows { answer.body.len() } else { 0 };
        }
        follows
    }

    /// Gives the whole body to be sent.
    fn body(&mut self, id: u32) {
        if let Some(exchanging) = self.exchanges.all.get_mut(&id) {
            let body = exchanging.request.plan.answer.body.clone();
            let len = body.len();
            let grpc = exchanging.request.plan.answer.grpc;
            if let Some(status) = grpc {
                exchanging.after = After::Trailers(status);
            }
            self.session.give(id, body, 0, len, grpc.is_none());
        }
    }

    async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.channel.out.extend_from_slice(bytes);
        self.channel.flush().await
    }
}

/// The fields of every answer, with names in lower case (RFC 9113 section 8.2.1): `--header`, and
/// over TLS where HTTP/3 is spoken.
pub(crate) fn fields_of(state: &ThreadState, is_tls: bool) -> Vec<(Vec<u8>, Vec<u8>)> {
    let alt_svc = state.alt_svc.as_ref().filter(|_| is_tls);
    let alt_svc = alt_svc.map(|value| (b"alt-svc".to_vec(), value.clone().into_bytes()));
    let lower = |(name, value): &(String, String)| {
        (
            name.to_ascii_lowercase().into_bytes(),
            value.clone().into_bytes(),
        )
    };
    let given = state.config.headers.iter().map(lower);
    alt_svc.into_iter().chain(given).collect()
}
