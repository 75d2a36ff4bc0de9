//! The state machine of one dial.

#[cfg(feature = "http3")]
mod quic;

use crate::clock::Clock;
use crate::dns::StubResolver;
use crate::plan::{Endpoint, Plan, Proxy};
#[cfg(feature = "http3")]
use crate::quic::QuicConnection;
use crate::resolver::{LookupResult, Resolver};
use crate::socket_settings::SocketSettings;
use crate::stream::{Stream, without_waiting};
use crate::{failure, stamp, tls};
use intact_ledger::{
    Connection, ConnectionId, DialFailure, Failure, Lookup, Nanos, Protocol, SetupPhase, Span,
};
use mio::{Interest, Registry, Token};
use rustls::ClientConnection;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Limit of the server's bytes in a TLS handshake; a long chain of certificates takes 10 % of it.
const MOST_HANDSHAKE: u64 = 1 << 20;
/// Limit of the header section of a proxy's response to CONNECT, in bytes.
const LONGEST_PROXY_HEAD: usize = 16 * 1024;

/// The transport of an established connection. If the dial had a registry, its socket is registered
/// with the dial's token for reading and writing.
#[derive(Debug)]
pub enum Transport {
    /// A byte stream.
    Stream {
        /// The socket.
        stream: Stream,
        /// The TLS session, if TLS is used. It may hold bytes to send, and decrypted data.
        session: Option<Box<ClientConnection>>,
    },
    /// QUIC over UDP.
    #[cfg(feature = "http3")]
    Quic(Box<QuicConnection>),
}

/// A connection that is ready for its first request.
#[derive(Debug)]
pub struct Established {
    /// The transport.
    pub transport: Transport,
    /// The connection for the ledger.
    pub connection: Connection,
    /// Whether reads have kernel timestamps.
    pub stamped: bool,
    /// Facts about the TLS handshake.
    pub handshake: HandshakeFacts,
    /// Whether the peer is a proxy with a tunnel to the server.
    pub is_tunnel: bool,
    /// See [`Plan::header_table`].
    pub header_table: Option<bool>,
    /// The client of a TLS session whose handshake is not complete.
    pub early: Option<tls::Client>,
}

impl Established {
    /// Whether requests may be sent although the handshake is not complete (0-RTT). The connection
    /// is recorded by [`crate::HttpConnection::receive`] when it is.
    pub fn is_early(&self) -> bool {
        match &self.transport {
            Transport::Stream { .. } => self.early.is_some(),
            #[cfg(feature = "http3")]
            Transport::Quic(quic) => !quic.is_connected(),
        }
    }
}

/// Facts about a TLS handshake in addition to the ledger's; all `None` or 0 without TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HandshakeFacts {
    /// When the server's first bytes were read.
    pub first_at: Option<Nanos>,
    /// Number of the server's bytes.
    pub received: u64,
    /// Number of our bytes.
    pub sent: u64,
    /// Whether early data was sent with the hello.
    pub early_sent: bool,
    /// The round trips that the handshake needed; counted for QUIC only.
    pub round_trips: Option<u32>,
}

/// The result of driving a dial.
#[derive(Debug)]
pub enum Progress {
    /// Wait for the next event on its token, or for the resolver's result.
    Pending,
    /// The connection is established.
    Established(Box<Established>),
    /// The dial failed; the connection for the ledger.
    Failed(Box<Connection>),
}

#[derive(Debug)]
enum DialStage {
    Resolving,
    Connecting {
        since: Nanos,
    },
    Tunnelling {
        request: Vec<u8>,
        sent: usize,
        answer: Vec<u8>,
    },
    Handshaking {
        since: Nanos,
    },
    /// Returned to the caller, or failed.
    Over,
}

/// One dial in progress.
#[derive(Debug)]
pub struct Dial {
    plan: Arc<Plan>,
    token: Token,
    stage: DialStage,
    stream: Option<Stream>,
    session: Option<Box<ClientConnection>>,
    #[cfg(feature = "http3")]
    quic: Option<quic::QuicDial>,
    addresses: Vec<SocketAddr>,
    next_address: usize,
    connection: Connection,
    clock: Clock,
    stamped: bool,
    handshake: HandshakeFacts,
    /// The poll has reported that the transport is connected.
    is_reported_connected: bool,
    /// The finished lookup, until the caller takes it.
    lookup: Option<Lookup>,
}

impl Dial {
    /// Starts a dial at `now`. `key` identifies it for the resolver; events of the socket have
    /// `token`. Without a registry the caller watches the socket, as [`Dial::awaited`] says; QUIC
    /// needs one.
    pub fn start(
        plan: &Arc<Plan>,
        id: ConnectionId,
        token: Token,
        resolver: &mut Resolver,
        registry: Option<&Registry>,
        clock: &Clock,
    ) -> (Dial, Progress) {
        let now = clock.now();
        let mut connection = Connection::new(id, now);
        connection.origin = Some(plan.origin.clone());
        connection.protocol = Some(plan.protocol);
        let mut dial = Dial {
            plan: plan.clone(),
            token,
            stage: DialStage::Resolving,
            stream: None,
            session: None,
            #[cfg(feature = "http3")]
            quic: None,
            addresses: Vec::new(),
            next_address: 0,
            connection,
            clock: *clock,
            stamped: false,
            handshake: HandshakeFacts::default(),
            is_reported_connected: false,
            lookup: None,
        };
        let progress = match &plan.endpoint {
            Endpoint::Name { host, port, family } => {
                let names = plan.names.as_ref();
                match names.and_then(|names| names.kept(host, *family, now)) {
                    Some(kept) => {
                        let at = |ip| SocketAddr::new(ip, *port);
                        dial.addresses.extend(kept.into_iter().map(at));
                        dial.connect(registry, now)
                    }
                    None => {
                        resolver.ask(token.0 as u64, (host, *port), *family, names);
                        Progress::Pending
                    }
                }
            }
            Endpoint::Addresses(addresses) => {
                dial.addresses.extend_from_slice(addresses);
                dial.connect(registry, now)
            }
            Endpoint::Unix(_) => dial.connect(registry, now),
        };
        (dial, progress)
    }

    /// When the dial began.
    pub fn at(&self) -> Nanos {
        self.connection.at
    }

    /// The lookup of this dial; returned once.
    pub fn take_lookup(&mut self) -> Option<Lookup> {
        self.lookup.take()
    }

    /// Handles the resolver's result.
    pub fn resolved(&mut self, answer: LookupResult, registry: Option<&Registry>) -> Progress {
        if !matches!(self.stage, DialStage::Resolving) {
            return Progress::Pending;
        }
        let now = self.clock.now();
        let LookupResult {
            addresses, ttl_s, ..
        } = answer;
        let found = match &addresses {
            Ok(found) => Ok(found.iter().map(SocketAddr::ip).collect::<Vec<_>>()),
            Err(words) => Err(words.as_str().into()),
        };
        if let (Some(names), Endpoint::Name { host, family, .. }, Ok(found), Some(ttl_s)) =
            (&self.plan.names, &self.plan.endpoint, &found, ttl_s)
        {
            names.keep(host, *family, found, StubResolver::expiry(ttl_s, now));
        }
        self.record_lookup(found, now, ttl_s, Some(answer.resolver));
        match addresses {
            Ok(addresses) => {
                self.addresses = addresses;
                self.connect(registry, now)
            }
            Err(words) => self.fail(SetupPhase::Dns, Failure::Lookup, words),
        }
    }

    /// Records that the poll reported the transport as connected: the socket became writable
    /// without an error or a hang-up. So the kernel is not asked again. Call it before
    /// [`Dial::ready`].
    pub fn report_connected(&mut self) {
        self.is_reported_connected = true;
    }

    /// When [`Dial::ready`] has to be called even if nothing happened: QUIC repeats what was lost.
    pub fn timer(&mut self) -> Option<Nanos> {
        #[cfg(feature = "http3")]
        return self.quic.as_mut()?.timer();
        #[cfg(not(feature = "http3"))]
        None
    }

    /// The socket and the events that a pending dial waits for, for callers without a registry.
    /// `None` while it waits for the resolver, and after its end.
    pub fn awaited(&self) -> Option<(&Stream, Interest)> {
        let interest = match &self.stage {
            DialStage::Resolving | DialStage::Over => return None,
            DialStage::Connecting { .. } => Interest::WRITABLE,
            DialStage::Tunnelling { request, sent, .. } if *sent < request.len() => {
                Interest::WRITABLE
            }
            DialStage::Tunnelling { .. } => Interest::READABLE,
            DialStage::Handshaking { .. } => match &self.session {
                Some(session) if session.wants_write() => Interest::READABLE | Interest::WRITABLE,
                _ => Interest::READABLE,
            },
        };
        Some((self.stream.as_ref()?, interest))
    }

    /// Continues the dial after an event on its token, or when its timer is due.
    pub fn ready(&mut self, registry: Option<&Registry>) -> Progress {
        let mut progress = match self.stage {
            #[cfg(feature = "http3")]
            DialStage::Connecting { since } if self.quic.is_some() => {
                self.drive_quic(since, registry)
            }
            DialStage::Connecting { since } => self.finish_connect(since, registry),
            DialStage::Tunnelling { .. } => self.tunnel(),
            DialStage::Handshaking { .. } => self.handshake(),
            DialStage::Resolving | DialStage::Over => Progress::Pending,
        };
        if cfg!(windows)
            && let (Progress::Established(established), Some(registry)) = (&mut progress, registry)
        {
            self.watch_again(established, registry);
        }
        progress
    }

    /// Watches the socket of an open connection. On Windows `mio` reports nothing more until a read
    /// has found nothing, and the last read of a handshake found its end.
    fn watch_again(&self, established: &mut Established, registry: &Registry) {
        #[cfg_attr(not(feature = "http3"), expect(irrefutable_let_patterns))]
        if let Transport::Stream { stream, .. } = &mut established.transport {
            let interests = Interest::READABLE | Interest::WRITABLE;
            // a failure shows as a timeout of the first request
            let _ = registry.reregister(stream, self.token, interests);
        }
    }

    /// When it began.
    pub fn began(&self) -> Nanos {
        self.connection.at
    }

    /// Ends the dial because its time is over. Returns the connection for the ledger.
    pub fn give_up(&mut self, kind: Failure) -> Box<Connection> {
        if matches!(self.stage, DialStage::Resolving) && kind == Failure::Timeout {
            let now = self.clock.now();
            self.record_lookup(Err("no answer within --timeout".into()), now, None, None);
        }
        let phase = self.cut_phase();
        let kind = match (kind, phase) {
            (Failure::Timeout, SetupPhase::Dns) => Failure::Lookup,
            (Failure::Timeout, SetupPhase::Connect) => Failure::ConnectTimeout,
            (kind, _) => kind,
        };
        self.end(phase, kind, "gave up after --timeout")
    }

    /// Ends the dial because the time of its request is over, which had waited before the dial
    /// began: the peer had less than that. Returns the connection for the ledger.
    pub fn abandon(&mut self) -> Box<Connection> {
        let phase = self.cut_phase();
        let words =
            "the request waited before this connection was opened, until --timeout was over";
        self.end(phase, Failure::Timeout, words)
    }

    /// The phase that ends now, with its time.
    fn cut_phase(&mut self) -> SetupPhase {
        let now = self.clock.now();
        let setup = &mut self.connection.setup;
        match self.stage {
            DialStage::Resolving | DialStage::Over => {
                setup.dns = Some(Span::new(self.connection.at, now));
                SetupPhase::Dns
            }
            DialStage::Connecting { since } => {
                setup.connect = Some(Span::new(since, now));
                SetupPhase::Connect
            }
            DialStage::Tunnelling { .. } => SetupPhase::Connect,
            DialStage::Handshaking { since } => {
                setup.ssl = Some(Span::new(since, now));
                SetupPhase::Ssl
            }
        }
    }

    fn end(&mut self, phase: SetupPhase, kind: Failure, words: &str) -> Box<Connection> {
        match self.fail(phase, kind, words.to_owned()) {
            Progress::Failed(connection) => connection,
            _ => unreachable!("fail() fails"),
        }
    }

    /// Records the lookup that ends now.
    fn record_lookup(
        &mut self,
        answer: Result<Vec<IpAddr>, Arc<str>>,
        now: Nanos,
        ttl_s: Option<u32>,
        resolver: Option<Arc<str>>,
    ) {
        let span = Span::new(self.connection.at, now);
        self.connection.setup.dns = Some(span);
        self.lookup = Some(Lookup {
            name: match &self.plan.endpoint {
                Endpoint::Name { host, .. } => Some(host.clone()),
                _ => None,
            },
            span,
            answer: Some(answer),
            ttl_s,
            resolver,
            ..Lookup::default()
        });
    }

    /// Connects to the next address.
    fn connect(&mut self, registry: Option<&Registry>, since: Nanos) -> Progress {
        if self.plan.protocol == Protocol::Http3 {
            return self.connect_quic(registry, since);
        }
        let started = match &self.plan.endpoint {
            #[cfg(unix)]
            Endpoint::Unix(path) => {
                self.connection.transport = intact_ledger::Transport::Unix;
                mio::net::UnixStream::connect(path).map(Stream::Unix)
            }
            #[cfg(not(unix))]
            Endpoint::Unix(_) => Err(io::ErrorKind::Unsupported.into()),
            _ => {
                let Some(&address) = self.addresses.get(self.next_address) else {
                    let words = "no address to connect to".to_owned();
                    return self.fail(SetupPhase::Connect, Failure::Unreachable, words);
                };
                self.connection.peer = Some(address);
                // a plain HTTP/1 request is one write, and Nagle's algorithm never delays a single
                // write
                let one_write = self.plan.tls.is_none() && self.plan.protocol != Protocol::Http2;
                connect_tcp(&self.plan.socket, address, !one_write).map(Stream::Tcp)
            }
        };
        self.stage = DialStage::Connecting { since };
        let registered = started.and_then(|mut stream| {
            if let Some(registry) = registry {
                let interests = Interest::READABLE | Interest::WRITABLE;
                registry.register(&mut stream, self.token, interests)?;
            }
            Ok(stream)
        });
        match registered {
            Ok(stream) => {
                self.stream = Some(stream);
                Progress::Pending
            }
            Err(error) => self.next_or_fail(&error, since, registry),
        }
    }

    /// Fails: this build has no QUIC.
    #[cfg(not(feature = "http3"))]
    fn connect_quic(&mut self, _: Option<&Registry>, _: Nanos) -> Progress {
        let words = "this build was made without the feature http3".to_owned();
        self.fail(SetupPhase::Connect, Failure::Unreachable, words)
    }

    fn finish_connect(&mut self, since: Nanos, registry: Option<&Registry>) -> Progress {
        let Some(stream) = &self.stream else {
            return Progress::Pending;
        };
        // the peer's name is known after the handshake; the error is read only without it
        let connected = if self.is_reported_connected {
            Ok(true)
        } else {
            match stream.is_connected() {
                Ok(false) => stream
                    .take_error()
                    .and_then(|error| error.map_or(Ok(false), Err)),
                other => other,
            }
        };
        match connected {
            Ok(false) => return Progress::Pending,
            Ok(true) => {}
            Err(error) => return self.next_or_fail(&error, since, registry),
        }
        let now = self.clock.now();
        if let Stream::Tcp(tcp) = stream
            && let Err(error) = self.plan.socket.apply(tcp)
        {
            self.connection.setup.connect = Some(Span::new(since, now));
            let words = format!("a socket option was refused: {}", failure::io_words(&error));
            return self.fail(SetupPhase::Connect, Failure::Unreachable, words);
        }
        self.connection.setup.connect = Some(Span::new(since, now));
        if self.plan.local_address {
            self.connection.local = stream.local_addr();
        }
        if self.plan.stamps {
            self.stamped = stamp::enable(stream);
        }
        match &self.plan.proxy {
            Proxy::Transparent => self.secure(now),
            Proxy::Tunnel {
                authority,
                authorization,
            } => {
                let mut request =
                    format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n").into_bytes();
                if let Some(value) = authorization {
                    request
                        .extend_from_slice(format!("Proxy-Authorization: {value}\r\n").as_bytes());
                }
                request.extend_from_slice(b"\r\n");
                self.stage = DialStage::Tunnelling {
                    request,
                    sent: 0,
                    answer: Vec::new(),
                };
                self.tunnel()
            }
        }
    }

    /// After a failed address: tries the next one, or ends the dial. Failed addresses are counted
    /// separately.
    fn next_or_fail(
        &mut self,
        error: &io::Error,
        since: Nanos,
        registry: Option<&Registry>,
    ) -> Progress {
        self.drop_stream();
        self.is_reported_connected = false;
        if self.next_address + 1 < self.addresses.len() {
            self.next_address += 1;
            self.connection.other_attempts += 1;
            return self.connect(registry, since);
        }
        self.connection.setup.connect = Some(Span::new(since, self.clock.now()));
        self.fail(
            SetupPhase::Connect,
            failure::of_connect(error),
            failure::io_words(error),
        )
    }

    /// Requests a tunnel from the proxy. Reads its response byte by byte up to the end of the
    /// header section, so that no byte of the tunnel is lost.
    fn tunnel(&mut self) -> Progress {
        let (
            DialStage::Tunnelling {
                request,
                sent,
                answer,
            },
            Some(stream),
        ) = (&mut self.stage, &self.stream)
        else {
            return Progress::Pending;
        };
        let mut socket = stream;
        let refusal = loop {
            if *sent < request.len() {
                match without_waiting(|| socket.write(&request[*sent..])) {
                    Ok(Some(0)) => break "the proxy takes no bytes".to_owned(),
                    Ok(Some(written)) => *sent += written,
                    Ok(None) => return Progress::Pending,
                    Err(error) => break failure::io_words(&error),
                }
                continue;
            }
            let mut byte = [0];
            match without_waiting(|| socket.read(&mut byte)) {
                Ok(Some(0)) => break "the proxy closed the connection".to_owned(),
                Ok(Some(_)) => answer.push(byte[0]),
                Ok(None) => return Progress::Pending,
                Err(error) => break failure::io_words(&error),
            }
            if answer.ends_with(b"\r\n\r\n") {
                let line = answer.split(|&byte| byte == b'\r').next().unwrap_or(b"");
                let line = String::from_utf8_lossy(line).into_owned();
                if line.starts_with("HTTP/1.")
                    && line
                        .split(' ')
                        .nth(1)
                        .is_some_and(|status| status.starts_with('2'))
                {
                    let now = self.clock.now();
                    if let Some(connect) = &mut self.connection.setup.connect {
                        connect.end = now;
                    }
                    return self.secure(now);
                }
                break line;
            }
            if answer.len() > LONGEST_PROXY_HEAD {
                break "the proxy's answer to CONNECT has no end".to_owned();
            }
        };
        self.fail(SetupPhase::Connect, Failure::Proxy, refusal)
    }

    /// The transport is established: starts TLS, or finishes.
    fn secure(&mut self, since: Nanos) -> Progress {
        let Some(tls) = &self.plan.tls else {
            return self.establish();
        };
        match tls.connect() {
            Ok((mut session, early_sent)) => {
                self.handshake.early_sent = early_sent;
                let is_early = tls.may_send_early(&mut session);
                self.session = Some(Box::new(session));
                if is_early {
                    // the first request goes with the hello, so this ends the setup that it waits
                    // for
                    self.connection.setup.ssl = Some(Span::new(since, self.clock.now()));
                    return self.establish();
                }
                self.stage = DialStage::Handshaking { since };
                self.handshake()
            }
            Err(error) => self.fail(
                SetupPhase::Ssl,
                failure::of_tls(&error),
                failure::tls_words(&error),
            ),
        }
    }

    fn handshake(&mut self) -> Progress {
        let plan = self.plan.clone();
        let (DialStage::Handshaking { since }, Some(stream), Some(session), Some(tls)) =
            (&self.stage, &self.stream, &mut self.session, &plan.tls)
        else {
            return Progress::Pending;
        };
        let since = *since;
        let (kind, words) = loop {
            while session.wants_write() {
                match without_waiting(|| session.write_tls(&mut &*stream)) {
                    Ok(Some(written @ 1..)) => self.handshake.sent += written as u64,
                    // the peer's last bytes are still to be read, and show the reason of an error
                    Ok(_) | Err(_) => break,
                }
            }
            if !session.is_handshaking() {
                if !tls.accepts(session) {
                    let words = "the server did not choose the protocol that was offered";
                    break (Failure::TlsAlpn, words.to_owned());
                }
                self.connection.setup.ssl = Some(Span::new(since, self.clock.now()));
                self.connection.tls = Some(tls.describe(session));
                return self.establish();
            }
            match without_waiting(|| session.read_tls(&mut &*stream)) {
                Ok(Some(0)) => {
                    let words = "the peer closed the connection during the TLS handshake";
                    break (Failure::Closed, words.to_owned());
                }
                Ok(Some(read)) => {
                    self.handshake
                        .first_at
                        .get_or_insert_with(|| self.clock.now());
                    self.handshake.received += read as u64;
                    if self.handshake.received > MOST_HANDSHAKE {
                        let words = format!("more than {MOST_HANDSHAKE} bytes of TLS handshake");
                        break (Failure::NoProgress, words);
                    }
                }
                Ok(None) => return Progress::Pending,
                Err(error) => break (Failure::ConnectReset, failure::io_words(&error)),
            }
            if let Err(error) = session.process_new_packets() {
                // sends the alert with the reason; a failure does not matter
                let _ = session.write_tls(&mut &*stream);
                break (failure::of_tls(&error), failure::tls_words(&error));
            }
        };
        self.connection.setup.ssl = Some(Span::new(since, self.clock.now()));
        self.fail(SetupPhase::Ssl, kind, words)
    }

    fn establish(&mut self) -> Progress {
        self.stage = DialStage::Over;
        let Some(stream) = self.stream.take() else {
            return Progress::Pending;
        };
        let session = self.session.as_ref();
        let is_early = session.is_some_and(|session| session.is_handshaking());
        let early = self.plan.tls.clone().filter(|_| is_early);
        Progress::Established(Box::new(Established {
            transport: Transport::Stream {
                stream,
                session: self.session.take(),
            },
            connection: self.connection.clone(),
            stamped: self.stamped,
            handshake: self.handshake,
            is_tunnel: matches!(self.plan.proxy, Proxy::Tunnel { .. }),
            header_table: self.plan.header_table,
            early,
        }))
    }

    fn fail(&mut self, phase: SetupPhase, kind: Failure, words: String) -> Progress {
        self.stage = DialStage::Over;
        self.drop_stream();
        self.connection.failed = Some(DialFailure::with_detail(phase, kind, words));
        Progress::Failed(Box::new(self.connection.clone()))
    }

    /// Closes the descriptor, which removes it from the poll.
    fn drop_stream(&mut self) {
        self.stream = None;
        self.session = None;
        #[cfg(feature = "http3")]
        {
            self.quic = None;
        }
    }
}

/// Starts a non-blocking connect.
fn connect_tcp(
    settings: &SocketSettings,
    address: SocketAddr,
    nodelay: bool,
) -> io::Result<mio::net::TcpStream> {
    let stream = settings.connect(address)?;
    if nodelay {
        stream.set_nodelay(true)?;
    }
    Ok(stream)
}
