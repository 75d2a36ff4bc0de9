//! The unidirectional streams that a peer opens: their kind, then their content (RFC 9114 section
//! 6.2).
//!
//! Must not know which kinds and frames a side allows: the caller does.

use super::error::Error;
use super::frame::{Frame, StreamKind};
use super::qpack::{DecoderInstructions, EncoderInstructions};
use super::reader::{FrameReader, StreamKindReader};

/// A stream of the peer, up to where it was read.
#[derive(Debug)]
pub enum PeerStream {
    /// Its kind is not complete yet.
    Begun(StreamKindReader),
    /// The control stream.
    Control(FrameReader),
    /// The instructions of the peer's QPACK encoder.
    Encoder(EncoderInstructions),
    /// The instructions of the peer's QPACK decoder.
    Decoder(DecoderInstructions),
    /// A push, or a kind without a meaning.
    Other,
}

impl Default for PeerStream {
    fn default() -> PeerStream {
        PeerStream::Begun(StreamKindReader::default())
    }
}

impl PeerStream {
    /// Consumes the bytes of the stream's kind. Returns the kind once, when it is complete.
    pub fn begin(&mut self, bytes: &mut &[u8]) -> Option<StreamKind> {
        let PeerStream::Begun(reader) = self else {
            return None;
        };
        let (kind, rest) = reader.read(std::mem::take(bytes))?;
        *bytes = rest;
        *self = match kind {
            StreamKind::Control => PeerStream::Control(FrameReader::new(0)),
            StreamKind::QpackEncoder => PeerStream::Encoder(EncoderInstructions),
            StreamKind::QpackDecoder => PeerStream::Decoder(DecoderInstructions::default()),
            StreamKind::Push | StreamKind::Unknown(_) => PeerStream::Other,
        };
        Some(kind)
    }

    /// Reads bytes after those of the kind. The frames of a control stream go to `take`.
    ///
    /// # Errors
    /// Those of `take`, and malformed bytes: the connection cannot continue.
    pub fn read<E: From<Error>>(
        &mut self,
        mut bytes: &[u8],
        mut take: impl FnMut(Frame<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        match self {
            PeerStream::Control(reader) => loop {
                let step = reader.read(bytes)?;
                bytes = &bytes[step.consumed..];
                let Some(frame) = step.event else {
                    return Ok(());
                };
                take(frame)?;
            },
            PeerStream::Encoder(instructions) => {
                Ok(instructions.read(bytes).map_err(Error::from)?)
            }
            PeerStream::Decoder(instructions) => {
                Ok(instructions.read(bytes).map_err(Error::from)?)
            }
            PeerStream::Begun(_) | PeerStream::Other => Ok(()),
        }
    }

    /// Whether the connection needs the stream, so that its end is a violation.
    pub fn is_critical(&self) -> bool {
        !matches!(self, PeerStream::Begun(_) | PeerStream::Other)
    }
}
