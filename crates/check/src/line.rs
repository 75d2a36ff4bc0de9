//! One open connection for the probes: whole responses, and how the server ended the connection.

use intact_client::{
    Detail, Established, EventLoop, HandshakeFacts, HttpConnection, Request, ResponseInfo, State,
};
use intact_ledger::server_profile::{Ended, ErrorClose};
use intact_ledger::{
    CloseKind, Closed, Connection, Event, Exchange, Failure, Nanos, Outcome, Protocol, Side, Sink,
};
use std::sync::Arc;

/// An end within this time after a response came with it, in nanoseconds.
const WITH_RESPONSE: u64 = 100_000_000;

/// A finished exchange.
#[derive(Clone, Debug)]
pub(crate) struct Answered {
    pub(crate) exchange: Exchange,
    pub(crate) reply: ResponseInfo,
}

impl Answered {
    /// Whether the response is complete and as expected.
    pub(crate) fn is_ok(&self) -> bool {
        self.exchange.outcome.is_ok()
    }

    /// The outcome, with the failure in the library's or kernel's own words.
    pub(crate) fn outcome(&self) -> (Outcome, Option<String>) {
        let Exchange {
            outcome, detail, ..
        } = &self.exchange;
        (*outcome, detail.as_deref().map(str::to_owned))
    }
}

/// The outcome of a request whose dial failed, with the failure in the same words.
pub(crate) fn refused(connection: &Connection) -> (Outcome, Option<String>) {
    let failed = connection.failed.as_ref();
    failed.map_or_else(Default::default, |failed| {
        let detail = failed.detail.as_deref().map(str::to_owned);
        (Outcome::Failed(failed.kind), detail)
    })
}

/// Keeps the last exchange that ended. If its request was sent before the handshake was complete,
/// also keeps the record of the connection.
#[derive(Default)]
struct LastEvents {
    exchange: Option<Exchange>,
    opened: Option<Connection>,
}

impl Sink for LastEvents {
    fn record(&mut self, event: Event<'_>) {
        match event {
            Event::Exchange(exchange) => self.exchange = Some(exchange.clone()),
            Event::Opened(connection) => self.opened = Some(connection.clone()),
            _ => {}
        }
    }
}

/// An open connection.
pub(crate) struct Line {
    pub(crate) http: HttpConnection,
    pub(crate) handshake: HandshakeFacts,
    pub(crate) protocol: Protocol,
    /// The exchange that ended, until the caller takes it.
    pub(crate) answered: Option<Answered>,
    /// The end of the setup or of the last exchange; the later one.
    pub(crate) active_at: Nanos,
    /// It is observed only for as long as others are.
    pub(crate) is_secondary: bool,
    /// Number of requests that the probes had sent before the last one of this connection.
    pub(crate) sent_before: u32,
    /// The status of the last response.
    last_status: Option<u16>,
    last: LastEvents,
}

impl Line {
    /// A connection that a dial established.
    pub(crate) fn new(established: Established, protocol: Protocol) -> Line {
        let connection = &established.connection;
        let setup = connection.setup;
        let ready = setup.ssl.or(setup.connect).map(|span| span.end);
        Line {
            active_at: ready.unwrap_or(connection.at),
            handshake: established.handshake,
            protocol,
            http: HttpConnection::new(
                established,
                protocol,
                Detail::Fields,
                1,
                Exchange::new(0, Nanos(0)),
            ),
            answered: None,
            is_secondary: false,
            sent_before: 0,
            last_status: None,
            last: LastEvents::default(),
        }
    }

    /// The ledger's record of the connection.
    pub(crate) fn connection(&self) -> &Connection {
        self.http.connection()
    }

    /// How the server ended the connection, if it did. A GOAWAY ends its use earlier than FIN or
    /// RST.
    pub(crate) fn ended(&self) -> Option<(Nanos, Ended)> {
        let goaway = self.http.life().goaway_at;
        let ended = self.http.ended();
        let (at, by, how) = match goaway {
            Some(at) => (at, Side::Server, CloseKind::Goaway),
            None => ended.map(|ended| (ended.at, ended.by, ended.how))?,
        };
        let announced = self.http.life().announced_by == Some(Side::Server);
        let is_with_response = announced || at.since(self.active_at) < WITH_RESPONSE;
        let status = self.last_status.filter(|status| *status >= 400);
        let ended = Ended {
            by: Some(by),
            how,
            announced,
            unsolicited_status: self.http.life().unsolicited_status,
            error: status
                .filter(|_| is_with_response)
                .map(|status| ErrorClose {
                    status,
                    requests: self.sent_before,
                }),
        };
        Some((at, ended))
    }

    /// Whether another request may be sent.
    pub(crate) fn is_usable(&self) -> bool {
        self.http.ended().is_none() && self.http.state() == State::Ready
    }

    /// Starts an exchange. The request is sent unless it was sent as early data.
    pub(crate) fn begin(
        &mut self,
        request: &Arc<Request>,
        id: u64,
        event_loop: &EventLoop,
        now: Nanos,
        early: bool,
    ) {
        let is_first = self.http.exchanges() == 0;
        let at = if is_first { self.connection().at } else { now };
        if early {
            self.http.begin_early(request, id, at);
        } else {
            self.http.begin(request, id, at, false);
        }
        event_loop.send(&mut self.http);
    }

    /// Reads without waiting. Returns whether more data may be available.
    pub(crate) fn pump(&mut self, event_loop: &mut EventLoop) -> bool {
        let more = event_loop.read(&mut self.http, &mut self.last);
        self.note();
        more
    }

    /// When [`Line::pump`] has to be called even if nothing arrived; absent where the kernel keeps
    /// the time.
    pub(crate) fn timer(&mut self) -> Option<Nanos> {
        self.http.timer()
    }

    /// Abandons the exchange in flight.
    pub(crate) fn give_up(&mut self, failure: Failure, at: Nanos) {
        self.http.give_up(Some(failure), at, &mut self.last);
        self.note();
    }

    fn note(&mut self) {
        if let Some(exchange) = self.last.exchange.take() {
            self.active_at = self.active_at.max(exchange.end);
            self.last_status = exchange.status;
            let reply = self.http.take_response();
            self.answered = Some(Answered { exchange, reply });
        }
    }

    /// Takes the record of a connection that was not recorded when its dial ended.
    pub(crate) fn take_opened(&mut self) -> Option<Connection> {
        self.last.opened.take()
    }

    /// Closes the connection. Returns the record of the close, by the server if it closed first.
    pub(crate) fn close(self, at: Nanos) -> Closed {
        self.http.close(at)
    }
}
