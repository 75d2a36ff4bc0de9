//! Which destination a connection belongs to, and the counts of each. Bounded memory. Must not know
//! pools.

use super::destination::{Carrier, Counts, Sign};
use super::open_connection::{OpenConnection, client_address};
use foldhash::HashMap;
use intact_ledger::{
    Caveat, Close, Connection, ConnectionBytes, Dialled, Exchange, Origin, Run, Scheme, Transport,
    Vantage,
};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Destinations with counts of their own.
const DESTINATIONS: usize = 1024;
/// Names that requests give to one destination.
const LABELS: usize = 16;
/// Destinations with histograms.
const DETAILED: usize = 64;

/// What connections are counted together by.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DestinationKey {
    /// Where they lead.
    pub origin: Option<Origin>,
    /// The address, where the origin is not known.
    pub address: Option<SocketAddr>,
    /// The client, where the ledger was recorded by a server.
    pub client: Option<IpAddr>,
    /// What that client calls itself.
    pub agent: Option<Arc<str>>,
    /// Stands for all destinations beyond the limit.
    pub is_rest: bool,
}

impl DestinationKey {
    /// Where a connection leads: the name that the program looked up, or the address that it
    /// dialled. Where that is not known, what its requests name.
    pub fn of(connection: &Connection, vantage: Vantage) -> DestinationKey {
        let origin = dialled(connection).filter(|_| vantage != Vantage::Server);
        DestinationKey {
            origin: origin.or(connection.origin.clone()),
            ..DestinationKey::by_requests(connection, vantage)
        }
    }

    /// What the requests of a connection name.
    pub fn by_requests(connection: &Connection, vantage: Vantage) -> DestinationKey {
        let server = vantage == Vantage::Server;
        let unix = connection.transport == Transport::Unix;
        let address = connection
            .peer
            .filter(|_| connection.origin.is_none() && !server && !unix);
        DestinationKey {
            origin: connection.origin.clone(),
            address,
            client: client_address(connection).filter(|_| server),
            agent: connection.agent.clone().filter(|_| server),
            ..DestinationKey::default()
        }
    }

    /// What a person calls it.
    pub fn name(&self) -> String {
        let there = match (&self.origin, self.address) {
            (Some(origin), _) => origin.to_string(),
            (None, Some(address)) => format!("{}://{address}", Scheme::Tcp.as_str()),
            (None, None) if self.is_rest => "(others)".to_owned(),
            (None, None) => "(no host recorded)".to_owned(),
        };
        let agent = self.agent.as_deref();
        let agent = agent.map_or(String::new(), |agent| format!(" ({agent})"));
        match self.client {
            Some(client) if self.origin.is_none() => format!("client {client}{agent}"),
            Some(client) => format!("client {client}{agent} of {there}"),
            None => there,
        }
    }

    /// The host that selectors find it by, with its port if that is unusual.
    pub fn host(&self) -> Option<String> {
        host_and_port(self.origin.as_ref()?)
    }

    /// [`DestinationKey::host`] under another name of the host.
    pub(super) fn host_named(&self, name: &Arc<str>) -> Option<String> {
        let origin = self.origin.as_ref()?;
        let other = Origin {
            host: name.clone(),
            ..origin.clone()
        };
        let key = DestinationKey {
            origin: Some(other),
            ..self.clone()
        };
        key.host()
    }
}

/// The name or the address that a program dialled, as an origin. Over TLS without a lookup it is
/// the name that the client asked for, because connections for different names cannot be shared.
fn dialled(connection: &Connection) -> Option<Origin> {
    let (peer, shown) = (connection.peer?, connection.origin.as_ref()?);
    let server_name = || connection.tls.as_ref()?.server_name.clone();
    let host = match connection.dialled.as_ref()? {
        Dialled::Name(name) => name.clone(),
        Dialled::Address => {
            server_name().unwrap_or_else(|| peer.ip().to_canonical().to_string().into())
        }
    };
    Some(Origin {
        scheme: shown.scheme,
        host,
        port: peer.port(),
    })
}

/// The destinations so far.
#[derive(Clone, Debug)]
pub struct Destinations {
    /// Their keys, by index.
    pub keys: Vec<DestinationKey>,
    /// Their counts, by the same index.
    pub counts: Vec<Counts>,
    /// Counts of everything.
    pub all: Counts,
    vantage: Vantage,
    time_step: Option<u64>,
    index: HashMap<DestinationKey, usize>,
    /// The index of what has no key, and of the rest.
    keyless: [Option<usize>; 2],
    /// The origin that an address was last known to serve.
    served: HashMap<SocketAddr, usize>,
    /// The destination of the connections to an address that have not shown an origin.
    unshown: HashMap<SocketAddr, usize>,
    /// Further names of the origin of a destination: `127.0.0.1` and `localhost` are one server.
    pub aliases: BTreeMap<usize, BTreeSet<Arc<str>>>,
    /// What requests to a destination named, where a program dialled its address.
    labels: BTreeMap<usize, BTreeSet<Origin>>,
    is_crowded: bool,
    /// Connections that carried bytes of an unknown protocol, and belong to a destination by their
    /// address.
    unread: u64,
}

impl Destinations {
    pub(super) fn new(run: &Run) -> Destinations {
        Destinations {
            keys: Vec::new(),
            counts: Vec::new(),
            all: Counts::detailed(),
            vantage: run.vantage,
            time_step: run.time_step_ns,
            index: HashMap::default(),
            keyless: [None; 2],
            served: HashMap::default(),
            unshown: HashMap::default(),
            aliases: BTreeMap::new(),
            labels: BTreeMap::new(),
            is_crowded: false,
            unread: 0,
        }
    }

    /// Whether the origin of a destination has this host, under any of its names.
    pub(crate) fn is_named(&self, destination: usize, host: &Arc<str>) -> bool {
        let origin = self.keys[destination].origin.as_ref();
        let aliases = self.aliases.get(&destination);
        let labels = self.labels.get(&destination).into_iter().flatten();
        let mut origins = origin.into_iter().chain(labels);
        origins.any(|origin| origin.host == *host)
            || aliases.is_some_and(|names| names.contains(host))
    }

    /// The index of a connection's destination, which is added if it is new.
    pub(super) fn of(&mut self, connection: &Connection) -> usize {
        let key = DestinationKey::of(connection, self.vantage);
        let by_address = self.find_by_address(connection);
        let known = by_address.or_else(|| self.index.get(&key).copied());
        let known = known.or_else(|| self.find_same_server(&key, connection));
        let destination = match known {
            Some(index) => index,
            None if self.keys.len() < DESTINATIONS => {
                let is_detailed = self.keys.len() < DETAILED;
                let counts = if is_detailed {
                    Counts::detailed()
                } else {
                    Counts::default()
                };
                self.add(key, counts)
            }
            None => {
                self.is_crowded = true;
                self.without_key(true)
            }
        };
        self.label(destination, connection);
        let server = self.vantage == Vantage::Server;
        if let (Some(origin), Some(peer), false) = (&connection.origin, connection.peer, server)
            && origin.scheme != Scheme::Tcp
            && (self.served.len() < DESTINATIONS || self.served.contains_key(&peer))
        {
            self.served.insert(peer, destination);
        }
        let has_key = self.keys[destination].address.is_some() || connection.origin.is_some();
        if let (Some(peer), false, false) = (connection.peer, server, shows_origin(connection)) {
            if !is_unshown(connection) {
                // another protocol has a destination of its own
                self.unshown.remove(&peer);
            } else if has_key && by_address.is_none() && !self.is_crowded {
                self.unshown.insert(peer, destination);
            }
        }
        destination
    }

    /// Notes what the requests of a connection name.
    fn label(&mut self, destination: usize, connection: &Connection) {
        let shown = connection
            .origin
            .as_ref()
            .filter(|_| shows_origin(connection));
        if let (Some(shown), true) = (shown, connection.dialled.is_some()) {
            let labels = self.labels.entry(destination).or_default();
            if labels.len() < LABELS {
                labels.insert(shown.clone());
            }
        }
    }

    /// The origin that a destination is called by: the one that all its requests name, if it fits
    /// the address that was dialled.
    fn shown(&self, destination: usize) -> Option<&Origin> {
        let key = self.keys[destination].origin.as_ref()?;
        let labels = self.labels.get(&destination);
        let mut labels = labels.into_iter().flatten();
        let (one, none) = (labels.next(), labels.next());
        let is_name = |label: &&Origin| {
            let fits = (label.scheme, label.port) == (key.scheme, key.port);
            fits && address_of(&label.host).is_none()
        };
        let is_dialled = address_of(&key.host).is_some();
        one.filter(|label| none.is_none() && is_dialled && is_name(label))
    }

    /// What a person calls a destination.
    pub fn name(&self, destination: usize) -> String {
        let shown = self.shown(destination);
        shown.map_or_else(|| self.keys[destination].name(), Origin::to_string)
    }

    /// The name of the destination with this key.
    pub(super) fn name_of(&self, key: &DestinationKey) -> String {
        let index = self.index.get(key);
        index.map_or_else(|| key.name(), |&index| self.name(index))
    }

    /// The hosts that selectors find a destination by: the one of its name, then the others.
    pub(super) fn hosts(&self, destination: usize) -> Vec<String> {
        let key = &self.keys[destination];
        let shown = self.shown(destination).and_then(host_and_port);
        let aliases = self.aliases.get(&destination).into_iter().flatten();
        let labels = self.labels.get(&destination).into_iter().flatten();
        let mut hosts: Vec<String> = Vec::new();
        let all = (shown.into_iter().chain(key.host()))
            .chain(aliases.filter_map(|name| key.host_named(name)))
            .chain(labels.filter_map(host_and_port));
        for host in all {
            if !hosts.contains(&host) {
                hosts.push(host);
            }
        }
        hosts
    }

    /// A known destination that a new key of a client's run leads to as well. It is the same server
    /// under another name of this machine, or the address of connections that ended before any
    /// had shown the origin.
    fn find_same_server(&mut self, key: &DestinationKey, connection: &Connection) -> Option<usize> {
        let (origin, peer) = (key.origin.as_ref()?, connection.peer?);
        if self.vantage == Vantage::Server || !shows_origin(connection) {
            return None;
        }
        if let Some(&served) = self.served.get(&peer)
            && let Some(other) = &self.keys[served].origin
            && (other.scheme, other.port) == (origin.scheme, origin.port)
            && peer.ip().is_loopback()
            && is_this_machine(&origin.host)
            && is_this_machine(&other.host)
        {
            let name = origin.host.clone();
            self.aliases.entry(served).or_default().insert(name);
            self.index.insert(key.clone(), served);
            return Some(served);
        }
        let unshown = *self.unshown.get(&peer)?;
        let is_same = |old: &Origin| {
            let names = [&old.host, &origin.host];
            let is_named =
                old.host == origin.host || names.iter().all(|host| is_this_machine(host));
            let is_target = (&old.host, old.port) == (&origin.host, origin.port);
            is_target
                || old.port == peer.port() && (is_named || *old.host == *peer.ip().to_string())
        };
        // the name that was looked up may be another one, and the address of a tunnel is that of
        // its proxy, so only its target shows it
        if !self.keys[unshown].origin.as_ref().is_none_or(is_same) {
            return None;
        }
        self.unshown.remove(&peer);
        let old = std::mem::replace(&mut self.keys[unshown], key.clone());
        self.index.remove(&old);
        self.index.insert(key.clone(), unshown);
        Some(unshown)
    }

    /// The destination of exchanges without a connection, or of all beyond the limit (`is_rest`).
    pub(super) fn without_key(&mut self, is_rest: bool) -> usize {
        if let Some(at) = self.keyless[usize::from(is_rest)] {
            return at;
        }
        let key = DestinationKey {
            is_rest,
            ..DestinationKey::default()
        };
        let known = self.index.get(&key).copied();
        let at = known.unwrap_or_else(|| self.add(key, Counts::default()));
        self.keyless[usize::from(is_rest)] = Some(at);
        at
    }

    fn add(&mut self, key: DestinationKey, counts: Counts) -> usize {
        let index = self.keys.len();
        self.counts.push(counts);
        self.keys.push(key.clone());
        self.index.insert(key, index);
        index
    }

    /// The destination of a connection that has shown no origin and no other protocol: the origin
    /// of the name that was looked up for it, else the one that others found at its address.
    fn find_by_address(&self, connection: &Connection) -> Option<usize> {
        if self.vantage == Vantage::Server || !is_unshown(connection) {
            return None;
        }
        let peer = connection.peer?;
        let by_address = self.served.get(&peer).copied();
        let dialled = dialled(connection);
        let Some(origin) = dialled.as_ref().or(connection.origin.as_ref()) else {
            return by_address;
        };
        let named = [Scheme::Https, Scheme::Http]
            .into_iter()
            .find_map(|scheme| {
                let named = Origin {
                    scheme,
                    ..origin.clone()
                };
                let key = DestinationKey {
                    origin: Some(named),
                    ..DestinationKey::default()
                };
                self.index.get(&key).copied()
            });
        // the address of a tunnel is that of its proxy
        named.or(by_address.filter(|_| origin.port == peer.port()))
    }

    /// A connection that ended without showing its origin belongs to the origin that others found
    /// at its address.
    pub(super) fn assign_by_address(&mut self, live: &mut OpenConnection, close: &Close) {
        if live.exchanges > 0 {
            return;
        }
        let Some(destination) = self.find_by_address(&live.connection) else {
            return;
        };
        let is_unread = close.exchanges.is_none() && close.bytes != ConnectionBytes::default();
        self.unread += u64::from(is_unread);
        if destination != live.destination {
            self.count(live.destination, &live.connection, Sign::Remove);
            live.destination = destination;
            self.count(destination, &live.connection, Sign::Add);
        }
    }

    pub(super) fn count(&mut self, destination: usize, connection: &Connection, sign: Sign) {
        self.counts[destination].connection(connection, self.vantage, sign);
        self.all.connection(connection, self.vantage, sign);
    }

    /// Counts an exchange; `timed` where its duration is known.
    pub(super) fn count_exchange(
        &mut self,
        destination: usize,
        exchange: &Exchange,
        mut carrier: Carrier<'_>,
        timed: bool,
    ) {
        let counts = &mut self.counts[destination];
        counts.overlap(exchange, &mut carrier, self.time_step);
        let gap = carrier.gap;
        for counts in [counts, &mut self.all] {
            counts.exchange(exchange, gap, timed);
            if let (Some(gap), None, true) = (gap, carrier.streams, timed) {
                counts.reuse_after(gap);
            }
        }
    }

    pub(super) fn count_close(&mut self, live: &OpenConnection, close: &Close) {
        self.counts[live.destination].close(live, close);
        self.all.close(live, close);
    }

    /// What the limits left out.
    pub(super) fn caveats(&self) -> Vec<Caveat> {
        let mut caveats = Vec::new();
        if self.is_crowded {
            caveats.push(Caveat::new(
                "many-destinations",
                format!("more than {DESTINATIONS} destinations: the later ones are counted together as (others)"),
            ));
        }
        if self.unread > 0 {
            caveats.push(Caveat::new(
                "assigned-by-address",
                format!(
                    "connections whose bytes could not be read as HTTP: {}. They count for the origin that others found at the same address",
                    self.unread
                ),
            ));
        }
        if self.counts.len() > DETAILED {
            caveats.push(Caveat::new(
                "coarse-destinations",
                format!("percentiles, phases and idle gaps cover the first {DETAILED} destinations and all together"),
            ));
        }
        caveats
    }
}

/// The host of an origin, with its port if that is unusual.
fn host_and_port(origin: &Origin) -> Option<String> {
    let name = origin.to_string();
    name.split_once("://").map(|(_, host)| host.to_owned())
}

/// Whether a connection has shown more of its origin than an address.
pub(super) fn shows_origin(connection: &Connection) -> bool {
    let origin = connection.origin.as_ref();
    origin.is_some_and(|origin| origin.scheme != Scheme::Tcp)
}

/// Whether a connection has shown neither an origin nor another protocol than HTTP.
fn is_unshown(connection: &Connection) -> bool {
    !shows_origin(connection) && connection.protocol.is_none()
}

/// Whether a host is a name or an address of this machine.
fn is_this_machine(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || address_of(host).is_some_and(|address| address.is_loopback())
}

/// The address that a host is, if it is no name.
fn address_of(host: &str) -> Option<IpAddr> {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    address.parse().ok()
}
