//! QUIC on one connection (RFC 9000): the only user of `quinn-proto`.
//!
//! The library is a state machine without I/O: datagrams and time in, datagrams, timers and stream
//! events out. This module adds the socket. It must not know HTTP, and never blocks: the caller's
//! loop polls the socket and asks for the next timer.

mod failure;
mod session;
mod socket;

pub(crate) use failure::LostConnection;
pub use session::{QuicHandshake, QuicServerTls};

use crate::Clock;
use crate::stream::without_waiting;
use crate::tls;
use bytes::{Bytes, BytesMut};
use intact_ledger::{ConnectionBytes, Handshake, Nanos, Tls};
use intact_wire::quic::TransportParameters;
use mio::{Registry, Token};
use quinn_proto::{
    ClientConfig, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig, Event, ReadError,
    StreamEvent, StreamId, TransportConfig, VarInt, WriteError,
};
use session::QuicClientTls;
use socket::UdpSocket;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Bytes that the server may send ahead on one stream, and on all together. A client that reads
/// everything at once has no reason to hold a server back.
const STREAM_WINDOW: u32 = 16 << 20;
const WINDOW: u32 = 256 << 20;
/// Unidirectional streams of the server: three have a meaning in HTTP/3.
const SERVER_STREAMS: u32 = 16;
/// The limit of a server's bytes before the client's address is validated, per byte of the client.
const AMPLIFICATION: u64 = 3;
/// The first estimate of the round trip, which only decides when a lost first packet is repeated.
const FIRST_ROUND_TRIP: Duration = Duration::from_millis(100);

/// What happened on a connection.
#[derive(Debug)]
pub(crate) enum QuicEvent {
    /// The handshake is complete.
    Connected,
    /// The server opened unidirectional streams.
    Opened,
    /// A stream has bytes, its end, or its reset.
    Readable(u64),
    /// A stream accepts more bytes.
    Writable(u64),
    /// The server wants no more of a request; its response shows why.
    Stopped,
    /// More streams may be opened.
    Available,
    /// The connection is over.
    Lost(LostConnection),
}

/// What follows the bytes that were read from a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamEnd {
    /// More may come.
    Open,
    /// Its end.
    Finished,
    /// Its reset, with this code.
    Reset(u64),
}

/// One connection: the state of the protocol, and its socket.
pub struct QuicConnection {
    endpoint: Endpoint,
    handle: ConnectionHandle,
    inner: quinn_proto::Connection,
    socket: UdpSocket,
    peer: SocketAddr,
    clock: Clock,
    bytes: ConnectionBytes,
    /// Datagrams on their way to the socket, and the size of each if there are several.
    out: Vec<u8>,
    out_segment: Option<usize>,
    /// The socket did not accept them yet.
    is_held_back: bool,
    /// The last read found nothing more.
    is_emptied: bool,
    /// The handshake is complete.
    is_connected: bool,
    client: tls::Client,
}

impl std::fmt::Debug for QuicConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QuicConnection")
            .field("peer", &self.peer)
            .finish_non_exhaustive()
    }
}

impl QuicConnection {
    /// Starts a handshake with the server at this address.
    ///
    /// # Errors
    /// If there is no socket, or the settings of TLS do not fit QUIC.
    pub(crate) fn connect(
        client: &tls::Client,
        peer: SocketAddr,
        stamps: bool,
        registry: &Registry,
        token: Token,
        clock: &Clock,
    ) -> io::Result<QuicConnection> {
        let (tls_config, name) = client.config();
        let crypto = QuicClientTls::new(tls_config, name).ok_or_else(|| {
            io::Error::new(ErrorKind::InvalidInput, "no cipher suite that QUIC can use")
        })?;
        let mut config = ClientConfig::new(Arc::new(crypto));
        config.transport_config(Arc::new(transport()));
        let socket = UdpSocket::open(peer, stamps, registry, token)?;
        let mut endpoint_config = EndpointConfig::default();
        // the drafts of version 1 have no servers any more
        endpoint_config.supported_versions(vec![1]);
        let mut endpoint =
            Endpoint::new(Arc::new(endpoint_config), None, socket.unfragmented, None);
        let now = clock.instant(clock.now());
        // the name is that of the TLS session; here it is only a key
        let (handle, inner) = endpoint
            .connect(now, config, peer, "server")
            .map_err(|error| io::Error::new(ErrorKind::InvalidInput, error.to_string()))?;
        Ok(QuicConnection {
            endpoint,
            handle,
            inner,
            socket,
            peer,
            clock: *clock,
            bytes: ConnectionBytes::default(),
            out: Vec::new(),
            out_segment: None,
            is_held_back: false,
            is_emptied: true,
            is_connected: false,
            client: client.clone(),
        })
    }

    /// Whether reads have kernel timestamps.
    pub(crate) fn is_stamped(&self) -> bool {
        self.socket.stamped
    }

    /// Our address.
    pub(crate) fn local_addr(&self) -> Option<SocketAddr> {
        self.socket.local_addr()
    }

    /// Bytes of datagrams so far.
    pub(crate) fn bytes(&self) -> ConnectionBytes {
        self.bytes
    }

    /// What TLS has led to.
    fn handshake(&self) -> QuicHandshake {
        let data = self.inner.crypto_session().handshake_data();
        data.and_then(|data| data.downcast().ok())
            .map_or_else(QuicHandshake::default, |data| *data)
    }

    /// Whether the handshake is complete.
    pub(crate) fn is_connected(&self) -> bool {
        self.is_connected
    }

    /// Whether requests may be sent before the server responds (0-RTT).
    pub(crate) fn may_send_early(&self) -> bool {
        self.inner.has_0rtt()
    }

    /// Whether the server accepted what was sent before it responded; known once the handshake is
    /// complete. Otherwise all streams are gone.
    pub(crate) fn is_early_accepted(&self) -> bool {
        self.inner.accepted_0rtt()
    }

    /// Whether early data was accepted, and the server's ticket for the next session is still to
    /// come. It sends one when it has our end of the handshake.
    pub(crate) fn awaits_ticket(&self) -> bool {
        self.is_connected && self.is_early_accepted() && self.handshake().tickets == 0
    }

    /// The facts of the TLS session, which used early data or not.
    pub(crate) fn describe(&self, used_early_data: bool) -> Tls {
        let mut tls = self.handshake().tls;
        if used_early_data && tls.handshake == Some(Handshake::Resumed) {
            tls.handshake = Some(Handshake::EarlyData);
        }
        self.client.with_offer(tls)
    }

    /// What the server announced; `None` before the handshake is complete.
    pub(crate) fn parameters(&self) -> Option<TransportParameters> {
        self.handshake().parameters.filter(|_| self.is_connected)
    }

    /// The round trips of a complete handshake whose first flight had `first_flight` bytes. There
    /// is at least one. HelloRetryRequest (RFC 8446 section 2.1) and Retry take one more each.
    /// Without Retry, a server may send three times the bytes that it received before it waits for
    /// the client (RFC 9000 section 8.1).
    pub(crate) fn round_trips(&self, first_flight: u64) -> u32 {
        let handshake = self.handshake();
        let is_retried = handshake.parameters.is_some_and(|sent| sent.is_retried);
        let has_waited = self.bytes.received > AMPLIFICATION * first_flight;
        1 + u32::from(handshake.is_hello_repeated) + u32::from(is_retried || has_waited)
    }

    /// Packets that were declared lost so far.
    pub(crate) fn lost_packets(&self) -> u64 {
        self.inner.stats().path.lost_packets
    }

    /// Reads the socket once, and handles the datagrams. Returns the number of bytes and their
    /// timestamp, or `None` if there are none.
    ///
    /// # Errors
    /// Those of recvmsg(2): `ConnectionRefused` if the server's port is closed.
    #[inline]
    pub(crate) fn receive(
        &mut self,
        buffer: &mut [u8],
    ) -> io::Result<Option<(usize, Option<u64>)>> {
        let read = without_waiting(|| self.socket.receive(buffer))?;
        self.is_emptied = read.is_none();
        let Some(read) = read else { return Ok(None) };
        self.bytes.received += read.len as u64;
        let now = self.clock.instant(self.clock.now());
        let mut rest = BytesMut::from(&buffer[..read.len]);
        while !rest.is_empty() {
            let datagram = rest.split_to(read.segment.min(rest.len()));
            let mut response = Vec::new();
            let event = self
                .endpoint
                .handle(now, self.peer, None, None, datagram, &mut response);
            match event {
                Some(DatagramEvent::ConnectionEvent(_, event)) => self.inner.handle_event(event),
                // a stateless reset for a packet of another connection; a client needs to send none
                Some(DatagramEvent::Response(_) | DatagramEvent::NewConnection(_)) | None => {}
            }
        }
        self.settle();
        Ok(Some((read.len, read.timestamp)))
    }

    /// Whether the last read found the socket empty.
    pub(crate) fn is_emptied(&self) -> bool {
        self.is_emptied
    }

    /// When [`QuicConnection::keep_time`] has to be called.
    #[inline]
    pub(crate) fn timer(&mut self) -> Option<Nanos> {
        let at = self.inner.poll_timeout()?;
        Some(self.clock.time_of(at))
    }

    /// Does what the timers ask for.
    #[inline]
    pub(crate) fn keep_time(&mut self) {
        let now = self.clock.instant(self.clock.now());
        if self.inner.poll_timeout().is_some_and(|at| at <= now) {
            self.inner.handle_timeout(now);
            self.settle();
        }
    }

    /// Passes events between the connection and its endpoint.
    fn settle(&mut self) {
        while let Some(event) = self.inner.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(self.handle, event) {
                self.inner.handle_event(event);
            }
        }
    }

    /// Sends everything that may be sent now. Datagrams that the socket does not accept stay.
    ///
    /// # Errors
    /// Those of sendmsg(2): `ConnectionRefused` if the server's port was found closed.
    pub(crate) fn transmit(&mut self) -> io::Result<()> {
        self.flush()?;
        let now = self.clock.instant(self.clock.now());
        while !self.is_held_back {
            self.out.clear();
            let most = self.socket.most_segments();
            let Some(transmit) = self.inner.poll_transmit(now, most, &mut self.out) else {
                break;
            };
            self.out_segment = transmit.segment_size;
            self.is_held_back = true;
            self.flush()?;
        }
        Ok(())
    }

    /// Sends the datagrams that the socket did not accept before.
    ///
    /// # Errors
    /// Those of [`QuicConnection::transmit`].
    #[inline]
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        if !self.is_held_back {
            return Ok(());
        }
        let sent = without_waiting(|| self.socket.send(&self.out, self.out_segment));
        self.is_held_back = matches!(sent, Ok(None));
        if let Some(()) = sent? {
            self.bytes.sent += self.out.len() as u64;
        }
        Ok(())
    }

    /// Whether datagrams wait for the socket.
    pub(crate) fn has_unsent(&self) -> bool {
        self.is_held_back
    }

    /// The next event.
    #[inline]
    pub(crate) fn event(&mut self) -> Option<QuicEvent> {
        loop {
            return Some(match self.inner.poll()? {
                Event::Connected => {
                    self.is_connected = true;
                    QuicEvent::Connected
                }
                Event::ConnectionLost { reason } => QuicEvent::Lost(LostConnection::new(
                    &reason,
                    self.handshake().error.as_ref(),
                )),
                Event::Stream(StreamEvent::Opened { dir: Dir::Uni }) => QuicEvent::Opened,
                Event::Stream(StreamEvent::Readable { id }) => QuicEvent::Readable(id.into()),
                Event::Stream(StreamEvent::Writable { id }) => QuicEvent::Writable(id.into()),
                Event::Stream(StreamEvent::Stopped { .. }) => QuicEvent::Stopped,
                Event::Stream(StreamEvent::Available { dir: Dir::Bi }) => QuicEvent::Available,
                _ => continue,
            });
        }
    }

    /// Opens a unidirectional stream; `None` if the server allows no more.
    pub(crate) fn open_uni(&mut self) -> Option<u64> {
        self.inner.streams().open(Dir::Uni).map(u64::from)
    }

    /// The next unidirectional stream of the server.
    pub(crate) fn accept_uni(&mut self) -> Option<u64> {
        self.inner.streams().accept(Dir::Uni).map(u64::from)
    }

    /// Reads all bytes that a stream has now.
    #[inline]
    pub(crate) fn read(&mut self, stream: u64, chunks: &mut Vec<Bytes>) -> StreamEnd {
        let Ok(id) = VarInt::from_u64(stream) else {
            return StreamEnd::Open;
        };
        let mut stream = self.inner.recv_stream(StreamId::from(id));
        let Ok(mut reader) = stream.read(true) else {
            return StreamEnd::Open;
        };
        let end = loop {
            match reader.next(usize::MAX) {
                Ok(Some(chunk)) => chunks.push(chunk.bytes),
                Ok(None) => break StreamEnd::Finished,
                Err(ReadError::Reset(code)) => break StreamEnd::Reset(code.into_inner()),
                Err(ReadError::Blocked) => break StreamEnd::Open,
            }
        };
        // whether to transmit does not matter: the caller's loop does so after each read
        let _ = reader.finalize();
        end
    }

    /// Ends the connection with a code of the application, if the socket accepts that now.
    pub(crate) fn close(&mut self, code: u64) {
        let now = self.clock.instant(self.clock.now());
        let code = VarInt::from_u64(code).unwrap_or(VarInt::MAX);
        self.inner.close(now, code, Bytes::new());
        let _ = self.transmit();
    }
}

/// The streams of requests, as HTTP/3 uses them.
pub(crate) trait Streams {
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
        self.inner.streams().open(Dir::Bi).map(u64::from)
    }

    #[inline]
    fn write(&mut self, stream: u64, bytes: &[u8]) -> usize {
        let Ok(id) = VarInt::from_u64(stream) else {
            return 0;
        };
        match self.inner.send_stream(StreamId::from(id)).write(bytes) {
            Ok(written) => written,
            Err(WriteError::Blocked) => 0,
            // stopped or gone: the response shows why, and the rest is not wanted
            Err(WriteError::Stopped(_) | WriteError::ClosedStream) => bytes.len(),
        }
    }

    #[inline]
    fn finish(&mut self, stream: u64) {
        if let Ok(id) = VarInt::from_u64(stream) {
            let _ = self.inner.send_stream(StreamId::from(id)).finish();
        }
    }
}

fn transport() -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport
        // the server's limit applies: how long it keeps an idle connection is what we look for
        .max_idle_timeout(None)
        .stream_receive_window(STREAM_WINDOW.into())
        .receive_window(WINDOW.into())
        .max_concurrent_uni_streams(SERVER_STREAMS.into())
        .max_concurrent_bidi_streams(0u32.into())
        .initial_rtt(FIRST_ROUND_TRIP)
        .datagram_receive_buffer_size(None)
        // small requests of many streams share packets, in the order in which they began
        .send_fairness(false);
    transport
}
