//! The exchanges of one HTTP/2 connection: what was asked on each stream, what is answered, and
//! when the next step of it is due.

use super::request::RequestHead;
use super::session::Listener;
use crate::config::Close;
use crate::record::{OpenExchange, Record};
use crate::response::{LARGEST_ECHO, Response};
use crate::stream_request::StreamRequest;
use crate::thread_state::{Peer, ThreadState};
use intact_ledger::{Failure, GrpcCall, Outcome, Protocol, Side};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

/// Bytes of request bodies that are kept for all streams of a connection.
const LARGEST_ECHOES: usize = 16 * LARGEST_ECHO;

/// What is to be done for a stream next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamStep {
    /// To wait, for the rest of the request or for ever.
    Wait,
    /// To answer.
    Answer,
    /// To send the body, whose head has gone before.
    Body,
    /// To send the byte of the body at this place, by itself.
    Trickle(u64),
}

/// What follows once all that was given for a stream is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// The exchange is over.
    End,
    /// Nothing: it stays as it is.
    Hold,
    /// The trailers of a call of gRPC with this status, which end the exchange.
    Trailers(u16),
    /// The stream is reset.
    Reset,
    /// The connection ends like this.
    Leave(Close),
}

/// One exchange.
pub(super) struct StreamExchange {
    pub(super) request: StreamRequest,
    pub(super) step: StreamStep,
    pub(super) after: After,
    /// When `step` is due, if it has a time.
    due: Instant,
    body: Vec<u8>,
    /// The calls to the upstream that the response waits for.
    calls: Option<AbortHandle>,
    /// Bytes of `body` that count against what is kept for all streams.
    held: usize,
    /// Bytes of `body` in which whole messages were found.
    read: usize,
    /// The request is complete, or as much of it came as the response needs.
    is_complete: bool,
}

/// All of them.
pub(super) struct Exchanges<'a> {
    state: &'a ThreadState,
    record: &'a Rc<Record>,
    peer: Peer,
    pub(super) all: BTreeMap<u32, StreamExchange>,
    /// When the next step of which stream is due.
    due: BTreeSet<(Instant, u32)>,
    /// Bytes of request bodies that are kept to be sent back.
    held: usize,
    /// No stream after those that are open is to be served.
    pub(super) last: bool,
    /// When the last exchange ended.
    pub(super) idle_since: Instant,
    /// What was sent, and what follows it.
    pub(super) followed: Vec<(u32, After)>,
    /// The calls to the upstream that responses wait for. They end with the connection.
    calls: JoinSet<Called>,
}

/// The calls of a stream: its number, how many there were, how many failed.
pub(super) type Called = (u32, u32, u32);

impl<'a> Exchanges<'a> {
    pub(super) fn new(state: &'a ThreadState, record: &'a Rc<Record>, peer: Peer) -> Exchanges<'a> {
        Exchanges {
            state,
            record,
            peer,
            all: BTreeMap::new(),
            due: BTreeSet::new(),
            held: 0,
            last: false,
            idle_since: Instant::now(),
            followed: Vec::new(),
            calls: JoinSet::new(),
        }
    }

    /// Takes a stream whose step is due.
    pub(super) fn next_due(&mut self, now: Instant) -> Option<u32> {
        let &(at, stream) = self.due.first().filter(|(at, _)| *at <= now)?;
        self.due.remove(&(at, stream));
        Some(stream)
    }

    /// When the next step is due.
    pub(super) fn due_at(&self) -> Option<Instant> {
        self.due.first().map(|&(at, _)| at)
    }

    /// Puts a step off.
    pub(super) fn schedule(&mut self, stream: u32, step: StreamStep, at: Instant) {
        if let Some(exchanging) = self.all.get_mut(&stream) {
            exchanging.step = step;
            exchanging.due = at;
            self.due.insert((at, stream));
        }
    }

    /// Waits for the end of a stream's calls.
    pub(super) async fn next_called(&mut self) -> Called {
        loop {
            match self.calls.join_next().await {
                Some(Ok(called)) => return called,
                // those of a stream that is gone
                Some(Err(_)) => {}
                None => std::future::pending().await,
            }
        }
    }

    /// A stream's calls are over: its response is due after its pause.
    pub(super) fn take_called(&mut self, (stream, calls, failed): Called) {
        let Some(exchanging) = self.all.get_mut(&stream) else {
            return;
        };
        if failed > 0 {
            exchanging.request.plan.answer = Response::bad_gateway(calls, failed);
        }
        let at = Instant::now() + exchanging.request.plan.pause;
        self.schedule(stream, StreamStep::Answer, at);
    }

    /// Takes a request as complete if its response is due before it ends.
    fn complete_early(&mut self, stream: u32) {
        let due = self.all.get_mut(&stream).is_some_and(|one| {
            let answer = &one.request.plan.answer;
            answer.is_due_after(&one.body, &mut one.read)
        });
        if due {
            self.complete(stream);
        }
    }

    /// Takes an exchange out that ends now.
    fn take(&mut self, stream: u32) -> Option<Option<OpenExchange>> {
        let exchanging = self.all.remove(&stream)?;
        // a step of a stream that was reset must not wait there for its time
        self.due.remove(&(exchanging.due, stream));
        self.held -= exchanging.held;
        if let Some(calls) = exchanging.calls {
            calls.abort();
        }
        self.idle_since = Instant::now();
        Some(exchanging.request.pending)
    }

    /// Ends an exchange that was answered.
    pub(super) fn end(&mut self, stream: u32) {
        if let Some(Some(pending)) = self.take(stream) {
            pending.end(Outcome::Ok);
        }
    }
}

impl Listener for Exchanges<'_> {
    fn request(&mut self, stream: u32, head: RequestHead, bytes: u64) -> bool {
        let (state, record) = (self.state, self.record);
        let (peer, at) = (self.peer, record.now());
        let mut request = StreamRequest::begin(state, record, peer, Protocol::Http2, &head, at);
        if let Some(exchange) = &mut request.pending {
            exchange.stream = Some(u64::from(stream));
            exchange.bytes.request_head = bytes;
            exchange.grpc = head.is_grpc.then(GrpcCall::default);
        }
        self.last |= request.is_last;
        let exchanging = StreamExchange {
            request,
            step: StreamStep::Wait,
            after: After::End,
            due: Instant::now(),
            body: Vec::new(),
            calls: None,
            held: 0,
            read: 0,
            is_complete: false,
        };
        self.all.insert(stream, exchanging);
        if head.is_grpc {
            self.complete_early(stream);
        }
        !self.last
    }

    fn body(&mut self, stream: u32, piece: &[u8]) {
        let Some(exchanging) = self.all.get_mut(&stream) else {
            return;
        };
        if let Some(pending) = &mut exchanging.request.pending {
            pending.bytes.request_body += piece.len() as u64;
        }
        if !exchanging.request.plan.answer.body.takes_request() {
            return;
        }
        let length = exchanging.held + piece.len();
        if length > LARGEST_ECHO || self.held + piece.len() > LARGEST_ECHOES {
            exchanging.body = Vec::new();
            self.held -= std::mem::take(&mut exchanging.held);
            let words =
                format!("/echo takes up to {LARGEST_ECHO} bytes, {LARGEST_ECHOES} at once\n");
            exchanging.request.plan.answer = Response::ours(413, "text/plain", words);
        } else {
            exchanging.body.extend_from_slice(piece);
            exchanging.held = length;
            self.held += piece.len();
            self.complete_early(stream);
        }
    }

    fn complete(&mut self, stream: u32) {
        let Some(exchanging) = self.all.get_mut(&stream) else {
            return;
        };
        if std::mem::replace(&mut exchanging.is_complete, true) {
            return;
        }
        if let Some(pending) = &mut exchanging.request.pending {
            pending.received();
        }
        let body = std::mem::take(&mut exchanging.body);
        exchanging.request.plan.answer.take_request(body);
        let Some(upstream) = self.state.upstream(&exchanging.request.plan) else {
            return self.take_called((stream, 0, 0));
        };
        let (upstream, depth) = (upstream.clone(), exchanging.request.plan.depth);
        exchanging.calls = Some(self.calls.spawn_local(async move {
            let (calls, failed) = upstream.call(depth).await;
            (stream, calls, failed)
        }));
    }

    fn gone(&mut self, stream: u32, by: Side) {
        if let Some(Some(pending)) = self.take(stream) {
            pending.end(Outcome::Failed(match by {
                Side::Client => Failure::ClientClosed,
                Side::Server => Failure::StreamReset,
            }));
        }
    }

    fn sent(&mut self, stream: u32) {
        if let Some(exchanging) = self.all.get(&stream) {
            self.followed.push((stream, exchanging.after));
        }
    }

    fn goodbye(&mut self) {
        self.record.announced_by.set(Some(Side::Client));
    }
}
