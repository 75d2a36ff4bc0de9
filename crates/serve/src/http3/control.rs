//! The streams that carry no request: our control stream, and those that the client opens.

use super::code;
use intact_wire::h3::qpack::{DecoderInstructions, EncoderInstructions};
use intact_wire::h3::{Error, ErrorCode, Frame, FrameReader, StreamKind, StreamKindReader, writer};
use quinn::{Connection, ConnectionError, ReadError, RecvStream, SendStream};

/// Largest header section of a request, in bytes.
pub(super) const LARGEST_LIST: usize = 64 * 1024;

/// Opens our control stream: no dynamic table of QPACK, and the largest header section.
pub(super) async fn open(quic: &Connection) -> Result<SendStream, ConnectionError> {
    let mut stream = quic.open_uni().await?;
    // an error shows where the next request is awaited
    let _ = stream
        .write_all(&writer::control_stream(LARGEST_LIST))
        .await;
    Ok(stream)
}

/// Reads a stream that the client opened. A violation ends the connection.
pub(super) async fn read(quic: Connection, stream: RecvStream) {
    if let Err(broken) = read_all(stream).await {
        quic.close(code(broken), b"");
    }
}

async fn read_all(mut stream: RecvStream) -> Result<(), ErrorCode> {
    let mut kind = StreamKindReader::default();
    let (kind, rest) = loop {
        let Ok(Some(chunk)) = stream.read_chunk(usize::MAX, true).await else {
            return Ok(());
        };
        if let Some((kind, rest)) = kind.read(&chunk.bytes) {
            break (kind, chunk.bytes.slice_ref(rest));
        }
    };
    let mut reader = match kind {
        StreamKind::Control => Reader::Control(FrameReader::new(0), false),
        StreamKind::QpackEncoder => Reader::Encoder(EncoderInstructions),
        StreamKind::QpackDecoder => Reader::Decoder(DecoderInstructions::default()),
        // only servers push
        StreamKind::Push => return Err(ErrorCode::H3_STREAM_CREATION_ERROR),
        StreamKind::Unknown(_) => Reader::Ignored,
    };
    reader.read(&rest)?;
    loop {
        match stream.read_chunk(usize::MAX, true).await {
            Ok(Some(chunk)) => reader.read(&chunk.bytes)?,
            Err(ReadError::ConnectionLost(_)) => return Ok(()),
            Ok(None) | Err(_) => break,
        }
    }
    match reader {
        Reader::Ignored => Ok(()),
        _ => Err(ErrorCode::H3_CLOSED_CRITICAL_STREAM),
    }
}

enum Reader {
    /// With whether SETTINGS came.
    Control(FrameReader, bool),
    Encoder(EncoderInstructions),
    Decoder(DecoderInstructions),
    Ignored,
}

impl Reader {
    fn read(&mut self, bytes: &[u8]) -> Result<(), ErrorCode> {
        match self {
            Reader::Control(reader, has_settings) => control(reader, has_settings, bytes),
            Reader::Encoder(reader) => reader.read(bytes).map_err(|error| error.code()),
            Reader::Decoder(reader) => reader.read(bytes).map_err(|error| error.code()),
            Reader::Ignored => Ok(()),
        }
    }
}

fn control(
    reader: &mut FrameReader,
    has_settings: &mut bool,
    mut bytes: &[u8],
) -> Result<(), ErrorCode> {
    loop {
        let step = reader.read(bytes).map_err(Error::code)?;
        bytes = &bytes[step.consumed..];
        let Some(frame) = step.event else {
            return Ok(());
        };
        match (frame, *has_settings) {
            (Frame::Settings(_), false) => *has_settings = true,
            (_, false) => return Err(ErrorCode::H3_MISSING_SETTINGS),
            // nothing is pushed, so its ids and its end are of no concern
            (Frame::GoAway(_) | Frame::MaxPushId(_) | Frame::Unknown(_), true) => {}
            (Frame::CancelPush(_), true) => return Err(ErrorCode::H3_ID_ERROR),
            (_, true) => return Err(ErrorCode::H3_FRAME_UNEXPECTED),
        }
    }
}
