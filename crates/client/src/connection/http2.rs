//! HTTP/2 on one connection, with concurrent exchanges.

mod receive;

use super::connection_life::ConnectionLife;
use super::exchange_record::NewExchange;
use super::exchange_slots::{ExchangeSlots, FREE};
use super::stream_connection::HttpState;
use super::transport_end::TransportEnd;
use super::{Detail, State};
use crate::{Arrival, Request, ResponseError};
use intact_ledger::{Exchange, ExchangeBytes, KeepAliveTerms, Nanos, Sink};
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
/// Limit of the server's settings that are kept; far fewer have a meaning.
const MOST_SETTINGS: usize = 32;

/// The stream of an exchange.
#[derive(Default)]
pub(super) struct Stream {
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
    /// How the fields of requests are encoded, but secrets.
    indexing: Indexing,
    /// The server may use a header table.
    has_table: bool,
    server: Settings,
    exchanges: ExchangeSlots<Stream>,
    /// The request of the last exchange that began.
    request: Option<Arc<Request>>,
    next_id: u32,
    /// The header block of the last request.
    block: Vec<u8>,
    /// The last two blocks were identical, so the next one is, too.
    repeats: bool,
    window: i64,
    taken: u32,
    /// How the server violated RFC 9113; its bytes are not read any more.
    broken: Option<ErrorCode>,
    /// Number of replies to SETTINGS and PING since the socket last accepted all our bytes.
    unread_replies: u32,
}

impl Http2 {
    /// The state of a new connection with at most `streams` exchanges in flight, and its preface.
    /// `blank` holds the fields that they share, `header_table` is that of [`crate::Plan`].
    pub(super) fn new(
        blank: Exchange,
        (detail, header_table): (Detail, Option<bool>),
        streams: usize,
    ) -> (Http2, Vec<u8>) {
        let settings = [
            (Setting::HeaderTableSize, 0),
            (Setting::EnablePush, 0),
            (Setting::InitialWindowSize, LARGEST_WINDOW),
        ];
        let has_table = header_table.unwrap_or(detail == Detail::Fields);
        let indexing = match header_table {
            Some(false) => Indexing::Without,
            _ => Indexing::Incremental,
        };
        let mut out = PREFACE.to_vec();
        writer::write_settings(&mut out, &settings[usize::from(has_table)..]);
        let default = intact_wire::h2::DEFAULT_WINDOW;
        writer::write_window_update(&mut out, 0, LARGEST_WINDOW - default);
        let http2 = Http2 {
            reader: FrameReader::server(Limits::default()),
            decoder: Decoder::new(LARGEST_LIST),
            memo: BlockCache::default(),
            encoder: Encoder::default(),
            indexing,
            has_table,
            server: Settings::default(),
            exchanges: ExchangeSlots::new(blank, streams, ConnectionLife::new(detail)),
            request: None,
            next_id: 1,
            block: Vec::new(),
            repeats: false,
            window: i64::from(default),
            taken: 0,
            broken: None,
            unread_replies: 0,
        };
        (http2, out)
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
                _ => self.indexing,
            };
            self.encoder.encode(name, value, indexing, &mut block);
        }
        self.repeats = self.block == block;
        self.block = block;
    }

    /// Sends the request body, up to the limit of the windows.
    fn send_body(&mut self, place: usize, out: &mut Vec<u8>) {
        let id = self.exchanges.ids[place];
        let slot = &mut self.exchanges.slots[place];
        let (stream, body) = (&mut slot.stream, &slot.request.body);
        while stream.body_sent < body.len() {
            let room = self.window.min(stream.window).max(0) as usize;
            let rest = body.len() - stream.body_sent;
            let piece = rest.min(room).min(self.server.max_frame_size as usize);
            if piece == 0 {
                return;
            }
            self.exchanges.idle_frames = 0;
            let from = stream.body_sent;
            stream.body_sent += piece;
            let last = stream.body_sent == body.len();
            writer::write_data(out, id as u32, &body[from..from + piece], last);
            self.window -= piece as i64;
            stream.window -= piece as i64;
            slot.exchange.bytes.request_body += (piece + FRAME_HEADER_LEN) as u64;
            slot.unsent = true;
        }
    }

    /// Sends the bodies in flight, up to the limit of the windows.
    fn send_bodies(&mut self, out: &mut Vec<u8>) {
        for place in 0..self.exchanges.slots.len() {
            if self.exchanges.ids[place] != FREE {
                self.send_body(place, out);
            }
        }
    }
}

impl HttpState for Http2 {
    fn begin(&mut self, new: &NewExchange<'_>, out: &mut Vec<u8>) {
        let request = new.request;
        if !request.is(&self.request) {
            self.request = Some(request.clone());
            self.repeats = false;
        }
        self.encode(request);
        let stream_id = self.next_id;
        self.next_id += 2;
        let max_frame = self.server.max_frame_size as usize;
        let frames = self.block.len().div_ceil(max_frame).max(1);
        let bodiless = request.body.is_empty();
        writer::write_headers(out, stream_id, &self.block, bodiless, max_frame);
        let place = self.exchanges.begin(u64::from(stream_id), new);
        let slot = &mut self.exchanges.slots[place];
        slot.unsent = true;
        slot.stream = Stream {
            window: i64::from(self.server.initial_window_size),
            ..Stream::default()
        };
        let exchange = &mut slot.exchange;
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

    #[inline]
    fn sent(&mut self, at: Nanos, held_back: bool) {
        if !held_back {
            self.unread_replies = 0;
        }
        self.exchanges.sent(at);
    }

    fn note_retransmissions(&mut self, more: u32) {
        self.exchanges.note_retransmissions(more);
    }

    fn note_acknowledgement(&mut self, nanos: u64) {
        self.exchanges.note_acknowledgement(nanos);
    }

    fn receive(&mut self, bytes: &[u8], arrival: Arrival, sink: &mut impl Sink, out: &mut Vec<u8>) {
        self.read(bytes, arrival, sink, out);
    }

    fn end(&mut self, end: &TransportEnd, sink: &mut impl Sink) {
        self.exchanges.end(end, sink);
    }

    fn break_off(&mut self, broken: &ResponseError, at: Nanos, sink: &mut impl Sink) {
        self.broken = Some(broken.h2);
        self.exchanges.break_off(broken, at, sink);
    }

    fn goodbye(&self, out: &mut Vec<u8>) {
        writer::write_go_away(out, 0, self.broken.unwrap_or(ErrorCode::NO_ERROR), b"");
    }

    #[inline]
    fn life(&self) -> &ConnectionLife {
        &self.exchanges.life
    }

    fn life_mut(&mut self) -> &mut ConnectionLife {
        &mut self.exchanges.life
    }

    #[inline]
    fn state(&self) -> State {
        let theirs = self
            .server
            .max_concurrent_streams
            .map_or(usize::MAX, |most| most as usize);
        let room = self.exchanges.most.min(theirs);
        let over = self.exchanges.life.over
            || self.next_id > LARGEST_WINDOW
            // a server that allows no streams is of no more use
            || room == 0 && self.exchanges.is_idle();
        self.exchanges.state(over, room)
    }

    #[inline]
    fn oldest(&self) -> Option<Nanos> {
        self.exchanges.oldest()
    }
}
