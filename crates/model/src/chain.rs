//! A chain of services: who calls whom, how far away, over what.

use serde::Serialize;
use std::collections::BTreeMap;

/// TLS of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Tls {
    /// Plain.
    #[serde(rename = "none")]
    None,
    /// A full handshake of TLS 1.2 (RFC 5246 section 7.3).
    #[serde(rename = "1.2")]
    Tls12,
    /// A resumed one of TLS 1.2.
    #[serde(rename = "1.2-resumed")]
    Tls12Resumed,
    /// TLS 1.3 (RFC 8446 section 2); a resumed one takes the same trips.
    #[serde(rename = "1.3")]
    Tls13,
    /// TLS 1.3 with early data: the request travels with the ClientHello.
    #[serde(rename = "1.3-early-data")]
    Tls13EarlyData,
}

impl Tls {
    /// Every choice, as a file says it.
    pub const ALL: [(&'static str, Tls); 5] = [
        ("none", Tls::None),
        ("1.2", Tls::Tls12),
        ("1.2-resumed", Tls::Tls12Resumed),
        ("1.3", Tls::Tls13),
        ("1.3-early-data", Tls::Tls13EarlyData),
    ];
}

/// HTTP version of a call; what matters is what it runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Http {
    /// Over TCP, 1.0, 1.1 or 2.
    #[serde(rename = "tcp")]
    Tcp,
    /// HTTP/3: QUIC does both handshakes at once (RFC 9001 section 4).
    #[serde(rename = "3")]
    Quic,
}

/// One call of a service to another, and how often it is made for one request.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Call {
    /// The service that is called.
    pub to: String,
    /// Round trip in milliseconds.
    pub rtt_ms: f64,
    /// Lookup of the name on a new connection, in milliseconds.
    pub dns_ms: f64,
    /// Computing that a full TLS handshake costs both sides together, in milliseconds.
    pub crypto_ms: f64,
    /// TLS.
    pub tls: Tls,
    /// HTTP version.
    pub http: Http,
    /// Share of the calls that find a connection that is there already, 0 to 1.
    pub reuse: f64,
    /// How often it is made for one request of the caller.
    pub times: u64,
    /// Whether these are made at once instead of one after the other.
    pub at_once: bool,
    /// Calls of one service with the same group run beside each other.
    pub group: Option<String>,
    /// Bytes of an answer; above the initial window a new connection takes further trips (RFC 6928).
    pub answer_bytes: u64,
}

/// What a service does for one request.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Service {
    /// Its own work in milliseconds.
    pub work_ms: f64,
    /// The calls that it makes, in order.
    pub calls: Vec<Call>,
}

/// A checked chain: every call leads to a service, and none leads back.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Chain {
    /// Its name.
    pub name: String,
    /// Who sends the first call.
    pub client: String,
    /// The calls of the client.
    pub calls: Vec<Call>,
    /// The services by name.
    pub services: BTreeMap<String, Service>,
}

impl Chain {
    /// All calls, to be changed.
    pub(crate) fn calls_mut(&mut self) -> impl Iterator<Item = &mut Call> {
        let inner = self.services.values_mut().flat_map(|one| &mut one.calls);
        self.calls.iter_mut().chain(inner)
    }
}
