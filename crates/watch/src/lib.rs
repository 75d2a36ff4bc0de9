//! Runs a program unchanged and records every connection that it opens: no root, no proxy, no
//! certificate, no code change.
//!
//! A seccomp filter stops the program's `connect` calls. The supervisor connects to the real
//! destination, and gives the program's socket the other end of a relay. It responds to
//! `getpeername` and `getsockname` with the real addresses. Passive observers read the bytes of the
//! relay and record ledger events. `docs/internals/watch.md` has the mechanism, `docs/reference/
//! watch.md` every difference that a program could notice.
//!
//! This crate draws no conclusions and prints nothing. It must never end the program: if it cannot
//! follow a call, the kernel executes the call unchanged, and the connection is counted.
#![cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, reason = "the module of the platform uses it")
)]

mod config;
mod error;
mod mark;
mod outcome;

#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
#[path = "unsupported.rs"]
mod platform;
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
#[path = "linux/mod.rs"]
mod platform;

pub use config::{
    AttachConfig, CodeReading, Config, FaultConfig, FaultHost, KeyLogging, Mode, Numbers,
    RunPosition, Sides, Streams, Terminal, followed_evidence,
};
pub use error::WatchError;
pub use intact_client::Clock;
pub use mark::{Mark, Marker, Unfinished};
pub use outcome::{Cpu, Ended, Outcome, Unwatched};
pub use platform::{Attached, RunSignals, Subjects, attach, run, without_signals};

/// The names of the processes that wait for our end, however we end: one removes the key log, one
/// answers calls from then on. They are no part of the program.
pub const HELPERS: [&str; 2] = ["(intact-guard)", "(intact-fallback)"];

/// Takes what is recorded; called from the relay's thread, so it must not block for long.
pub trait WatchSink: intact_ledger::Sink + Send {
    /// Called about once a second, for flushing files.
    fn tick(&mut self) {}

    /// A mark that [`Marker::request`] asked for: what the program received before is recorded.
    fn mark(&mut self, _mark: &Mark) {}
}
