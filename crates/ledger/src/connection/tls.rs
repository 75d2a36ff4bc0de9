//! The TLS side of a connection: version, cipher, names, and how its session began.

use serde::{Deserialize, Serialize};
use std::sync::Arc;

kinds! {
    json
    /// A TLS protocol version.
    pub enum TlsVersion, as_str {
        /// SSL 3.0.
        Ssl3 = "ssl3",
        /// TLS 1.0.
        Tls10 = "1.0",
        /// TLS 1.1.
        Tls11 = "1.1",
        /// TLS 1.2.
        Tls12 = "1.2",
        /// TLS 1.3.
        Tls13 = "1.3",
    }
}

impl TlsVersion {
    /// The version with this number on the wire (0x0304 is 1.3); `None` if it is unknown.
    pub fn numbered(number: u16) -> Option<TlsVersion> {
        Some(match number {
            0x0300 => TlsVersion::Ssl3,
            0x0301 => TlsVersion::Tls10,
            0x0302 => TlsVersion::Tls11,
            0x0303 => TlsVersion::Tls12,
            0x0304 => TlsVersion::Tls13,
            _ => return None,
        })
    }
}

/// How a TLS session began.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Handshake {
    /// A full handshake with a certificate.
    Full,
    /// Resumed from a ticket, session id or pre-shared key.
    Resumed,
    /// Resumed, with a request in the first flight (0-RTT) that the server accepted.
    EarlyData,
}

impl Handshake {
    /// The handshake of a session that was resumed or not.
    pub fn of(is_resumed: bool) -> Handshake {
        if is_resumed {
            Handshake::Resumed
        } else {
            Handshake::Full
        }
    }
}

/// The TLS of a connection. Facts that were not visible are absent.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tls {
    /// The negotiated version.
    pub version: Option<TlsVersion>,
    /// The cipher suite by its IANA name.
    pub cipher: Option<Arc<str>>,
    /// The requested name (SNI).
    pub server_name: Option<Arc<str>>,
    /// The offered application protocols, in order; absent if not observed, empty if none were
    /// offered.
    pub alpn_offered: Option<Arc<[Arc<str>]>>,
    /// The chosen application protocol.
    pub alpn_chosen: Option<Arc<str>>,
    /// Full, resumed or with early data.
    pub handshake: Option<Handshake>,
    /// Whether the client offered to resume.
    pub resumption_offered: Option<bool>,
    /// Number of tickets that the server sent on this connection.
    pub tickets: Option<u32>,
    /// The client library according to the hello, as a JA4-like string.
    pub client_hint: Option<Arc<str>>,
}
