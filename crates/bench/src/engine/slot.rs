//! One place for a connection: what it is doing, and what it waits for.

use super::BenchConnection;
use super::channel::Channel;
use super::conversation::Ended;
use intact_client::Dial;
use intact_ledger::{CloseKind, Closed, Connection, ConnectionBytes, Event, Nanos, Side, Sink};

/// The exchange that was granted and waits for its connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingExchange {
    pub(crate) wanted: Nanos,
    pub(crate) warmup: bool,
}

/// What a slot is doing.
pub(crate) enum Phase {
    /// It has no connection.
    Vacant,
    /// It is opening one.
    Dialing(Box<Dial>, PendingExchange),
    /// It has one.
    Open(Box<Open>),
    /// The round is over for it.
    Done,
}

/// A place for one connection after another.
pub(crate) struct Slot {
    pub(crate) phase: Phase,
    /// Tells events of its present socket from those of earlier ones.
    pub(crate) generation: u32,
    /// When to ask the pace again.
    pub(crate) wake: Option<Nanos>,
    /// Dials in this round.
    pub(crate) dials: u32,
    /// Failed dials in a row.
    pub(crate) failures: u32,
}

impl Slot {
    pub(crate) fn new() -> Slot {
        Slot {
            phase: Phase::Vacant,
            generation: 0,
            wake: None,
            dials: 0,
            failures: 0,
        }
    }
}

/// An open connection.
pub(crate) struct Open {
    pub(crate) channel: Channel,
    pub(crate) conversation: BenchConnection,
    pub(crate) connection: Connection,
    /// What is to be sent.
    pub(crate) out: Vec<u8>,
    /// The server has closed its side.
    pub(crate) ended: Option<Ended>,
}

impl Open {
    /// The server has closed its side with a FIN, after everything that was read.
    pub(crate) fn end_by_fin(&mut self, at: Nanos, sink: &mut impl Sink) {
        self.ended = Some(Ended {
            by: Some(Side::Server),
            how: Some(CloseKind::Fin),
        });
        self.conversation.end(None, at, sink);
    }

    /// Closes it and records the end. What the server was seen to do goes before what we do.
    pub(crate) fn close(mut self, at: Nanos, sink: &mut impl Sink) {
        let ended = self.ended.unwrap_or(Ended {
            by: Some(Side::Client),
            how: Some(CloseKind::Fin),
        });
        if self.ended.is_none() {
            self.conversation.goodbye(&mut self.out);
            self.channel.say_goodbye(&self.out);
        }
        let bytes = ConnectionBytes {
            sent: self.channel.sent,
            received: self.channel.received,
        };
        let closed = Closed {
            connection: self.connection.id,
            variant: self.connection.variant,
            round: self.connection.round,
            close: self.conversation.close(ended, at, bytes),
        };
        sink.record(Event::Closed(&closed));
    }
}
