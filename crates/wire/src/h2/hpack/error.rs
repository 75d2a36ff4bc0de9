//! Why a header block cannot be decoded. Each error is fatal for the connection: COMPRESSION_ERROR
//! (RFC 9113 section 4.3).

/// The rule of RFC 7541 or the limit that a header block broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The block ends inside a field.
    #[error("header block ends inside a field")]
    Truncated,
    /// An integer has more than 32 bits (RFC 7541 section 5.1).
    #[error("integer of more than 32 bits in a header block")]
    IntegerTooLong,
    /// An index names no entry (RFC 7541 section 2.3.3).
    #[error("index {index} names no entry of the header table, which has {entries}")]
    Index {
        /// The index, as sent.
        index: u32,
        /// Number of entries, including the 61 static ones.
        entries: u32,
    },
    /// A Huffman string contains EOS, or does not end in at most seven 1 bits (RFC 7541 section
    /// 5.2).
    #[error("bad Huffman code in a header block")]
    Huffman,
    /// A table size update exceeds the size in SETTINGS, or follows a field (RFC 7541 sections 4.2
    /// and 6.3).
    #[error("header table size update to {size}, allowed at the start of a block up to {max}")]
    SizeUpdate {
        /// The requested size, in bytes.
        size: u32,
        /// The allowed size, in bytes.
        max: u32,
    },
    /// The decoded fields exceed the limit: a small block can refer to a large entry many times.
    #[error(
        "header list longer than {limit} bytes: raise the decoder's limit if the peer means it"
    )]
    ListTooLong {
        /// The limit in bytes, according to RFC 9113 section 6.5.2 (name + value + 32 per field).
        limit: usize,
    },
}
