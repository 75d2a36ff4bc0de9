//! One connection's entry in the ledger while it grows: what was overheard becomes events.

use super::ladder::{Ladder, LadderBuilder};
use crate::event_writer::EventWriter;
use intact_ledger::agent::product;
use intact_ledger::{
    Certainty, Close, CloseKind, ClosePoint, Closed, Connection, ConnectionBytes, Event, Exchange,
    Failure, KeepAliveTerms, Method, Origin, Outcome, Probes, Protocol, Reuse, Scheme, Side, Span,
    Target,
};
use intact_wire::exchange::{Event as Overheard, Exchange as Seen, Outcome as SeenOutcome};
use intact_wire::http1::Version;
use std::collections::HashMap;

/// A close within this time of the last answer belongs to it; later, the connection was idle. Nanoseconds.
pub(super) const SOON: u64 = 200_000_000;
/// Request bodies up to this length go into the fingerprint, in bytes.
const MAX_BODY: usize = 16 << 10;

/// The side as the ledger names it.
pub(super) fn side(side: intact_wire::Side) -> Side {
    match side {
        intact_wire::Side::Client => Side::Client,
        intact_wire::Side::Server => Side::Server,
    }
}

/// How a connection was seen to end.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    pub(super) at: u64,
    /// Unknown where packets of the other side are missing.
    pub(super) by: Option<Side>,
    pub(super) how: CloseKind,
}

/// A connection and what has been told of it.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) connection: Connection,
    /// As it was last reported.
    told: Option<Connection>,
    /// Its start was not seen, so earlier exchanges may have been missed.
    late: bool,
    /// Bytes of the client are missing: how many exchanges came before a later one is not known.
    has_hole: bool,
    /// The client's half is in the capture.
    hears_client: bool,
    /// The client sent something, in the clear or readable within TLS.
    pub(super) client_speaks: bool,
    /// Requests so far.
    begun: u32,
    /// Positions of the HTTP/2 streams under way.
    ordinals: HashMap<u32, u32>,
    /// Exchanges reported.
    done: u64,
    /// Exchanges whose end is not in the capture.
    unseen: u64,
    last_begin: Option<u64>,
    last_end: Option<u64>,
    first_answer: Option<u64>,
    announced_by: Option<Side>,
    /// The body of the request under way, while it is short enough and alone.
    body: Option<Vec<u8>>,
    /// Whether exchanges can be seen at all.
    pub(super) readable: bool,
    pub(super) pings: Option<u32>,
    /// Its packets, where they are wanted.
    pub(super) climb: Option<Box<LadderBuilder>>,
    /// Where a proxy leads the connection.
    tunnel: Option<(String, u16)>,
}

impl Record {
    /// A record of a connection; `late` if its start was not seen.
    pub(super) fn new(connection: Connection, late: bool) -> Record {
        Record {
            connection,
            told: None,
            late,
            has_hole: false,
            hears_client: false,
            client_speaks: false,
            begun: 0,
            ordinals: HashMap::new(),
            done: 0,
            unseen: 0,
            last_begin: None,
            last_end: None,
            first_answer: None,
            announced_by: None,
            body: Some(Vec::new()),
            readable: false,
            pings: None,
            climb: None,
            tunnel: None,
        }
    }

    /// Notes that a packet of the client came. Without data it shows that the client's half is there only where the start was
    /// seen: a request from before the capture may still be answered.
    pub(super) fn hear_client(&mut self, has_data: bool) {
        self.hears_client |= has_data || !self.late;
    }

    /// Notes that bytes of the client are not in the capture.
    pub(super) fn lose_requests(&mut self) {
        self.has_hole = true;
        self.late |= self.begun == 0;
    }

    /// Exchanges whose end is not in the capture.
    pub(super) fn unseen(&self) -> u64 {
        self.unseen
    }

    /// Exchanges that it carried.
    pub(super) fn carried(&self) -> u64 {
        self.done
    }

    /// Its packets, where they were wanted.
    pub(super) fn ladder(&mut self) -> Option<Box<Ladder>> {
        self.climb.take().map(|climb| Box::new(climb.finish()))
    }

    /// Reports the connection, or what is new of it.
    pub(super) fn tell(&mut self, scope: &mut EventWriter<'_>) {
        match &self.told {
            Some(told) if *told == self.connection => {}
            Some(_) => {
                scope.record(Event::Revised(&self.connection));
                self.told = Some(self.connection.clone());
            }
            None => {
                scope.record(Event::Opened(&self.connection));
                self.told = Some(self.connection.clone());
            }
        }
    }

    /// Takes what an observer of HTTP tells.
    pub(super) fn overhear(&mut self, event: Overheard<'_>, scope: &mut EventWriter<'_>) {
        match event {
            Overheard::Opened(exchange) if !exchange.pushed => self.begin(exchange, scope),
            Overheard::Body {
                from: intact_wire::Side::Client,
                bytes,
                ..
            } => {
                if let Some(body) = &mut self.body {
                    if body.len() + bytes.len() <= MAX_BODY {
                        body.extend_from_slice(bytes);
                    } else {
                        self.body = None;
                    }
                }
            }
            Overheard::Done(exchange, outcome) if !exchange.pushed => {
                self.finish(exchange, outcome, scope);
            }
            _ => {}
        }
    }

    fn begin(&mut self, exchange: &Seen, scope: &mut EventWriter<'_>) {
        self.begun += 1;
        self.body = Some(Vec::new());
        if let Some(stream) = exchange.stream {
            self.ordinals.insert(stream, self.begun);
        }
        if let Some(request) = &exchange.request {
            self.last_begin = Some(request.started_at);
            // where a tunnel leads shows once it is granted
            if request.method == b"CONNECT" {
                return;
            }
            self.note_origin(request.authority.as_deref());
            let agent = &mut self.connection.agent;
            if agent.is_none() {
                *agent = text(request.agent.as_deref().unwrap_or_default()).and_then(product);
            }
            if let Some(version) = request.version {
                self.note_protocol(protocol(version));
            }
        }
        self.tell(scope);
    }

    /// The first name wins: a connection leads to one place, whatever later requests ask of it.
    pub(super) fn note_origin(&mut self, name: Option<&[u8]>) {
        if self.connection.origin.is_some() {
            return;
        }
        let Some(peer) = self.connection.peer else {
            return;
        };
        let scheme = if self.connection.tls.is_some() {
            Scheme::Https
        } else {
            Scheme::Http
        };
        let (host, port) = match &self.tunnel {
            Some((host, port)) => (Some(host.clone()), *port),
            None => (None, peer.port()),
        };
        let host = name.and_then(host_of).or(host);
        self.connection.origin = Some(Origin {
            scheme,
            host: host.unwrap_or_else(|| peer.ip().to_string()).into(),
            port,
        });
    }

    fn note_protocol(&mut self, protocol: Protocol) {
        let known = &mut self.connection.protocol;
        if known.is_none() || (*known == Some(Protocol::Http10) && protocol == Protocol::Http11) {
            *known = Some(protocol);
        }
    }

    fn finish(&mut self, seen: &Seen, outcome: SeenOutcome, scope: &mut EventWriter<'_>) {
        if let Some(climb) = &mut self.climb {
            climb.read_exchange(seen);
        }
        // an answer that nobody asked for (a 408 before the server closes) is no exchange, unless the asking is not in the capture
        if seen.request.is_none() && self.hears_client {
            return;
        }
        if seen.request.is_none() {
            self.begun += 1;
            if let Some(version) = seen.response.as_ref().and_then(|response| response.version) {
                self.note_protocol(protocol(version));
            }
            self.note_origin(None);
        }
        self.done += 1;
        let ordinal = match seen.stream {
            Some(stream) => self.ordinals.remove(&stream).unwrap_or(self.begun),
            None => u32::try_from(self.done).unwrap_or(u32::MAX),
        };
        self.connection.terms = self.terms(seen);
        self.tell(scope);
        let mut exchange = self.exchange(seen, ordinal, scope);
        self.judge(&mut exchange, outcome, ordinal);
        if let Some(response) = &seen.response {
            self.first_answer = self.first_answer.or(Some(response.started_at));
        }
        let end = ended_at(seen);
        self.last_end = self.last_end.max(Some(end));
        scope.record(Event::Exchange(&exchange));
    }

    /// The terms of the connection, with what this answer adds.
    fn terms(&self, seen: &Seen) -> KeepAliveTerms {
        let mut terms = self.connection.terms;
        if let Some(response) = &seen.response {
            terms.timeout_s = response.keep_alive.timeout_s.or(terms.timeout_s);
            terms.max = response.keep_alive.max.or(terms.max);
        }
        terms
    }

    fn exchange(&mut self, seen: &Seen, ordinal: u32, scope: &mut EventWriter<'_>) -> Exchange {
        let begins = seen
            .request
            .as_ref()
            .map(|request| request.started_at)
            .or(seen.response.as_ref().map(|response| response.started_at))
            .unwrap_or_default();
        let mut one = Exchange::new(scope.next_exchange(), scope.nanos(begins));
        one.connection = Some(self.connection.id);
        one.stream = seen.stream.map(u64::from);
        one.ordinal = (!self.late && !self.has_hole).then_some(ordinal);
        let setup = self.connection.setup;
        let ready = setup.ready();
        let may_wait = self.may_wait(seen, ordinal, begins);
        let waited = may_wait && !self.late && setup.is_awaited_at(one.at);
        one.reuse = match may_wait && self.late {
            // what came before the capture is unknown
            true => None,
            false => Reuse::of(waited, Some(ordinal)),
        };
        if waited {
            one.at = self.connection.at;
            one.spans.wait_for_setup(&setup, one.at);
        }
        one.end = scope.nanos(ended_at(seen)).max(one.at);
        let nanos = |wall| scope.nanos(wall);
        if let Some(request) = &seen.request {
            let from = match ready {
                Some(ready) if waited => ready,
                _ => nanos(request.started_at),
            };
            one.spans.send = Some(Span::new(
                from,
                nanos(request.ended_at.unwrap_or(request.head_at)),
            ));
            one.method = text(&request.method).map(Method::new);
            one.target = text(&request.target).map(Target::new);
            one.bytes.request_head = request.head_len;
            one.bytes.request_body = request.body_len;
            if request.close {
                one.close_sent_by = Some(Side::Client);
            }
            let body = self
                .body
                .as_deref()
                .filter(|body| body.len() as u64 == request.body_len);
            let body = if request.body_len == 0 {
                Some(&[][..])
            } else {
                body
            };
            if let (Some(method), Some(target), Some(body)) =
                (text(&request.method), text(&request.target), body)
            {
                one.fingerprint = Some(scope.key.of(method, target, body));
            }
        }
        if let Some(response) = &seen.response {
            one.status = Some(response.status).filter(|&status| status != 0);
            let first = nanos(response.started_at);
            if let Some(send) = &mut one.spans.send {
                // the answer may begin before the whole request is there
                send.end = send.end.min(first).max(send.start);
                one.spans.wait = Some(Span::new(send.end, first));
            }
            match response.first_body_at {
                Some(body) if body > response.head_at => {
                    // a head that came in pieces belongs to the wait for it
                    if let Some(wait) = &mut one.spans.wait {
                        wait.end = wait.end.max(nanos(response.head_at));
                    }
                    one.spans.headers_to_body =
                        Some(Span::new(nanos(response.head_at), nanos(body)));
                    one.spans.receive = Some(Span::new(nanos(body), one.end));
                }
                _ => one.spans.receive = Some(Span::new(first, one.end)),
            }
            one.bytes.head = response.head_len;
            one.bytes.body = response.body_len;
            one.body.announced = response.announced_len;
            one.body.read = Some(response.body_len);
            one.terms.timeout_s = response.keep_alive.timeout_s;
            one.terms.max = response.keep_alive.max;
            if response.close {
                one.close_sent_by = one.close_sent_by.or(Some(Side::Server));
            }
        }
        one.spans.keep_within(one.at, one.end);
        self.announced_by = self.announced_by.or(one.close_sent_by);
        one
    }

    /// Whether the client had to wait for the connection, where its opening was seen: the first exchange did, and in HTTP/2 each
    /// stream that began before the first response.
    fn may_wait(&self, seen: &Seen, ordinal: u32, begins: u64) -> bool {
        let with_the_first =
            seen.stream.is_some() && self.first_answer.is_none_or(|answer| begins < answer);
        ordinal == 1 || with_the_first
    }

    fn judge(&mut self, exchange: &mut Exchange, outcome: SeenOutcome, ordinal: u32) {
        let end = self.connection.closed.as_ref();
        let by_client = end.is_some_and(|close| close.by == Some(Side::Client));
        let by_reset = end.is_some_and(|close| close.how == Some(CloseKind::Rst));
        let reused = ordinal > 1 || self.late;
        let failure = match outcome {
            SeenOutcome::Complete => return,
            SeenOutcome::Unseen => {
                self.unseen += 1;
                exchange.certainty = Certainty::Inferred("its end is not in the capture".into());
                return;
            }
            SeenOutcome::Unanswered if by_client => {
                exchange.detail = Some("the client closed before any byte of the answer".into());
                Failure::Timeout
            }
            SeenOutcome::Unanswered if reused => Failure::Stale,
            SeenOutcome::Unanswered => Failure::Closed,
            SeenOutcome::Cut if by_reset => Failure::Reset,
            SeenOutcome::Cut => Failure::Truncated,
            SeenOutcome::Reset {
                by: intact_wire::Side::Client,
                ..
            } => {
                exchange.detail = Some("the client reset the stream".into());
                match exchange.status {
                    Some(_) => Failure::Truncated,
                    None => Failure::Timeout,
                }
            }
            SeenOutcome::Reset { .. } => Failure::StreamReset,
            SeenOutcome::Refused => Failure::Refusal,
        };
        exchange.outcome = Outcome::Failed(failure);
    }

    /// The request that asked for HTTP/2 by Upgrade is answered on stream 1.
    pub(super) fn enter_upgrade(&mut self) {
        self.ordinals.insert(1, self.begun);
        self.connection.protocol = Some(Protocol::Http2);
    }

    /// A CONNECT that a proxy granted is part of the setup; what follows is between the client and its target.
    pub(super) fn enter_tunnel(&mut self, seen: &Seen, scope: &EventWriter<'_>) {
        self.begun = self.begun.saturating_sub(1);
        self.readable = false;
        self.connection.protocol = None;
        if let Some(connect) = &mut self.connection.setup.connect {
            connect.end = scope.nanos(ended_at(seen)).max(connect.end);
        }
        let target = seen
            .request
            .as_ref()
            .map(|request| request.target.as_slice());
        self.tunnel = target.and_then(|target| {
            let port = text(target)?.rsplit_once(':')?.1.parse().ok()?;
            Some((host_of(target)?, port))
        });
    }

    /// Notes that one side said in advance that it will close.
    pub(super) fn announce(&mut self, by: Side) {
        self.announced_by = self.announced_by.or(Some(by));
    }

    /// The end has been seen: what is told from now on knows of it. `Closed` itself is reported by [`Record::close`].
    pub(super) fn note_end(&mut self, end: End, scope: &EventWriter<'_>) {
        self.connection.closed = Some(Close {
            at: scope.nanos(end.at),
            by: end.by,
            how: Some(end.how),
            announced_by: None,
            moment: None,
            exchanges: None,
            bytes: ConnectionBytes::default(),
            probes: Probes::default(),
        });
    }

    /// Reports the end of the connection.
    pub(super) fn close(&mut self, end: End, bytes: ConnectionBytes, scope: &mut EventWriter<'_>) {
        self.connection.closed = None;
        self.tell(scope);
        let closed = Closed {
            connection: self.connection.id,
            variant: None,
            round: None,
            close: Close {
                at: scope.nanos(end.at),
                by: end.by,
                how: Some(end.how),
                announced_by: self.announced_by,
                moment: self.moment(end, &bytes),
                exchanges: self.is_read().then_some(self.done),
                bytes,
                probes: Probes {
                    tcp_keepalive_s: None,
                    pings: self.pings,
                },
            },
        };
        scope.record(Event::Closed(&closed));
    }

    /// Whether all that it carried was read as HTTP. A connection whose client sent bytes and no request was not: they are of
    /// another protocol, or of a request that is not whole. HTTP/2 has bytes of its own.
    pub(super) fn is_read(&self) -> bool {
        let is_h2 = self.connection.protocol == Some(Protocol::Http2);
        let is_quiet = !self.has_hole && (is_h2 || !self.client_speaks);
        self.readable && (self.begun > 0 || is_quiet)
    }

    /// Whether nothing was sent on it: what it carried is known, and is no request.
    fn is_unused(&self, bytes: &ConnectionBytes) -> bool {
        let is_silent = bytes.sent == 0 && bytes.received == 0;
        self.begun == 0 && !self.late && (is_silent || self.is_read())
    }

    fn moment(&self, end: End, bytes: &ConnectionBytes) -> Option<ClosePoint> {
        if self.is_unused(bytes) {
            return Some(ClosePoint::Unused);
        }
        if !self.is_read() {
            return None;
        }
        let last_end = self.last_end?;
        let begun_after = self.last_begin.is_some_and(|begin| begin >= end.at);
        Some(if begun_after && end.by == Some(Side::Server) {
            ClosePoint::Stale
        } else if last_end > end.at {
            ClosePoint::MidExchange
        } else if self.announced_by.is_some() || end.at - last_end <= SOON {
            ClosePoint::AfterExchange
        } else {
            ClosePoint::Idle
        })
    }
}

fn ended_at(seen: &Seen) -> u64 {
    let response = seen.response.as_ref().map(|response| {
        response
            .ended_at
            .unwrap_or(response.first_body_at.unwrap_or(response.head_at))
    });
    let request = seen
        .request
        .as_ref()
        .map(|request| request.ended_at.unwrap_or(request.head_at));
    response.or(request).unwrap_or_default()
}

fn protocol(version: Version) -> Protocol {
    match version {
        Version::Http10 => Protocol::Http10,
        Version::Http11 => Protocol::Http11,
    }
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes)
        .ok()
        .filter(|text| !text.is_empty())
}

/// The name in an authority, if it can be one; the port is the connection's.
pub(crate) fn host_of(authority: &[u8]) -> Option<String> {
    let text = text(authority)?;
    let host = match text.strip_prefix('[') {
        Some(v6) => v6.split(']').next()?,
        None => text.rsplit_once(':').map_or(text, |(host, _)| host),
    };
    let clean = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte);
    let is_name = !host.is_empty() && host.len() <= 253 && host.bytes().all(clean);
    is_name.then(|| host.to_ascii_lowercase())
}
