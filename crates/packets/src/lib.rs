//! Packets to connections and exchanges: of a capture, or of a ring that the kernel fills.
//!
//! [`link`], [`ether`], [`ip`] and [`tunnel`] strip the headers around a packet.
//! [`ConnectionTable`] finds the connection, [`tcp_connection`] orders its bytes, and `observe`
//! reads them. Content that cannot be decoded is reported, never guessed. No files, no sockets, no
//! clock.

mod connection_table;
mod coverage;
mod dns_lookups;
mod ether;
pub mod event_writer;
mod fragments;
mod ip;
mod ladder;
mod limits;
mod link;
mod opaque;
mod opening;
mod ppp;
mod quic;
mod selection;
mod tcp_connection;
mod translation;
mod tunnel;
mod udp_tunnel;

pub use connection_table::{ConnectionTable, PacketCounts};
pub use event_writer::{EventWriter, RunState, SecretSource};
pub use ladder::{Ladder, LadderSelection, LadderStep};
pub use opaque::OpaquePackets;
pub use selection::{Choice, Chosen, ReadAll, Selection};

/// One packet.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Nanoseconds since 1970.
    pub at: u64,
    /// The link type, as tcpdump numbers them.
    pub link: u32,
    /// The captured bytes.
    pub bytes: &'a [u8],
    /// The packet was longer on the wire.
    pub is_cut: bool,
}
