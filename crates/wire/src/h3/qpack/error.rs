//! Why a header block or an instruction is refused.

use super::super::error::ErrorCode;
use crate::h2::hpack;

/// The rule of RFC 9204 or the limit that was broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// An integer or a string, which are those of HPACK, is malformed.
    #[error(transparent)]
    Text(#[from] hpack::Error),
    /// An index names no entry of the static table.
    #[error("index {0} names no entry of the static table, which has 99")]
    Index(u32),
    /// The block refers to a dynamic table, which our settings do not allow.
    #[error("a reference to the dynamic table, although our SETTINGS allow none")]
    Dynamic,
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
