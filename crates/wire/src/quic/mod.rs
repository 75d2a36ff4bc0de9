//! QUIC (RFC 9000) from outside: the packets of a datagram by their heads, and the client's hello, which is encrypted with keys
//! that anyone can make who sees the packet (RFC 9001 section 5.2). Nothing behind the hello can be read.

mod assembly;
mod greeting;
mod head;
mod initial;

pub use assembly::Assembly;
pub use greeting::Greeting;
pub use head::{Kind, LongHead, Version, packets};
