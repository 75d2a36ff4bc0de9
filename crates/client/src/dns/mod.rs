//! DNS lookups without getaddrinfo(3): queries to name servers, the system's configuration, and a
//! resolver with an optional cache. It does not read /etc/hosts. It queries names unchanged,
//! without a search list.

mod configuration;
mod query;
mod stub;

pub use configuration::NameServers;
pub use query::{Answer, Patience, QueryError, ask, read_any};
pub use stub::StubResolver;
