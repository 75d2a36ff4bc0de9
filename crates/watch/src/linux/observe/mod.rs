//! What passes through the relay, as ledger events.
//!
//! Everything in here may panic without harm to the program: the relay catches it and carries on.

mod application;
mod detected_protocol;
mod exchanges;
mod keys;
mod record_sizes;
mod request_inference;
mod run_context;
mod tls_connection;

pub(crate) use keys::Keys;
pub(crate) use run_context::{FAULT, RunContext};

use application::{Application, Kept, ledger_side, wire_side};
use exchanges::{Exchanges, FirstEnd};
use intact_ledger::{
    Close, CloseKind, ClosePoint, Closed, Connection, ConnectionBytes, Event, Nanos, Probes,
    Protocol, Scheme, Side,
};
use request_inference::{InferredExchange, RequestInference};
use tls_connection::{Access, TlsConnection};

/// An end within this time of the last answer belongs to it: a `Connection: close`, seen or not.
const RIGHT_AFTER: u64 = 20_000_000;
/// A connection that has said nothing for this long is recorded with what is known.
const PATIENCE: u64 = 1_000_000_000;

/// One connection under observation.
pub(crate) struct Observation {
    about: Connection,
    /// It was recorded.
    told: bool,
    application: Application,
    secure: Option<Box<TlsConnection>>,
    guess: RequestInference,
    exchanges: Exchanges,
    bytes: ConnectionBytes,
    /// The interval of TCP keep-alive probes in seconds, where the program asked for them.
    probes: Option<u32>,
    end: Option<FirstSign>,
}

/// How a connection began to end: the first end or reset, when it came, and whether an exchange was under way.
struct FirstSign {
    by: Side,
    how: CloseKind,
    at: Nanos,
    busy: bool,
}

impl Observation {
    pub(crate) fn new(about: Connection) -> Observation {
        Observation {
            about,
            told: false,
            application: Application::default(),
            secure: None,
            guess: RequestInference::default(),
            exchanges: Exchanges::default(),
            bytes: ConnectionBytes::default(),
            probes: None,
            end: None,
        }
    }

    /// The program asks for TCP keep-alive probes, at this interval in seconds.
    pub(crate) fn probe(&mut self, interval: u32) {
        self.probes = Some(interval);
    }

    /// Bytes of one side passed.
    pub(crate) fn read(&mut self, from: Side, bytes: &[u8], at: Nanos, books: &mut RunContext<'_>) {
        match from {
            Side::Client => self.bytes.sent += bytes.len() as u64,
            Side::Server => self.bytes.received += bytes.len() as u64,
        }
        let side = wire_side(from);
        if self.secure.is_some() {
            self.read_secure(side, bytes, at.0, books);
        } else if self.read_plain(side, bytes, at.0, books) == Kept::IsTls {
            let held = std::mem::take(&mut self.application).into_held();
            if let Some(origin) = &mut self.about.origin {
                origin.scheme = Scheme::Https;
            }
            let process = self.about.owner.as_ref().map(|owner| owner.pid);
            self.secure = Some(Box::new(TlsConnection::new(books.expects_keys(), process)));
            self.read_secure(side, &held, at.0, books);
        }
    }

    fn read_plain(
        &mut self,
        from: intact_wire::Side,
        bytes: &[u8],
        at: u64,
        books: &mut RunContext<'_>,
    ) -> Kept {
        let end = self.first_end();
        let (about, told) = (&mut self.about, &mut self.told);
        let exchanges = &mut self.exchanges;
        let kept = self.application.read(from, bytes, at, |event| {
            exchanges.take(event, end, about, told, books);
        });
        if exchanges.enter_tunnel(about) {
            self.application = Application::default();
        }
        kept
    }

    fn read_secure(
        &mut self,
        from: intact_wire::Side,
        bytes: &[u8],
        at: u64,
        books: &mut RunContext<'_>,
    ) {
        if let Some(secure) = &mut self.secure {
            secure.read(from, bytes, at, books);
        }
        self.take_secure(books);
    }

    /// Reads on with what TLS has disclosed.
    fn take_secure(&mut self, books: &mut RunContext<'_>) {
        let Some(secure) = &mut self.secure else {
            return;
        };
        let (pieces, marks) = (secure.take_plain(), secure.take_marks());
        if pieces.is_empty() && marks.is_empty() {
            return;
        }
        let access = secure.access();
        if !self.told {
            self.learn_secure();
        }
        for piece in pieces {
            let kept = self.read_plain(piece.from, &piece.bytes, piece.at, books);
            if kept == Kept::IsTls {
                // TLS within TLS: a proxy's business
                self.application = Application::Other(None);
            }
        }
        if let Access::Shut(reason) = access {
            for mark in marks {
                let turn = self.guess.take(mark);
                self.tell_turn(turn, reason, books);
            }
        }
    }

    /// Records a turn of talk as an exchange.
    fn tell_turn(
        &mut self,
        turn: Option<InferredExchange>,
        reason: &str,
        books: &mut RunContext<'_>,
    ) {
        if let Some(turn) = turn {
            let end = self.first_end();
            let (about, told) = (&mut self.about, &mut self.told);
            self.exchanges.guess(&turn, reason, end, about, told, books);
        }
    }

    /// What the handshake tells of the connection; whether that is new.
    fn learn_secure(&mut self) -> bool {
        let Some(secure) = &self.secure else {
            return false;
        };
        let changed = secure.describe(&mut self.about);
        let tls = self.about.tls.as_ref();
        if self.exchanges.count == 0
            && let Some(origin) = &mut self.about.origin
            && let Some(name) = tls.and_then(|tls| tls.server_name.clone())
        {
            origin.host = name;
        }
        if self.about.protocol.is_none() {
            self.about.protocol = match tls.and_then(|tls| tls.alpn_chosen.as_deref()) {
                Some("h2") => Some(Protocol::Http2),
                Some("http/1.1") => Some(Protocol::Http11),
                _ => None,
            };
        }
        changed
    }

    /// One side has ended.
    pub(crate) fn end(&mut self, by: Side, how: CloseKind, at: Nanos, books: &mut RunContext<'_>) {
        if let Some(secure) = &mut self.secure {
            secure.look_again(books);
        }
        self.take_secure(books);
        let secure = self.secure.as_ref();
        let asking = secure.is_some_and(|secure| secure.is_asking());
        // a FIN may only answer the other side's close_notify
        let goodbye = secure
            .and_then(|secure| secure.first_goodbye())
            .filter(|_| how == CloseKind::Fin)
            .map(ledger_side);
        self.end.get_or_insert(FirstSign {
            by: goodbye.unwrap_or(by),
            how: if goodbye.is_some() {
                CloseKind::CloseNotify
            } else {
                how
            },
            at,
            busy: self.exchanges.is_busy() || self.guess.is_asking() || asking,
        });
        self.end_plain(by, at, books);
    }

    fn end_plain(&mut self, by: Side, at: Nanos, books: &mut RunContext<'_>) {
        let end = self.first_end();
        let (about, told) = (&mut self.about, &mut self.told);
        let exchanges = &mut self.exchanges;
        self.application.end(wire_side(by), at.0, |event| {
            exchanges.take(event, end, about, told, books);
        });
    }

    /// About a second has passed.
    pub(crate) fn tick(&mut self, now: Nanos, books: &mut RunContext<'_>) {
        if let Some(secure) = &mut self.secure {
            secure.look_again(books);
            if !secure.awaits_keys(books) {
                secure.give_up(now.0, false);
            }
            self.take_secure(books);
        }
        if now.since(self.about.at) > PATIENCE {
            self.tell(books);
        }
    }

    /// Whether more will be known of it soon, though it is over.
    pub(crate) fn awaits_keys(&self, books: &RunContext<'_>) -> bool {
        let secure = self.secure.as_ref();
        secure.is_some_and(|secure| secure.awaits_keys(books))
    }

    /// The connection is over, or the run is.
    pub(crate) fn finish(&mut self, at: Nanos, books: &mut RunContext<'_>) {
        if let Some(secure) = &mut self.secure {
            secure.look_again(books);
            secure.give_up(at.0, true);
            self.take_secure(books);
        }
        if let Some(Access::Shut(reason)) = self.secure.as_ref().map(|secure| secure.access()) {
            let turn = self.guess.end();
            self.tell_turn(turn, reason, books);
        }
        self.end_plain(Side::Server, at, books);
        let already = self.told;
        let failed = self
            .secure
            .as_ref()
            .and_then(|secure| secure.failure(self.first_end()));
        let news = self.learn_secure() | failed.is_some();
        self.about.failed = failed;
        self.tell(books);
        if already && news {
            books.record(Event::Revised(&self.about));
        }
        let close = self.close(at);
        let closed = Closed {
            connection: self.about.id,
            variant: self.about.variant,
            round: self.about.round,
            close,
        };
        books.record(Event::Closed(&closed));
    }

    fn first_end(&self) -> FirstEnd {
        self.end.as_ref().map(|end| (end.by, end.how))
    }

    fn tell(&mut self, books: &mut RunContext<'_>) {
        if !self.told {
            self.learn_secure();
        }
        if self.about.protocol.is_none() {
            self.about.protocol = self.application.protocol();
        }
        exchanges::tell(&self.about, &mut self.told, books);
    }

    fn close(&self, at: Nanos) -> Close {
        let exchanges = &self.exchanges;
        let goaway = self.application.http2().and_then(exchanges::goaway_by);
        let announced_by = exchanges.announced_by.or(goaway);
        let guessed = self
            .secure
            .as_ref()
            .is_some_and(|secure| matches!(secure.access(), Access::Shut(_)));
        let counted =
            guessed || self.application.is_http() || self.bytes == ConnectionBytes::default();
        let moment = match &self.end {
            _ if exchanges.stale => Some(ClosePoint::Stale),
            _ if !counted => None,
            _ if exchanges.count == 0 => Some(ClosePoint::Unused),
            None => None,
            Some(end) if end.busy => Some(ClosePoint::MidExchange),
            Some(end) => {
                let idle = exchanges.last_end.map(|last| end.at.since(last));
                let announced = announced_by.is_some();
                let soon = idle.is_some_and(|idle| idle <= RIGHT_AFTER);
                Some(if announced || soon {
                    ClosePoint::AfterExchange
                } else {
                    ClosePoint::Idle
                })
            }
        };
        Close {
            at: self.end.as_ref().map_or(at, |end| end.at),
            by: self.end.as_ref().map(|end| end.by),
            how: self.end.as_ref().map(|end| match end.how {
                CloseKind::Fin | CloseKind::CloseNotify if goaway == Some(end.by) => {
                    CloseKind::Goaway
                }
                how => how,
            }),
            announced_by,
            moment,
            exchanges: counted.then_some(exchanges.count),
            bytes: self.bytes,
            probes: Probes {
                tcp_keepalive_s: self.probes,
                pings: self
                    .application
                    .http2()
                    .map(|facts| facts.pings as u32)
                    .filter(|pings| *pings > 0),
            },
        }
    }
}
