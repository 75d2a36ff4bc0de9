//! TLS: what passive readers make of real handshakes between rustls ends in memory, and of hostile bytes.

mod decrypting;
mod hostile;
pub(crate) mod tape;
mod watching;
