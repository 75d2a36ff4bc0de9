//! The record of the run: rows for the relay to write, and counts of connections without a watcher.
//!
//! Makes the rows of failed connects and of lookups. Knows no process and no socket but by its
//! cookie.

use super::udp_peers::UdpPeers;
use super::unix_sockets::UnixSockets;
use crate::platform::relay_command::{Landing, RelaySender, RelayedConnection, Successor};
use crate::{Clock, Config, Numbers, RunPosition, Unwatched};
use intact_ledger::{
    Connection, DialFailure, Failure, Lookup, Nanos, Origin, Owner, Row, Scheme, SetupPhase,
};
use intact_sys::address::unmapped;
use std::collections::{BTreeMap, HashSet};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

/// Unwatched sockets that are remembered, so that the scan counts each once. Further ones are not
/// counted by the scan.
const MAX_UNWATCHED: usize = 1 << 16;

/// The record of the run.
pub(crate) struct RunRecord {
    relay: RelaySender,
    /// The run's clock.
    pub(super) clock: Clock,
    numbers: Numbers,
    position: Option<RunPosition>,
    /// Connections that are left to the kernel; where inspection is refused, calls that may be
    /// some.
    unwatched: BTreeMap<Unwatched, u64>,
    /// Connections that are left to the kernel and followed from outside, by the reason.
    followed: BTreeMap<Unwatched, u64>,
    /// Cookies of sockets that are counted as unwatched.
    unwatched_sockets: HashSet<u64>,
    /// Connections to Unix sockets.
    pub(super) unix_sockets: UnixSockets,
    /// Peers of UDP sockets.
    pub(super) udp_peers: UdpPeers,
}

impl RunRecord {
    pub(crate) fn new(relay: RelaySender, clock: Clock, config: &Config) -> RunRecord {
        let variables = config.environment.iter();
        let ours = variables.map(|(_, value)| value.to_string_lossy().into_owned());
        RunRecord {
            relay,
            clock,
            numbers: config.numbers.clone(),
            position: config.place,
            unwatched: BTreeMap::new(),
            followed: BTreeMap::new(),
            unwatched_sockets: HashSet::new(),
            unix_sockets: UnixSockets::new(ours.collect()),
            udp_peers: UdpPeers::default(),
        }
    }

    /// The time on the run's clock.
    pub(super) fn now(&self) -> Nanos {
        self.clock.now()
    }

    /// What a fault has put at an address instead of its server, last looked up then.
    pub(super) fn successor(
        &self,
        peer: SocketAddr,
        looked_up: Option<Nanos>,
    ) -> Option<Successor> {
        self.relay.moved().successor(peer, looked_up)
    }

    /// Records a row.
    pub(super) fn row(&self, row: Row) {
        self.relay.record(row);
    }

    /// A connection as the program requests it.
    pub(super) fn connection(
        &self,
        wanted: Option<SocketAddr>,
        began: Nanos,
        owner: Option<Owner>,
    ) -> Connection {
        let mut about = Connection::new(self.numbers.connection(), began);
        about.variant = self.position.map(|position| position.variant);
        about.round = self.position.map(|position| position.round);
        about.environment = self.position.and_then(|position| position.environment);
        about.peer = wanted.map(unmapped);
        about.origin = about.peer.map(origin);
        about.owner = owner;
        about
    }

    /// Records a connect that failed with this error number.
    pub(super) fn failed(&self, about: Connection, error: i32) {
        let error = io::Error::from_raw_os_error(error);
        self.not_opened(about, failure(&error), error.to_string().into());
    }

    /// Records a connect that the program gave up.
    pub(super) fn given_up(&self, about: Connection) {
        let detail = "the program gave up before the destination answered";
        self.not_opened(about, Failure::ClientClosed, detail.into());
    }

    fn not_opened(&self, mut about: Connection, kind: Failure, detail: Arc<str>) {
        about.failed = Some(DialFailure {
            phase: SetupPhase::Connect,
            kind,
            detail: Some(detail),
        });
        self.row(Row::Opened(Box::new(about)));
    }

    /// Records a lookup.
    pub(super) fn lookup(&self, mut lookup: Lookup) {
        lookup.variant = self.position.map(|position| position.variant);
        lookup.round = self.position.map(|position| position.round);
        self.row(Row::Lookup(lookup));
    }

    /// Counts a connection that the program may use from now on.
    pub(super) fn land(&self) -> Landing {
        self.relay.land()
    }

    /// Hands a connection whose ends are established to the relay.
    pub(super) fn relayed(&mut self, connection: Box<RelayedConnection>) {
        if self.relay.carry(connection).is_err() {
            self.unwatched(Unwatched::NoRelay);
        }
    }

    /// Counts a connection that is left to the kernel.
    pub(super) fn unwatched(&mut self, reason: Unwatched) {
        *self.unwatched.entry(reason).or_default() += 1;
        self.relay.count_not_relayed();
    }

    /// Counts a connection that is left to the kernel for this reason, and followed from outside.
    pub(super) fn followed(&mut self, reason: Unwatched) {
        *self.followed.entry(reason).or_default() += 1;
        self.relay.count_not_relayed();
    }

    /// The program has a ring that was made outside.
    pub(super) fn has_ring(&mut self) {
        if !self.unwatched.contains_key(&Unwatched::Ring) {
            self.unwatched(Unwatched::Ring);
        }
    }

    /// The same as [`Self::unwatched`], for a socket that the scan must not count again.
    pub(super) fn unwatched_socket(&mut self, cookie: u64, reason: Unwatched) {
        self.is_new_socket(cookie);
        self.unwatched(reason);
    }

    /// Counts a socket that the scan has found, unless it is counted already.
    pub(super) fn unseen_socket(&mut self, cookie: u64) {
        if self.is_new_socket(cookie) {
            self.unwatched(Unwatched::Unseen);
        }
    }

    fn is_new_socket(&mut self, cookie: u64) -> bool {
        self.unwatched_sockets.len() < MAX_UNWATCHED && self.unwatched_sockets.insert(cookie)
    }

    /// Records the counts of unwatched connections, except reasons that `recorded` has.
    pub(super) fn finish(mut self, recorded: &[Unwatched]) {
        let reasons = self.unwatched.iter();
        for (reason, count) in reasons.filter(|(reason, _)| !recorded.contains(reason)) {
            self.row(Row::Caveat(reason.caveat(*count)));
        }
        for (reason, count) in &self.followed {
            if let Some(caveat) = reason.followed_caveat(*count) {
                self.row(Row::Caveat(caveat));
            }
        }
        let elsewhere = [self.unix_sockets.caveat(), self.udp_peers.caveat()];
        for caveat in elsewhere.into_iter().flatten() {
            self.row(Row::Caveat(caveat));
        }
    }
}

/// The origin of a connection of which nothing is known but its peer.
pub(crate) fn origin(peer: SocketAddr) -> Origin {
    Origin {
        scheme: Scheme::Tcp,
        host: peer.ip().to_canonical().to_string().into(),
        port: peer.port(),
    }
}

/// The ledger's kind of a failed connect.
fn failure(error: &io::Error) -> Failure {
    match error.raw_os_error() {
        Some(libc::ECONNREFUSED) => Failure::Refused,
        Some(libc::ECONNRESET | libc::ECONNABORTED) => Failure::ConnectReset,
        Some(libc::ETIMEDOUT) => Failure::ConnectTimeout,
        // the second is the kernel's error when every port is taken
        Some(libc::EADDRNOTAVAIL | libc::EAGAIN) => Failure::NoFreePort,
        Some(libc::EMFILE | libc::ENFILE) => Failure::NoFreeFd,
        _ => Failure::Unreachable,
    }
}
