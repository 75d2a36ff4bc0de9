//! An open connection, and the owner of its client end. `Pools` bounds their number.

use super::open_reason::{AT_ONCE, OpenReason};
use intact_ledger::{
    Connection, Exchange, Failure, Nanos, Outcome, Protocol, Run, Side, Span, Vantage,
};
use std::net::IpAddr;

/// Streams at once where a server does not say (RFC 9113 section 6.5.2 recommends no less).
const STREAMS: u32 = 100;

/// How long a client may take, in nanoseconds, from the last byte of a response to the connection's
/// return to its pool. Until then the connection is idle on the wire, but no request can use it.
pub(crate) const HAND_BACK: u64 = 5_000_000;

/// Who has the client end: connections are reused within one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PoolOwner {
    /// A process.
    Process(u32),
    /// An address, where processes cannot be seen.
    Address(IpAddr),
    /// Not known.
    Unknown,
}

impl PoolOwner {
    pub(super) fn of(connection: &Connection, run: &Run) -> PoolOwner {
        if let Some(owner) = &connection.owner {
            return PoolOwner::Process(owner.pid);
        }
        match run.vantage {
            Vantage::Server => {
                client_address(connection).map_or(PoolOwner::Unknown, PoolOwner::Address)
            }
            Vantage::Client => PoolOwner::Unknown,
            Vantage::OnPath => connection
                .local
                .map_or(PoolOwner::Unknown, |local| PoolOwner::Address(local.ip())),
        }
    }
}

/// The client's address as a server sees it.
pub(super) fn client_address(connection: &Connection) -> Option<IpAddr> {
    connection.peer.map(|peer| peer.ip())
}

/// The exchange on a connection that ended last.
#[derive(Clone, Debug)]
pub struct Last {
    /// Its end.
    pub end: Nanos,
    /// How it failed, if it did.
    pub(super) failure: Option<Failure>,
    /// Who announced the end of the connection in it.
    pub close_sent_by: Option<Side>,
    /// Whether the client left a part of the response unread.
    pub undrained: bool,
    /// When the response began, or when the last bytes of a streamed one came, if that was seen.
    pub(super) answered: Option<Nanos>,
    /// Whether it met a connection that had died.
    pub stale: bool,
    /// The status of its response.
    pub status: Option<u16>,
    /// Whether it could be read, with its announcements.
    pub is_read: bool,
    /// Bytes of its response's body.
    pub(super) body: u64,
}

impl Last {
    fn of(exchange: &Exchange) -> Last {
        let bodiless = exchange
            .method
            .as_ref()
            .is_some_and(|method| method.as_str() == "HEAD")
            || matches!(exchange.status, Some(204 | 304));
        let body = &exchange.body;
        let short = body
            .announced
            .zip(body.read)
            .is_some_and(|(announced, read)| read < announced);
        let cut = matches!(
            exchange.outcome,
            Outcome::Failed(Failure::Truncated | Failure::ClientClosed)
        );
        Last {
            end: exchange.end,
            failure: exchange.outcome.failure(),
            close_sent_by: announced_by(exchange),
            undrained: !bodiless && exchange.status.is_some() && (short || cut),
            answered: (exchange.body.left_after)
                .filter(|_| exchange.is_left_stream())
                .or(exchange.spans.wait.map(|wait| wait.end)),
            stale: exchange.outcome == Outcome::Failed(Failure::Stale)
                && exchange.close_announced_at.is_none(),
            status: exchange.status,
            is_read: exchange.method.is_some() || exchange.status.is_some(),
            body: exchange.bytes.body,
        }
    }

    /// Whether it did not fail: it was complete, or its outcome is unknown.
    pub fn is_ok(&self) -> bool {
        self.failure.is_none()
    }

    /// Whether the server sent bytes in place of a response: no client keeps the connection then.
    pub(super) fn is_garbled(&self) -> bool {
        let failure = self.failure;
        failure.is_some_and(|kind| matches!(kind, Failure::Malformed | Failure::NoProgress))
    }

    /// Whether the connection changed to another protocol (RFC 9110 section 15.2.2).
    pub(super) fn is_upgrade(&self) -> bool {
        self.status == Some(UPGRADE)
    }

    /// Whether it was an error response that announced the end.
    fn announces_after_error(&self) -> bool {
        self.close_sent_by == Some(Side::Server) && self.is_error()
    }

    /// Whether it was an error response.
    pub(super) fn is_error(&self) -> bool {
        self.status.is_some_and(is_error)
    }
}

/// Whether a response with this status is an error response.
pub(super) fn is_error(status: u16) -> bool {
    status >= 400
}

/// The status of a response after which the connection carries another protocol.
pub(super) const UPGRADE: u16 = 101;

/// Who had announced the end of the connection in an exchange, or before it failed.
pub(super) fn announced_by(exchange: &Exchange) -> Option<Side> {
    let before = exchange.close_announced_at.map(|_| Side::Server);
    exchange.close_sent_by.or(before)
}

/// An open connection.
#[derive(Clone, Debug)]
pub struct OpenConnection {
    /// What is known of it.
    pub connection: Connection,
    /// Index of its destination.
    pub destination: usize,
    /// Who has the client end.
    pub owner: PoolOwner,
    /// Exchanges that ended on it, without those that the server refused to process.
    pub exchanges: u64,
    /// Whether one of them had a complete response.
    pub carried_response: bool,
    /// The exchange that ended last.
    pub last: Option<Last>,
    /// The exchange that was entered last into what runs at once.
    pub(super) busy: Option<Span>,
}

impl OpenConnection {
    /// A connection that has carried nothing that is known.
    pub(super) fn new(
        connection: Connection,
        destination: usize,
        owner: PoolOwner,
    ) -> OpenConnection {
        OpenConnection {
            connection,
            destination,
            owner,
            exchanges: 0,
            carried_response: false,
            last: None,
            busy: None,
        }
    }

    /// The part of a span in which an exchange before it did not occupy the connection already.
    /// Requests of one connection overlap where the steps of the clock are longer than they are,
    /// or where they are pipelined; they need one connection all the same.
    pub(super) fn occupy(&mut self, span: Span) -> Option<Span> {
        let end = span.end.max(span.start.after(1));
        let before = self.busy.filter(|before| before.start <= span.start);
        let taken = before.map_or(span.start, |before| before.end);
        self.busy = Some(Span::new(span.start, end.max(taken)));
        let start = span.start.max(taken);
        (start < end).then(|| Span::new(start, end))
    }

    /// Takes in an exchange; returns how long the connection had been idle before it, in
    /// nanoseconds.
    pub(super) fn carry(&mut self, exchange: &Exchange) -> Option<u64> {
        self.exchanges += u64::from(!exchange.outcome.is_refusal());
        self.carried_response |= exchange.outcome.may_be_ok();
        let gap = match &self.last {
            Some(last) if exchange.at >= last.end => Some(exchange.at.since(last.end)),
            _ => None,
        };
        let later = self
            .last
            .as_ref()
            .is_none_or(|last| exchange.end >= last.end);
        // streams that end after a GOAWAY do not take it back
        let before = self.last.as_ref().and_then(|last| last.close_sent_by);
        let announced = before.or(announced_by(exchange));
        if later {
            self.last = Some(Last::of(exchange));
        }
        if let Some(last) = &mut self.last {
            // a client that had asked for the end knew of it
            last.stale &= before != Some(Side::Client);
            last.close_sent_by = announced;
        }
        gap
    }

    /// What an announced end means for the connection that is opened in the place of this one.
    /// `idle` is how long nothing was in flight before it, in nanoseconds. A GOAWAY is part of no
    /// response, and neither is the 408 of a server that waits no longer (RFC 9110 section 15.5.9).
    pub(super) fn announced(&self, by: Side, carried: u64, idle: u64) -> OpenReason {
        let last = self.last.as_ref();
        let is_apart = idle >= AT_ONCE && last.is_some_and(|last| last.close_sent_by.is_none());
        match by {
            Side::Client => OpenReason::ClientAnnounced,
            Side::Server if is_apart && !self.multiplexes() => OpenReason::ServerIdle,
            Side::Server if last.is_some_and(Last::announces_after_error) => OpenReason::AfterError,
            Side::Server if carried > 1 || (self.multiplexes() && idle >= AT_ONCE) => {
                OpenReason::ServerLimit
            }
            Side::Server => OpenReason::ServerAnnouncedAtOnce,
        }
    }

    /// Whether its end has been announced, so that nothing more will be sent on it.
    pub fn is_retiring(&self) -> bool {
        self.last
            .as_ref()
            .is_some_and(|last| last.close_sent_by.is_some())
    }

    /// Whether several exchanges may be on it at once.
    pub fn multiplexes(&self) -> bool {
        multiplexes(&self.connection)
    }
}

/// Streams that a connection takes at the same time, where it multiplexes.
pub(super) fn streams(connection: &Connection) -> Option<u32> {
    let announced = connection.terms.max_streams.unwrap_or(STREAMS);
    multiplexes(connection).then_some(announced.max(1))
}

/// Whether a connection carries several exchanges at once.
pub(super) fn multiplexes(connection: &Connection) -> bool {
    connection.protocol.is_some_and(Protocol::has_streams)
}
