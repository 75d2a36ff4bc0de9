//! The target of a dial and the way to it; made once, and used for every dial of a variant.

use crate::dns::{Family, StubResolver};
use crate::{SocketSettings, tls};
use intact_ledger::{Origin, Protocol};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// What to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// Known addresses, tried in order, without a lookup.
    Addresses(Arc<[SocketAddr]>),
    /// A name that is resolved for every dial.
    Name {
        /// The name.
        host: Arc<str>,
        /// The port.
        port: u16,
        /// The accepted address families.
        family: Family,
    },
    /// A Unix domain socket.
    Unix(PathBuf),
}

/// How an endpoint that is an HTTP proxy is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proxy {
    /// No proxy, or one that accepts absolute-form requests: nothing to do during the dial.
    Transparent,
    /// CONNECT to this authority first (RFC 9110 section 9.3.6).
    Tunnel {
        /// `host:port` as sent.
        authority: Arc<str>,
        /// The value of `Proxy-Authorization`, if the proxy requires one.
        authorization: Option<Arc<str>>,
    },
}

/// The parameters of a dial.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The origin, for the ledger.
    pub origin: Origin,
    /// What to connect to.
    pub endpoint: Endpoint,
    /// What resolves the name of the endpoint; `None`: the system's getaddrinfo(3).
    pub names: Option<Arc<StubResolver>>,
    /// How the endpoint leads to the origin.
    pub proxy: Proxy,
    /// TLS, if it is used.
    pub tls: Option<tls::Client>,
    /// The protocol of the connection.
    pub protocol: Protocol,
    /// Whether to request kernel receive timestamps.
    pub stamps: bool,
    /// Options of its socket.
    pub socket: SocketSettings,
    /// Read the local address of each connection from the kernel.
    pub local_address: bool,
    /// Whether both directions of HTTP/2 have a header table (RFC 7541 section 2.3.2); `None`: the
    /// requests have, the responses as [`crate::Detail`] says.
    pub header_table: Option<bool>,
}
