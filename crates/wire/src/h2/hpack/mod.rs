//! HPACK, the header compression of HTTP/2 (RFC 7541), both ways.
//!
//! [`Decoder`] hands each field to a closure and copies nothing but Huffman strings; [`Encoder`] appends to the
//! caller's buffer and does what it is told about indexing. [`BlockCache`] recognises a block that it has seen. Nothing
//! here knows what a field means, nor whether HTTP/2 allows it.

mod block_cache;
mod decoder;
mod encoder;
mod error;
mod huffman;
mod integer;
mod static_table;
mod table;

pub use block_cache::BlockCache;
pub use decoder::{Block, Decoder, Field};
pub use encoder::{Encoder, Indexing};
pub use error::Error;

/// The size of a dynamic table before any SETTINGS (RFC 9113 section 6.5.2), in bytes as RFC 7541 section 4.1 counts them.
pub const DEFAULT_TABLE_SIZE: u32 = 4096;
