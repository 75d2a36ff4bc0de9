//! Names without getaddrinfo(3): queries to a name server, the system's configuration of them, and a resolver with or without a
//! cache. Reads no /etc/hosts, and asks for names as they are: it has no search list.

mod configuration;
mod query;
mod stub;

pub use configuration::NameServers;
pub use query::{Answer, Patience, QueryError, ask, read_any};
pub use stub::StubResolver;
