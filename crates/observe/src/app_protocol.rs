//! The protocol of a connection with readable bytes: detected by the first bytes, then read by its
//! observer.

use crate::Side;
use crate::detect_protocol::{
    DetectedProtocol, detect_client, detect_cut_client, detect_server, is_tls_record,
};
use crate::progress::ResponsePart;
use crate::rows::{Rows, asks_for_tunnel, is_granted};
use crate::run_context::RunContext;
use intact_ledger::{Nanos, Protocol};
use intact_wire::exchange::{
    Event as Observed, Exchange as Seen, Outcome as SeenOutcome, Request, Response,
};
use intact_wire::{h2, http1};

/// Limit of the first bytes that are kept while they do not show the protocol.
const MAX_HELD: usize = 16 << 10;

/// Bytes that are kept until the protocol is known.
pub(crate) struct HeldBytes {
    pub(crate) from: Side,
    pub(crate) at: u64,
    pub(crate) bytes: Vec<u8>,
}

impl HeldBytes {
    fn new(from: Side, bytes: &[u8], at: u64) -> HeldBytes {
        HeldBytes {
            from,
            at,
            bytes: bytes.to_vec(),
        }
    }
}

/// The protocol of a connection, unencrypted or within TLS.
pub(crate) struct AppProtocol {
    state: State,
    /// The first bytes were not observed.
    is_late: bool,
    /// It is within TLS. Nested TLS is not read.
    is_in_tls: bool,
}

enum State {
    /// Not known yet.
    Undecided(Vec<HeldBytes>),
    Http1(Box<http1::Http1Observer>),
    Http2(Box<h2::Http2Observer>),
    /// HTTP/1 ended with a 101, and the bytes after it do not show yet whether HTTP/2 follows.
    Switched(Box<Seen>, Vec<HeldBytes>),
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

    /// Reads the next bytes of one side. If they are TLS, it returns all bytes that it has read.
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
                held.push(HeldBytes::new(from, bytes, at));
                return self.decide(false, rows, run);
            }
            State::Switched(_, held) => {
                held.push(HeldBytes::new(from, bytes, at));
                self.follow_switch(false, rows, run);
            }
            State::Http1(observer) => {
                // the exchange that may end HTTP/1
                let mut last = None;
                let rest = observer.read(from, bytes, at, |event| match event {
                    Observed::Done(exchange, SeenOutcome::Complete) if may_switch(exchange) => {
                        last = Some(Box::new(exchange.clone()));
                    }
                    other => rows.take(other, at, run),
                });
                if observer.has_left_out_requests() && !rows.is_broken_off {
                    rows.break_off(from);
                }
                let is_over = observer.outstanding() == 0;
                if from == Side::Server && is_over && observer.error(from).is_some() {
                    rows.note_excess();
                }
                if observer.switched_at().is_some() {
                    self.switch(from, rest, at, last, rows, run);
                } else if let Some(exchange) = last {
                    rows.take(Observed::Done(&exchange, SeenOutcome::Complete), at, run);
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

    /// Examines the first bytes of both sides. `is_last`: no more bytes follow.
    fn decide(
        &mut self,
        is_last: bool,
        rows: &mut Rows,
        run: &mut dyn RunContext,
    ) -> Option<Vec<HeldBytes>> {
        let State::Undecided(held) = &mut self.state else {
            return None;
        };
        let [client, server] = [Side::Client, Side::Server].map(|side| first_bytes(held, side));
        let is_late = self.is_late;
        let detected = detect(&client, &server, is_late, self.is_in_tls);
        let is_unknown = detected == DetectedProtocol::Other(None);
        // a stream that is joined late starts anywhere: later bytes may be recognised
        let is_open =
            detected == DetectedProtocol::More || (is_unknown && (is_late || client.is_empty()));
        if is_open && !is_last && client.len() + server.len() < MAX_HELD {
            if is_late && is_unknown {
                // the last piece may be the start of a message
                let last = held.pop().filter(|_| !held.is_empty());
                held.clear();
                held.extend(last);
                return match held[..] {
                    [] => None,
                    _ => self.decide(is_last, rows, run),
                };
            }
            return None;
        }
        // the rest of the line may be what is missing
        let is_request = detected == DetectedProtocol::More && http1::begins_request(&client);
        let detected = if is_request {
            DetectedProtocol::Http1
        } else {
            detected
        };
        let held = std::mem::take(held);
        if detected == DetectedProtocol::Tls && !self.is_in_tls {
            return Some(held);
        }
        self.begin(detected, held, rows, run);
        None
    }

    /// Examines first bytes before a gap: a part of a request line can be enough.
    fn decide_cut(&mut self, rows: &mut Rows, run: &mut dyn RunContext) {
        let State::Undecided(held) = &mut self.state else {
            return;
        };
        let client = first_bytes(held, Side::Client);
        if !detect_cut_client(&client) {
            return;
        }
        let held = std::mem::take(held);
        self.begin(DetectedProtocol::Http1, held, rows, run);
    }

    /// Starts to read the protocol of a client whose first bytes these are.
    fn begin(
        &mut self,
        detected: DetectedProtocol,
        held: Vec<HeldBytes>,
        rows: &mut Rows,
        run: &mut dyn RunContext,
    ) {
        let protocol = &mut rows.connection.row.protocol;
        self.state = match detected {
            DetectedProtocol::Http1 if self.is_late => {
                State::Http1(Box::new(http1::Http1Observer::mid_stream()))
            }
            DetectedProtocol::Http1 => State::Http1(Box::default()),
            DetectedProtocol::Http2 => {
                *protocol = Some(Protocol::Http2);
                State::Http2(Box::default())
            }
            DetectedProtocol::Http09 => {
                let at = held.first().map_or(0, |piece| piece.at);
                let exchange = request_09(&first_bytes(&held, Side::Client), at);
                *protocol = Some(Protocol::Http09);
                rows.take(Observed::Opened(&exchange), at, run);
                State::Http09(Box::new(exchange))
            }
            DetectedProtocol::Other(other) => {
                *protocol = other;
                State::Opaque
            }
            DetectedProtocol::Tls | DetectedProtocol::More => State::Opaque,
        };
        rows.is_readable |= !matches!(self.state, State::Opaque);
        for piece in held {
            self.read(piece.from, &piece.bytes, piece.at, rows, run);
        }
    }

    /// Ends the HTTP/1 part. A tunnel is read like a new connection, HTTP/2 after Upgrade is read,
    /// and other protocols are not read. `rest`: the bytes that `from` sent afterwards.
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
        if asks_for_tunnel(&last) {
            rows.take(Observed::Done(&last, SeenOutcome::Complete), at, run);
            self.state = State::Undecided(Vec::new());
            self.is_late = false;
        } else {
            self.state = State::Switched(last, Vec::new());
        }
        if !rest.is_empty() {
            self.read(from, rest, at, rows, run);
        }
    }

    /// Examines the first bytes after a 101. `is_last`: no more bytes follow.
    fn follow_switch(&mut self, is_last: bool, rows: &mut Rows, run: &mut dyn RunContext) {
        let State::Switched(last, held) = &mut self.state else {
            return;
        };
        let shown =
            [Side::Client, Side::Server].map(|side| is_http2(side, &first_bytes(held, side)));
        let is_decided = is_last || shown.contains(&Some(false));
        if !shown.contains(&Some(true)) {
            if is_decided {
                rows.take(Observed::Done(last, SeenOutcome::Complete), 0, run);
                rows.connection.row.protocol = Some(Protocol::Tunnel);
                self.state = State::Opaque;
            }
            return;
        }
        let held = std::mem::take(held);
        let mut observer = h2::Http2Observer::default();
        rows.enter_upgrade();
        if let Some(request) = last.request.take() {
            observer.assume_upgraded(request);
        }
        for piece in held {
            read_h2(&mut observer, piece.from, &piece.bytes, piece.at, rows, run);
        }
        self.state = State::Http2(Box::new(observer));
    }

    /// Records that bytes were not observed; the next ones arrived at `at`.
    pub(crate) fn lose(
        &mut self,
        from: Side,
        len: u64,
        at: u64,
        rows: &mut Rows,
        run: &mut dyn RunContext,
    ) {
        self.decide_cut(rows, run);
        match &mut self.state {
            State::Http1(observer) => {
                observer.lose(from, len, at, |event| rows.take(event, at, run));
            }
            State::Http2(observer) => observer.lose(from),
            State::Undecided(held) => {
                held.clear();
                self.is_late |= !self.is_in_tls;
            }
            State::Switched(..) => self.follow_switch(true, rows, run),
            State::Http09(_) | State::Opaque => {}
        }
    }

    /// Records that the server's direction ended, or that no more bytes follow. `is_closed`: the
    /// connection ended, and all of it was observed.
    pub(crate) fn end(
        &mut self,
        at: Nanos,
        is_closed: bool,
        rows: &mut Rows,
        run: &mut dyn RunContext,
    ) {
        self.decide(true, rows, run);
        self.follow_switch(true, rows, run);
        let at = at.0;
        match &mut self.state {
            State::Http1(observer) => {
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
            State::Undecided(_) | State::Switched(..) | State::Opaque => {}
        }
    }

    /// The parts of an incomplete response that have arrived.
    pub(crate) fn response_part(&self) -> Option<ResponsePart> {
        let part = |response: &Response| match response.first_body_at {
            Some(_) => ResponsePart::Body,
            None => ResponsePart::Head,
        };
        match &self.state {
            State::Http1(observer) => observer.responses_under_way().next().map(part),
            State::Http2(observer) => observer.responses_under_way().next().map(part),
            _ => None,
        }
    }

    /// Whether other data than exchanges of HTTP follows: a protocol after an upgrade, or bytes
    /// that are not read.
    pub(crate) fn has_left_http(&self) -> bool {
        !matches!(
            self.state,
            State::Undecided(_) | State::Http1(_) | State::Http2(_)
        )
    }

    /// Whether the client sent a part of a request of HTTP/1 and no whole one; asked where no
    /// request was read.
    pub(crate) fn holds_partial_request(&self) -> bool {
        matches!(self.state, State::Http1(_))
    }

    /// The observer of HTTP/2, if the connection carries it.
    pub(crate) fn http2_observer(&self) -> Option<&h2::Http2Observer> {
        match &self.state {
            State::Http2(observer) => Some(observer),
            _ => None,
        }
    }

    /// The facts of HTTP/2 about the connection.
    pub(crate) fn http2(&self) -> Option<&h2::Http2Facts> {
        self.http2_observer().map(h2::Http2Observer::facts)
    }
}

fn first_bytes(held: &[HeldBytes], side: Side) -> Vec<u8> {
    let of_side = held.iter().filter(|piece| piece.from == side);
    of_side.flat_map(|piece| &piece.bytes).copied().collect()
}

/// The protocol that the first bytes of both sides show.
fn detect(client: &[u8], server: &[u8], is_late: bool, is_in_tls: bool) -> DetectedProtocol {
    if is_late && !is_in_tls && (is_tls_record(client) || is_tls_record(server)) {
        return DetectedProtocol::Tls;
    }
    let detected = detect_client(client);
    let is_decided = !matches!(
        detected,
        DetectedProtocol::Other(_) | DetectedProtocol::More
    );
    if is_decided || !(is_late || client.is_empty()) {
        return detected;
    }
    match detect_server(server) {
        // the head of a request may span packets
        DetectedProtocol::Other(None) if is_late && !client.is_empty() => detected,
        by_server => by_server,
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
    let was_read = observer.lost(from).is_none();
    let streams = observer.outstanding();
    observer.read(from, bytes, at, |event| rows.take(event, at, run));
    let is_lost = observer.lost(from).is_some();
    match from {
        Side::Client if was_read && is_lost => rows.break_off(from),
        // a client that sends the next request reads on; else what is open has failed
        Side::Client
            if observer.lost(Side::Server).is_some() && observer.outstanding() > streams =>
        {
            rows.lose(Side::Server);
        }
        Side::Server if was_read && is_lost => rows.is_broken_off = true,
        _ => {}
    }
    rows.connection.note_settings(observer.facts());
}

/// The request of HTTP/0.9 in a line that arrived at `at`.
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
    let response = exchange.response.as_ref();
    response.is_some_and(|response| response.status == 101)
        || (asks_for_tunnel(exchange) && is_granted(exchange))
}

/// Whether these first bytes are HTTP/2: the client's preface, or the server's SETTINGS on stream
/// 0. `None` if there are too few bytes.
fn is_http2(side: Side, bytes: &[u8]) -> Option<bool> {
    match side {
        Side::Client if h2::PREFACE.starts_with(bytes) && bytes.len() < h2::PREFACE.len() => None,
        Side::Client => Some(bytes.starts_with(h2::PREFACE)),
        Side::Server => {
            let head: &[u8; 9] = bytes.first_chunk()?;
            Some(matches!(head, [0, _, len, 4, 0, 0, 0, 0, 0] if len % 6 == 0))
        }
    }
}
