//! Where a dial leads and through what; made once, used for every dial of a variant.

use crate::tls;
use intact_ledger::{Origin, Protocol};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// Which address family to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Family {
    /// Whatever the resolver answers, in its order.
    #[default]
    Any,
    /// IPv4 only.
    V4,
    /// IPv6 only.
    V6,
}

impl Family {
    /// Whether an address is of this family.
    pub fn allows(self, address: &SocketAddr) -> bool {
        match self {
            Family::Any => true,
            Family::V4 => address.is_ipv4(),
            Family::V6 => address.is_ipv6(),
        }
    }
}

/// What to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// Known addresses, tried in order; nothing is looked up.
    Addresses(Arc<[SocketAddr]>),
    /// A name that is looked up for every dial.
    Name {
        /// The name.
        host: Arc<str>,
        /// The port.
        port: u16,
        /// Which answers count.
        family: Family,
    },
    /// A Unix domain socket.
    Unix(PathBuf),
}

/// An HTTP proxy that the endpoint is: how it is made use of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proxy {
    /// None, or one that takes absolute-form requests: nothing to do while dialling.
    Transparent,
    /// CONNECT to this authority first (RFC 9110 section 9.3.6).
    Tunnel {
        /// `host:port` as sent.
        authority: Arc<str>,
        /// The value of `Proxy-Authorization`, if the proxy wants one.
        authorization: Option<Arc<str>>,
    },
}

/// Everything that a dial needs to know.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What the connection is for; recorded.
    pub origin: Origin,
    /// What to connect to.
    pub endpoint: Endpoint,
    /// How the endpoint leads there.
    pub proxy: Proxy,
    /// TLS, if it is spoken.
    pub tls: Option<tls::Client>,
    /// What will be spoken.
    pub protocol: Protocol,
    /// Whether to ask for kernel receive stamps.
    pub stamps: bool,
    /// Ask the kernel for our own address of each connection.
    pub local_address: bool,
}
