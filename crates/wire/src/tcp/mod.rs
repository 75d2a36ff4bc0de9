//! TCP segments to bytes with times (RFC 9293), from captures that lose, repeat and reorder
//! packets.
//!
//! [`Flow`] joins both directions of one connection. It decides nothing about addresses, checksums
//! or the client's side: the caller has parsed the packets. All times are the caller's nanoseconds.

mod acknowledgements;
mod flow;
mod held_runs;
mod segment_delays;
mod stream;

pub use acknowledgements::Acknowledgements;
pub use flow::{Close, Flow, TcpCloseKind};
pub use segment_delays::{SegmentDelay, SegmentDelays};
pub use stream::{Limits, Stream, StreamFacts};

/// One TCP segment: the facts that reassembly needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Segment<'a> {
    /// The sequence number; for a SYN that of the SYN itself.
    pub seq: u32,
    /// The acknowledgement number, if the flag is set.
    pub ack: Option<u32>,
    /// SYN.
    pub syn: bool,
    /// FIN.
    pub fin: bool,
    /// RST.
    pub rst: bool,
    /// The captured payload.
    pub payload: &'a [u8],
    /// Length of the payload on the wire in bytes, according to the IP header; the capture may
    /// hold less.
    pub len: u32,
    /// When it was captured, in nanoseconds.
    pub at: u64,
}

impl Segment<'_> {
    /// The segment as its receiver reads it (RFC 9293 section 3.10.7). A RST is processed before
    /// anything else, so that its SYN, FIN and text (section 3.5.3) have no effect. Nor has the FIN
    /// of a first SYN, whose number cannot be validated.
    pub fn as_received(self) -> Self {
        match self {
            Segment { rst: true, .. } => Segment {
                syn: false,
                fin: false,
                payload: &[],
                len: 0,
                ..self
            },
            Segment {
                syn: true,
                ack: None,
                ..
            } => Segment { fin: false, ..self },
            _ => self,
        }
    }

    /// The segment without its payload.
    pub fn without_payload(&self) -> Segment<'static> {
        Segment {
            payload: &[],
            len: 0,
            seq: self.seq,
            ack: self.ack,
            syn: self.syn,
            fin: self.fin,
            rst: self.rst,
            at: self.at,
        }
    }
}

/// A contiguous part of the byte stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Run<'a> {
    /// Bytes, never empty, each exactly once.
    Bytes {
        /// The bytes.
        bytes: &'a [u8],
        /// When the receiver could read them: the time of the packet that filled the last gap
        /// before their end.
        at: u64,
    },
    /// Bytes that the capture lacks.
    Gap {
        /// How many.
        len: u64,
        /// The time of the packet after the gap.
        at: u64,
    },
}
