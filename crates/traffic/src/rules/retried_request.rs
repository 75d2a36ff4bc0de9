//! `retried-request`: the same request was sent again on another connection.

use super::{Attribution, Fold, KEPT, RuleRow, is_unsafe};
use crate::{Context, HAND_BACK};
use intact_document::finding::{Finding, RuleDoc, Severity};
use intact_document::statement::{Statement, Value, requests, statement, text};
use intact_ledger::{
    ConnectionId, Event, Evidence, Exchange, Failure, Fingerprint, Invocation, Nanos, Outcome,
};
use std::collections::{BTreeMap, HashMap, VecDeque};

/// A request that comes so long after the failure of its like, in nanoseconds, is a new one.
const SOON: u64 = 10_000_000_000;
/// A request that comes sooner after the failure, in nanoseconds, does not show a heartbeat.
const AT_ONCE: u64 = 100_000_000;
/// Retries of one request that are kept until one gets a response; no client makes more.
const MOST_RETRIES: usize = 16;
/// From this share of the usual interval or pause of equal requests on, the program sends the next
/// one by itself.
const ON_TIME: f64 = 0.75;

pub(super) static RULE: RuleRow = RuleRow {
    doc: RuleDoc {
        id: "retried-request",
        what: "A request failed with its connection and was sent again on another one. The library reports nothing, and the server may process the request twice.",
        evidence: "Within 10 s of a failure, the same fingerprint (method, full target, body) by the same process to the same destination on another connection. It broke before the response was complete, and no equal request got a response in between. A retry that the producer recorded counts, too. Of equal requests at intervals, only a sooner one is a retry; none where three in turn fail. In a function: within the same invocation. Needs visible requests.",
        threshold: "One is enough. An error where the method is not idempotent (RFC 9110 section 9.2.2), else informational.",
        false_positives: "A person who presses the button again; the first two beats of a heartbeat; a loop without pauses that goes on after a failure.",
        fix: "Remove the cause (`stale-reuse`, resets). Let the library retry idempotent requests only, and give the others an idempotency key",
        risk: "Without retries, each connection that ends while idle becomes an error of the program",
        needs: &[Evidence::Repeats],
    },
    fold: || Box::<RetriedRequest>::default(),
};

#[derive(Clone, Default)]
struct Seen {
    safe: u64,
    unsafe_to_repeat: u64,
    example: Option<String>,
}

impl Seen {
    fn count(&mut self, retry: &Retry) {
        let count = if retry.is_harmful {
            &mut self.unsafe_to_repeat
        } else {
            &mut self.safe
        };
        *count += 1;
        // an example that may do harm is the better one
        if self.example.is_none() || (retry.is_harmful && self.unsafe_to_repeat == 1) {
            self.example.clone_from(&retry.example);
        }
    }
}

/// Who sends: a retry is the same process's.
#[derive(Clone, Copy)]
struct Sender {
    pid: Option<u32>,
    environment: Option<u64>,
}

impl Sender {
    /// Whether both may be the same, where they are known.
    fn may_be(self, other: Sender) -> bool {
        let pids = self.pid.zip(other.pid);
        let environments = self.environment.zip(other.environment);
        pids.is_none_or(|(one, other)| one == other)
            && environments.is_none_or(|(one, other)| one == other)
    }
}

/// A failure that the client may retry.
struct Broken {
    connection: Option<ConnectionId>,
    sender: Sender,
    at: Nanos,
    end: Nanos,
}

/// A request that was sent again.
struct Retry {
    destination: usize,
    environment: Option<u64>,
    /// When the first began, and when the second did.
    between: (Nanos, Nanos),
    is_harmful: bool,
    example: Option<String>,
}

/// When equal requests were sent.
#[derive(Clone, Copy)]
struct Rhythm {
    last: Nanos,
    /// The shortest interval between two starts, in nanoseconds.
    interval: Option<u64>,
    /// The end of the last one, if it got a response.
    answered: Option<Nanos>,
    /// The shortest pause between a response and the next one, in nanoseconds.
    pause: Option<u64>,
}

impl Rhythm {
    /// Whether a request at `at`, after a failure at `failed`, is the program's next one: it keeps
    /// the interval of a heartbeat, or the pause of a loop.
    fn expects(self, at: Nanos, failed: Nanos) -> bool {
        let is_on_time = |time: u64, usual: Option<u64>| {
            usual.is_some_and(|usual| time as f64 >= usual as f64 * ON_TIME)
        };
        let pause = at.since(failed);
        let has_pause = self.pause.is_some_and(|pause| pause >= HAND_BACK);
        (has_pause && is_on_time(pause, self.pause))
            || (is_on_time(at.since(self.last), self.interval) && pause > AT_ONCE)
    }
}

/// Equal requests to one destination: others have the same webhook, or the same health check.
type Request = (Fingerprint, usize);

#[derive(Default)]
struct RetriedRequest {
    rhythms: HashMap<Request, Rhythm>,
    /// A retry without an earlier interval, with the time from the first request to it: a beat, if
    /// the next one keeps the time.
    doubtful: HashMap<Request, (Retry, u64)>,
    failed: HashMap<Request, Broken>,
    order: VecDeque<Request>,
    /// Those that failed as well. A single one is a retry; several may be a loop, unless one after
    /// them gets a response.
    unanswered: HashMap<Request, Vec<Retry>>,
    /// Retries of functions: an invocation that is recorded later may have begun in between.
    open: VecDeque<Retry>,
    seen: BTreeMap<usize, Seen>,
}

impl RetriedRequest {
    /// What the request repeats: the time at which that began.
    fn repeats(&mut self, request: Request, exchange: &Exchange, sender: Sender) -> Option<Nanos> {
        let broken = self.failed.get(&request)?;
        let is_later = exchange.at >= broken.end;
        let again = is_later
            && exchange.connection != broken.connection
            && sender.may_be(broken.sender)
            && exchange.at.since(broken.end) <= SOON;
        let rhythm = self.rhythms.get(&request);
        let is_beat = rhythm.is_some_and(|rhythm| rhythm.expects(exchange.at, broken.end));
        let began = (again && !is_beat).then_some(broken.at);
        // what comes after the response is a request of its own
        let is_answered = exchange.outcome == Outcome::Ok && exchange.end >= broken.end;
        if again || is_answered {
            self.failed.remove(&request);
        }
        began
    }

    /// Notes when a request was sent, and drops the doubtful retry before it if that was a beat of
    /// the same rhythm.
    fn note(&mut self, request: Request, exchange: &Exchange) {
        let at = exchange.at;
        let known = self.rhythms.get(&request).copied();
        if known.is_none() && self.rhythms.len() >= KEPT {
            return;
        }
        let interval = known.map(|rhythm| at.since(rhythm.last));
        if let (Some(interval), Some((retry, first))) = (interval, self.doubtful.remove(&request))
            && (interval as f64) < first as f64 * ON_TIME
        {
            self.take(retry);
        }
        let shortest = known.and_then(|rhythm| rhythm.interval);
        let answered = known.and_then(|rhythm| rhythm.answered);
        let pause = answered.map(|end| if at < end { 0 } else { at.since(end) });
        let shortest_pause = known.and_then(|rhythm| rhythm.pause);
        let is_answered = exchange.outcome == Outcome::Ok;
        let rhythm = Rhythm {
            last: at,
            interval: shortest.into_iter().chain(interval).min(),
            answered: is_answered.then_some(exchange.end),
            pause: shortest_pause.into_iter().chain(pause).min(),
        };
        self.rhythms.insert(request, rhythm);
    }

    fn take(&mut self, retry: Retry) {
        if retry.environment.is_none() {
            self.seen
                .entry(retry.destination)
                .or_default()
                .count(&retry);
            return;
        }
        self.open.push_back(retry);
        if self.open.len() > KEPT
            && let Some(oldest) = self.open.pop_front()
        {
            self.seen
                .entry(oldest.destination)
                .or_default()
                .count(&oldest);
        }
    }

    /// The same request in the next invocation is that one's own.
    fn invoked(&mut self, one: &Invocation) {
        let begins = one.begins();
        let is_within_one = |retry: &Retry| {
            let (first, second) = retry.between;
            retry.environment != Some(one.environment) || begins <= first || begins > second
        };
        self.open.retain(is_within_one);
        self.doubtful.retain(|_, (retry, _)| is_within_one(retry));
    }

    /// Counts a retry, or waits for the next equal request where the program may send them at
    /// intervals.
    fn decide(&mut self, exchange: &Exchange, first: Option<Nanos>, retry: Retry) {
        let fingerprint = exchange.fingerprint.filter(|_| exchange.retry_of.is_none());
        let request = fingerprint.map(|one| (one, retry.destination));
        let rhythm = request.and_then(|one| self.rhythms.get_mut(&one));
        let (Some(request), Some(first), Some(rhythm)) = (request, first, rhythm) else {
            return self.take(retry);
        };
        let since = exchange.at.since(first);
        let is_doubtful = rhythm.interval.is_none() && since > AT_ONCE;
        if !is_doubtful || self.doubtful.len() >= KEPT {
            return self.take(retry);
        }
        rhythm.last = exchange.at;
        self.doubtful.insert(request, (retry, since));
    }

    fn remember(&mut self, request: Request, exchange: &Exchange, sender: Sender) {
        if !is_broken(exchange) {
            return;
        }
        while self.order.len() >= KEPT {
            if let Some(oldest) = self.order.pop_front() {
                self.failed.remove(&oldest);
            }
        }
        let broken = Broken {
            connection: exchange.connection,
            sender,
            at: exchange.at,
            end: exchange.end,
        };
        if self.failed.insert(request, broken).is_none() {
            self.order.push_back(request);
        }
    }
}

/// Whether a request failed with its connection, or the server refused it.
fn is_broken(exchange: &Exchange) -> bool {
    use Failure::{Closed, Refusal, Reset, Stale, StreamReset, Truncated};
    matches!(
        exchange.outcome,
        Outcome::Failed(Stale | Closed | Reset | Truncated | Refusal | StreamReset)
    )
}

impl Fold for RetriedRequest {
    fn observe(&mut self, event: Event<'_>, context: &Context<'_>) {
        let (exchange, destination) = match (event, context.destination) {
            (Event::Exchange(exchange), Some(destination))
                if exchange.fingerprint.is_some() || exchange.retry_of.is_some() =>
            {
                (exchange, destination)
            }
            (Event::Invocation(one), _) => return self.invoked(one),
            _ => return,
        };
        let connection = context.live.map(|live| &live.connection);
        let sender = Sender {
            pid: connection.and_then(|one| Some(one.owner.as_ref()?.pid)),
            environment: connection.and_then(|one| one.environment),
        };
        let request = exchange.fingerprint.map(|one| (one, destination));
        let first = request.and_then(|request| self.repeats(request, exchange, sender));
        if first.is_some() || exchange.retry_of.is_some() {
            let retry = Retry {
                destination,
                // what its producer calls a retry is one
                environment: sender.environment.filter(|_| exchange.retry_of.is_none()),
                between: (first.unwrap_or(exchange.at), exchange.at),
                is_harmful: is_unsafe(exchange),
                example: (exchange.method.as_ref())
                    .zip(exchange.target.as_ref())
                    .map(|(method, target)| format!("{method} {target}")),
            };
            match request.filter(|_| exchange.retry_of.is_none()) {
                Some(request) if is_broken(exchange) => {
                    if self.unanswered.len() < KEPT {
                        let failed = self.unanswered.entry(request).or_default();
                        failed.extend((failed.len() < MOST_RETRIES).then_some(retry));
                    }
                }
                request => {
                    let before = request.and_then(|one| self.unanswered.remove(&one));
                    before.into_iter().flatten().for_each(|one| self.take(one));
                    self.decide(exchange, first, retry);
                }
            }
        } else if let Some(request) = request {
            if let Some(Ok([retry])) = self.unanswered.remove(&request).map(<[Retry; 1]>::try_from)
            {
                self.take(retry);
            }
            self.note(request, exchange);
        }
        if let Some(request) = request {
            self.remember(request, exchange, sender);
        }
    }

    fn findings(&self, attribution: &mut Attribution<'_>) -> Vec<Finding> {
        let mut seen = self.seen.clone();
        let doubtful = self.doubtful.values().map(|(retry, _)| retry);
        let single = self.unanswered.values().filter(|failed| failed.len() == 1);
        for retry in self.open.iter().chain(doubtful).chain(single.flatten()) {
            seen.entry(retry.destination).or_default().count(retry);
        }
        let found = seen.iter().map(|(&destination, seen)| {
            let severity = Severity::Info.unless(seen.unsafe_to_repeat > 0, Severity::Error);
            let mut said = statement!(
                "{retried:#} sent again on another connection after the first failed",
                retried = requests(seen.safe + seen.unsafe_to_repeat)
            );
            if seen.unsafe_to_repeat > 0 {
                let count = Value::Number(seen.unsafe_to_repeat);
                let unsafe_ones = statement!(
                    "{not_idempotent} of them not idempotent",
                    not_idempotent = count
                );
                said = said.then(", ", unsafe_ones);
            }
            let recognised = Statement::from("recognised by method, target and body");
            let evidence = match &seen.example {
                Some(example) => statement!("for example {example}", example = text(example))
                    .then(", ", recognised),
                None => recognised,
            };
            attribution.finding(&RULE.doc, severity, destination, said, evidence)
        });
        found.collect()
    }
}
