//! HTTP/2 (RFC 9113): [`FrameReader`] and [`hpack`] read, [`writer`] writes, [`Http2Observer`]
//! observes both directions.
//!
//! The two ends of a connection get frames and header blocks only. The caller keeps streams, flow
//! control and settings, because a client must keep other state than an observer. DATA is passed on
//! as it arrives. Every other frame is passed on complete, with header blocks joined from their
//! CONTINUATION frames.

pub mod hpack;
pub mod writer;

mod block;
mod data;
mod error;
mod frame;
mod observer;
mod reader;
mod response_fields;
mod settings;
mod streams;

pub use error::{Error, ErrorCode};
pub use frame::{Data, Frame, Headers, PushPromise};
pub use observer::{GoAway, Http2Facts, Http2Observer, Lost};
pub use reader::{FrameReader, Limits};
pub use response_fields::ResponseFields;
pub use settings::{Setting, Settings, SettingsPayload, widen};
pub use streams::{MAX_STREAMS, is_grpc};

/// First bytes of a client (RFC 9113 section 3.4).
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The length of a frame's header, in bytes.
pub const FRAME_HEADER_LEN: usize = 9;

/// Largest frame payload that a peer must accept by default, in bytes.
pub const DEFAULT_MAX_FRAME_SIZE: u32 = 16_384;

/// Initial flow-control window of a connection and of a stream, in bytes.
pub const DEFAULT_WINDOW: u32 = 65_535;

/// Frame types (RFC 9113 section 6).
mod kind {
    pub(super) const DATA: u8 = 0x0;
    pub(super) const HEADERS: u8 = 0x1;
    pub(super) const PRIORITY: u8 = 0x2;
    pub(super) const RST_STREAM: u8 = 0x3;
    pub(super) const SETTINGS: u8 = 0x4;
    pub(super) const PUSH_PROMISE: u8 = 0x5;
    pub(super) const PING: u8 = 0x6;
    pub(super) const GOAWAY: u8 = 0x7;
    pub(super) const WINDOW_UPDATE: u8 = 0x8;
    pub(super) const CONTINUATION: u8 = 0x9;
}

/// Frame flags.
mod flag {
    pub(super) const END_STREAM: u8 = 0x1;
    pub(super) const ACK: u8 = 0x1;
    pub(super) const END_HEADERS: u8 = 0x4;
    pub(super) const PADDED: u8 = 0x8;
    pub(super) const PRIORITY: u8 = 0x20;
}
