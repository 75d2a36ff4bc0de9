//! HTTP/2 on one connection: frames and HPACK of our own, several exchanges at once.
//!
//! The first exchange goes alone; the others follow once it is answered, so that only one waits for the setup.

use super::answer;
use super::conversation::{ConnectionStats, State};
use crate::variant_plan::VariantPlan;
use intact_client::{Arrival, ResponseError, Stopwatch, is_tls_alert, judge};
use intact_ledger::{
    ClosePoint, Event, Exchange, ExchangeBytes, ExpectedStatus, Failure, KeepAliveTerms, Nanos,
    Setup, Side, Sink,
};
use intact_wire::h2::hpack::{self, BlockCache, Decoder, Encoder, Indexing};
use intact_wire::h2::{
    Data, ErrorCode, FRAME_HEADER_LEN, Frame, FrameReader, Headers, Limits, PREFACE, Setting,
    Settings, writer,
};
use std::sync::Arc;

/// The largest window (RFC 9113 section 6.9.1).
const LARGEST_WINDOW: u32 = 0x7fff_ffff;
/// Bytes taken from a window before it is given back.
const REFILL: u32 = 1 << 30;
/// The largest list of header fields that is taken, in bytes.
const LARGEST_LIST: usize = 256 * 1024;
/// Interim (1xx) answers that may precede a final one, as in HTTP/1.
const INTERIM: u32 = 100;
/// RST_STREAM or GOAWAY because the request was not processed (RFC 9113 section 7).
const REFUSED_STREAM: ErrorCode = ErrorCode(0x7);
const NO_ERROR: ErrorCode = ErrorCode(0x0);

/// What matters in an answer's head.
#[derive(Clone, Copy, Default)]
struct Head {
    status: u16,
    length: Option<u64>,
}

/// One exchange in flight, or the place for one.
struct Stream {
    exchange: Exchange,
    watch: Stopwatch,
    /// The send is not noted yet.
    unsent: bool,
    /// Interim (1xx) answers so far.
    interim: u32,
    /// How much of the request body is with the kernel.
    body_sent: usize,
    /// What the server lets us send on this stream.
    window: i64,
    /// Taken from the window that we gave.
    taken: u32,
}

/// The conversation.
pub(crate) struct Http2 {
    reader: FrameReader,
    decoder: Decoder,
    memo: BlockCache<Head>,
    encoder: Encoder,
    server: Settings,
    /// Stream ids of `streams`, 0 for a free place; apart, so that a search touches little memory.
    ids: Vec<u32>,
    streams: Vec<Stream>,
    blank: Exchange,
    next_id: u32,
    in_flight: usize,
    most: usize,
    begun: u64,
    answered: bool,
    /// The block of every request after the first, once the server's table holds all of it.
    repeated: Option<Vec<u8>>,
    body: Arc<[u8]>,
    window: i64,
    taken: u32,
    announced_by: Option<Side>,
    over: bool,
    moment: ClosePoint,
    expect: Option<ExpectedStatus>,
}

impl Http2 {
    /// A conversation; `blank` holds what its exchanges have in common. The preface goes to `out`.
    pub(crate) fn new(recipe: &VariantPlan, blank: Exchange, out: &mut Vec<u8>) -> Http2 {
        out.extend_from_slice(PREFACE);
        writer::write_settings(
            out,
            &[
                (Setting::HeaderTableSize, 0),
                (Setting::EnablePush, 0),
                (Setting::InitialWindowSize, LARGEST_WINDOW),
            ],
        );
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
            next_id: 1,
            in_flight: 0,
            most: recipe.streams,
            begun: 0,
            answered: false,
            repeated: None,
            body: recipe.request.body.clone(),
            window: i64::from(default),
            taken: 0,
            announced_by: None,
            over: false,
            moment: ClosePoint::Unused,
            expect: recipe.expect,
        }
    }

    /// See [`super::Conversation::begin`].
    pub(crate) fn begin(
        &mut self,
        recipe: &VariantPlan,
        id: u64,
        at: Nanos,
        warmup: bool,
        setup: Option<&Setup>,
        out: &mut Vec<u8>,
    ) {
        let place = match self.ids.iter().position(|&id| id == 0) {
            Some(place) => place,
            None => {
                self.ids.push(0);
                self.streams.push(Stream {
                    exchange: self.blank.clone(),
                    watch: Stopwatch::default(),
                    unsent: false,
                    interim: 0,
                    body_sent: 0,
                    window: 0,
                    taken: 0,
                });
                self.ids.len() - 1
            }
        };
        let stream_id = self.next_id;
        self.next_id += 2;
        self.begun += 1;
        self.in_flight += 1;
        self.moment = ClosePoint::MidExchange;
        self.ids[place] = stream_id;
        let block = self.block(recipe);
        let max_frame = self.server.max_frame_size as usize;
        let frames = block.len().div_ceil(max_frame).max(1);
        writer::write_headers(out, stream_id, &block, self.body.is_empty(), max_frame);
        let stream = &mut self.streams[place];
        let exchange = &mut stream.exchange;
        exchange.ordinal = Some(self.begun as u32);
        stream.watch = answer::begin(exchange, at, setup);
        stream.unsent = true;
        stream.interim = 0;
        stream.body_sent = 0;
        stream.taken = 0;
        stream.window = i64::from(self.server.initial_window_size);
        exchange.id = id;
        exchange.warmup = warmup;
        exchange.stream = Some(u64::from(stream_id));
        exchange.bytes = ExchangeBytes {
            request_head: (block.len() + frames * FRAME_HEADER_LEN) as u64,
            ..ExchangeBytes::default()
        };
        exchange.terms = KeepAliveTerms {
            max_streams: self.server.max_concurrent_streams,
            ..KeepAliveTerms::default()
        };
        if self.repeated.is_none() && self.begun > 1 {
            self.repeated = Some(block);
        }
        self.send_body(place, out);
    }

    /// The header block of the next request. The first one fills the server's table; from the second on all are the same bytes.
    fn block(&mut self, recipe: &VariantPlan) -> Vec<u8> {
        if let Some(block) = &self.repeated {
            return block.clone();
        }
        let mut block = Vec::with_capacity(128);
        self.encoder.begin(&mut block);
        for (name, value) in &recipe.request.fields {
            let indexing = match &**name {
                b"authorization" | b"cookie" | b"proxy-authorization" => Indexing::Never,
                _ => Indexing::Incremental,
            };
            self.encoder.encode(name, value, indexing, &mut block);
        }
        block
    }

    /// Sends as much of the request body as the windows allow.
    fn send_body(&mut self, place: usize, out: &mut Vec<u8>) {
        let stream = &mut self.streams[place];
        while stream.body_sent < self.body.len() {
            let room = self.window.min(stream.window).max(0) as usize;
            let rest = self.body.len() - stream.body_sent;
            let piece = rest.min(room).min(self.server.max_frame_size as usize);
            if piece == 0 {
                return;
            }
            let from = stream.body_sent;
            stream.body_sent += piece;
            let last = stream.body_sent == self.body.len();
            writer::write_data(out, self.ids[place], &self.body[from..from + piece], last);
            self.window -= piece as i64;
            stream.window -= piece as i64;
            stream.exchange.bytes.request_body += (piece + FRAME_HEADER_LEN) as u64;
            stream.unsent = true;
        }
    }

    /// See [`super::Conversation::sent`].
    #[inline]
    pub(crate) fn sent(&mut self, at: Nanos) {
        for stream in self.streams.iter_mut().filter(|stream| stream.unsent) {
            stream.unsent = false;
            Stopwatch::sent(&mut stream.exchange, at);
        }
    }

    /// See [`super::Conversation::receive`].
    pub(crate) fn receive(
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
            Frame::Settings(payload) => {
                let before = self.server;
                self.server.apply(payload)?;
                writer::write_settings_ack(out);
                if self.server.header_table_size != before.header_table_size {
                    let most = hpack::DEFAULT_TABLE_SIZE;
                    self.encoder.resize(self.server.header_table_size.min(most));
                    self.repeated = None;
                }
                let change = i64::from(self.server.initial_window_size)
                    - i64::from(before.initial_window_size);
                for place in 0..self.streams.len() {
                    self.streams[place].window += change;
                    self.go_on(place, out);
                }
            }
            Frame::SettingsAck => self.decoder.allow_table_size(0),
            Frame::Ping {
                ack: false,
                payload,
            } => writer::write_ping(out, true, payload),
            Frame::GoAway { last_stream, .. } => {
                self.over = true;
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
                    self.go_on(place, out);
                }
            }
            Frame::WindowUpdate { stream, increment } => {
                if let Some(place) = self.place(stream) {
                    self.streams[place].window += i64::from(increment);
                    self.go_on(place, out);
                }
            }
            Frame::PushPromise(_) => {
                let words = "a push although we said that there is to be none";
                return Err(ResponseError::malformed(words));
            }
            Frame::Preface
            | Frame::Priority { .. }
            | Frame::Ping { ack: true, .. }
            | Frame::Unknown { .. } => {}
        }
        Ok(())
    }

    /// Goes on with a request body that waited for a window.
    fn go_on(&mut self, place: usize, out: &mut Vec<u8>) {
        if self.ids[place] != 0 && !self.body.is_empty() {
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
        let head = self
            .memo
            .read(
                &mut self.decoder,
                headers.block,
                Head::default(),
                |head, field| match field.name {
                    b":status" => head.status = digits(field.value).unwrap_or(0) as u16,
                    b"content-length" => head.length = digits(field.value),
                    _ => {}
                },
            )
            .map_err(ResponseError::from)?;
        let Some(place) = self.place(headers.stream) else {
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
                0 => return Err(ResponseError::malformed("an answer without :status")),
                100..=199 if !headers.end_stream => {
                    stream.interim += 1;
                    if stream.interim > INTERIM {
                        return Err(ResponseError {
                            kind: Failure::TooLarge,
                            words: format!("more than {INTERIM} interim answers").into(),
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
        judge(exchange, self.expect, false);
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

    /// See [`super::Conversation::end`].
    pub(crate) fn end(&mut self, failure: Option<Failure>, at: Nanos, sink: &mut impl Sink) {
        self.over = true;
        if self.in_flight == 0 {
            return;
        }
        let mut moment = ClosePoint::MidExchange;
        for id in self.ids.clone() {
            let Some(place) = self.place(id) else {
                continue;
            };
            let heard = self.streams[place].watch.begun();
            let kind = match failure {
                Some(Failure::Reset) | None if !heard && self.answered => {
                    moment = ClosePoint::Stale;
                    Failure::Stale
                }
                None if !heard => Failure::Closed,
                None => Failure::Truncated,
                Some(kind) => kind,
            };
            self.fail(id, kind, at, sink);
        }
        self.moment = moment;
    }

    /// See [`super::Conversation::state`].
    #[inline]
    pub(crate) fn state(&self) -> State {
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

    /// See [`super::Conversation::oldest`].
    pub(crate) fn oldest(&self) -> Option<Nanos> {
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

    /// See [`super::Conversation::goodbye`].
    pub(crate) fn goodbye(&self, out: &mut Vec<u8>) {
        writer::write_go_away(out, 0, NO_ERROR, b"");
    }

    /// What it knows of its life.
    pub(crate) fn life(&self) -> ConnectionStats {
        ConnectionStats {
            announced_by: self.announced_by,
            moment: self.moment,
            exchanges: self.begun,
        }
    }
}

/// A decimal number.
fn digits(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}
