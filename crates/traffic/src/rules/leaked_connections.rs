//! `leaked-connections`: the program holds connections that it does not use again, while it opens
//! others.

use super::pool_table::PoolTable;
use super::standstill::{Pools, Standstill};
use super::{Attribution, Fold, KEPT, Remedy, RuleRow, for_client};
use crate::{Context, OpenConnection, PoolOwner};
use intact_document::finding::{Finding, RuleDoc, Severity};
use intact_document::statement::{Value, connections, statement, timer_nanos};
use intact_ledger::{Close, Event, Evidence, Nanos, OtherEnd, Side};

/// Connections beyond the needed ones from which on it speaks.
const LEAST: u64 = 10;
/// A shorter idle time is no hold, in nanoseconds.
const SHORT: u64 = 1_000_000_000;
/// A pool that closes one idle connection for this number that it holds has an idle limit.
const RELEASED: u64 = 4;

pub(super) static RULE: RuleRow = RuleRow {
    doc: RuleDoc {
        id: "leaked-connections",
        what: "The program holds connections that it never uses again, and opens others meanwhile. It does not close its responses, or makes pools or clients without closing them. Where the server has closed its end, the socket stays in CLOSE_WAIT. In the end no file descriptor is left (EMFILE, \"too many open files\").",
        evidence: "Connections that were open and idle for 1 s or longer when the program opened its last connection to the same destination. They carried nothing afterwards. Or those that the server had closed 1 s before the program closed its first one after that, or before the end (CLOSE_WAIT). Or none of a process was used twice, and nothing was sent for 1 s or longer, until the process closed all of them.",
        threshold: "Ten such connections more than the peak overlap of requests needs. For every four of them, the program may have closed at most one other connection after an idle time. A pool with an idle limit does not leak. Or two openings in vain of a pool that stood still for 20 times as long as its longest earlier rest. A warning if the process is known, else informational.",
        false_positives: "In a capture, several programs behind one address look like one. A pool with an idle limit that is longer than the recording looks like one without.",
        fix: "Read or close each response: an unread one keeps its connection from the pool. Where a call makes its own client, close it, or make one for the life of the program",
        risk: "A shared client shares cookies, default headers and credentials. With a maximum size of its pool, requests may wait for a connection (`waiting-for-pool`)",
        needs: &[Evidence::Ends],
    },
    fold: || Box::<LeakedConnections>::default(),
};

/// A connection after its last exchange.
#[derive(Clone, Copy)]
struct Held {
    /// Since when it was idle.
    since: Nanos,
    /// When the client closed it.
    until: Nanos,
    /// When the server closed it before that.
    server_end: Option<Nanos>,
}

/// The connections of one owner to one destination.
#[derive(Clone, Default)]
struct Pool {
    last_opening: Nanos,
    /// Those that ended after a hold.
    held: Vec<Held>,
}

/// Where the connections were when it was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    /// When the last one was opened.
    LastOpening,
    /// After the last opening: those in CLOSE_WAIT.
    Later,
}

#[derive(Default)]
struct LeakedConnections {
    pools: PoolTable<Pool>,
    standstills: Pools,
}

impl Held {
    /// How a connection was held that ended; `None` where the client closed it at once, or that was
    /// not observed.
    fn ended(live: &OpenConnection, close: &Close) -> Option<Held> {
        let is_by_server = close.by == Some(Side::Server);
        let server_end = is_by_server.then_some(close.at);
        let until = match close.other_end {
            Some(OtherEnd::ClosedAt(at)) if is_by_server => at,
            Some(OtherEnd::Open) if is_by_server => Nanos(u64::MAX),
            _ => close.at,
        };
        let since = live.last.as_ref().map(|last| last.end).or(server_end)?;
        (until.since(since) >= SHORT).then_some(Held {
            since,
            until,
            server_end,
        })
    }

    /// How a connection is held that is open.
    fn open(live: &OpenConnection) -> Option<Held> {
        Some(Held {
            since: live.last.as_ref()?.end,
            until: Nanos(u64::MAX),
            server_end: None,
        })
    }

    /// Whether the server had closed it long before this moment, and the client had not.
    fn is_in_close_wait_at(&self, at: Nanos) -> bool {
        let is_long = |end: Nanos| end.after(SHORT) <= at;
        self.server_end.is_some_and(is_long) && at < self.until
    }

    /// Whether it was idle for long at this moment.
    fn is_held_at(&self, at: Nanos) -> bool {
        self.since.after(SHORT) <= at && at < self.until
    }
}

/// What a pool held.
struct Leak {
    moment: Moment,
    connections: u64,
    /// Those that the server had closed.
    closed_by_server: u64,
    /// How long the first of them had been idle, in nanoseconds.
    longest: u64,
}

impl Pool {
    /// What it held when it opened its last connection, or in CLOSE_WAIT before it closed the
    /// first of them afterwards; `now` is the end of the recording.
    fn leak(&self, now: Nanos) -> Option<Leak> {
        let later = self.held.iter().map(|one| one.until.min(now));
        let later = later.filter(|until| *until > self.last_opening).min();
        let later = later.and_then(|until| {
            let at = Nanos(until.0.saturating_sub(1));
            self.leak_at(at, Moment::Later)
        });
        let last = self.leak_at(self.last_opening, Moment::LastOpening);
        later
            .into_iter()
            .chain(last)
            .max_by_key(|leak| leak.connections)
    }

    fn leak_at(&self, at: Nanos, moment: Moment) -> Option<Leak> {
        let held = self.held.iter().filter(|one| match moment {
            Moment::LastOpening => one.is_held_at(at),
            Moment::Later => one.is_in_close_wait_at(at),
        });
        let leak = Leak {
            moment,
            connections: held.clone().count() as u64,
            closed_by_server: held
                .clone()
                .filter(|one| one.server_end.is_some_and(|end| end <= at))
                .count() as u64,
            longest: held.map(|one| at.since(one.since)).max()?,
        };
        let released = self.held.iter().filter(|one| one.until < at).count() as u64;
        (released * RELEASED <= leak.connections).then_some(leak)
    }
}

impl Fold for LeakedConnections {
    fn observe(&mut self, event: Event<'_>, context: &Context<'_>) {
        self.standstills.observe(event, context);
        let Some(live) = context.live else { return };
        match event {
            // a request may name another destination than the address did
            Event::Opened(connection) | Event::Revised(connection) if !connection.open_before => {
                if let Some(pool) = self.pools.of(live) {
                    pool.last_opening = pool.last_opening.max(connection.at);
                }
            }
            Event::Closed(closed) => {
                if let (Some(pool), Some(held)) =
                    (self.pools.known(live), Held::ended(live, &closed.close))
                    && pool.held.len() < KEPT
                {
                    pool.held.push(held);
                }
            }
            _ => {}
        }
    }

    fn findings(&self, attribution: &mut Attribution<'_>) -> Vec<Finding> {
        // without ends, a connection that carries nothing any more may be gone
        if !attribution.tracker().run().sees(Evidence::Ends) {
            return Vec::new();
        }
        let mut pools = self.pools.clone();
        for live in attribution.tracker().open() {
            if let (Some(pool), Some(held)) = (pools.known(live), Held::open(live)) {
                pool.held.push(held);
            }
        }
        let (still, mut findings): (Vec<_>, Vec<_>) = self.still(attribution).into_iter().unzip();
        let now = attribution.tracker().now;
        for (destination, owner, pool) in pools.sorted() {
            // `body-not-drained` has the cause
            let is_known = still.contains(&destination);
            if is_known || self.standstills.has_unread(destination) {
                continue;
            }
            let Some(leak) = pool.leak(now) else { continue };
            if leak.connections >= attribution.needed(destination) + LEAST {
                findings.push(finding(attribution, destination, owner, &leak));
            }
        }
        findings
    }
}

impl LeakedConnections {
    /// The pools that stood still and of which no connection was used twice.
    fn still(&self, attribution: &mut Attribution<'_>) -> Vec<(usize, Finding)> {
        let is_still = |pool: &&Standstill| !pool.is_reusing && pool.unread == 0;
        let mut found = Vec::new();
        let claims = |destination: usize| {
            let mut pools = self.standstills.all().filter(|(at, _)| *at == destination);
            let first = pools.next().map(|(_, pool)| pool).filter(is_still);
            first.filter(|_| pools.next().is_none())
        };
        let least = 2;
        for (destination, _, _) in attribution.destinations() {
            let Some(pool) = claims(destination) else {
                continue;
            };
            let Some(nanos) = pool.nanos() else { continue };
            // what was opened in a few milliseconds has no reason that is seen
            let claimed = attribution.claim_left(destination, least);
            let Some(one) = claimed else { continue };
            let said = statement!(
                "{held:#} held without use, and nothing was sent for {standstill}, until the program closed all of them",
                held = connections(pool.connections),
                standstill = timer_nanos(nanos),
            );
            let evidence = "each carried one request; either the responses were not read to the end, or each call had a client of its own";
            let mut finding = one.finding(&RULE.doc, said, evidence);
            finding.severity = Severity::Warning;
            found.push((destination, for_client(Remedy::Drain, one.client, finding)));
        }
        found
    }
}

fn finding(
    attribution: &Attribution<'_>,
    destination: usize,
    owner: PoolOwner,
    leak: &Leak,
) -> Finding {
    let severity = match owner {
        PoolOwner::Process(_) => Severity::Warning,
        PoolOwner::Address(_) | PoolOwner::Unknown => Severity::Info,
    };
    if leak.moment == Moment::Later {
        return in_close_wait(attribution, destination, severity, leak);
    }
    let said = statement!(
        "{held:#} held without use when another one was opened, where {needed} would do",
        held = connections(leak.connections),
        needed = Value::Number(attribution.needed(destination))
    );
    let mut evidence = statement!(
        "they carried nothing afterwards; the first had been idle for {longest}",
        longest = timer_nanos(leak.longest)
    );
    if leak.closed_by_server > 0 {
        evidence = evidence.and(statement!(
            "the server had closed {in_close_wait} of them, and the program had not (CLOSE_WAIT)",
            in_close_wait = Value::Number(leak.closed_by_server)
        ));
    }
    let finding = attribution.finding(&RULE.doc, severity, destination, said, evidence);
    for_client(Remedy::Drain, attribution.client(destination), finding)
}

/// The connections that the server had closed, and the program had not.
fn in_close_wait(
    attribution: &Attribution<'_>,
    destination: usize,
    severity: Severity,
    leak: &Leak,
) -> Finding {
    let said = statement!(
        "{held:#} held after the server had closed them (CLOSE_WAIT), where {needed} would do",
        held = connections(leak.connections),
        needed = Value::Number(attribution.needed(destination))
    );
    let evidence = statement!(
        "they carried nothing afterwards; the first had been idle for {longest}",
        longest = timer_nanos(leak.longest)
    );
    let finding = attribution.finding(&RULE.doc, severity, destination, said, evidence);
    for_client(Remedy::Drain, attribution.client(destination), finding)
}
