//! Both sides of a service: the throughput that a bench measured at its door, and the connections
//! that it opened itself meanwhile. Must not compare latencies: the comparisons of a bench do.

use super::{BenchFacts, VariantFacts};
use crate::traffic::ObservedTraffic;
use intact_document::figures::{ObservedCounts, share};
use intact_document::finding::Finding;
use intact_document::{Claim, ClaimKind, Claims};
use intact_ledger::store::Outgoing;
use intact_ledger::{Caveat, Run};
use intact_statistics::{Interval, NoInterval, mean, paired_share_saved};
use intact_traffic::ObservedFacts;
use intact_units::number::{per_second, signed_percent, whole_percent};
use intact_units::plural::counted;
use serde::Serialize;

/// The rule about requests that wait in a client for a connection.
const WAITING: &str = "waiting-for-pool";

/// Whether a service opened a connection for each request that the bench had in flight. Then its
/// requests follow each other because those of the bench do, and none waits in the service.
fn has_one_for_each(round: &OutgoingRound, variant: &VariantFacts) -> bool {
    round.traffic.totals.counted.connections.opened >= variant.concurrency
}

/// What a service did while it was benched: its outgoing traffic, over all rounds, warm-up
/// included.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServiceFacts {
    /// The variant that benched it.
    pub variant: String,
    /// Its outgoing requests and connections.
    #[serde(flatten)]
    pub outgoing: ObservedTraffic,
    /// Connections that it opened for each outgoing request.
    pub connections_per_request: Option<f64>,
    /// Complete inbound requests a second, the mean of the rounds.
    pub throughput_per_s: Option<f64>,
    /// What more than the first service's that is, as a share; absent for the first service, and
    /// without an interval.
    pub throughput_gain: Option<Interval>,
    /// Why the gain has no interval.
    pub no_interval_reason: Option<NoInterval>,
    /// What stands out in its outgoing traffic, each rule once, of the last round that had it.
    pub findings: Vec<Finding>,
    /// The ledgers of its outgoing traffic, one for each round: folders inside the run's ledger.
    /// Empty where none was kept.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ledgers: Vec<String>,
}

/// What a service sent and opened in one round.
pub struct OutgoingRound {
    /// Which service and round.
    pub place: Outgoing,
    /// The folder of its ledger inside the run's, if one was kept.
    pub ledger: Option<String>,
    /// Its outgoing traffic.
    pub traffic: ObservedFacts,
}

impl BenchFacts {
    /// Whether the variants of a run are services.
    pub fn is_of_services(run: &Run) -> bool {
        run.varied.iter().any(|axis| axis == "service")
    }

    /// Adds what services did while they were benched, in the order of the rounds.
    pub fn add_services(&mut self, outgoing: &[OutgoingRound]) {
        let rates = |variant: &VariantFacts| -> Vec<f64> {
            let rounds = variant.rounds.iter();
            rounds.filter_map(|round| round.rate_per_s).collect()
        };
        let first = self.variants.first().map(rates).unwrap_or_default();
        let mut services = Vec::new();
        let mut caveats: Vec<Caveat> = Vec::new();
        for (nth, variant) in (0u32..).zip(&self.variants) {
            let rounds = outgoing.iter().filter(|one| one.place.variant == nth);
            let rounds: Vec<&OutgoingRound> = rounds.collect();
            let own = rates(variant);
            let counts = rounds.iter().map(|one| &one.traffic.totals.counted);
            let counts = ObservedCounts::sum(counts);
            let in_vain = rounds
                .iter()
                .map(|one| one.traffic.totals.lookups_in_vain());
            let missing = counts.unobserved.clone();
            let outgoing = ObservedTraffic::of(counts, in_vain.sum(), &missing, 1.0);
            let gain = (nth > 0).then(|| gain(&first, &own));
            let mut findings: Vec<Finding> = Vec::new();
            for round in rounds.iter().rev() {
                for finding in &round.traffic.findings {
                    let is_known = findings.iter().any(|one| one.rule == finding.rule);
                    let is_by_bench = finding.rule == WAITING && has_one_for_each(round, variant);
                    if !is_known && !is_by_bench {
                        findings.push(finding.clone());
                    }
                }
            }
            for caveat in rounds.iter().flat_map(|one| &one.traffic.caveats) {
                let words = format!("{}, outgoing: {}", variant.name, caveat.message);
                let of_service = Caveat::new(&*caveat.id, words);
                if !self.caveats.contains(&of_service) && !caveats.contains(&of_service) {
                    caveats.push(of_service);
                }
            }
            services.push(ServiceFacts {
                variant: variant.name.clone(),
                connections_per_request: share(
                    outgoing.counted.connections.opened,
                    outgoing.counted.requests.total,
                ),
                throughput_per_s: mean(&own),
                throughput_gain: gain.and_then(Result::ok),
                no_interval_reason: gain.and_then(Result::err),
                findings,
                outgoing,
                ledgers: rounds.iter().filter_map(|one| one.ledger.clone()).collect(),
            });
        }
        caveats.push(Caveat::new(
            "service-watched",
            "the services ran under `watch`, which carries their outgoing connections: a new connection costs them more than without it, so a gain by reuse is somewhat larger",
        ));
        self.add_caveats(caveats);
        let sentences = services.iter().filter_map(|one| sentence(one, &services));
        let claims = sentences.map(|sentence| Claim::new(ClaimKind::Time, 0.0, sentence));
        // before the comparisons of their latencies
        self.verdict = Claims::ranked(claims.chain(self.verdict.iter().cloned()));
        self.services = services;
    }
}

/// How much more `b` is than `a`, of the means over paired rounds.
fn gain(a: &[f64], b: &[f64]) -> Result<Interval, NoInterval> {
    // the share saved is of a; more is less than nothing saved
    let saved = paired_share_saved(a, b)?;
    Ok(saved.interval().negated())
}

fn sentence(one: &ServiceFacts, all: &[ServiceFacts]) -> Option<String> {
    let throughput = per_second(one.throughput_per_s?);
    let name = &one.variant;
    let first = all.first()?;
    if all.len() == 1 {
        let reuse = one
            .outgoing
            .counted
            .reuse
            .map_or_else(String::new, |reuse| {
                format!(", {} reused", whole_percent(reuse))
            });
        return Some(format!(
            "Service \"{name}\": {throughput} inbound requests/s. It opened {}{reuse}.",
            opened(one)
        ));
    }
    if std::ptr::eq(one, first) {
        return None;
    }
    let before = first.throughput_per_s.map(per_second);
    let before = before.unwrap_or_else(|| "no".to_owned());
    let gained = match one.throughput_gain {
        Some(gain) => format!(
            "{}, {} to {}",
            signed_percent(gain.value),
            signed_percent(gain.low),
            signed_percent(gain.high)
        ),
        None => "no interval".to_owned(),
    };
    Some(format!(
        "Service \"{name}\" carries {throughput} instead of {before} inbound requests/s ({gained}). It opened {}, \"{}\" {}.",
        opened(one),
        first.variant,
        opened(first)
    ))
}

/// Connections for the outgoing requests, in words.
fn opened(one: &ServiceFacts) -> String {
    format!(
        "{} for {}",
        counted(one.outgoing.counted.connections.opened, "connection"),
        counted(one.outgoing.counted.requests.total, "outgoing request")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_throughput_is_a_positive_gain_with_an_interval_around_it() {
        let a = [100.0, 101.0, 99.0, 100.0, 102.0, 98.0, 100.0, 100.0];
        let b = a.map(|rate| rate * 1.4);
        let one = gain(&a, &b).unwrap();
        assert!((one.value - 0.4).abs() < 1e-9, "{one:?}");
        assert!(one.low <= one.value && one.value <= one.high);
        assert!(gain(&b, &a).unwrap().high < 0.0);
        assert!(gain(&a[..3], &b[..3]).is_err());
    }
}
