//! The server's own ledger of one connection.

use crate::meter::Passed;
use ledger::{
    Close, Closed, Connection, ConnectionBytes, ConnectionId, Ending, Event, Exchange, Method,
    Moment, Nanos, Outcome, Probes, Protocol, Side, Sink, Span, Target,
};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Instant;

/// What all connections of one server share.
pub(crate) struct Shared {
    pub(crate) sink: Rc<RefCell<dyn Sink>>,
    pub(crate) started: Instant,
    next_id: Cell<u64>,
}

impl Shared {
    pub(crate) fn new(sink: Rc<RefCell<dyn Sink>>) -> Shared {
        Shared {
            sink,
            started: Instant::now(),
            next_id: Cell::new(0),
        }
    }

    pub(crate) fn now(&self) -> Nanos {
        Nanos(self.started.elapsed().as_nanos() as u64)
    }

    pub(crate) fn id(&self) -> u64 {
        self.next_id.set(self.next_id.get() + 1);
        self.next_id.get()
    }
}

/// One connection as the server records it.
pub(crate) struct Ledger {
    shared: Rc<Shared>,
    id: ConnectionId,
    passed: Rc<Passed>,
    exchanges: Cell<u64>,
    in_flight: Cell<u64>,
    pub(crate) announced_by: Cell<Option<Side>>,
}

impl Ledger {
    /// Records that a connection was opened.
    pub(crate) fn open(
        shared: &Rc<Shared>,
        mut connection: Connection,
        protocol: Protocol,
        passed: Rc<Passed>,
    ) -> Ledger {
        connection.protocol = Some(protocol);
        shared.sink.borrow_mut().record(Event::Opened(&connection));
        Ledger {
            shared: shared.clone(),
            id: connection.id,
            passed,
            exchanges: Cell::new(0),
            in_flight: Cell::new(0),
            announced_by: Cell::new(None),
        }
    }

    pub(crate) fn now(&self) -> Nanos {
        self.shared.now()
    }

    /// How many exchanges have begun.
    pub(crate) fn exchanges(&self) -> u64 {
        self.exchanges.get()
    }

    /// Begins an exchange whose first byte came at `at`.
    pub(crate) fn begin(&self, at: Nanos) -> Exchange {
        self.exchanges.set(self.exchanges.get() + 1);
        self.in_flight.set(self.in_flight.get() + 1);
        let mut exchange = Exchange::new(self.shared.id(), at);
        exchange.connection = Some(self.id);
        exchange.ordinal = Some(self.exchanges.get() as u32);
        exchange.fresh = Some(self.exchanges.get() == 1);
        exchange
    }

    /// Fills in what the request said.
    pub(crate) fn request(exchange: &mut Exchange, method: &[u8], target: &[u8]) {
        exchange.method = Some(Method::new(&String::from_utf8_lossy(method)));
        exchange.target = Some(Target::new(&String::from_utf8_lossy(target)));
    }

    /// Ends an exchange and records it.
    pub(crate) fn end(&self, mut exchange: Exchange, outcome: Outcome) {
        exchange.end = self.now();
        exchange.outcome = outcome;
        if let Some(send) = exchange.spans.send {
            exchange.spans.wait = Some(Span::new(send.end, exchange.end));
        }
        self.in_flight.set(self.in_flight.get() - 1);
        self.shared
            .sink
            .borrow_mut()
            .record(Event::Exchange(&exchange));
    }

    /// Records the end of the connection. `ours`: we closed first.
    pub(crate) fn close(&self, ours: bool, how: Ending) {
        let moment = match (self.exchanges.get(), self.in_flight.get()) {
            (0, _) => Moment::Unused,
            (_, 0) => Moment::Idle,
            _ => Moment::MidExchange,
        };
        let reset = self.passed.reset.get();
        let closed = Closed {
            connection: self.id,
            variant: None,
            round: None,
            close: Close {
                at: self.now(),
                by: Some(if ours { Side::Server } else { Side::Client }),
                how: Some(if reset { Ending::Rst } else { how }),
                announced_by: self.announced_by.get(),
                moment: Some(moment),
                exchanges: Some(self.exchanges.get()),
                bytes: ConnectionBytes {
                    sent: self.passed.received.get(),
                    received: self.passed.sent.get(),
                },
                probes: Probes::default(),
            },
        };
        self.shared.sink.borrow_mut().record(Event::Closed(&closed));
    }
}
