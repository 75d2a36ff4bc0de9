//! Binding, accepting, and handing connections to threads.

use crate::certificate_authority::AuthorityError;
use crate::config::{Accept, Config};
use crate::disturbance::ScriptState;
use crate::drain::{DrainNotice, DrainState};
#[cfg(feature = "http3")]
use crate::http3::{self, QuicListener};
use crate::name_server::{self, NameListener, NameServerConfig};
use crate::record::ThreadRecorder;
use crate::server_tally::ServerTally;
use crate::thread_state::ThreadState;
use crate::totals::Totals;
use crate::upstream::Upstream;
use crate::{connection, tls};
use intact_client::{
    SocketOptionError, TcpEnd, accept_fast_open, check_congestion, check_fast_open,
};
use intact_ledger::{Run, Sink};
use rustls::ServerConfig;
use socket2::{Domain, Socket, Type};
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{LocalSet, spawn_local};

/// Connections that may wait to be accepted.
const BACKLOG: i32 = 4096;

/// Bytes that the kernel takes of a connection before it has sent what it took earlier. Without a
/// limit, a client that does not read costs 4 MB of the kernel's memory, and a few hundred of them
/// slow down all TCP of the machine.
#[cfg(target_os = "linux")]
const UNSENT: u32 = 128 * 1024;

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error(
        "cannot listen on {address} (another server there? {option} takes another address, port 0 a free one)"
    )]
    Listen {
        /// The option of `intact serve` that sets the address.
        option: &'static str,
        /// The address.
        address: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// The name server's address cannot be listened on.
    #[error("the name server cannot listen on {address}{}", remedy(source))]
    NameServer {
        /// The address.
        address: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// Certificate or key.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// HTTP/3 was asked for, and cannot be spoken.
    #[error("--http3: {0}")]
    Http3(&'static str),
    /// An option of TCP sockets cannot be used here.
    #[error("{option}: {source}")]
    Socket {
        /// The option.
        option: &'static str,
        /// Why.
        source: SocketOptionError,
    },
    /// rustls does not take the settings.
    #[error("TLS cannot be spoken so")]
    Tls(#[from] rustls::Error),
    /// The runtime or a thread could not be started.
    #[error("the event loop cannot be started")]
    Runtime(#[source] io::Error),
}

/// Where a server listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// Plain HTTP.
    pub plain: Option<SocketAddr>,
    /// TLS; HTTP/3 has the UDP port with the same number.
    pub tls: Option<SocketAddr>,
    /// The name server.
    pub names: Option<SocketAddr>,
}

/// What to do where the name server cannot listen.
fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            " (a port below 1024 needs root, or once: sysctl -w net.ipv4.ip_unprivileged_port_start=53; on a link, --link, it needs neither)"
        }
        io::ErrorKind::AddrInUse => {
            " (another name server there? Any address of 127.0.0.0/8 is free to choose: --dns=127.0.0.9)"
        }
        _ => "",
    }
}

/// A server that listens.
pub struct Server {
    config: Config,
    /// The plain port and the secure one, and what TLS is spoken there.
    listeners: [Listening; 2],
    name_listener: Option<NameListener>,
    #[cfg(feature = "http3")]
    quic: Option<QuicListener>,
    addresses: Addresses,
}

/// A port, if it is listened on, and TLS, if it is spoken there.
type Listening = (Option<std::net::TcpListener>, Option<Arc<ServerConfig>>);

/// An accepted connection on its way to a thread.
enum Handed {
    Tcp(std::net::TcpStream, SocketAddr, Option<Arc<ServerConfig>>),
    #[cfg(feature = "http3")]
    Quic(Box<quinn::Incoming>),
}

impl Server {
    /// Binds the ports; connections wait from here on.
    pub fn bind(config: Config) -> Result<Server, ServeError> {
        check_sockets(&config)?;
        let plain = config.plain.map(|address| listen(LISTEN, address));
        let plain = plain.transpose()?;
        let (tls, secure) = match &config.tls {
            None => (None, None),
            Some((address, settings)) => {
                let secure = tls::server_config(settings)?;
                (Some(listen(TLS_LISTEN, *address)?), Some(secure))
            }
        };
        #[cfg(not(feature = "http3"))]
        if config.http3 {
            return Err(ServeError::Http3(
                "this build was made without the feature http3",
            ));
        }
        #[cfg(feature = "http3")]
        let (tls, quic) = match config.http3 {
            true => {
                QuicListener::bind_with(tls, &config).map(|(tls, quic)| (Some(tls), Some(quic)))?
            }
            false => (tls, None),
        };
        if config.fast_open {
            for listener in [&plain, &tls].into_iter().flatten() {
                accept_fast_open(listener, BACKLOG).map_err(ServeError::Runtime)?;
            }
        }
        let bind_names = |names: &NameServerConfig| {
            let address = names.listen;
            NameListener::bind(address).map_err(|source| ServeError::NameServer { address, source })
        };
        let name_listener = config.name_server.as_ref().map(bind_names).transpose()?;
        let at = |listener: &std::net::TcpListener| listener.local_addr().ok();
        let addresses = Addresses {
            plain: plain.as_ref().and_then(at),
            tls: tls.as_ref().and_then(at),
            names: name_listener.as_ref().map(|names| names.address),
        };
        let (on_plain, on_tls) = match config.accept {
            Accept::Plain => (None, None),
            Accept::Tls => (secure.clone(), secure),
            _ => (None, secure),
        };
        Ok(Server {
            config,
            listeners: [(plain, on_plain), (tls, on_tls)],
            name_listener,
            #[cfg(feature = "http3")]
            quic,
            addresses,
        })
    }

    /// Where it listens.
    pub fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// Serves, on the calling thread and as many others as are configured, until `shutdown` is
    /// over; then accepts no more, and finishes what is in flight within [`Config::drain`].
    /// Events go to `log` as they happen; what they add up to comes at the end. `run` is the
    /// head of both; nanosecond 0 is now.
    pub fn run(
        self,
        run: Run,
        log: Option<Box<dyn Sink + Send>>,
        shutdown: impl Future<Output = ()>,
    ) -> Result<Totals, ServeError> {
        let threads = self.config.threads.max(1);
        let tally = Arc::new(ServerTally::new(run, threads, &self.config, log));
        let config = Arc::new(self.config);
        let drain = Arc::new(DrainState::new(config.drain));
        let script = Arc::new(ScriptState::default());
        let upstream = config.upstream.as_ref();
        let upstream = upstream.map(|upstream| Upstream::start(upstream, &tally).map(Arc::new));
        let upstream = upstream.transpose().map_err(ServeError::Runtime)?;
        let http3_port = config
            .http3
            .then_some(self.addresses.tls.map(|tls| tls.port()));
        let http3_port = http3_port.flatten();
        let state_of = |thread| {
            let recorder = ThreadRecorder::new(tally.clone(), thread, threads);
            let (config, drain, script) = (config.clone(), drain.clone(), script.clone());
            let upstream = upstream.clone();
            move || {
                ThreadState::new(
                    config, recorder, thread, drain, script, upstream, http3_port,
                )
            }
        };
        let mut senders = Vec::new();
        let mut others = Vec::new();
        for thread in 1..threads {
            let (sender, handed) = unbounded_channel();
            let runtime = runtime()?;
            let state = state_of(thread);
            let work = move || work(&runtime, state(), handed);
            let name = format!("serve-{thread}");
            others.push(
                thread::Builder::new()
                    .name(name)
                    .spawn(work)
                    .map_err(ServeError::Runtime)?,
            );
            senders.push(sender);
        }
        let local = LocalSet::new();
        let gate = Rc::new(Gate {
            state: Rc::new(state_of(0)()),
            others: senders,
            turn: std::cell::Cell::new(0),
        });
        let served = local.block_on(&runtime()?, async {
            if let (Some(listener), Some(names)) = (self.name_listener, &config.name_server) {
                name_server::start(listener, names.clone(), tally.clone(), config.seed)
                    .map_err(ServeError::Runtime)?;
            }
            let mut accepting = Vec::new();
            for (listener, tls) in self.listeners {
                let Some(listener) = listener else { continue };
                let listener = TcpListener::from_std(listener).map_err(ServeError::Runtime)?;
                accepting.push(spawn_local(gate.clone().accept(
                    listener,
                    tls,
                    drain.notice(),
                )));
            }
            #[cfg(feature = "http3")]
            let endpoint = self.quic.map(QuicListener::start).transpose();
            #[cfg(feature = "http3")]
            let endpoint = endpoint.map_err(ServeError::Runtime)?;
            #[cfg(feature = "http3")]
            if let Some(endpoint) = &endpoint {
                let accepting_quic = gate.clone().accept_quic(endpoint.clone(), drain.notice());
                accepting.push(spawn_local(accepting_quic));
            }
            shutdown.await;
            drain.begin();
            for task in accepting {
                if !drain.has_begun() {
                    task.abort();
                }
                // its end closes the port
                let _ = task.await;
            }
            drain.wait().await;
            #[cfg(feature = "http3")]
            if let Some(endpoint) = endpoint {
                http3::end(endpoint).await;
            }
            Ok(())
        });
        // without the tasks of this thread the others receive nothing more, and end theirs
        drop(gate);
        drop(local);
        for other in others {
            if let Err(panic) = other.join() {
                std::panic::resume_unwind(panic);
            }
        }
        served.map(|()| tally.totals())
    }
}

/// Where connections come in.
struct Gate {
    state: Rc<ThreadState>,
    others: Vec<UnboundedSender<Handed>>,
    turn: std::cell::Cell<usize>,
}

impl Gate {
    async fn accept(
        self: Rc<Gate>,
        listener: TcpListener,
        tls: Option<Arc<ServerConfig>>,
        mut drain: DrainNotice,
    ) {
        loop {
            let accepted = tokio::select! {
                biased;
                accepted = listener.accept() => accepted,
                () = drain.begun() => break,
            };
            match accepted {
                Ok((stream, peer)) => self.admit(stream, peer, tls.clone()),
                // out of descriptors: those that are served now give some back
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
        // the kernel resets connections that wait when the port is closed
        let Ok(listener) = listener.into_std() else {
            return;
        };
        while let Ok((stream, peer)) = listener.accept() {
            if stream.set_nonblocking(true).is_ok()
                && let Ok(stream) = TcpStream::from_std(stream)
            {
                self.admit(stream, peer, tls.clone());
            }
        }
    }

    /// The thread whose turn it is; `None` is this one.
    fn next_thread(&self) -> Option<&UnboundedSender<Handed>> {
        let turn = self.turn.get();
        self.turn.set((turn + 1) % (self.others.len() + 1));
        self.others.get(turn.checked_sub(1)?)
    }

    /// Gives a connection to the thread whose turn it is.
    fn admit(&self, stream: TcpStream, peer: SocketAddr, tls: Option<Arc<ServerConfig>>) {
        match self.next_thread() {
            None => {
                spawn_local(connection::serve(self.state.clone(), stream, peer, tls));
            }
            Some(other) => {
                // a stream that cannot leave this event loop is closed, as the client will see
                if let Ok(stream) = stream.into_std() {
                    let _ = other.send(Handed::Tcp(stream, peer, tls));
                }
            }
        }
    }

    /// Takes QUIC connections until the server begins to end. All datagrams arrive on this thread;
    /// the connections go to the threads in turn.
    #[cfg(feature = "http3")]
    async fn accept_quic(self: Rc<Gate>, endpoint: quinn::Endpoint, mut drain: DrainNotice) {
        loop {
            let incoming = tokio::select! {
                biased;
                incoming = endpoint.accept() => incoming,
                () = drain.begun() => None,
            };
            let Some(incoming) = incoming else { break };
            match self.next_thread() {
                None => {
                    spawn_local(http3::serve(self.state.clone(), incoming));
                }
                Some(other) => {
                    let _ = other.send(Handed::Quic(Box::new(incoming)));
                }
            }
        }
        endpoint.set_server_config(None);
    }
}

/// A further thread: serves the connections that it receives until the channel closes.
fn work(runtime: &Runtime, state: ThreadState, mut handed: UnboundedReceiver<Handed>) {
    let local = LocalSet::new();
    let state = Rc::new(state);
    local.block_on(runtime, async {
        while let Some(handed) = handed.recv().await {
            match handed {
                Handed::Tcp(stream, peer, tls) => {
                    if let Ok(stream) = TcpStream::from_std(stream) {
                        spawn_local(connection::serve(state.clone(), stream, peer, tls));
                    }
                }
                #[cfg(feature = "http3")]
                Handed::Quic(incoming) => {
                    spawn_local(http3::serve(state.clone(), *incoming));
                }
            }
        }
    });
}

fn runtime() -> Result<Runtime, ServeError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(ServeError::Runtime)
}

/// Whether this machine has what the sockets are to use.
fn check_sockets(config: &Config) -> Result<(), ServeError> {
    if let Some(name) = &config.congestion {
        check_congestion(name).map_err(|source| ServeError::Socket {
            option: "--congestion",
            source,
        })?;
    }
    if config.fast_open {
        check_fast_open(TcpEnd::Server).map_err(|source| ServeError::Socket {
            option: "--tcp-fastopen",
            source,
        })?;
    }
    Ok(())
}

const LISTEN: &str = "--listen";
pub(crate) const TLS_LISTEN: &str = "--tls-listen";

pub(crate) fn listen(
    option: &'static str,
    address: SocketAddr,
) -> Result<std::net::TcpListener, ServeError> {
    let open = || -> io::Result<std::net::TcpListener> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
        // a restart must not wait for the TIME_WAIT of what the last run closed
        socket.set_reuse_address(true)?;
        socket.set_nonblocking(true)?;
        // connections inherit it
        #[cfg(target_os = "linux")]
        socket.set_tcp_notsent_lowat(UNSENT)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        Ok(socket.into())
    };
    open().map_err(|source| ServeError::Listen {
        option,
        address,
        source,
    })
}
