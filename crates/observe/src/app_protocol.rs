//! The protocol on a connection once its bytes can be read: detected by the first bytes, then read by the observer for it.

use crate::Side;
use crate::detect_protocol::{DetectedProtocol, detect_client, detect_server, is_tls_record};
use crate::rows::Rows;
use crate::run_context::RunContext;
use intact_ledger::{Nanos, Protocol};
use intact_wire::exchange::{
    Event as Observed, Exchange as Seen, Outcome as SeenOutcome, Request, Response,
};
use intact_wire::{h2, http1};

/// First bytes that are kept while they do not show the protocol, in bytes.
const MAX_HELD: usize = 16 << 10;

/// Bytes that are kept until the protocol is known.
pub(crate) struct HeldBytes {
    pub(crate) from: Side,
    pub(crate) at: u64,
    pub(crate) bytes: Vec<u8>,
}

/// The protocol on a connection, in the clear or within TLS.
pub(crate) struct AppProtocol {
    state: State,
    /// The first bytes were not observed.
    is_late: bool,
    /// It is within TLS. TLS within that is not read.
    is_in_tls: bool,
}

enum State {
    /// Not known yet.
    Undecided(Vec<HeldBytes>),
    /// With the exchange that may end HTTP/1, until later bytes show whether it does.
    Http1(Box<http1::Http1Observer>, Option<Box<Seen>>),
    Http2(Box<h2::Http2Observer>),
    /// The one exchange of HTTP/0.9.
    Http09(Box<Seen>),
    /// A protocol that is not read.
    Opaque,
}

impl AppProtocol {
    pub(crate) fn new(is_late: bool, is_in_tls: bool) -> AppProtocol {
        AppProtocol {
            state: State::Undecided(Vec::new()),
            is_late,
            is_in_tls,
        }
    }

    /// Takes the next bytes of one side. Where they turn out to be TLS, it gives back all that it has taken.
    pub(crate) fn read(
        &mut self,
        from: Side,
        bytes: &[u8],
        at: u64,
        rows: &mut Rows,
        run: &mut dyn RunContext,
    ) -> Option<Vec<HeldBytes>> {
        match &mut self.state {
            State::Undecided(held) => {
                held.push(HeldBytes {
                    from,
                    at,
                    bytes: bytes.to_vec(),
                });
                return self.decide(false, rows, run);
            }
            State::Http1(observer, last) if observer.switched_at().is_some() => {
                let last = last.take();
                self.switch(from, bytes, at, last, rows, run);
            }
            State::Http1(observer, last) => {
                observer.read(from, bytes, at, |event| match event {
                    Observed::Done(exchange, SeenOutcome::Complete) if may_switch(exchange) => {
                        *last = Some(Box::new(exchange.clone()));
                    }
                    other => rows.take(other, at, run),
                });
                if observer.switched_at().is_some() {
                    let last = last.take();
                    self.switch(from, after_switch(bytes), at, last, rows, run);
                } else if let Some(exchange) = last.take() {
                    let done = Observed::Done(&exchange, SeenOutcome::Complete);
                    rows.take(done, at, run);
                }
            }
            State::Http2(observer) => read_h2(observer, from, bytes, at, rows, run),
            State::Http09(exchange) if from == Side::Server => {
                let response = exchange.response.get_or_insert_with(|| Response {
                    status: 0,
                    started_at: at,
                    head_at: at,
                    first_body_at: Some(at),
                    close: true,
                    solicited: true,
                    ..Response::default()
                });
                response.body_len += bytes.len() as u64;
                response.ended_at = Some(at);
            }
            State::Http09(_) | State::Opaque => {}
        }
        None
    }

    /// Examines the first bytes of both sides. `is_last`: no more will come.
    fn decide(
        &mut self,
        is_last: bool,
        rows: &mut Rows,
        run: &mut dyn RunContext,
    ) -> Option<Vec<HeldBytes>> {
        let State::Undecided(held) = &mut self.state else {
            return None;
        };
        let first = |side: Side| -> Vec<u8> {
            let of_side = held.iter().filter(|piece| piece.from == side);
            of_side.flat_map(|piece| &piece.bytes).copied().collect()
        };
        let (client, server) = (first(Side::Client), first(Side::Server));
        let is_late = self.is_late;
        let mut detected = detect_client(&client);
        let is_unclear = matches!(
            detected,
            DetectedProtocol::Other(_) | DetectedProtocol::More
        );
        if client.is_empty() || (is_late && is_unclear) {
            detected = detect_server(&server);
        }
        if is_late && !self.is_in_tls && (is_tls_record(&client) || is_tls_record(&server)) {
            detected = DetectedProtocol::Tls;
        }
        let is_unknown = detected == DetectedProtocol::Other(None);
        // a stream that is joined late begins anywhere: later bytes may be recognised
        let is_open =
            detected == DetectedProtocol::More || (is_unknown && (is_late || client.is_empty()));
        if is_open && !is_last && client.len() + server.len() < MAX_HELD {
            if is_late && is_unknown {
                held.clear();
            }
            return None;
        }
        let held = std::mem::take(held);
        self.state = match detected {
            DetectedProtocol::Http1 => {
                let observer = if is_late {
                    http1::Http1Observer::mid_stream()
                } else {
                    http1::Http1Observer::default()
                };
                rows.is_readable = true;
                State::Http1(Box::new(observer), None)
            }
            DetectedProtocol::Http2 => {
                rows.is_readable = true;
                rows.connection.protocol = Some(Protocol::Http2);
                State::Http2(Box::default())
            }
            DetectedProtocol::Http09 => {
                let at = held.first().map_or(0, |piece| piece.at);
                let exchange = request_09(&client, at);
                rows.is_readable = true;
                rows.connection.protocol = Some(Protocol::Http09);
                rows.take(Observed::Opened(&exchange), at, run);
                State::Http09(Box::new(exchange))
            }
            DetectedProtocol::Tls if !self.is_in_tls => return Some(held),
            DetectedProtocol::Other(protocol) => {
                rows.connection.protocol = protocol;
                State::Opaque
            }
            DetectedProtocol::Tls | DetectedProtocol::More => State::Opaque,
        };
        for piece in held {
            self.read(piece.from, &piece.bytes, piece.at, rows, run);
        }
        None
    }

    /// HTTP/1 is over. A tunnel is read as a connection of its own, HTTP/2 by Upgrade is followed, and anything else is not
    /// read.
    fn switch(
        &mut self,
        from: Side,
        rest: &[u8],
        at: u64,
        last: Option<Box<Seen>>,
        rows: &mut Rows,
        run: &mut dyn RunContext,
    ) {
        let Some(last) = last else {
            self.state = State::Opaque;
            return;
        };
        let request = last.request.as_ref();
        let done = Observed::Done(&last, SeenOutcome::Complete);
        if request.is_some_and(|request| request.method == b"CONNECT") {
            rows.take(done, at, run);
            self.state = State::Undecided(Vec::new());
            self.is_late = false;
            if !rest.is_empty() {
                self.read(from, rest, at, rows, run);
            }
            return;
        }
        if rest.is_empty() {
            if let State::Http1(_, waiting) = &mut self.state {
                *waiting = Some(last);
            }
            return;
        }
        let is_h2 = match from {
            Side::Client => rest.starts_with(h2::PREFACE),
            Side::Server => is_settings(rest),
        };
        if !is_h2 {
            rows.take(done, at, run);
            rows.connection.protocol = Some(Protocol::Tunnel);
            self.state = State::Opaque;
            return;
        }
        let mut observer = h2::Http2Observer::default();
        rows.enter_upgrade();
        if let Some(request) = last.request {
            observer.assume_upgraded(request);
        }
        read_h2(&mut observer, from, rest, at, rows, run);
        self.state = State::Http2(Box::new(observer));
    }

    /// Takes note of bytes that were not observed.
    pub(crate) fn lose(&mut self, from: Side, len: u64, rows: &mut Rows, run: &mut dyn RunContext) {
        match &mut self.state {
            State::Http1(observer, _) => {
                // a time is not needed: nothing that is lost ends an exchange
                observer.lose(from, len, |event| rows.take(event, 0, run));
            }
            State::Http2(observer) => observer.lose(from),
            State::Undecided(held) => {
                held.clear();
                self.is_late |= !self.is_in_tls;
            }
            State::Http09(_) | State::Opaque => {}
        }
    }

    /// The server's direction ended, or no more bytes come. `is_closed`: because the connection ended, and all of it was
    /// observed.
    pub(crate) fn end(
        &mut self,
        at: Nanos,
        is_closed: bool,
        rows: &mut Rows,
        run: &mut dyn RunContext,
    ) {
        self.decide(true, rows, run);
        let at = at.0;
        match &mut self.state {
            State::Http1(observer, last) => {
                if let Some(exchange) = last.take() {
                    let done = Observed::Done(&exchange, SeenOutcome::Complete);
                    rows.take(done, at, run);
                    rows.connection.protocol = Some(Protocol::Tunnel);
                }
                observer.end(Side::Server, at, |event| rows.take(event, at, run));
            }
            State::Http2(observer) => {
                observer.end(Side::Server, |event| rows.take(event, at, run));
            }
            State::Http09(exchange) => {
                let outcome = if exchange.response.is_some() && is_closed {
                    SeenOutcome::Complete
                } else {
                    SeenOutcome::Unanswered
                };
                rows.take(Observed::Done(exchange, outcome), at, run);
                self.state = State::Opaque;
            }
            State::Undecided(_) | State::Opaque => {}
        }
    }

    /// What HTTP/2 shows of the connection as a whole.
    pub(crate) fn http2(&self) -> Option<&h2::Http2Facts> {
        match &self.state {
            State::Http2(observer) => Some(observer.facts()),
            _ => None,
        }
    }
}

fn read_h2(
    observer: &mut h2::Http2Observer,
    from: Side,
    bytes: &[u8],
    at: u64,
    rows: &mut Rows,
    run: &mut dyn RunContext,
) {
    run.note_h2(from, bytes, Nanos(at));
    observer.read(from, bytes, at, |event| rows.take(event, at, run));
    rows.note_settings(observer.facts());
}

/// The request of HTTP/0.9 in a line that came at `at`.
fn request_09(line: &[u8], at: u64) -> Seen {
    let mut words = line
        .split(|byte| byte.is_ascii_whitespace())
        .filter(|word| !word.is_empty());
    Seen {
        request: Some(Request {
            method: words.next().unwrap_or_default().to_vec(),
            target: words.next().unwrap_or_default().to_vec(),
            started_at: at,
            head_at: at,
            ended_at: Some(at),
            head_len: line.len() as u64,
            ..Request::default()
        }),
        ..Seen::default()
    }
}

/// Whether HTTP/1 ends with this exchange.
fn may_switch(exchange: &Seen) -> bool {
    let status = exchange
        .response
        .as_ref()
        .map_or(0, |response| response.status);
    let connects = exchange
        .request
        .as_ref()
        .is_some_and(|request| request.method == b"CONNECT");
    status == 101 || (connects && (200..300).contains(&status))
}

/// What follows the header section of the response that switched protocols.
fn after_switch(bytes: &[u8]) -> &[u8] {
    match memchr::memmem::find(bytes, b"\r\n\r\n") {
        Some(end) => &bytes[end + 4..],
        None => &[],
    }
}

/// Whether bytes start with an HTTP/2 SETTINGS frame on stream 0.
fn is_settings(bytes: &[u8]) -> bool {
    matches!(bytes, [0, _, len, 4, 0, 0, 0, 0, 0, ..] if len % 6 == 0)
}
