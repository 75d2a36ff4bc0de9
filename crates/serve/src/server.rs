//! Binding, accepting, and telling what is spoken on a connection.

use crate::answer::Answers;
use crate::authority::AuthorityError;
use crate::config::{Config, TlsConfig};
use crate::meter::Meter;
use crate::record::{Ledger, Shared};
use crate::{http1, http2};
use ledger::{
    Connection, ConnectionId, DialFailure, Event, Failure, Handshake, Origin, Protocol, Scheme,
    SetupPhase, Sink, Span, Tls, TlsVersion,
};
use rustls::crypto::aws_lc_rs;
use rustls::server::NoServerSessionStorage;
use rustls::{HandshakeKind, ServerConfig};
use socket2::{Domain, Socket, Type};
use std::cell::RefCell;
use std::future::Future;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{LocalSet, spawn_local};
use tokio_rustls::TlsAcceptor;

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 4096;
/// The longest TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error(
        "cannot listen on {address}: {source} (another server there? --listen takes another address, port 0 a free one)"
    )]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// Certificate or key.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// rustls does not take the settings.
    #[error("TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// The runtime could not be started.
    #[error("event loop: {0}")]
    Runtime(std::io::Error),
}

/// Where a server listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// Plain HTTP.
    pub plain: Option<SocketAddr>,
    /// TLS.
    pub tls: Option<SocketAddr>,
}

/// A server that listens.
pub struct Server {
    config: Config,
    plain: Option<std::net::TcpListener>,
    tls: Option<(std::net::TcpListener, Arc<ServerConfig>)>,
    addresses: Addresses,
}

impl Server {
    /// Binds the ports; connections wait from here on.
    pub fn bind(config: Config) -> Result<Server, ServeError> {
        let plain = config.plain.map(listen).transpose()?;
        let tls = match &config.tls {
            None => None,
            Some((address, settings)) => Some((listen(*address)?, tls_config(settings)?)),
        };
        let at = |listener: &std::net::TcpListener| listener.local_addr().ok();
        let addresses = Addresses {
            plain: plain.as_ref().and_then(at),
            tls: tls.as_ref().and_then(|(listener, _)| at(listener)),
        };
        Ok(Server {
            config,
            plain,
            tls,
            addresses,
        })
    }

    /// Where it listens.
    pub fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// Serves on the calling thread until `shutdown` is over; events go to `sink` as they happen.
    pub fn run(
        self,
        sink: Rc<RefCell<dyn Sink>>,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(ServeError::Runtime)?;
        let local = LocalSet::new();
        local.block_on(&runtime, async move {
            let host = Host {
                shared: Rc::new(Shared::new(sink)),
                answers: Rc::new(Answers::new(&self.config)),
                config: Rc::new(self.config),
            };
            if let Some(listener) = self.plain {
                let listener = TcpListener::from_std(listener).map_err(ServeError::Runtime)?;
                spawn_local(host.clone().accept(listener, None));
            }
            if let Some((listener, config)) = self.tls {
                let listener = TcpListener::from_std(listener).map_err(ServeError::Runtime)?;
                spawn_local(
                    host.clone()
                        .accept(listener, Some(TlsAcceptor::from(config))),
                );
            }
            shutdown.await;
            Ok(())
        })
    }
}

/// What every connection of a server needs.
#[derive(Clone)]
struct Host {
    shared: Rc<Shared>,
    config: Rc<Config>,
    answers: Rc<Answers>,
}

impl Host {
    async fn accept(self, listener: TcpListener, tls: Option<TlsAcceptor>) {
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => {
                    spawn_local(self.clone().connection(stream, peer, tls.clone()));
                }
                // out of descriptors: those that are served now give some back
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    }

    async fn connection(self, stream: TcpStream, peer: SocketAddr, tls: Option<TlsAcceptor>) {
        let at = self.shared.now();
        let mut connection = Connection::new(ConnectionId(self.shared.id()), at);
        // from the server's side: local is ours
        connection.local = stream.local_addr().ok();
        connection.peer = Some(peer);
        connection.origin = connection.local.map(|local| Origin {
            scheme: if tls.is_some() {
                Scheme::Https
            } else {
                Scheme::Http
            },
            host: local.ip().to_string().into(),
            port: local.port(),
        });
        // an answer is one write, but HTTP/2 and TLS may take two
        let _ = stream.set_nodelay(true);
        if self.config.close == crate::config::Close::Rst {
            #[allow(
                deprecated,
                reason = "a linger of zero does not block: it sends the RST that was asked for"
            )]
            let _ = stream.set_linger(Some(Duration::ZERO));
        }
        match tls {
            None => {
                let protocol = plain_protocol(&stream).await;
                let (stream, passed) = Meter::new(stream);
                self.speak(stream, passed, connection, protocol).await;
            }
            Some(acceptor) => {
                let (stream, passed) = Meter::new(stream);
                let handshake = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await;
                connection.setup.ssl = Some(Span::new(at, self.shared.now()));
                match handshake {
                    Ok(Ok(stream)) => {
                        let session = stream.get_ref().1;
                        connection.tls = Some(describe(session));
                        let protocol = match session.alpn_protocol() {
                            Some(b"h2") => Protocol::Http2,
                            _ => Protocol::Http11,
                        };
                        self.speak(stream, passed, connection, protocol).await;
                    }
                    failed => {
                        let words = match failed {
                            Ok(Err(error)) => error.to_string(),
                            _ => "the client did not finish the handshake".to_owned(),
                        };
                        connection.failed = Some(DialFailure {
                            phase: SetupPhase::Ssl,
                            kind: Failure::Tls,
                            detail: Some(words.into()),
                        });
                        self.shared
                            .sink
                            .borrow_mut()
                            .record(Event::Opened(&connection));
                    }
                }
            }
        }
    }

    async fn speak<S>(
        self,
        stream: S,
        passed: Rc<crate::meter::Passed>,
        connection: Connection,
        protocol: Protocol,
    ) where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    {
        let ledger = Ledger::open(&self.shared, connection, protocol, passed.clone());
        if protocol == Protocol::Http2 {
            http2::serve(
                stream,
                &self.config,
                &self.answers,
                Rc::new(ledger),
                &passed,
            )
            .await;
        } else {
            http1::serve(stream, &self.config, &self.answers, &ledger, &passed).await;
        }
    }
}

/// Tells HTTP/2 by prior knowledge (RFC 9113 section 3.3) from HTTP/1 by its first bytes.
async fn plain_protocol(stream: &TcpStream) -> Protocol {
    const PREFACE: &[u8] = b"PRI * HTTP/2.0";
    let mut start = [0; PREFACE.len()];
    loop {
        match stream.peek(&mut start).await {
            Ok(count) if count > 0 && PREFACE.starts_with(&start[..count]) => {
                if count >= 4 {
                    return Protocol::Http2;
                }
                // a preface in pieces: the kernel has no event for "more than that"
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            _ => return Protocol::Http11,
        }
    }
}

fn describe(session: &rustls::ServerConnection) -> Tls {
    Tls {
        version: session
            .protocol_version()
            .and_then(|version| match version {
                rustls::ProtocolVersion::TLSv1_2 => Some(TlsVersion::Tls12),
                rustls::ProtocolVersion::TLSv1_3 => Some(TlsVersion::Tls13),
                _ => None,
            }),
        cipher: session
            .negotiated_cipher_suite()
            .and_then(|suite| suite.suite().as_str())
            .map(Into::into),
        server_name: session.server_name().map(Into::into),
        alpn_chosen: session
            .alpn_protocol()
            .map(|id| String::from_utf8_lossy(id).into()),
        handshake: session.handshake_kind().map(|kind| match kind {
            HandshakeKind::Resumed => Handshake::Resumed,
            _ => Handshake::Full,
        }),
        ..Tls::default()
    }
}

fn tls_config(settings: &TlsConfig) -> Result<Arc<ServerConfig>, ServeError> {
    let versions: Vec<_> = settings
        .versions
        .iter()
        .filter_map(|version| match version {
            TlsVersion::Tls12 => Some(&rustls::version::TLS12),
            TlsVersion::Tls13 => Some(&rustls::version::TLS13),
            _ => None,
        })
        .collect();
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(&versions)?
        .with_no_client_auth()
        .with_single_cert(
            settings.authority.chain.clone(),
            settings.authority.key.clone_key(),
        )?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config.send_tls13_tickets = settings.tickets;
    if settings.tickets == 0 {
        config.session_storage = Arc::new(NoServerSessionStorage {});
    } else {
        config.ticketer = aws_lc_rs::Ticketer::new()?;
    }
    Ok(Arc::new(config))
}

fn listen(address: SocketAddr) -> Result<std::net::TcpListener, ServeError> {
    let open = || -> std::io::Result<std::net::TcpListener> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
        // a restart must not wait for the TIME_WAIT of what the last run closed
        socket.set_reuse_address(true)?;
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        Ok(socket.into())
    };
    open().map_err(|source| ServeError::Listen { address, source })
}
