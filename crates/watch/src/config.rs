//! What to run and how closely to look.

use crate::{Marker, RunSignals, Subjects};
use intact_ledger::{ConnectionId, Evidence, EvidenceSet, FaultKind, FaultScope, StackId};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fmt;
use std::net::{Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
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

impl Mode {
    /// What [`crate::run`] observes of a program. Bodies and requests pass through a relay
    /// only.
    pub fn evidence(self) -> EvidenceSet {
        let calls = [
            Evidence::Addresses,
            Evidence::Attempts,
            Evidence::Lookups,
            Evidence::Owners,
            Evidence::Processes,
        ];
        let all = intact_observe::EVIDENCE.union(calls.into());
        match self {
            Mode::Auto | Mode::Relay => all,
            Mode::Passthrough => all
                .without(Evidence::Bodies)
                .without(Evidence::Calls)
                .without(Evidence::Contents)
                .without(Evidence::Handshakes)
                .without(Evidence::Identities)
                .without(Evidence::Processes)
                .without(Evidence::Repeats),
        }
    }
}

/// Which connections of running programs are followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sides {
    /// Those that they open.
    #[default]
    Client,
    /// Those that they accept.
    Server,
    /// All.
    Both,
}

impl Sides {
    /// Whether those are followed that they open.
    pub fn has_client(self) -> bool {
        self != Sides::Server
    }

    /// Whether those are followed that they accept.
    pub fn has_server(self) -> bool {
        self != Sides::Client
    }
}

/// Which running programs to follow, and how closely.
#[derive(Clone, Debug)]
pub struct AttachConfig {
    /// The programs.
    pub subjects: Subjects,
    /// Which of their connections.
    pub sides: Sides,
    /// How long at most; with `every`, each time.
    pub at_most: Option<Duration>,
    /// They are followed again and again: the time from one start to the next.
    pub every: Option<Duration>,
    /// Set by the user's wish to end.
    pub stop: Arc<AtomicBool>,
    /// With [`Mode::Passthrough`] no packets are read.
    pub mode: Mode,
    /// Where keys of TLS come from, in addition to the memory of the programs; `None`: none are
    /// looked for.
    pub keys: Option<KeyLogging>,
    /// Bytes of the ring of packets.
    pub buffer: usize,
    /// 32 random bytes: the key of this run's fingerprints. Kept in memory only.
    pub fingerprint_key: [u8; 32],
}

impl AttachConfig {
    /// Bytes of the ring, unless another size is chosen.
    pub const BUFFER: usize = 64 << 20;
    /// Bytes of the largest ring.
    pub const MOST_BUFFER: usize = 2048 << 20;

    /// Follows these, with everything else as it is by default.
    pub fn new(subjects: Subjects, fingerprint_key: [u8; 32]) -> AttachConfig {
        AttachConfig {
            subjects,
            sides: Sides::default(),
            at_most: None,
            every: None,
            stop: Arc::default(),
            mode: Mode::default(),
            keys: Some(KeyLogging::default()),
            buffer: AttachConfig::BUFFER,
            fingerprint_key,
        }
    }
}

/// What [`crate::Attached`] observes without packets: the kernel reports connections, but not what
/// a running program looks up.
pub fn followed_evidence() -> EvidenceSet {
    Mode::Passthrough.evidence().without(Evidence::Lookups)
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
    /// The folder that it runs in; `None`: ours.
    pub directory: Option<PathBuf>,
    /// Where its standard streams lead.
    pub streams: Streams,
    /// A terminal of its own, such as the far end of a pseudo-terminal: its standard streams lead
    /// there instead, and it leads a session there, so that Ctrl-C typed there reaches it.
    pub terminal: Option<Arc<Terminal>>,
    /// How connections are followed.
    pub mode: Mode,
    /// A round trip that is added to each connection, from its SYN on. Zero for none.
    pub round_trip: Duration,
    /// How programs are made to log the keys of their TLS connections, which are looked for in
    /// their memory where they do not; `None`: neither.
    pub keys: Option<KeyLogging>,
    /// The variant and the round that its rows belong to, where several runs share a ledger.
    pub place: Option<RunPosition>,
    /// The numbers of connections and exchanges; clone them into each run that shares a ledger.
    pub numbers: Numbers,
    /// A fault that strikes the program's own connections.
    pub fault: Option<FaultConfig>,
    /// A destination that is left to the kernel and not recorded: our own end of a conversation
    /// with the program.
    pub apart: Option<SocketAddr>,
    /// How the places in the code are found that open connections; `None`: no stack is read.
    pub code: Option<CodeReading>,
    /// Requests marks of the run.
    pub marker: Marker,
    /// The signals of all runs whose configs are clones of one: one that comes between two of them
    /// is the next one's.
    pub signals: RunSignals,
    /// 32 random bytes: the key of this run's fingerprints. Kept in memory only.
    pub fingerprint_key: [u8; 32],
}

impl Config {
    /// The command with everything else as it is by default.
    pub fn new(command: Vec<OsString>, fingerprint_key: [u8; 32]) -> Config {
        Config {
            command,
            environment: Vec::new(),
            directory: None,
            streams: Streams::default(),
            terminal: None,
            mode: Mode::default(),
            round_trip: Duration::ZERO,
            keys: Some(KeyLogging::default()),
            place: None,
            numbers: Numbers::default(),
            fault: None,
            apart: None,
            code: None,
            marker: Marker::default(),
            signals: RunSignals::default(),
            fingerprint_key,
        }
    }
}

/// How programs are made to log the keys of their TLS connections: by `SSLKEYLOGFILE`, and by a
/// module that Node loads first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyLogging {
    /// The program's own `SSLKEYLOGFILE`, which is read from its present end on and otherwise left
    /// alone.
    pub own_file: Option<PathBuf>,
    /// What `NODE_OPTIONS` is so far; `None` leaves Node alone.
    pub node_options: Option<OsString>,
}

/// How places in the code are found: by reading stacks, and by a module that Node loads first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeReading {
    /// The folder of the user's code: places below it are named.
    pub root: PathBuf,
    /// What `NODE_OPTIONS` is so far; `None` leaves Node alone.
    pub node_options: Option<OsString>,
}

/// A fault that strikes kept connections of the program: those that have carried a complete
/// exchange.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultConfig {
    /// What is done to a connection.
    pub kind: FaultKind,
    /// How much of a pool it strikes.
    pub scope: FaultScope,
    /// The idle time or the age after which it is done; without meaning for other kinds.
    pub after: Duration,
    /// How long a connection carries nothing before it counts as idle. With a longer time than
    /// [`FaultConfig::IDLE`] an idle connection alone is struck: a program that is never idle
    /// for that long does not see the end together with a response.
    pub idle: Duration,
    /// The destinations that it is limited to; empty: all.
    pub hosts: Vec<FaultHost>,
    /// Chooses the connections and the moments: the same seed chooses the same ones.
    pub seed: u64,
    /// How long a stall lasts at most; then the connection is reset, so that the program can go
    /// on.
    pub wait: Duration,
    /// The server that [`FaultKind::OtherServer`] puts at an address: its port for plain HTTP, and
    /// that for TLS.
    pub other_server: Option<[SocketAddr; 2]>,
}

impl FaultConfig {
    /// The seed unless another one is chosen: each fault strikes at the first moment.
    pub const SEED: u64 = 0;
    /// How long a connection carries nothing before it counts as idle, unless another time is
    /// chosen.
    pub const IDLE: Duration = Duration::from_millis(50);
    /// The longest stall unless another limit is chosen.
    pub const WAIT: Duration = Duration::from_secs(30);

    /// A fault with everything else as it is by default.
    pub fn new(kind: FaultKind) -> FaultConfig {
        FaultConfig {
            kind,
            scope: FaultScope::All,
            after: Duration::from_nanos(kind.row().default_after.unwrap_or(0)),
            idle: FaultConfig::IDLE,
            hosts: Vec::new(),
            seed: FaultConfig::SEED,
            wait: FaultConfig::WAIT,
            other_server: None,
        }
    }
}

/// A destination of faults: a name or an address, and a port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultHost {
    /// The name in lower case, or the address without brackets.
    pub host: Arc<str>,
    /// The port; `None`: all.
    pub port: Option<u16>,
}

impl FaultHost {
    /// Reads `HOST` or `HOST:PORT`; an IPv6 address with a port is in brackets. `None` where the
    /// text is neither.
    pub fn parse(text: &str) -> Option<FaultHost> {
        let is_address = text.parse::<Ipv6Addr>().is_ok();
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !is_address => (host, Some(port.parse().ok()?)),
            _ => (text, None),
        };
        let bare = host
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        let host = bare.unwrap_or(host).to_ascii_lowercase();
        let is_host = !host.is_empty() && !host.contains(['/', '@', ' ', '[', ']']);
        let is_host = is_host && (!host.contains(':') || host.parse::<Ipv6Addr>().is_ok());
        is_host.then(|| FaultHost {
            host: host.into(),
            port,
        })
    }
}

impl fmt::Display for FaultHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Some(port) if self.host.contains(':') => write!(f, "[{}]:{port}", self.host),
            Some(port) => write!(f, "{}:{port}", self.host),
            None => f.write_str(&self.host),
        }
    }
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
pub struct Numbers(Arc<[AtomicU64; 3]>);

impl Numbers {
    /// Numbers after this one, for a ledger that several processes write.
    pub fn after(last: u64) -> Numbers {
        Numbers(Arc::new([last; 3].map(AtomicU64::new)))
    }

    /// A number for a connection.
    pub(crate) fn connection(&self) -> ConnectionId {
        ConnectionId(self.next(0))
    }

    /// A number for an exchange.
    pub(crate) fn exchange(&self) -> u64 {
        self.next(1)
    }

    /// A number for a stack.
    pub(crate) fn stack(&self) -> StackId {
        StackId(self.next(2))
    }

    fn next(&self, of: usize) -> u64 {
        self.0[of].fetch_add(1, Ordering::Relaxed) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_of_faults_has_a_port_or_means_all_ports() {
        for (text, host, port) in [
            ("api.Example.com", "api.example.com", None),
            ("localhost:8080", "localhost", Some(8080)),
            ("::1", "::1", None),
            ("[::1]:8080", "::1", Some(8080)),
            ("127.0.0.1:80", "127.0.0.1", Some(80)),
        ] {
            let read = FaultHost::parse(text).unwrap();
            assert_eq!((&*read.host, read.port), (host, port), "{text}");
            assert_eq!(FaultHost::parse(&read.to_string()), Some(read));
        }
        for text in ["", ":80", "a:b", "http://a", "a:99999", "[::1", "a b"] {
            assert_eq!(FaultHost::parse(text), None, "{text}");
        }
    }
}
