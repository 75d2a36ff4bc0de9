//! Both sides of a service: the throughput that a bench measured at its door, and the connections
//! that it opened itself meanwhile. Must not compare latencies: the comparisons of a bench do.

use super::{BenchFacts, VariantFacts};
use crate::traffic::ObservedTraffic;
use intact_document::facts::{add_findings, rule_states};
use intact_document::figures::{ObservedCounts, share};
use intact_document::finding::Finding;
use intact_document::requirement::SIDE;
use intact_document::statement::counts;
use intact_document::unobserved::Unobserved;
use intact_document::{Claim, ClaimKind, Claims, Readings, RuleState, Subject};
use intact_ledger::store::Outgoing;
use intact_ledger::{Caveat, Run};
use intact_reading::Why;
use intact_statistics::{Interval, NoInterval, mean, paired_share_saved};
use intact_traffic::{ObservedFacts, rules};
use intact_units::number::{count, per_second, signed_percent, whole_percent};
use intact_units::plural::counted;
use serde::Serialize;

/// The rule about requests that wait in a client for a connection.
const WAITING: &str = "waiting-for-pool";

/// The id of the caveat about a service that ended before its round was over.
pub const SERVICE_ENDED: &str = "service-ended";
/// The id of the caveat about a round whose outgoing side has no record.
pub const NOT_OBSERVED: &str = "service-not-observed";

/// Why what it sent is unknown.
const NO_RECORD: &str = "a round of the service has no record";

/// Whether a service opened a connection for each request that the bench had in flight. Then its
/// requests follow each other because those of the bench do, and none waits in the service.
fn has_one_for_each(round: &OutgoingRound, variant: &VariantFacts) -> bool {
    round.traffic.totals.counted.connections.opened >= variant.concurrency
}

/// What a service did while it was benched: its outgoing traffic, over all rounds, warm-up
/// included.
#[derive(Clone, Debug, Serialize, JsonSchema)]
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

impl ServiceFacts {
    /// What findings and requirements call its outgoing side.
    pub fn outgoing_name(&self) -> String {
        outgoing_name(&self.variant)
    }

    /// Its outgoing side, with the findings that are about it.
    pub(super) fn subject(&self, findings: &[Finding]) -> Subject {
        let name = self.outgoing_name();
        let outgoing = &self.outgoing;
        let mut readings = Readings::default();
        outgoing.traffic.add_to(&mut readings);
        let per_connection = outgoing.requests_per_connection.clone();
        readings.set("requests-per-connection", per_connection);
        let own = findings.iter().filter(|one| one.subject == name);
        let missing = self.unobserved();
        add_findings(&mut readings, own, &self.rules(), &missing);
        Subject {
            readings,
            unjudged: outgoing.counted.no_response().map(Why::cannot_see),
            ..Subject::new(name)
                .label("variant", &*self.variant)
                .label(SIDE, "outgoing")
        }
    }

    /// The rules that were asked about its outgoing side.
    pub(super) fn rules(&self) -> Vec<RuleState> {
        rule_states(rules::evidence(), &self.unobserved())
    }

    /// What of its outgoing side is missing.
    pub(super) fn unobserved(&self) -> Unobserved {
        let counted = &self.outgoing.counted;
        let mut missing = counted.unobserved.clone();
        if let Some(why) = counted.no_response() {
            missing.add(&Unobserved::because(why));
        }
        missing
    }

    /// What of its outgoing side failed, where anything did.
    fn failed(&self) -> Vec<Claim> {
        let all = &self.outgoing.counted;
        let (requests, connections) = (&all.requests, &all.connections);
        let all = [
            (
                "request",
                &requests.failed,
                (requests.failures(), requests.total),
            ),
            (
                "connection attempt",
                &connections.failed,
                connections.dials(),
            ),
        ];
        let failed = all.into_iter().filter(|(_, kinds, _)| !kinds.is_empty());
        let claims = failed.map(|(what, kinds, (failures, of))| {
            let kinds = counts(kinds.iter().map(|(kind, &count)| (kind, count)));
            let text = format!(
                "Service \"{}\": {} of {} failed ({kinds})",
                self.variant,
                count(failures),
                counted(of, &format!("outgoing {what}")),
            );
            Claim::new(ClaimKind::Failed, failures as f64 / of.max(1) as f64, text)
        });
        claims.collect()
    }
}

fn outgoing_name(service: &str) -> String {
    format!("{service}, outgoing")
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
        let mut findings: Vec<Finding> = Vec::new();
        for (nth, variant) in (0u32..).zip(&self.variants) {
            let rounds = outgoing.iter().filter(|one| one.place.variant == nth);
            let rounds: Vec<&OutgoingRound> = rounds.collect();
            let throughput = rates(variant);
            let counts = rounds.iter().map(|one| &one.traffic.totals.counted);
            let counts = ObservedCounts::sum(counts);
            let in_vain = rounds
                .iter()
                .map(|one| one.traffic.totals.lookups_in_vain());
            let mut counts = counts;
            if rounds.len() < variant.rounds.len().max(1) {
                counts.unobserved.add(&Unobserved::because(NO_RECORD));
            }
            let missing = counts.unobserved.clone();
            let mut outgoing = ObservedTraffic::of(counts, in_vain.sum(), &missing, 1.0);
            if rounds.is_empty() {
                let why = Why::cannot_see(NO_RECORD);
                outgoing.traffic = outgoing.traffic.unmeasured(&why);
            }
            let gain = (nth > 0).then(|| gain(&first, &throughput));
            let mut own: Vec<Finding> = Vec::new();
            for round in rounds.iter().rev() {
                for finding in &round.traffic.findings {
                    let is_known = own.iter().any(|one| one.rule == finding.rule);
                    let is_by_bench = finding.rule == WAITING && has_one_for_each(round, variant);
                    if !is_known && !is_by_bench {
                        own.push(about_outgoing(finding, &variant.name));
                    }
                }
            }
            findings.extend(own);
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
                throughput_per_s: mean(&throughput),
                throughput_gain: gain.and_then(Result::ok),
                no_interval_reason: gain.and_then(Result::err),
                outgoing,
                ledgers: rounds.iter().filter_map(|one| one.ledger.clone()).collect(),
            });
        }
        caveats.push(Caveat::new(
            "service-watched",
            "the services ran under `watch`, which carries their outgoing connections: a new connection costs them more than without it, so a gain by reuse is somewhat larger",
        ));
        self.add_caveats(caveats);
        // error responses are no throughput
        let is_judged = |one: &ServiceFacts| {
            let mut variants = self.variants.iter();
            variants.any(|variant| variant.name == one.variant && variant.no_success.is_none())
        };
        let judged: Vec<&ServiceFacts> = services.iter().filter(|one| is_judged(one)).collect();
        let is_compared = judged.len() == services.len();
        let compared = if is_compared { &judged[..] } else { &[] };
        let sentences = compared.iter().filter_map(|one| sentence(one, compared));
        let claims = sentences.map(|sentence| Claim::new(ClaimKind::Time, 0.0, sentence));
        let ended = self.caveats.iter().filter(|one| one.id == SERVICE_ENDED);
        // a service that is not there explains all that failed
        let ended = ended
            .take(1)
            .map(|one| Claim::new(ClaimKind::Failed, 1.0, one.message.clone()));
        let failed = services.iter().flat_map(ServiceFacts::failed);
        let claims = ended.chain(claims).chain(failed);
        self.findings.extend(findings);
        // before the comparisons of their latencies
        self.verdict = Claims::ranked(claims.chain(self.verdict.iter().cloned()));
        self.services = services;
    }
}

/// A finding of one round about the outgoing side of a service: what it was about is said, too.
fn about_outgoing(finding: &Finding, service: &str) -> Finding {
    let about = std::iter::once(&finding.subject).chain(&finding.also);
    Finding {
        subject: outgoing_name(service),
        also: about.cloned().collect(),
        ..finding.clone()
    }
}

/// How much more `b` is than `a`, of the means over paired rounds.
fn gain(a: &[f64], b: &[f64]) -> Result<Interval, NoInterval> {
    // the share saved is of a; more is less than nothing saved
    let saved = paired_share_saved(a, b)?;
    Ok(saved.interval().negated())
}

fn sentence(one: &ServiceFacts, all: &[&ServiceFacts]) -> Option<String> {
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
    if std::ptr::eq(one, *first) {
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
