//! HPACK, the header compression of HTTP/2 (RFC 7541), in both directions.
//!
//! [`Decoder`] passes each field to a closure and copies Huffman strings only. [`Encoder`] appends
//! to the caller's buffer; the caller decides about indexing. [`BlockCache`] recognises a repeated
//! block. Nothing here knows the meaning of a field, nor whether HTTP/2 allows it.

mod block_cache;
mod decoder;
mod encoder;
mod error;
pub(crate) mod huffman;
pub(crate) mod integer;
pub(crate) mod static_table;
mod table;
pub(crate) mod text;

pub use block_cache::BlockCache;
pub use decoder::{Block, Decoder, Field};
pub use encoder::{Encoder, Indexing};
pub use error::Error;

/// Initial size of a dynamic table (RFC 9113 section 6.5.2), in bytes as RFC 7541 section 4.1
/// counts them.
pub const DEFAULT_TABLE_SIZE: u32 = 4096;
