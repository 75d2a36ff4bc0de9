//! All connections of a capture: finds the connection of each packet, and drops connections that
//! have ended.

use super::Packet;
use super::dns_lookups::DnsLookups;
use super::fragments::Fragments;
use super::ip::{self, Datagram, Udp, protocol};
use super::ladder::Ladder;
use super::ladder::LadderSelection;
use super::limits::CaptureLimits;
use super::link::{self, Inside};
use super::opaque::{Opaque, OpaquePackets};
use super::opening::opening;
use super::quic::Quic;
use super::selection::{Admissions, Admitted, Choice, Chosen, HeldSegment, ReadAll, Selection};
use super::tcp_connection::{ConnectionState, TcpConnection};
use super::translation::{Pair, Translations, pair};
use super::tunnel;
use super::udp_tunnel;
use crate::event_writer::EventWriter;
use intact_wire::dns;
use intact_wire::tcp::Segment;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

/// Limit of connections that are followed at the same time. Above it, those that were silent
/// longest are dropped.
const MAX_LIVE: usize = 32_768;
/// Limit of bytes that wait for missing packets, over all connections.
const MAX_WAITING: usize = 64 << 20;
/// How long an ended connection is kept while packets of it are missing, in nanoseconds.
const GRACE: u64 = 1_000_000_000;
/// How long an ended connection is kept at most while secrets are searched for it, in nanoseconds.
const SEARCHED: u64 = 5_000_000_000;
/// How long the ports of an ended connection are remembered, in nanoseconds.
const MEMORY: u64 = 60_000_000_000;
/// Limit of connections whose packets are kept at the same time.
const MAX_CLIMBING: usize = 64;
/// Limit of nested tunnels.
const MAX_DEPTH: usize = 4;

/// How the packets of one file were classified.
#[derive(Clone, Debug, Default)]
pub struct PacketCounts {
    /// Packets of TCP or QUIC.
    pub transport: u64,
    /// Packets that are not used: not IP, another protocol, damaged.
    pub skipped: u64,
    /// Packets that cannot be decoded.
    pub opaque: OpaquePackets,
    /// Datagrams of UDP that belong to no known service or tunnel.
    pub other_ports: OpaquePackets,
}

/// How one packet was classified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// TCP, or part of a QUIC connection.
    Transport,
    /// Another packet that is used: a lookup, a fragment.
    Useful,
    /// A packet that is not used.
    Useless,
    /// A packet that is shorter than its headers.
    Short,
    Opaque(Opaque),
    /// UDP on a port that is not known.
    OtherPort(u16),
}

/// State of a pair of addresses.
enum Slot {
    Live(Box<TcpConnection>),
    /// The connection ended at `since`. Later packets of it are ignored. `start`: the client's
    /// first sequence number after its SYN.
    Over {
        since: u64,
        start: Option<u32>,
    },
}

/// Whether a packet belongs to the connection that ended at `since`. Captures on several interfaces
/// hold copies, and a program that writes one interface after the other writes the copies of a
/// whole connection after its end.
fn is_of_ended(since: u64, start: Option<u32>, segment: &Segment<'_>) -> bool {
    let syn_start = match segment.ack {
        None => segment.seq.wrapping_add(1),
        Some(ack) => ack,
    };
    let is_copy = !segment.syn || start == Some(syn_start);
    is_copy && segment.at.saturating_sub(since) < MEMORY
}

/// The connections of a capture; those that the selection chooses.
#[derive(Default)]
pub struct ConnectionTable<S = ReadAll> {
    /// Chooses the connections.
    pub selection: S,
    admissions: Admissions,
    wanted: Option<LadderSelection>,
    /// The packets of the selected connection.
    pub ladder: Option<Box<Ladder>>,
    /// Number of connections whose packets are kept until it is known whether they are selected.
    climbing: usize,
    slots: HashMap<Pair, Slot>,
    live: usize,
    /// Ended connections that are kept for a while, ordered by time.
    leaving: VecDeque<(u64, Pair)>,
    fragments: Fragments,
    translations: Translations,
    names: DnsLookups,
    quic: Quic,
    waiting: usize,
    now: u64,
    limits: CaptureLimits,
    has_transport: bool,
    /// A gap of the recording has passed.
    is_resumed: bool,
    /// The captures hold a packet from a server.
    hears_servers: bool,
    /// Counts of the file that is being read.
    counts: PacketCounts,
}

impl ConnectionTable {
    /// A table without connections.
    pub fn new(wanted: Option<LadderSelection>) -> ConnectionTable {
        ConnectionTable {
            quic: Quic::new(wanted),
            wanted,
            ..ConnectionTable::default()
        }
    }
}

impl<S: Selection> ConnectionTable<S> {
    /// A table without connections, which reads those of this selection.
    pub fn of(selection: S) -> ConnectionTable<S>
    where
        S: Default,
    {
        ConnectionTable {
            selection,
            ..ConnectionTable::default()
        }
    }

    /// Chooses again for the connections that wait, by what is known by now.
    pub fn decide(&mut self, writer: &mut EventWriter<'_>) {
        for (chosen, held) in self.admissions.decide(&mut self.selection) {
            let mut chosen = Some(chosen);
            for segment in &held {
                let HeldSegment { source, target, .. } = *segment;
                let chosen = chosen.take();
                self.take_chosen(source, target, &segment.segment(), chosen, writer);
            }
        }
    }

    /// Lets time pass without a packet: looks for late secrets, records silent connections, and
    /// forgets old ones. Call it about once a second. `now`: nanoseconds since 1970.
    pub fn tick(&mut self, now: u64, writer: &mut EventWriter<'_>) {
        self.advance(now, writer);
        let at = writer.nanos(now);
        for slot in self.slots.values_mut() {
            if let Slot::Live(live) = slot {
                live.tick(at, writer);
            }
        }
        self.forget_old();
    }

    /// Lets time pass without a packet. `now`: nanoseconds since 1970.
    pub fn advance(&mut self, now: u64, writer: &mut EventWriter<'_>) {
        self.now = self.now.max(now);
        self.release(writer);
    }

    /// Whether a packet of this connection was read within the last minute.
    pub fn has_read(&self, one: SocketAddr, other: SocketAddr) -> bool {
        self.slots.contains_key(&pair(one, other))
    }

    /// Number of connections that are followed now.
    pub fn live(&self) -> usize {
        self.live
    }

    /// Number of connections that were not read, because too much of them came before their owner
    /// was known.
    pub fn undecided(&self) -> u64 {
        self.admissions.undecided
    }

    /// The process of a connection has become known: keys may be searched in its memory. Returns
    /// whether the connection is followed by now.
    pub fn note_process(&mut self, one: SocketAddr, other: SocketAddr, process: u32) -> bool {
        let live = self.slots.get_mut(&pair(one, other));
        let Some(Slot::Live(live)) = live else {
            return false;
        };
        live.note_process(process);
        true
    }

    /// Whether any packet of TCP or QUIC was read.
    pub fn has_transport(&self) -> bool {
        self.has_transport
    }

    /// The counts of packets since the last call.
    pub fn take_counts(&mut self) -> PacketCounts {
        let counts = std::mem::take(&mut self.counts);
        self.has_transport |= counts.transport > 0;
        counts
    }

    /// Takes one packet.
    pub fn take(&mut self, packet: &Packet<'_>, writer: &mut EventWriter<'_>) {
        self.now = self.now.max(packet.at);
        self.release(writer);
        if packet.is_cut {
            self.limits.snap_len = self.limits.snap_len.max(packet.bytes.len());
        }
        let inside = link::open(packet.link, packet.bytes);
        let counts = match self.look_into(inside, packet.at, 0, writer) {
            Found::Short if packet.is_cut => return self.counts.opaque.add(Opaque::Cut),
            Found::Opaque(what) => return self.counts.opaque.add(what),
            Found::OtherPort(port) => return self.counts.other_ports.add(Opaque::UdpPort(port)),
            Found::Transport => &mut self.counts.transport,
            Found::Useless | Found::Short => &mut self.counts.skipped,
            Found::Useful => return,
        };
        *counts += 1;
    }

    /// Reads the contents of a frame or a tunnel, at a nesting depth of `depth`.
    fn look_into(
        &mut self,
        inside: Inside<'_>,
        at: u64,
        depth: usize,
        writer: &mut EventWriter<'_>,
    ) -> Found {
        match inside {
            Inside::Ip(_) if depth > MAX_DEPTH => {
                Found::Opaque(Opaque::Named("a tunnel within four others"))
            }
            Inside::Ip(bytes) => self.take_ip(bytes, at, depth, writer),
            Inside::Other => Found::Useless,
            Inside::Short => Found::Short,
            Inside::Opaque(what) => Found::Opaque(what),
        }
    }

    fn take_ip(
        &mut self,
        bytes: &[u8],
        at: u64,
        depth: usize,
        writer: &mut EventWriter<'_>,
    ) -> Found {
        let Some(datagram) = ip::parse(bytes) else {
            return Found::Short;
        };
        let Some(part) = datagram.fragment else {
            return self.take_payload(&datagram, at, depth, writer);
        };
        if datagram.payload.len() < datagram.len {
            // it cannot be completed
            return Found::Short;
        }
        match self.fragments.take(&datagram, part) {
            Some(whole) => {
                let joined = Datagram {
                    payload: &whole,
                    len: whole.len(),
                    fragment: None,
                    ..datagram
                };
                self.take_payload(&joined, at, depth, writer)
            }
            None => Found::Useful,
        }
    }

    fn take_payload(
        &mut self,
        datagram: &Datagram<'_>,
        at: u64,
        depth: usize,
        writer: &mut EventWriter<'_>,
    ) -> Found {
        let inside = match datagram.protocol {
            protocol::TCP => {
                let Some(tcp) = ip::parse_tcp(datagram.payload, datagram.len, at) else {
                    return Found::Short;
                };
                let source = SocketAddr::new(datagram.source, tcp.source);
                let target = SocketAddr::new(datagram.target, tcp.target);
                self.take_segment(source, target, &tcp.segment, writer);
                return Found::Transport;
            }
            protocol::UDP => {
                let Some(udp) = ip::parse_udp(datagram.payload) else {
                    return Found::Short;
                };
                match udp_tunnel::in_udp(&udp) {
                    Some(inside) => inside,
                    None => return self.take_udp(datagram, &udp, at, writer),
                }
            }
            protocol => tunnel::in_ip(protocol, datagram.payload),
        };
        self.look_into(inside, at, depth + 1, writer)
    }

    fn take_udp(
        &mut self,
        datagram: &Datagram<'_>,
        udp: &Udp<'_>,
        at: u64,
        writer: &mut EventWriter<'_>,
    ) -> Found {
        let source = SocketAddr::new(datagram.source, udp.source);
        let target = SocketAddr::new(datagram.target, udp.target);
        let len = datagram.len.saturating_sub(8);
        if udp.source == dns::PORT || udp.target == dns::PORT {
            self.names.take(source, target, udp.payload, at, writer);
            return Found::Useful;
        }
        match self.quic.take(source, target, udp.payload, len, at, writer) {
            true => Found::Transport,
            false if udp.payload.is_empty() || udp_tunnel::is_service(udp) => Found::Useless,
            false => Found::OtherPort(udp_tunnel::port_of(udp)),
        }
    }

    fn take_segment(
        &mut self,
        source: SocketAddr,
        target: SocketAddr,
        segment: &Segment<'_>,
        writer: &mut EventWriter<'_>,
    ) {
        let mut chosen = None;
        if !S::READS_ALL {
            let selection = &mut self.selection;
            match self.admissions.admit(selection, source, target, segment) {
                Admitted::Read => {}
                Admitted::Begin(begun) => chosen = Some(begun),
                Admitted::No => return,
            }
        }
        self.take_chosen(source, target, segment, chosen, writer);
    }

    /// Takes a segment of a connection that is read. `chosen`: what was chosen with this segment.
    fn take_chosen(
        &mut self,
        source: SocketAddr,
        target: SocketAddr,
        segment: &Segment<'_>,
        chosen: Option<Chosen>,
        writer: &mut EventWriter<'_>,
    ) {
        let (source, target) = self.translations.resolve(source, target, segment);
        let pair = pair(source, target);
        let reopened = match self.slots.get(&pair) {
            Some(Slot::Live(live)) => live.is_reopened_by(live.side_of(source), segment),
            Some(Slot::Over { since, start }) => {
                if is_of_ended(*since, *start, segment) {
                    return;
                }
                true
            }
            None => false,
        };
        if reopened {
            self.let_go(pair, true, writer);
            self.slots.remove(&pair);
        }
        if self.live >= MAX_LIVE || self.waiting > MAX_WAITING {
            self.make_room(writer);
        }
        let live = match self.slots.entry(pair) {
            Entry::Occupied(slot) => slot.into_mut(),
            Entry::Vacant(slot) => {
                let Some(opening) = opening(source, target, segment) else {
                    return;
                };
                // the first segment may have shown nothing, or the connection follows another
                let chosen = chosen.map(Choice::Read);
                let chosen =
                    chosen.unwrap_or_else(|| self.selection.choose(source, target, segment));
                let Choice::Read(chosen) = chosen else { return };
                self.live += 1;
                self.limits.joined += u64::from(opening.late && !self.is_resumed);
                let (client, server) = match chosen.client {
                    Some(client) if client == source => (source, target),
                    Some(_) => (target, source),
                    None => (opening.client, opening.server),
                };
                let ends = (client, server);
                let mut live = TcpConnection::new(ends, segment.at, opening.late, chosen, writer);
                let climbs = match self.wanted {
                    Some(LadderSelection::Number(number)) => live.id().0 == number,
                    Some(LadderSelection::First) => {
                        self.ladder.is_none() && self.climbing < MAX_CLIMBING
                    }
                    None => false,
                };
                if climbs {
                    self.climbing += 1;
                    live.climb(client, server, writer.run.base);
                }
                slot.insert(Slot::Live(Box::new(live)))
            }
        };
        let Slot::Live(live) = live else { return };
        let was_over = live.is_over();
        let waited = live.waiting();
        live.take(live.side_of(source), segment, writer);
        self.hears_servers |= live.hears_server();
        self.waiting = self.waiting + live.waiting() - waited;
        if live.is_over() && live.waiting() == 0 && !live.awaits_secrets(writer) {
            // now, so that a reader of the events sees the end before the next opening
            self.let_go(pair, true, writer);
        } else if live.is_over() && !was_over {
            self.leaving.push_back((self.now + GRACE, pair));
        }
    }

    /// Drops ended connections whose grace time has passed.
    fn release(&mut self, writer: &mut EventWriter<'_>) {
        while let Some(&(until, pair)) = self.leaving.front()
            && until <= self.now
        {
            self.leaving.pop_front();
            // another connection may use the slot by now
            let Some(Slot::Live(live)) = self.slots.get(&pair) else {
                continue;
            };
            let is_searched = self.now.saturating_sub(live.seen_at()) < SEARCHED;
            if live.is_over() && is_searched && live.awaits_secrets(writer) {
                self.leaving.push_back((self.now + GRACE, pair));
            } else if live.is_over() {
                self.let_go(pair, true, writer);
            }
        }
    }

    /// Ends one connection and remembers its ports.
    fn let_go(&mut self, pair: Pair, complete: bool, writer: &mut EventWriter<'_>) {
        let Some(slot) = self.slots.get_mut(&pair) else {
            return;
        };
        let now = self.now;
        let Slot::Live(live) = &*slot else {
            return;
        };
        let start = live.client_start();
        let over = Slot::Over { since: now, start };
        let Slot::Live(live) = std::mem::replace(slot, over) else {
            return;
        };
        self.live -= 1;
        self.waiting -= live.waiting();
        match live.finish(complete, self.hears_servers, now, writer) {
            ConnectionState::Connection(over) => {
                self.limits.count(&over);
                if let Some(ladder) = over.ladder {
                    self.climbing -= 1;
                    let wanted = over.carried > 0 || self.wanted != Some(LadderSelection::First);
                    let number = ladder.connection;
                    let known = self.ladder.as_ref().map(|known| known.connection);
                    if wanted && known.is_none_or(|known| number < known) {
                        self.ladder = Some(ladder);
                    }
                }
            }
            ConnectionState::Stray => {}
            ConnectionState::TooLate => self.limits.too_late += 1,
            ConnectionState::Unheard => self.limits.unheard += 1,
        }
    }

    /// The connections that are followed, and when their last packets came.
    fn live_connections(&self) -> Vec<(u64, Pair)> {
        let slots = self.slots.iter();
        let live = slots.filter_map(|(pair, slot)| match slot {
            Slot::Live(live) => Some((live.seen_at(), *pair)),
            Slot::Over { .. } => None,
        });
        live.collect()
    }

    /// Drops the quarter of connections that were silent longest, and the remembered ports of old
    /// ones.
    fn make_room(&mut self, writer: &mut EventWriter<'_>) {
        self.forget_old();
        let mut silent = self.live_connections();
        let quarter = (silent.len() / 4)
            .max(1)
            .min(silent.len().saturating_sub(1));
        silent.select_nth_unstable(quarter);
        for (_, pair) in silent.into_iter().take(quarter.max(1)) {
            self.limits.let_go += 1;
            self.let_go(pair, false, writer);
            self.slots.remove(&pair);
        }
    }

    /// Forgets the ports of connections that ended long ago.
    fn forget_old(&mut self) {
        let now = self.now;
        self.slots.retain(|_, slot| match slot {
            Slot::Live(_) => true,
            Slot::Over { since, .. } => now.saturating_sub(*since) < MEMORY,
        });
    }

    /// Ends all connections: a gap of the recording follows. Nothing is known of what comes after
    /// it.
    pub fn pause(&mut self, selection: S, writer: &mut EventWriter<'_>) {
        self.end_all(writer);
        self.admissions.forget();
        self.is_resumed = true;
        self.fragments = Fragments::default();
        self.selection = selection;
    }

    /// Ends all connections; the captures are complete.
    pub fn finish(&mut self, writer: &mut EventWriter<'_>) {
        self.end_all(writer);
        self.names.finish(self.now, writer);
        self.quic.finish(self.now, writer);
        // a connection of TCP, whose content has names, is the better first one
        self.ladder = self.ladder.take().or(self.quic.ladder.take());
        self.limits.lookups_without_response = self.names.without_response;
        self.limits.lookups_cut = self.names.cut;
        self.limits.translated = self.translations.found;
        self.limits.is_live = !S::READS_ALL;
        self.limits.has_keys = !writer.run.keys.is_empty();
        self.limits.lower_bounds = writer.run.lower_bounds;
        self.limits.record(&self.quic, writer);
    }

    fn end_all(&mut self, writer: &mut EventWriter<'_>) {
        let mut rest = self.live_connections();
        // roughly in the order of their ends, as consumers expect
        rest.sort_unstable();
        for (_, pair) in rest {
            self.let_go(pair, false, writer);
        }
        self.slots.clear();
        self.leaving.clear();
    }
}
