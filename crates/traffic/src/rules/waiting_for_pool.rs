//! `waiting-for-pool`: requests wait in the client until one of the connections of a full pool is
//! free.
//!
//! The queue is in the client, so no packet shows it. What shows is who decides which connection
//! takes the next request: where each connection has its own list (parallel loops), the lists end
//! at different times. Where requests wait together, each connection takes the next one when it is
//! free: a fast one takes more, and all are busy until none is left.

use super::{Attribution, Fold, KEPT, Remedy, RuleRow, for_client};
use crate::{Context, HAND_BACK, OpenConnection, PoolOwner};
use intact_document::finding::{Finding, RuleDoc, Severity};
use intact_document::statement::{Value, connections, nanos, requests, statement};
use intact_ledger::{ConnectionId, Event, Evidence, Exchange, Span};
use std::collections::BTreeMap;

/// Requests that took the place of another in a burst from which on it shows who decides.
const LEAST: usize = 10;
/// How many more requests one connection takes than another where none has a list of its own.
const UNEQUAL: usize = 2;
/// Requests on each connection from which on a burst is as likely a loop of workers as a queue.
const LOOP: usize = 20;
/// The share of further requests that follow a response at once: a busy client takes longer now and
/// then.
const AT_ONCE: f64 = 0.75;
/// The share of the median response time that a client may take between a response and the next
/// request: it may have the work of all its responses to do on a busy machine.
const CLIENT_SHARE: f64 = 0.5;
/// The longest such time, in nanoseconds.
const CLIENT_TIME: u64 = 50_000_000;
/// Requests that are sent while earlier ones are in flight from which on a burst is no series of
/// waves.
const EARLY: usize = 2;
/// Connections from which on one burst suffices: the lists of that many do not end together by
/// chance.
const MANY: u64 = 5;
/// Bursts that it takes where there are fewer connections.
const BURSTS: usize = 2;
/// How many times as many bursts must show a queue as show lists.
const TIMES: usize = 3;
/// Requests that are kept, of all pools.
const REQUESTS: usize = 16 * KEPT;
/// Load generators, by how their command or their `User-Agent` begins: they run as many requests at
/// the same time as they were asked to.
const LOAD_GENERATORS: [&str; 9] = [
    "ApacheBench",
    "ab",
    "autocannon",
    "h2load",
    "hey",
    "k6",
    "oha",
    "vegeta",
    "wrk",
];

pub(super) static RULE: RuleRow = RuleRow {
    doc: RuleDoc {
        id: "waiting-for-pool",
        what: "All connections to this destination are busy. Further requests wait in the client, while the server may be idle. They wait for a connection of a full pool, or for one of as many workers: on the wire both look the same.",
        evidence: "Bursts in which all connections of the client are busy from the first request on. Three of four further requests follow a response on their connection at once: within 5 ms, or half of the median response time. None is sent when one was free. Some are sent while others that began earlier are in flight: waves wait for all. No connection takes more than 20 requests in a burst. So requests waited together (inferred, `~`). HTTP/1 only.",
        threshold: "Ten requests that followed another in a burst without a failure. One such burst suffices on five connections or more if one of them took two requests more than another, else two. Three times as many bursts must show a queue as show requests that were sent later. Informational: the wire does not show since when a request waited. The time given is the most that is possible.",
        false_positives: "A program that limits its work to a number of workers on purpose. A single connection shows nothing, because a loop looks the same.",
        fix: "Find out which limit it is: the pool's connections to this destination, or the program's own workers. Raise it, or use HTTP/2, which carries the requests on one connection",
        risk: "More requests at the same time are more work for the server",
        needs: &[Evidence::Durations, Evidence::Reuse],
    },
    fold: || Box::<WaitingForPool>::default(),
};

/// One request of a pool.
#[derive(Clone, Copy)]
struct Request {
    connection: ConnectionId,
    span: Span,
    is_ok: bool,
}

/// A burst in which requests waited together for the next free connection.
#[derive(Clone, Copy)]
struct Queue {
    connections: u64,
    /// Whether the connections took different numbers of requests, as lists of workers rarely have.
    is_unequal: bool,
    /// Requests that took the place of another.
    followed: u64,
    /// The time from the beginning of the burst to their own, in nanoseconds.
    waited: u64,
}

/// What a burst shows.
enum Shown {
    Queue(Queue),
    /// Each connection has a list of its own.
    Lists,
    Nothing,
}

#[derive(Default)]
struct WaitingForPool {
    pools: BTreeMap<(usize, PoolOwner), Vec<Request>>,
    kept: usize,
}

impl WaitingForPool {
    fn take(&mut self, exchange: &Exchange, live: &OpenConnection) {
        if self.kept == REQUESTS {
            return;
        }
        let connection = &live.connection;
        let command = connection.owner.as_ref().map(|owner| &*owner.command);
        let names = [connection.agent.as_deref(), command];
        let names = names.into_iter().flatten();
        let mut names = names.map(|name| name.split('/').next().unwrap_or(name));
        let is_load = names.any(|name| LOAD_GENERATORS.contains(&name));
        if live.multiplexes() || is_load {
            return;
        }
        self.kept += 1;
        let pool = (live.destination, live.owner);
        self.pools.entry(pool).or_default().push(Request {
            connection: live.connection.id,
            span: Span::new(exchange.taken(), exchange.end),
            is_ok: exchange.outcome.is_ok(),
        });
    }
}

impl Fold for WaitingForPool {
    fn observe(&mut self, event: Event<'_>, context: &Context<'_>) {
        if let (Event::Exchange(exchange), Some(live)) = (event, context.live) {
            self.take(exchange, live);
        }
    }

    fn findings(&self, attribution: &mut Attribution<'_>) -> Vec<Finding> {
        let mut findings = Vec::new();
        for ((destination, _), requests) in &self.pools {
            let counts = attribution.counts(*destination);
            if counts.is_coarse || counts.timed == 0 {
                continue;
            }
            if let Some(queues) = queues(requests) {
                let found = finding(attribution.name(*destination), &queues);
                let client = attribution.client(*destination);
                findings.push(for_client(Remedy::WidenPool, client, found));
            }
        }
        findings
    }
}

fn finding(subject: String, queues: &[Queue]) -> Finding {
    let followed = queues.iter().map(|one| one.followed).sum();
    let waited = queues.iter().map(|one| one.waited);
    let waited = waited.fold(0, u64::saturating_add);
    let sufficient = queues
        .iter()
        .map(|one| one.connections + one.followed)
        .max();
    let said = statement!(
        "~{followed} waited in the client for one of {connections}, or of as many workers; {sufficient} would have carried the largest burst",
        followed = requests(followed),
        connections = connections(queues[0].connections),
        sufficient = Value::Number(sufficient.unwrap_or(0))
    );
    let evidence = statement!(
        "in {bursts} each connection took the next request when it was free, and all were busy until none was left; together the requests waited {waited} at most",
        bursts = Value::Count(queues.len() as u64, "burst"),
        waited = nanos(waited as f64)
    );
    Finding::by(&RULE.doc, Severity::Info, subject, said, evidence)
}

/// The bursts of a pool that show a queue, all on as many connections as it ever had; `None` where
/// they are too few.
fn queues(requests: &[Request]) -> Option<Vec<Queue>> {
    let mut sorted = requests.to_vec();
    sorted.sort_by_key(|one| (one.span.start, one.span.end));
    let client_time = client_time(&sorted);
    let bursts = bursts(&sorted, client_time);
    let most = bursts
        .iter()
        .map(|burst| by_connection(burst).len())
        .max()? as u64;
    let shown: Vec<Shown> = bursts
        .into_iter()
        .map(|burst| show(burst, client_time))
        .collect();
    let lists = shown
        .iter()
        .filter(|one| matches!(one, Shown::Lists))
        .count();
    let queues = shown.iter().filter_map(|one| match one {
        Shown::Queue(queue) if queue.connections == most => {
            // few lists of equal length end together by chance
            (queue.is_unequal || most >= MANY).then_some(*queue)
        }
        _ => None,
    });
    let queues: Vec<Queue> = queues.collect();
    let shows_alone = queues.iter().any(|queue| queue.is_unequal) && most >= MANY;
    let least = if shows_alone { 1 } else { BURSTS };
    (queues.len() >= least && queues.len() >= TIMES * lists).then_some(queues)
}

/// Requests without a rest between them that is longer than the client takes for the next request.
fn bursts(sorted: &[Request], client_time: u64) -> Vec<&[Request]> {
    let mut bursts = Vec::new();
    let (mut begin, mut end) = (0, None);
    for (nth, one) in sorted.iter().enumerate() {
        if end.is_some_and(|end: intact_ledger::Nanos| one.span.start > end.after(client_time)) {
            bursts.push(&sorted[begin..nth]);
            begin = nth;
            end = None;
        }
        end = end.max(Some(one.span.end));
    }
    bursts.push(&sorted[begin..]);
    bursts
}

fn by_connection(burst: &[Request]) -> BTreeMap<ConnectionId, Vec<Span>> {
    let mut all: BTreeMap<ConnectionId, Vec<Span>> = BTreeMap::new();
    for one in burst {
        all.entry(one.connection).or_default().push(one.span);
    }
    all
}

/// How long a client may take between a response and the next request, in nanoseconds.
fn client_time(requests: &[Request]) -> u64 {
    let mut times: Vec<u64> = requests.iter().map(|one| one.span.nanos()).collect();
    times.sort_unstable();
    let median = times[times.len() / 2] as f64;
    ((median * CLIENT_SHARE) as u64).clamp(HAND_BACK, CLIENT_TIME)
}

/// Whether the requests are waves: none is sent before all that began before it could be sent are
/// over. Where requests wait for a connection, one that is free does not wait for the others.
fn has_waves(burst: &[Request]) -> bool {
    let mut current: BTreeMap<ConnectionId, Span> = BTreeMap::new();
    let mut early = 0;
    for one in burst {
        let before = current.insert(one.connection, one.span);
        early += usize::from(before.is_some_and(|before| {
            let mut others = current.values();
            others.any(|other| other.start < before.end && one.span.start < other.end)
        }));
    }
    early < EARLY
}

fn show(burst: &[Request], client_time: u64) -> Shown {
    let each = by_connection(burst);
    let followed = burst.len() - each.len();
    let first_end = burst.iter().map(|one| one.span.end).min();
    let begins_full = each.values().all(|spans| Some(spans[0].start) <= first_end);
    let pairs = || each.values().flat_map(|spans| spans.windows(2));
    let is_one_at_a_time = pairs().all(|two| two[0].end <= two[1].start);
    let at_once = pairs().filter(|two| two[1].start <= two[0].end.after(client_time));
    let at_once = at_once.count();
    if each.len() < 2
        || followed < LEAST
        || !begins_full
        || !is_one_at_a_time
        || (at_once as f64) < AT_ONCE * followed as f64
        || has_waves(burst)
        || burst.iter().any(|one| !one.is_ok)
    {
        return Shown::Nothing;
    }
    let last_ends = each.values().filter_map(|spans| spans.last());
    let free = last_ends.map(|span| span.end).min();
    let last_start = burst.last().map(|one| one.span.start);
    if last_start > free.map(|free| free.after(client_time)) {
        return Shown::Lists;
    }
    let counts = || each.values().map(Vec::len);
    let (Some(most), Some(least)) = (counts().max(), counts().min()) else {
        return Shown::Nothing;
    };
    if most > LOOP {
        return Shown::Nothing;
    }
    let begin = burst[0].span.start;
    let starts = each.values().flat_map(|spans| &spans[1..]);
    let waits = starts.map(|span| span.start.since(begin));
    Shown::Queue(Queue {
        connections: each.len() as u64,
        is_unequal: most - least >= UNEQUAL,
        followed: followed as u64,
        waited: waits.fold(0, u64::saturating_add),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use intact_experiment::Rng;
    use intact_ledger::Nanos;

    const MS: f64 = 1e6;

    fn request(connection: usize, from: f64, to: f64) -> Request {
        Request {
            connection: ConnectionId(connection as u64),
            span: Span::new(Nanos((from * MS) as u64), Nanos((to * MS) as u64)),
            is_ok: true,
        }
    }

    /// A burst of `count` requests that wait together for one of `size` connections; one of 20 is
    /// sent late.
    fn queued(rng: &mut Rng, at: f64, size: usize, count: usize) -> Vec<Request> {
        let mut free = vec![at; size];
        let request = |_| {
            let next = (0..size)
                .min_by(|a, b| free[*a].total_cmp(&free[*b]))
                .unwrap();
            let from = free[next];
            let to = from + 10.0 + 40.0 * rng.unit();
            free[next] = to + if rng.below(20) == 0 { 8.0 } else { 0.5 };
            request(next, from, to)
        };
        (0..count).map(request).collect()
    }

    /// A burst of loops with lists of their own, of these lengths.
    fn looped(rng: &mut Rng, at: f64, lengths: &[usize]) -> Vec<Request> {
        let mut all = Vec::new();
        for (nth, length) in lengths.iter().enumerate() {
            let mut from = at;
            for _ in 0..*length {
                let to = from + 10.0 + 40.0 * rng.unit();
                all.push(request(nth, from, to));
                from = to + 0.5;
            }
        }
        all
    }

    #[test]
    fn requests_that_wait_together_for_one_of_several_connections_are_found() {
        let mut rng = Rng::seeded(1);
        let found = (0..200).filter(|_| queues(&queued(&mut rng, 0.0, 5, 60)).is_some());
        assert!(found.count() >= 150);
        let mut bursts = (0..9).map(|_| queued(&mut rng, 0.0, 5, 60));
        let found = bursts.find_map(|burst| queues(&burst)).unwrap();
        assert_eq!(
            (found.len(), found[0].connections, found[0].followed),
            (1, 5, 55)
        );
        // 55 requests that began within 60 / 5 * 30 ms
        let waited = found[0].waited as f64 / MS;
        assert!((5_000.0..15_000.0).contains(&waited), "{waited}");
    }

    #[test]
    fn two_connections_take_two_bursts() {
        let mut rng = Rng::seeded(2);
        let burst = |rng: &mut Rng, at| loop {
            let burst = queued(rng, at, 2, 30);
            if let Shown::Queue(Queue {
                is_unequal: true, ..
            }) = show(&burst, client_time(&burst))
            {
                return burst;
            }
        };
        let mut all = burst(&mut rng, 0.0);
        assert!(queues(&all).is_none());
        all.extend(burst(&mut rng, 5_000.0));
        assert_eq!(queues(&all).unwrap().len(), 2);
    }

    #[test]
    fn loops_side_by_side_are_never_a_full_pool() {
        let mut rng = Rng::seeded(3);
        for lengths in [
            &[60][..],
            &[20, 20],
            &[15, 25],
            &[12, 12, 12, 12],
            &[12, 14, 12, 14],
            &[9, 12, 15, 20, 30],
        ] {
            let wrong = (0..300).filter(|_| {
                let bursts = [0.0, 5_000.0, 10_000.0];
                let all = bursts.iter().flat_map(|at| looped(&mut rng, *at, lengths));
                queues(&all.collect::<Vec<_>>()).is_some()
            });
            let wrong = wrong.count();
            assert!(wrong <= 1, "{wrong} of 300 with {lengths:?}");
        }
    }

    #[test]
    fn waves_and_failures_show_nothing() {
        // ten at once, and again when all are over
        let waves = (0..5).flat_map(|wave| {
            let at = f64::from(wave) * 52.0;
            (0..10).map(move |nth| request(nth, at, at + 50.0 - nth as f64))
        });
        assert!(queues(&waves.collect::<Vec<_>>()).is_none());
        // loops that the end of the run cut
        let mut rng = Rng::seeded(4);
        let mut cut = queued(&mut rng, 0.0, 5, 60);
        cut[59].is_ok = false;
        assert!(queues(&cut).is_none());
    }
}
