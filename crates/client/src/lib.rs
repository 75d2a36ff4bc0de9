//! Opens one connection with a stopwatch on every step: name, transport, proxy, TLS; and takes the times of the exchanges on it.
//!
//! A [`Dial`] is a non-blocking state machine that the caller's event loop drives; it owns no thread but those of the
//! [`Resolver`], keeps no timers (the caller gives up for it) and decides nothing about pools or retries.

pub mod clock;
pub mod stamp;
pub mod tls;

mod dial;
mod failure;
mod judge;
mod plan;
mod resolver;
mod response_error;
mod server_url;
mod stopwatch;
mod stream;

pub use clock::Clock;
pub use dial::{Dial, Established, HandshakeFacts, Progress};
pub use judge::{judge, names_tls_port};
pub use plan::{Endpoint, Family, Plan, Proxy};
pub use resolver::{LookupResult, Resolver};
pub use response_error::{ResponseError, is_tls_alert};
pub use server_url::{AddressError, ConnectOverride, ServerUrl};
pub use stopwatch::{Arrival, Stopwatch};
pub use stream::Stream;
