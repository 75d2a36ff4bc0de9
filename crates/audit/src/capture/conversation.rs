//! One TCP connection of a capture: segments in, its entry in the ledger out.
//!
//! Owns the reassembly, the TLS layer and the observer of what is spoken; decides which of them is needed by the first bytes.

use super::ladder::{Climb, Ladder};
use super::record::{End, Record, side};
use super::speech::{Guess, guess_client, guess_server, is_tls_record};
use super::tls::{Piece, TlsLayer};
use crate::scope::Scope;
use ledger::{
    Connection, ConnectionBytes, ConnectionId, DialFailure, Ending, Failure, Protocol, SetupPhase,
    Span,
};
use std::net::SocketAddr;
use wire::Side;
use wire::exchange::{
    Event as Overheard, Exchange as Seen, Outcome as SeenOutcome, Request, Response,
};
use wire::tcp::{Flow, How, Limits, Run, Segment};
use wire::tls::decrypt::KeyLog;
use wire::{h2, http1};

/// What may wait for a hole to be filled, per direction.
const LIMITS: Limits = Limits {
    bytes: 1 << 20,
    pieces: 1024,
    patience: 200_000_000,
};
/// First bytes that are kept while they do not tell the protocol yet, in bytes.
const MAX_HELD: usize = 16 << 10;
/// A SYN that stayed alone for this long was not answered in time. Nanoseconds.
const UNANSWERED: u64 = 1_000_000_000;

/// One TCP connection.
pub(super) struct Conversation {
    flow: Flow,
    layers: Layers,
    record: Record,
    client: SocketAddr,
    begun_at: u64,
    established_at: Option<u64>,
    seen_at: u64,
}

/// What is above TCP.
struct Layers {
    tls: Option<Box<TlsLayer>>,
    speech: Speech,
    /// The start was not seen.
    late: bool,
    pieces: Vec<Piece>,
}

/// What is spoken, as far as it is known.
enum Speech {
    /// Not known yet; the first bytes are kept with their times.
    Undecided(Vec<(Side, u64, Vec<u8>)>),
    /// With the exchange that ended HTTP/1, until it shows what came of it.
    Http1(Box<http1::Observer>, Option<Box<Seen>>),
    Http2(Box<h2::Observer>),
    /// The one exchange of HTTP/0.9.
    Http09(Box<Seen>),
    /// A protocol that is not read.
    Opaque,
}

/// What became of a conversation.
pub(super) enum Fate {
    /// A connection.
    Connection {
        /// Exchanges whose end is not in the capture.
        unseen: u64,
        /// Why it cannot be seen inside, if it cannot.
        blind: Option<Blind>,
        /// Exchanges that it carried.
        carried: u64,
        /// Its packets, where they were wanted.
        ladder: Option<Box<Ladder>>,
    },
    /// A first SYN, so late in the capture that its answer may come after it.
    TooLate,
}

/// Why nothing is known of what a connection carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blind {
    /// It is encrypted, and there is no key.
    Tls,
    /// Bytes that belong to no protocol that is read.
    Unknown,
}

impl Conversation {
    /// A connection whose first packet came at `at`; `late` if that was not a SYN.
    pub(super) fn new(
        client: SocketAddr,
        server: SocketAddr,
        at: u64,
        late: bool,
        scope: &mut Scope<'_>,
    ) -> Conversation {
        let mut connection = Connection::new(scope.next_connection(), scope.nanos(at));
        connection.local = Some(client);
        connection.peer = Some(server);
        Conversation {
            flow: Flow::new(LIMITS),
            layers: Layers {
                tls: None,
                speech: Speech::Undecided(Vec::new()),
                late,
                pieces: Vec::new(),
            },
            record: Record::new(connection, late),
            client,
            begun_at: at,
            established_at: None,
            seen_at: at,
        }
    }

    /// The side that sends from this address.
    pub(super) fn side_of(&self, source: SocketAddr) -> Side {
        if source == self.client {
            Side::Client
        } else {
            Side::Server
        }
    }

    /// Its number.
    pub(super) fn id(&self) -> ConnectionId {
        self.record.connection.id
    }

    /// When the last packet came, in nanoseconds since 1970.
    pub(super) fn seen_at(&self) -> u64 {
        self.seen_at
    }

    /// Bytes that wait for a hole to be filled.
    pub(super) fn waiting(&self) -> usize {
        self.flow.waiting()
    }

    /// Whether a segment opens another connection between the same addresses.
    pub(super) fn is_reopened_by(&self, from: Side, segment: &Segment<'_>) -> bool {
        self.flow.is_reopened_by(from, segment)
    }

    /// Whether both sides have said their last word.
    pub(super) fn is_over(&self) -> bool {
        let [client, server] =
            [Side::Client, Side::Server].map(|side| self.flow.stream(side).facts());
        client.rst_at.is_some()
            || server.rst_at.is_some()
            || (client.fin_at.is_some() && server.fin_at.is_some())
    }

    /// Takes a segment.
    pub(super) fn take(
        &mut self,
        from: Side,
        segment: &Segment<'_>,
        keys: &KeyLog,
        scope: &mut Scope<'_>,
    ) {
        let Self {
            flow,
            layers,
            record,
            ..
        } = self;
        self.seen_at = self.seen_at.max(segment.at);
        if let Some(climb) = &mut record.climb {
            climb.packet(from, segment);
        }
        let repeated = flow.stream(from).facts().repeated;
        if from == Side::Client && segment.len > 0 {
            record.hears_client = true;
        }
        // before the payload is taken: a handshake's last packet may carry the first request
        let syns = [Side::Client, Side::Server].map(|side| flow.stream(side).facts().syn_at);
        if let (Some(syn), Some(_), None) = (syns[0], syns[1], self.established_at)
            && from == Side::Client
            && segment.ack.is_some()
        {
            self.established_at = Some(segment.at);
            record.connection.setup.connect =
                Some(Span::new(scope.nanos(syn), scope.nanos(segment.at)));
        }
        let mut emit = |side, run: Run<'_>| match run {
            Run::Bytes { bytes, at } => layers.read(side, bytes, at, keys, record, scope),
            Run::Gap { len, .. } => layers.lose(side, len, record, scope),
        };
        flow.push(from, segment, &mut emit);
        if let Some(climb) = &mut record.climb
            && flow.stream(from).facts().repeated > repeated
        {
            climb.was_again();
        }
    }

    /// Begins to keep its packets; to be asked for before the first one.
    pub(super) fn climb(&mut self, client: SocketAddr, server: SocketAddr) {
        let id = self.record.connection.id;
        self.record.climb = Some(Box::new(Climb::new(id, client, server)));
    }

    /// Ends the entry. `complete`: the capture goes on for long enough, so what did not come never came.
    pub(super) fn finish(
        mut self,
        complete: bool,
        now: u64,
        keys: &KeyLog,
        scope: &mut Scope<'_>,
    ) -> Fate {
        let end = self.end();
        if let Some(end) = end {
            self.record.note_end(end, scope);
        }
        let closed_at = end.map_or(self.seen_at, |end| end.at);
        let Self {
            flow,
            layers,
            record,
            ..
        } = &mut self;
        flow.finish(|side, run| match run {
            Run::Bytes { bytes, at } => layers.read(side, bytes, at, keys, record, scope),
            Run::Gap { len, .. } => layers.lose(side, len, record, scope),
        });
        layers.end(end.is_some(), closed_at, record, scope);
        if let Some(failed) = self.dial_failure(complete, now) {
            let Some(failed) = failed else {
                return Fate::TooLate;
            };
            self.record.connection.closed = None;
            self.record.connection.failed = Some(failed);
            self.record.tell(scope);
            return Fate::Connection {
                unseen: 0,
                blind: None,
                carried: 0,
                ladder: self.record.ladder(),
            };
        }
        let blind = self.blind();
        let carried = |side| {
            let facts = self.flow.stream(side).facts();
            facts.bytes + facts.lost
        };
        let bytes = ConnectionBytes {
            sent: carried(Side::Client),
            received: carried(Side::Server),
        };
        let record = &mut self.record;
        if end.is_some()
            && let Some(tls) = &self.layers.tls
        {
            record.connection.failed = tls.failure();
        }
        match end {
            Some(end) if record.connection.failed.is_none() => record.close(end, bytes, scope),
            _ => {
                record.connection.closed = None;
                record.tell(scope);
            }
        }
        Fate::Connection {
            unseen: record.unseen(),
            blind,
            carried: record.carried(),
            ladder: record.ladder(),
        }
    }

    /// Why what it carried is not known.
    fn blind(&self) -> Option<Blind> {
        let carried = [Side::Client, Side::Server]
            .iter()
            .any(|&side| self.flow.stream(side).facts().bytes > 0);
        if self.record.readable || !carried || self.record.connection.protocol.is_some() {
            None
        } else if self.layers.tls.is_some() {
            Some(Blind::Tls)
        } else {
            Some(Blind::Unknown)
        }
    }

    /// The first FIN or RST.
    fn end(&self) -> Option<End> {
        let close = self.flow.close()?;
        let tls = self.layers.tls.as_ref();
        let goodbye_at = |by: Side| tls.and_then(|tls| tls.goodbye_at(by));
        // a server answers a close_notify with its FIN, which may come before the client's
        let other = match close.by {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        };
        if let Some(at) = goodbye_at(other).filter(|&at| at <= close.at) {
            return Some(End {
                at,
                by: side(other),
                how: Ending::CloseNotify,
            });
        }
        let how = match close.how {
            How::Rst => Ending::Rst,
            How::Fin if self.layers.went_away(close.by) => Ending::Goaway,
            How::Fin if goodbye_at(close.by).is_some() => Ending::CloseNotify,
            How::Fin => Ending::Fin,
        };
        Some(End {
            at: close.at,
            by: side(close.by),
            how,
        })
    }

    /// `None`: it was established. `Some(None)`: that cannot be told, the capture ends too soon.
    fn dial_failure(&self, complete: bool, now: u64) -> Option<Option<DialFailure>> {
        let client = self.flow.stream(Side::Client).facts();
        let server = self.flow.stream(Side::Server).facts();
        let heard = server.syn_at.is_some() || server.bytes > 0;
        if client.syn_at.is_none() || heard || self.established_at.is_some() {
            return None;
        }
        // with one direction in the capture the client goes on talking to an answer that is not
        if client.bytes > 0 || client.fin_at.is_some() {
            return None;
        }
        let kind = if server.rst_at.is_some() {
            Failure::Refused
        } else if complete || client.repeated > 0 || now.saturating_sub(self.begun_at) >= UNANSWERED
        {
            Failure::ConnectTimeout
        } else {
            return Some(None);
        };
        Some(Some(DialFailure {
            phase: SetupPhase::Connect,
            kind,
            detail: None,
        }))
    }
}

impl Layers {
    /// Takes the next bytes of one side.
    fn read(
        &mut self,
        from: Side,
        bytes: &[u8],
        at: u64,
        keys: &KeyLog,
        record: &mut Record,
        scope: &mut Scope<'_>,
    ) {
        if self.tls.is_none() && matches!(self.speech, Speech::Undecided(_)) {
            self.look_for_tls(from, bytes, record);
        }
        let Some(tls) = &mut self.tls else {
            self.speech.read(from, bytes, at, self.late, record, scope);
            return;
        };
        let mut pieces = std::mem::take(&mut self.pieces);
        // what was kept while it was not known to be TLS
        if let Speech::Undecided(held) = &mut self.speech
            && !record.readable
        {
            for (side, at, bytes) in std::mem::take(held) {
                if let Some(climb) = &mut record.climb {
                    climb.read_tls(side, &bytes, at);
                }
                tls.read(keys, side, &bytes, at, &mut pieces);
            }
        }
        if let Some(climb) = &mut record.climb {
            climb.read_tls(from, bytes, at);
        }
        tls.read(keys, from, bytes, at, &mut pieces);
        describe_tls(tls, record, scope);
        for &piece in &pieces {
            record.readable = true;
            let text = tls.text(piece);
            self.speech
                .read(piece.from, text, piece.at, self.late, record, scope);
        }
        pieces.clear();
        self.pieces = pieces;
    }

    fn look_for_tls(&mut self, from: Side, bytes: &[u8], record: &mut Record) {
        let guess = match from {
            Side::Client => guess_client(bytes),
            Side::Server => guess_server(bytes),
        };
        if guess == Guess::Tls || (self.late && is_tls_record(bytes)) {
            self.tls = Some(Box::new(TlsLayer::new()));
            record.connection.tls = Some(ledger::Tls::default());
        }
    }

    /// Takes note of bytes that were not captured.
    fn lose(&mut self, from: Side, len: u64, record: &mut Record, scope: &mut Scope<'_>) {
        match &mut self.tls {
            // how much plain text that was is not known
            Some(tls) => {
                tls.lose(from);
                self.speech.lose(from, u64::MAX, record, scope);
            }
            None => {
                if matches!(self.speech, Speech::Undecided(_)) {
                    self.late = true;
                }
                self.speech.lose(from, len, record, scope);
            }
        }
    }

    /// Nothing will come any more. `closed`: because the connection ended, not the capture.
    fn end(&mut self, closed: bool, at: u64, record: &mut Record, scope: &mut Scope<'_>) {
        self.speech.end(closed, at, self.late, record, scope);
        if let Speech::Http2(observer) = &self.speech {
            let facts = observer.facts();
            record.pings = Some(u32::try_from(facts.pings).unwrap_or(u32::MAX));
            if let Some(bye) = facts.go_away {
                record.announce(side(bye.by));
            }
            if let Some((settings, _)) = facts.server_settings {
                record.connection.terms.max_streams = settings.max_concurrent_streams;
            }
        }
    }

    fn went_away(&self, by: Side) -> bool {
        match &self.speech {
            Speech::Http2(observer) => observer.facts().go_away.is_some_and(|bye| bye.by == by),
            _ => false,
        }
    }
}

/// Brings what is known of the TLS layer into the record.
fn describe_tls(tls: &TlsLayer, record: &mut Record, scope: &Scope<'_>) {
    if record.connection.setup.ssl.is_some() && !tls.is_readable() {
        return;
    }
    record.connection.tls = Some(tls.describe());
    if let Some(name) = tls.server_name() {
        record.note_origin(Some(name.as_bytes()));
    }
    if let (Some(started), Some(finished)) = (tls.started_at(), tls.finished()) {
        let from = record
            .connection
            .setup
            .connect
            .map_or(scope.nanos(started), |connect| connect.end);
        record.connection.setup.ssl = Some(Span::new(from, scope.nanos(finished.at)));
        record.note_origin(None);
    }
}

impl Speech {
    fn read(
        &mut self,
        from: Side,
        bytes: &[u8],
        at: u64,
        late: bool,
        record: &mut Record,
        scope: &mut Scope<'_>,
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
    fn decide(&mut self, last: bool, late: bool, record: &mut Record, scope: &mut Scope<'_>) {
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
                    http1::Observer::mid_stream()
                } else {
                    http1::Observer::default()
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
        scope: &mut Scope<'_>,
    ) {
        for (from, at, bytes) in held {
            self.read(from, &bytes, at, late, record, scope);
        }
    }

    fn begin_09(&mut self, line: &[u8], at: u64, record: &mut Record, scope: &mut Scope<'_>) {
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
        scope: &mut Scope<'_>,
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
        let mut observer = h2::Observer::default();
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

    fn lose(&mut self, from: Side, len: u64, record: &mut Record, scope: &mut Scope<'_>) {
        match self {
            Speech::Http1(observer, _) => {
                observer.lose(from, len, |event| record.overhear(event, scope));
            }
            Speech::Http2(observer) => observer.lose(from),
            Speech::Undecided(held) => held.clear(),
            Speech::Http09(_) | Speech::Opaque => {}
        }
    }

    fn end(
        &mut self,
        closed: bool,
        at: u64,
        late: bool,
        record: &mut Record,
        scope: &mut Scope<'_>,
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
