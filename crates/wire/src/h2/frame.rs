//! The contents of a frame (RFC 9113 section 6). Payloads are borrowed from the input or from the
//! reader.

use std::ops::Range;

use super::error::{Error, ErrorCode};
use super::settings::SettingsPayload;
use super::{flag, kind};

/// One frame, or a part of a DATA frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame<'a> {
    /// The client's connection preface. It is not a frame, but the first thing that a client sends.
    Preface,
    /// DATA, or the part of it that has arrived.
    Data(Data<'a>),
    /// HEADERS with all its CONTINUATION frames.
    Headers(Headers<'a>),
    /// PRIORITY: deprecated, still sent.
    Priority {
        /// The stream.
        stream: u32,
        /// The stream that it depends on (RFC 7540 section 5.3).
        dependency: u32,
    },
    /// RST_STREAM.
    Reset {
        /// The stream.
        stream: u32,
        /// The reason.
        code: ErrorCode,
    },
    /// SETTINGS.
    Settings(SettingsPayload<'a>),
    /// SETTINGS with ACK.
    SettingsAck,
    /// PUSH_PROMISE with all its CONTINUATION frames.
    PushPromise(PushPromise<'a>),
    /// PING.
    Ping {
        /// It answers a PING of ours.
        ack: bool,
        /// The answer repeats these bytes.
        payload: [u8; 8],
    },
    /// GOAWAY: no more streams on this connection.
    GoAway {
        /// The highest stream that was or will be processed.
        last_stream: u32,
        /// The reason; `NO_ERROR` is a graceful shutdown.
        code: ErrorCode,
        /// Text for people, unvalidated.
        debug: &'a [u8],
    },
    /// WINDOW_UPDATE.
    WindowUpdate {
        /// The stream, or 0 for the connection.
        stream: u32,
        /// How many more bytes may be sent, at least 1.
        increment: u32,
    },
    /// A frame of a type that RFC 9113 does not define: it must be ignored.
    Unknown {
        /// Its type.
        kind: u8,
        /// Its flags.
        flags: u8,
        /// Its stream.
        stream: u32,
        /// Its payload.
        payload: &'a [u8],
    },
}

/// A part of a DATA frame; a frame that arrives whole is one part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Data<'a> {
    /// The stream.
    pub stream: u32,
    /// Payload without padding; empty for a frame that only ends the stream.
    pub bytes: &'a [u8],
    /// Bytes that count against the flow-control windows, including padding.
    pub flow: u32,
    /// This part completes the frame.
    pub complete: bool,
    /// This part ends the stream.
    pub end_stream: bool,
}

/// A header block: a request, a response, or trailers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Headers<'a> {
    /// The stream.
    pub stream: u32,
    /// The complete header block, for [`hpack::Decoder`](super::hpack::Decoder).
    pub block: &'a [u8],
    /// The sender sends nothing more on this stream.
    pub end_stream: bool,
    /// The stream that this one depends on, if sent: deprecated (RFC 7540 section 5.3).
    pub dependency: Option<u32>,
    /// Number of its frames: 1, plus one per CONTINUATION.
    pub frames: u32,
}

/// The announcement of a stream that the server opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PushPromise<'a> {
    /// The stream of the request that caused the push.
    pub stream: u32,
    /// The stream of the pushed response.
    pub promised: u32,
    /// The complete header block of the promised request.
    pub block: &'a [u8],
    /// Number of its frames: 1, plus one per CONTINUATION.
    pub frames: u32,
}

/// The nine bytes before each payload (RFC 9113 section 4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) length: u32,
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
}

impl Head {
    pub(super) fn parse(bytes: [u8; 9]) -> Self {
        let [a, b, c, kind, flags, s0, s1, s2, s3] = bytes;
        Self {
            length: u32::from_be_bytes([0, a, b, c]),
            kind,
            flags,
            stream: u32::from_be_bytes([s0, s1, s2, s3]) & STREAM_MASK,
        }
    }

    pub(super) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Checks the rules that need no payload, so that a bad frame is refused before its payload
    /// arrives.
    /// Whether it carries a part of a message: a header block or a body.
    pub(super) fn is_of_message(&self) -> bool {
        matches!(
            self.kind,
            kind::DATA | kind::HEADERS | kind::PUSH_PROMISE | kind::CONTINUATION
        )
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        let (frame, sizes) = match self.kind {
            kind::DATA => ("DATA", 0..=u32::MAX),
            kind::HEADERS => ("HEADERS", 0..=u32::MAX),
            kind::PRIORITY => ("PRIORITY", 5..=5),
            kind::RST_STREAM => ("RST_STREAM", 4..=4),
            kind::SETTINGS if self.has(flag::ACK) => ("SETTINGS", 0..=0),
            kind::SETTINGS => ("SETTINGS", 0..=u32::MAX),
            kind::PUSH_PROMISE => ("PUSH_PROMISE", 4..=u32::MAX),
            kind::PING => ("PING", 8..=8),
            kind::GOAWAY => ("GOAWAY", 8..=u32::MAX),
            kind::WINDOW_UPDATE => ("WINDOW_UPDATE", 4..=4),
            kind::CONTINUATION => ("CONTINUATION", 0..=u32::MAX),
            _ => return Ok(()),
        };
        let odd_settings = self.kind == kind::SETTINGS && !self.length.is_multiple_of(6);
        if !sizes.contains(&self.length) || odd_settings {
            return Err(Error::FrameSize {
                frame,
                length: self.length,
            });
        }
        match (self.kind, self.stream) {
            (kind::SETTINGS | kind::PING | kind::GOAWAY, 1..) => {
                Err(Error::Protocol("SETTINGS, PING or GOAWAY on a stream"))
            }
            (kind::WINDOW_UPDATE, _) | (_, 1..) => Ok(()),
            (kind::SETTINGS | kind::PING | kind::GOAWAY, 0) => Ok(()),
            (_, 0) => Err(Error::Protocol("a frame of a stream on stream 0")),
        }
    }

    /// The range of the payload of HEADERS or PUSH_PROMISE between pad length and padding.
    pub(super) fn unpad(&self, payload: &[u8]) -> Result<Range<usize>, Error> {
        if !self.has(flag::PADDED) {
            return Ok(0..payload.len());
        }
        let (&padding, rest) = payload.split_first().ok_or(PADDING)?;
        let len = rest
            .len()
            .checked_sub(usize::from(padding))
            .ok_or(PADDING)?;
        Ok(1..1 + len)
    }
}

pub(super) const PADDING: Error = Error::Protocol("padding longer than its frame");
pub(super) const STREAM_MASK: u32 = 0x7fff_ffff;

impl<'a> Frame<'a> {
    /// Checks the rules about the payload.
    pub(super) fn check(head: Head, payload: &[u8]) -> Result<(), Error> {
        match (head.kind, payload) {
            (kind::WINDOW_UPDATE, [0 | 0x80, 0, 0, 0]) => {
                Err(Error::Protocol("WINDOW_UPDATE by 0"))
            }
            _ => Ok(()),
        }
    }

    /// Parses a checked frame with a complete payload: all types except DATA and those with header
    /// blocks.
    pub(super) fn parse(head: Head, payload: &'a [u8]) -> Self {
        let stream = head.stream;
        match (head.kind, payload) {
            (kind::PRIORITY, &[a, b, c, d, _weight]) => Self::Priority {
                stream,
                dependency: u32::from_be_bytes([a, b, c, d]) & STREAM_MASK,
            },
            (kind::RST_STREAM, &[a, b, c, d]) => Self::Reset {
                stream,
                code: ErrorCode(u32::from_be_bytes([a, b, c, d])),
            },
            (kind::SETTINGS, _) if head.has(flag::ACK) => Self::SettingsAck,
            (kind::SETTINGS, _) => Self::Settings(SettingsPayload::new(payload)),
            (kind::PING, &[a, b, c, d, e, f, g, h]) => Self::Ping {
                ack: head.has(flag::ACK),
                payload: [a, b, c, d, e, f, g, h],
            },
            (kind::GOAWAY, &[a, b, c, d, e, f, g, h, ref debug @ ..]) => Self::GoAway {
                last_stream: u32::from_be_bytes([a, b, c, d]) & STREAM_MASK,
                code: ErrorCode(u32::from_be_bytes([e, f, g, h])),
                debug,
            },
            (kind::WINDOW_UPDATE, &[a, b, c, d]) => Self::WindowUpdate {
                stream,
                increment: u32::from_be_bytes([a, b, c, d]) & STREAM_MASK,
            },
            (kind, payload) => Self::Unknown {
                kind,
                flags: head.flags,
                stream,
                payload,
            },
        }
    }
}
