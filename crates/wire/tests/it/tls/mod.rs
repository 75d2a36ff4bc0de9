//! TLS: passive readers on real handshakes between rustls ends in memory, and on hostile bytes.

mod decrypting;
mod hostile;
pub(crate) mod tape;
mod watching;
