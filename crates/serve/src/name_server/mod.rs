//! A small name server (RFC 1035) next to the HTTP server: addresses of given names, over UDP and
//! TCP, as slow and as unwilling as it is configured. It knows no zones, asks no other server, and
//! records each query as a lookup.

mod config;

pub use config::{LookupFault, NameRecord, NameServerConfig, NameServerError, RateLimit};

use crate::server_tally::ServerTally;
use intact_experiment::Rng;
use intact_ledger::{Lookup, Nanos, Span};
use intact_wire::dns::{self, ResponseContent};
use std::cell::{Cell, RefCell};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::task::spawn_local;
use tokio::time::timeout;

/// How often a free port is looked for that is free over UDP and TCP.
const ATTEMPTS: usize = 10;
/// Queries that wait for their response, and TCP connections, at a time. What is beyond gets none,
/// as on a server without room.
const MOST_WAITING: usize = 4096;
const MOST_CONNECTIONS: usize = 64;
/// How long a TCP connection may idle.
const IDLE: Duration = Duration::from_secs(10);
/// The longest query that is read over UDP.
const MAX_QUERY: usize = 4096;

/// The sockets of a name server.
pub(crate) struct NameListener {
    udp: std::net::UdpSocket,
    tcp: std::net::TcpListener,
    /// Where they listen.
    pub(crate) address: SocketAddr,
}

impl NameListener {
    /// Binds the same port over UDP and TCP.
    pub(crate) fn bind(address: SocketAddr) -> io::Result<NameListener> {
        let mut attempt = 1;
        loop {
            let udp = std::net::UdpSocket::bind(address)?;
            let bound = udp.local_addr()?;
            match std::net::TcpListener::bind(bound) {
                Ok(tcp) => {
                    udp.set_nonblocking(true)?;
                    tcp.set_nonblocking(true)?;
                    return Ok(NameListener {
                        udp,
                        tcp,
                        address: bound,
                    });
                }
                Err(_) if address.port() == 0 && attempt < ATTEMPTS => attempt += 1,
                Err(error) => return Err(error),
            }
        }
    }
}

/// A running name server; its tasks share it.
struct NameServer {
    config: NameServerConfig,
    resolver: Arc<str>,
    tally: Arc<ServerTally>,
    random: RefCell<Rng>,
    bucket: RefCell<Bucket>,
    waiting: Cell<usize>,
}

/// What a query gets.
struct Decision {
    name: Arc<str>,
    at: Nanos,
    pause: Duration,
    /// The addresses of the type asked for.
    answer: Result<Vec<IpAddr>, LookupFault>,
    /// The response; absent where none is sent.
    bytes: Option<Vec<u8>>,
}

/// Answers queries until the event loop ends.
pub(crate) fn start(
    listener: NameListener,
    config: NameServerConfig,
    tally: Arc<ServerTally>,
    seed: u64,
) -> io::Result<()> {
    let address = listener.address;
    let server = Rc::new(NameServer {
        bucket: RefCell::new(Bucket::full(config.rate_limit, tally.now())),
        config,
        resolver: address.to_string().into(),
        tally,
        random: RefCell::new(Rng::seeded(seed)),
        waiting: Cell::new(0),
    });
    let udp = Rc::new(UdpSocket::from_std(listener.udp)?);
    let tcp = TcpListener::from_std(listener.tcp)?;
    spawn_local(server.clone().serve_udp(udp));
    spawn_local(server.serve_tcp(tcp));
    Ok(())
}

impl NameServer {
    async fn serve_udp(self: Rc<NameServer>, socket: Rc<UdpSocket>) {
        let mut buffer = vec![0; MAX_QUERY];
        loop {
            // an error is that of an earlier response, which found no listener
            let Ok((count, from)) = socket.recv_from(&mut buffer).await else {
                continue;
            };
            let Some(decision) = self.decide(&buffer[..count], dns::MAX_UDP) else {
                continue;
            };
            if self.waiting.get() >= MOST_WAITING {
                continue;
            }
            self.waiting.set(self.waiting.get() + 1);
            let (server, socket) = (self.clone(), socket.clone());
            spawn_local(async move {
                let sent = server.respond(decision).await;
                if let Some(bytes) = sent {
                    let _ = socket.send_to(&bytes, from).await;
                }
                server.waiting.set(server.waiting.get() - 1);
            });
        }
    }

    async fn serve_tcp(self: Rc<NameServer>, listener: TcpListener) {
        let connections = Rc::new(());
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            };
            if Rc::strong_count(&connections) <= MOST_CONNECTIONS {
                let (server, open) = (self.clone(), connections.clone());
                spawn_local(async move {
                    // a connection that breaks concerns its client only
                    let _ = server.serve_connection(stream).await;
                    drop(open);
                });
            }
        }
    }

    /// Messages with their length before them (RFC 1035 section 4.2.2), one after the other.
    async fn serve_connection(&self, mut stream: TcpStream) -> io::Result<()> {
        loop {
            let length = timeout(IDLE, stream.read_u16()).await??;
            let mut message = vec![0; usize::from(length)];
            timeout(IDLE, stream.read_exact(&mut message)).await??;
            let Some(decision) = self.decide(&message, usize::from(u16::MAX)) else {
                return Ok(());
            };
            if let Some(bytes) = self.respond(decision).await {
                let length = bytes.len() as u16;
                let framed = [&length.to_be_bytes()[..], &bytes].concat();
                timeout(IDLE, stream.write_all(&framed)).await??;
            }
        }
    }

    /// Decides about a query; `None` if it is none.
    fn decide(&self, query: &[u8], limit: usize) -> Option<Decision> {
        let at = self.tally.now();
        let asked = dns::parse(query).filter(|asked| !asked.header.is_answer)?;
        let random = &mut self.random.borrow_mut();
        let is_within = self.bucket.borrow_mut().take(at);
        let beyond = self.config.rate_limit.map(|limit| limit.beyond);
        let fault = match beyond.filter(|_| !is_within) {
            None => self.config.faults.draw(random),
            beyond => beyond,
        };
        let answer = match (fault, self.config.addresses(&asked.name)) {
            (Some(fault), _) => Err(fault),
            (None, None) => Err(LookupFault::Nxdomain),
            (None, Some(addresses)) => Ok(addresses),
        };
        let content = match &answer {
            Ok(addresses) => Some(ResponseContent::Addresses(addresses, self.config.ttl_s)),
            Err(fault) => fault.code().map(ResponseContent::Error),
        };
        let bytes = content.map(|content| dns::respond(query, content, limit));
        Some(Decision {
            name: asked.name.into(),
            at,
            pause: self.config.delay.draw(random),
            answer: answer.map(|addresses| of_kind(asked.kind, addresses)),
            bytes: match bytes {
                None => None,
                // a question that cannot be repeated is none
                Some(bytes) => Some(bytes?),
            },
        })
    }

    /// Waits as long as was decided, and records the query; the bytes to be sent.
    async fn respond(&self, decision: Decision) -> Option<Vec<u8>> {
        if !decision.pause.is_zero() {
            tokio::time::sleep(decision.pause).await;
        }
        let fault = decision.answer.as_ref().err().copied();
        let lookup = Lookup {
            variant: None,
            round: None,
            name: Some(decision.name),
            span: Span::new(decision.at, self.tally.now()),
            ttl_s: fault.is_none().then_some(self.config.ttl_s),
            answer: Some(decision.answer.map_err(|fault| fault.error().into())),
            resolver: Some(self.resolver.clone()),
            owner: None,
        };
        self.tally.lookup(&lookup, fault);
        decision.bytes
    }
}

/// The addresses of the type asked for.
fn of_kind(kind: u16, mut addresses: Vec<IpAddr>) -> Vec<IpAddr> {
    addresses.retain(|address| match address {
        IpAddr::V4(_) => kind == dns::A,
        IpAddr::V6(_) => kind == dns::AAAA,
    });
    addresses
}

/// How many queries may still be answered: a token bucket that holds those of a second.
struct Bucket {
    limit: Option<RateLimit>,
    tokens: f64,
    filled: Nanos,
}

impl Bucket {
    fn full(limit: Option<RateLimit>, now: Nanos) -> Bucket {
        Bucket {
            limit,
            tokens: limit.map_or(0.0, |limit| f64::from(limit.per_second.get())),
            filled: now,
        }
    }

    /// Whether one more is within the limit.
    fn take(&mut self, now: Nanos) -> bool {
        let Some(limit) = self.limit else {
            return true;
        };
        let most = f64::from(limit.per_second.get());
        let new = now.since(self.filled) as f64 / 1e9 * most;
        self.filled = now;
        self.tokens = (self.tokens + new).min(most);
        let is_within = self.tokens >= 1.0;
        if is_within {
            self.tokens -= 1.0;
        }
        is_within
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_of_queries_is_answered_at_a_time_and_as_many_each_second() {
        let mut bucket = Bucket::full(Some("10/s".parse().unwrap()), Nanos(0));
        let mut taken = |ms: u64, asked: usize| {
            let take = |_: &usize| bucket.take(Nanos(ms * 1_000_000));
            (0..asked).filter(take).count()
        };
        assert_eq!(taken(0, 15), 10);
        assert_eq!(taken(200, 15), 2);
        assert_eq!(taken(100_000, 15), 10);
        let mut unlimited = Bucket::full(None, Nanos(0));
        assert!((0..1000).all(|_| unlimited.take(Nanos(0))));
    }
}
