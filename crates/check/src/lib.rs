//! `check`: probes a server and records what it does with connections.
//!
//! A [`Check`] runs its probes one after the other, so that no probe disturbs another. Each probe
//! is a file below `probe`. A check writes ledger events and fills a [`ServerProfile`] with
//! measured facts. It must not draw conclusions or print. It sends at most its [`Budget`], which is
//! known before the first request.

mod alt_svc;
mod budget;
mod capture;
mod check;
mod config;
mod context;
#[doc(hidden)]
mod line;
mod old_tls;
mod plans;
mod probe;
mod probe_kind;
mod prober;
mod progress;
mod server_process;

pub use budget::Budget;
pub use capture::{Capture, CaptureError, Packets};
pub use check::Check;
pub use config::{Config, ConfigError, DrainConfig, ExtraRequest, MAX_TIME};
pub use intact_ledger::server_profile::ServerProfile;
pub use probe_kind::ProbeKind;
pub use prober::CONNECTIONS_PER_S;
pub use progress::{CheckError, CheckProgress};
pub use server_process::{EndSignal, ProcessState, ServerProcess};
