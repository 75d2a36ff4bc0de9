//! The protocol of one HTTP/2 connection at the server (RFC 9113): streams, windows, settings.
//! Bytes in, calls to a [`Listener`] and frames out; no I/O, no clock, nothing about what is
//! answered.

mod closed_streams;
mod sending;
#[cfg(test)]
mod tests;

use super::request::RequestHead;
use closed_streams::{ClosedStreams, PastStreams};
use intact_ledger::Side;
use intact_wire::h2::hpack::{Decoder, Encoder};
use intact_wire::h2::{
    DEFAULT_WINDOW, Data, Error, ErrorCode, FRAME_HEADER_LEN, Frame, FrameReader, Headers, Limits,
    Setting, Settings, SettingsPayload, widen, writer,
};
pub(super) use sending::AddField;
use sending::Outgoing;
use std::collections::{BTreeMap, VecDeque};

/// Streams that a client may have open at once.
const STREAMS: u32 = 256;
/// What a client may send before it has to wait for us, in bytes: on a stream, and on the
/// connection.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 1 << 24;
/// The largest list of header fields that is taken, in bytes.
const LARGEST_LIST: usize = 64 * 1024;
/// Learns what the client asks.
pub(super) trait Listener {
    /// A stream opens. `bytes`: of its head on the wire. Whether further ones may open.
    fn request(&mut self, stream: u32, head: RequestHead, bytes: u64) -> bool;
    /// A piece of a request's body.
    fn body(&mut self, stream: u32, piece: &[u8]);
    /// A request is complete.
    fn complete(&mut self, stream: u32);
    /// A stream was reset before its response was complete: by the client, or by the server because
    /// the client broke a rule.
    fn gone(&mut self, stream: u32, by: Side);
    /// All that was given for a stream has been written.
    fn sent(&mut self, stream: u32);
    /// The client says that it will open no more streams.
    fn goodbye(&mut self);
}

#[derive(Default)]
struct Stream {
    /// What we may send.
    window: i64,
    /// What the client may send.
    room: i64,
    /// Taken from that and not given back yet.
    taken: u32,
    /// The client has not ended its side.
    receiving: bool,
    announced: Option<u64>,
    received: u64,
    outgoing: Option<Outgoing>,
    /// It is in [`Session::sending`].
    queued: bool,
}

/// The state of a connection.
pub(super) struct Session {
    /// Absent while its frames are looked at, because they borrow it.
    reader: Option<FrameReader>,
    decoder: Decoder,
    encoder: Encoder,
    client: Settings,
    streams: BTreeMap<u32, Stream>,
    past: PastStreams,
    /// The highest stream that the client has opened.
    highest: u32,
    /// The last stream that is served, once no more are.
    last: Option<u32>,
    /// The client was informed.
    announced: bool,
    window: i64,
    room: i64,
    taken: u32,
    /// Streams that have something to send and may, in turn.
    sending: VecDeque<u32>,
}

impl Session {
    /// A new connection; our SETTINGS go to `out`.
    pub(super) fn start(out: &mut Vec<u8>) -> Session {
        writer::write_settings(
            out,
            &[
                (Setting::MaxConcurrentStreams, STREAMS),
                (Setting::InitialWindowSize, STREAM_WINDOW),
            ],
        );
        writer::write_window_update(out, 0, CONNECTION_WINDOW - DEFAULT_WINDOW);
        Session {
            reader: Some(FrameReader::client(Limits::default())),
            decoder: Decoder::new(LARGEST_LIST),
            encoder: Encoder::default(),
            client: Settings::default(),
            streams: BTreeMap::new(),
            past: PastStreams::default(),
            highest: 0,
            last: None,
            announced: false,
            window: i64::from(DEFAULT_WINDOW),
            room: i64::from(CONNECTION_WINDOW),
            taken: 0,
            sending: VecDeque::new(),
        }
    }

    /// Whether no further stream is served.
    pub(super) fn is_closing(&self) -> bool {
        self.last.is_some()
    }

    /// Whether a [`Session::pump`] would write something.
    pub(super) fn can_send(&self) -> bool {
        self.window > 0 && !self.sending.is_empty()
    }

    /// Takes bytes from the client.
    pub(super) fn receive(
        &mut self,
        mut bytes: &[u8],
        out: &mut Vec<u8>,
        listener: &mut impl Listener,
    ) -> Result<(), Error> {
        // taken for the loop, because its frames borrow it; an error is the end of reading
        let Some(mut reader) = self.reader.take() else {
            return Ok(());
        };
        loop {
            let step = reader.read(bytes)?;
            bytes = &bytes[step.consumed..];
            let Some(frame) = step.event else { break };
            self.frame(frame, out, listener)?;
        }
        self.reader = Some(reader);
        Ok(())
    }

    fn frame(
        &mut self,
        frame: Frame<'_>,
        out: &mut Vec<u8>,
        listener: &mut impl Listener,
    ) -> Result<(), Error> {
        match frame {
            Frame::Headers(headers) => self.headers(&headers, out, listener),
            Frame::Data(data) => self.data(&data, out, listener),
            Frame::Settings(payload) => self.settings(payload, out),
            Frame::WindowUpdate { stream, increment } => {
                self.window_update(stream, increment, out, listener)
            }
            Frame::Reset { stream, .. } => {
                if self.is_unopened(stream) {
                    return Err(Error::Protocol("RST_STREAM on a stream that is not open"));
                }
                if self.forget(stream, ClosedStreams::Ended) {
                    listener.gone(stream, Side::Client);
                }
                Ok(())
            }
            Frame::Priority { stream, dependency } => {
                if dependency == stream {
                    return Err(Error::Protocol("a stream that depends on itself"));
                }
                Ok(())
            }
            Frame::Ping {
                ack: false,
                payload,
            } => {
                writer::write_ping(out, true, payload);
                Ok(())
            }
            Frame::GoAway { .. } => {
                listener.goodbye();
                Ok(())
            }
            Frame::PushPromise(_) => Err(Error::Protocol("a push from a client")),
            Frame::Preface
            | Frame::SettingsAck
            | Frame::Ping { ack: true, .. }
            | Frame::Unknown { .. } => Ok(()),
        }
    }

    fn headers(
        &mut self,
        headers: &Headers<'_>,
        out: &mut Vec<u8>,
        listener: &mut impl Listener,
    ) -> Result<(), Error> {
        let id = headers.stream;
        let mut head = RequestHead::default();
        // decoded in any case: the table has to stay in step
        self.decoder
            .decode(headers.block, |field| head.take(field))?;
        if let Some(stream) = self.streams.get_mut(&id) {
            if !stream.receiving {
                self.reset(id, ErrorCode::STREAM_CLOSED, out, listener);
            } else if !headers.end_stream || head.trailer_fault().is_some() {
                self.reset(id, ErrorCode::PROTOCOL_ERROR, out, listener);
            } else {
                self.end_request(id, out, listener);
            }
            return Ok(());
        }
        if id.is_multiple_of(2) {
            return Err(Error::Protocol("a stream of a client with an even number"));
        }
        if id <= self.highest {
            return match self.past.find(id) {
                Some(ClosedStreams::Reset) => Ok(()),
                Some(ClosedStreams::Ended) => {
                    Err(Error::StreamClosed("HEADERS on a stream that is closed"))
                }
                None => Err(Error::Protocol(
                    "a stream with a lower number than one before",
                )),
            };
        }
        self.highest = id;
        if self.last.is_some() {
            // asked not to come, or about to see that we are gone
            self.past.add(id, ClosedStreams::Reset);
            return Ok(());
        }
        if self.streams.len() >= STREAMS as usize {
            writer::write_reset(out, id, ErrorCode::REFUSED_STREAM);
            self.past.add(id, ClosedStreams::Reset);
            return Ok(());
        }
        if head.fault().is_some() || headers.dependency == Some(id) {
            writer::write_reset(out, id, ErrorCode::PROTOCOL_ERROR);
            self.past.add(id, ClosedStreams::Reset);
            return Ok(());
        }
        let stream = Stream {
            window: i64::from(self.client.initial_window_size),
            room: i64::from(STREAM_WINDOW),
            receiving: true,
            announced: head.length,
            ..Stream::default()
        };
        self.streams.insert(id, stream);
        let bytes = headers.block.len() + FRAME_HEADER_LEN * headers.frames as usize;
        if !listener.request(id, head, bytes as u64) {
            // at once, because the next one may be in the same bytes
            self.last = Some(id);
        }
        if headers.end_stream {
            self.end_request(id, out, listener);
        }
        Ok(())
    }

    fn data(
        &mut self,
        data: &Data<'_>,
        out: &mut Vec<u8>,
        listener: &mut impl Listener,
    ) -> Result<(), Error> {
        let id = data.stream;
        self.room -= i64::from(data.flow);
        if self.room < 0 {
            return Err(Error::FlowControl(
                "more than the connection's window allows",
            ));
        }
        // nothing is kept of it, so the window is given back at once, in pieces worth a frame
        self.taken += data.flow;
        if self.taken >= CONNECTION_WINDOW / 2 {
            writer::write_window_update(out, 0, self.taken);
            self.room += i64::from(std::mem::take(&mut self.taken));
        }
        let Some(stream) = self.streams.get_mut(&id) else {
            return match self.past.find(id) {
                _ if self.is_unopened(id) => {
                    Err(Error::Protocol("DATA on a stream that is not open"))
                }
                Some(ClosedStreams::Reset) => Ok(()),
                _ => Err(Error::StreamClosed("DATA on a stream that is closed")),
            };
        };
        if !stream.receiving {
            self.reset(id, ErrorCode::STREAM_CLOSED, out, listener);
            return Ok(());
        }
        stream.room -= i64::from(data.flow);
        stream.received += data.bytes.len() as u64;
        if stream.room < 0 {
            self.reset(id, ErrorCode::FLOW_CONTROL_ERROR, out, listener);
            return Ok(());
        }
        if stream.announced.is_some_and(|most| stream.received > most) {
            self.reset(id, ErrorCode::PROTOCOL_ERROR, out, listener);
            return Ok(());
        }
        stream.taken += data.flow;
        if stream.taken >= STREAM_WINDOW / 2 && !data.end_stream {
            writer::write_window_update(out, id, stream.taken);
            stream.room += i64::from(std::mem::take(&mut stream.taken));
        }
        if !data.bytes.is_empty() {
            listener.body(id, data.bytes);
        }
        if data.end_stream {
            self.end_request(id, out, listener);
        }
        Ok(())
    }

    fn end_request(&mut self, id: u32, out: &mut Vec<u8>, listener: &mut impl Listener) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        stream.receiving = false;
        if stream.announced.is_some_and(|due| stream.received != due) {
            self.reset(id, ErrorCode::PROTOCOL_ERROR, out, listener);
        } else {
            listener.complete(id);
        }
    }

    fn settings(&mut self, payload: SettingsPayload<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
        let change = self.client.apply_to(&mut self.encoder, payload)?;
        for (&id, stream) in &mut self.streams {
            widen(&mut stream.window, change)?;
            if stream.outgoing.is_some() && stream.window > 0 && !stream.queued {
                stream.queued = true;
                self.sending.push_back(id);
            }
        }
        writer::write_settings_ack(out);
        Ok(())
    }

    fn window_update(
        &mut self,
        id: u32,
        increment: u32,
        out: &mut Vec<u8>,
        listener: &mut impl Listener,
    ) -> Result<(), Error> {
        if id == 0 {
            return widen(&mut self.window, i64::from(increment));
        }
        if self.is_unopened(id) {
            return Err(Error::Protocol(
                "WINDOW_UPDATE on a stream that is not open",
            ));
        }
        let Some(stream) = self.streams.get_mut(&id) else {
            return Ok(());
        };
        if widen(&mut stream.window, i64::from(increment)).is_err() {
            self.reset(id, ErrorCode::FLOW_CONTROL_ERROR, out, listener);
        } else if stream.outgoing.is_some() && !stream.queued {
            stream.queued = true;
            self.sending.push_back(id);
        }
        Ok(())
    }

    /// Notes that a stream was ended by frames that this session did not write.
    pub(super) fn end(&mut self, id: u32) {
        self.forget(id, ClosedStreams::Ended);
    }

    /// Ends a stream with RST_STREAM.
    pub(super) fn reset(
        &mut self,
        id: u32,
        code: ErrorCode,
        out: &mut Vec<u8>,
        listener: &mut impl Listener,
    ) {
        writer::write_reset(out, id, code);
        if self.forget(id, ClosedStreams::Reset) {
            listener.gone(id, Side::Server);
        }
    }

    /// Serves no more streams than those that there are; `announce` says so with GOAWAY.
    pub(super) fn close(&mut self, announce: bool, out: &mut Vec<u8>) {
        let last = *self.last.get_or_insert(self.highest);
        if announce && !std::mem::replace(&mut self.announced, true) {
            writer::write_go_away(out, last, ErrorCode::NO_ERROR, b"");
        }
    }

    /// Appends the GOAWAY of a connection that cannot go on.
    pub(super) fn give_up(&self, error: &Error, out: &mut Vec<u8>) {
        writer::write_go_away(
            out,
            self.highest,
            error.code(),
            error.to_string().as_bytes(),
        );
    }

    fn is_unopened(&self, id: u32) -> bool {
        // clients open odd streams; we open none
        id.is_multiple_of(2) || id > self.highest
    }

    fn forget(&mut self, id: u32, past: ClosedStreams) -> bool {
        let Some(stream) = self.streams.remove(&id) else {
            return false;
        };
        if stream.queued {
            self.sending.retain(|&other| other != id);
        }
        self.past.add(id, past);
        true
    }
}
