//! QUIC (RFC 9000) without keys: the packets of a datagram by their headers, the client's hello,
//! and the transport parameters that TLS carries.
//!
//! The keys of the hello are derived from the packet itself (RFC 9001 section 5.2). Nothing after
//! the hello can be read.

mod assembly;
mod client_hello;
mod initial;
pub(crate) mod long_header;
mod transport_parameters;

pub use assembly::Assembly;
pub use client_hello::QuicClientHello;
pub use long_header::{Kind, LongHeader, Version, packets};
pub use transport_parameters::TransportParameters;
