//! What is counted of one destination, or of all: plain counters for each, histograms for the first
//! ones. Must not conclude.

use super::open_connection::{HAND_BACK, OpenConnection, UPGRADE};
use crate::overlap::Overlap;
use intact_document::figures::Undecided;
use intact_document::first_calls::CallEvidence;
use intact_ledger::{
    Cell, Certainty, Close, ClosePoint, Connection, EndedBy, Exchange, Failure, Handshake,
    Histogram, Nanos, Outcome, Protocol, Reuse, Side, Span, Tls, TlsVersion, Vantage,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Processes whose first TLS handshake is remembered; the others count as one.
const PROCESSES: usize = 1024;
/// Commands, processes and reasons that are kept by name.
const NAMES: usize = 16;
/// First requests of new connections that are kept.
const FIRST_CALLS: usize = 100;

/// A count and a sum of nanoseconds, from which records can be taken back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// How many.
    pub count: u64,
    /// Their sum in nanoseconds.
    pub nanos: u64,
}

impl Sum {
    fn change(&mut self, nanos: u64, sign: Sign) {
        match sign {
            Sign::Add => {
                self.count += 1;
                self.nanos = self.nanos.saturating_add(nanos);
            }
            Sign::Remove => {
                self.count = self.count.saturating_sub(1);
                self.nanos = self.nanos.saturating_sub(nanos);
            }
        }
    }

    /// The mean in nanoseconds.
    pub fn mean(self) -> Option<f64> {
        (self.count > 0).then(|| self.nanos as f64 / self.count as f64)
    }
}

/// Whether a record is counted or taken back, because more is known of it now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    /// Counted.
    Add,
    /// Taken back.
    Remove,
}

impl Sign {
    fn on(self, count: &mut u64) {
        match self {
            Sign::Add => *count += 1,
            Sign::Remove => *count = count.saturating_sub(1),
        }
    }
}

/// What carried an exchange.
#[derive(Debug, Default)]
pub(super) struct Carrier<'a> {
    /// Its connection, where that is open.
    pub(super) live: Option<&'a mut OpenConnection>,
    /// Streams that the connection takes at the same time, where it multiplexes.
    pub(super) streams: Option<u32>,
    /// How long it had been idle, in nanoseconds.
    pub(super) gap: Option<u64>,
}

/// Histograms.
#[derive(Clone, Debug, Default)]
pub struct Detail {
    /// Exchanges by kind.
    pub cell: Cell,
    /// Idle times before a connection was used again.
    pub gaps: Histogram,
    /// Exchanges on connections that ended (plain numbers).
    pub per_connection: Histogram,
    /// The first exchanges of the first new connections.
    pub(crate) first_calls: Vec<CallEvidence>,
}

impl Detail {
    /// Keeps an exchange that was the first on a new connection.
    fn first_call(&mut self, exchange: &Exchange) {
        let is_fresh = exchange.reuse == Some(Reuse::Fresh);
        let is_first = exchange.ordinal.map_or(is_fresh, |ordinal| ordinal == 1);
        if is_first && self.first_calls.len() < FIRST_CALLS {
            self.first_calls.push(CallEvidence::of(exchange));
        }
    }
}

/// The counts of one destination.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Exchanges.
    pub requests: u64,
    /// Complete ones.
    pub ok: u64,
    /// Those that failed.
    pub failed: BTreeMap<Failure, u64>,
    /// Those of which the recording does not show the outcome.
    pub undecided: Undecided,
    /// Of the others, responses that the client ended and may have had enough of.
    pub left: u64,
    /// Complete ones by status.
    pub status: BTreeMap<u16, u64>,
    /// Exchanges that were the first on their connection, or waited for its setup: fresh and
    /// preconnected ones.
    pub first: u64,
    /// Exchanges that reused a connection.
    pub reused: u64,
    /// Exchanges that carried a call of gRPC.
    pub grpc_calls: u64,
    /// Of these, those that were the first on their connection.
    pub grpc_first: u64,
    /// Answered exchanges whose connection is unknown.
    pub without_connection: u64,
    /// Exchanges that were inferred: neither their request nor their response was read.
    pub guessed: u64,
    /// Sum of their latencies, in nanoseconds.
    pub outbound: u64,
    /// Exchanges that it is the sum of: those whose duration is known.
    pub timed: u64,
    /// Exchanges without a complete response, and the time that they took.
    pub lost: Sum,
    /// Setup that exchanges waited for, in nanoseconds.
    pub setup_waited: u64,
    /// Reuses of connections that carry one exchange at a time, where the idle time before is
    /// known.
    pub single_reuses: u64,
    /// Of these, those that followed the last response within [`HAND_BACK`]: the exchange may have
    /// waited for the connection.
    pub back_to_back: u64,
    /// Connections: transport established.
    pub opened: u64,
    /// Connections that were open before the recording began.
    pub open_before: u64,
    /// Of the opened ones, those that a server recorded without their client.
    pub(crate) without_client: u64,
    /// Of the opened ones, those whose TLS handshake failed.
    pub unusable: u64,
    /// Connections of each execution environment of a function: one cannot use another's.
    pub environments: BTreeMap<u64, u64>,
    /// Dials that failed.
    pub dials_failed: BTreeMap<Failure, u64>,
    /// Ends.
    pub ended_by: BTreeMap<EndedBy, u64>,
    /// Connections that carried nothing.
    pub unused: u64,
    /// Connections inside which nothing could be seen.
    pub opaque: u64,
    /// Setup steps: lookup, transport, TLS.
    pub setup: [Sum; 3],
    /// Whole setups.
    pub setup_total: Sum,
    /// Protocols of the connections.
    pub protocols: BTreeMap<Protocol, u64>,
    /// TLS handshakes.
    pub tls: BTreeMap<(Option<TlsVersion>, Option<Handshake>), u64>,
    /// Full TLS handshakes that began after an earlier one of the same process had ended: only
    /// they could resume its session.
    pub full_after_another: u64,
    /// When the first TLS handshake of each process ended.
    pub(crate) first_handshakes: BTreeMap<Option<u32>, Nanos>,
    /// Connections whose client offered to resume a session.
    pub resumption_offered: u64,
    /// Connections on which the server sent session tickets.
    pub ticketed: u64,
    /// TLS connections by whether the client offered HTTP/2 and whether the server chose it; those
    /// whose offer was not seen are not here.
    pub h2: BTreeMap<(bool, bool), u64>,
    /// Commands of the processes.
    pub commands: BTreeMap<Arc<str>, u64>,
    /// What their clients call themselves.
    pub agents: BTreeMap<Arc<str>, u64>,
    /// What their servers call themselves.
    pub servers: BTreeMap<Arc<str>, u64>,
    /// The processes, the first sixteen.
    pub pids: BTreeSet<u32>,
    /// What was inferred.
    pub inferred: BTreeSet<Arc<str>>,
    /// The shortest idle time after which the server closed, in nanoseconds.
    pub server_idle: Option<u64>,
    /// The longest idle time after which a connection still gave a complete response, in
    /// nanoseconds.
    pub longest_reuse: Option<u64>,
    /// The shortest `Keep-Alive: timeout` that was announced, in seconds.
    pub announced_timeout_s: Option<u32>,
    /// First and last moment at which something happened.
    pub span: Option<Span>,
    /// Most exchanges at once on connections that carry one at a time.
    pub(crate) single: Overlap,
    /// Most exchanges at once on connections that carry several.
    pub(crate) streams: Overlap,
    /// Streams that a connection takes at once, by the smallest SETTINGS.
    pub(crate) streams_each: Option<u32>,
    /// Exchanges that seem to overlap need not have: their times have a coarse step.
    pub(crate) is_coarse: bool,
    /// Most connections at once of those inside which nothing can be seen.
    pub(crate) lifetimes: Overlap,
    /// Histograms, where there was room for them.
    pub detail: Option<Box<Detail>>,
}

impl Counts {
    pub(super) fn detailed() -> Counts {
        Counts {
            detail: Some(Box::default()),
            ..Counts::default()
        }
    }

    /// Counts a connection, or takes its earlier record back.
    pub(super) fn connection(&mut self, connection: &Connection, vantage: Vantage, sign: Sign) {
        self.seen(connection.at, connection.at);
        // it was counted before the gap
        if connection.is_rest {
            return;
        }
        if connection.is_opened() {
            sign.on(&mut self.opened);
            if vantage == Vantage::Server && connection.peer.is_none() {
                sign.on(&mut self.without_client);
            }
            if let Some(environment) = connection.environment {
                sign.on(self.environments.entry(environment).or_default());
            }
        }
        if connection.open_before {
            sign.on(&mut self.open_before);
        }
        if let Some(failed) = &connection.failed {
            sign.on(self.dials_failed.entry(failed.kind).or_default());
            if connection.is_opened() {
                sign.on(&mut self.unusable);
            }
        }
        if let Some(protocol) = connection.protocol {
            sign.on(self.protocols.entry(protocol).or_default());
        }
        // how a connection from before was set up is no part of what is counted
        if !connection.open_before {
            if let (Some(tls), None) = (&connection.tls, &connection.failed) {
                self.handshake(tls, sign);
                self.could_resume(connection, tls, sign);
            }
            self.setup(connection, sign);
        }
        if let Some(owner) = &connection.owner {
            count_name(&mut self.commands, &owner.command, sign);
            if self.pids.len() < NAMES {
                self.pids.insert(owner.pid);
            }
        }
        if let Some(agent) = &connection.agent {
            count_name(&mut self.agents, agent, sign);
        }
        if let Some(server) = &connection.server {
            count_name(&mut self.servers, server, sign);
        }
        self.terms(connection.terms.timeout_s, connection.terms.max_streams);
        self.infer(&connection.certainty);
        if sign == Sign::Add {
            return;
        }
        self.protocols.retain(|_, count| *count > 0);
        self.tls.retain(|_, count| *count > 0);
        self.h2.retain(|_, count| *count > 0);
        self.dials_failed.retain(|_, count| *count > 0);
        self.commands.retain(|_, count| *count > 0);
        self.agents.retain(|_, count| *count > 0);
        self.servers.retain(|_, count| *count > 0);
    }

    fn handshake(&mut self, tls: &Tls, sign: Sign) {
        sign.on(self.tls.entry((tls.version, tls.handshake)).or_default());
        if tls.resumption_offered == Some(true) {
            sign.on(&mut self.resumption_offered);
        }
        if tls.tickets.is_some_and(|tickets| tickets > 0) {
            sign.on(&mut self.ticketed);
        }
        if let Some(offered) = &tls.alpn_offered {
            let offers = offered.iter().any(|one| &**one == "h2");
            let chosen = tls.alpn_chosen.as_deref() == Some("h2");
            sign.on(self.h2.entry((offers, chosen)).or_default());
        }
    }

    fn could_resume(&mut self, connection: &Connection, tls: &Tls, sign: Sign) {
        let pid = connection.owner.as_ref().map(|owner| owner.pid);
        let has_room = self.first_handshakes.len() < PROCESSES;
        let pid = pid.filter(|pid| has_room || self.first_handshakes.contains_key(&Some(*pid)));
        let (begun, ended) = connection
            .setup
            .ssl
            .map_or((connection.at, connection.at), |ssl| (ssl.start, ssl.end));
        let first = self.first_handshakes.get(&pid);
        if tls.handshake == Some(Handshake::Full) && first.is_some_and(|first| *first <= begun) {
            sign.on(&mut self.full_after_another);
        }
        let first = self.first_handshakes.entry(pid).or_insert(ended);
        *first = ended.min(*first);
    }

    fn setup(&mut self, connection: &Connection, sign: Sign) {
        let setup = &connection.setup;
        let steps = [setup.dns, setup.connect, setup.ssl];
        for (sum, step) in self.setup.iter_mut().zip(steps) {
            if let Some(span) = step {
                sum.change(span.nanos(), sign);
            }
        }
        if let (Some(nanos), true) = (setup.nanos(), connection.is_opened()) {
            self.setup_total.change(nanos, sign);
        }
    }

    /// Counts an exchange; `timed` where its duration is known.
    pub(super) fn exchange(&mut self, exchange: &Exchange, gap: Option<u64>, timed: bool) {
        self.seen(exchange.at, exchange.end);
        self.requests += 1;
        if exchange.grpc.is_some() {
            self.grpc_calls += 1;
            self.grpc_first += u64::from(exchange.ordinal == Some(1));
        }
        match exchange.outcome {
            Outcome::Ok => self.ok += 1,
            Outcome::Failed(kind) => *self.failed.entry(kind).or_default() += 1,
            undecided => self.undecided.add_one(undecided, exchange.status),
        }
        let is_left = exchange.is_left_stream() || exchange.is_unread() || exchange.is_dropped();
        self.left += u64::from(is_left);
        if let (Some(status), Outcome::Ok) = (exchange.status, exchange.outcome) {
            *self.status.entry(status).or_default() += 1;
        }
        if exchange.connection.is_none() && exchange.outcome.may_be_ok() {
            self.without_connection += 1;
        }
        let was_read = exchange.method.is_some() || exchange.status.is_some();
        if !exchange.certainty.is_exact() && exchange.outcome.is_ok() && !was_read {
            self.guessed += 1;
        }
        match exchange.reuse.map(Reuse::is_reused) {
            Some(true) => self.reused += 1,
            Some(false) => self.first += 1,
            None => {}
        }
        if timed {
            self.timed += 1;
            self.outbound = self.outbound.saturating_add(exchange.latency());
            self.setup_waited = self
                .setup_waited
                .saturating_add(exchange.spans.setup_nanos());
            if exchange.outcome.failure().is_some() {
                self.lost.change(exchange.latency(), Sign::Add);
            }
        }
        self.terms(exchange.terms.timeout_s, None);
        self.infer(&exchange.certainty);
        if exchange.outcome.is_ok() {
            self.longest_reuse = self.longest_reuse.max(gap);
        }
        if let Some(detail) = &mut self.detail {
            if timed {
                detail.cell.exchange(exchange);
                detail.first_call(exchange);
            }
            if let Some(gap) = gap {
                detail.gaps.record(gap);
            }
        }
    }

    /// Counts a reuse of a connection that carries one exchange at a time, after an idle time of
    /// `gap` nanoseconds.
    pub(super) fn reuse_after(&mut self, gap: u64) {
        self.single_reuses += 1;
        self.back_to_back += u64::from(gap <= HAND_BACK);
    }

    /// Enters an exchange into what runs at once, where it ended at any time in a step of the
    /// clock; only asked of single destinations, so that all together need not.
    pub(super) fn overlap(
        &mut self,
        exchange: &Exchange,
        carrier: &mut Carrier<'_>,
        time_step: Option<u64>,
    ) {
        self.is_coarse |= time_step.is_some();
        let span = occupied(exchange, time_step.unwrap_or(0));
        match (carrier.streams, &mut carrier.live) {
            (Some(each), _) => {
                self.streams.add(span);
                self.streams_each = Some(self.streams_each.map_or(each, |least| least.min(each)));
            }
            (None, Some(live)) => live
                .occupy(span)
                .into_iter()
                .for_each(|one| self.single.add(one)),
            (None, None) => self.single.add(span),
        }
    }

    /// Counts the end of a connection.
    pub(super) fn close(&mut self, live: &OpenConnection, close: &Close) {
        self.seen(close.at, close.at);
        if close.moment != Some(ClosePoint::Gap) {
            *self.ended_by.entry(close.ended_by()).or_default() += 1;
        }
        let carried = close
            .exchanges
            .or((live.exchanges > 0).then_some(live.exchanges));
        match carried {
            None if close.moment == Some(ClosePoint::Unused) => self.unused += 1,
            None => {
                self.opaque += 1;
                self.lifetimes.add(Span::new(live.connection.at, close.at));
            }
            Some(0) => self.unused += 1,
            Some(_) => {}
        }
        if let (Some(carried), Some(detail)) = (carried, &mut self.detail) {
            detail.per_connection.record(carried);
        }
        let idle = live.last.as_ref().map(|last| close.at.since(last.end));
        let is_idle = close.moment == Some(ClosePoint::Idle) && close.by == Some(Side::Server);
        if let (Some(idle), true) = (idle, is_idle) {
            self.server_idle = Some(self.server_idle.map_or(idle, |least| least.min(idle)));
        }
    }

    /// The time that costs are a share of, in nanoseconds: that of all exchanges, and the setup
    /// that no exchange waited for. Absent where the duration of no exchange is known.
    pub(crate) fn time(&self) -> Option<u64> {
        let ahead = self.setup_total.nanos.saturating_sub(self.setup_waited);
        (self.timed > 0).then(|| self.outbound.saturating_add(ahead))
    }

    /// Whether requests overlapped, or may have.
    pub(crate) fn has_overlaps(&self) -> bool {
        self.is_coarse || self.shows_overlaps()
    }

    /// Whether the times show that requests overlapped.
    pub(crate) fn shows_overlaps(&self) -> bool {
        self.single.peak() + self.streams.peak() > 1
    }

    /// The connections that the peak overlap needs next to those that were open before the
    /// recording. `busy` is the most connections that were busy at the same time, and `open` are
    /// those inside which nothing was seen so far.
    pub(super) fn needed<'a>(
        &self,
        busy: u64,
        open: impl Iterator<Item = &'a OpenConnection>,
        end: Nanos,
    ) -> u64 {
        let streams_each = u64::from(self.streams_each.unwrap_or(1));
        let mut lifetimes = None;
        for live in open.filter(|live| live.exchanges == 0) {
            lifetimes
                .get_or_insert_with(|| self.lifetimes.clone())
                .add(Span::new(live.connection.at, end));
        }
        let unseen = lifetimes.as_ref().unwrap_or(&self.lifetimes).peak();
        let single = self.single.peak().max(busy);
        let at_once = single + self.streams.peak().div_ceil(streams_each) + unseen;
        let environments = self.environments.values().filter(|opened| **opened > 0);
        // no other request can use a connection that changed to another protocol
        let upgraded = self.status.get(&UPGRADE).copied().unwrap_or_default();
        let alone = self.unusable + upgraded;
        let needed = at_once * environments.count().max(1) as u64 + alone;
        // a client cannot use the connection of another one
        let needed = needed.saturating_sub(self.open_before);
        needed.max(self.without_client).min(self.opened)
    }

    /// How many of the needed connections are needed only if exchanges overlapped within a step of
    /// the clock, or if connections without a client are of different ones.
    pub(super) fn spare(&self, needed: u64) -> u64 {
        let least = u64::from(self.requests > 0);
        if self.is_coarse || self.without_client > 0 {
            needed.saturating_sub(least)
        } else {
            0
        }
    }

    /// Most requests at once on connections that carry one at a time.
    pub fn single_at_once(&self) -> u64 {
        self.single.peak()
    }

    /// Most requests at once on connections that carry several.
    pub fn streams_at_once(&self) -> u64 {
        self.streams.peak()
    }

    /// The time between first and last event, in seconds.
    pub fn seconds(&self) -> Option<f64> {
        let span = self.span?;
        (span.nanos() > 0).then(|| span.nanos() as f64 / 1e9)
    }

    fn seen(&mut self, start: Nanos, end: Nanos) {
        let span = self.span.unwrap_or(Span::new(start, end));
        self.span = Some(Span::new(span.start.min(start), span.end.max(end)));
    }

    fn terms(&mut self, timeout_s: Option<u32>, max_streams: Option<u32>) {
        if let Some(timeout) = timeout_s {
            let least = self.announced_timeout_s.unwrap_or(timeout);
            self.announced_timeout_s = Some(least.min(timeout));
        }
        if let Some(streams) = max_streams {
            let least = self.streams_each.unwrap_or(streams);
            self.streams_each = Some(least.min(streams).max(1));
        }
    }

    fn infer(&mut self, certainty: &Certainty) {
        if let Certainty::Inferred(reason) = certainty
            && self.inferred.len() < NAMES
        {
            self.inferred.insert(reason.clone());
        }
    }
}

/// When an exchange occupied its connection, where it ended at any time in a step of the clock.
pub(super) fn occupied(exchange: &Exchange, time_step: u64) -> Span {
    let end = exchange.end.after(time_step);
    // a client that gives up a request is ahead of the observer of its close
    let end = match exchange.outcome {
        // what a client does not read keeps it from nothing
        _ if exchange.is_unread() => exchange.spans.wait.map_or(end, |wait| wait.end),
        Outcome::Failed(Failure::ClientClosed) => Nanos(end.0.saturating_sub(HAND_BACK)),
        _ => end,
    };
    Span::new(exchange.at, end)
}

/// Counts a name, where it is known or there is room.
fn count_name(names: &mut BTreeMap<Arc<str>, u64>, name: &Arc<str>, sign: Sign) {
    if names.contains_key(name) || names.len() < NAMES {
        sign.on(names.entry(name.clone()).or_default());
    }
}
