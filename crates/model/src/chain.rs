//! A chain of services: who calls whom, at what distance, over which protocol.

use intact_ledger::kinds;
use serde::Serialize;
use std::collections::BTreeMap;

kinds! {
    json
    /// TLS of a call.
    pub enum Tls, as_str {
        /// Plain.
        None = "none",
        /// A full handshake of TLS 1.2 (RFC 5246 section 7.3).
        Tls12 = "1.2",
        /// A resumed handshake of TLS 1.2.
        Tls12Resumed = "1.2-resumed",
        /// TLS 1.3 (RFC 8446 section 2); a resumed handshake takes the same trips.
        Tls13 = "1.3",
        /// TLS 1.3 with early data: the request is sent with the ClientHello.
        Tls13EarlyData = "1.3-early-data",
    }
}

/// HTTP version of a call, by its transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub enum Http {
    /// Over TCP, 1.0, 1.1 or 2.
    #[serde(rename = "tcp")]
    Tcp,
    /// HTTP/3: QUIC combines both handshakes (RFC 9001 section 4).
    #[serde(rename = "3")]
    Quic,
}

/// A call of one service to another.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Call {
    /// Name of the service that is called.
    pub to: String,
    /// Round-trip time in milliseconds.
    pub rtt_ms: f64,
    /// Duration of the lookup for a new connection, in milliseconds.
    pub dns_ms: f64,
    /// Computation of a full TLS handshake on both sides together, in milliseconds.
    pub crypto_ms: f64,
    /// TLS.
    pub tls: Tls,
    /// HTTP version.
    pub http: Http,
    /// Share of the calls that reuse a connection, 0 to 1.
    pub reuse: f64,
    /// Number of calls per request of the caller.
    pub times: u64,
    /// Whether these calls are concurrent instead of sequential.
    pub at_once: bool,
    /// Concurrent calls of one service have the same group.
    pub group: Option<String>,
    /// Size of a response in bytes. Above the initial window, a new connection takes more round
    /// trips (RFC 6928).
    pub answer_bytes: u64,
}

/// The work of a service per request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Service {
    /// Its own work in milliseconds.
    pub work_ms: f64,
    /// The calls that it makes, in order.
    pub calls: Vec<Call>,
}

/// A checked chain: every call leads to a service, and there is no cycle.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Chain {
    /// Its name.
    pub name: String,
    /// Name of the client that sends the first call.
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
