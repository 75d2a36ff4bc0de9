//! Pools that stood still: every connection that a process had opened to a destination was held
//! until the process closed all of them, and for a long time nothing was sent. Must not say why.

use super::pool_table::PoolTable;
use crate::open_reason::leaves_rest;
use crate::{Context, PoolOwner};
use intact_ledger::{Close, Event, Nanos, OtherEnd, Side};

/// A shorter time is no standstill, in nanoseconds.
const LEAST: u64 = 1_000_000_000;
/// How many times the longest earlier rest a standstill takes.
const LONGER: u64 = 20;
/// The same where all connections held an unread response.
const LONGER_UNREAD: u64 = 2;

/// The connections of one process to one destination.
#[derive(Clone, Debug, Default)]
pub(super) struct Standstill {
    /// Connections that were opened.
    pub(super) connections: u64,
    /// Of these, those whose socket had an unread response.
    pub(super) unread: u64,
    /// The bytes of these responses, where the socket was asked.
    pub(super) bytes: u64,
    /// Whether a connection carried a second exchange.
    pub(super) is_reusing: bool,
    /// The last moment at which one was opened or an exchange ended.
    last: Nanos,
    /// The longest time between two such moments, in nanoseconds.
    longest_rest: u64,
    /// Connections that ended.
    ended: u64,
    /// The first end.
    first_end: Option<Nanos>,
}

impl Standstill {
    fn act(&mut self, from: Nanos, to: Nanos) {
        if self.last > Nanos(0) {
            self.longest_rest = self.longest_rest.max(from.since(self.last));
        }
        self.last = self.last.max(to);
    }

    /// How long nothing was sent while all connections were held, in nanoseconds.
    pub(super) fn nanos(&self) -> Option<u64> {
        let nanos = self.first_end?.since(self.last);
        let longer = if self.unread == self.connections {
            LONGER_UNREAD
        } else {
            LONGER
        };
        let is_long = nanos >= LEAST.max(self.longest_rest.saturating_mul(longer));
        (self.ended == self.connections && is_long).then_some(nanos)
    }
}

/// The pools of processes, by destination.
#[derive(Clone, Debug, Default)]
pub(super) struct Pools {
    pools: PoolTable<Standstill>,
}

impl Pools {
    pub(super) fn observe(&mut self, event: Event<'_>, context: &Context<'_>) {
        let Some(live) = context.live else { return };
        let is_process = matches!(live.owner, PoolOwner::Process(_));
        if !is_process || live.connection.open_before {
            return;
        }
        let Some(pool) = self.pools.of(live) else {
            return;
        };
        match event {
            Event::Opened(connection) => pool.act(connection.at, connection.at),
            Event::Exchange(exchange) => {
                pool.act(exchange.at, exchange.end);
                pool.is_reusing |= exchange.ordinal.is_some_and(|ordinal| ordinal > 1);
            }
            Event::Closed(closed) => {
                let close = &closed.close;
                pool.connections += 1;
                pool.ended += u64::from(close.how.is_some());
                let end = client_end(close);
                pool.first_end = Some(pool.first_end.map_or(end, |first| first.min(end)));
                if leaves_rest(live, close) {
                    pool.unread += 1;
                    pool.bytes += close.bytes.unread.unwrap_or_default();
                }
            }
            _ => {}
        }
    }

    /// Whether connections to a destination held unread responses.
    pub(super) fn has_unread(&self, destination: usize) -> bool {
        let mut pools = self.all();
        pools.any(|(at, pool)| at == destination && pool.unread > 0)
    }

    /// The pools with their destinations.
    pub(super) fn all(&self) -> impl Iterator<Item = (usize, &Standstill)> {
        let pools = self.pools.sorted().into_iter();
        pools.map(|(destination, _, pool)| (destination, pool))
    }
}

/// When the client closed its end.
fn client_end(close: &Close) -> Nanos {
    match close.other_end {
        Some(OtherEnd::ClosedAt(at)) if close.by == Some(Side::Server) => at,
        Some(OtherEnd::Open) => Nanos(u64::MAX),
        _ => close.at,
    }
}
