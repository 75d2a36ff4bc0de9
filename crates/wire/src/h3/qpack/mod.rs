//! QPACK, the header compression of HTTP/3 (RFC 9204), without its dynamic table.
//!
//! A peer whose SETTINGS_QPACK_MAX_TABLE_CAPACITY is 0 must not get a dynamic reference, and must
//! not send one. So each block has the same meaning on every stream, and is decoded alone.

mod decoder;
mod encoder;
mod error;
mod instructions;
mod static_table;

pub use decoder::decode;
pub use encoder::{begin, encode};
pub use error::Error;
pub use instructions::{DecoderInstructions, EncoderInstructions};

pub use crate::h2::hpack::Field;
