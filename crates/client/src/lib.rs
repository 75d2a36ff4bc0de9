//! The active HTTP client: drives one connection, with a stopwatch on each step.
//!
//! A [`Dial`] opens the connection: name, transport, proxy, TLS; or name and QUIC. An
//! [`HttpConnection`] carries exchanges over it. Both are non-blocking state machines that the
//! caller's event loop drives. `bench` drives many, `check` drives one.
//!
//! Only the [`Resolver`] has threads, and the crate sets no timers. It decides nothing about pools,
//! retries or pacing.

pub mod clock;
pub mod dns;
pub mod stamp;
pub mod tls;

mod body_check;
mod channel;
mod connection;
mod dial;
mod due;
mod event_loop;
mod failure;
mod judge;
mod plan;
#[cfg(feature = "http3")]
pub mod quic;
mod request;
mod resolver;
mod response_error;
mod server_url;
mod socket_settings;
mod stopwatch;
mod stream;
mod verifier;

/// What a client of ours observes of its own connections: all but the users that other programs
/// act for.
pub const EVIDENCE: EvidenceSet = EvidenceSet::of(&[
    Evidence::Addresses,
    Evidence::Announcements,
    Evidence::Attempts,
    Evidence::Bodies,
    Evidence::Durations,
    Evidence::Ends,
    Evidence::Lookups,
    Evidence::Reuse,
    Evidence::Setup,
]);

/// Whether this build speaks HTTP/3 (feature `http3`).
pub const HAS_HTTP3: bool = cfg!(feature = "http3");

pub use body_check::BodyCheck;
pub use clock::Clock;
pub use connection::{
    ConnectionLife, Detail, Ended, HttpConnection, Received, ResponseInfo, State,
};
pub use dial::{Dial, Established, HandshakeFacts, Progress, Transport};
pub use dns::Family;
pub use due::Due;
pub use event_loop::{EventLoop, PendingDial};
pub use plan::{Endpoint, Plan, Proxy};
pub use request::{CONNECTION_FIELDS, Request, RequestError, RequestSpec, is_redirect};
pub use resolver::{LookupResult, Resolver};
pub use server_url::{AddressError, ConnectOverride, ServerUrl};
pub use socket_settings::{
    SocketOptionError, SocketSettings, TcpEnd, accept_fast_open, check_congestion, check_fast_open,
};
pub use stream::Stream;

use intact_ledger::{Evidence, EvidenceSet};

pub(crate) use judge::{judge, names_tls_port};
pub(crate) use response_error::{ResponseError, is_tls_alert};
pub(crate) use stopwatch::{Arrival, Stopwatch};
