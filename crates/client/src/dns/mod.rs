//! DNS lookups without getaddrinfo(3): queries to name servers, the system's configuration, and a
//! resolver with an optional cache. It does not read /etc/hosts. It queries names unchanged,
//! without a search list.

mod configuration;
mod query;
mod stub;

pub use configuration::NameServers;
pub use query::{Answer, Patience, QueryError, ask, read_any};
pub use stub::StubResolver;

use std::net::SocketAddr;

/// Which address family to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// All addresses, in the resolver's order.
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
