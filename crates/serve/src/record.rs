//! The server's own record of one connection. Whatever happens to its task, what it began is
//! recorded as ended.

use crate::channel::ByteCounts;
use crate::disturbance::Disturbance;
use crate::fault::Fault;
use crate::server_tally::ServerTally;
use intact_ledger::{
    Close, CloseKind, ClosePoint, Closed, Connection, ConnectionBytes, ConnectionId, Exchange,
    Failure, Method, Nanos, Outcome, Probes, Protocol, Reuse, Setup, SetupWait, Side, Span, Target,
};
use std::cell::{Cell, RefCell};
use std::ops::{Deref, DerefMut};
use std::rc::Rc;
use std::sync::Arc;

/// What one thread records in the server's tally.
pub(crate) struct ThreadRecorder {
    tally: Arc<ServerTally>,
    page: usize,
    next_id: Cell<u64>,
    /// Threads take ids in turn, so that they are unique without talking about it.
    step: u64,
}

impl ThreadRecorder {
    pub(crate) fn new(tally: Arc<ServerTally>, page: usize, pages: usize) -> ThreadRecorder {
        ThreadRecorder {
            tally,
            page,
            next_id: Cell::new(page as u64 + 1),
            step: pages as u64,
        }
    }

    pub(crate) fn tally(&self) -> &ServerTally {
        &self.tally
    }

    pub(crate) fn now(&self) -> Nanos {
        self.tally.now()
    }

    pub(crate) fn id(&self) -> u64 {
        let id = self.next_id.get();
        self.next_id.set(id + self.step);
        id
    }

    /// Records a connection that failed before HTTP.
    pub(crate) fn failed(&self, connection: &Connection) {
        self.tally.opened(self.page, connection);
    }
}

/// One connection as the server records it.
pub(crate) struct Record {
    recorder: Rc<ThreadRecorder>,
    connection: RefCell<Connection>,
    passed: Rc<ByteCounts>,
    exchanges: Cell<u64>,
    wait: Cell<SetupWait>,
    last_end: Cell<Nanos>,
    in_flight: Cell<u64>,
    pub(crate) announced_by: Cell<Option<Side>>,
    /// An exchange did not get its answer.
    cut: Cell<bool>,
    stage: Cell<RecordStage>,
}

/// How far the record of a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecordStage {
    /// Nothing was asked on it yet.
    Waiting,
    /// It has only asked about the server itself; the server's counts leave these requests out.
    Unseen,
    Opened,
    Closed,
}

impl Record {
    /// The record of a connection that was opened; it is written with the first request, or the end
    /// of the connection.
    pub(crate) fn open(
        recorder: &Rc<ThreadRecorder>,
        connection: Connection,
        passed: Rc<ByteCounts>,
    ) -> Rc<Record> {
        recorder.tally.wait(recorder.page);
        Rc::new(Record {
            recorder: recorder.clone(),
            connection: RefCell::new(connection),
            passed,
            exchanges: Cell::new(0),
            wait: Cell::default(),
            last_end: Cell::default(),
            in_flight: Cell::new(0),
            announced_by: Cell::new(None),
            cut: Cell::new(false),
            stage: Cell::new(RecordStage::Waiting),
        })
    }

    pub(crate) fn now(&self) -> Nanos {
        self.recorder.now()
    }

    /// The connection's number in its run.
    pub(crate) fn id(&self) -> ConnectionId {
        self.connection.borrow().id
    }

    /// How many exchanges have begun.
    pub(crate) fn exchanges(&self) -> u64 {
        self.exchanges.get()
    }

    /// Begins an exchange whose first byte came at `at`.
    pub(crate) fn begin(
        self: &Rc<Record>,
        at: Nanos,
        version: Protocol,
        method: &[u8],
        target: &[u8],
    ) -> OpenExchange {
        if self.exchanges.get() == 0 {
            self.connection.borrow_mut().protocol = Some(version);
            self.write_opened();
        }
        self.exchanges.set(self.exchanges.get() + 1);
        self.in_flight.set(self.in_flight.get() + 1);
        let mut exchange = Exchange::new(self.recorder.id(), at);
        exchange.connection = Some(self.id());
        exchange.ordinal = Some(self.exchanges.get() as u32);
        exchange.reuse = self.reuse(at, self.exchanges.get() as u32, version);
        exchange.method = Some(Method::new(&String::from_utf8_lossy(method)));
        exchange.target = Some(Target::new(&String::from_utf8_lossy(target)));
        OpenExchange {
            record: self.clone(),
            exchange,
            version,
            fault: None,
            disturbed: Vec::new(),
            ended: false,
        }
    }

    /// Whether the client waited for the setup, by the rule of all observers. The server sees it
    /// from the accept on.
    fn reuse(&self, begun: Nanos, ordinal: u32, version: Protocol) -> Option<Reuse> {
        let mut wait = self.wait.get();
        wait.note_request(begun);
        self.wait.set(wait);
        let connection = self.connection.borrow();
        let setup = Setup {
            connect: Some(Span::new(connection.at, connection.at)),
            ..connection.setup
        };
        let is_stream = version.has_streams();
        let has_waited = wait.has_waited(&setup, begun, ordinal, is_stream);
        Reuse::of(has_waited, Some(ordinal))
    }

    /// Notes that the server was asked about itself.
    pub(crate) fn asked(&self) {
        if self.stage.get() == RecordStage::Waiting {
            self.stage.set(RecordStage::Unseen);
            self.recorder.tally.wait_no_more(self.recorder.page);
        }
    }

    /// Notes, before the first exchange, that the client sent it as early data.
    #[cfg(feature = "http3")]
    pub(crate) fn note_early_data(&self) {
        if let Some(tls) = &mut self.connection.borrow_mut().tls {
            tls.handshake = Some(intact_ledger::Handshake::EarlyData);
        }
    }

    fn write_opened(&self) {
        if self.stage.replace(RecordStage::Opened) == RecordStage::Waiting {
            self.recorder.tally.wait_no_more(self.recorder.page);
        }
        let connection = &self.connection.borrow();
        self.recorder.tally.opened(self.recorder.page, connection);
    }

    /// Records the end of the connection, once.
    pub(crate) fn close(&self, by: Side, how: CloseKind) {
        if self.stage.get() == RecordStage::Waiting {
            self.write_opened();
        }
        if self.stage.replace(RecordStage::Closed) != RecordStage::Opened {
            return;
        }
        let announced_by = self.announced_by.get();
        let moment = match (self.exchanges.get(), self.in_flight.get()) {
            (0, _) => ClosePoint::Unused,
            (_, 1..) => ClosePoint::MidExchange,
            _ if self.cut.get() => ClosePoint::MidExchange,
            _ => {
                let idle = self.now().since(self.last_end.get());
                ClosePoint::after(idle, announced_by.is_some())
            }
        };
        let reset = self.passed.reset.get();
        let connection = self.connection.borrow();
        let closed = Closed {
            connection: connection.id,
            variant: None,
            round: None,
            close: Close {
                at: self.now(),
                by: Some(by),
                how: Some(if reset { CloseKind::Rst } else { how }),
                other_end: None,
                announced_by,
                moment: Some(moment),
                exchanges: Some(self.exchanges.get()),
                bytes: ConnectionBytes {
                    sent: self.passed.received.get(),
                    received: self.passed.sent.get(),
                    ..ConnectionBytes::default()
                },
                probes: Probes::default(),
            },
        };
        self.recorder
            .tally
            .closed(self.recorder.page, &closed, connection.protocol);
    }
}

impl Drop for Record {
    /// A connection that neither side closed ends with the server.
    fn drop(&mut self) {
        self.close(Side::Server, CloseKind::Fin);
    }
}

/// An exchange that is not over.
pub(crate) struct OpenExchange {
    record: Rc<Record>,
    exchange: Exchange,
    version: Protocol,
    /// What goes wrong with it on purpose, and decides its outcome.
    pub(crate) fault: Option<Fault>,
    /// What the script did to it.
    pub(crate) disturbed: Vec<Disturbance>,
    ended: bool,
}

impl OpenExchange {
    /// The request has come in full.
    pub(crate) fn received(&mut self) {
        let now = self.record.now();
        self.exchange.spans.send = Some(Span::new(self.exchange.at, now));
    }

    /// Ends it and records it.
    pub(crate) fn end(mut self, outcome: Outcome) {
        self.record_end(outcome);
    }

    fn record_end(&mut self, outcome: Outcome) {
        self.ended = true;
        let exchange = &mut self.exchange;
        exchange.end = self.record.now();
        exchange.outcome = outcome;
        exchange.judge_grpc();
        if let Some(fault) = self.fault {
            exchange.outcome = fault
                .failure(self.version)
                .map_or(Outcome::Ok, Outcome::Failed);
            exchange.detail = Some(format!("fault: {fault}").into());
        }
        if !self.disturbed.is_empty() {
            let names: Vec<_> = self.disturbed.iter().map(|kind| kind.id()).collect();
            exchange.detail = Some(format!("script: {}", names.join(", ")).into());
        }
        if let Some(send) = exchange.spans.send {
            exchange.spans.wait = Some(Span::new(send.end, exchange.end));
        }
        let record = &self.record;
        record.last_end.set(exchange.end);
        // a stream may fail alone
        let fails_alone = self.version.has_streams() && self.fault.is_none();
        if !exchange.outcome.is_ok() && !fails_alone {
            record.cut.set(true);
        }
        let mut wait = record.wait.get();
        wait.note_response(exchange.end);
        record.wait.set(wait);
        record.in_flight.set(record.in_flight.get() - 1);
        record.recorder.tally.exchange(
            record.recorder.page,
            exchange,
            self.version,
            self.fault,
            &self.disturbed,
        );
    }
}

/// Ends an exchange; one that is hidden has no record.
pub(crate) fn end_recorded(exchange: Option<OpenExchange>, outcome: Outcome) {
    if let Some(exchange) = exchange {
        exchange.end(outcome);
    }
}

impl Drop for OpenExchange {
    /// Cut off: by the client that closed or reset the connection, or by the end of the server.
    fn drop(&mut self) {
        if !self.ended {
            let kind = if self.record.passed.is_over() {
                Failure::ClientClosed
            } else {
                Failure::Aborted
            };
            self.record.cut.set(true);
            self.record_end(Outcome::Failed(kind));
        }
    }
}

impl Deref for OpenExchange {
    type Target = Exchange;

    fn deref(&self) -> &Exchange {
        &self.exchange
    }
}

impl DerefMut for OpenExchange {
    fn deref_mut(&mut self) -> &mut Exchange {
        &mut self.exchange
    }
}
