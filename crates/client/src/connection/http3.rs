//! HTTP/3 on one QUIC connection: joins the state of HTTP/3 to QUIC's streams.
//!
//! [`Http3`] implements HTTP/3 without I/O: bytes of streams and their times in, bytes of streams
//! and finished exchanges out. [`QuicConnection`] has the packets, the timers and the socket.

mod exchanges;
mod receive;
mod server_streams;
#[cfg(test)]
mod tests;

use super::exchange_record::NewExchange;
use super::open_record::OpenRecord;
use super::{Checked, Detail, Ended, Received};
use crate::clock::TimestampConverter;
use crate::quic::{LostConnection, QuicConnection, QuicEvent, StreamEnd, Streams};
use crate::{Arrival, Clock, Due, Request, ResponseError};
use bytes::Bytes;
use exchanges::Http3;
use intact_ledger::{
    CloseKind, Closed, Connection, Exchange, Failure, Nanos, SetupPhase, Side, Sink,
};
use intact_wire::h3::ErrorCode;
use std::io;
use std::sync::Arc;

/// Reads of the socket in one turn of the caller's loop. Then the other connections have theirs.
const READS_PER_TURN: u32 = 64;

/// A server that allows no control stream breaks the protocol, which will show.
fn open_control_stream(http: &Http3, quic: &mut QuicConnection) {
    if let Some(stream) = quic.open_uni() {
        quic.write(stream, &http.control_stream());
    }
}

/// An open connection.
pub(super) struct Http3Connection {
    pub(super) quic: Box<QuicConnection>,
    pub(super) http: Box<Http3>,
    pub(super) record: OpenRecord,
    /// Lost packets that were assigned to exchanges.
    lost_packets: u64,
    /// What was read of one stream; kept for its memory.
    chunks: Vec<Bytes>,
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
            record: OpenRecord::new(connection, quic.is_connected()),
            lost_packets: quic.lost_packets(),
            quic: Box::new(quic),
            http,
            chunks: Vec::new(),
        }
    }

    /// See [`super::HttpConnection::begin`].
    #[inline]
    pub(super) fn begin(&mut self, request: &Arc<Request>, id: u64, due: Due, warmup: bool) {
        let is_first = self.http.life().exchanges() == 0;
        let new = NewExchange {
            request,
            id,
            due,
            warmup,
            setup: is_first.then_some(&self.record.connection.setup),
            sent_before: self.quic.bytes().sent,
        };
        self.http.begin(&new, &mut *self.quic);
    }

    /// See [`super::HttpConnection::send`].
    #[inline]
    pub(super) fn send(&mut self, clock: &Clock) -> io::Result<Option<Nanos>> {
        if self.record.ended.is_some() {
            return Ok(None);
        }
        let before = self.quic.bytes().sent;
        let sent = self.quic.transmit();
        let at = (self.quic.bytes().sent > before).then(|| clock.now());
        if let Some(at) = at {
            self.http.exchanges.sent(at);
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

    /// See [`super::HttpConnection::timer`].
    #[inline]
    pub(super) fn timer(&mut self) -> Option<Nanos> {
        match self.record.ended {
            None => self.quic.timer(),
            Some(_) => None,
        }
    }

    /// Ends the use of a connection whose server violated the protocol.
    pub(super) fn break_off(&mut self, broken: &ResponseError, at: Nanos, sink: &mut impl Sink) {
        self.http.break_off(broken, at, sink);
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
        match (self.record.ended, total) {
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
            self.http.exchanges.note_retransmissions(more);
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
        if self.record.is_recorded {
            return;
        }
        let is_accepted = self.quic.is_early_accepted();
        self.record.connection.tls = Some(self.quic.describe(is_accepted));
        self.record.complete_handshake(sink);
        if !is_accepted {
            open_control_stream(&self.http, &mut self.quic);
            self.http.begin_again(&mut *self.quic);
        }
    }

    /// Takes the streams that the server opened.
    fn accept(&mut self, arrival: Arrival, sink: &mut impl Sink) -> Checked {
        while let Some(stream) = self.quic.accept_uni() {
            self.http.add_server_stream(stream);
            self.read(stream, arrival, sink)?;
        }
        Ok(())
    }

    #[inline]
    fn read(&mut self, stream: u64, arrival: Arrival, sink: &mut impl Sink) -> Checked {
        let mut chunks = std::mem::take(&mut self.chunks);
        let end = self.quic.read(stream, &mut chunks);
        let read = self.http.receive(stream, &chunks, end, arrival, sink);
        chunks.clear();
        self.chunks = chunks;
        read
    }

    /// Records the end of the connection.
    fn lose(&mut self, lost: &LostConnection, arrival: Arrival, sink: &mut impl Sink) {
        let ended = (lost.how, lost.by, arrival.at);
        self.record.note_end(ended, arrival.read);
        let failed = self.record.fail_handshake(lost.setup, &lost.words, sink);
        if failed.is_none() && lost.by == Side::Client {
            let violation =
                ResponseError::with_code(&lost.words, ErrorCode::H3_GENERAL_PROTOCOL_ERROR);
            self.http.break_off(&violation, arrival.read, sink);
        } else {
            self.end_exchanges(failed.or(lost.failure), arrival.read, sink);
        }
    }

    /// See [`super::HttpConnection::end_by_reset`].
    pub(super) fn end_by_reset(&mut self, at: Nanos, sink: &mut impl Sink) {
        self.record.note_end((CloseKind::Rst, Side::Server, at), at);
        let setup = (SetupPhase::Connect, Failure::Refused);
        let failed = self
            .record
            .fail_handshake(setup, "the port is closed", sink);
        self.end_exchanges(failed.or(Some(Failure::Reset)), at, sink);
    }

    /// See [`super::HttpConnection::give_up`].
    pub(super) fn give_up(&mut self, failure: Option<Failure>, at: Nanos, sink: &mut impl Sink) {
        let kind = match failure {
            Some(Failure::Timeout) | None => Failure::ConnectTimeout,
            Some(kind) => kind,
        };
        let setup = (SetupPhase::Connect, kind);
        let failed = self
            .record
            .fail_handshake(setup, "gave up after --timeout", sink);
        self.end_exchanges(failed.or(failure), at, sink);
    }

    /// Ends the exchanges in flight; without a failure, like the end of the connection.
    fn end_exchanges(&mut self, failure: Option<Failure>, at: Nanos, sink: &mut impl Sink) {
        // acknowledgements of QUIC are not reported per stream
        let end = self
            .record
            .transport_end(failure, at, self.quic.bytes().sent, None);
        self.http.exchanges.end(&end, sink);
    }

    /// See [`super::HttpConnection::awaits_server`].
    pub(super) fn awaits_server(&self) -> bool {
        self.record.ended.is_none() && self.quic.awaits_ticket()
    }

    /// See [`super::HttpConnection::close`].
    pub(super) fn close(mut self, at: Nanos) -> Closed {
        if self.record.ended.is_none() {
            self.quic.close(self.http.close_code().0);
        }
        let mut ended = self.record.ended.unwrap_or(Ended {
            at,
            by: Side::Client,
            how: CloseKind::Goaway,
        });
        // GOAWAY ends the use of a connection before the connection ends
        if self.http.life().goaway_at.is_some() {
            ended.by = Side::Server;
        }
        self.record
            .close(ended, self.http.life(), self.quic.bytes())
    }
}
