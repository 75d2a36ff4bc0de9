//! `h2-stream-limit`: requests wait in the client until the server's limit of concurrent streams
//! lets them through.

use super::{Attribution, Fold, KEPT, RuleRow};
use crate::overlap::Overlap;
use crate::{Context, HAND_BACK};
use intact_document::finding::{Finding, RuleDoc, Severity};
use intact_document::statement::{Value, nanos, requests, statement};
use intact_ledger::{ConnectionId, Event, Evidence, Exchange, Nanos, Span};
use std::collections::{BTreeMap, HashMap, VecDeque};

/// Streams that took the place of another from which on it speaks.
const LEAST: u64 = 10;
/// Their share of all requests from which on it is more than a note.
const MANY: f64 = 0.05;
/// Ends that are remembered for each connection.
const ENDS: usize = 512;

pub(super) static RULE: RuleRow = RuleRow {
    doc: RuleDoc {
        id: "h2-stream-limit",
        what: "An HTTP/2 connection carries as many streams as the server allows (SETTINGS_MAX_CONCURRENT_STREAMS). The next request waits in the client until one ends, which no figure of the wire shows.",
        evidence: "The peak of concurrent streams on a connection against the limit that the server announced; streams that began within 5 ms of the end of another. The time given is the most that is possible: from the beginning of the burst on.",
        threshold: "The peak is the limit, and 10 streams took the place of another. A warning where these are 5 % of the requests.",
        false_positives: "A client that itself limits its concurrency to the same number.",
        fix: "Raise the server's limit (nginx `http2_max_concurrent_streams`, Go `http.HTTP2Config.MaxConcurrentStreams`, Node `settings.maxConcurrentStreams`), or let the client open another connection at the limit",
        risk: "More streams at the same time are more work for the server",
        needs: &[Evidence::Attempts, Evidence::Announcements],
    },
    fold: || Box::<H2StreamLimit>::default(),
};

/// The streams of one connection.
#[derive(Default)]
struct Streams {
    overlap: Overlap,
    /// The latest ends.
    ends: VecDeque<Nanos>,
    newest_end: Nanos,
    followed: u64,
    /// The burst that goes on: when it began, and its streams.
    burst: (Nanos, u64),
    /// Streams of the largest burst.
    largest: u64,
    /// The time from the beginning of their burst to the streams that followed another, in
    /// nanoseconds.
    waited: u64,
}

impl Streams {
    fn add(&mut self, exchange: &Exchange) {
        let at = exchange.taken();
        let mut before = self.ends.iter().rev().skip_while(|end| **end > at);
        let latest = before.next();
        let is_followed = latest.is_some_and(|end| at <= end.after(HAND_BACK));
        let (began, streams) = self.burst;
        self.burst = if at > self.newest_end.after(HAND_BACK) || streams == 0 {
            (at, 1)
        } else {
            (began.min(at), streams + 1)
        };
        self.newest_end = self.newest_end.max(exchange.end);
        self.largest = self.largest.max(self.burst.1);
        if is_followed {
            self.followed += 1;
            self.waited = self.waited.saturating_add(at.since(self.burst.0));
        }
        self.overlap.add(Span::new(at, exchange.end));
        if self.ends.len() == ENDS {
            self.ends.pop_front();
        }
        self.ends.push_back(exchange.end);
    }
}

/// Connections on which the limit was reached.
#[derive(Clone, Copy, Default)]
struct Seen {
    limit: u64,
    followed: u64,
    largest: u64,
    waited: u64,
}

impl Seen {
    fn add(&mut self, limit: u64, streams: &Streams) {
        if streams.overlap.peak() >= limit {
            self.limit = self.limit.max(limit);
            self.followed += streams.followed;
            self.largest = self.largest.max(streams.largest);
            self.waited = self.waited.saturating_add(streams.waited);
        }
    }
}

#[derive(Default)]
struct H2StreamLimit {
    open: HashMap<ConnectionId, (usize, u64, Streams)>,
    seen: BTreeMap<usize, Seen>,
}

impl Fold for H2StreamLimit {
    fn observe(&mut self, event: Event<'_>, context: &Context<'_>) {
        match (event, context.live) {
            (Event::Exchange(exchange), Some(live)) => {
                let Some(limit) = live.connection.terms.max_streams else {
                    return;
                };
                let id = live.connection.id;
                if limit < 2 || (self.open.len() >= KEPT && !self.open.contains_key(&id)) {
                    return;
                }
                let streams = Streams::default();
                let first = (live.destination, u64::from(limit), streams);
                self.open.entry(id).or_insert(first).2.add(exchange);
            }
            (Event::Closed(closed), _) => {
                if let Some((destination, limit, streams)) = self.open.remove(&closed.connection) {
                    self.seen
                        .entry(destination)
                        .or_default()
                        .add(limit, &streams);
                }
            }
            _ => {}
        }
    }

    fn findings(&self, attribution: &mut Attribution<'_>) -> Vec<Finding> {
        let mut all = self.seen.clone();
        for (destination, limit, streams) in self.open.values() {
            all.entry(*destination).or_default().add(*limit, streams);
        }
        let mut findings = Vec::new();
        for (&destination, seen) in all.iter().filter(|(_, seen)| seen.followed >= LEAST) {
            let total = attribution.counts(destination).requests;
            let is_many = seen.followed as f64 >= MANY * total as f64;
            let severity = Severity::Info.unless(is_many, Severity::Warning);
            let said = statement!(
                "{streams} ran at the same time on a connection, which is the server's limit",
                streams = Value::Count(seen.limit, "stream")
            );
            let evidence = statement!(
                "{followed} of {requests} were sent within 5 ms of the end of another: until then they may have waited in the client",
                followed = Value::Number(seen.followed),
                requests = requests(total)
            )
            .and(statement!(
                "together they waited {waited} at most",
                waited = nanos(seen.waited as f64)
            ));
            let enough = statement!(
                "{sufficient} at the same time would have carried the largest burst without waiting",
                sufficient = Value::Count(seen.largest, "stream")
            );
            let mut finding = attribution.finding(&RULE.doc, severity, destination, said, evidence);
            finding.fix = finding.fix.and(enough);
            findings.push(finding);
        }
        findings
    }
}
