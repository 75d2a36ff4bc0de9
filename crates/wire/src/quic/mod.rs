//! QUIC (RFC 9000) from outside: the packets of a datagram by their heads, and the client's hello, which is encrypted with keys
//! that anyone can make who sees the packet (RFC 9001 section 5.2). Nothing behind the hello can be read.

mod assembly;
mod client_hello;
mod initial;
mod long_header;

pub use assembly::Assembly;
pub use client_hello::QuicClientHello;
pub use long_header::{Kind, LongHeader, Version, packets};
