//! QUIC (RFC 9000) without keys: the packets of a datagram by their headers, and the client's
//! hello.
//!
//! The keys of the hello are derived from the packet itself (RFC 9001 section 5.2). Nothing after
//! the hello can be read.

mod assembly;
mod client_hello;
mod initial;
pub(crate) mod long_header;

pub use assembly::Assembly;
pub use client_hello::QuicClientHello;
pub use long_header::{Kind, LongHeader, Version, packets};
