//! Does a load test use connections as production does? If not, its percentiles are those of other
//! traffic.
//!
//! [`ConnectionBehaviour`] is what a variant of a bench or a recorded run does with connections;
//! [`Likeness`] compares the tests with production, aspect by aspect. An aspect that either side
//! does not show is unknown, never alike.

use intact_document::{Claim, ClaimKind};
use intact_ledger::kinds;
use intact_reading::{Reading, Why};
use intact_traffic::{Figures, ObservedFacts};
use intact_units::number::{percent, time};
use serde::Serialize;

/// Numbers that differ by a greater factor are unlike.
const FACTOR: f64 = 2.0;
/// The same of idle times, which vary more.
const IDLE_FACTOR: f64 = 5.0;
/// Idle times below this, in milliseconds, are alike: no server closes a connection in between.
const SHORT_IDLE_MS: f64 = 1000.0;
/// Connections per request that differ by less are alike, whatever their factor: too few to move a
/// p99.
const FEW: f64 = 0.01;
/// Shares that differ by less are alike.
const SHARE: f64 = 0.1;
/// Tests that have a sentence.
const SENTENCES: usize = 3;
/// What to do where a test differs.
const REMEDY: &str =
    "Open and reuse connections in the test as production does: `intact help realistic-load-test`";

/// Nothing to compare with.
pub(crate) const NO_PRODUCTION: Why =
    Why::not_measured("name the ledger of production with --like, and a test next to it");
/// The aspect that a comparison needs is not known.
const UNKNOWN: Why =
    Why::cannot_see("connections per request are not known of both, the test and production");

/// How connections are used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct ConnectionBehaviour {
    /// The variant, or the ledger.
    pub name: String,
    /// Requests that were seen.
    pub requests: u64,
    /// Connections opened for each request.
    pub connections_per_request: Option<f64>,
    /// Share of the requests on a connection that an earlier one had used.
    pub reuse: Option<f64>,
    /// Requests at a time, on average over the recording.
    pub concurrency: Option<f64>,
    /// Mean idle time before a connection was used again, in milliseconds.
    pub idle_ms: Option<f64>,
    /// TLS handshakes that resumed a session, as a share of all.
    pub resumed_share: Option<f64>,
    /// The HTTP version of most connections.
    pub http: Option<String>,
}

kinds! {
    /// What is compared.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Aspect, words {
        /// Connections opened for each request.
        ConnectionsPerRequest = "connections per request",
        /// Reuse.
        Reuse = "reused",
        /// Requests at a time.
        Concurrency = "requests at a time",
        /// Idle time before a reuse.
        Idle = "idle before reuse",
        /// TLS handshakes that resumed a session.
        Resumption = "TLS resumed",
        /// The HTTP version.
        Http = "HTTP version",
    }
}

/// The result of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Alikeness {
    /// Close enough.
    Alike,
    /// Not close enough.
    Differs,
    /// One side does not show it.
    Unknown,
}

/// One aspect of a test and of production.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AspectComparison {
    /// What is compared.
    pub aspect: Aspect,
    /// The value of the test, in words.
    pub test: Option<String>,
    /// The value of production, in words.
    pub production: Option<String>,
    /// Whether they are alike.
    pub result: Alikeness,
}

/// A test, compared with production.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TestLikeness {
    /// What the test does.
    pub behaviour: ConnectionBehaviour,
    /// Each aspect.
    pub aspects: Vec<AspectComparison>,
    /// How many aspects differ.
    pub unlike: u64,
}

/// Tests, compared with production.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Likeness {
    /// What production does.
    pub production: ConnectionBehaviour,
    /// The tests.
    pub tests: Vec<TestLikeness>,
}

impl ConnectionBehaviour {
    /// Of a recorded run: of the destination with this host, or else of all.
    pub fn of_traffic(
        name: &str,
        facts: &ObservedFacts,
        host: Option<&str>,
    ) -> ConnectionBehaviour {
        let mut destinations = facts.destinations.iter();
        let same = destinations.find(|one| host.is_some() && one.host.as_deref() == host);
        let (name, figures) = match same {
            Some(one) => (format!("{} in {name}", one.origin), &one.figures),
            None => (name.to_owned(), &facts.totals),
        };
        let counted = facts.destinations.iter();
        let counted = counted.filter(|one| same.is_none_or(|same| same.origin == one.origin));
        let protocols = counted.flat_map(|one| &one.protocols);
        let http = protocols.max_by_key(|(_, connections)| **connections);
        ConnectionBehaviour {
            http: http.map(|(protocol, _)| (*protocol).to_owned()),
            ..ConnectionBehaviour::of_figures(name, figures)
        }
    }

    fn of_figures(name: String, figures: &Figures) -> ConnectionBehaviour {
        let counted = &figures.counted;
        let (requests, opened) = (counted.requests.total, counted.connections.opened);
        // what cannot be seen inside has connections and no requests
        let is_whole = requests > 0 && figures.opaque == 0;
        let churn = figures.churn_per_s.low();
        let seconds = (churn.is_finite() && churn > 0.0).then(|| opened as f64 / churn);
        ConnectionBehaviour {
            name,
            requests,
            connections_per_request: is_whole.then(|| opened as f64 / requests as f64),
            reuse: counted.reuse,
            concurrency: figures
                .outbound_ms
                .zip(seconds)
                .map(|(outbound, seconds)| outbound / 1e3 / seconds),
            idle_ms: figures.idle_gaps.as_ref().and_then(|gaps| gaps.mean_ms),
            resumed_share: figures.resumed_share.value(),
            http: None,
        }
    }

    fn aspects(&self, production: &ConnectionBehaviour) -> Vec<AspectComparison> {
        type Number = fn(&ConnectionBehaviour) -> Option<f64>;
        type IsAlike = fn(f64, f64) -> bool;
        type Row = (Aspect, Number, fn(f64) -> String, IsAlike);
        const NUMBERS: [Row; 5] = [
            (
                Aspect::ConnectionsPerRequest,
                |one| one.connections_per_request,
                two_digits,
                |a, b| (a - b).abs() < FEW || is_within(a, b, FACTOR),
            ),
            (Aspect::Reuse, |one| one.reuse, percent, is_same_share),
            (
                Aspect::Concurrency,
                |one| one.concurrency,
                two_digits,
                |a, b| is_within(a, b, FACTOR),
            ),
            (
                Aspect::Idle,
                |one| one.idle_ms,
                time,
                |a, b| a.max(b) < SHORT_IDLE_MS || is_within(a, b, IDLE_FACTOR),
            ),
            (
                Aspect::Resumption,
                |one| one.resumed_share,
                percent,
                is_same_share,
            ),
        ];
        let numbers = NUMBERS.map(|(aspect, of, words, is_alike)| {
            let (test, production) = (of(self), of(production));
            AspectComparison {
                aspect,
                test: test.map(words),
                production: production.map(words),
                result: result(test.zip(production).map(|(a, b)| is_alike(a, b))),
            }
        });
        let versions = self.http.as_ref().zip(production.http.as_ref());
        let http = AspectComparison {
            aspect: Aspect::Http,
            test: self.http.clone(),
            production: production.http.clone(),
            result: result(versions.map(|(a, b)| a == b)),
        };
        numbers.into_iter().chain([http]).collect()
    }
}

fn result(is_alike: Option<bool>) -> Alikeness {
    match is_alike {
        None => Alikeness::Unknown,
        Some(true) => Alikeness::Alike,
        Some(false) => Alikeness::Differs,
    }
}

fn is_within(a: f64, b: f64, factor: f64) -> bool {
    a <= b * factor && b <= a * factor
}

fn is_same_share(a: f64, b: f64) -> bool {
    (a - b).abs() < SHARE
}

fn two_digits(number: f64) -> String {
    format!("{number:.2}")
}

impl Likeness {
    /// Compares tests with production.
    pub fn new(production: ConnectionBehaviour, tests: Vec<ConnectionBehaviour>) -> Likeness {
        let test = |behaviour: ConnectionBehaviour| {
            let aspects = behaviour.aspects(&production);
            let differs = |one: &&AspectComparison| one.result == Alikeness::Differs;
            TestLikeness {
                unlike: aspects.iter().filter(differs).count() as u64,
                aspects,
                behaviour,
            }
        };
        Likeness {
            tests: tests.into_iter().map(test).collect(),
            production,
        }
    }

    /// A claim for each of the first tests, and where to read how a test becomes alike.
    pub fn claims(&self) -> Vec<Claim> {
        let tests = self.tests.iter().take(SENTENCES);
        let mut claims: Vec<Claim> = tests.map(TestLikeness::claim).collect();
        if self.tests.iter().any(|test| test.unlike > 0) {
            claims.push(Claim::new(ClaimKind::Note, 0.0, REMEDY));
        }
        claims
    }

    /// The figure `unlike` of a test: aspects that differ. Without connections per request on both
    /// sides it is unknown.
    pub(crate) fn unlike(&self, test: usize) -> Reading {
        let Some(test) = self.tests.get(test) else {
            return Reading::unknown(NO_PRODUCTION);
        };
        let is_known = |one: &AspectComparison| {
            one.aspect != Aspect::ConnectionsPerRequest || one.result != Alikeness::Unknown
        };
        match test.aspects.iter().all(is_known) {
            true => Reading::count(test.unlike),
            false => Reading::unknown(UNKNOWN),
        }
    }
}

impl TestLikeness {
    fn claim(&self) -> Claim {
        let claim = |kind: ClaimKind, sentence: String| Claim::new(kind, 0.0, sentence);
        let name = &self.behaviour.name;
        let of = |aspect| self.aspects.iter().find(|one| one.aspect == aspect);
        let values = |one: &AspectComparison| {
            let [test, production] =
                [&one.test, &one.production].map(|value| value.as_deref().unwrap_or("unknown"));
            (test.to_owned(), production.to_owned())
        };
        let first = of(Aspect::ConnectionsPerRequest);
        if let Some(one) = first.filter(|one| one.result == Alikeness::Differs) {
            let (test, production) = values(one);
            let text = format!(
                "{name} opens {test} connections per request, production {production}: its p99 is not production's"
            );
            return claim(ClaimKind::Opened, text);
        }
        if first.is_none_or(|one| one.result == Alikeness::Unknown) {
            let text = format!(
                "Whether {name} uses connections as production does is unknown: one of them shows no request of each connection"
            );
            return claim(ClaimKind::Unseen, text);
        }
        let differs = self.aspects.iter();
        let differs = differs.filter(|one| one.result == Alikeness::Differs);
        let differs: Vec<String> = differs
            .map(|one| {
                let (test, production) = values(one);
                format!("{} {test} against {production}", one.aspect.words())
            })
            .collect();
        if differs.is_empty() {
            let text = format!("{name} uses connections as production does");
            return claim(ClaimKind::Well, text);
        }
        let text = format!(
            "{name} opens as many connections per request as production, and differs in: {}",
            differs.join(", ")
        );
        claim(ClaimKind::Opened, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn behaviour(name: &str, connections: f64, reuse: f64) -> ConnectionBehaviour {
        ConnectionBehaviour {
            name: name.to_owned(),
            requests: 1000,
            connections_per_request: Some(connections),
            reuse: Some(reuse),
            concurrency: Some(4.0),
            idle_ms: Some(20.0),
            resumed_share: None,
            http: Some("1.1".to_owned()),
        }
    }

    fn only(test: ConnectionBehaviour) -> Likeness {
        Likeness::new(behaviour("prod", 0.03, 0.97), vec![test])
    }

    fn sentences(like: &Likeness) -> Vec<String> {
        let claims = like.claims().into_iter();
        claims.map(|one| one.statement.to_string()).collect()
    }

    #[test]
    fn a_test_without_reuse_is_unlike_production_with_it() {
        let like = only(behaviour("keepalive=off", 1.0, 0.0));
        assert_eq!(
            sentences(&like),
            [
                "keepalive=off opens 1.00 connections per request, production 0.03: its p99 is not production's",
                REMEDY
            ]
        );
        assert_eq!(like.tests[0].unlike, 2);
        assert_eq!(like.unlike(0), Reading::count(2));
    }

    #[test]
    fn an_aspect_that_one_side_lacks_is_unknown_and_not_alike() {
        let like = only(behaviour("keepalive=on", 0.04, 0.96));
        assert_eq!(
            sentences(&like),
            ["keepalive=on uses connections as production does"]
        );
        let of = |aspect| {
            like.tests[0]
                .aspects
                .iter()
                .find(|one| one.aspect == aspect)
        };
        assert_eq!(of(Aspect::Resumption).unwrap().result, Alikeness::Unknown);
        let opaque = ConnectionBehaviour {
            connections_per_request: None,
            ..behaviour("keepalive=on", 0.0, 1.0)
        };
        let like = only(opaque);
        assert!(like.unlike(0).is_unknown());
        assert!(sentences(&like)[0].contains("is unknown"));
    }

    #[test]
    fn other_aspects_are_named_with_both_values() {
        let test = ConnectionBehaviour {
            concurrency: Some(50.0),
            idle_ms: Some(6000.0),
            http: Some("2".to_owned()),
            ..behaviour("c=50", 0.03, 0.9)
        };
        assert_eq!(
            sentences(&only(test)),
            [
                "c=50 opens as many connections per request as production, and differs in: requests at a time 50.00 against 4.00, idle before reuse 6.00 s against 20.0 ms, HTTP version 2 against 1.1",
                REMEDY
            ]
        );
    }
}
