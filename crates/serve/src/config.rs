//! How the server behaves.

use crate::authority::Authority;
use ledger::TlsVersion;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// How the server ends a connection that it no longer wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Close {
    /// A FIN (under TLS after a close_notify).
    #[default]
    Fin,
    /// A RST.
    Rst,
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
}

/// Everything about a server.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where plain HTTP is spoken, if it is.
    pub plain: Option<SocketAddr>,
    /// Where TLS is spoken, and how.
    pub tls: Option<(SocketAddr, TlsConfig)>,
    /// Bytes of the body of `/`.
    pub body: usize,
    /// Status of `/`.
    pub status: u16,
    /// How long an idle connection is kept; absent: for ever.
    pub idle_timeout: Option<Duration>,
    /// Requests after which a connection is closed; absent: never.
    pub max_requests: Option<u64>,
    /// Whether `Keep-Alive: timeout=, max=` announces the two above.
    pub announce: bool,
    /// Pause before each answer.
    pub delay: Duration,
    /// Further pause before the first answer on each connection: a cache per connection that has to warm up.
    pub first_request_cost: Duration,
    /// How connections are ended.
    pub close: Close,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            plain: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
            tls: None,
            body: 100,
            status: 200,
            idle_timeout: None,
            max_requests: None,
            announce: false,
            delay: Duration::ZERO,
            first_request_cost: Duration::ZERO,
            close: Close::Fin,
        }
    }
}
