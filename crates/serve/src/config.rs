//! The settings of the server: limits, announcements, faults, listeners.

use crate::caching::CachingConfig;
use crate::certificate_authority::CertificateAuthority;
use crate::delay::Delay;
use crate::disturbance::Disturbances;
use crate::fault::Faults;
use crate::name_server::NameServerConfig;
use crate::named_variants::choices;
use crate::upstream::UpstreamConfig;
use intact_ledger::TlsVersion;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

choices! {
    /// How the server ends a connection that it no longer wants.
    #[derive(Default)]
    Close, "way to close";
    #[default]
    Goaway "goaway" "as the version has it: GOAWAY (HTTP/2), close_notify (TLS), FIN",
    Fin "fin" "the same without GOAWAY",
    Slow "slow" "as goaway, 2 s after the announcement",
    Rst "rst" "a RST",
    Silent "silent" "nothing: the connection is forgotten as by a NAT, while the kernel still acknowledges",
    NoCloseNotify "no-close-notify" "a FIN without TLS's close_notify",
}

choices! {
    /// The fault of an accepted connection, before its first byte.
    #[derive(Default)]
    Accept, "way to accept";
    #[default]
    Serve "serve" "serves it",
    Stall "stall" "sends nothing, not even a TLS record",
    Fin "fin" "closes it immediately",
    Rst "rst" "resets it immediately",
    Plain "plain" "speaks plain HTTP, on the TLS port too",
    Tls "tls" "speaks TLS, on the plain port too",
}

/// What `Keep-Alive` says in HTTP/1; HTTP/2 forbids the field.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Announce {
    /// Nothing.
    #[default]
    Off,
    /// The idle timeout and the requests left, as they are.
    Honest,
    /// This text, true or not.
    Lie(String),
}

/// The words of an announcement cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} cannot be announced: a field has one line of text")]
pub struct AnnounceError(String);

impl FromStr for Announce {
    type Err = AnnounceError;

    /// Reads `off` and `honest`; everything else is the words themselves.
    fn from_str(words: &str) -> Result<Announce, AnnounceError> {
        match words {
            "off" => Ok(Announce::Off),
            "honest" => Ok(Announce::Honest),
            _ if words.contains(char::is_control) => Err(AnnounceError(words.to_owned())),
            lie => Ok(Announce::Lie(lie.to_owned())),
        }
    }
}

/// TLS on the secure port.
#[derive(Clone, Debug)]
pub struct TlsConfig {
    /// Certificate and key.
    pub authority: Arc<CertificateAuthority>,
    /// The versions that are spoken.
    pub versions: Vec<TlsVersion>,
    /// TLS 1.3 tickets per handshake; 0 turns resumption off in every version.
    pub tickets: usize,
    /// Bytes of early data (0-RTT) that a resuming TLS 1.3 client may send; 0: none. It is
    /// answered without a look at whether it is safe to repeat.
    pub early_data: u32,
}

impl TlsConfig {
    /// These versions, with two tickets per handshake and no early data.
    pub fn new(authority: Arc<CertificateAuthority>, versions: Vec<TlsVersion>) -> TlsConfig {
        TlsConfig {
            authority,
            versions,
            tickets: 2,
            early_data: 0,
        }
    }
}

/// Everything about a server.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where plain HTTP is spoken, if it is.
    pub plain: Option<SocketAddr>,
    /// Where TLS is spoken, and how.
    pub tls: Option<(SocketAddr, TlsConfig)>,
    /// Whether HTTP/3 is spoken on the UDP port with the number of the TLS port, and announced
    /// there by `Alt-Svc`.
    pub http3: bool,
    /// A name server next to it.
    pub name_server: Option<NameServerConfig>,
    /// What is called before each response.
    pub upstream: Option<UpstreamConfig>,
    /// Congestion control of the connections; absent: the kernel's default, or that of the link.
    pub congestion: Option<String>,
    /// Whether data is taken with the SYN (TCP Fast Open, RFC 7413).
    pub fast_open: bool,
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
    /// What caches learn of responses, and whether they are compressed.
    pub caching: CachingConfig,
    /// How long an idle connection is kept, before its first request too; absent: for ever.
    pub idle_timeout: Option<Duration>,
    /// Requests after which a connection is closed; absent: never.
    pub max_requests: Option<u64>,
    /// Age at which a connection is closed, at once when idle, else after the next answer; absent:
    /// never.
    pub max_age: Option<Duration>,
    /// What is said of the limits.
    pub announce: Announce,
    /// Pause before each answer.
    pub delay: Delay,
    /// Further pause before the first response on each connection: a cache per connection that has
    /// to warm up.
    pub first_request_cost: Duration,
    /// Sends HTTP/2's HEADERS and DATA in two writes, this far apart; absent: together.
    pub split: Option<Duration>,
    /// How connections begin.
    pub accept: Accept,
    /// How connections are ended.
    pub close: Close,
    /// How long connections may finish what is in flight when the server ends, after it has
    /// announced that; zero: not at all.
    pub drain: Duration,
    /// What goes wrong, how often.
    pub faults: Faults,
    /// What happens to responses at set times.
    pub script: Disturbances,
    /// Further names of this server, in addition to those of the loopback: `/.intact/` answers to
    /// no other `Host`.
    pub names: Vec<String>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            plain: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
            tls: None,
            http3: false,
            name_server: None,
            upstream: None,
            congestion: None,
            fast_open: false,
            threads: 1,
            seed: 0,
            body: 100,
            status: 200,
            headers: Vec::new(),
            caching: CachingConfig::default(),
            idle_timeout: None,
            max_requests: None,
            max_age: None,
            announce: Announce::Off,
            delay: Delay::default(),
            first_request_cost: Duration::ZERO,
            split: None,
            accept: Accept::Serve,
            close: Close::Goaway,
            drain: Duration::ZERO,
            faults: Faults::default(),
            script: Disturbances::default(),
            names: Vec::new(),
        }
    }
}
