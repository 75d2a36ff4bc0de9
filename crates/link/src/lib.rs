//! Emulates a link on one machine. Client and server each have a network namespace. A forwarder
//! between them delays and drops packets, and forgets idle flows. Both ends use the kernel's TCP,
//! so SYN, TLS and slow start take real round trips.
//!
//! An instrument: it starts links and runs commands on their sides. It draws no conclusions.

mod addresses;
pub mod document;
#[cfg(any(target_os = "linux", test))]
mod emulator;
mod error;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(any(target_os = "linux", test))]
mod remedy;
mod spec;
mod stats;
mod step;
#[cfg(not(target_os = "linux"))]
mod unsupported;

pub use addresses::{CLIENT_V4, CLIENT_V6, SERVER_NAME, SERVER_V4, SERVER_V6};
#[cfg(all(fuzzing, target_os = "linux"))]
#[doc(hidden)]
pub use emulator::fuzz::forward;
pub use error::LinkError;
#[cfg(target_os = "linux")]
pub use linux::{Link, keep, use_resolver};
pub use spec::{Blocked, Congestion, Forgotten, LinkChange, Nat, Spec, SpecError};
pub use stats::{Counts, Lateness, LinkFacts, LinkStats, RoundTrip};
pub use step::LinkStep;
#[cfg(not(target_os = "linux"))]
pub use unsupported::{Link, keep, use_resolver};

/// The side of a link that a command runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkEnd {
    /// 198.18.0.1
    Client = 0,
    /// 198.18.0.2, `server.test`
    Server = 1,
}
