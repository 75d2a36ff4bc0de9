//! HTTP/2 on one connection, with concurrent exchanges.
//!
//! The first exchange is alone in flight. The others follow its response, so only one waits for the
//! setup.

mod ending;
mod receive;

use super::transport_end::TransportEnd;
use super::{Detail, ResponseInfo, State, exchange_record};
use crate::{Due, Request, ResponseError, Stopwatch};
use intact_ledger::{
    ClosePoint, Exchange, ExchangeBytes, Failure, KeepAliveTerms, Nanos, Setup, Side, Sink,
};
use intact_wire::h2::hpack::{BlockCache, Decoder, Encoder, Indexing};
use intact_wire::h2::{
    ErrorCode, FRAME_HEADER_LEN, FrameReader, Limits, PREFACE, ResponseFields, Setting, Settings,
    writer,
};
use std::sync::Arc;

/// The largest window (RFC 9113 section 6.9.1).
const LARGEST_WINDOW: u32 = 0x7fff_ffff;
/// Bytes used of a window before it is extended again.
const REFILL: u32 = 1 << 30;
/// Largest accepted list of header fields, in bytes.
const LARGEST_LIST: usize = 256 * 1024;
/// Interim (1xx) responses that may precede a final one, as in HTTP/1.
const MOST_INTERIM: u32 = 100;
/// Limit of consecutive frames without a part of a response or room for a request: more are a flood
/// (RFC 9113 section 10.5).
const MOST_IDLE_FRAMES: u32 = 10_000;
/// Limit of the server's settings that are kept; far fewer have a meaning.
const MOST_SETTINGS: usize = 32;

/// A slot for one exchange in flight.
struct Stream {
    request: Arc<Request>,
    exchange: Exchange,
    watch: Stopwatch,
    /// Bytes that the connection had accepted before its request.
    sent_before: u64,
    /// The send is not recorded yet.
    unsent: bool,
    /// Number of interim (1xx) responses so far.
    interim: u32,
    /// Bytes of the request body that are with the kernel.
    body_sent: usize,
    /// Bytes that the server accepts on this stream.
    window: i64,
    /// Bytes used of the window that we gave.
    taken: u32,
}

/// The state of the connection, and the exchanges in flight.
pub(super) struct Http2 {
    reader: FrameReader,
    decoder: Decoder,
    memo: BlockCache<ResponseFields>,
    encoder: Encoder,
    server: Settings,
    /// Stream ids of `streams`, 0 for a free slot; a separate list, so that a search reads little
    /// memory.
    ids: Vec<u32>,
    streams: Vec<Stream>,
    blank: Exchange,
    /// The request of the last exchange that began.
    request: Option<Arc<Request>>,
    next_id: u32,
    in_flight: usize,
    most: usize,
    begun: u64,
    /// Exchanges that the server refused to process.
    refused: u64,
    /// The slot of the exchange that began last.
    last_begun: usize,
    answered: bool,
    /// The header block of the last request.
    block: Vec<u8>,
    /// The last two blocks were identical, so the next one is, too.
    repeats: bool,
    window: i64,
    taken: u32,
    pub(super) announced_by: Option<Side>,
    pub(super) goaway_at: Option<Nanos>,
    /// The last stream of the last GOAWAY.
    pub(super) goaway_stream: Option<u32>,
    over: bool,
    /// How the server violated RFC 9113; its bytes are not read any more.
    broken: Option<ErrorCode>,
    /// Number of consecutive frames without a part of a response.
    idle_frames: u32,
    /// Number of replies to SETTINGS and PING since the socket last accepted all our bytes.
    unread_replies: u32,
    pub(super) moment: ClosePoint,
    pub(super) response: Option<Box<ResponseInfo>>,
    /// The server's settings as sent, with [`Detail::Fields`].
    pub(super) settings: Vec<(u16, u32)>,
    /// The content of responses, where the caller keeps it.
    pub(super) content: Option<Box<KeptContent>>,
}

/// The content of the response in flight.
pub(super) struct KeptContent {
    pub(super) bytes: Vec<u8>,
    /// Its limit in bytes.
    pub(super) most: usize,
}

impl KeptContent {
    fn take(&mut self, bytes: &[u8]) -> Result<(), ResponseError> {
        if self.bytes.len() + bytes.len() > self.most {
            let words = format!("more than {} bytes of content", self.most);
            return Err(ResponseError::too_large(words));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }
}

impl Http2 {
    /// The state of a new connection with at most `streams` exchanges in flight. `blank` holds the
    /// fields that they share. The preface goes to `out`.
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
            refused: 0,
            last_begun: 0,
            answered: false,
            block: Vec::new(),
            repeats: false,
            window: i64::from(default),
            taken: 0,
            announced_by: None,
            goaway_at: None,
            goaway_stream: None,
            over: false,
            broken: None,
            idle_frames: 0,
            unread_replies: 0,
            moment: ClosePoint::Unused,
            response,
            settings: Vec::new(),
            content: None,
        }
    }

    /// See [`super::stream_connection::HttpState::begin`].
    pub(super) fn begin(
        &mut self,
        request: &Arc<Request>,
        id: u64,
        due: Due,
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
        self.idle_frames = 0;
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
        stream.watch = exchange_record::begin(exchange, due, setup);
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

    /// A slot without an exchange in flight.
    fn free_place(&mut self, request: &Arc<Request>) -> usize {
        debug_assert_eq!(
            self.ids.iter().filter(|id| **id != 0).count(),
            self.in_flight,
            "a place that no exchange in flight has is free"
        );
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

    /// Sets `block` to the header block of the next request. The first one fills the server's
    /// table. A block that was identical twice in a row has not changed the table, so it stays
    /// valid.
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

    /// Sends the request body, up to the limit of the windows.
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
            self.idle_frames = 0;
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

    /// See [`super::stream_connection::HttpState::sent`].
    #[inline]
    pub(super) fn sent(&mut self, at: Nanos, held_back: bool) {
        if !held_back {
            self.unread_replies = 0;
        }
        for stream in self.streams.iter_mut().filter(|stream| stream.unsent) {
            stream.unsent = false;
            Stopwatch::sent(&mut stream.exchange, at);
        }
    }

    /// See [`super::stream_connection::HttpState::note_sent_before`].
    #[inline]
    pub(super) fn note_sent_before(&mut self, bytes: u64) {
        if let Some(stream) = self.streams.get_mut(self.last_begun) {
            stream.sent_before = bytes;
        }
    }

    /// See [`super::stream_connection::HttpState::end`].
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
            let begun = stream.watch.begun();
            let before = stream.sent_before;
            let kind = end.kind(failure, &mut stream.exchange, begun, self.answered, before);
            let kind = kind.unwrap_or(Failure::Truncated);
            if kind == Failure::Stale {
                moment = ClosePoint::Stale;
            }
            self.fail(id, kind, at, sink);
        }
        self.moment = moment;
    }

    /// See [`super::stream_connection::HttpState::state`].
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
            // a server that allows no streams is of no more use
            (false, 0) if self.answered && room == 0 => State::Over,
            (false, busy) if busy > 0 && busy >= room => State::Busy,
            (false, _) => State::Ready,
        }
    }

    #[inline]
    fn place(&self, stream: u32) -> Option<usize> {
        self.ids.iter().position(|&id| id == stream && id != 0)
    }

    /// The last frame before we close, with the reason if the server violated RFC 9113.
    pub(super) fn goodbye(&self, out: &mut Vec<u8>) {
        writer::write_go_away(out, 0, self.broken.unwrap_or(ErrorCode::NO_ERROR), b"");
    }

    /// Adds retransmissions to the exchanges in flight, which share the connection.
    pub(super) fn note_retransmissions(&mut self, more: u32) {
        let streams = self.ids.iter().zip(&mut self.streams);
        for (_, stream) in streams.filter(|(id, _)| **id != 0) {
            *stream.exchange.retransmissions.get_or_insert(0) += more;
        }
    }

    /// See [`super::stream_connection::HttpState::oldest`].
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

    /// See [`super::stream_connection::HttpState::exchanges`].
    #[inline]
    pub(super) fn exchanges(&self) -> u64 {
        self.begun - self.refused
    }
}
