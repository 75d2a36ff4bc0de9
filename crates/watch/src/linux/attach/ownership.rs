//! Whose connections packets belong to: those that followed processes open, by the kernel's trace
//! of connects and by looks at all sockets, and those that their listeners accept.
//!
//! A connection is another's only if that was seen. Until then its packets wait.

use crate::Sides;
use crate::platform::connect_trace::TracedConnect;
use intact_ledger::Owner;
use intact_observe::TlsReading;
use intact_packets::{Choice, Chosen, Selection};
use intact_wire::tcp::Segment;
use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};

/// Connections of other processes that are remembered.
const MAX_OTHERS: usize = 1 << 16;

/// The own address of a socket, and its peer's.
pub(super) type Ends = (SocketAddr, SocketAddr);

/// What is known of the owners of connections.
#[derive(Default)]
pub(super) struct Ownership {
    sides: Sides,
    /// Whether keys of TLS may come.
    expects_secrets: bool,
    /// Whether processes may be followed later that no followed process has started: then the
    /// trace's word that another process connects is not the last.
    may_grow: bool,
    /// Whether the trace shows each connect.
    has_trace: bool,
    /// Connections that followed processes opened.
    opened: HashMap<Ends, Owner>,
    /// Connections that other processes opened, with these.
    others: HashMap<Ends, u32>,
    /// Where followed processes listen.
    listeners: HashSet<SocketAddr>,
    /// Those of them where processes accept that are not followed: a fork with the same socket, or
    /// another one by SO_REUSEPORT.
    shared: HashSet<SocketAddr>,
    /// Connections that were accepted there, and whether by a followed process.
    accepted: HashMap<Ends, bool>,
    /// Connections that were accepted there and had ended before a look.
    pub(super) accepted_unseen: u64,
    /// The addresses of this network namespace.
    local: HashSet<IpAddr>,
    /// When the last two looks at all sockets began, in nanoseconds since 1970.
    looks: [u64; 2],
    /// When the run, or a part of it, ended.
    ended: Option<u64>,
}

impl Ownership {
    /// Nothing is known yet.
    pub(super) fn new(sides: Sides, expects_secrets: bool, may_grow: bool) -> Ownership {
        Ownership {
            sides,
            expects_secrets,
            may_grow,
            ..Ownership::default()
        }
    }

    /// The trace shows each connect from now on.
    pub(super) fn note_trace(&mut self) {
        self.has_trace = true;
    }

    /// A followed process opened this connection.
    pub(super) fn open(&mut self, ends: Ends, owner: Owner) {
        self.others.remove(&ends);
        self.opened.insert(ends, owner);
    }

    /// The run ends: what is opened from now on waits for no look.
    pub(super) fn end_run(&mut self, now: u64) {
        self.ended = Some(now);
    }

    /// This connection has ended.
    pub(super) fn end(&mut self, ends: Ends) {
        self.opened.remove(&ends);
    }

    /// The process that opened a connection, if it is followed.
    pub(super) fn owner(&self, ends: Ends) -> Option<&Owner> {
        self.opened.get(&ends)
    }

    /// Takes what the trace has shown.
    pub(super) fn trace(
        &mut self,
        decided: impl Iterator<Item = (Ends, TracedConnect)>,
        others: impl Iterator<Item = (Ends, u32)>,
    ) {
        for (ends, connect) in decided {
            self.open(ends, connect.owner);
        }
        if self.others.len() > MAX_OTHERS {
            self.others.clear();
        }
        for (ends, process) in others {
            // the trace covers all network namespaces, and addresses of loopback are in each
            if !self.opened.contains_key(&ends) {
                self.others.insert(ends, process);
            }
        }
    }

    /// A connection from before the run is another process's.
    pub(super) fn leave(&mut self, ends: Ends) {
        self.others.insert(ends, 0);
    }

    /// Whether another process opened this connection.
    pub(super) fn is_others(&self, ends: Ends) -> bool {
        self.others.contains_key(&ends)
    }

    /// A process is followed from now on: what it connected before is its own.
    pub(super) fn adopt(&mut self, owner: &Owner) {
        let OfProcess(ends) = OfProcess::take(&mut self.others, owner.pid);
        for ends in ends {
            self.opened.insert(ends, owner.clone());
        }
    }

    /// A look at all sockets that began then has ended: where followed and where other processes
    /// listen.
    pub(super) fn look(
        &mut self,
        began: u64,
        ours: impl Iterator<Item = SocketAddr>,
        foreign: &HashSet<SocketAddr>,
    ) {
        self.looks = [self.looks[1], began];
        // those of a service that restarts stay, until another process listens there
        self.listeners.retain(|one| !foreign.contains(one));
        self.listeners.extend(ours);
        self.local = local_addresses();
    }

    /// Whether a followed process listens at this address.
    pub(super) fn is_listener(&self, address: SocketAddr) -> bool {
        self.is_local(address.ip()) && has(&self.listeners, address)
    }

    /// Where other processes accept, too, of where followed ones do.
    pub(super) fn share(&mut self, shared: HashSet<SocketAddr>) {
        self.shared = shared;
    }

    /// Whether other processes accept at this address, too.
    pub(super) fn is_shared(&self, address: SocketAddr) -> bool {
        has(&self.shared, address)
    }

    /// A look has shown whether a followed process has the socket of this connection, which was
    /// accepted where others accept, too.
    pub(super) fn accept(&mut self, ends: Ends, is_ours: bool) {
        if self.accepted.len() > MAX_OTHERS {
            self.accepted.clear();
        }
        self.accepted.insert(ends, is_ours);
    }

    fn is_local(&self, address: IpAddr) -> bool {
        address.is_loopback() || self.local.contains(&address)
    }

    /// How the TLS of a connection is read. Segments have what a write had, so requests can be
    /// inferred where there are no secrets.
    fn tls(&self, process: Option<u32>) -> TlsReading {
        TlsReading {
            expects_secrets: self.expects_secrets,
            infers_requests: true,
            process,
        }
    }

    fn as_opener(&self, ends: Ends) -> Option<Choice> {
        let owner = self.opened.get(&ends).filter(|_| self.sides.has_client())?;
        Some(Choice::Read(Chosen {
            owner: Some(owner.clone()),
            client: Some(ends.0),
            tls: self.tls(Some(owner.pid)),
        }))
    }

    fn as_accepted(&self, client: SocketAddr, server: SocketAddr) -> Option<Choice> {
        let is_ours = self.sides.has_server()
            && self.is_listener(server)
            && (!self.is_shared(server) || self.accepted.get(&(server, client)) == Some(&true));
        is_ours.then(|| {
            Choice::Read(Chosen {
                owner: None,
                client: Some(client),
                tls: self.tls(None),
            })
        })
    }
}

impl Selection for Ownership {
    fn choose(&mut self, source: SocketAddr, target: SocketAddr, segment: &Segment<'_>) -> Choice {
        // without a SYN either may be the client
        let directions = match (segment.syn, segment.ack) {
            (true, None) => &[(source, target)][..],
            (true, Some(_)) => &[(target, source)],
            (false, _) => &[(source, target), (target, source)],
        };
        for &(client, server) in directions {
            let ours = self.as_opener((client, server));
            if let Some(ours) = ours.or_else(|| self.as_accepted(client, server)) {
                return ours;
            }
        }
        // one that was there before has been looked at, and so have its listeners
        let is_new = segment.syn;
        let may_be_ours = directions.iter().any(|&(client, server)| {
            let is_known = self.is_others((client, server)) || self.has_trace && !is_new;
            let is_known = is_known && !self.may_grow;
            let as_client = self.sides.has_client() && self.is_local(client.ip()) && !is_known;
            let as_server = self.sides.has_server() && self.is_local(server.ip());
            as_client || as_server && is_new
        });
        let is_after_run = self.ended.is_some_and(|ended| segment.at > ended);
        if may_be_ours && self.looks[0] <= segment.at && !is_after_run {
            return Choice::Later;
        }
        // two whole looks have not shown that it is ours
        let is_unseen = self.sides.has_server() && is_new && !self.shared.is_empty();
        if is_unseen {
            let ends = directions.iter().map(|&(client, server)| (server, client));
            let mut unseen = ends.filter(|(server, _)| self.is_shared(*server));
            let is_unseen = unseen.any(|ends| !self.accepted.contains_key(&ends));
            self.accepted_unseen += u64::from(is_unseen);
        }
        Choice::Skip
    }
}

/// Whether listeners have this address, or its port at any address.
fn has(listeners: &HashSet<SocketAddr>, address: SocketAddr) -> bool {
    let wildcard = |ip: IpAddr| SocketAddr::new(ip, address.port());
    listeners.contains(&address)
        || listeners.contains(&wildcard([0u8; 4].into()))
        || listeners.contains(&wildcard([0u16; 8].into()))
}

/// Connections of one process.
struct OfProcess(Vec<Ends>);

impl OfProcess {
    fn take(others: &mut HashMap<Ends, u32>, process: u32) -> OfProcess {
        let all = others.iter().filter(|(_, pid)| **pid == process);
        let ends: Vec<Ends> = all.map(|(ends, _)| *ends).collect();
        for ends in &ends {
            others.remove(ends);
        }
        OfProcess(ends)
    }
}

/// The addresses of the calling thread's network namespace, loopback aside.
fn local_addresses() -> HashSet<IpAddr> {
    let read = |file| std::fs::read_to_string(file).unwrap_or_default();
    let trie = read("/proc/thread-self/net/fib_trie");
    let v6 = read("/proc/thread-self/net/if_inet6");
    v4_of(&trie).chain(v6.lines().filter_map(v6_of)).collect()
}

/// The local addresses in the kernel's routing trie: a leaf, then its kinds.
fn v4_of(trie: &str) -> impl Iterator<Item = IpAddr> {
    let lines = trie.lines().zip(trie.lines().skip(1));
    lines.filter_map(|(leaf, kind)| {
        let address = leaf.trim().strip_prefix("|-- ")?;
        kind.contains("/32 host LOCAL")
            .then(|| address.parse().ok())?
    })
}

fn v6_of(line: &str) -> Option<IpAddr> {
    let digits = line.get(..32)?;
    let number = u128::from_str_radix(digits, 16).ok()?;
    Some(IpAddr::from(number.to_be_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(port: u16) -> SocketAddr {
        ([127, 0, 0, 1], port).into()
    }

    fn remote(port: u16) -> SocketAddr {
        ([192, 0, 2, 1], port).into()
    }

    fn owner(pid: u32) -> Owner {
        Owner {
            pid,
            command: "service".into(),
        }
    }

    fn syn(at: u64) -> Segment<'static> {
        Segment {
            syn: true,
            at,
            ..Segment::default()
        }
    }

    fn of(sides: Sides) -> Ownership {
        Ownership::new(sides, false, false)
    }

    fn client(choice: &Choice) -> Option<SocketAddr> {
        match choice {
            Choice::Read(chosen) => chosen.client,
            _ => None,
        }
    }

    #[test]
    fn a_connection_waits_until_its_owner_is_known_or_two_looks_have_passed() {
        let mut ownership = of(Sides::Client);
        let ends = (at(40_000), remote(80));
        assert_eq!(ownership.choose(ends.0, ends.1, &syn(5)), Choice::Later);
        ownership.look(7, std::iter::empty(), &HashSet::new());
        assert_eq!(ownership.choose(ends.0, ends.1, &syn(5)), Choice::Later);
        ownership.open(ends, owner(1));
        assert_eq!(
            client(&ownership.choose(ends.0, ends.1, &syn(5))),
            Some(ends.0)
        );
        let answer = Segment {
            ack: Some(1),
            ..syn(5)
        };
        assert_eq!(
            client(&ownership.choose(ends.1, ends.0, &answer)),
            Some(ends.0)
        );
        ownership.end(ends);
        ownership.look(9, std::iter::empty(), &HashSet::new());
        assert_eq!(ownership.choose(ends.0, ends.1, &syn(5)), Choice::Skip);
        assert_eq!(ownership.choose(ends.0, ends.1, &syn(8)), Choice::Later);
        // the run has ended, and no look follows
        ownership.end_run(10);
        assert_eq!(ownership.choose(ends.0, ends.1, &syn(9)), Choice::Later);
        assert_eq!(ownership.choose(ends.0, ends.1, &syn(11)), Choice::Skip);
        // what another machine opens is not a client's
        assert_eq!(ownership.choose(remote(4), at(80), &syn(8)), Choice::Skip);
    }

    #[test]
    fn what_a_listener_accepts_is_read_for_the_side_of_the_server_only() {
        let listeners = [SocketAddr::from(([0, 0, 0, 0], 80))];
        for (sides, found) in [
            (Sides::Server, Some(remote(4))),
            (Sides::Both, Some(remote(4))),
            (Sides::Client, None),
        ] {
            let mut ownership = of(sides);
            ownership.look(1, listeners.into_iter(), &HashSet::new());
            let choice = ownership.choose(remote(4), at(80), &syn(2));
            assert_eq!(client(&choice), found, "{sides:?}");
            // the same port of another machine
            let choice = ownership.choose(at(40_000), remote(80), &syn(2));
            assert_eq!(client(&choice), None, "{sides:?}");
        }
    }

    #[test]
    fn what_another_process_opened_is_skipped_unless_it_is_followed_later() {
        let ends = (at(40_000), at(80));
        let traced = || std::iter::once((ends, 7));
        let mut ownership = of(Sides::Client);
        ownership.trace(std::iter::empty(), traced());
        assert_eq!(ownership.choose(ends.0, ends.1, &syn(5)), Choice::Skip);
        ownership.may_grow = true;
        assert_eq!(ownership.choose(ends.0, ends.1, &syn(5)), Choice::Later);
        ownership.adopt(&owner(7));
        assert_eq!(
            client(&ownership.choose(ends.0, ends.1, &syn(5))),
            Some(ends.0)
        );
    }

    #[test]
    fn a_connection_from_before_that_no_look_has_found_is_anothers() {
        let data = Segment {
            ack: Some(1),
            at: 5,
            ..Segment::default()
        };
        let mut server = of(Sides::Server);
        assert_eq!(server.choose(remote(4), at(80), &data), Choice::Skip);
        assert_eq!(server.choose(remote(4), at(80), &syn(5)), Choice::Later);
        let mut client = of(Sides::Client);
        assert_eq!(client.choose(at(4), remote(80), &data), Choice::Later);
        client.note_trace();
        assert_eq!(client.choose(at(4), remote(80), &data), Choice::Skip);
    }

    #[test]
    fn the_same_addresses_in_another_namespace_hide_nothing() {
        let ends = (at(40_000), at(80));
        let mut ownership = of(Sides::Client);
        ownership.open(ends, owner(1));
        ownership.trace(std::iter::empty(), std::iter::once((ends, 7)));
        let choice = ownership.choose(ends.0, ends.1, &syn(5));
        assert_eq!(client(&choice), Some(ends.0));
    }

    #[test]
    fn where_others_accept_too_a_look_decides_and_what_it_missed_counts() {
        let mut ownership = Ownership::new(Sides::Server, false, false);
        let (server, client) = (at(80), at(40_000));
        ownership.look(1, [server].into_iter(), &HashSet::new());
        assert!(matches!(
            ownership.choose(client, server, &syn(2)),
            Choice::Read(_)
        ));
        ownership.share([server].into());
        let later = ownership.choose(client, server, &syn(2));
        assert_eq!(later, Choice::Later);
        ownership.accept((server, client), true);
        ownership.accept((server, at(40_001)), false);
        assert!(matches!(
            ownership.choose(client, server, &syn(2)),
            Choice::Read(_)
        ));
        for began in [3, 4] {
            ownership.look(began, std::iter::empty(), &HashSet::new());
        }
        for (client, unseen) in [(at(40_001), 0), (at(40_002), 1)] {
            let skipped = ownership.choose(client, server, &syn(2));
            assert_eq!((skipped, ownership.accepted_unseen), (Choice::Skip, unseen));
        }
    }

    #[test]
    fn local_addresses_are_read_from_the_kernel() {
        let trie = "Local:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 10.1.2.3\n        /32 host LOCAL\n     |-- 10.1.2.255\n        /32 link BROADCAST\n";
        let found: Vec<IpAddr> = v4_of(trie).collect();
        assert_eq!(found, [IpAddr::from([10, 1, 2, 3])]);
        let line = "fd000000000000000000000000000001 02 40 00 80     eth0";
        assert_eq!(v6_of(line), "fd00::1".parse().ok());
        assert_eq!(v6_of("nonsense"), None);
    }
}
