//! HTTP/1 or HTTP/2 on a byte stream: TCP or a Unix socket, over TLS or plain.
//!
//! An [`HttpState`] implements HTTP/1 or HTTP/2 without I/O: bytes and their times in, bytes to
//! send and finished exchanges out. A [`Channel`] moves the bytes.

#[cfg(test)]
mod tests;

use super::connection_life::ConnectionLife;
use super::exchange_record::NewExchange;
use super::http2::Http2;
use super::open_record::OpenRecord;
use super::transport_end::TransportEnd;
use super::{Ended, Received, State};
use crate::channel::Channel;
use crate::clock::TimestampConverter;
use crate::connection::heartbeat::{Beat, Heartbeat};
use crate::{Arrival, Clock, Due, Request, ResponseError, failure, tls};
use intact_ledger::{CloseKind, ClosePoint, Closed, Failure, Nanos, SetupPhase, Side, Sink};
use intact_wire::h2::writer;
use intact_wire::tcp::Acknowledgements;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// A lost segment of a request is sent again after this time at the earliest, in nanoseconds: half
/// of Linux's minimum retransmission timeout.
const LEAST_RETRANSMISSION: u64 = 100_000_000;
/// How late a response is for which it is worth a system call to ask when its request was
/// acknowledged, in nanoseconds.
const LEAST_ACKNOWLEDGEMENT: u64 = 1_000_000;

/// An open connection on a byte stream, with the state of its HTTP version.
pub(super) struct StreamConnection<H> {
    pub(super) channel: Channel,
    pub(super) http: Box<H>,
    pub(super) record: OpenRecord,
    /// Bytes to send.
    out: Vec<u8>,
    /// Look for the end before each request, which costs a system call.
    looks_ahead: bool,
    /// The peer is a proxy, so acknowledgements are not the server's.
    pub(super) is_tunnel: bool,
    /// A FIN or a RST was read, or reading is no longer possible.
    is_read_to_end: bool,
    /// Retransmissions that were assigned to exchanges.
    retransmissions: u32,
    /// The kernel's counts after the last response that was late enough for them.
    acknowledgements: Option<Acknowledgements>,
    /// The client of a TLS session whose handshake was not complete at the first request.
    pub(super) early: Option<Box<tls::Client>>,
    /// PINGs, if they are sent.
    heartbeat: Option<Heartbeat>,
}

impl StreamConnection<Http2> {
    /// See [`super::HttpConnection::set_ping`].
    pub(super) fn set_ping(&mut self, interval: Duration, now: Nanos) {
        self.heartbeat = Some(Heartbeat::new(interval, now));
    }
}

impl<H: HttpState> StreamConnection<H> {
    /// Takes over a stream to the server whose handshake is complete, or whose first request was
    /// sent `early`. `out` is the preface of the protocol.
    pub(super) fn new(
        (channel, record): (Channel, OpenRecord),
        (http, out): (H, Vec<u8>),
        early: Option<tls::Client>,
        is_tunnel: bool,
    ) -> StreamConnection<H> {
        StreamConnection {
            channel,
            looks_ahead: http.life().response.is_some(),
            http: Box::new(http),
            record,
            out,
            is_tunnel,
            is_read_to_end: false,
            retransmissions: 0,
            acknowledgements: None,
            early: early.map(Box::new),
            heartbeat: None,
        }
    }

    /// See [`super::HttpConnection::timer`].
    #[inline]
    pub(super) fn timer(&self) -> Option<Nanos> {
        let heartbeat = self.heartbeat.as_ref()?;
        let is_open = self.record.ended.is_none() && self.http.state() != State::Over;
        is_open.then(|| heartbeat.due())
    }

    /// See [`super::HttpConnection::keep_time`].
    pub(super) fn keep_time(&mut self, now: Nanos, sink: &mut impl Sink) {
        let (Some(heartbeat), None) = (&mut self.heartbeat, self.record.ended) else {
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
                let ended = (CloseKind::Silent, Side::Server, now);
                self.record.note_end(ended, now);
                self.is_read_to_end = true;
                self.fail_handshake(Failure::Timeout, "the server is silent", sink);
                self.end_exchanges(Some(Failure::Timeout), now, sink);
            }
        }
    }

    /// Begins an exchange that is `due`. The first one waits for the setup.
    /// [`StreamConnection::send`] sends its request.
    #[inline]
    pub(super) fn begin(&mut self, request: &Arc<Request>, id: u64, due: Due, warmup: bool) {
        let is_first = self.http.life().exchanges() == 0;
        let new = NewExchange {
            request,
            id,
            due,
            warmup,
            setup: is_first.then_some(&self.record.connection.setup),
            sent_before: self.channel.taken() + self.out.len() as u64,
        };
        self.http.begin(&new, &mut self.out);
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
        if self.looks_ahead && self.http.life().exchanges() > 1 && self.channel.is_at_end() {
            self.record.end_read_at.get_or_insert(clock.now());
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

    /// Ends the use of a connection whose server violated the protocol.
    pub(super) fn break_off(&mut self, broken: &ResponseError, at: Nanos, sink: &mut impl Sink) {
        self.http.break_off(broken, at, sink);
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
            Ok(None) => Received::Nothing,
            Ok(Some((0, _))) => {
                self.end_by_fin(read, sink);
                Received::Ended
            }
            Ok(Some((count, stamp))) => {
                let at = stamp.and_then(|stamp| timestamps.convert(stamp, read));
                self.take_read(&buffer[..count], Arrival::new(at, read), sink)
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
        self.note_acknowledgements(arrival.read);
        match self.take(bytes, arrival, sink) {
            true => Received::Bytes {
                count: bytes.len(),
                at: arrival.read,
            },
            false => Received::Ended,
        }
    }

    /// Reads the kernel's counts, if the response was late enough for the path to matter.
    #[inline]
    fn note_acknowledgements(&mut self, now: Nanos) {
        let waited = self.http.oldest().map_or(0, |oldest| now.since(oldest));
        if waited >= LEAST_ACKNOWLEDGEMENT
            && let Some(counts) = self.channel.acknowledgements()
        {
            let before = self.acknowledgements.replace(counts);
            if let Some(nanos) = before.and_then(|before| counts.since(before)) {
                self.http.note_acknowledgement(nanos);
            }
            if waited >= LEAST_RETRANSMISSION {
                let more = counts.retransmissions.saturating_sub(self.retransmissions);
                self.retransmissions = counts.retransmissions;
                self.http.note_retransmissions(more);
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
                self.record.note_end(ended, arrival.read);
                self.end_exchanges(None, arrival.read, sink);
                true
            }
            Err(broken) => {
                let ended = (CloseKind::Fin, Side::Client, arrival.read);
                self.record.note_end(ended, arrival.read);
                self.is_read_to_end = true;
                self.http.break_off(&broken, arrival.read, sink);
                false
            }
        }
    }

    /// Records a connection whose first request was sent before the end of the handshake. Returns
    /// whether the server chose a protocol that we can use.
    fn complete_handshake(&mut self, sink: &mut impl Sink) -> bool {
        let (Some(client), Some(session), false) =
            (&self.early, self.channel.session(), self.record.is_recorded)
        else {
            return true;
        };
        if !client.accepts(session) {
            return false;
        }
        self.record.connection.tls = Some(client.describe(session));
        self.record.complete_handshake(sink);
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
        self.record
            .fail_handshake((SetupPhase::Ssl, kind), words, sink)
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
        self.record.note_end(ended, arrival.read);
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
        self.record.note_end((CloseKind::Fin, Side::Server, at), at);
        self.is_read_to_end = true;
        let words = "the peer closed the connection during the TLS handshake";
        let failure = self.fail_handshake(Failure::Closed, words, sink);
        self.end_exchanges(failure, at, sink);
    }

    /// Records the server's RST.
    pub(super) fn end_by_reset(&mut self, at: Nanos, sink: &mut impl Sink) {
        self.record.note_end((CloseKind::Rst, Side::Server, at), at);
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

    /// Ends the exchanges in flight; without a failure, like the end of the stream.
    fn end_exchanges(&mut self, failure: Option<Failure>, at: Nanos, sink: &mut impl Sink) {
        // the kernel's count is read only if it matters
        let end = match self.http.oldest() {
            Some(_) if self.http.life().exchanges() > 1 => self.transport_end(failure, at),
            _ => TransportEnd {
                failure,
                at,
                ..TransportEnd::default()
            },
        };
        self.http.end(&end, sink);
    }

    fn transport_end(&self, failure: Option<Failure>, at: Nanos) -> TransportEnd {
        let sent = self.channel.bytes().sent;
        let peer = self.record.connection.peer;
        let is_local = peer.is_some_and(|peer| peer.ip().is_loopback());
        let acknowledged = match failure {
            _ if self.is_tunnel => None,
            // loopback delivers within send(2), and refuses to send after a RST
            Some(Failure::Reset) if is_local => Some(sent),
            _ => self.channel.acknowledged(),
        };
        self.record.transport_end(failure, at, sent, acknowledged)
    }

    /// See [`super::HttpConnection::awaits_server`].
    pub(super) fn awaits_server(&self) -> bool {
        if self.is_read_to_end {
            return false;
        }
        let life = self.http.life();
        let is_last = life.announced_by.is_some() && life.moment == ClosePoint::AfterExchange;
        let closes = self.record.ended.is_some() || is_last;
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
        if self.record.ended.is_none() {
            self.http.goodbye(&mut self.out);
            self.channel.say_goodbye(&self.out);
        }
        let mut ended = self.record.ended.unwrap_or(Ended {
            at,
            by: Side::Client,
            how: CloseKind::Fin,
        });
        // GOAWAY ends the use of a connection before the stream ends
        if ended.how != CloseKind::Rst && self.http.life().goaway_at.is_some() {
            (ended.by, ended.how) = (Side::Server, CloseKind::Goaway);
        }
        self.record
            .close(ended, self.http.life(), self.channel.bytes())
    }
}

/// The HTTP state of one connection, without I/O.
pub(super) trait HttpState {
    /// Begins an exchange. Its request goes to `out`.
    fn begin(&mut self, new: &NewExchange<'_>, out: &mut Vec<u8>);

    /// Records that the requests that were begun are with the kernel. `held_back`: some bytes wait
    /// for the socket.
    fn sent(&mut self, at: Nanos, held_back: bool);

    /// Adds retransmissions to the exchanges in flight, which share the connection.
    fn note_retransmissions(&mut self, more: u32);

    /// Records how long the only request in flight took to be acknowledged, in nanoseconds.
    fn note_acknowledgement(&mut self, nanos: u64);

    /// Reads bytes. Completed exchanges go to `sink`, and the protocol's replies to `out`.
    fn receive(&mut self, bytes: &[u8], arrival: Arrival, sink: &mut impl Sink, out: &mut Vec<u8>);

    /// Records the end or the failure of the stream: the exchanges in flight end. `end` shows which
    /// requests the peer received.
    fn end(&mut self, end: &TransportEnd, sink: &mut impl Sink);

    /// Records a malformed or too large response: the exchanges in flight fail, and no exchange may
    /// begin.
    fn break_off(&mut self, broken: &ResponseError, at: Nanos, sink: &mut impl Sink);

    /// Writes the last bytes before we close.
    fn goodbye(&self, _out: &mut Vec<u8>) {}

    /// The life of the connection.
    fn life(&self) -> &ConnectionLife;

    /// The life of the connection.
    fn life_mut(&mut self) -> &mut ConnectionLife;

    /// The next possible action.
    fn state(&self) -> State;

    /// When the oldest exchange in flight was due.
    fn oldest(&self) -> Option<Nanos>;
}
