//! A request of a NetLog and its exchange. Times in nanoseconds since 1970.

use super::constants::Constants;
use super::event::Params;
use super::socket::Socket;
use crate::event_writer::EventWriter;
use crate::fields;
use intact_ledger::{
    Connection, ConnectionId, DialFailure, Event, Exchange, Failure, KeepAliveTerms, Method, Nanos,
    Origin, Outcome, Protocol, Reuse, SetupPhase, Side, Span, Target,
};
use intact_observe::server_product;
use intact_observe::user_agent::product;
use std::sync::Arc;

/// The facts about a request so far. A redirect, a retry or an authentication starts another
/// request.
#[derive(Default)]
pub(super) struct Request {
    pub(super) origin: Option<Origin>,
    full_target: Box<str>,
    method: Option<Method>,
    /// The job that finds its connection.
    pub(super) job: Option<u64>,
    /// The socket or session of the request, and the request's position on it.
    pub(super) carrier: Option<(u64, u32)>,
    /// When the request asked for a connection.
    pub(super) wanted: Option<u64>,
    send: (Option<u64>, Option<u64>),
    head_sent: Option<u64>,
    first_byte: Option<u64>,
    last_byte: Option<u64>,
    status: Option<u16>,
    pub(super) terms: KeepAliveTerms,
    pub(super) close_sent_by: Option<Side>,
    /// It waits for a part of the response's body.
    pub(super) is_reading: bool,
    /// Bytes of the response's body, if the log has them.
    body: u64,
    failed: Option<Failure>,
    pub(super) agent: Option<Arc<str>>,
    /// `Server` of the response.
    pub(super) server: Option<Arc<str>>,
}

impl Request {
    /// Sets the URL, for the first time or again.
    pub(super) fn aim(&mut self, params: &Params) {
        if let Some((origin, path)) = params.url.text().and_then(|url| fields::split(&url)) {
            self.origin = Some(origin);
            self.full_target = path.into();
        }
        if let Some(method) = params.method.text() {
            self.method = Some(Method::new(&method));
        }
    }

    /// A new attempt at the same URL.
    pub(super) fn again(&self) -> Request {
        Request {
            origin: self.origin.clone(),
            full_target: self.full_target.clone(),
            method: self.method.clone(),
            ..Request::default()
        }
    }

    /// Whether the request was sent, or failed before.
    pub(super) fn has_begun(&self) -> bool {
        self.head_sent.is_some() || self.failed.is_some()
    }

    pub(super) fn send_begins(&mut self, at: u64) {
        self.send.0.get_or_insert(at);
    }

    pub(super) fn send_ends(&mut self, at: u64) {
        self.send.1 = Some(at);
    }

    /// Records that its header section was sent.
    pub(super) fn head_out(&mut self, params: &Params, at: u64) {
        self.head_sent.get_or_insert(at);
        for (name, value) in head_fields(params) {
            if name.eq_ignore_ascii_case("connection") && fields::closes(value) {
                self.close_sent_by = Some(Side::Client);
            } else if name.eq_ignore_ascii_case("user-agent") {
                self.agent = product(value);
            }
        }
    }

    /// Records a header section of the response. An interim response is followed by another one.
    pub(super) fn head_in(&mut self, params: &Params, at: u64) {
        self.first_byte.get_or_insert(at);
        let line = params.headers.first().map_or("", String::as_str);
        let number = line.split(' ').nth(1).and_then(|word| word.parse().ok());
        let status = number.and_then(fields::status);
        self.status = status.or(self.status);
        let (mut server, mut via) = (None, None);
        for (name, value) in head_fields(params) {
            if name.eq_ignore_ascii_case("server") {
                server = Some(value);
            } else if name.eq_ignore_ascii_case("via") {
                via = Some(value);
            } else if name.eq_ignore_ascii_case("keep-alive") {
                fields::add_terms(&mut self.terms, value);
            } else if name.eq_ignore_ascii_case("connection") && fields::closes(value) {
                self.close_sent_by.get_or_insert(Side::Server);
            }
        }
        self.server = server_product(server, via).or(self.server.take());
        self.last_byte = Some(at);
    }

    /// Records that a part of the body was read.
    pub(super) fn body_in(&mut self, params: &Params, at: u64) {
        self.last_byte = Some(at);
        self.is_reading = false;
        self.body += params.byte_count.count().unwrap_or(0);
    }

    /// Records that it ended with an error.
    pub(super) fn fail(&mut self, params: &Params, constants: &Constants) {
        let Some(name) = constants.error(params) else {
            return;
        };
        let unknown = self.status.is_none().then_some(Failure::ClientClosed);
        self.failed = fields::failure(name).or(unknown).or(self.failed);
    }

    /// Records that the client gave it up, if it was sent and waited for a part of the response. A
    /// response that was read is cancelled, too, where the page does not ask for its end.
    pub(super) fn cancel(&mut self) {
        let waits = self.status.is_none() || self.is_reading;
        if waits && self.head_sent.is_some() {
            self.failed.get_or_insert(Failure::ClientClosed);
        }
    }

    /// The exchange. `now` is the time at which its end is known.
    pub(super) fn exchange(
        &self,
        carrier: Option<(ConnectionId, &Socket)>,
        now: u64,
        writer: &mut EventWriter<'_>,
    ) -> Exchange {
        let wanted = self.wanted.or(self.head_sent).unwrap_or(now);
        let mut one = Exchange::new(writer.next_exchange(), writer.nanos(wanted));
        let end = match self.failed {
            Some(_) => now,
            None => self.last_byte.unwrap_or(now),
        };
        one.end = writer.nanos(end.max(wanted));
        if let Some((id, socket)) = carrier {
            let nth = self.carrier.map_or(1, |(_, nth)| nth);
            one.connection = Some(id);
            one.ordinal = socket.ordinal(nth);
            let waited = socket.is_awaited(wanted, nth);
            one.reuse = socket.reuse(waited, nth);
            if waited {
                one.spans.wait_for_setup(&socket.setup(writer), one.at);
            }
        }
        self.fill_spans(&mut one, carrier.map(|(_, socket)| socket), writer);
        one.method = self.method.clone();
        one.target = Some(Target::new(&self.full_target));
        one.fingerprint = self
            .method
            .as_ref()
            .filter(|method| matches!(method.as_str(), "GET" | "HEAD"))
            .map(|method| writer.run.key.of(method.as_str(), &self.full_target, b""));
        one.status = self.status;
        one.terms = self.terms;
        one.close_sent_by = self.close_sent_by;
        one.bytes.body = self.body;
        one.outcome = match (self.failed, self.status) {
            (Some(kind), _) => Outcome::Failed(kind),
            (None, Some(_)) => Outcome::Ok,
            // it was sent again on another connection
            (None, None) => Outcome::Failed(Failure::Closed),
        };
        if !one.outcome.is_ok()
            && let Some((_, socket)) = carrier
        {
            let announced_at = socket.shutdown_before(now);
            one.close_announced_at = announced_at.map(|at| writer.nanos(at));
        }
        one
    }

    /// Records the failed dial that left the request without a connection, which it waited for.
    pub(super) fn record_dial(&self, exchange: &mut Exchange, writer: &mut EventWriter<'_>) {
        let Some(kind) = self.failed else { return };
        let phase = match kind {
            Failure::Lookup => SetupPhase::Dns,
            Failure::Refused | Failure::ConnectTimeout | Failure::Unreachable => {
                SetupPhase::Connect
            }
            _ => return,
        };
        let mut dial = Connection::new(writer.next_connection(), exchange.at);
        dial.origin = self.origin.clone();
        dial.failed = Some(DialFailure::new(phase, kind));
        writer.record(Event::Opened(&dial));
        exchange.connection = Some(dial.id);
        exchange.reuse = Some(Reuse::Fresh);
    }

    fn fill_spans(&self, one: &mut Exchange, socket: Option<&Socket>, writer: &EventWriter<'_>) {
        let is_h1 = socket.is_some_and(|socket| socket.protocol != Some(Protocol::Http2));
        let (Some(begin), Some(head)) = (self.send.0, self.head_sent) else {
            return;
        };
        // in HTTP/2 the step ends with the response
        let sent = match (self.send.1, self.first_byte) {
            (Some(sent), Some(first)) if is_h1 && sent <= first => sent,
            _ => head,
        };
        let within = |wall: u64, from: Nanos| writer.nanos(wall).max(from).min(one.end);
        let ready = [one.spans.dns, one.spans.connect, one.spans.ssl];
        let ready = ready.iter().flatten().map(|span| span.end).max();
        let mut at = ready.unwrap_or(one.at).max(one.at).min(one.end);
        let begin = within(begin, at);
        if begin > at {
            one.spans.blocked = Some(Span::new(at, begin));
        }
        at = begin;
        let sent = within(sent, at);
        one.spans.send = Some(Span::new(at, sent));
        let Some(first) = self.first_byte else { return };
        let first = within(first, sent);
        one.spans.wait = Some(Span::new(sent, first));
        one.spans.receive = Some(Span::new(first, one.end));
        let (from, to) = (one.at, one.end);
        one.spans.keep_within(from, to);
    }
}

fn head_fields(params: &Params) -> impl Iterator<Item = (&str, &str)> {
    params.headers.iter().filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        Some((name, value.trim()))
    })
}
