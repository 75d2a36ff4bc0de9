//! Why a header block or an instruction is refused.

use super::super::error::ErrorCode;
use crate::h2::hpack;

/// The rule of RFC 9204 or the limit that was broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The block ends inside a field.
    #[error("header block ends inside a field")]
    Truncated,
    /// An integer has more than 32 bits.
    #[error("integer of more than 32 bits in a header block")]
    IntegerTooLong,
    /// An index names no entry of the static table.
    #[error("index {0} names no entry of the static table, which has 99")]
    Index(u32),
    /// The block refers to a dynamic table, which our settings do not allow.
    #[error("a reference to the dynamic table, although our SETTINGS allow none")]
    Dynamic,
    /// A Huffman string contains EOS, or does not end in at most seven 1 bits.
    #[error("bad Huffman code in a header block")]
    Huffman,
    /// The decoded fields exceed the limit.
    #[error("header list longer than {limit} bytes")]
    ListTooLong {
        /// The limit in bytes: name + value + 32 per field.
        limit: usize,
    },
    /// The peer's encoder uses a dynamic table, which our settings do not allow.
    #[error("the peer's QPACK encoder uses a dynamic table, although our SETTINGS allow none")]
    EncoderInstruction,
    /// The peer's decoder acknowledges what was not sent.
    #[error("the peer's QPACK decoder acknowledges entries that it never got")]
    DecoderInstruction,
}

impl Error {
    /// The code for the peer.
    pub fn code(self) -> ErrorCode {
        match self {
            Error::ListTooLong { .. } => ErrorCode::H3_EXCESSIVE_LOAD,
            Error::EncoderInstruction => ErrorCode::QPACK_ENCODER_STREAM_ERROR,
            Error::DecoderInstruction => ErrorCode::QPACK_DECODER_STREAM_ERROR,
            _ => ErrorCode::QPACK_DECOMPRESSION_FAILED,
        }
    }
}

/// Integers and Huffman strings are those of HPACK.
impl From<hpack::Error> for Error {
    fn from(error: hpack::Error) -> Error {
        match error {
            hpack::Error::IntegerTooLong => Error::IntegerTooLong,
            hpack::Error::Huffman => Error::Huffman,
            _ => Error::Truncated,
        }
    }
}
