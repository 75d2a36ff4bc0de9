//! HTTP/2 on one connection, several exchanges at once.
//!
//! The first exchange is alone in flight. The others follow its response, so that only one waits for the setup.

use super::{Detail, ResponseInfo, State, TransportEnd, exchange_record};
use crate::{Arrival, Request, ResponseError, Stopwatch, is_tls_alert, judge};
use intact_ledger::{
    ClosePoint, Event, Exchange, ExchangeBytes, Failure, KeepAliveTerms, Nanos, Protocol, Setup,
    Side, Sink,
};
use intact_wire::h2::hpack::{self, BlockCache, Decoder, Encoder, Indexing};
use intact_wire::h2::{
    Data, ErrorCode, FRAME_HEADER_LEN, Frame, FrameReader, Headers, Limits, PREFACE, Setting,
    Settings, SettingsPayload, writer,
};
use std::sync::Arc;

/// The largest window (RFC 9113 section 6.9.1).
const LARGEST_WINDOW: u32 = 0x7fff_ffff;
/// Bytes taken from a window before it is given back.
const REFILL: u32 = 1 << 30;
/// The largest list of header fields that is taken, in bytes.
const LARGEST_LIST: usize = 256 * 1024;
/// Interim (1xx) responses that may precede a final one, as in HTTP/1.
const INTERIM: u32 = 100;
/// Settings of the server that are kept. Far fewer have a meaning.
const MOST_SETTINGS: usize = 32;
/// RST_STREAM or GOAWAY because the request was not processed (RFC 9113 section 7).
const REFUSED_STREAM: ErrorCode = ErrorCode(0x7);
const NO_ERROR: ErrorCode = ErrorCode(0x0);

/// The fields of a response's header section that matter here.
#[derive(Clone, Copy, Default)]
struct Head {
    status: u16,
    length: Option<u64>,
}

impl Head {
    fn read(&mut self, name: &[u8], value: &[u8]) {
        match name {
            b":status" => self.status = digits(value).unwrap_or(0) as u16,
            b"content-length" => self.length = digits(value),
            _ => {}
        }
    }
}

/// One exchange in flight, or the place for one.
struct Stream {
    request: Arc<Request>,
    exchange: Exchange,
    watch: Stopwatch,
    /// Bytes that the connection had taken before its request.
    sent_before: u64,
    /// The send is not noted yet.
    unsent: bool,
    /// Interim (1xx) responses so far.
    interim: u32,
    /// How much of the request body is with the kernel.
    body_sent: usize,
    /// Bytes that the server accepts on this stream.
    window: i64,
    /// Taken from the window that we gave.
    taken: u32,
}

/// The state of the connection, and the exchanges in flight.
pub(super) struct Http2 {
    reader: FrameReader,
    decoder: Decoder,
    memo: BlockCache<Head>,
    encoder: Encoder,
    server: Settings,
    /// Stream ids of `streams`, 0 for a free place; apart, so that a search touches little memory.
    ids: Vec<u32>,
    streams: Vec<Stream>,
    blank: Exchange,
    /// The request of the last exchange that began.
    request: Option<Arc<Request>>,
    next_id: u32,
    in_flight: usize,
    most: usize,
    begun: u64,
    /// The place of the exchange that began last.
    last_begun: usize,
    answered: bool,
    /// The header block of the last request.
    block: Vec<u8>,
    /// The block came out twice in a row, so the next request's is the same.
    repeats: bool,
    window: i64,
    taken: u32,
    pub(super) announced_by: Option<Side>,
    pub(super) goaway_at: Option<Nanos>,
    over: bool,
    pub(super) moment: ClosePoint,
    pub(super) response: Option<Box<ResponseInfo>>,
    /// The server's settings as sent, with [`Detail::Fields`].
    pub(super) settings: Vec<(u16, u32)>,
}

impl Http2 {
    /// The state of a new connection with at most `streams` exchanges in flight. `blank` holds what they have in common.
    /// The preface goes to `out`.
    pub(super) fn new(blank: Exchange, detail: Detail, streams: usize, out: &mut Vec<u8>) -> Http2 {
        let settings = [
            (Setting::HeaderTableSize, 0),
            (Setting::EnablePush, 0),
            (Setting::InitialWindowSize, LARGEST_WINDOW),
        ];
        let response: Option<Box<ResponseInfo>> = (detail == Detail::Fields).then(Box::default);
        out.extend_from_slice(PREFACE);
        writer::write_settings(out, &settings[usize::from(response.is_some())..]);
        let default = intact_wire::h2::DEFAULT_WINDOW;
        writer::write_window_update(out, 0, LARGEST_WINDOW - default);
        Http2 {
            reader: FrameReader::server(Limits::default()),
            decoder: Decoder::new(LARGEST_LIST),
            memo: BlockCache::default(),
            encoder: Encoder::default(),
            server: Settings::default(),
            ids: Vec::new(),
            streams: Vec::new(),
            blank,
            request: None,
            next_id: 1,
            in_flight: 0,
            most: streams,
            begun: 0,
            last_begun: 0,
            answered: false,
            block: Vec::new(),
            repeats: false,
            window: i64::from(default),
            taken: 0,
            announced_by: None,
            goaway_at: None,
            over: false,
            moment: ClosePoint::Unused,
            response,
            settings: Vec::new(),
        }
    }

    /// See [`super::HttpState::begin`].
    pub(super) fn begin(
        &mut self,
        request: &Arc<Request>,
        id: u64,
        at: Nanos,
        warmup: bool,
        setup: Option<&Setup>,
        out: &mut Vec<u8>,
    ) {
        if !request.is(&self.request) {
            self.request = Some(request.clone());
            self.repeats = false;
        }
        self.encode(request);
        let place = self.free_place(request);
        let stream_id = self.next_id;
        self.next_id += 2;
        self.begun += 1;
        self.in_flight += 1;
        self.moment = ClosePoint::MidExchange;
        self.ids[place] = stream_id;
        self.last_begun = place;
        let max_frame = self.server.max_frame_size as usize;
        let frames = self.block.len().div_ceil(max_frame).max(1);
        let bodiless = request.body.is_empty();
        writer::write_headers(out, stream_id, &self.block, bodiless, max_frame);
        let stream = &mut self.streams[place];
        let exchange = &mut stream.exchange;
        if !Arc::ptr_eq(&stream.request, request) {
            stream.request = request.clone();
            request.describe(exchange);
        }
        exchange.ordinal = Some(self.begun as u32);
        stream.watch = exchange_record::begin(exchange, at, setup);
        stream.unsent = true;
        stream.interim = 0;
        stream.body_sent = 0;
        stream.taken = 0;
        stream.window = i64::from(self.server.initial_window_size);
        exchange.id = id;
        exchange.warmup = warmup;
        exchange.stream = Some(u64::from(stream_id));
        exchange.bytes = ExchangeBytes {
            request_head: (self.block.len() + frames * FRAME_HEADER_LEN) as u64,
            ..ExchangeBytes::default()
        };
        exchange.terms = KeepAliveTerms {
            max_streams: self.server.max_concurrent_streams,
            ..KeepAliveTerms::default()
        };
        self.send_body(place, out);
    }

    /// A place without an exchange in flight.
    fn free_place(&mut self, request: &Arc<Request>) -> usize {
        if let Some(place) = self.ids.iter().position(|&id| id == 0) {
            return place;
        }
        let mut exchange = self.blank.clone();
        request.describe(&mut exchange);
        self.ids.push(0);
        self.streams.push(Stream {
            request: request.clone(),
            exchange,
            watch: Stopwatch::default(),
            sent_before: 0,
            unsent: false,
            interim: 0,
            body_sent: 0,
            window: 0,
            taken: 0,
        });
        self.ids.len() - 1
    }

    /// Makes `block` the header block of the next request. The first one fills the server's table. A block that came out twice
    /// in a row has left the table as it was, so it stays valid.
    fn encode(&mut self, request: &Request) {
        if self.repeats {
            return;
        }
        let mut block = Vec::with_capacity(128);
        self.encoder.begin(&mut block);
        for (name, value) in request.http2_fields() {
            let indexing = match &**name {
                b"authorization" | b"cookie" | b"proxy-authorization" => Indexing::Never,
                _ => Indexing::Incremental,
            };
            self.encoder.encode(name, value, indexing, &mut block);
        }
        self.repeats = self.block == block;
        self.block = block;
    }

    /// Sends as much of the request body as the windows allow.
    fn send_body(&mut self, place: usize, out: &mut Vec<u8>) {
        let stream = &mut self.streams[place];
        let body = &stream.request.body;
        while stream.body_sent < body.len() {
            let room = self.window.min(stream.window).max(0) as usize;
            let rest = body.len() - stream.body_sent;
            let piece = rest.min(room).min(self.server.max_frame_size as usize);
            if piece == 0 {
                return;
            }
            let from = stream.body_sent;
            stream.body_sent += piece;
            let last = stream.body_sent == body.len();
            writer::write_data(out, self.ids[place], &body[from..from + piece], last);
            self.window -= piece as i64;
            stream.window -= piece as i64;
            stream.exchange.bytes.request_body += (piece + FRAME_HEADER_LEN) as u64;
            stream.unsent = true;
        }
    }

    /// See [`super::HttpState::sent`].
    #[inline]
    pub(super) fn sent(&mut self, at: Nanos) {
        for stream in self.streams.iter_mut().filter(|stream| stream.unsent) {
            stream.unsent = false;
            Stopwatch::sent(&mut stream.exchange, at);
        }
    }

    /// See [`super::HttpState::note_sent_before`].
    #[inline]
    pub(super) fn note_sent_before(&mut self, bytes: u64) {
        if let Some(stream) = self.streams.get_mut(self.last_begun) {
            stream.sent_before = bytes;
        }
    }

    /// See [`super::HttpState::receive`].
    pub(super) fn receive(
        &mut self,
        mut bytes: &[u8],
        arrival: Arrival,
        sink: &mut impl Sink,
        out: &mut Vec<u8>,
    ) {
        // shorter than a frame's header, an alert would only look like a cut-off stream
        let first = self.begun == 1 && self.streams.iter().all(|one| !one.watch.begun());
        if first && is_tls_alert(bytes) {
            self.break_off(&ResponseError::tls_alert(), arrival.read, sink);
            return;
        }
        // taken out for the loop, because its frames borrow it
        let mut reader =
            std::mem::replace(&mut self.reader, FrameReader::mid_stream(Limits::default()));
        let broken = loop {
            match reader.read(bytes) {
                Ok(step) => {
                    bytes = &bytes[step.consumed..];
                    let Some(frame) = step.event else { break None };
                    if let Err(broken) = self.frame(frame, arrival, sink, out) {
                        break Some(broken);
                    }
                }
                Err(error) => break Some(ResponseError::from(error)),
            }
        };
        self.reader = reader;
        if let Some(broken) = broken {
            self.break_off(&broken, arrival.read, sink);
        }
    }

    /// Takes one frame; the error is what makes the connection useless.
    fn frame(
        &mut self,
        frame: Frame<'_>,
        arrival: Arrival,
        sink: &mut impl Sink,
        out: &mut Vec<u8>,
    ) -> Result<(), ResponseError> {
        match frame {
            Frame::Data(data) => self.data(data, arrival, sink, out),
            Frame::Headers(headers) => self.headers(headers, arrival, sink)?,
            Frame::Reset { stream, code } => {
                let kind = if code == REFUSED_STREAM {
                    Failure::Refusal
                } else {
                    Failure::StreamReset
                };
                self.fail(stream, kind, arrival.read, sink);
            }
            Frame::Settings(payload) => self.apply_settings(payload, out)?,
            Frame::SettingsAck if self.response.is_none() => self.decoder.allow_table_size(0),
            Frame::Ping {
                ack: false,
                payload,
            } => writer::write_ping(out, true, payload),
            Frame::GoAway { last_stream, .. } => {
                self.over = true;
                self.goaway_at.get_or_insert(arrival.at);
                self.announced_by.get_or_insert(Side::Server);
                let refused: Vec<u32> = self
                    .ids
                    .iter()
                    .copied()
                    .filter(|&id| id > last_stream)
                    .collect();
                for stream in refused {
                    self.fail(stream, Failure::Refusal, arrival.read, sink);
                }
            }
            Frame::WindowUpdate {
                stream: 0,
                increment,
            } => {
                self.window += i64::from(increment);
                for place in 0..self.streams.len() {
                    self.resume_body(place, out);
                }
            }
            Frame::WindowUpdate { stream, increment } => {
                if let Some(place) = self.place(stream) {
                    self.streams[place].window += i64::from(increment);
                    self.resume_body(place, out);
                }
            }
            Frame::PushPromise(_) => {
                let words = "a push although we said that there is to be none";
                return Err(ResponseError::malformed(words));
            }
            Frame::Preface
            | Frame::Priority { .. }
            | Frame::SettingsAck
            | Frame::Ping { ack: true, .. }
            | Frame::Unknown { .. } => {}
        }
        Ok(())
    }

    fn apply_settings(
        &mut self,
        payload: SettingsPayload<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), ResponseError> {
        if self.response.is_some() {
            let room = MOST_SETTINGS.saturating_sub(self.settings.len());
            self.settings.extend(payload.take(room));
        }
        let before = self.server;
        self.server.apply(payload)?;
        writer::write_settings_ack(out);
        if self.server.header_table_size != before.header_table_size {
            let most = hpack::DEFAULT_TABLE_SIZE;
            self.encoder.resize(self.server.header_table_size.min(most));
            self.repeats = false;
        }
        let change =
            i64::from(self.server.initial_window_size) - i64::from(before.initial_window_size);
        for place in 0..self.streams.len() {
            self.streams[place].window += change;
            self.resume_body(place, out);
        }
        Ok(())
    }

    /// Continues a request body that waited for a window.
    fn resume_body(&mut self, place: usize, out: &mut Vec<u8>) {
        if self.ids[place] != 0 {
            self.send_body(place, out);
        }
    }

    #[inline]
    fn place(&self, stream: u32) -> Option<usize> {
        self.ids.iter().position(|&id| id == stream && id != 0)
    }

    fn data(&mut self, data: Data<'_>, arrival: Arrival, sink: &mut impl Sink, out: &mut Vec<u8>) {
        self.taken += data.flow;
        if self.taken >= REFILL {
            writer::write_window_update(out, 0, self.taken);
            self.taken = 0;
        }
        let Some(place) = self.place(data.stream) else {
            return;
        };
        let stream = &mut self.streams[place];
        stream.watch.hear(&mut stream.exchange, arrival);
        let exchange = &mut stream.exchange;
        if !data.bytes.is_empty() {
            stream.watch.body(arrival);
        }
        *exchange.body.read.get_or_insert(0) += data.bytes.len() as u64;
        exchange.bytes.body += u64::from(data.flow);
        if data.complete {
            exchange.bytes.body += FRAME_HEADER_LEN as u64;
        }
        stream.taken += data.flow;
        if data.end_stream {
            self.complete(place, arrival, sink);
        } else if stream.taken >= REFILL {
            writer::write_window_update(out, data.stream, stream.taken);
            stream.taken = 0;
        }
    }

    fn headers(
        &mut self,
        headers: Headers<'_>,
        arrival: Arrival,
        sink: &mut impl Sink,
    ) -> Result<(), ResponseError> {
        let place = self.place(headers.stream);
        let head = match &mut self.response {
            None => self.memo.read(
                &mut self.decoder,
                headers.block,
                Head::default(),
                |head, field| head.read(field.name, field.value),
            )?,
            Some(response) => {
                let is_trailers =
                    place.is_none_or(|place| self.streams[place].exchange.status.is_some());
                if !is_trailers {
                    **response = ResponseInfo::default();
                    response.response_version = Some(Protocol::Http2);
                    response.keeps = !self.over;
                }
                let mut head = Head::default();
                self.decoder.decode(headers.block, |field| {
                    head.read(field.name, field.value);
                    if !is_trailers && !field.name.starts_with(b":") {
                        response.note(field.name, field.value);
                    }
                })?;
                head
            }
        };
        let Some(place) = place else {
            return Ok(());
        };
        let stream = &mut self.streams[place];
        stream.watch.hear(&mut stream.exchange, arrival);
        let exchange = &mut stream.exchange;
        exchange.bytes.head +=
            (headers.block.len() + FRAME_HEADER_LEN * headers.frames as usize) as u64;
        let is_trailers = exchange.status.is_some();
        if !is_trailers {
            match head.status {
                0 => return Err(ResponseError::malformed("a response without :status")),
                100..=199 if !headers.end_stream => {
                    stream.interim += 1;
                    if stream.interim > INTERIM {
                        return Err(ResponseError {
                            kind: Failure::TooLarge,
                            words: format!("more than {INTERIM} interim responses").into(),
                        });
                    }
                    return Ok(());
                }
                status => exchange.status = Some(status),
            }
            exchange.body.announced = head.length;
            stream.watch.head(arrival);
        }
        if headers.end_stream {
            self.complete(place, arrival, sink);
        }
        Ok(())
    }

    fn complete(&mut self, place: usize, arrival: Arrival, sink: &mut impl Sink) {
        let stream = &mut self.streams[place];
        let exchange = &mut stream.exchange;
        if exchange.status.is_none() {
            let id = self.ids[place];
            return self.fail(id, Failure::Malformed, arrival.read, sink);
        }
        exchange.bytes.decoded = Some(*exchange.body.read.get_or_insert(0));
        stream.watch.complete(exchange, arrival);
        judge(exchange, stream.request.expected(exchange.status), false);
        self.answered = true;
        self.free(place);
        sink.record(Event::Exchange(&self.streams[place].exchange));
    }

    fn fail(&mut self, stream: u32, kind: Failure, at: Nanos, sink: &mut impl Sink) {
        let Some(place) = self.place(stream) else {
            return;
        };
        self.free(place);
        let exchange = &mut self.streams[place].exchange;
        Stopwatch::fail(exchange, kind, at);
        sink.record(Event::Exchange(exchange));
    }

    fn free(&mut self, place: usize) {
        self.ids[place] = 0;
        self.streams[place].unsent = false;
        self.in_flight -= 1;
        if self.in_flight == 0 {
            self.moment = ClosePoint::AfterExchange;
        }
    }

    /// What the server sends is not HTTP/2, or too much: everything in flight fails, nothing more may begin.
    fn break_off(&mut self, broken: &ResponseError, at: Nanos, sink: &mut impl Sink) {
        self.over = true;
        for id in self.ids.clone() {
            if let Some(place) = self.place(id) {
                self.streams[place].exchange.detail = Some(broken.words.clone());
                self.fail(id, broken.kind, at, sink);
            }
        }
        self.moment = ClosePoint::MidExchange;
    }

    /// See [`super::HttpState::end`].
    pub(super) fn end(
        &mut self,
        failure: Option<Failure>,
        at: Nanos,
        end: &TransportEnd,
        sink: &mut impl Sink,
    ) {
        self.over = true;
        if self.in_flight == 0 {
            return;
        }
        let mut moment = ClosePoint::MidExchange;
        for id in self.ids.clone() {
            let Some(place) = self.place(id) else {
                continue;
            };
            let stream = &mut self.streams[place];
            let kind = match failure {
                Some(Failure::Reset) | None if !stream.watch.begun() => {
                    let by_reset = failure.is_some();
                    let (kind, detail) = end.failure(
                        &stream.exchange,
                        self.answered,
                        by_reset,
                        stream.sent_before,
                    );
                    if kind == Failure::Stale {
                        moment = ClosePoint::Stale;
                    }
                    stream.exchange.detail = detail.map(Arc::from);
                    kind
                }
                None => Failure::Truncated,
                Some(kind) => kind,
            };
            self.fail(id, kind, at, sink);
        }
        self.moment = moment;
    }

    /// See [`super::HttpState::state`].
    #[inline]
    pub(super) fn state(&self) -> State {
        let over = self.over || self.next_id > LARGEST_WINDOW;
        if self.in_flight > 0 && (over || !self.answered) {
            return State::Busy;
        }
        let theirs = self
            .server
            .max_concurrent_streams
            .map_or(usize::MAX, |most| most as usize);
        let room = self.most.min(theirs);
        match (over, self.in_flight) {
            (true, _) => State::Over,
            // a server that lets nothing begin is of no more use
            (false, 0) if self.answered && room == 0 => State::Over,
            (false, busy) if busy > 0 && busy >= room => State::Busy,
            (false, _) => State::Ready,
        }
    }

    /// Adds retransmissions to the exchanges in flight, which share the connection.
    pub(super) fn note_retransmissions(&mut self, more: u32) {
        let streams = self.ids.iter().zip(&mut self.streams);
        for (_, stream) in streams.filter(|(id, _)| **id != 0) {
            *stream.exchange.retransmissions.get_or_insert(0) += more;
        }
    }

    /// See [`super::HttpState::oldest`].
    pub(super) fn oldest(&self) -> Option<Nanos> {
        if self.in_flight == 0 {
            return None;
        }
        self.ids
            .iter()
            .zip(&self.streams)
            .filter(|(id, _)| **id != 0)
            .map(|(_, stream)| stream.exchange.at)
            .min()
    }

    /// See [`super::HttpState::exchanges`].
    #[inline]
    pub(super) fn exchanges(&self) -> u64 {
        self.begun
    }
}

/// The last frame before we close.
pub(super) fn goodbye(out: &mut Vec<u8>) {
    writer::write_go_away(out, 0, NO_ERROR, b"");
}

/// A decimal number.
fn digits(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}
