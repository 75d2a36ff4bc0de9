//! The streams that the server opens: its control stream and QPACK's two (RFC 9114 section 6.2).

use super::exchanges::Http3;
use super::{StreamEnd, Violation};
use crate::Arrival;
use bytes::Bytes;
use intact_ledger::Sink;
use intact_wire::h3::qpack::{DecoderInstructions, EncoderInstructions};
use intact_wire::h3::{self, ErrorCode, Frame, FrameReader, StreamKind, StreamKindReader};

/// The streams that are open.
#[derive(Default)]
pub(super) struct ServerStreams {
    open: Vec<(u64, ServerStream)>,
    /// The kinds of which there may be one only, and of which one was opened.
    seen: Vec<StreamKind>,
    has_settings: bool,
    /// The first request that the server does not process, of its last GOAWAY.
    goaway: Option<u64>,
}

enum ServerStream {
    /// Its kind is not complete yet.
    Begun(StreamKindReader),
    Control(FrameReader),
    Encoder(EncoderInstructions),
    Decoder(DecoderInstructions),
    /// A kind without a meaning here.
    Ignored,
}

impl Http3 {
    /// Adds a stream that the server opened.
    pub(super) fn add_server_stream(&mut self, stream: u64) {
        let begun = ServerStream::Begun(StreamKindReader::default());
        self.server.open.push((stream, begun));
    }

    /// Takes what was read of a stream that carries no exchange in flight.
    pub(super) fn receive_from_server(
        &mut self,
        stream: u64,
        chunks: &[Bytes],
        end: StreamEnd,
        arrival: Arrival,
        sink: &mut impl Sink,
    ) -> Result<(), Violation> {
        let open = &mut self.server.open;
        // what is left of a request that was given up
        let Some(place) = open.iter().position(|(id, _)| *id == stream) else {
            return Ok(());
        };
        let (_, mut state) = open.swap_remove(place);
        for chunk in chunks {
            self.server_bytes(&mut state, chunk, arrival, sink)?;
        }
        if end == StreamEnd::Open {
            self.server.open.push((stream, state));
            return Ok(());
        }
        match state {
            ServerStream::Begun(_) | ServerStream::Ignored => Ok(()),
            ServerStream::Control(_) | ServerStream::Encoder(_) | ServerStream::Decoder(_) => {
                Err(Violation::new(
                    "the server ended a stream that the connection needs",
                    ErrorCode::H3_CLOSED_CRITICAL_STREAM,
                ))
            }
        }
    }

    fn server_bytes(
        &mut self,
        state: &mut ServerStream,
        mut bytes: &[u8],
        arrival: Arrival,
        sink: &mut impl Sink,
    ) -> Result<(), Violation> {
        if let ServerStream::Begun(reader) = state {
            let Some((kind, rest)) = reader.read(bytes) else {
                return Ok(());
            };
            *state = self.server.begin(kind)?;
            bytes = rest;
        }
        match state {
            ServerStream::Control(reader) => loop {
                let step = reader.read(bytes)?;
                bytes = &bytes[step.consumed..];
                let Some(frame) = step.event else {
                    return Ok(());
                };
                self.control_frame(frame, arrival, sink)?;
            },
            ServerStream::Encoder(instructions) => instructions
                .read(bytes)
                .map_err(|error| h3::Error::from(error).into()),
            ServerStream::Decoder(instructions) => instructions
                .read(bytes)
                .map_err(|error| h3::Error::from(error).into()),
            ServerStream::Begun(_) | ServerStream::Ignored => Ok(()),
        }
    }

    fn control_frame(
        &mut self,
        frame: Frame<'_>,
        arrival: Arrival,
        sink: &mut impl Sink,
    ) -> Result<(), Violation> {
        if !self.server.has_settings {
            let Frame::Settings(_) = frame else {
                return Err(Violation::new(
                    "a control stream that does not begin with SETTINGS",
                    ErrorCode::H3_MISSING_SETTINGS,
                ));
            };
            // none of them has an effect: our encoder uses no dynamic table
            self.server.has_settings = true;
            return Ok(());
        }
        match frame {
            Frame::GoAway(first) => self.go_away(first, arrival, sink),
            Frame::Unknown(_) => Ok(self.exchanges.count_idle_frame()?),
            Frame::CancelPush(_) => Err(Violation::new(
                "the end of a push that was never allowed",
                ErrorCode::H3_ID_ERROR,
            )),
            Frame::Settings(_)
            | Frame::Data { .. }
            | Frame::Headers { .. }
            | Frame::PushPromise
            | Frame::MaxPushId(_) => Err(Violation::new(
                "a frame that a server's control stream does not carry",
                ErrorCode::H3_FRAME_UNEXPECTED,
            )),
        }
    }

    /// The server processes no request from `first` on.
    fn go_away(
        &mut self,
        first: u64,
        arrival: Arrival,
        sink: &mut impl Sink,
    ) -> Result<(), Violation> {
        let is_request = first.is_multiple_of(4);
        if !is_request || self.server.goaway.is_some_and(|before| first > before) {
            return Err(Violation::new(
                "a GOAWAY whose stream is no request, or later than before",
                ErrorCode::H3_ID_ERROR,
            ));
        }
        self.server.goaway = Some(first);
        self.exchanges.go_away(first, arrival, sink);
        Ok(())
    }
}

impl ServerStreams {
    fn begin(&mut self, kind: StreamKind) -> Result<ServerStream, Violation> {
        let state = match kind {
            StreamKind::Control => ServerStream::Control(FrameReader::new(0)),
            StreamKind::QpackEncoder => ServerStream::Encoder(EncoderInstructions),
            StreamKind::QpackDecoder => ServerStream::Decoder(DecoderInstructions::default()),
            StreamKind::Push => {
                return Err(Violation::new(
                    "a push although we allowed none",
                    ErrorCode::H3_ID_ERROR,
                ));
            }
            StreamKind::Unknown(_) => return Ok(ServerStream::Ignored),
        };
        if self.seen.contains(&kind) {
            return Err(Violation::new(
                "a second stream of a kind of which there is one",
                ErrorCode::H3_STREAM_CREATION_ERROR,
            ));
        }
        self.seen.push(kind);
        Ok(state)
    }
}
