//! The waterfall: requests on new connections against the next ones on the same, and what the
//! difference means.

use super::{CheckFacts, finding};
use intact_document::figures::NANOS_PER_MS;
use intact_document::finding::{Finding, Severity};
use intact_document::reuse_delay::{FIX, ReuseDelay};
use intact_document::statement::{Value, statement};
use intact_ledger::server_profile::WATERFALL;
use intact_ledger::{Exchange, Phase, Reuse, Row};
use serde::Serialize;
use std::collections::BTreeMap;

/// The keys of the waterfall: the phases that an exchange of a check can have, then sums.
pub const PHASES: [&str; 9] = [
    "dns",
    "connect",
    "ssl",
    "send",
    "wait",
    "headers_to_body",
    "receive",
    "without_setup",
    "total",
];
/// A difference below this is the machine's, not the server's, in milliseconds.
const NOTEWORTHY: f64 = 1.0;
/// A gap between header section and body that is worth a sentence, in milliseconds.
const GAP: f64 = 10.0;
/// A share of the first request's time below which reuse saves next to nothing.
const LITTLE: f64 = 0.1;

/// A handful of measurements, in milliseconds. Too few for percentiles: the median claims to be no
/// more than that.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SmallSample {
    /// The mean.
    pub mean: f64,
    /// The median where ten values lie beyond it on each side; a check never has as many values.
    pub p50: Option<f64>,
    /// The median.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// How many there are.
    pub count: u64,
}

impl SmallSample {
    fn of(mut values: Vec<u64>) -> Option<SmallSample> {
        values.sort_unstable();
        let (&min, &max) = (values.first()?, values.last()?);
        let in_ms = |nanos: u64| nanos as f64 / NANOS_PER_MS;
        let sum: u128 = values.iter().map(|&nanos| u128::from(nanos)).sum();
        let middle = values[values.len() / 2];
        Some(SmallSample {
            mean: sum as f64 / NANOS_PER_MS / values.len() as f64,
            p50: (values.len() >= 20).then(|| in_ms(middle)),
            median: in_ms(middle),
            min: in_ms(min),
            max: in_ms(max),
            count: values.len() as u64,
        })
    }
}

/// Times by phase; a phase that no exchange had is null.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct FreshVsReused {
    /// The first request on a new connection.
    pub fresh: BTreeMap<&'static str, Option<SmallSample>>,
    /// The next ones on the same.
    pub reused: BTreeMap<&'static str, Option<SmallSample>>,
    /// Of each of the two the request whose total is the median, phase by phase in milliseconds:
    /// its phases add up to its total.
    pub median_request: MedianRequests,
    /// How much later responses come on reused connections, if they do.
    #[serde(skip)]
    pub(crate) delay: Option<ReuseDelay>,
}

/// One request of each kind, phase by phase, in milliseconds; a phase that it did not have is left
/// out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct MedianRequests {
    /// The first request on a new connection.
    pub fresh: BTreeMap<&'static str, f64>,
    /// A next one on the same.
    pub reused: BTreeMap<&'static str, f64>,
}

impl FreshVsReused {
    /// From the exchanges that the probe marked.
    pub(super) fn of(rows: &[Row]) -> FreshVsReused {
        let (cold, warm): (Vec<&Exchange>, Vec<&Exchange>) = rows
            .iter()
            .filter_map(|row| match row {
                Row::Exchange(exchange) => Some(&**exchange),
                _ => None,
            })
            .filter(|exchange| {
                exchange.tag.as_deref() == Some(WATERFALL) && exchange.outcome.is_ok()
            })
            .partition(|exchange| exchange.reuse == Some(Reuse::Fresh));
        let times = |exchanges: &[&Exchange]| {
            let times = exchanges.iter().map(|one| (one.latency_without_setup(), 1));
            times.collect()
        };
        FreshVsReused {
            fresh: phases(&cold),
            reused: phases(&warm),
            delay: ReuseDelay::of(times(&cold), times(&warm)),
            median_request: MedianRequests {
                fresh: median_request(cold),
                reused: median_request(warm),
            },
        }
    }

    /// What a kept connection saves of the median time of a first request; negative if it costs.
    #[must_use]
    pub fn saved_share(&self) -> Option<f64> {
        let (cold, warm) = (self.cold("total")?.median, self.warm("total")?.median);
        (cold > 0.0).then(|| (cold - warm) / cold)
    }

    /// A phase of first requests.
    pub fn cold(&self, phase: &str) -> Option<&SmallSample> {
        self.fresh.get(phase)?.as_ref()
    }

    /// A phase of requests on a connection that was there.
    pub fn warm(&self, phase: &str) -> Option<&SmallSample> {
        self.reused.get(phase)?.as_ref()
    }
}

fn phases(exchanges: &[&Exchange]) -> BTreeMap<&'static str, Option<SmallSample>> {
    PHASES
        .iter()
        .map(|&key| {
            let values = exchanges
                .iter()
                .filter_map(|exchange| time_of(exchange, key))
                .collect();
            (key, SmallSample::of(values))
        })
        .collect()
}

/// The nanoseconds of a phase or of a sum of [`PHASES`].
fn time_of(exchange: &Exchange, key: &str) -> Option<u64> {
    match key {
        "total" => Some(exchange.latency()),
        "without_setup" => Some(exchange.latency_without_setup()),
        key => {
            let phase: Phase = key.parse().ok()?;
            exchange.spans.of(phase).map(|span| span.nanos())
        }
    }
}

/// The phases of the exchange whose latency is the median, as [`SmallSample`] takes it.
fn median_request(mut exchanges: Vec<&Exchange>) -> BTreeMap<&'static str, f64> {
    exchanges.sort_by_key(|exchange| exchange.latency());
    let Some(middle) = exchanges.get(exchanges.len() / 2) else {
        return BTreeMap::new();
    };
    let timed = |&key| Some((key, time_of(middle, key)? as f64 / NANOS_PER_MS));
    PHASES.iter().filter_map(timed).collect()
}

pub(super) fn findings(facts: &CheckFacts) -> Vec<Finding> {
    let fall = &facts.phases_ms;
    let (Some(cold), Some(warm)) = (fall.cold("without_setup"), fall.warm("without_setup")) else {
        return Vec::new();
    };
    if let Some(delay) = &fall.delay {
        return vec![slower(facts, delay)];
    }
    let mut found = Vec::new();
    if cold.min > warm.max && cold.median - warm.median > NOTEWORTHY {
        found.push(hidden_cost(facts, cold, warm));
    }
    if let (Some(first), Some(next)) = (fall.cold("total"), fall.warm("total"))
        && first.median > 0.0
        && (first.median - next.median) / first.median < LITTLE
    {
        found.push(little(facts, first, next));
    }
    found
}

fn slower(facts: &CheckFacts, delay: &ReuseDelay) -> Finding {
    let mut evidence = delay.evidence();
    let gap = facts.phases_ms.warm("headers_to_body");
    if let Some(gap) = gap.filter(|gap| gap.median > GAP) {
        evidence = evidence.and(statement!(
            "{headers_to_body} of it between header section and body",
            headers_to_body = Value::Duration(gap.median)
        ));
    }
    let claim = delay.claim();
    let found = finding(facts, "slower-when-reused", Severity::Warning, claim);
    found.evidence(evidence).fix(FIX)
}

fn hidden_cost(facts: &CheckFacts, cold: &SmallSample, warm: &SmallSample) -> Finding {
    let claim = statement!(
        "the first response on a connection takes {extra} longer than the next ones, without setup",
        extra = Value::Duration(cold.median - warm.median)
    );
    let evidence = statement!(
        "{fresh_responses} took {fresh_min} to {fresh_max}, {reused_responses} later ones {reused_min} to {reused_max}",
        fresh_responses = Value::Count(cold.count, "first response"),
        fresh_min = Value::Duration(cold.min),
        fresh_max = Value::Duration(cold.max),
        reused_responses = Value::Number(warm.count),
        reused_min = Value::Duration(warm.min),
        reused_max = Value::Duration(warm.max)
    );
    finding(facts, "first-request-costs-more", Severity::Info, claim)
        .evidence(evidence)
        .costing(Some(cold.median - warm.median), None)
        .fix("the server or a proxy does something once per connection (authentication, a thread, a connection of its own): one more reason to keep them")
}

fn little(facts: &CheckFacts, first: &SmallSample, next: &SmallSample) -> Finding {
    let claim = statement!(
        "reuse saves next to nothing here: {fresh} on a new connection, {reused} on a reused one",
        fresh = Value::Duration(first.median),
        reused = Value::Duration(next.median)
    );
    let evidence = statement!(
        "medians of {fresh_requests} and {reused_requests} requests; the server takes longer than the setup",
        fresh_requests = Value::Number(first.count),
        reused_requests = Value::Number(next.count)
    );
    finding(facts, "reuse-saves-little", Severity::Info, claim)
        .evidence(evidence)
        .fix("look at the server's own time first")
}

#[cfg(test)]
mod tests {
    use super::*;
    use intact_ledger::server_profile::ServerProfile;
    use intact_ledger::{Nanos, Span};

    const MS: u64 = 1_000_000;

    /// Five connections with three requests each: setup, the first response, the next ones, in
    /// milliseconds.
    fn found(setup: u64, first: u64, next: u64) -> Vec<&'static str> {
        let mut rows = Vec::new();
        for connection in 0..5u64 {
            for nth in 0..3 {
                let mut one = Exchange::new(connection * 3 + nth, Nanos(0));
                one.tag = Some(WATERFALL.into());
                one.reuse = Some(Reuse::of_position(nth as u32 + 1));
                let setup = if nth == 0 { setup * MS } else { 0 };
                if nth == 0 {
                    one.spans.connect = Some(Span::new(Nanos(0), Nanos(setup)));
                }
                let wait = if nth == 0 { first } else { next } * MS + connection * 1_000;
                one.spans.wait = Some(Span::new(Nanos(setup), Nanos(setup + wait)));
                one.end = Nanos(setup + wait);
                rows.push(Row::Exchange(Box::new(one)));
            }
        }
        let profile = ServerProfile {
            contact: Some(crate::check::responded()),
            ..ServerProfile::default()
        };
        let facts = CheckFacts::new(&profile, &rows);
        assert_eq!(facts.phases_ms.cold("total").map(|few| few.count), Some(5));
        assert_eq!(facts.phases_ms.warm("total").map(|few| few.count), Some(10));
        let median = &facts.phases_ms.median_request;
        for phases in [&median.fresh, &median.reused] {
            let parts: f64 = ["connect", "wait"]
                .iter()
                .filter_map(|key| phases.get(key))
                .sum();
            assert!((parts - phases["total"]).abs() < 1e-9, "{phases:?}");
        }
        facts.findings.iter().map(|finding| finding.rule).collect()
    }

    #[test]
    fn a_server_that_only_pays_for_the_set_up_has_nothing_to_say() {
        assert!(found(60, 30, 30).is_empty());
    }

    #[test]
    fn phases_that_few_requests_have_do_not_exceed_the_total() {
        let rows: Vec<Row> = (0..5u64)
            .map(|nth| {
                let mut one = Exchange::new(nth, Nanos(0));
                one.tag = Some(WATERFALL.into());
                one.reuse = Some(Reuse::Reused);
                let wait = (2 + nth % 2) * MS;
                one.spans.wait = Some(Span::new(Nanos(0), Nanos(wait)));
                one.end = Nanos(wait);
                if nth == 4 {
                    let late = wait + 12 * MS;
                    one.spans.headers_to_body = Some(Span::new(Nanos(wait), Nanos(late)));
                    one.end = Nanos(late);
                }
                Row::Exchange(Box::new(one))
            })
            .collect();
        let fall = FreshVsReused::of(&rows);
        assert_eq!(
            fall.warm("headers_to_body").map(|few| few.median),
            Some(12.0)
        );
        let median = &fall.median_request.reused;
        assert_eq!(median.get("headers_to_body"), None);
        assert_eq!((median["wait"], median["total"]), (3.0, 3.0));
    }

    #[test]
    fn a_cost_beyond_the_handshakes_is_separate() {
        assert_eq!(found(60, 50, 30), ["first-request-costs-more"]);
        assert!(found(60, 31, 30).is_empty(), "one millisecond is noise");
    }

    #[test]
    fn reuse_that_makes_responses_later_is_reported() {
        assert_eq!(
            found(60, 30, 74),
            ["slower-when-reused"],
            "a delayed acknowledgement"
        );
        assert_eq!(found(20, 30, 74), ["slower-when-reused"]);
    }

    #[test]
    fn a_setup_that_is_small_next_to_the_response_is_reported() {
        assert_eq!(found(5, 95, 95), ["reuse-saves-little"]);
        assert!(found(20, 80, 80).is_empty());
    }
}
