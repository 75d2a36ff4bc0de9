//! HTTP/3 (RFC 9114): [`FrameReader`] and [`qpack`] read, [`writer`] writes, for both ends.
//!
//! The caller has the streams: each gets a reader of its own. DATA is passed on as it arrives,
//! every other frame complete. Nothing here knows QUIC, nor which frame may follow which.

pub mod qpack;
pub mod writer;

mod error;
mod frame;
mod peer_stream;
mod reader;
mod settings;

pub use error::{Error, ErrorCode};
pub use frame::{Frame, StreamKind};
pub use peer_stream::PeerStream;
pub use reader::{FrameReader, StreamKindReader};
pub use settings::{Setting, SettingsPayload};

/// The ALPN identifier (RFC 9114 section 3.1).
pub const ALPN: &[u8] = b"h3";

/// Frame types (RFC 9114 section 7.2).
mod kind {
    pub(super) const DATA: u64 = 0x0;
    pub(super) const HEADERS: u64 = 0x1;
    pub(super) const CANCEL_PUSH: u64 = 0x3;
    pub(super) const SETTINGS: u64 = 0x4;
    pub(super) const PUSH_PROMISE: u64 = 0x5;
    pub(super) const GOAWAY: u64 = 0x7;
    pub(super) const MAX_PUSH_ID: u64 = 0xd;

    /// Types of HTTP/2 that HTTP/3 forbids (RFC 9114 section 7.2.8).
    pub(super) const RESERVED: [u64; 4] = [0x2, 0x6, 0x8, 0x9];
}
