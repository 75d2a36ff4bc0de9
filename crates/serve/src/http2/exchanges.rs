//! The exchanges of one HTTP/2 connection: what was asked on each stream, what is answered, and when the next step of it is due.

use super::request::RequestHead;
use super::session::Listener;
use crate::answer::{Answer, Body, LARGEST_ECHO};
use crate::config::Close;
use crate::host::{Guest, Host, Plan};
use crate::record::{Pending, Record};
use ledger::{Outcome, Protocol, Side};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::rc::Rc;
use tokio::time::Instant;

/// What is to be done for a stream next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
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
    /// The stream is reset.
    Reset,
    /// The connection ends like this.
    Leave(Close),
}

/// One exchange.
pub(super) struct Exchanging {
    /// Absent for questions about the server itself.
    pub(super) pending: Option<Pending>,
    pub(super) plan: Plan,
    pub(super) head_only: bool,
    pub(super) step: Step,
    pub(super) after: After,
    body: Vec<u8>,
}

/// All of them.
pub(super) struct Exchanges<'a> {
    host: &'a Host,
    record: &'a Rc<Record>,
    guest: Guest,
    pub(super) all: BTreeMap<u32, Exchanging>,
    /// When the next step of which stream is due.
    due: BinaryHeap<Reverse<(Instant, u32)>>,
    /// No stream after those that are open is to be served.
    pub(super) last: bool,
    /// When the last exchange ended.
    pub(super) idle_since: Instant,
    /// What was sent, and what follows it.
    pub(super) followed: Vec<(u32, After)>,
}

impl<'a> Exchanges<'a> {
    pub(super) fn new(host: &'a Host, record: &'a Rc<Record>, guest: Guest) -> Exchanges<'a> {
        Exchanges {
            host,
            record,
            guest,
            all: BTreeMap::new(),
            due: BinaryHeap::new(),
            last: false,
            idle_since: Instant::now(),
            followed: Vec::new(),
        }
    }

    /// Takes a stream whose step is due.
    pub(super) fn next_due(&mut self, now: Instant) -> Option<u32> {
        let &Reverse((at, stream)) = self.due.peek()?;
        (at <= now).then(|| {
            self.due.pop();
            stream
        })
    }

    /// When the next step is due.
    pub(super) fn due_at(&self) -> Option<Instant> {
        self.due.peek().map(|&Reverse((at, _))| at)
    }

    /// Puts a step off.
    pub(super) fn schedule(&mut self, stream: u32, step: Step, at: Instant) {
        if let Some(exchanging) = self.all.get_mut(&stream) {
            exchanging.step = step;
            self.due.push(Reverse((at, stream)));
        }
    }

    /// Ends an exchange that was answered.
    pub(super) fn end(&mut self, stream: u32) {
        if let Some(exchanging) = self.all.remove(&stream) {
            self.idle_since = Instant::now();
            if let Some(pending) = exchanging.pending {
                pending.end(Outcome::Ok);
            }
        }
    }
}

impl Listener for Exchanges<'_> {
    fn request(&mut self, stream: u32, head: RequestHead, bytes: u64) {
        let record = self.record;
        let mut plan = self
            .host
            .plan(&head.path, self.guest, record.exchanges() == 0);
        if head.method == b"CONNECT" {
            plan.answer = Answer::ours(501, "text/plain", "this is no proxy\n".to_owned());
        }
        let mut pending = None;
        if !plan.hidden {
            let at = record.now();
            let mut exchange = record.begin(at, Protocol::Http2, &head.method, &head.path);
            exchange.stream = Some(u64::from(stream));
            exchange.bytes.request_head = bytes;
            exchange.fault = plan.fault;
            self.last |= plan.answer.closes || self.host.is_last(record.exchanges(), self.guest);
            pending = Some(exchange);
        }
        let exchanging = Exchanging {
            pending,
            plan,
            head_only: head.method == b"HEAD",
            step: Step::Wait,
            after: After::End,
            body: Vec::new(),
        };
        self.all.insert(stream, exchanging);
    }

    fn body(&mut self, stream: u32, piece: &[u8]) {
        let Some(exchanging) = self.all.get_mut(&stream) else {
            return;
        };
        if let Some(pending) = &mut exchanging.pending {
            pending.bytes.request_body += piece.len() as u64;
        }
        if exchanging.plan.answer.body != Body::Echo {
            return;
        }
        if exchanging.body.len() + piece.len() > LARGEST_ECHO {
            exchanging.body = Vec::new();
            let words = format!("/echo takes up to {LARGEST_ECHO} bytes\n");
            exchanging.plan.answer = Answer::ours(413, "text/plain", words);
        } else {
            exchanging.body.extend_from_slice(piece);
        }
    }

    fn complete(&mut self, stream: u32) {
        let Some(exchanging) = self.all.get_mut(&stream) else {
            return;
        };
        if let Some(pending) = &mut exchanging.pending {
            pending.received();
        }
        if exchanging.plan.answer.body == Body::Echo {
            exchanging.plan.answer.body = Body::Given(std::mem::take(&mut exchanging.body));
        }
        let at = Instant::now() + exchanging.plan.pause;
        self.schedule(stream, Step::Answer, at);
    }

    fn gone(&mut self, stream: u32) {
        if let Some(exchanging) = self.all.remove(&stream) {
            self.idle_since = Instant::now();
            if let Some(pending) = exchanging.pending {
                pending.end(Outcome::Failed(ledger::Failure::StreamReset));
            }
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
