//! Error codes, and the reasons why bytes are not HTTP/2.

use super::hpack;
use crate::error_codes::error_codes;

/// The code of a RST_STREAM or a GOAWAY (RFC 9113 section 7); unknown codes are kept as sent.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ErrorCode(pub u32);

error_codes! {
    NO_ERROR = 0x0, "Graceful.";
    PROTOCOL_ERROR = 0x1, "The peer broke a rule that has no code of its own.";
    INTERNAL_ERROR = 0x2, "The sender failed.";
    FLOW_CONTROL_ERROR = 0x3, "The peer overran a window.";
    SETTINGS_TIMEOUT = 0x4, "No SETTINGS acknowledgement came.";
    STREAM_CLOSED = 0x5, "A frame for a stream that is half closed.";
    FRAME_SIZE_ERROR = 0x6, "A frame of a forbidden size.";
    REFUSED_STREAM = 0x7, "The stream was not processed: its request may be sent again.";
    CANCEL = 0x8, "The stream is no longer wanted.";
    COMPRESSION_ERROR = 0x9, "The header compression is out of step.";
    CONNECT_ERROR = 0xa, "The tunnelled connection failed.";
    ENHANCE_YOUR_CALM = 0xb, "The peer loads the sender too much.";
    INADEQUATE_SECURITY = 0xc, "The transport is not safe enough.";
    HTTP_1_1_REQUIRED = 0xd, "The request must be made by HTTP/1.1.";
}

/// Why a peer's frame is refused. Each error is fatal for the connection; a frame reader returns
/// its own on every later call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The stream does not start with the preface of HTTP/2.
    #[error("expected the HTTP/2 connection preface: the peer speaks another protocol")]
    Preface,
    /// A frame is longer than allowed.
    #[error("frame of {length} bytes, {limit} allowed")]
    FrameTooLong {
        /// The announced payload length, in bytes.
        length: u32,
        /// The limit, in bytes: ours from SETTINGS_MAX_FRAME_SIZE.
        limit: u32,
    },
    /// The length of a frame does not fit its type.
    #[error("{frame} frame of {length} bytes")]
    FrameSize {
        /// The frame type.
        frame: &'static str,
        /// The announced payload length, in bytes.
        length: u32,
    },
    /// A frame is not allowed at this place, or has an invalid value.
    #[error("{0}")]
    Protocol(&'static str),
    /// A window has no room for a frame, or becomes too large.
    #[error("{0}")]
    FlowControl(&'static str),
    /// A frame is on a stream that is closed.
    #[error("{0}")]
    StreamClosed(&'static str),
    /// A header block cannot be decoded.
    #[error(transparent)]
    Compression(#[from] hpack::Error),
    /// A header block has more frames or bytes than allowed. Without the limit, a peer could keep
    /// the reader busy.
    #[error("header block longer than {limit} bytes, or in too many CONTINUATION frames")]
    BlockTooLong {
        /// The limit, in bytes.
        limit: usize,
    },
}

impl Error {
    /// The code for the GOAWAY that reports the error.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Preface | Self::Protocol(_) => ErrorCode::PROTOCOL_ERROR,
            Self::FlowControl(_) => ErrorCode::FLOW_CONTROL_ERROR,
            Self::StreamClosed(_) => ErrorCode::STREAM_CLOSED,
            Self::Compression(_) => ErrorCode::COMPRESSION_ERROR,
            Self::FrameTooLong { .. } | Self::FrameSize { .. } => ErrorCode::FRAME_SIZE_ERROR,
            Self::BlockTooLong { .. } => ErrorCode::ENHANCE_YOUR_CALM,
        }
    }
}
