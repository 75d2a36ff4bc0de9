//! The frame that opens a header block (RFC 9113 sections 6.2 and 6.6): its own fields, and the
//! offset of the block.

use std::ops::Range;

use super::error::Error;
use super::frame::{Frame, Head, Headers, PushPromise, STREAM_MASK};
use super::{flag, kind};

/// The contents of the frame that opened a header block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Open {
    pub(super) stream: u32,
    opener: Opener,
    /// Number of frames of the block so far.
    pub(super) frames: u32,
}

/// The fields before the block.
#[derive(Debug, Clone, Copy)]
enum Opener {
    Headers {
        end_stream: bool,
        dependency: Option<u32>,
    },
    Push {
        promised: u32,
    },
}

impl Open {
    /// Parses the fields of HEADERS or PUSH_PROMISE. Returns them and the range of the block's
    /// first fragment.
    pub(super) fn parse(head: &Head, payload: &[u8]) -> Result<(Self, Range<usize>), Error> {
        let unpadded = head.unpad(payload)?;
        let fields = &payload[unpadded.clone()];
        let size = |frame| Error::FrameSize {
            frame,
            length: head.length,
        };
        let (opener, len) = if head.kind == kind::PUSH_PROMISE {
            let promised = fields.first_chunk().ok_or(size("PUSH_PROMISE"))?;
            let promised = u32::from_be_bytes(*promised) & STREAM_MASK;
            (Opener::Push { promised }, 4)
        } else {
            let (dependency, len) = if head.has(flag::PRIORITY) {
                let [a, b, c, d, _weight] = *fields.first_chunk().ok_or(size("HEADERS"))?;
                (Some(u32::from_be_bytes([a, b, c, d]) & STREAM_MASK), 5)
            } else {
                (None, 0)
            };
            let end_stream = head.has(flag::END_STREAM);
            let opener = Opener::Headers {
                end_stream,
                dependency,
            };
            (opener, len)
        };
        let open = Self {
            stream: head.stream,
            opener,
            frames: 1,
        };
        Ok((open, unpadded.start + len..unpadded.end))
    }

    /// Counts one more frame.
    pub(super) fn continued(self) -> Self {
        Self {
            frames: self.frames + 1,
            ..self
        }
    }

    /// The frame with its complete block.
    pub(super) fn frame(self, block: &[u8]) -> Frame<'_> {
        let Self { stream, frames, .. } = self;
        match self.opener {
            Opener::Headers {
                end_stream,
                dependency,
            } => Frame::Headers(Headers {
                stream,
                block,
                end_stream,
                dependency,
                frames,
            }),
            Opener::Push { promised } => Frame::PushPromise(PushPromise {
                stream,
                promised,
                block,
                frames,
            }),
        }
    }
}
