//! Runs a program unchanged and records every connection that it opens: no root, no proxy, no certificate, no code change.
//!
//! A seccomp filter asks us about `connect`. We connect to the real destination ourselves, give the program's own socket
//! the other end of a relay, and answer `getpeername` and `getsockname` as if nothing had happened. What passes through
//! the relay is read by the passive observers of `wire` and recorded as ledger events. `docs/watch.md` has the mechanism
//! and every difference that a program could notice.
//!
//! This crate draws no conclusions and prints nothing. It must never take the program down: where it cannot follow, the
//! call goes on untouched and that is counted.

mod clock;
mod config;
mod error;
mod outcome;

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod follow;
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod observe;
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod order;
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod outside;
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod relay;
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod run;
#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
#[path = "elsewhere.rs"]
mod run;
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod supervisor;
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod sys;

pub use clock::Clock;
pub use config::{Config, KeyLogging, Mode, Numbers, Place, Streams};
pub use error::WatchError;
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
pub use follow::{Subjects, follow};
pub use outcome::{Cpu, Ended, Outcome, Unwatched};
pub use run::run;
#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
pub use run::{Subjects, follow, without_signals};
#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
pub use sys::signals::without_signals;

/// The name of the process that removes the key log when we end, however we end. It is no part of the program.
pub const GUARD: &str = "(intact-guard)";

/// Takes what is recorded; called from the relay's thread, so it must not block for long.
pub trait Observer: ledger::Sink + Send {
    /// Called about once a second, for flushing files.
    fn tick(&mut self) {}
}
