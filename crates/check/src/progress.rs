//! Who observes a running check, and why a check did not run. Must not know what a probe does.

use crate::capture::Packets;
use crate::config::ConfigError;
use crate::probe_kind::ProbeKind;
use intact_ledger::Event;
use intact_ledger::server_profile::ServerProfile;
use std::io;
use std::time::Duration;

/// Observes a running check and can stop it.
pub trait CheckProgress {
    /// A ledger event.
    fn event(&mut self, event: Event<'_>);
    /// A stage starts. The profile holds the results of the earlier ones.
    fn stage(&mut self, stage: ProbeKind, profile: &ServerProfile);
    /// Packets were captured. Called only if [`Check::run`](crate::Check::run) has a capture.
    fn packets(&mut self, packets: &Packets) {
        let _ = packets;
    }
    /// A wait of at most this length.
    fn waiting(&mut self, left: Duration);
    /// Whether to stop now and keep the results.
    fn stopped(&self) -> bool;
}

/// Why a check did not run.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The event loop failed.
    #[error("the event loop: {0}")]
    Loop(#[from] io::Error),
    /// The server's process cannot be signalled or observed.
    #[error("the server's command: {0}")]
    Server(#[source] io::Error),
}
