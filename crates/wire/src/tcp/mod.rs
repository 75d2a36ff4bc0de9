//! TCP segments to bytes that keep their times (RFC 9293), from captures that lose, repeat and reorder packets.
//!
//! [`Flow`] joins both directions of one connection. It decides nothing about addresses, checksums or which end is
//! the client: the caller has parsed the packets and knows. All times are the caller's nanoseconds.

mod flow;
mod held_runs;
mod segment_delays;
mod stream;

pub use flow::{Close, Flow, TcpCloseKind};
pub use segment_delays::{SegmentDelay, SegmentDelays};
pub use stream::{Limits, Stream, StreamFacts};

/// One TCP segment, as far as reassembly needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Segment<'a> {
    /// The sequence number, of the SYN itself where there is one.
    pub seq: u32,
    /// The acknowledgement number, where the flag is set.
    pub ack: Option<u32>,
    /// SYN.
    pub syn: bool,
    /// FIN.
    pub fin: bool,
    /// RST.
    pub rst: bool,
    /// The payload that was captured.
    pub payload: &'a [u8],
    /// The payload's length on the wire in bytes, by the IP header; a capture may have cut the rest off.
    pub len: u32,
    /// When it was captured, in nanoseconds.
    pub at: u64,
}

/// A stretch of the byte stream, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Run<'a> {
    /// Bytes, never empty, each exactly once.
    Bytes {
        /// The bytes.
        bytes: &'a [u8],
        /// When the receiver could have them: the time of the packet that closed the last hole before their end.
        at: u64,
    },
    /// Bytes that are not in the capture.
    Gap {
        /// How many.
        len: u64,
        /// The time of the packet behind the hole.
        at: u64,
    },
}
