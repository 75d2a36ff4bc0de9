//! The streams that carry no request: our control stream, and those that the client opens.

use super::code;
use intact_wire::h3::{ErrorCode, Frame, PeerStream, StreamKind, writer};
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
    let (mut peer_stream, mut has_settings) = (PeerStream::default(), false);
    loop {
        match stream.read_chunk(usize::MAX, true).await {
            Ok(Some(chunk)) => {
                let mut bytes = &chunk.bytes[..];
                // only servers push
                if peer_stream.begin(&mut bytes) == Some(StreamKind::Push) {
                    return Err(ErrorCode::H3_STREAM_CREATION_ERROR);
                }
                peer_stream.read(bytes, |frame| control(&frame, &mut has_settings))?;
            }
            Err(ReadError::ConnectionLost(_)) => return Ok(()),
            Ok(None) | Err(_) => break,
        }
    }
    match peer_stream.is_critical() {
        true => Err(ErrorCode::H3_CLOSED_CRITICAL_STREAM),
        false => Ok(()),
    }
}

/// Checks a frame of the client's control stream.
fn control(frame: &Frame<'_>, has_settings: &mut bool) -> Result<(), ErrorCode> {
    match (frame, *has_settings) {
        (Frame::Settings(_), false) => *has_settings = true,
        (_, false) => return Err(ErrorCode::H3_MISSING_SETTINGS),
        // nothing is pushed, so its ids and its end are of no concern
        (Frame::GoAway(_) | Frame::MaxPushId(_) | Frame::Unknown(_), true) => {}
        (Frame::CancelPush(_), true) => return Err(ErrorCode::H3_ID_ERROR),
        (_, true) => return Err(ErrorCode::H3_FRAME_UNEXPECTED),
    }
    Ok(())
}
