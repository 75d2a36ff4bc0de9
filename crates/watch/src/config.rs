//! What to run and how closely to look.

use intact_ledger::ConnectionId;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// An end of a terminal.
#[cfg(unix)]
pub type Terminal = std::os::fd::OwnedFd;

/// An end of a terminal, of which this system has none.
#[cfg(not(unix))]
#[derive(Debug)]
pub enum Terminal {}

/// How connections are followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Through a relay of ours, and from the outside where that cannot be.
    #[default]
    Auto,
    /// Through a relay of ours only.
    Relay,
    /// From outside only: the data is not touched, and what is in it not seen.
    Passthrough,
}

/// Where the program's standard streams lead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Streams {
    /// Where ours do.
    #[default]
    Shared,
    /// Nowhere: it reads nothing, and what it prints is dropped.
    Null,
}

/// What to run and how closely to look.
#[derive(Clone, Debug)]
pub struct Config {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Variables that are set for it.
    pub environment: Vec<(OsString, OsString)>,
    /// Where its standard streams lead.
    pub streams: Streams,
    /// A terminal of its own, such as the far end of a pseudo-terminal: its standard streams lead there instead, and it leads
    /// a session there, so that Ctrl-C typed there reaches it.
    pub terminal: Option<Arc<Terminal>>,
    /// How connections are followed.
    pub mode: Mode,
    /// A round trip that is added to each connection, from its SYN on. Zero for none.
    pub round_trip: Duration,
    /// How programs are told to log the keys of their TLS connections, which are looked for in their memory where they do not;
    /// `None`: neither.
    pub keys: Option<KeyLogging>,
    /// The variant and the round that its rows belong to, where several runs share a ledger.
    pub place: Option<RunPosition>,
    /// The numbers of connections and exchanges; clone them into each run that shares a ledger.
    pub numbers: Numbers,
    /// A destination that is left to the kernel and not recorded: our own end of a conversation with the program.
    pub apart: Option<SocketAddr>,
    /// 32 random bytes: the key of this run's fingerprints. Kept in memory only.
    pub fingerprint_key: [u8; 32],
}

impl Config {
    /// The command with everything else as it is by default.
    pub fn new(command: Vec<OsString>, fingerprint_key: [u8; 32]) -> Config {
        Config {
            command,
            environment: Vec::new(),
            streams: Streams::default(),
            terminal: None,
            mode: Mode::default(),
            round_trip: Duration::ZERO,
            keys: Some(KeyLogging::default()),
            place: None,
            numbers: Numbers::default(),
            apart: None,
            fingerprint_key,
        }
    }
}

/// How programs are told to log the keys of their TLS connections: by `SSLKEYLOGFILE`, and by a module that Node loads first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyLogging {
    /// The program's own `SSLKEYLOGFILE`, which is read from its present end on and otherwise left alone.
    pub own_file: Option<PathBuf>,
    /// What `NODE_OPTIONS` is so far; `None` leaves Node alone.
    pub node_options: Option<OsString>,
}

/// One run among several in a ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunPosition {
    /// Index into the run's variants.
    pub variant: u32,
    /// The round, from 1.
    pub round: u32,
    /// The execution environment that the program is, for a function.
    pub environment: Option<u64>,
}

/// Numbers for connections and exchanges, unique among all clones.
#[derive(Clone, Debug, Default)]
pub struct Numbers(Arc<(AtomicU64, AtomicU64)>);

impl Numbers {
    /// Numbers after this one, for a ledger that several processes write.
    pub fn after(last: u64) -> Numbers {
        Numbers(Arc::new((AtomicU64::new(last), AtomicU64::new(last))))
    }

    /// A number for a connection.
    pub(crate) fn connection(&self) -> ConnectionId {
        ConnectionId(self.0.0.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// A number for an exchange.
    pub(crate) fn exchange(&self) -> u64 {
        self.0.1.fetch_add(1, Ordering::Relaxed) + 1
    }
}
