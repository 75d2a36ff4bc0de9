//! The frames, and the kinds of unidirectional streams. Payloads are borrowed from the input or
//! from the reader.

use super::error::Error;
use super::kind;
use super::settings::SettingsPayload;
use crate::quic::long_header::varint;
use crate::tls::Cursor;

/// One frame, or a part of a DATA frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame<'a> {
    /// DATA, or the part of it that has arrived.
    Data {
        /// The part.
        bytes: &'a [u8],
        /// Bytes of the frame's header, counted with its first part.
        overhead: usize,
    },
    /// HEADERS with a header block for [`qpack::decode`](super::qpack::decode).
    Headers {
        /// The block.
        block: &'a [u8],
        /// Bytes of the frame's header.
        overhead: usize,
    },
    /// SETTINGS, checked.
    Settings(SettingsPayload<'a>),
    /// GOAWAY with the first request stream, or push, that is not processed.
    GoAway(u64),
    /// CANCEL_PUSH.
    CancelPush(u64),
    /// MAX_PUSH_ID.
    MaxPushId(u64),
    /// PUSH_PROMISE.
    PushPromise,
    /// A frame of a type that RFC 9114 does not define: it must be ignored.
    Unknown(u64),
}

impl<'a> Frame<'a> {
    /// The frame of a type other than DATA with its whole payload.
    pub(super) fn parse(
        frame_type: u64,
        payload: &'a [u8],
        overhead: usize,
    ) -> Result<Frame<'a>, Error> {
        let id = |name| {
            let mut rest = Cursor(payload);
            match varint(&mut rest) {
                Some(id) if rest.0.is_empty() => Ok(id),
                _ => Err(Error::Layout(name)),
            }
        };
        Ok(match frame_type {
            kind::HEADERS => Frame::Headers {
                block: payload,
                overhead,
            },
            kind::SETTINGS => {
                let settings = SettingsPayload(payload);
                settings.check()?;
                Frame::Settings(settings)
            }
            kind::GOAWAY => Frame::GoAway(id("GOAWAY")?),
            kind::CANCEL_PUSH => Frame::CancelPush(id("CANCEL_PUSH")?),
            kind::MAX_PUSH_ID => Frame::MaxPushId(id("MAX_PUSH_ID")?),
            kind::PUSH_PROMISE => Frame::PushPromise,
            other => Frame::Unknown(other),
        })
    }
}

/// The kind of a unidirectional stream (RFC 9114 section 6.2, RFC 9204 section 4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StreamKind {
    /// The control stream.
    Control,
    /// A pushed response.
    Push,
    /// Instructions of the peer's QPACK encoder.
    QpackEncoder,
    /// Instructions of the peer's QPACK decoder.
    QpackDecoder,
    /// Another one, to be ignored.
    Unknown(u64),
}

impl StreamKind {
    /// The kind with this number.
    pub(super) fn of(number: u64) -> StreamKind {
        match number {
            0x0 => StreamKind::Control,
            0x1 => StreamKind::Push,
            0x2 => StreamKind::QpackEncoder,
            0x3 => StreamKind::QpackDecoder,
            other => StreamKind::Unknown(other),
        }
    }

    /// The number that begins the stream.
    pub(super) fn number(self) -> u64 {
        match self {
            StreamKind::Control => 0x0,
            StreamKind::Push => 0x1,
            StreamKind::QpackEncoder => 0x2,
            StreamKind::QpackDecoder => 0x3,
            StreamKind::Unknown(number) => number,
        }
    }
}
