//! Both directions of one connection, and how it opened and closed.

use super::held_runs::HeldRuns;
use super::stream::{Limits, Stream};
use super::{Run, Segment};
use crate::Side;

/// How an end closed the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TcpCloseKind {
    /// FIN: after all data.
    Fin,
    /// RST: immediately.
    Rst,
}

/// The first sign of the connection's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Close {
    /// The side that sent it.
    pub by: Side,
    /// FIN or RST.
    pub how: TcpCloseKind,
    /// The time in nanoseconds.
    pub at: u64,
    /// Number of bytes of the other side that this side had acknowledged, including this segment.
    pub acknowledged: u64,
}

/// One TCP connection.
#[derive(Debug)]
pub struct Flow {
    client: Stream,
    server: Stream,
    limits: Limits,
    /// Data of one direction that waits for a gap in the other.
    held: HeldRuns,
    /// The client's first sequence number after its SYN, according to the server's SYN.
    client_start: Option<u32>,
    close: Option<Close>,
}

impl Flow {
    /// A connection without segments.
    pub fn new(limits: Limits) -> Self {
        Self {
            client: Stream::new(limits),
            server: Stream::new(limits),
            limits,
            held: HeldRuns::default(),
            client_start: None,
            close: None,
        }
    }

    /// One direction.
    pub fn stream(&self, side: Side) -> &Stream {
        side.pick(&self.client, &self.server)
    }

    /// Number of bytes that wait for gaps to be filled, in both directions.
    pub fn waiting(&self) -> usize {
        self.client.waiting() + self.server.waiting() + self.held.bytes()
    }

    /// The first FIN or RST.
    pub fn close(&self) -> Option<Close> {
        self.close
    }

    /// Whether this segment opens another connection between the same addresses and ports, which
    /// needs a new flow. In a capture the SYN may come after its SYN-ACK.
    pub fn is_reopened_by(&self, from: Side, segment: &Segment<'_>) -> bool {
        let opens = from == Side::Client && segment.syn && segment.ack.is_none();
        let has_segments = self.client.facts().segments + self.server.facts().segments > 0;
        opens && has_segments && self.client_start() != Some(segment.seq.wrapping_add(1))
    }

    /// The client's first sequence number after its SYN, or of its first captured segment.
    pub fn client_start(&self) -> Option<u32> {
        self.client.start().or(self.client_start)
    }

    /// Adds a segment, and passes on the data of either direction that is in order now. While one
    /// direction waits for a gap, later data of the other waits, too: a response must not precede
    /// its request.
    pub fn push(&mut self, from: Side, segment: &Segment<'_>, mut emit: impl FnMut(Side, Run<'_>)) {
        let held = &mut self.held;
        let (this, other) = from.order(&mut self.client, &mut self.server);
        let waits = other.is_blocked() || !held.is_empty();
        this.push(segment, |run| match waits {
            true => held.hold(from, run),
            false => emit(from, run),
        });
        if from == Side::Server && segment.syn {
            self.client_start = self.client_start.or(segment.ack);
        }
        if let Some(ack) = segment.ack {
            let waits = this.is_blocked() || !held.is_empty();
            other.acknowledge(ack, segment.at, |run| match waits {
                true => held.hold(from.other(), run),
                false => emit(from.other(), run),
            });
        }
        let is_blocked = this.is_blocked() || other.is_blocked();
        if !held.is_empty() && (!is_blocked || held.bytes() > self.limits.bytes) {
            held.release(&mut emit);
        }
        if self.close.is_none() && (segment.fin || segment.rst) {
            let how = if segment.rst {
                TcpCloseKind::Rst
            } else {
                TcpCloseKind::Fin
            };
            self.close = Some(Close {
                by: from,
                how,
                at: segment.at,
                acknowledged: other.acknowledged(),
            });
        }
    }

    /// Passes on all data that waits; no more segments follow.
    pub fn finish(&mut self, mut emit: impl FnMut(Side, Run<'_>)) {
        let held = &mut self.held;
        self.client.finish(|run| held.hold(Side::Client, run));
        self.server.finish(|run| held.hold(Side::Server, run));
        held.release(&mut emit);
    }
}
