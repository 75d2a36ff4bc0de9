//! The state of HTTP/3, and the exchanges in flight.

use super::Streams;
use super::server_streams::ServerStreams;
use crate::connection::connection_life::ConnectionLife;
use crate::connection::exchange_record::NewExchange;
use crate::connection::exchange_slots::{ExchangeSlots, FREE};
use crate::connection::{Detail, State};
use crate::{Request, ResponseError};
use intact_ledger::{Exchange, ExchangeBytes, Nanos, Sink};
use intact_wire::h2::ResponseFields;
use intact_wire::h2::hpack::BlockCache;
use intact_wire::h3::{ErrorCode, FrameReader, qpack, writer};
use std::sync::Arc;

/// Largest accepted list of header fields, in bytes.
pub(super) const LARGEST_LIST: usize = 256 * 1024;
/// Largest accepted header block, in compressed bytes.
pub(super) const LARGEST_BLOCK: usize = 64 * 1024;

/// The stream of an exchange that waits until the server allows another one. It is above all
/// others, so GOAWAY refuses the exchange.
const WAITING: u64 = FREE - 1;

/// The stream of an exchange.
pub(super) struct Stream {
    pub(super) reader: FrameReader,
    /// The frames of the request before its body.
    head: Arc<[u8]>,
    /// Bytes of the head and the body that QUIC has taken.
    written: usize,
}

impl Default for Stream {
    fn default() -> Stream {
        Stream {
            reader: FrameReader::new(LARGEST_BLOCK),
            head: Arc::default(),
            written: 0,
        }
    }
}

/// The state of the connection, and the exchanges in flight.
#[derive(Default)]
pub(in crate::connection) struct Http3 {
    pub(super) exchanges: ExchangeSlots<Stream>,
    /// The request of the last exchange that began, and its frames before the body.
    request: Option<Arc<Request>>,
    head: Arc<[u8]>,
    /// The stream of the next request, opened ahead.
    next: Option<u64>,
    pub(super) memo: BlockCache<ResponseFields>,
    /// Memory for Huffman strings.
    pub(super) scratch: Vec<u8>,
    pub(super) server: ServerStreams,
    /// How the server violated the protocol; its bytes are not read any more.
    pub(super) broken: Option<ErrorCode>,
}

impl Http3 {
    /// The state of a new connection with at most `streams` exchanges in flight. `blank` holds the
    /// fields that they share.
    pub(super) fn new(blank: Exchange, detail: Detail, streams: usize) -> Http3 {
        Http3 {
            exchanges: ExchangeSlots::new(blank, streams, ConnectionLife::new(detail)),
            ..Http3::default()
        }
    }

    /// The bytes of our control stream. Without a dynamic table there are no other streams.
    pub(super) fn control_stream(&self) -> Vec<u8> {
        writer::control_stream(LARGEST_LIST)
    }

    /// See [`crate::HttpConnection::begin`].
    pub(super) fn begin(&mut self, new: &NewExchange<'_>, quic: &mut impl Streams) {
        let request = new.request;
        if !request.is(&self.request) {
            self.request = Some(request.clone());
            self.head = head_of(request);
        }
        let stream_id = self.next.take().unwrap_or(WAITING);
        let place = self.exchanges.begin(stream_id, new);
        let slot = &mut self.exchanges.slots[place];
        slot.stream.reader.reset();
        slot.stream.written = 0;
        slot.stream.head = self.head.clone();
        let body = request.body.len();
        let body_header = match body {
            0 => 0,
            len => writer::data_header_len(len),
        };
        slot.exchange.stream = None;
        slot.exchange.bytes = ExchangeBytes {
            request_head: (self.head.len() - body_header) as u64,
            request_body: (body_header + body) as u64,
            ..ExchangeBytes::default()
        };
        if stream_id != WAITING {
            self.write(place, quic);
        }
        self.open_more(quic);
    }

    /// Opens streams: for exchanges that wait for one, and for the next one.
    pub(super) fn open_more(&mut self, quic: &mut impl Streams) {
        if self.exchanges.life.over {
            return;
        }
        if self.next.is_none() {
            self.next = quic.open_request();
        }
        while let Some(stream) = self.next
            && let Some(place) = self.exchanges.place(WAITING)
        {
            self.exchanges.ids[place] = stream;
            self.write(place, quic);
            self.next = quic.open_request();
        }
    }

    /// Sends the requests in flight again, on new streams, because the server refused the early
    /// data.
    pub(super) fn begin_again(&mut self, quic: &mut impl Streams) {
        self.next = None;
        let exchanges = &mut self.exchanges;
        let slots = exchanges.ids.iter_mut().zip(&mut exchanges.slots);
        for (id, slot) in slots.filter(|(id, _)| **id != FREE) {
            *id = WAITING;
            slot.stream.written = 0;
        }
        self.open_more(quic);
    }

    /// Passes on the rest of the request on a stream that accepts more.
    pub(super) fn write_more(&mut self, stream: u64, quic: &mut impl Streams) {
        if let Some(place) = self.exchanges.place(stream) {
            self.write(place, quic);
        }
    }

    /// Passes the request on to QUIC, up to the limit of its windows.
    fn write(&mut self, place: usize, quic: &mut impl Streams) {
        let id = self.exchanges.ids[place];
        let slot = &mut self.exchanges.slots[place];
        let stream = &mut slot.stream;
        let (head, body) = (&stream.head, &slot.request.body);
        let whole = head.len() + body.len();
        slot.exchange.stream = Some(id);
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
            slot.unsent = true;
            self.exchanges.idle_frames = 0;
        }
        quic.finish(id);
    }

    /// The life of the connection.
    #[inline]
    pub(in crate::connection) fn life(&self) -> &ConnectionLife {
        &self.exchanges.life
    }

    /// The life of the connection.
    pub(in crate::connection) fn life_mut(&mut self) -> &mut ConnectionLife {
        &mut self.exchanges.life
    }

    /// See [`crate::HttpConnection::oldest`].
    #[inline]
    pub(in crate::connection) fn oldest(&self) -> Option<Nanos> {
        self.exchanges.oldest()
    }

    /// See [`crate::HttpConnection::state`].
    #[inline]
    pub(in crate::connection) fn state(&self) -> State {
        // an exchange that begins without a stream would wait for the server's permission
        let room = self.next.map_or(0, |_| self.exchanges.most);
        self.exchanges.state(self.exchanges.life.over, room)
    }

    /// Ends the use of a connection whose server violated the protocol.
    pub(super) fn break_off(&mut self, violation: &ResponseError, at: Nanos, sink: &mut impl Sink) {
        self.broken.get_or_insert(violation.h3);
        self.exchanges.break_off(violation, at, sink);
    }

    /// The code with which we close the connection.
    pub(super) fn close_code(&self) -> ErrorCode {
        self.broken.unwrap_or(ErrorCode::H3_NO_ERROR)
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
