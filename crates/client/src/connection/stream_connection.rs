//! HTTP/1 or HTTP/2 on a byte stream: TCP or a Unix socket, over TLS or plain.
//!
//! [`HttpState`] implements HTTP/1 or HTTP/2 without I/O: bytes and their times in, bytes to send
//! and finished exchanges out. A [`Channel`] moves the bytes.

#[cfg(test)]
mod tests;

use super::http1::Http1;
use super::http2::{Http2, KeptContent};
use super::transport_end::TransportEnd;
use super::{Detail, Ended, Received, ResponseInfo, State};
use crate::channel::{Channel, ReadResult};
use crate::clock::TimestampConverter;
use crate::connection::heartbeat::{Beat, Heartbeat};
use crate::{Arrival, Clock, Due, HandshakeFacts, Request, ResponseError, Stream, failure, tls};
use intact_ledger::{
    Close, CloseKind, ClosePoint, Closed, Connection, ConnectionBytes, DialFailure, Event,
    Exchange, Failure, Nanos, Probes, Protocol, Setup, SetupPhase, Side, Sink, Span,
};
use intact_wire::h2::writer;
use rustls::ClientConnection;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// What a dial reports of its stream.
pub(super) struct StreamFacts {
    /// The connection for the ledger.
    pub(super) connection: Connection,
    /// Whether reads have kernel timestamps.
    pub(super) stamped: bool,
    /// Facts about the TLS handshake.
    pub(super) handshake: HandshakeFacts,
    /// Whether the peer is a proxy with a tunnel to the server.
    pub(super) is_tunnel: bool,
    /// The client of a TLS session whose handshake is not complete.
    pub(super) early: Option<tls::Client>,
}

/// A lost segment of a request is sent again after this time at the earliest, in nanoseconds: half
/// of Linux's minimum retransmission timeout.
const LEAST_RETRANSMISSION: u64 = 100_000_000;

/// An open connection on a byte stream.
pub(super) struct StreamConnection {
    channel: Channel,
    http: HttpState,
    connection: Connection,
    /// Bytes to send.
    out: Vec<u8>,
    ended: Option<Ended>,
    /// When the end was read, or found before a request.
    end_read_at: Option<Nanos>,
    /// Look for the end before each request, which costs a system call.
    looks_ahead: bool,
    /// The peer is a proxy, so acknowledgements are not the server's.
    is_tunnel: bool,
    /// A FIN or a RST was read, or reading is no longer possible.
    is_read_to_end: bool,
    /// Retransmissions that were assigned to exchanges.
    retransmissions: u32,
    /// The client of the TLS session until its handshake is complete and the connection is
    /// recorded.
    early: Option<Box<tls::Client>>,
    /// PINGs, if they are sent.
    heartbeat: Option<Heartbeat>,
}

impl StreamConnection {
    /// Takes over a stream with its TLS session, for at most `streams` concurrent exchanges if the
    /// protocol supports that.
    pub(super) fn new(
        (stream, session): (Stream, Option<Box<ClientConnection>>),
        facts: StreamFacts,
        protocol: Protocol,
        detail: Detail,
        streams: usize,
        blank: Exchange,
    ) -> StreamConnection {
        let StreamFacts {
            connection,
            stamped,
            handshake,
            is_tunnel,
            early,
        } = facts;
        let mut out = Vec::new();
        let http = HttpState::new(protocol, detail, streams, blank, &mut out);
        let bytes = ConnectionBytes {
            sent: handshake.sent,
            received: handshake.received,
        };
        StreamConnection {
            channel: Channel::new(stream, session, stamped, bytes),
            http,
            connection,
            out,
            ended: None,
            end_read_at: None,
            looks_ahead: detail == Detail::Fields,
            is_tunnel,
            is_read_to_end: false,
            retransmissions: 0,
            early: early.map(Box::new),
            heartbeat: None,
        }
    }

    /// See [`super::HttpConnection::set_ping`].
    pub(super) fn set_ping(&mut self, interval: Duration, now: Nanos) {
        if let HttpState::Http2(_) = self.http {
            self.heartbeat = Some(Heartbeat::new(interval, now));
        }
    }

    /// See [`super::HttpConnection::sent_with_syn`].
    pub(super) fn sent_with_syn(&self) -> Option<bool> {
        self.channel.sent_with_syn()
    }

    /// See [`super::HttpConnection::timer`].
    #[inline]
    pub(super) fn timer(&self) -> Option<Nanos> {
        let heartbeat = self.heartbeat.as_ref()?;
        let is_open = self.ended.is_none() && self.state() != State::Over;
        is_open.then(|| heartbeat.due())
    }

    /// See [`super::HttpConnection::keep_time`].
    pub(super) fn keep_time(&mut self, now: Nanos, sink: &mut impl Sink) {
        let (Some(heartbeat), None) = (&mut self.heartbeat, self.ended) else {
            return;
        };
        match heartbeat.beat(now) {
            Beat::Early => {}
            Beat::Ping => {
                writer::write_ping(&mut self.out, false, *b"intact\0\0");
                // an error also shows in the next read
                let _ = self.channel.send(&self.out);
                self.out.clear();
            }
            Beat::Dead => {
                self.note_end((CloseKind::Silent, Side::Server, now), now);
                self.is_read_to_end = true;
                self.fail_handshake(Failure::Timeout, "the server is silent", sink);
                self.end_exchanges(Some(Failure::Timeout), now, sink);
            }
        }
    }

    /// The ledger's record of the connection.
    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The TLS session; `None` without TLS.
    pub(super) fn session(&self) -> Option<&ClientConnection> {
        self.channel.session()
    }

    /// Begins an exchange that is `due`. The first one waits for the setup.
    /// [`StreamConnection::send`] sends its request.
    #[inline]
    pub(super) fn begin(&mut self, request: &Arc<Request>, id: u64, due: Due, warmup: bool) {
        let setup = (self.http.exchanges() == 0).then_some(&self.connection.setup);
        let (http, out) = (&mut self.http, &mut self.out);
        let before = self.channel.taken() + out.len() as u64;
        http.begin(request, id, due, warmup, setup, out);
        http.note_sent_before(before);
    }

    /// Begins an exchange whose request was sent as early data (HTTP/1).
    pub(super) fn begin_early(&mut self, request: &Arc<Request>, id: u64, at: Nanos) {
        let before = self.out.len();
        self.begin(request, id, at.into(), false);
        self.out.truncate(before);
    }

    /// Sends the requests that were begun, and the frames of the protocol. The part that the socket
    /// does not accept stays for [`StreamConnection::flush`]. Returns when that was done; `None` if
    /// there was nothing to send.
    ///
    /// # Errors
    /// Those of send(2). A response with the reason may still be readable.
    #[inline]
    pub(super) fn send(&mut self, clock: &Clock) -> io::Result<Option<Nanos>> {
        if self.out.is_empty() {
            return Ok(None);
        }
        if self.looks_ahead && self.http.exchanges() > 1 && self.channel.is_at_end() {
            self.end_read_at.get_or_insert(clock.now());
        }
        let sent = self.channel.send(&self.out);
        self.out.clear();
        let at = clock.now();
        self.http.sent(at, self.channel.has_unsent());
        sent.map(|()| Some(at))
    }

    /// Sends the part that the socket did not accept before. An error also shows in the next read.
    #[inline]
    pub(super) fn flush(&mut self) {
        if self.channel.has_unsent() {
            let _ = self.channel.flush();
        }
    }

    /// Bytes that were sent and received so far: a loop compares it to detect progress.
    #[inline]
    pub(super) fn moved(&self) -> u64 {
        let bytes = self.channel.bytes();
        bytes.sent + bytes.received
    }

    /// Ends the exchanges in flight after `turns` iterations of the caller's loop without progress.
    /// No exchange may begin after that.
    pub(super) fn give_up_idle_turns(&mut self, turns: u32, at: Nanos, sink: &mut impl Sink) {
        let words = format!("{turns} events in a row, and nothing to read or to send");
        self.http
            .break_off(&ResponseError::no_progress(words), at, sink);
    }

    /// Reads once. Ended exchanges go to `sink`.
    #[inline]
    pub(super) fn receive(
        &mut self,
        buffer: &mut [u8],
        clock: &Clock,
        timestamps: &TimestampConverter,
        sink: &mut impl Sink,
    ) -> Received {
        let result = self.channel.receive(buffer);
        let read = clock.now();
        match result {
            Ok(ReadResult::Bytes(count, stamp)) => {
                let at = stamp.and_then(|stamp| timestamps.convert(stamp, read));
                self.take_read(&buffer[..count], Arrival::new(at, read), sink)
            }
            Ok(ReadResult::Nothing) => Received::Nothing,
            Ok(ReadResult::End) => {
                self.end_by_fin(read, sink);
                Received::Ended
            }
            Err(_) => {
                self.end_by_reset(read, sink);
                Received::Ended
            }
        }
    }

    /// Takes bytes that the caller received from this connection's socket, instead of
    /// [`StreamConnection::receive`]. `stamp` is the kernel's timestamp of their last segment, in
    /// nanoseconds of CLOCK_REALTIME.
    #[inline]
    pub(super) fn take_received(
        &mut self,
        bytes: &[u8],
        stamp: Option<u64>,
        clock: &Clock,
        timestamps: &TimestampConverter,
        sink: &mut impl Sink,
    ) -> Received {
        let read = clock.now();
        self.channel.note_received(bytes.len());
        let at = stamp.and_then(|stamp| timestamps.convert(stamp, read));
        self.take_read(bytes, Arrival::new(at, read), sink)
    }

    #[inline]
    fn take_read(&mut self, bytes: &[u8], arrival: Arrival, sink: &mut impl Sink) -> Received {
        self.note_retransmissions(arrival.read);
        match self.take(bytes, arrival, sink) {
            true => Received::Bytes {
                count: bytes.len(),
                at: arrival.read,
            },
            false => Received::Ended,
        }
    }

    /// The socket, for a caller that receives from it.
    pub(super) fn stream(&self) -> &Stream {
        self.channel.stream()
    }

    /// Whether bytes wait until the socket accepts more: [`StreamConnection::flush`] sends them.
    #[inline]
    pub(super) fn has_unsent(&self) -> bool {
        self.channel.has_unsent()
    }

    /// Reads the kernel's count of retransmissions, if the response was late enough for one.
    #[inline]
    fn note_retransmissions(&mut self, now: Nanos) {
        let is_late = |oldest: Nanos| now.since(oldest) >= LEAST_RETRANSMISSION;
        if self.oldest().is_some_and(is_late)
            && let Some(all) = self.channel.retransmissions()
        {
            let more = all.saturating_sub(self.retransmissions);
            self.retransmissions = all;
            match &mut self.http {
                HttpState::Http1(http1) => http1.note_retransmissions(more),
                HttpState::Http2(http2) => http2.note_retransmissions(more),
            }
        }
    }

    /// Reads bytes of the wire. Returns whether more can be read.
    #[inline]
    fn take(&mut self, mut bytes: &[u8], arrival: Arrival, sink: &mut impl Sink) -> bool {
        if let Some(heartbeat) = &mut self.heartbeat {
            heartbeat.hear(arrival.read);
        }
        if self.channel.is_handshaking() {
            match self.channel.continue_handshake(bytes) {
                Ok(None) => return true,
                Ok(Some(rest)) => bytes = rest,
                Err(error) => {
                    let words = failure::tls_words(&error);
                    return self.end_handshake(failure::of_tls(&error), &words, arrival, sink);
                }
            }
            if !self.complete_handshake(sink) {
                let words = "the server did not choose the protocol that was offered";
                return self.end_handshake(Failure::TlsAlpn, words, arrival, sink);
            }
            self.take_buffered(arrival, sink);
            if bytes.is_empty() {
                return true;
            }
        }
        let (http, out) = (&mut self.http, &mut self.out);
        if self.channel.is_plain() {
            http.receive(bytes, arrival, sink, out);
            return true;
        }
        let closed = self.channel.decrypt(bytes, |plaintext| {
            http.receive(plaintext, arrival, sink, out);
        });
        match closed {
            Ok(false) => true,
            Ok(true) => {
                let ended = (CloseKind::CloseNotify, Side::Server, arrival.at);
                self.note_end(ended, arrival.read);
                self.end_exchanges(None, arrival.read, sink);
                true
            }
            Err(broken) => {
                let ended = (CloseKind::Fin, Side::Client, arrival.read);
                self.note_end(ended, arrival.read);
                self.is_read_to_end = true;
                self.http.break_off(&broken, arrival.read, sink);
                false
            }
        }
    }

    /// Records a connection whose first request was sent before the end of the handshake. Returns
    /// whether the server chose a protocol that we can use.
    fn complete_handshake(&mut self, sink: &mut impl Sink) -> bool {
        let (Some(client), Some(session)) = (&self.early, self.channel.session()) else {
            return true;
        };
        if !client.accepts(session) {
            return false;
        }
        self.connection.tls = Some(client.describe(session));
        self.early = None;
        sink.record(Event::Opened(&self.connection));
        true
    }

    /// Records a connection that ends before its handshake is complete. Returns the kind of its end
    /// for the requests that were sent early; `None` if the handshake is complete.
    fn fail_handshake(
        &mut self,
        kind: Failure,
        words: &str,
        sink: &mut impl Sink,
    ) -> Option<Failure> {
        self.early.take()?;
        self.connection.failed = Some(DialFailure {
            phase: SetupPhase::Ssl,
            kind,
            detail: Some(words.into()),
        });
        sink.record(Event::Opened(&self.connection));
        Some(kind)
    }

    /// Ends a connection whose handshake failed. Returns that no more can be read.
    fn end_handshake(
        &mut self,
        kind: Failure,
        words: &str,
        arrival: Arrival,
        sink: &mut impl Sink,
    ) -> bool {
        let ended = (CloseKind::Fin, Side::Client, arrival.read);
        self.note_end(ended, arrival.read);
        self.is_read_to_end = true;
        self.fail_handshake(kind, words, sink);
        self.end_exchanges(Some(kind), arrival.read, sink);
        false
    }

    /// Reads the data that TLS decrypted with the handshake, for a caller whose exchange began
    /// before the end of the handshake.
    pub(super) fn receive_buffered(&mut self, clock: &Clock, sink: &mut impl Sink) {
        self.take_buffered(Arrival::new(None, clock.now()), sink);
    }

    fn take_buffered(&mut self, arrival: Arrival, sink: &mut impl Sink) {
        let (http, out) = (&mut self.http, &mut self.out);
        self.channel
            .buffered(|plaintext| http.receive(plaintext, arrival, sink, out));
    }

    /// Records the server's FIN, after all data.
    pub(super) fn end_by_fin(&mut self, at: Nanos, sink: &mut impl Sink) {
        self.note_end((CloseKind::Fin, Side::Server, at), at);
        self.is_read_to_end = true;
        let words = "the peer closed the connection during the TLS handshake";
        let failure = self.fail_handshake(Failure::Closed, words, sink);
        self.end_exchanges(failure, at, sink);
    }

    /// Records the server's RST.
    pub(super) fn end_by_reset(&mut self, at: Nanos, sink: &mut impl Sink) {
        self.note_end((CloseKind::Rst, Side::Server, at), at);
        self.is_read_to_end = true;
        let words = "the peer reset the connection during the TLS handshake";
        let failure = self.fail_handshake(Failure::ConnectReset, words, sink);
        self.end_exchanges(failure.or(Some(Failure::Reset)), at, sink);
    }

    /// Ends the exchanges in flight, with `failure` or like the end of the stream. No exchange may
    /// begin after that.
    pub(super) fn give_up(&mut self, failure: Option<Failure>, at: Nanos, sink: &mut impl Sink) {
        let kind = failure.unwrap_or(Failure::Timeout);
        self.fail_handshake(kind, "gave up after --timeout", sink);
        self.end_exchanges(failure, at, sink);
    }

    fn note_end(&mut self, (how, by, at): (CloseKind, Side, Nanos), read_at: Nanos) {
        self.ended.get_or_insert(Ended { at, by, how });
        self.end_read_at.get_or_insert(read_at);
    }

    /// Ends the exchanges in flight; without a failure, like the end of the stream.
    fn end_exchanges(&mut self, failure: Option<Failure>, at: Nanos, sink: &mut impl Sink) {
        // the kernel's count is read only if it matters
        let end = match self.http.oldest() {
            Some(_) if self.http.exchanges() > 1 => self.transport_end(failure, at),
            _ => TransportEnd::default(),
        };
        self.http.end(failure, at, &end, sink);
    }

    fn transport_end(&self, failure: Option<Failure>, at: Nanos) -> TransportEnd {
        let sent = self.channel.bytes().sent;
        let peer = self.connection.peer;
        let is_local = peer.is_some_and(|peer| peer.ip().is_loopback());
        TransportEnd {
            read_at: self.end_read_at.unwrap_or(at),
            sent,
            acknowledged: match failure {
                _ if self.is_tunnel => None,
                // loopback delivers within send(2), and refuses to send after a RST
                Some(Failure::Reset) if is_local => Some(sent),
                _ => self.channel.acknowledged(),
            },
            round_trip: self.connection.setup.connect.map(Span::nanos),
        }
    }

    /// How the stream ended; `None` while it is open.
    pub(super) fn ended(&self) -> Option<Ended> {
        self.ended
    }

    /// When GOAWAY arrived.
    pub(super) fn goaway_at(&self) -> Option<Nanos> {
        match &self.http {
            HttpState::Http1(_) => None,
            HttpState::Http2(http2) => http2.goaway_at,
        }
    }

    /// The last stream that the server may have processed, according to its last GOAWAY.
    pub(super) fn goaway_stream(&self) -> Option<u32> {
        match &self.http {
            HttpState::Http1(_) => None,
            HttpState::Http2(http2) => http2.goaway_stream,
        }
    }

    /// The next possible action.
    #[inline]
    pub(super) fn state(&self) -> State {
        match &self.http {
            HttpState::Http1(http1) => http1.state(),
            HttpState::Http2(http2) => http2.state(),
        }
    }

    /// When the oldest exchange in flight was due; `None` if none is in flight.
    #[inline]
    pub(super) fn oldest(&self) -> Option<Nanos> {
        self.http.oldest()
    }

    /// Number of exchanges that have begun.
    #[inline]
    pub(super) fn exchanges(&self) -> u64 {
        self.http.exchanges()
    }

    /// The side that announced the end.
    pub(super) fn announced_by(&self) -> Option<Side> {
        match &self.http {
            HttpState::Http1(http1) => http1.announced_by,
            HttpState::Http2(http2) => http2.announced_by,
        }
    }

    /// The status of a response without a request (HTTP/1).
    pub(super) fn unsolicited_status(&self) -> Option<u16> {
        match &self.http {
            HttpState::Http1(http1) => http1.unsolicited_status,
            HttpState::Http2(_) => None,
        }
    }

    /// See [`super::HttpConnection::excess`].
    pub(super) fn excess(&self) -> u64 {
        match &self.http {
            HttpState::Http1(http1) => http1.excess,
            HttpState::Http2(_) => 0,
        }
    }

    /// The server's HTTP/2 settings as sent, as identifier and value; empty without
    /// [`Detail::Fields`].
    pub(super) fn settings(&self) -> &[(u16, u32)] {
        match &self.http {
            HttpState::Http1(_) => &[],
            HttpState::Http2(http2) => &http2.settings,
        }
    }

    /// Version, persistence and fields of the last response; empty without [`Detail::Fields`].
    pub(super) fn take_response(&mut self) -> ResponseInfo {
        self.http
            .response()
            .map_or_else(ResponseInfo::default, std::mem::take)
    }

    /// See [`super::HttpConnection::keep_content`].
    pub(super) fn keep_content(&mut self, most: usize) {
        if let HttpState::Http2(http2) = &mut self.http {
            http2.content = Some(Box::new(KeptContent {
                bytes: Vec::new(),
                most,
            }));
        }
    }

    /// See [`super::HttpConnection::take_content`].
    pub(super) fn take_content(&mut self) -> Vec<u8> {
        match &mut self.http {
            HttpState::Http2(http2) => {
                let content = http2.content.as_deref_mut();
                content.map_or_else(Vec::new, |content| std::mem::take(&mut content.bytes))
            }
            HttpState::Http1(_) => Vec::new(),
        }
    }

    /// See [`super::HttpConnection::awaits_server`].
    pub(super) fn awaits_server(&self) -> bool {
        if self.is_read_to_end {
            return false;
        }
        let server_closes = match &self.http {
            HttpState::Http1(http1) => http1.announced_by.is_some(),
            HttpState::Http2(http2) => http2.announced_by == Some(Side::Server),
        };
        let closes = self.ended.is_some()
            || server_closes && self.http.moment() == ClosePoint::AfterExchange;
        closes || self.awaits_ticket()
    }

    /// Whether the server responded to an early request and its next session is still to come. It
    /// sends one when it has our end of the handshake, a round trip later. Without it, the next
    /// connection could send nothing early.
    fn awaits_ticket(&self) -> bool {
        let session = self.channel.session();
        session.is_some_and(|session| {
            session.is_early_data_accepted() && session.tls13_tickets_received() == 0
        })
    }

    /// Closes the connection; after the server, if that closed first. Returns the end for the
    /// ledger.
    pub(super) fn close(mut self, at: Nanos) -> Closed {
        if self.ended.is_none() {
            if let HttpState::Http2(http2) = &self.http {
                http2.goodbye(&mut self.out);
            }
            self.channel.say_goodbye(&self.out);
        }
        let announced_by = self.announced_by();
        let moment = match self.http.moment() {
            _ if self.ended.is_none() && self.excess() > 0 => ClosePoint::AfterExcess,
            ClosePoint::AfterExchange if announced_by.is_none() => ClosePoint::Idle,
            moment => moment,
        };
        let ended = self.ended.unwrap_or(Ended {
            at,
            by: Side::Client,
            how: CloseKind::Fin,
        });
        // GOAWAY ends the use of a connection before the stream ends
        let (by, how) = match ended.how {
            CloseKind::Rst => (ended.by, CloseKind::Rst),
            _ if self.goaway_at().is_some() => (Side::Server, CloseKind::Goaway),
            how => (ended.by, how),
        };
        Closed {
            connection: self.connection.id,
            variant: self.connection.variant,
            round: self.connection.round,
            close: Close {
                at: ended.at,
                by: Some(by),
                how: Some(how),
                other_end: None,
                announced_by,
                moment: Some(moment),
                exchanges: Some(self.http.exchanges()),
                bytes: self.channel.bytes(),
                probes: Probes::default(),
            },
        }
    }
}

/// The HTTP state of one connection, without I/O.
enum HttpState {
    /// HTTP/1.0 and 1.1.
    Http1(Box<Http1>),
    /// HTTP/2.
    Http2(Box<Http2>),
}

impl HttpState {
    /// The state of a new connection. A preface goes to `out`.
    fn new(
        protocol: Protocol,
        detail: Detail,
        streams: usize,
        blank: Exchange,
        out: &mut Vec<u8>,
    ) -> HttpState {
        match protocol {
            Protocol::Http2 => {
                let http2 = Http2::new(blank, detail, streams, out);
                HttpState::Http2(Box::new(http2))
            }
            _ => HttpState::Http1(Box::new(Http1::new(blank, detail))),
        }
    }

    /// Begins an exchange that is `due`. Its request goes to `out`. `setup` is the setup of a new
    /// connection.
    #[inline]
    fn begin(
        &mut self,
        request: &Arc<Request>,
        id: u64,
        due: Due,
        warmup: bool,
        setup: Option<&Setup>,
        out: &mut Vec<u8>,
    ) {
        match self {
            HttpState::Http1(http1) => http1.begin(request, id, due, warmup, setup, out),
            HttpState::Http2(http2) => http2.begin(request, id, due, warmup, setup, out),
        }
    }

    /// Records that the requests that were begun are with the kernel. `held_back`: some bytes wait
    /// for the socket.
    #[inline]
    fn sent(&mut self, at: Nanos, held_back: bool) {
        match self {
            HttpState::Http1(http1) => http1.sent(at),
            HttpState::Http2(http2) => http2.sent(at, held_back),
        }
    }

    /// Reads bytes. Completed exchanges go to `sink`, and the protocol's replies to `out`.
    #[inline]
    fn receive(&mut self, bytes: &[u8], arrival: Arrival, sink: &mut impl Sink, out: &mut Vec<u8>) {
        match self {
            HttpState::Http1(http1) => http1.receive(bytes, arrival, sink),
            HttpState::Http2(http2) => http2.receive(bytes, arrival, sink, out),
        }
    }

    /// Records the end or the failure of the stream: the exchanges in flight end. `end` shows which
    /// requests the peer received.
    fn end(
        &mut self,
        failure: Option<Failure>,
        at: Nanos,
        end: &TransportEnd,
        sink: &mut impl Sink,
    ) {
        match self {
            HttpState::Http1(http1) => http1.end(failure, at, end, sink),
            HttpState::Http2(http2) => http2.end(failure, at, end, sink),
        }
    }

    /// Records a malformed or too large response: the exchanges in flight fail, and no exchange may
    /// begin.
    fn break_off(&mut self, broken: &ResponseError, at: Nanos, sink: &mut impl Sink) {
        match self {
            HttpState::Http1(http1) => http1.break_off(broken, at, sink),
            HttpState::Http2(http2) => http2.break_off(broken, at, sink),
        }
    }

    /// Number of exchanges that have begun.
    #[inline]
    fn exchanges(&self) -> u64 {
        match self {
            HttpState::Http1(http1) => http1.exchanges(),
            HttpState::Http2(http2) => http2.exchanges(),
        }
    }

    /// When the oldest exchange in flight was due.
    #[inline]
    fn oldest(&self) -> Option<Nanos> {
        match self {
            HttpState::Http1(http1) => http1.oldest(),
            HttpState::Http2(http2) => http2.oldest(),
        }
    }

    /// Records how many bytes the connection had accepted before the exchange that began last.
    #[inline]
    fn note_sent_before(&mut self, bytes: u64) {
        match self {
            HttpState::Http1(http1) => http1.note_sent_before(bytes),
            HttpState::Http2(http2) => http2.note_sent_before(bytes),
        }
    }

    /// The point in the connection's life, for its close.
    fn moment(&self) -> ClosePoint {
        match self {
            HttpState::Http1(http1) => http1.moment,
            HttpState::Http2(http2) => http2.moment,
        }
    }

    fn response(&mut self) -> Option<&mut ResponseInfo> {
        match self {
            HttpState::Http1(http1) => http1.response.as_deref_mut(),
            HttpState::Http2(http2) => http2.response.as_deref_mut(),
        }
    }
}
