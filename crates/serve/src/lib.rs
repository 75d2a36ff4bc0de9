//! An instrumented HTTP server: HTTP/1.0, 1.1 and 2, plain and TLS, with a ledger of its own of the traffic that it serves.
//!
//! It is what tests, newcomers and `bench` without a URL use. An instrument, not a web server: it answers what it is told to,
//! well or badly, and records at the server's vantage point. There an exchange is `at` when its first byte was read, `send` is the
//! arrival of the request, `wait` the time until the answer was handed to the kernel; set-up spans are what the server sees of them.

mod admin;
mod response;
mod certificate_authority;
mod server_tally;
mod channel;
mod named_variants;
mod config;
mod connection;
mod delay;
mod fault;
mod thread_state;
pub mod hostile;
mod http1;
mod http2;
mod record;
mod test_server;
mod server;
mod tls;
mod totals;

pub use certificate_authority::{CertificateAuthority, AuthorityError, Certificate};
pub use named_variants::{NamedVariants, UnknownChoice};
pub use config::{Accept, Announce, AnnounceError, Close, Config, TlsConfig};
pub use delay::Delay;
pub use fault::{Fault, FaultError, Faults};
pub use test_server::TestServer;
pub use server::{Addresses, ServeError, Server};
pub use totals::{Connections, Handshakes, Requests, Totals, Version};
