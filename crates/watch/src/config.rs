//! What to run and how closely to look.

use std::ffi::OsString;

/// How connections are followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Through a relay of ours, and from the outside where that cannot be.
    #[default]
    Auto,
    /// Through a relay of ours.
    Relay,
}

/// What to run and how closely to look.
#[derive(Clone, Debug)]
pub struct Config {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// How connections are followed.
    pub mode: Mode,
    /// 32 random bytes: the key of this run's fingerprints. Kept in memory only.
    pub fingerprint_key: [u8; 32],
}
