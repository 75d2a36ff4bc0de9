//! Error codes, and the reasons why bytes are not HTTP/3.

use super::qpack;
use crate::error_codes::error_codes;

/// The code of a reset, a STOP_SENDING or a CONNECTION_CLOSE (RFC 9114 section 8.1); unknown codes
/// are kept as sent.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ErrorCode(pub u64);

error_codes! {
    H3_NO_ERROR = 0x100, "Graceful.";
    H3_GENERAL_PROTOCOL_ERROR = 0x101, "The peer broke a rule that has no code of its own.";
    H3_INTERNAL_ERROR = 0x102, "The sender failed.";
    H3_STREAM_CREATION_ERROR = 0x103, "A stream that may not be opened.";
    H3_CLOSED_CRITICAL_STREAM = 0x104, "A stream ended that the connection needs.";
    H3_FRAME_UNEXPECTED = 0x105, "A frame that is not allowed there.";
    H3_FRAME_ERROR = 0x106, "A frame of a wrong layout or size.";
    H3_EXCESSIVE_LOAD = 0x107, "The peer loads the sender too much.";
    H3_ID_ERROR = 0x108, "A stream or push id that is not allowed.";
    H3_SETTINGS_ERROR = 0x109, "A setting that is not allowed.";
    H3_MISSING_SETTINGS = 0x10a, "The control stream does not begin with SETTINGS.";
    H3_REQUEST_REJECTED = 0x10b, "The request was not processed: it may be sent again.";
    H3_REQUEST_CANCELLED = 0x10c, "The request or its response is no longer wanted.";
    H3_REQUEST_INCOMPLETE = 0x10d, "The request ended before it was complete.";
    H3_MESSAGE_ERROR = 0x10e, "A message is malformed.";
    H3_CONNECT_ERROR = 0x10f, "The tunnelled connection failed.";
    H3_VERSION_FALLBACK = 0x110, "The request must be made by HTTP/1.1.";
    QPACK_DECOMPRESSION_FAILED = 0x200, "A header block cannot be decoded.";
    QPACK_ENCODER_STREAM_ERROR = 0x201, "The encoder's instructions are not allowed.";
    QPACK_DECODER_STREAM_ERROR = 0x202, "The decoder's instructions are not allowed.";
}

/// The code for the peer.
impl From<Error> for ErrorCode {
    fn from(error: Error) -> ErrorCode {
        error.code()
    }
}

/// Why bytes of a stream are not HTTP/3. Each error is fatal for the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A frame is longer than allowed.
    #[error("frame of {length} bytes, {limit} allowed")]
    FrameTooLong {
        /// The announced payload length, in bytes.
        length: u64,
        /// The limit, in bytes.
        limit: usize,
    },
    /// A frame's payload does not fit its type.
    #[error("{0} has another length than its contents")]
    Layout(&'static str),
    /// A frame type of HTTP/2 that HTTP/3 forbids.
    #[error("frame type 0x{0:x}, which HTTP/3 reserves")]
    Reserved(u64),
    /// A setting is not allowed.
    #[error("{0}")]
    Settings(&'static str),
    /// The stream ends inside a frame.
    #[error("the stream ends inside a frame")]
    Truncated,
    /// Instructions of QPACK or a header block.
    #[error(transparent)]
    Qpack(#[from] qpack::Error),
}

impl Error {
    /// The code for the peer.
    pub fn code(self) -> ErrorCode {
        match self {
            Error::FrameTooLong { .. } => ErrorCode::H3_EXCESSIVE_LOAD,
            Error::Layout(_) | Error::Truncated => ErrorCode::H3_FRAME_ERROR,
            Error::Reserved(_) => ErrorCode::H3_FRAME_UNEXPECTED,
            Error::Settings(_) => ErrorCode::H3_SETTINGS_ERROR,
            Error::Qpack(error) => error.code(),
        }
    }
}
