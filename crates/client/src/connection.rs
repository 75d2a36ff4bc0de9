//! One open connection that we drive, with a stopwatch on every exchange.
//!
//! An [`HttpConnection`] has HTTP/1 or HTTP/2 on a byte stream, or HTTP/3 on QUIC. All
//! join an HTTP state without I/O to a transport that moves the bytes.
//!
//! Nothing here blocks, waits or sets a timer. The caller's loop polls the socket, begins
//! exchanges, and decides when to give up. QUIC has timers of its own: the loop asks for the next
//! one by [`HttpConnection::timer`].

mod connection_life;
mod exchange_record;
mod exchange_slots;
mod heartbeat;
mod http1;
mod http2;
#[cfg(feature = "http3")]
mod http3;
mod open_record;
mod response_info;
mod stream_connection;
mod transport_end;

pub use connection_life::ConnectionLife;
pub use response_info::ResponseInfo;

use crate::channel::Channel;
use crate::clock::TimestampConverter;
use crate::dial::Transport;
use crate::{Clock, Due, Established, Request, ResponseError, Stream};
use connection_life::KeptContent;
use http1::Http1;
use http2::Http2;
#[cfg(feature = "http3")]
use http3::Http3Connection;
use intact_ledger::{
    CloseKind, Closed, Connection, ConnectionBytes, Exchange, Failure, Nanos, Protocol, Side, Sink,
};
use intact_wire::quic::TransportParameters;
use open_record::OpenRecord;
use rustls::ClientConnection;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use stream_connection::{HttpState, StreamConnection};

/// What bytes of the server lead to, unless they violate the protocol.
type Checked<T = ()> = Result<T, ResponseError>;

/// What a connection can do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Exchanges are in flight, and there is no room for another one.
    Busy,
    /// Another exchange may begin.
    Ready,
    /// No exchange may begin and none is in flight.
    Over,
}

/// The parts of a response that are kept in addition to the ledger's fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// None. In HTTP/2 the server gets no header table, so equal header sections have equal bytes.
    Outcome,
    /// The fields of the last response, the server's settings, and whether the server had ended the
    /// connection before a request. In HTTP/2 the server gets a header table, as from other
    /// clients.
    Fields,
}

/// The end of a connection, by the server, or by us where we had to end it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// When it was observed.
    pub at: Nanos,
    /// Who closed first.
    pub by: Side,
    /// The kind of close.
    pub how: CloseKind,
}

/// The result of one read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// Bytes were read.
    Bytes {
        /// Number of bytes on the wire.
        count: usize,
        /// When they were read.
        at: Nanos,
    },
    /// No bytes are available.
    Nothing,
    /// No more bytes can be read.
    Ended,
}

/// An open connection.
pub struct HttpConnection(Kind);

enum Kind {
    Http1(StreamConnection<Http1>),
    Http2(StreamConnection<Http2>),
    #[cfg(feature = "http3")]
    Http3(Http3Connection),
}

/// Calls a method that all kinds have, or what stands for it over QUIC.
macro_rules! each {
    ($kind:expr, $connection:ident => $call:expr) => {
        each!($kind, $connection => $call, $connection => $call)
    };
    ($kind:expr, $stream:pat => $call:expr, $quic:pat => $otherwise:expr) => {
        match $kind {
            Kind::Http1($stream) => $call,
            Kind::Http2($stream) => $call,
            #[cfg(feature = "http3")]
            Kind::Http3($quic) => $otherwise,
        }
    };
}

impl HttpConnection {
    /// Takes over an established dial, for at most `streams` concurrent exchanges if the protocol
    /// supports that. `blank` holds the fields that all exchanges share.
    pub fn new(
        established: Established,
        protocol: Protocol,
        detail: Detail,
        streams: usize,
        mut blank: Exchange,
    ) -> HttpConnection {
        let Established {
            transport,
            connection,
            stamped,
            handshake,
            is_tunnel,
            header_table,
            early,
        } = established;
        blank.connection = Some(connection.id);
        HttpConnection(match transport {
            Transport::Stream { stream, session } => {
                let bytes = ConnectionBytes {
                    sent: handshake.sent,
                    received: handshake.received,
                    ..ConnectionBytes::default()
                };
                let channel = Channel::new(stream, session, stamped, bytes);
                let record = OpenRecord::new(connection, early.is_none());
                let wire = (channel, record);
                match protocol {
                    Protocol::Http2 => {
                        let http = Http2::new(blank, (detail, header_table), streams);
                        Kind::Http2(StreamConnection::new(wire, http, early, is_tunnel))
                    }
                    _ => {
                        let http = (Http1::new(blank, detail), Vec::new());
                        Kind::Http1(StreamConnection::new(wire, http, early, is_tunnel))
                    }
                }
            }
            #[cfg(feature = "http3")]
            Transport::Quic(quic) => {
                let open = Http3Connection::new(*quic, connection, detail, streams, blank);
                Kind::Http3(open)
            }
        })
    }

    /// The ledger's record of the connection.
    pub fn connection(&self) -> &Connection {
        each!(&self.0, open => &open.record.connection)
    }

    /// The TLS session; `None` without TLS, and for QUIC, which holds its own.
    pub fn session(&self) -> Option<&ClientConnection> {
        each!(&self.0, open => open.channel.session(), _ => None)
    }

    /// Begins an exchange that is `due`. The first one waits for the setup.
    /// [`HttpConnection::send`] sends its request.
    #[inline]
    pub fn begin(&mut self, request: &Arc<Request>, id: u64, due: impl Into<Due>, warmup: bool) {
        let due = due.into();
        each!(&mut self.0, open => open.begin(request, id, due, warmup));
    }

    /// Begins an exchange whose request was sent as early data (HTTP/1).
    pub fn begin_early(&mut self, request: &Arc<Request>, id: u64, at: Nanos) {
        each!(
            &mut self.0,
            open => open.begin_early(request, id, at),
            open => open.begin(request, id, at.into(), false)
        );
    }

    /// Sends the requests that were begun, and what the protocol has to send. The part that the
    /// socket does not accept stays for [`HttpConnection::flush`]. Returns when that was done;
    /// `None` if there was nothing to send.
    ///
    /// # Errors
    /// Those of the socket. A response with the reason may still be readable.
    #[inline]
    pub fn send(&mut self, clock: &Clock) -> io::Result<Option<Nanos>> {
        each!(&mut self.0, open => open.send(clock))
    }

    /// Sends the part that the socket did not accept before. An error also shows in the next read.
    #[inline]
    pub fn flush(&mut self) {
        each!(&mut self.0, open => open.flush());
    }

    /// Bytes that were sent and received so far: a loop compares it to detect progress.
    #[inline]
    pub fn moved(&self) -> u64 {
        let bytes = each!(&self.0, open => open.channel.bytes(), open => open.quic.bytes());
        bytes.sent + bytes.received
    }

    /// Sends PING on an HTTP/2 connection after each `interval` without anything from the server. A
    /// PING without a reply within the next interval ends the connection.
    pub fn set_ping(&mut self, interval: Duration, now: Nanos) {
        if let Kind::Http2(open) = &mut self.0 {
            open.set_ping(interval, now);
        }
    }

    /// Whether the SYN carried data and the server accepted it (TCP Fast Open); `None` if the
    /// kernel does not report it.
    pub fn sent_with_syn(&self) -> Option<bool> {
        each!(&self.0, open => open.channel.sent_with_syn(), _ => None)
    }

    /// Does what its timer asks for: HTTP/2 sends PING, or finds the server gone. QUIC does that in
    /// [`HttpConnection::receive`].
    pub fn keep_time(&mut self, now: Nanos, sink: &mut impl Sink) {
        each!(&mut self.0, open => open.keep_time(now, sink), _ => ());
    }

    /// When to call [`HttpConnection::keep_time`] and [`HttpConnection::receive`] even if no data
    /// arrives: QUIC retransmits lost data, and HTTP/2 may send PING.
    #[inline]
    pub fn timer(&mut self) -> Option<Nanos> {
        each!(&mut self.0, open => open.timer())
    }

    /// Whether a read of `count` bytes into a buffer for `room` took all that had arrived, so that
    /// more is a new event.
    #[inline]
    pub fn has_read_all(&self, count: usize, room: usize) -> bool {
        each!(&self.0, _ => count < room, open => open.quic.is_emptied())
    }

    /// Ends the exchanges in flight after `turns` iterations of the caller's loop without progress.
    /// No exchange may begin after that.
    pub fn give_up_idle_turns(&mut self, turns: u32, at: Nanos, sink: &mut impl Sink) {
        let words = format!("{turns} events in a row, and nothing to read or to send");
        let broken = ResponseError::no_progress(words);
        each!(&mut self.0, open => open.break_off(&broken, at, sink));
    }

    /// Reads once. Ended exchanges go to `sink`. QUIC also does what its timers ask for.
    #[inline]
    pub fn receive(
        &mut self,
        buffer: &mut [u8],
        clock: &Clock,
        timestamps: &TimestampConverter,
        sink: &mut impl Sink,
    ) -> Received {
        each!(&mut self.0, open => open.receive(buffer, clock, timestamps, sink))
    }

    /// Takes bytes that the caller received from [`HttpConnection::stream`], instead of
    /// [`HttpConnection::receive`]. `stamp` is the kernel's timestamp of their last segment, in
    /// nanoseconds of CLOCK_REALTIME. QUIC takes no bytes here: it has no stream.
    #[inline]
    pub fn take_received(
        &mut self,
        bytes: &[u8],
        stamp: Option<u64>,
        clock: &Clock,
        timestamps: &TimestampConverter,
        sink: &mut impl Sink,
    ) -> Received {
        each!(
            &mut self.0,
            open => open.take_received(bytes, stamp, clock, timestamps, sink),
            _ => Received::Nothing
        )
    }

    /// The socket, for a caller that receives from it; `None` for QUIC.
    #[inline]
    pub fn stream(&self) -> Option<&Stream> {
        each!(&self.0, open => Some(open.channel.stream()), _ => None)
    }

    /// Whether bytes wait until the stream accepts more: [`HttpConnection::flush`] sends them. QUIC
    /// keeps its own packets, and sends them when [`HttpConnection::receive`] is called.
    #[inline]
    pub fn has_unsent(&self) -> bool {
        each!(&self.0, open => open.channel.has_unsent(), _ => false)
    }

    /// Reads the data that TLS decrypted with the handshake, for a caller whose exchange began
    /// before the end of the handshake.
    pub fn receive_buffered(&mut self, clock: &Clock, sink: &mut impl Sink) {
        each!(&mut self.0, open => open.receive_buffered(clock, sink), _ => ());
    }

    /// Records the server's FIN, after all data.
    pub fn end_by_fin(&mut self, at: Nanos, sink: &mut impl Sink) {
        each!(&mut self.0, open => open.end_by_fin(at, sink), _ => ());
    }

    /// Records that the peer reset the connection, or that its port is closed.
    pub fn end_by_reset(&mut self, at: Nanos, sink: &mut impl Sink) {
        each!(&mut self.0, open => open.end_by_reset(at, sink));
    }

    /// Ends the exchanges in flight, with `failure` or like the end of the stream. No exchange may
    /// begin after that.
    pub fn give_up(&mut self, failure: Option<Failure>, at: Nanos, sink: &mut impl Sink) {
        each!(&mut self.0, open => open.give_up(failure, at, sink));
    }

    /// What the HTTP version recorded of the connection up to now.
    #[inline]
    pub fn life(&self) -> &ConnectionLife {
        each!(&self.0, open => open.http.life())
    }

    /// How the connection ended; `None` while it is open.
    pub fn ended(&self) -> Option<Ended> {
        each!(&self.0, open => open.record.ended)
    }

    /// The next possible action.
    #[inline]
    pub fn state(&self) -> State {
        each!(&self.0, open => open.http.state())
    }

    /// When the oldest exchange in flight was due; `None` if none is in flight.
    #[inline]
    pub fn oldest(&self) -> Option<Nanos> {
        each!(&self.0, open => open.http.oldest())
    }

    /// Number of exchanges that have begun.
    #[inline]
    pub fn exchanges(&self) -> u64 {
        self.life().exchanges()
    }

    /// The transport parameters that a server of QUIC announced; `None` before the handshake is
    /// complete.
    pub fn transport_parameters(&self) -> Option<TransportParameters> {
        each!(&self.0, _ => None, open => open.quic.parameters())
    }

    /// Version, persistence and fields of the last response; empty without [`Detail::Fields`].
    pub fn take_response(&mut self) -> ResponseInfo {
        let life = each!(&mut self.0, open => open.http.life_mut());
        let response = life.response.as_deref_mut();
        response.map_or_else(ResponseInfo::default, std::mem::take)
    }

    /// Keeps the content of responses of HTTP/2, for a caller with one exchange in flight. A
    /// response with more than `most` bytes fails.
    pub fn keep_content(&mut self, most: usize) {
        let bytes = Vec::new();
        let life = each!(&mut self.0, open => open.http.life_mut());
        life.content = Some(Box::new(KeptContent { bytes, most }));
    }

    /// The content since the last call; empty without [`HttpConnection::keep_content`].
    pub fn take_content(&mut self) -> Vec<u8> {
        let life = each!(&mut self.0, open => open.http.life_mut());
        let content = life.content.as_deref_mut();
        content.map_or_else(Vec::new, |content| std::mem::take(&mut content.bytes))
    }

    /// Whether the server has something to send that the caller waits for before
    /// [`HttpConnection::close`]: the FIN that it announced, or the next TLS session.
    pub fn awaits_server(&self) -> bool {
        each!(&self.0, open => open.awaits_server())
    }

    /// Closes the connection; after the server, if that closed first. Returns the end for the
    /// ledger.
    pub fn close(self, at: Nanos) -> Closed {
        each!(self.0, open => open.close(at))
    }
}
