//! How the server behaves.

use crate::authority::Authority;
use crate::delay::Delay;
use crate::fault::Faults;
use ledger::TlsVersion;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// How the server ends a connection that it no longer wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Close {
    /// As the version has it: HTTP/2 says GOAWAY and answers what it has accepted, then come close_notify (under TLS) and FIN.
    #[default]
    Goaway,
    /// The same without GOAWAY (RFC 9113 section 6.8 forbids no server to be that rude).
    Fin,
    /// A RST.
    Rst,
    /// Nothing: the server forgets the connection, as a NAT would. The kernel still acknowledges what a client sends.
    Silent,
    /// A FIN without TLS's close_notify (RFC 8446 section 6.1 forbids it).
    NoCloseNotify,
}

/// What `Keep-Alive` says in HTTP/1; HTTP/2 forbids the field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Announce {
    /// Nothing.
    #[default]
    Off,
    /// The idle timeout and the requests left, as they are.
    Honest,
    /// These words, whatever is true.
    Lie(String),
}

/// TLS on the secure port.
#[derive(Clone, Debug)]
pub struct TlsConfig {
    /// Certificate and key.
    pub authority: Arc<Authority>,
    /// The versions that are spoken.
    pub versions: Vec<TlsVersion>,
    /// TLS 1.3 tickets per handshake; 0 turns resumption off in every version.
    pub tickets: usize,
    /// Bytes of early data (0-RTT) that a resuming TLS 1.3 client may send; 0: none. It is answered without a look at whether it is safe to repeat.
    pub early_data: u32,
}

/// Everything about a server.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where plain HTTP is spoken, if it is.
    pub plain: Option<SocketAddr>,
    /// Where TLS is spoken, and how.
    pub tls: Option<(SocketAddr, TlsConfig)>,
    /// Threads that serve; connections go to them in turn.
    pub threads: usize,
    /// The seed of delays and faults; the sequence is repeatable with one thread.
    pub seed: u64,
    /// Bytes of the body of `/`.
    pub body: u64,
    /// Status of `/`.
    pub status: u16,
    /// Further fields of every answer, as given, forbidden ones too.
    pub headers: Vec<(String, String)>,
    /// How long an idle connection is kept, before its first request too; absent: for ever.
    pub idle_timeout: Option<Duration>,
    /// Requests after which a connection is closed; absent: never.
    pub max_requests: Option<u64>,
    /// Age at which a connection is closed, at once when idle, else after the next answer; absent: never.
    pub max_age: Option<Duration>,
    /// What is said of the limits.
    pub announce: Announce,
    /// Pause before each answer.
    pub delay: Delay,
    /// Further pause before the first answer on each connection: a cache per connection that has to warm up.
    pub first_request_cost: Duration,
    /// Sends HTTP/2's HEADERS and DATA in two writes, this far apart; absent: together.
    pub split: Option<Duration>,
    /// How connections are ended.
    pub close: Close,
    /// What goes wrong, how often.
    pub faults: Faults,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            plain: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
            tls: None,
            threads: 1,
            seed: 0,
            body: 100,
            status: 200,
            headers: Vec::new(),
            idle_timeout: None,
            max_requests: None,
            max_age: None,
            announce: Announce::Off,
            delay: Delay::default(),
            first_request_cost: Duration::ZERO,
            split: None,
            close: Close::Goaway,
            faults: Faults::default(),
        }
    }
}
