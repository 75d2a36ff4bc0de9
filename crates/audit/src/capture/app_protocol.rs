//! What is spoken on a connection once it can be read: found out by the first bytes, then overheard by the observer for it.

use super::detect_protocol::{Guess, guess_client, guess_server};
use super::record::Record;
use crate::event_writer::EventWriter;
use intact_ledger::Protocol;
use intact_wire::Side;
use intact_wire::exchange::{
    Event as Overheard, Exchange as Seen, Outcome as SeenOutcome, Request, Response,
};
use intact_wire::{h2, http1};

/// First bytes that are kept while they do not tell the protocol yet, in bytes.
const MAX_HELD: usize = 16 << 10;

/// What is spoken, as far as it is known.
pub(super) enum Speech {
    /// Not known yet; the first bytes are kept with their times.
    Undecided(Vec<(Side, u64, Vec<u8>)>),
    /// With the exchange that ended HTTP/1, until it shows what came of it.
    Http1(Box<http1::Http1Observer>, Option<Box<Seen>>),
    Http2(Box<h2::Http2Observer>),
    /// The one exchange of HTTP/0.9.
    Http09(Box<Seen>),
    /// A protocol that is not read.
    Opaque,
}

impl Speech {
    pub(super) fn read(
        &mut self,
        from: Side,
        bytes: &[u8],
        at: u64,
        late: bool,
        record: &mut Record,
        scope: &mut EventWriter<'_>,
    ) {
        match self {
            Speech::Undecided(held) => {
                held.push((from, at, bytes.to_vec()));
                self.decide(false, late, record, scope);
            }
            Speech::Http1(observer, last) if observer.switched_at().is_some() => {
                let last = last.take();
                self.switch(from, bytes, at, last, record, scope);
            }
            Speech::Http1(observer, last) => {
                observer.read(from, bytes, at, |event| match event {
                    Overheard::Done(exchange, SeenOutcome::Complete) if may_switch(exchange) => {
                        *last = Some(Box::new(exchange.clone()));
                    }
                    other => record.overhear(other, scope),
                });
                if observer.switched_at().is_some() {
                    let last = last.take();
                    self.switch(from, after_switch(bytes), at, last, record, scope);
                } else if let Some(exchange) = last.take() {
                    record.overhear(Overheard::Done(&exchange, SeenOutcome::Complete), scope);
                }
            }
            Speech::Http2(observer) => {
                if let Some(climb) = &mut record.climb {
                    climb.read_h2(from, bytes, at);
                }
                observer.read(from, bytes, at, |event| record.overhear(event, scope));
            }
            Speech::Http09(exchange) if from == Side::Server => {
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
            Speech::Http09(_) | Speech::Opaque => {}
        }
    }

    /// Looks at the first bytes of either side; `last`: there will be no more.
    fn decide(&mut self, last: bool, late: bool, record: &mut Record, scope: &mut EventWriter<'_>) {
        let Speech::Undecided(held) = self else {
            return;
        };
        let first = |side: Side| -> Vec<u8> {
            let of_side = held.iter().filter(|(from, _, _)| *from == side);
            of_side.flat_map(|(_, _, bytes)| bytes).copied().collect()
        };
        let (client, server) = (first(Side::Client), first(Side::Server));
        let mut guess = guess_client(&client);
        if client.is_empty() || (late && matches!(guess, Guess::Other(_) | Guess::More)) {
            guess = guess_server(&server);
        }
        // a joined stream begins anywhere: what is not recognised now may be later
        let total = client.len() + server.len();
        let undecided = matches!(guess, Guess::More)
            || (late && guess == Guess::Other(None))
            || (client.is_empty() && guess == Guess::Other(None));
        if undecided && !last && total < MAX_HELD {
            if late && guess == Guess::Other(None) {
                held.clear();
            }
            return;
        }
        let held = std::mem::take(held);
        *self = match guess {
            Guess::Http1 => {
                let observer = if late {
                    http1::Http1Observer::mid_stream()
                } else {
                    http1::Http1Observer::default()
                };
                record.readable = true;
                Speech::Http1(Box::new(observer), None)
            }
            Guess::Http2 => {
                record.readable = true;
                record.connection.protocol = Some(Protocol::Http2);
                Speech::Http2(Box::default())
            }
            Guess::Http09 => {
                let at = held.first().map_or(0, |(_, at, _)| *at);
                self.begin_09(&client, at, record, scope);
                return self.read_held(held, late, record, scope);
            }
            Guess::Other(protocol) => {
                record.connection.protocol = protocol;
                Speech::Opaque
            }
            Guess::Tls | Guess::More => Speech::Opaque,
        };
        self.read_held(held, late, record, scope);
    }

    fn read_held(
        &mut self,
        held: Vec<(Side, u64, Vec<u8>)>,
        late: bool,
        record: &mut Record,
        scope: &mut EventWriter<'_>,
    ) {
        for (from, at, bytes) in held {
            self.read(from, &bytes, at, late, record, scope);
        }
    }

    fn begin_09(&mut self, line: &[u8], at: u64, record: &mut Record, scope: &mut EventWriter<'_>) {
        let mut words = line
            .split(|byte| byte.is_ascii_whitespace())
            .filter(|word| !word.is_empty());
        let exchange = Seen {
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
        };
        record.readable = true;
        record.connection.protocol = Some(Protocol::Http09);
        record.overhear(Overheard::Opened(&exchange), scope);
        *self = Speech::Http09(Box::new(exchange));
    }

    /// HTTP/1 is over. A tunnel is looked into as if it were a connection of its own, HTTP/2 by Upgrade is followed,
    /// anything else is not read.
    fn switch(
        &mut self,
        from: Side,
        rest: &[u8],
        at: u64,
        last: Option<Box<Seen>>,
        record: &mut Record,
        scope: &mut EventWriter<'_>,
    ) {
        let Some(last) = last else {
            *self = Speech::Opaque;
            return;
        };
        if last
            .request
            .as_ref()
            .is_some_and(|request| request.method == b"CONNECT")
        {
            record.enter_tunnel(&last, scope);
            *self = Speech::Undecided(Vec::new());
            return;
        }
        if rest.is_empty() {
            if let Speech::Http1(_, waiting) = self {
                *waiting = Some(last);
            }
            return;
        }
        let speaks_h2 = match from {
            Side::Client => rest.starts_with(h2::PREFACE),
            Side::Server => is_settings(rest),
        };
        if !speaks_h2 {
            record.overhear(Overheard::Done(&last, SeenOutcome::Complete), scope);
            record.connection.protocol = Some(Protocol::Tunnel);
            *self = Speech::Opaque;
            return;
        }
        let mut observer = h2::Http2Observer::default();
        record.enter_upgrade();
        if let Some(request) = last.request {
            observer.assume_upgraded(request);
        }
        if let Some(climb) = &mut record.climb {
            climb.read_h2(from, rest, at);
        }
        observer.read(from, rest, at, |event| record.overhear(event, scope));
        *self = Speech::Http2(Box::new(observer));
    }

    pub(super) fn lose(
        &mut self,
        from: Side,
        len: u64,
        record: &mut Record,
        scope: &mut EventWriter<'_>,
    ) {
        match self {
            Speech::Http1(observer, _) => {
                observer.lose(from, len, |event| record.overhear(event, scope));
            }
            Speech::Http2(observer) => observer.lose(from),
            Speech::Undecided(held) => held.clear(),
            Speech::Http09(_) | Speech::Opaque => {}
        }
    }

    pub(super) fn end(
        &mut self,
        closed: bool,
        at: u64,
        late: bool,
        record: &mut Record,
        scope: &mut EventWriter<'_>,
    ) {
        self.decide(true, late, record, scope);
        // what the capture does not hold did not fail
        let honest = |outcome| match outcome {
            SeenOutcome::Unanswered | SeenOutcome::Cut if !closed => SeenOutcome::Unseen,
            other => other,
        };
        let mut tell = |event: Overheard<'_>| match event {
            Overheard::Done(exchange, outcome) => {
                record.overhear(Overheard::Done(exchange, honest(outcome)), scope);
            }
            other => record.overhear(other, scope),
        };
        match self {
            Speech::Http1(observer, last) => {
                if let Some(exchange) = last.take() {
                    tell(Overheard::Done(&exchange, SeenOutcome::Complete));
                }
                observer.end(Side::Client, at, &mut tell);
                observer.end(Side::Server, at, &mut tell);
            }
            Speech::Http2(observer) => {
                observer.end(Side::Client, &mut tell);
                observer.end(Side::Server, &mut tell);
            }
            Speech::Http09(exchange) => {
                let outcome = if exchange.response.is_some() && closed {
                    SeenOutcome::Complete
                } else {
                    honest(SeenOutcome::Unanswered)
                };
                tell(Overheard::Done(exchange, outcome));
            }
            Speech::Undecided(_) | Speech::Opaque => {}
        }
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

/// What follows the head of the answer that switched protocols.
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
