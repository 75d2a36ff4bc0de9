//! The streams that the server opens: its control stream and QPACK's two (RFC 9114 section 6.2).

use super::exchanges::Http3;
use super::{Checked, StreamEnd};
use crate::{Arrival, ResponseError};
use bytes::Bytes;
use intact_ledger::Sink;
use intact_wire::h3::{ErrorCode, Frame, PeerStream, StreamKind};

/// The streams that are open.
#[derive(Default)]
pub(super) struct ServerStreams {
    open: Vec<(u64, PeerStream)>,
    /// The kinds of which there may be one only, and of which one was opened.
    seen: Vec<StreamKind>,
    has_settings: bool,
    /// The first request that the server does not process, of its last GOAWAY.
    goaway: Option<u64>,
}

impl Http3 {
    /// Adds a stream that the server opened.
    pub(super) fn add_server_stream(&mut self, stream: u64) {
        self.server.open.push((stream, PeerStream::default()));
    }

    /// Takes what was read of a stream that carries no exchange in flight.
    pub(super) fn receive_from_server(
        &mut self,
        stream: u64,
        chunks: &[Bytes],
        end: StreamEnd,
        arrival: Arrival,
        sink: &mut impl Sink,
    ) -> Checked {
        let open = &mut self.server.open;
        // what is left of a request that was given up
        let Some(place) = open.iter().position(|(id, _)| *id == stream) else {
            return Ok(());
        };
        let (_, mut peer_stream) = open.swap_remove(place);
        for chunk in chunks {
            let mut bytes = &chunk[..];
            if let Some(kind) = peer_stream.begin(&mut bytes) {
                self.server.check(kind)?;
            }
            peer_stream.read(bytes, |frame| self.control_frame(&frame, arrival, sink))?;
        }
        match (end, peer_stream.is_critical()) {
            (StreamEnd::Open, _) => self.server.open.push((stream, peer_stream)),
            (_, false) => {}
            (_, true) => {
                return Err(ResponseError::with_code(
                    "the server ended a stream that the connection needs",
                    ErrorCode::H3_CLOSED_CRITICAL_STREAM,
                ));
            }
        }
        Ok(())
    }

    fn control_frame(
        &mut self,
        frame: &Frame<'_>,
        arrival: Arrival,
        sink: &mut impl Sink,
    ) -> Checked {
        if !self.server.has_settings {
            let Frame::Settings(_) = frame else {
                return Err(ResponseError::with_code(
                    "a control stream that does not begin with SETTINGS",
                    ErrorCode::H3_MISSING_SETTINGS,
                ));
            };
            // none of them has an effect: our encoder uses no dynamic table
            self.server.has_settings = true;
            return Ok(());
        }
        match frame {
            Frame::GoAway(first) => self.go_away(*first, arrival, sink),
            Frame::Unknown(_) => self.exchanges.count_idle_frame(),
            Frame::CancelPush(_) => Err(ResponseError::with_code(
                "the end of a push that was never allowed",
                ErrorCode::H3_ID_ERROR,
            )),
            Frame::Settings(_)
            | Frame::Data { .. }
            | Frame::Headers { .. }
            | Frame::PushPromise
            | Frame::MaxPushId(_) => Err(ResponseError::with_code(
                "a frame that a server's control stream does not carry",
                ErrorCode::H3_FRAME_UNEXPECTED,
            )),
        }
    }

    /// The server processes no request from `first` on.
    fn go_away(&mut self, first: u64, arrival: Arrival, sink: &mut impl Sink) -> Checked {
        let is_request = first.is_multiple_of(4);
        if !is_request || self.server.goaway.is_some_and(|before| first > before) {
            return Err(ResponseError::with_code(
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
    /// Refuses a push, and a second stream of a kind of which there is one.
    fn check(&mut self, kind: StreamKind) -> Checked {
        match kind {
            StreamKind::Push => Err(ResponseError::with_code(
                "a push although we allowed none",
                ErrorCode::H3_ID_ERROR,
            )),
            StreamKind::Unknown(_) => Ok(()),
            _ if self.seen.contains(&kind) => Err(ResponseError::with_code(
                "a second stream of a kind of which there is one",
                ErrorCode::H3_STREAM_CREATION_ERROR,
            )),
            _ => {
                self.seen.push(kind);
                Ok(())
            }
        }
    }
}
