//! An instrumented HTTP server: HTTP/1.0, 1.1, 2 and 3, plain and TLS, with a ledger of its own of
//! the traffic that it serves.
//!
//! Tests, newcomers and `bench` without a URL use it. It is an instrument, not a web server: it
//! responds as configured, well or badly, and records at the server's vantage point. There, `at` is
//! when the first byte of a request was read, and `send` lasts until the request was complete.
//! `wait` lasts until the kernel had the response. Setup spans are what the server sees of them.

mod admin;
mod caching;
mod certificate_authority;
mod channel;
mod config;
mod connection;
mod delay;
mod disturbance;
mod drain;
mod fault;
mod host;
mod http1;
mod http2;
#[cfg(feature = "http3")]
mod http3;
mod name_server;
mod named_variants;
mod read_buffers;
mod record;
#[cfg(feature = "reflection")]
mod reflection;
mod response;
mod server;
mod server_tally;
mod stream_request;
mod summary;
mod thread_state;
mod tls;
mod totals;
mod upstream;

pub use caching::CachingConfig;
pub use certificate_authority::{AuthorityError, Certificate, CertificateAuthority};
pub use config::{Accept, Announce, AnnounceError, Close, Config, TlsConfig};
pub use delay::Delay;
pub use disturbance::{Disturbance, Disturbances, ScriptError};
pub use fault::{Fault, FaultError, Faults};
pub use name_server::{LookupFault, NameRecord, NameServerConfig, NameServerError, RateLimit};
pub use named_variants::{NamedVariants, UnknownChoice};
pub use server::{Addresses, ServeError, Server};
pub use summary::summary;
pub use totals::{Connections, Handshakes, Lookups, Requests, Totals, UpstreamCalls, Version};
pub use upstream::{UpstreamConfig, UpstreamError};

use intact_ledger::{Evidence, EvidenceSet};

/// What the server observes. Clients may look names up elsewhere, and fail before they reach it.
pub const EVIDENCE: EvidenceSet = EvidenceSet::of(&[
    Evidence::Addresses,
    Evidence::Announcements,
    Evidence::Bodies,
    Evidence::Calls,
    Evidence::Durations,
    Evidence::Ends,
    Evidence::Handshakes,
    Evidence::Reuse,
    Evidence::Setup,
]);
