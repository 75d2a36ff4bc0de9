//! The exchanges of one connection: what the observers tell, as ledger rows with phases and outcomes.

use super::application::ledger_side;
use super::request_inference::InferredExchange;
use super::run_context::RunContext;
use intact_ledger::agent::product;
use intact_ledger::{
    Body, Certainty, CloseKind, Connection, Event, Exchange, ExchangeBytes, Failure,
    KeepAliveTerms, Method, Nanos, Outcome, Protocol, Reuse, Scheme, Side, Span, Target,
};
use intact_wire::exchange as seen;
use intact_wire::h2::ErrorCode;
use intact_wire::http1::Version;
use std::sync::Arc;

/// Streams that begin this soon after the first waited for the same setup.
const TOGETHER: u64 = 5_000_000;
/// The method that asks a proxy for a tunnel.
const CONNECT: &[u8] = b"CONNECT";
/// Bytes of a request's body that go into its fingerprint; its length always does.
const FINGERPRINTED: usize = 16 * 1024;

/// The exchanges of one connection.
#[derive(Default)]
pub(super) struct Exchanges {
    open: Vec<Open>,
    /// How many were seen.
    pub(super) count: u64,
    /// When the last one was over.
    pub(super) last_end: Option<Nanos>,
    /// Who announced the end of the connection.
    pub(super) announced_by: Option<Side>,
    /// A request was sent after the server had gone, or died with it.
    pub(super) stale: bool,
    first_request: Option<u64>,
    /// When the first answer came.
    first_answer: Option<u64>,
    /// A CONNECT that was granted just now: where the tunnel leads, and since when.
    tunnel: Option<(Vec<u8>, u64)>,
}

/// A request whose exchange is not over.
struct Open {
    stream: Option<u32>,
    started_at: u64,
    id: u64,
    ordinal: u32,
    body: Vec<u8>,
}

/// How the connection began to end, if it did.
pub(super) type FirstEnd = Option<(Side, CloseKind)>;

impl Exchanges {
    /// Whether one is under way.
    pub(super) fn is_busy(&self) -> bool {
        !self.open.is_empty()
    }

    /// Takes what an observer tells. `tell` is called before the first row, once the connection's origin is known.
    pub(super) fn take(
        &mut self,
        event: seen::Event<'_>,
        end: FirstEnd,
        about: &mut Connection,
        told: &mut bool,
        books: &mut RunContext<'_>,
    ) {
        match event {
            seen::Event::Opened(exchange) => {
                let Some(request) = &exchange.request else {
                    return;
                };
                self.count += 1;
                // if it is granted, it is setup and no exchange
                let asks_for_tunnel = request.method == CONNECT && exchange.stream.is_none();
                if !asks_for_tunnel {
                    self.first_request.get_or_insert(request.started_at);
                }
                self.stale |= end.is_some_and(|(by, _)| by == Side::Server);
                self.open.push(Open {
                    stream: exchange.stream,
                    started_at: request.started_at,
                    id: books.number(),
                    ordinal: self.count as u32,
                    body: Vec::new(),
                });
                if self.count == 1 && !asks_for_tunnel {
                    learn(about, exchange.stream.is_some(), request);
                    let agent = request.agent.as_deref().unwrap_or_default();
                    about.agent = std::str::from_utf8(agent).ok().and_then(product);
                    tell(about, told, books);
                }
            }
            seen::Event::Body {
                from: intact_wire::Side::Client,
                stream,
                bytes,
            } => {
                let of = self
                    .open
                    .iter_mut()
                    .rev()
                    .find(|open| open.stream == stream);
                if let Some(open) = of {
                    let room = FINGERPRINTED.saturating_sub(open.body.len());
                    open.body.extend_from_slice(&bytes[..bytes.len().min(room)]);
                }
            }
            seen::Event::Body { .. } => {}
            seen::Event::Done(exchange, outcome) => {
                self.done(exchange, outcome, end, about, told, books);
            }
        }
    }

    fn done(
        &mut self,
        exchange: &seen::Exchange,
        outcome: seen::Outcome,
        end: FirstEnd,
        about: &mut Connection,
        told: &mut bool,
        books: &mut RunContext<'_>,
    ) {
        if let Some(response) = &exchange.response {
            self.first_answer.get_or_insert(response.started_at);
        }
        // who asks for the end comes before who grants it
        let asked = exchange
            .request
            .as_ref()
            .is_some_and(|request| request.close);
        let granted = exchange
            .response
            .as_ref()
            .is_some_and(|response| response.close);
        if asked || granted {
            let by = if asked { Side::Client } else { Side::Server };
            self.announced_by.get_or_insert(by);
        }
        let Some(request) = &exchange.request else {
            // an answer that nobody asked for is no exchange
            return;
        };
        let place = self.open.iter().position(|open| {
            open.stream == exchange.stream && open.started_at == request.started_at
        });
        let Some(open) = place.map(|place| self.open.remove(place)) else {
            return;
        };
        if request.method == CONNECT && exchange.stream.is_none() {
            let response = exchange.response.as_ref();
            if let Some(granted) = response.filter(|response| response.status / 100 == 2) {
                self.count -= 1;
                self.tunnel = Some((request.target.clone(), granted.head_at));
                return;
            }
            learn(about, false, request);
        }
        let mut row = Exchange::new(open.id, Nanos(request.started_at));
        row.variant = about.variant;
        row.round = about.round;
        row.connection = Some(about.id);
        row.ordinal = Some(open.ordinal);
        row.stream = exchange.stream.map(u64::from);
        self.place(
            &mut row,
            about,
            open.started_at,
            open.ordinal,
            open.stream.is_some(),
        );
        describe(&mut row, request, exchange.response.as_ref());
        row.fingerprint = Some(books.fingerprints.of(
            &String::from_utf8_lossy(&request.method),
            &String::from_utf8_lossy(&request.target),
            &[&open.body[..], &request.body_len.to_be_bytes()].concat(),
        ));
        if !row.terms.is_empty() {
            about.terms = row.terms;
        }
        row.outcome = judge(outcome, open.ordinal, end);
        if row.outcome == Outcome::Failed(Failure::Stale) {
            self.stale = true;
        }
        if outcome == seen::Outcome::Unseen {
            row.certainty = Certainty::Inferred("a part of it was not HTTP".into());
        }
        self.last_end = Some(row.end);
        tell(about, told, books);
        books.record(Event::Exchange(&row));
    }

    /// The tunnel that a proxy has granted, if it just has: the connection's setup goes on to there, and what follows is
    /// between the program and that.
    pub(super) fn enter_tunnel(&mut self, about: &mut Connection) -> bool {
        let Some((target, since)) = self.tunnel.take() else {
            return false;
        };
        about.protocol = None;
        if let Some(connect) = &mut about.setup.connect {
            connect.end = connect.end.max(Nanos(since));
        }
        if let Some(origin) = &mut about.origin
            && let Some((host, port)) = split_authority(&target)
        {
            origin.host = host;
            origin.port = port.unwrap_or(origin.port);
        }
        true
    }

    /// Takes a turn of talk that could not be read for an exchange.
    pub(super) fn guess(
        &mut self,
        turn: &InferredExchange,
        reason: &str,
        end: FirstEnd,
        about: &mut Connection,
        told: &mut bool,
        books: &mut RunContext<'_>,
    ) {
        self.count += 1;
        self.first_request.get_or_insert(turn.started);
        let ordinal = self.count as u32;
        let mut row = Exchange::new(books.number(), Nanos(turn.started));
        row.variant = about.variant;
        row.round = about.round;
        row.connection = Some(about.id);
        row.ordinal = Some(ordinal);
        self.place(&mut row, about, turn.started, ordinal, false);
        row.end = Nanos(turn.last);
        row.spans.send = Some(Span::new(Nanos(turn.started), Nanos(turn.sent)));
        if let Some(answered) = turn.answered {
            row.spans.wait = Some(Span::new(Nanos(turn.sent), Nanos(answered)));
            row.spans.receive = Some(Span::new(Nanos(answered), Nanos(turn.last)));
        }
        row.bytes = ExchangeBytes {
            request_body: turn.up,
            body: turn.down,
            ..ExchangeBytes::default()
        };
        row.outcome = match turn.answered {
            Some(_) => Outcome::Ok,
            None => judge(seen::Outcome::Unanswered, ordinal, end),
        };
        self.stale |= row.outcome == Outcome::Failed(Failure::Stale);
        row.certainty = Certainty::Inferred(format!("{reason}: requests are turns of talk").into());
        self.last_end = Some(row.end);
        tell(about, told, books);
        books.record(Event::Exchange(&row));
    }

    /// When it was wanted, and what of the setup it waited for.
    fn place(
        &self,
        row: &mut Exchange,
        about: &Connection,
        started_at: u64,
        ordinal: u32,
        is_stream: bool,
    ) {
        let ready = about.setup.ready();
        let first = self.first_request.unwrap_or(started_at);
        // on a connection that answers before the next stream is opened, that one found it there
        let is_beside = || {
            started_at.saturating_sub(first) <= TOGETHER
                && self.first_answer.is_none_or(|answer| started_at < answer)
        };
        let waited =
            about.setup.is_awaited_at(Nanos(first)) && (ordinal == 1 || is_stream && is_beside());
        if waited {
            row.at = about.at;
            if let Some(ready) = ready
                && Nanos(started_at) > ready
            {
                row.spans.blocked = Some(Span::new(ready, Nanos(started_at)));
            }
        }
        row.spans.wait_for_setup(&about.setup, row.at);
        row.reuse = Reuse::of(waited, Some(ordinal));
    }
}

/// Records the connection, once.
pub(super) fn tell(about: &Connection, told: &mut bool, books: &mut RunContext<'_>) {
    if !std::mem::replace(told, true) {
        books.record(Event::Opened(about));
    }
}

/// What the first request tells of the connection.
fn learn(about: &mut Connection, http2: bool, request: &seen::Request) {
    about.protocol = Some(match request.version {
        _ if http2 => Protocol::Http2,
        Some(Version::Http10) => Protocol::Http10,
        _ => Protocol::Http11,
    });
    let secure = about.tls.is_some();
    let scheme = if secure { Scheme::Https } else { Scheme::Http };
    let Some(origin) = &mut about.origin else {
        return;
    };
    origin.scheme = scheme;
    // a proxy is told the whole URL
    let target = String::from_utf8_lossy(&request.target);
    let named = target
        .strip_prefix("http://")
        .map(|rest| rest.split('/').next().unwrap_or_default().as_bytes());
    let Some(authority) = named.or(request.authority.as_deref()) else {
        return;
    };
    if let Some((host, port)) = split_authority(authority) {
        origin.host = host;
        origin.port = port.or(scheme.default_port()).unwrap_or(origin.port);
    }
}

/// `Host` as host and port; `None` for what is not visible ASCII.
fn split_authority(authority: &[u8]) -> Option<(Arc<str>, Option<u16>)> {
    let text = std::str::from_utf8(authority).ok()?;
    let text = text.rsplit('@').next().unwrap_or(text);
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return None;
    }
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, rest)) => (host, rest.strip_prefix(':')),
        None => match text.rsplit_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let port = match port {
        Some(port) => Some(port.parse().ok()?),
        None => None,
    };
    Some((host.to_ascii_lowercase().into(), port))
}

/// What was sent and answered, with its phases.
fn describe(row: &mut Exchange, request: &seen::Request, response: Option<&seen::Response>) {
    row.method = Some(Method::new(&String::from_utf8_lossy(&request.method)));
    row.target = Some(Target::new(&String::from_utf8_lossy(&request.target)));
    let sent = Nanos(request.ended_at.unwrap_or(request.head_at));
    row.end = sent;
    row.bytes = ExchangeBytes {
        request_head: request.head_len,
        request_body: request.body_len,
        ..ExchangeBytes::default()
    };
    row.close_sent_by = request.close.then_some(Side::Client);
    let Some(response) = response else {
        row.spans.send = Some(Span::new(Nanos(request.started_at), sent));
        return;
    };
    let answered = Nanos(response.started_at);
    row.spans.send = Some(Span::new(Nanos(request.started_at), sent.min(answered)));
    row.spans.wait = Some(Span::new(sent.min(answered), answered));
    let last = response
        .ended_at
        .or(response.first_body_at)
        .unwrap_or(response.head_at);
    row.end = Nanos(last).max(sent);
    let apart = response
        .first_body_at
        .filter(|body| *body > response.head_at);
    row.spans.headers_to_body = apart.map(|body| Span::new(Nanos(response.head_at), Nanos(body)));
    let rest = apart.map_or(answered, Nanos);
    row.spans.receive = Some(Span::new(rest, Nanos(last)));
    row.status = (response.status != 0).then_some(response.status);
    row.bytes.head = response.head_len;
    row.bytes.body = response.body_len;
    row.body = Body {
        announced: response.announced_len,
        // what the program has read of it cannot be seen
        read: None,
    };
    row.terms = KeepAliveTerms {
        timeout_s: response.keep_alive.timeout_s,
        max: response.keep_alive.max,
        max_streams: None,
    };
    if response.close {
        row.close_sent_by = row.close_sent_by.or(Some(Side::Server));
    }
}

/// The ledger's outcome.
fn judge(outcome: seen::Outcome, ordinal: u32, end: FirstEnd) -> Outcome {
    let by_program = end.is_some_and(|(by, _)| by == Side::Client);
    let reset = end.is_some_and(|(_, how)| how == CloseKind::Rst);
    Outcome::Failed(match outcome {
        seen::Outcome::Complete => return Outcome::Ok,
        seen::Outcome::Unanswered | seen::Outcome::Cut if by_program => Failure::Aborted,
        seen::Outcome::Unanswered if ordinal > 1 => Failure::Stale,
        seen::Outcome::Unanswered if reset => Failure::Reset,
        seen::Outcome::Unanswered => Failure::Closed,
        seen::Outcome::Cut if reset => Failure::Reset,
        seen::Outcome::Cut => Failure::Truncated,
        seen::Outcome::Reset {
            by: intact_wire::Side::Client,
            ..
        } => Failure::Aborted,
        seen::Outcome::Reset { code, .. } if code == ErrorCode::REFUSED_STREAM => Failure::Refusal,
        seen::Outcome::Reset { .. } => Failure::StreamReset,
        seen::Outcome::Refused => Failure::Refusal,
        seen::Outcome::Unseen => Failure::Malformed,
    })
}

/// Who sent the first GOAWAY.
pub(super) fn goaway_by(facts: &intact_wire::h2::Http2Facts) -> Option<Side> {
    facts.go_away.map(|said| ledger_side(said.by))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_authority_is_split_into_host_and_port() {
        let split = |text: &str| {
            split_authority(text.as_bytes()).map(|(host, port)| (host.to_string(), port))
        };
        assert_eq!(split("A.example"), Some(("a.example".to_owned(), None)));
        assert_eq!(split("a:81"), Some(("a".to_owned(), Some(81))));
        assert_eq!(split("[::1]:8080"), Some(("::1".to_owned(), Some(8080))));
        assert_eq!(split("[::1]"), Some(("::1".to_owned(), None)));
        assert_eq!(split("me:pw@a:1"), Some(("a".to_owned(), Some(1))));
        assert_eq!(split("a:port"), None);
        assert_eq!(split("a b"), None);
        assert_eq!(split(""), None);
    }
}
