//! The state of HTTP/3, and the exchanges in flight.
//!
//! As in HTTP/2, the first exchange is alone in flight. The others follow its response, so only one
//! waits for the setup.

use super::server_streams::ServerStreams;
use super::{ResponseInfo, State, Streams, TransportEnd, Violation};
use crate::connection::{Detail, exchange_record};
use crate::{Due, Request, Stopwatch};
use intact_ledger::{
    ClosePoint, Event, Exchange, ExchangeBytes, Failure, Nanos, Setup, Side, Sink,
};
use intact_wire::h2::ResponseFields;
use intact_wire::h3::qpack::{self, BlockCache};
use intact_wire::h3::{ErrorCode, FrameReader, writer};
use std::sync::Arc;

/// Largest accepted list of header fields, in bytes.
pub(super) const LARGEST_LIST: usize = 256 * 1024;
/// Largest accepted header block, in compressed bytes.
pub(super) const LARGEST_BLOCK: usize = 64 * 1024;

/// No exchange has this place.
const FREE: u64 = u64::MAX;
/// An exchange has this place, and waits until the server allows another stream.
const WAITING: u64 = u64::MAX - 1;

/// A place for one exchange in flight.
pub(super) struct Stream {
    pub(super) request: Arc<Request>,
    pub(super) exchange: Exchange,
    pub(super) watch: Stopwatch,
    pub(super) reader: FrameReader,
    /// Bytes that the connection had sent before its request.
    sent_before: u64,
    /// The send is not recorded yet.
    unsent: bool,
    /// Number of interim (1xx) responses so far.
    pub(super) interim: u32,
    /// The frames of the request before its body.
    head: Arc<[u8]>,
    /// Bytes of the head and the body that QUIC has taken.
    written: usize,
}

/// The state of the connection, and the exchanges in flight.
pub(super) struct Http3 {
    /// Stream ids of `streams`; a separate list, so that a search reads little memory.
    pub(super) ids: Vec<u64>,
    pub(super) streams: Vec<Stream>,
    blank: Exchange,
    /// The request of the last exchange that began, and its frames before the body.
    request: Option<Arc<Request>>,
    head: Arc<[u8]>,
    /// The stream of the next request, opened ahead.
    next: Option<u64>,
    in_flight: usize,
    most: usize,
    begun: u64,
    /// Exchanges that the server refused to process.
    refused: u64,
    /// The place of the exchange that began last.
    last_begun: usize,
    pub(super) answered: bool,
    pub(super) memo: BlockCache<ResponseFields>,
    /// Memory for Huffman strings.
    pub(super) scratch: Vec<u8>,
    pub(super) server: ServerStreams,
    pub(super) announced_by: Option<Side>,
    pub(super) goaway_at: Option<Nanos>,
    pub(super) over: bool,
    /// How the server violated the protocol; its bytes are not read any more.
    pub(super) broken: Option<ErrorCode>,
    /// Number of consecutive frames without a part of a response.
    pub(super) idle_frames: u32,
    pub(super) moment: ClosePoint,
    pub(super) response: Option<Box<ResponseInfo>>,
}

impl Http3 {
    /// The state of a new connection with at most `streams` exchanges in flight. `blank` holds the
    /// fields that they share.
    pub(super) fn new(blank: Exchange, detail: Detail, streams: usize) -> Http3 {
        Http3 {
            ids: Vec::new(),
            streams: Vec::new(),
            blank,
            request: None,
            head: Arc::default(),
            next: None,
            in_flight: 0,
            most: streams,
            begun: 0,
            refused: 0,
            last_begun: 0,
            answered: false,
            memo: BlockCache::default(),
            scratch: Vec::new(),
            server: ServerStreams::default(),
            announced_by: None,
            goaway_at: None,
            over: false,
            broken: None,
            idle_frames: 0,
            moment: ClosePoint::Unused,
            response: (detail == Detail::Fields).then(Box::default),
        }
    }

    /// The bytes of our control stream. Without a dynamic table there are no other streams.
    pub(super) fn control_stream(&self) -> Vec<u8> {
        writer::control_stream(LARGEST_LIST)
    }

    /// See [`crate::HttpConnection::begin`].
    pub(super) fn begin(
        &mut self,
        request: &Arc<Request>,
        id: u64,
        due: Due,
        warmup: bool,
        setup: Option<&Setup>,
        quic: &mut impl Streams,
    ) {
        if !request.is(&self.request) {
            self.request = Some(request.clone());
            self.head = head_of(request);
        }
        let place = self.free_place(request);
        let stream_id = self.next.take().unwrap_or(WAITING);
        self.begun += 1;
        self.idle_frames = 0;
        self.in_flight += 1;
        self.moment = ClosePoint::MidExchange;
        self.ids[place] = stream_id;
        self.last_begun = place;
        let stream = &mut self.streams[place];
        let exchange = &mut stream.exchange;
        if !Arc::ptr_eq(&stream.request, request) {
            stream.request = request.clone();
            request.describe(exchange);
        }
        exchange.ordinal = Some(self.begun as u32);
        stream.watch = exchange_record::begin(exchange, due, setup);
        stream.reader.reset();
        stream.unsent = false;
        stream.interim = 0;
        stream.written = 0;
        stream.head = self.head.clone();
        exchange.id = id;
        exchange.warmup = warmup;
        exchange.stream = None;
        let body = request.body.len();
        let body_header = match body {
            0 => 0,
            len => writer::data_header_len(len),
        };
        exchange.bytes = ExchangeBytes {
            request_head: (self.head.len() - body_header) as u64,
            request_body: (body_header + body) as u64,
            ..ExchangeBytes::default()
        };
        if stream_id != WAITING {
            self.write(place, quic);
        }
        self.open_more(quic);
    }

    /// A place without an exchange in flight.
    fn free_place(&mut self, request: &Arc<Request>) -> usize {
        if let Some(place) = self.ids.iter().position(|&id| id == FREE) {
            return place;
        }
        let mut exchange = self.blank.clone();
        request.describe(&mut exchange);
        self.ids.push(FREE);
        self.streams.push(Stream {
            request: request.clone(),
            exchange,
            watch: Stopwatch::default(),
            reader: FrameReader::new(LARGEST_BLOCK),
            sent_before: 0,
            unsent: false,
            interim: 0,
            head: self.head.clone(),
            written: 0,
        });
        self.ids.len() - 1
    }

    /// Opens streams: for exchanges that wait for one, and for the next one.
    pub(super) fn open_more(&mut self, quic: &mut impl Streams) {
        if self.over {
            return;
        }
        if self.next.is_none() {
            self.next = quic.open_request();
        }
        while let Some(stream) = self.next
            && let Some(place) = self.ids.iter().position(|&id| id == WAITING)
        {
            self.ids[place] = stream;
            self.write(place, quic);
            self.next = quic.open_request();
        }
    }

    /// Sends the requests in flight again, on new streams, because the server refused the early
    /// data.
    pub(super) fn begin_again(&mut self, quic: &mut impl Streams) {
        self.next = None;
        for place in 0..self.ids.len() {
            if self.ids[place] != FREE {
                self.ids[place] = WAITING;
                self.streams[place].written = 0;
            }
        }
        self.open_more(quic);
    }

    /// Passes on the rest of the request on a stream that accepts more.
    pub(super) fn write_more(&mut self, stream: u64, quic: &mut impl Streams) {
        if let Some(place) = self.place(stream) {
            self.write(place, quic);
        }
    }

    /// Passes the request on to QUIC, up to the limit of its windows.
    fn write(&mut self, place: usize, quic: &mut impl Streams) {
        let id = self.ids[place];
        let stream = &mut self.streams[place];
        let (head, body) = (&stream.head, &stream.request.body);
        let whole = head.len() + body.len();
        stream.exchange.stream = Some(id);
        if stream.written == whole {
            return;
        }
        while stream.written < whole {
            let rest = match stream.written.checked_sub(head.len()) {
                None => &head[stream.written..],
                Some(at) => &body[at..],
            };
            let taken = quic.write(id, rest);
            if taken == 0 {
                return;
            }
            stream.written += taken;
            stream.unsent = true;
            self.idle_frames = 0;
        }
        quic.finish(id);
    }

    /// Records that the requests that were begun are with the kernel.
    #[inline]
    pub(super) fn sent(&mut self, at: Nanos) {
        for stream in self.streams.iter_mut().filter(|stream| stream.unsent) {
            stream.unsent = false;
            Stopwatch::sent(&mut stream.exchange, at);
        }
    }

    /// Records how many bytes the connection had sent before the exchange that began last.
    #[inline]
    pub(super) fn note_sent_before(&mut self, bytes: u64) {
        if let Some(stream) = self.streams.get_mut(self.last_begun) {
            stream.sent_before = bytes;
        }
    }

    /// Records the end of the connection: the exchanges in flight end. `end` shows which requests
    /// the server received.
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
        for place in 0..self.ids.len() {
            if self.ids[place] == FREE {
                continue;
            }
            let stream = &mut self.streams[place];
            let begun = stream.watch.begun();
            let before = stream.sent_before;
            let kind = end.kind(failure, &mut stream.exchange, begun, self.answered, before);
            let kind = kind.unwrap_or(Failure::Truncated);
            if kind == Failure::Stale {
                moment = ClosePoint::Stale;
            }
            self.fail(place, kind, at, sink);
        }
        self.moment = moment;
    }

    /// See [`crate::HttpConnection::state`].
    #[inline]
    pub(super) fn state(&self) -> State {
        if self.in_flight > 0 && (self.over || !self.answered) {
            return State::Busy;
        }
        match (self.over, self.in_flight) {
            (true, _) => State::Over,
            (false, busy) if busy > 0 && busy >= self.most => State::Busy,
            // an exchange that begins without a stream would wait for the server's permission
            (false, busy) if busy > 0 && self.next.is_none() => State::Busy,
            (false, _) => State::Ready,
        }
    }

    #[inline]
    pub(super) fn place(&self, stream: u64) -> Option<usize> {
        self.ids.iter().position(|&id| id == stream && id < WAITING)
    }

    /// Whether the place has a request that a GOAWAY with this stream refuses. One that waits for a
    /// stream is never sent.
    pub(super) fn is_refused(&self, place: usize, first: u64) -> bool {
        self.ids[place] != FREE && self.ids[place] >= first
    }

    /// Ends an exchange with a failure.
    pub(super) fn fail(&mut self, place: usize, kind: Failure, at: Nanos, sink: &mut impl Sink) {
        self.free(place);
        let exchange = &mut self.streams[place].exchange;
        Stopwatch::fail(exchange, kind, at);
        self.refused += u64::from(exchange.outcome.is_refusal());
        sink.record(Event::Exchange(exchange));
    }

    /// Frees a place whose exchange is over.
    pub(super) fn free(&mut self, place: usize) {
        self.ids[place] = FREE;
        self.streams[place].unsent = false;
        self.in_flight -= 1;
        if self.in_flight == 0 {
            self.moment = ClosePoint::AfterExchange;
        }
    }

    /// Ends the use of a connection whose server violated the protocol.
    pub(super) fn break_off(&mut self, violation: &Violation, at: Nanos, sink: &mut impl Sink) {
        self.over = true;
        self.broken.get_or_insert(violation.code);
        for place in 0..self.ids.len() {
            if self.ids[place] != FREE {
                self.streams[place].exchange.detail = Some(violation.error.words.clone());
                self.fail(place, violation.error.kind, at, sink);
            }
        }
        self.moment = ClosePoint::MidExchange;
    }

    /// The code with which we close the connection.
    pub(super) fn close_code(&self) -> ErrorCode {
        self.broken.unwrap_or(ErrorCode::H3_NO_ERROR)
    }

    /// Adds lost packets to the exchanges in flight, which share the connection.
    pub(super) fn note_retransmissions(&mut self, more: u32) {
        let streams = self.ids.iter().zip(&mut self.streams);
        for (_, stream) in streams.filter(|(id, _)| **id != FREE) {
            *stream.exchange.retransmissions.get_or_insert(0) += more;
        }
    }

    /// See [`crate::HttpConnection::oldest`].
    pub(super) fn oldest(&self) -> Option<Nanos> {
        if self.in_flight == 0 {
            return None;
        }
        let streams = self.ids.iter().zip(&self.streams);
        let in_flight = streams.filter(|(id, _)| **id != FREE);
        in_flight.map(|(_, stream)| stream.exchange.at).min()
    }

    /// See [`crate::HttpConnection::exchanges`].
    #[inline]
    pub(super) fn exchanges(&self) -> u64 {
        self.begun - self.refused
    }
}

/// HEADERS, and the header of the DATA frame with the body if there is one.
fn head_of(request: &Request) -> Arc<[u8]> {
    let mut block = Vec::with_capacity(128);
    qpack::begin(&mut block);
    for (name, value) in request.http2_fields() {
        let is_secret = matches!(
            &**name,
            b"authorization" | b"cookie" | b"proxy-authorization"
        );
        qpack::encode(name, value, is_secret, &mut block);
    }
    let mut head = Vec::with_capacity(block.len() + 8);
    writer::write_headers(&mut head, &block);
    if !request.body.is_empty() {
        writer::write_data_header(&mut head, request.body.len());
    }
    head.into()
}
