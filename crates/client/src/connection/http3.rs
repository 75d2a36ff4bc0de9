//! HTTP/3 on one QUIC connection: joins the state of HTTP/3 to QUIC's streams.
//!
//! [`Http3`] implements HTTP/3 without I/O: bytes of streams and their times in, bytes of streams
//! and finished exchanges out. [`QuicConnection`] has the packets, the timers and the socket.

mod exchanges;
mod receive;
mod server_streams;
#[cfg(test)]
mod tests;

use super::transport_end::TransportEnd;
use super::{Detail, Ended, Received, ResponseInfo, State};
use crate::clock::TimestampConverter;
use crate::quic::{LostConnection, QuicConnection, QuicEvent, StreamEnd};
use crate::{Arrival, Clock, Due, Request, ResponseError};
use bytes::Bytes;
use exchanges::Http3;
use intact_ledger::{
    Close, CloseKind, ClosePoint, Closed, Connection, DialFailure, Event, Exchange, Failure, Nanos,
    Probes, SetupPhase, Side, Sink, Span,
};
use intact_wire::h2;
use intact_wire::h3::{self, ErrorCode};
use intact_wire::quic::TransportParameters;
use std::io;
use std::sync::Arc;

/// Reads of the socket in one turn of the caller's loop. Then the other connections have theirs.
const READS_PER_TURN: u32 = 64;

/// The streams of a connection, as HTTP/3 uses them.
trait Streams {
    /// Opens a stream for a request; `None` if the server allows no more now.
    fn open_request(&mut self) -> Option<u64>;
    /// Appends bytes to a stream. Returns the number that it takes now.
    fn write(&mut self, stream: u64, bytes: &[u8]) -> usize;
    /// Ends our side of a stream.
    fn finish(&mut self, stream: u64);
}

impl Streams for QuicConnection {
    #[inline]
    fn open_request(&mut self) -> Option<u64> {
        QuicConnection::open_request(self)
    }

    #[inline]
    fn write(&mut self, stream: u64, bytes: &[u8]) -> usize {
        QuicConnection::write(self, stream, bytes)
    }

    #[inline]
    fn finish(&mut self, stream: u64) {
        QuicConnection::finish(self, stream);
    }
}

/// How the server violated HTTP/3: the kind for the ledger, and the code for the server.
#[derive(Clone, Debug)]
struct Violation {
    error: ResponseError,
    code: ErrorCode,
}

impl Violation {
    fn new(words: &str, code: ErrorCode) -> Violation {
        let error = ResponseError::malformed(words);
        Violation { error, code }
    }

    /// A malformed message.
    fn message(words: &str) -> Violation {
        Violation::new(words, ErrorCode::H3_MESSAGE_ERROR)
    }
}

impl From<h3::Error> for Violation {
    fn from(error: h3::Error) -> Violation {
        let code = error.code();
        let words = error.to_string();
        let error = match error {
            _ if code == ErrorCode::H3_EXCESSIVE_LOAD => ResponseError::too_large(words),
            h3::Error::Truncated => ResponseError::truncated(&words),
            _ => ResponseError::malformed(&words),
        };
        Violation { error, code }
    }
}

/// The rules for the fields of a response are those of HTTP/2.
impl From<h2::Error> for Violation {
    fn from(error: h2::Error) -> Violation {
        Violation::message(&error.to_string())
    }
}

/// A server that allows no control stream breaks the protocol, which will show.
fn open_control_stream(http: &Http3, quic: &mut QuicConnection) {
    if let Some(stream) = quic.open_uni() {
        quic.write(stream, &http.control_stream());
    }
}

/// An open connection.
pub(super) struct Http3Connection {
    quic: Box<QuicConnection>,
    http: Box<Http3>,
    connection: Connection,
    ended: Option<Ended>,
    /// When the end was read.
    end_read_at: Option<Nanos>,
    /// Lost packets that were assigned to exchanges.
    lost_packets: u64,
    /// What was read of one stream; kept for its memory.
    chunks: Vec<Bytes>,
    /// The connection was recorded. One whose first request is sent early is recorded after the
    /// handshake.
    is_recorded: bool,
}

impl Http3Connection {
    /// Takes over a connection, for at most `streams` concurrent exchanges.
    pub(super) fn new(
        mut quic: QuicConnection,
        connection: Connection,
        detail: Detail,
        streams: usize,
        blank: Exchange,
    ) -> Http3Connection {
        let mut http = Box::new(Http3::new(blank, detail, streams));
        open_control_stream(&http, &mut quic);
        http.open_more(&mut quic);
        Http3Connection {
            is_recorded: quic.is_connected(),
            lost_packets: quic.lost_packets(),
            quic: Box::new(quic),
            http,
            connection,
            ended: None,
            end_read_at: None,
            chunks: Vec::new(),
        }
    }

    /// See [`super::HttpConnection::connection`].
    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// See [`super::HttpConnection::begin`].
    #[inline]
    pub(super) fn begin(&mut self, request: &Arc<Request>, id: u64, due: Due, warmup: bool) {
        let setup = (self.http.exchanges() == 0).then_some(&self.connection.setup);
        let before = self.quic.bytes().sent;
        self.http
            .begin(request, id, due, warmup, setup, &mut *self.quic);
        self.http.note_sent_before(before);
    }

    /// See [`super::HttpConnection::send`].
    #[inline]
    pub(super) fn send(&mut self, clock: &Clock) -> io::Result<Option<Nanos>> {
        if self.ended.is_some() {
            return Ok(None);
        }
        let before = self.quic.bytes().sent;
        let sent = self.quic.transmit();
        let at = (self.quic.bytes().sent > before).then(|| clock.now());
        if let Some(at) = at {
            self.http.sent(at);
        }
        sent.map(|()| at)
    }

    /// See [`super::HttpConnection::flush`].
    #[inline]
    pub(super) fn flush(&mut self) {
        if self.quic.has_unsent() {
            let _ = self.quic.flush();
        }
    }

    /// See [`super::HttpConnection::moved`].
    #[inline]
    pub(super) fn moved(&self) -> u64 {
        let bytes = self.quic.bytes();
        bytes.sent + bytes.received
    }

    /// See [`super::HttpConnection::timer`].
    #[inline]
    pub(super) fn timer(&mut self) -> Option<Nanos> {
        match self.ended {
            None => self.quic.timer(),
            Some(_) => None,
        }
    }

    /// See [`super::HttpConnection::has_read_all`].
    #[inline]
    pub(super) fn has_emptied_socket(&self) -> bool {
        self.quic.is_emptied()
    }

    /// See [`super::HttpConnection::give_up_idle_turns`].
    pub(super) fn give_up_idle_turns(&mut self, turns: u32, at: Nanos, sink: &mut impl Sink) {
        let words = format!("{turns} events in a row, and nothing to read or to send");
        let error = ResponseError::no_progress(words);
        let code = ErrorCode::H3_EXCESSIVE_LOAD;
        self.http.break_off(&Violation { error, code }, at, sink);
    }

    /// See [`super::HttpConnection::receive`].
    #[inline]
    pub(super) fn receive(
        &mut self,
        buffer: &mut [u8],
        clock: &Clock,
        timestamps: &TimestampConverter,
        sink: &mut impl Sink,
    ) -> Received {
        self.quic.keep_time();
        let mut total = 0;
        for _ in 0..READS_PER_TURN {
            match self.quic.receive(buffer) {
                Ok(Some((count, stamp))) => {
                    let read = clock.now();
                    let at = stamp.and_then(|stamp| timestamps.convert(stamp, read));
                    total += count;
                    self.note_lost_packets();
                    self.take_events(Arrival::new(at, read), sink);
                }
                Ok(None) => break,
                Err(_) => {
                    self.end_by_reset(clock.now(), sink);
                    return Received::Ended;
                }
            }
        }
        let at = clock.now();
        if total == 0 {
            // a timer may have ended the connection
            self.take_events(Arrival::new(None, at), sink);
        }
        match (self.ended, total) {
            (Some(_), _) => Received::Ended,
            (None, 0) => Received::Nothing,
            (None, count) => Received::Bytes { count, at },
        }
    }

    /// Assigns lost packets to the exchanges in flight.
    #[inline]
    fn note_lost_packets(&mut self) {
        if self.http.oldest().is_none() {
            return;
        }
        let all = self.quic.lost_packets();
        if all > self.lost_packets {
            let more = u32::try_from(all - self.lost_packets).unwrap_or(u32::MAX);
            self.lost_packets = all;
            self.http.note_retransmissions(more);
        }
    }

    /// Handles what the last packets led to.
    fn take_events(&mut self, arrival: Arrival, sink: &mut impl Sink) {
        while let Some(event) = self.quic.event() {
            let done = match event {
                QuicEvent::Readable(stream) => self.read(stream, arrival, sink),
                QuicEvent::Opened => self.accept(arrival, sink),
                QuicEvent::Writable(stream) => {
                    self.http.write_more(stream, &mut *self.quic);
                    Ok(())
                }
                QuicEvent::Available => {
                    self.http.open_more(&mut *self.quic);
                    Ok(())
                }
                QuicEvent::Connected => {
                    self.complete_handshake(sink);
                    Ok(())
                }
                QuicEvent::Stopped => Ok(()),
                QuicEvent::Lost(lost) => {
                    self.lose(&lost, arrival, sink);
                    return;
                }
            };
            if let Err(violation) = done {
                self.http.break_off(&violation, arrival.read, sink);
            }
        }
    }

    /// Records a connection whose first request was sent early. If the server refused it, the
    /// request is sent again.
    fn complete_handshake(&mut self, sink: &mut impl Sink) {
        if std::mem::replace(&mut self.is_recorded, true) {
            return;
        }
        let is_accepted = self.quic.is_early_accepted();
        self.connection.tls = Some(self.quic.describe(is_accepted));
        sink.record(Event::Opened(&self.connection));
        if !is_accepted {
            open_control_stream(&self.http, &mut self.quic);
            self.http.begin_again(&mut *self.quic);
        }
    }

    /// Records a connection that ends before its handshake is complete. Returns whether it does.
    fn fail_handshake(
        &mut self,
        (phase, kind): (SetupPhase, Failure),
        words: &str,
        sink: &mut impl Sink,
    ) -> bool {
        if std::mem::replace(&mut self.is_recorded, true) {
            return false;
        }
        self.connection.failed = Some(DialFailure {
            phase,
            kind,
            detail: Some(words.into()),
        });
        sink.record(Event::Opened(&self.connection));
        true
    }

    /// Takes the streams that the server opened.
    fn accept(&mut self, arrival: Arrival, sink: &mut impl Sink) -> Result<(), Violation> {
        while let Some(stream) = self.quic.accept_uni() {
            self.http.add_server_stream(stream);
            self.read(stream, arrival, sink)?;
        }
        Ok(())
    }

    #[inline]
    fn read(
        &mut self,
        stream: u64,
        arrival: Arrival,
        sink: &mut impl Sink,
    ) -> Result<(), Violation> {
        let mut chunks = std::mem::take(&mut self.chunks);
        let end = self.quic.read(stream, &mut chunks);
        let read = self.http.receive(stream, &chunks, end, arrival, sink);
        chunks.clear();
        self.chunks = chunks;
        read
    }

    /// Records the end of the connection.
    fn lose(&mut self, lost: &LostConnection, arrival: Arrival, sink: &mut impl Sink) {
        self.note_end((lost.how, lost.by, arrival.at), arrival.read);
        if self.fail_handshake(lost.setup, &lost.words, sink) {
            self.end_exchanges(Some(lost.setup.1), arrival.read, sink);
        } else if lost.by == Side::Client {
            let violation = Violation::new(&lost.words, ErrorCode::H3_GENERAL_PROTOCOL_ERROR);
            self.http.break_off(&violation, arrival.read, sink);
        } else {
            self.end_exchanges(lost.failure, arrival.read, sink);
        }
    }

    /// See [`super::HttpConnection::end_by_reset`].
    pub(super) fn end_by_reset(&mut self, at: Nanos, sink: &mut impl Sink) {
        self.note_end((CloseKind::Rst, Side::Server, at), at);
        let setup = (SetupPhase::Connect, Failure::Refused);
        let failure = match self.fail_handshake(setup, "the port is closed", sink) {
            true => Failure::Refused,
            false => Failure::Reset,
        };
        self.end_exchanges(Some(failure), at, sink);
    }

    /// See [`super::HttpConnection::give_up`].
    pub(super) fn give_up(&mut self, failure: Option<Failure>, at: Nanos, sink: &mut impl Sink) {
        let kind = match failure {
            Some(Failure::Timeout) | None => Failure::ConnectTimeout,
            Some(kind) => kind,
        };
        let setup = (SetupPhase::Connect, kind);
        let failure = match self.fail_handshake(setup, "gave up after --timeout", sink) {
            true => Some(kind),
            false => failure,
        };
        self.end_exchanges(failure, at, sink);
    }

    fn note_end(&mut self, (how, by, at): (CloseKind, Side, Nanos), read_at: Nanos) {
        self.ended.get_or_insert(Ended { at, by, how });
        self.end_read_at.get_or_insert(read_at);
    }

    /// Ends the exchanges in flight; without a failure, like the end of the connection.
    fn end_exchanges(&mut self, failure: Option<Failure>, at: Nanos, sink: &mut impl Sink) {
        let end = TransportEnd {
            read_at: self.end_read_at.unwrap_or(at),
            sent: self.quic.bytes().sent,
            // acknowledgements of QUIC are not reported per stream
            acknowledged: None,
            round_trip: self.connection.setup.connect.map(Span::nanos),
        };
        self.http.end(failure, at, &end, sink);
    }

    /// See [`super::HttpConnection::ended`].
    pub(super) fn ended(&self) -> Option<Ended> {
        self.ended
    }

    /// See [`super::HttpConnection::goaway_at`].
    pub(super) fn goaway_at(&self) -> Option<Nanos> {
        self.http.goaway_at
    }

    /// See [`super::HttpConnection::state`].
    #[inline]
    pub(super) fn state(&self) -> State {
        self.http.state()
    }

    /// See [`super::HttpConnection::oldest`].
    #[inline]
    pub(super) fn oldest(&self) -> Option<Nanos> {
        self.http.oldest()
    }

    /// See [`super::HttpConnection::exchanges`].
    #[inline]
    pub(super) fn exchanges(&self) -> u64 {
        self.http.exchanges()
    }

    /// See [`super::HttpConnection::announced_by`].
    pub(super) fn announced_by(&self) -> Option<Side> {
        self.http.announced_by
    }

    /// See [`super::HttpConnection::transport_parameters`].
    pub(super) fn transport_parameters(&self) -> Option<TransportParameters> {
        self.quic.parameters()
    }

    /// See [`super::HttpConnection::take_response`].
    pub(super) fn take_response(&mut self) -> ResponseInfo {
        let response = self.http.response.as_deref_mut();
        response.map_or_else(ResponseInfo::default, std::mem::take)
    }

    /// See [`super::HttpConnection::awaits_server`].
    pub(super) fn awaits_server(&self) -> bool {
        self.ended.is_none() && self.quic.awaits_ticket()
    }

    /// See [`super::HttpConnection::close`].
    pub(super) fn close(mut self, at: Nanos) -> Closed {
        if self.ended.is_none() {
            self.quic.close(self.http.close_code().0);
        }
        let announced_by = self.http.announced_by;
        let moment = match self.http.moment {
            ClosePoint::AfterExchange if announced_by.is_none() => ClosePoint::Idle,
            moment => moment,
        };
        let ended = self.ended.unwrap_or(Ended {
            at,
            by: Side::Client,
            how: CloseKind::Goaway,
        });
        // GOAWAY ends the use of a connection before the connection ends
        let by = match self.http.goaway_at {
            Some(_) => Side::Server,
            None => ended.by,
        };
        Closed {
            connection: self.connection.id,
            variant: self.connection.variant,
            round: self.connection.round,
            close: Close {
                at: ended.at,
                by: Some(by),
                how: Some(ended.how),
                other_end: None,
                announced_by,
                moment: Some(moment),
                exchanges: Some(self.http.exchanges()),
                bytes: self.quic.bytes(),
                probes: Probes::default(),
            },
        }
    }
}
