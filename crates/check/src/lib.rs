//! `check`: what a server does with connections, found out by asking it.
//!
//! A [`Check`] runs its probes one after the other, each a file below `probe`: one of them on the wire at a time, so that none
//! disturbs another. It writes ledger events and fills a [`ServerProfile`] of measured facts. It must not draw conclusions, print,
//! or send anything beyond its [`Budget`], which is known before the first request.

mod budget;
mod capture;
mod config;
#[doc(hidden)]
pub mod dns;
mod line;
mod old_tls;
mod plans;
mod probe;
mod prober;
mod server_process;

pub use budget::Budget;
pub use capture::{Capture, CaptureError};
pub use config::{Config, ConfigError, DrainConfig, ExtraRequest, MAX_TIME};
pub use intact_ledger::server_profile::ServerProfile;
pub use probe::{Check, CheckError, CheckProgress, Packets, ProbeKind};
pub use prober::CONNECTIONS_PER_S;
pub use server_process::{EndSignal, ProcessState, ServerProcess};
