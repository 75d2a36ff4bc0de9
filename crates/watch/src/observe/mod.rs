//! What passes through the relay, as ledger events.
//!
//! Everything in here may panic without harm to the program: the relay catches it and carries on.

mod application;
mod books;
mod exchanges;
mod first;

pub(crate) use books::Books;

use application::{Application, Kept, wire_side};
use exchanges::{Exchanges, FirstEnd};
use ledger::{
    Close, Closed, Connection, ConnectionBytes, Ending, Event, Moment, Nanos, Probes, Scheme, Side,
};

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
    exchanges: Exchanges,
    bytes: ConnectionBytes,
    /// How it began to end: the first end or reset, when it came, and whether an exchange was under way.
    end: Option<FirstSign>,
}

struct FirstSign {
    by: Side,
    how: Ending,
    at: Nanos,
    busy: bool,
}

impl Observation {
    pub(crate) fn new(about: Connection) -> Observation {
        Observation {
            about,
            told: false,
            application: Application::default(),
            exchanges: Exchanges::default(),
            bytes: ConnectionBytes::default(),
            end: None,
        }
    }

    /// Bytes of one side passed.
    pub(crate) fn read(&mut self, from: Side, bytes: &[u8], at: Nanos, books: &mut Books<'_>) {
        match from {
            Side::Client => self.bytes.sent += bytes.len() as u64,
            Side::Server => self.bytes.received += bytes.len() as u64,
        }
        let end = self.first_end();
        let (about, told) = (&mut self.about, &mut self.told);
        let exchanges = &mut self.exchanges;
        let kept = self
            .application
            .read(wire_side(from), bytes, at.0, |event| {
                exchanges.take(event, end, about, told, books);
            });
        if kept == Kept::IsTls {
            self.application = Application::Other(None);
            self.about.origin = self.about.origin.take().map(|mut origin| {
                origin.scheme = Scheme::Https;
                origin
            });
        }
    }

    /// One side has ended.
    pub(crate) fn end(&mut self, by: Side, how: Ending, at: Nanos, books: &mut Books<'_>) {
        self.end.get_or_insert(FirstSign {
            by,
            how,
            at,
            busy: self.exchanges.is_busy(),
        });
        let end = self.first_end();
        let (about, told) = (&mut self.about, &mut self.told);
        let exchanges = &mut self.exchanges;
        self.application.end(wire_side(by), at.0, |event| {
            exchanges.take(event, end, about, told, books);
        });
    }

    /// About a second has passed.
    pub(crate) fn tick(&mut self, now: Nanos, books: &mut Books<'_>) {
        if now.since(self.about.at) > PATIENCE {
            self.tell(books);
        }
    }

    /// The connection is over, or the run is.
    pub(crate) fn finish(&mut self, at: Nanos, books: &mut Books<'_>) {
        let end = self.first_end();
        let (about, told) = (&mut self.about, &mut self.told);
        let exchanges = &mut self.exchanges;
        self.application
            .end(wire_side(Side::Server), at.0, |event| {
                exchanges.take(event, end, about, told, books);
            });
        self.tell(books);
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

    fn tell(&mut self, books: &mut Books<'_>) {
        if self.about.protocol.is_none() {
            self.about.protocol = self.application.protocol();
        }
        exchanges::tell(&self.about, &mut self.told, books);
    }

    fn close(&self, at: Nanos) -> Close {
        let exchanges = &self.exchanges;
        let goaway = self.application.http2().and_then(exchanges::goaway_by);
        let announced_by = exchanges.announced_by.or(goaway);
        let counted = self.application.is_http() || self.bytes == ConnectionBytes::default();
        let moment = match &self.end {
            _ if exchanges.stale => Some(Moment::Stale),
            _ if !counted => None,
            _ if exchanges.count == 0 => Some(Moment::Unused),
            None => None,
            Some(end) if end.busy => Some(Moment::MidExchange),
            Some(end) => {
                let idle = exchanges.last_end.map(|last| end.at.since(last));
                let announced = announced_by.is_some();
                let soon = idle.is_some_and(|idle| idle <= RIGHT_AFTER);
                Some(if announced || soon {
                    Moment::AfterExchange
                } else {
                    Moment::Idle
                })
            }
        };
        Close {
            at: self.end.as_ref().map_or(at, |end| end.at),
            by: self.end.as_ref().map(|end| end.by),
            how: self.end.as_ref().map(|end| match (end.how, goaway) {
                (Ending::Fin, Some(by)) if by == end.by => Ending::Goaway,
                (how, _) => how,
            }),
            announced_by,
            moment,
            exchanges: counted.then_some(exchanges.count),
            bytes: self.bytes,
            probes: Probes {
                tcp_keepalive_s: None,
                pings: self
                    .application
                    .http2()
                    .map(|facts| facts.pings as u32)
                    .filter(|pings| *pings > 0),
            },
        }
    }
}
