//! HTTP/2, one stream at a time, with header compression as clients use it.

use super::flight::{Answered, InFlight};
use crate::request::Request;
use intact_client::{Arrival, ResponseError, is_tls_alert};
use intact_ledger::{Failure, Nanos};
use intact_wire::h2::hpack::{Decoder, Encoder, Indexing};
use intact_wire::h2::{
    Data, ErrorCode, FRAME_HEADER_LEN, Frame, FrameReader, Headers, Limits, PREFACE, Setting,
    SettingsPayload, writer,
};
use std::collections::BTreeMap;

/// Interim (1xx) answers that may precede a final one, as in HTTP/1.
const INTERIM: u32 = 100;
/// The largest window (RFC 9113 section 6.9.1).
const LARGEST_WINDOW: u32 = 0x7fff_ffff;
/// The largest list of header fields that is taken, in bytes.
const LARGEST_LIST: usize = 256 * 1024;
/// RST_STREAM or GOAWAY because the request was not processed (RFC 9113 section 7).
const REFUSED_STREAM: ErrorCode = ErrorCode(0x7);
const NO_ERROR: ErrorCode = ErrorCode(0x0);

/// A server's SETTINGS by name, as sent.
pub(crate) type Settings = BTreeMap<String, u32>;

/// The conversation.
pub(crate) struct Http2 {
    reader: FrameReader,
    decoder: Decoder,
    encoder: Encoder,
    server: intact_wire::h2::Settings,
    next_stream: u32,
    stream: u32,
    taken: u32,
    pub(super) flight: Option<InFlight>,
    pub(super) told: Settings,
    pub(super) over: bool,
    pub(super) goaway_at: Option<Nanos>,
    /// Interim (1xx) answers to the request in flight.
    interim: u32,
}

impl Http2 {
    pub(super) fn new(out: &mut Vec<u8>) -> Http2 {
        out.extend_from_slice(PREFACE);
        writer::write_settings(
            out,
            &[
                (Setting::EnablePush, 0),
                (Setting::InitialWindowSize, LARGEST_WINDOW),
            ],
        );
        writer::write_window_update(out, 0, LARGEST_WINDOW - intact_wire::h2::DEFAULT_WINDOW);
        Http2 {
            reader: FrameReader::server(Limits::default()),
            decoder: Decoder::new(LARGEST_LIST),
            encoder: Encoder::default(),
            server: intact_wire::h2::Settings::default(),
            next_stream: 1,
            stream: 0,
            taken: 0,
            flight: None,
            told: Settings::new(),
            over: false,
            goaway_at: None,
            interim: 0,
        }
    }

    pub(super) fn begin(&mut self, request: &Request, mut flight: InFlight, out: &mut Vec<u8>) {
        let mut block = Vec::with_capacity(256);
        self.encoder.begin(&mut block);
        for (name, value) in request.http2() {
            let indexing = match name {
                "authorization" | "cookie" | "proxy-authorization" => Indexing::Never,
                _ => Indexing::Incremental,
            };
            self.encoder
                .encode(name.as_bytes(), value.as_bytes(), indexing, &mut block);
        }
        self.stream = self.next_stream;
        self.next_stream += 2;
        let max_frame = self.server.max_frame_size as usize;
        let frames = block.len().div_ceil(max_frame).max(1);
        writer::write_headers(out, self.stream, &block, request.body.is_none(), max_frame);
        // a few bytes: they fit into any window that lets requests have bodies at all
        if let Some(body) = request.body {
            writer::write_data(out, self.stream, body.as_bytes(), true);
        }
        let exchange = &mut flight.exchange;
        exchange.stream = Some(u64::from(self.stream));
        exchange.bytes.request_head = (block.len() + frames * FRAME_HEADER_LEN) as u64;
        exchange.terms.max_streams = self.server.max_concurrent_streams;
        self.interim = 0;
        self.flight = Some(flight);
    }

    pub(super) fn receive(
        &mut self,
        mut bytes: &[u8],
        arrival: Arrival,
        out: &mut Vec<u8>,
    ) -> Option<Answered> {
        // shorter than a frame's header, an alert would only look like a cut-off stream
        if is_tls_alert(bytes)
            && let Some(flight) = self.flight.take_if(|one| one.is_unanswered_first())
        {
            return Some(self.give_up(flight, ResponseError::tls_alert(), arrival));
        }
        // taken out for the loop, because its frames borrow it
        let mut reader =
            std::mem::replace(&mut self.reader, FrameReader::mid_stream(Limits::default()));
        let mut answered = None;
        let broken = loop {
            match reader.read(bytes) {
                Ok(step) => {
                    bytes = &bytes[step.consumed..];
                    let Some(frame) = step.event else { break None };
                    match self.frame(frame, arrival, out) {
                        Ok(done) => answered = answered.or(done),
                        Err(broken) => break Some(broken),
                    }
                }
                Err(error) => break Some(error.into()),
            }
        };
        self.reader = reader;
        if let Some(broken) = broken {
            self.over = true;
            if let Some(flight) = self.flight.take() {
                answered = Some(self.give_up(flight, broken, arrival));
            }
        }
        answered
    }

    /// Fails the exchange in flight, and the connection with it.
    fn give_up(
        &mut self,
        mut flight: InFlight,
        broken: ResponseError,
        arrival: Arrival,
    ) -> Answered {
        self.over = true;
        flight.exchange.detail = Some(broken.words);
        flight.fail(broken.kind, arrival.read)
    }

    /// Takes one frame; the error is what makes the connection useless.
    fn frame(
        &mut self,
        frame: Frame<'_>,
        arrival: Arrival,
        out: &mut Vec<u8>,
    ) -> Result<Option<Answered>, ResponseError> {
        match frame {
            Frame::Data(data) => return Ok(self.data(data, arrival, out)),
            Frame::Headers(headers) => return self.headers(headers, arrival),
            Frame::Reset { stream, code } if stream == self.stream => {
                let kind = if code == REFUSED_STREAM {
                    Failure::Refusal
                } else {
                    Failure::StreamReset
                };
                let flight = self.flight.take();
                return Ok(flight.map(|flight| flight.fail(kind, arrival.read)));
            }
            Frame::Settings(payload) => self.settings(payload, out)?,
            Frame::Ping {
                ack: false,
                payload,
            } => writer::write_ping(out, true, payload),
            Frame::GoAway { last_stream, .. } => {
                self.over = true;
                self.goaway_at.get_or_insert(arrival.at);
                if self.stream > last_stream {
                    let flight = self.flight.take();
                    return Ok(flight.map(|flight| flight.fail(Failure::Refusal, arrival.read)));
                }
            }
            Frame::PushPromise(_) => {
                return Err(ResponseError::malformed(
                    "a push although we said that there is to be none",
                ));
            }
            Frame::Preface
            | Frame::Priority { .. }
            | Frame::Reset { .. }
            | Frame::SettingsAck
            | Frame::Ping { ack: true, .. }
            | Frame::WindowUpdate { .. }
            | Frame::Unknown { .. } => {}
        }
        Ok(None)
    }

    fn settings(
        &mut self,
        payload: SettingsPayload<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), ResponseError> {
        for (id, value) in payload {
            // a bounded few are known; the others stay numbers, and at most as many
            if self.told.len() < 32 {
                self.told.insert(name_of(id), value);
            }
        }
        let before = self.server.header_table_size;
        self.server.apply(payload)?;
        writer::write_settings_ack(out);
        let most = intact_wire::h2::hpack::DEFAULT_TABLE_SIZE;
        if self.server.header_table_size != before {
            self.encoder.resize(self.server.header_table_size.min(most));
        }
        Ok(())
    }

    fn data(&mut self, data: Data<'_>, arrival: Arrival, out: &mut Vec<u8>) -> Option<Answered> {
        self.taken += data.flow;
        if self.taken >= LARGEST_WINDOW / 2 {
            writer::write_window_update(out, 0, self.taken);
            self.taken = 0;
        }
        if data.stream != self.stream {
            return None;
        }
        let flight = self.flight.as_mut()?;
        flight.hear(arrival);
        flight.body(data.bytes.len(), arrival);
        let framing = if data.complete { FRAME_HEADER_LEN } else { 0 };
        flight.exchange.bytes.body += u64::from(data.flow) + framing as u64;
        if !data.end_stream {
            return None;
        }
        self.flight.take().map(|flight| flight.complete(arrival))
    }

    fn headers(
        &mut self,
        headers: Headers<'_>,
        arrival: Arrival,
    ) -> Result<Option<Answered>, ResponseError> {
        let ours = headers.stream == self.stream;
        let mut flight = self.flight.as_mut().filter(|_| ours);
        let is_trailers = flight
            .as_ref()
            .is_some_and(|flight| flight.exchange.status.is_some());
        let mut status = 0u16;
        let mut length = None;
        self.decoder.decode(headers.block, |field| {
            let text = std::str::from_utf8(field.value).unwrap_or("");
            match field.name {
                b":status" => status = text.parse().unwrap_or(0),
                b"content-length" => length = text.parse().ok(),
                _ => {}
            }
            if let Some(flight) = &mut flight
                && !is_trailers
                && !field.name.starts_with(b":")
            {
                flight.reply.note(field.name, field.value);
            }
        })?;
        let Some(flight) = flight else {
            return Ok(None);
        };
        flight.hear(arrival);
        flight.exchange.bytes.head +=
            (headers.block.len() + FRAME_HEADER_LEN * headers.frames as usize) as u64;
        if !is_trailers {
            match status {
                0 => return Err(ResponseError::malformed("an answer without :status")),
                100..=199 if !headers.end_stream => {
                    self.interim += 1;
                    if self.interim > INTERIM {
                        return Err(ResponseError {
                            kind: Failure::TooLarge,
                            words: format!("more than {INTERIM} interim answers").into(),
                        });
                    }
                    return Ok(None);
                }
                status => flight.head(status, arrival),
            }
            flight.exchange.body.announced = length;
            flight.reply.response_version = Some(intact_ledger::Protocol::Http2);
            flight.reply.keeps = !self.over;
        }
        if !headers.end_stream {
            return Ok(None);
        }
        Ok(self.flight.take().map(|flight| flight.complete(arrival)))
    }

    pub(super) fn end(&mut self, failure: Option<Failure>, at: Nanos) -> Option<Answered> {
        self.over = true;
        let flight = self.flight.take()?;
        let kind = flight.cut_off(failure);
        Some(flight.fail(kind, at))
    }
}

/// The last frame before we close.
pub(super) fn goodbye(out: &mut Vec<u8>) {
    writer::write_go_away(out, 0, NO_ERROR, b"");
}

/// The name of a setting (IANA registry "HTTP/2 Settings"), in lower case.
fn name_of(id: u16) -> String {
    let name = match id {
        0x1 => "header_table_size",
        0x2 => "enable_push",
        0x3 => "max_concurrent_streams",
        0x4 => "initial_window_size",
        0x5 => "max_frame_size",
        0x6 => "max_header_list_size",
        0x8 => "enable_connect_protocol",
        0x9 => "no_rfc7540_priorities",
        _ => return format!("0x{id:x}"),
    };
    name.to_owned()
}
