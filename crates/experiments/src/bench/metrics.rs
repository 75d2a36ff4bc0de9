//! A bench's figures as requirements ask for them: subjects are the variants, times in nanoseconds,
//! shares of 1.

use super::compare::{opposite_mean, without_reuse};
use super::{BenchFacts, OpenLoopFacts, VariantFacts};
use crate::likeness::NO_PRODUCTION;
use crate::time_difference::{TimeDifference, TimeStatistic, saved, uncompared};
use intact_document::figures::NANOS_PER_MS;
use intact_document::requirement::{
    LoadMetric, Measured, Metric, MetricSource, NoData, Statistic, Subject, TrafficMetric,
    TrafficSource,
};
use intact_document::unobserved::Unobserved;
use intact_ledger::Failure;
use intact_statistics::MIN_ROUNDS;
use intact_traffic::rules;

const NANOS_PER_US: f64 = 1e3;
/// By which variants are compared, in the headline as in requirements.
const STATISTIC: TimeStatistic = TimeStatistic::Typical;
/// The typical latency and the mean disagree on which variant is faster.
const CONTRADICTED: NoData = NoData::CannotSee(
    "the mean shows the opposite of the typical latency: look at the slowest requests",
);

/// The variants do the same.
const NO_REUSE: NoData = NoData::CannotSee("no request with keep-alive reused a connection");

impl MetricSource for BenchFacts {
    fn subjects(&self) -> Vec<Subject> {
        let on_off = |on| if on { "on" } else { "off" }.to_owned();
        self.variants
            .iter()
            .map(|variant| Subject {
                name: variant.name.clone(),
                labels: vec![
                    ("variant", variant.name.clone()),
                    ("keepalive", on_off(variant.keepalive)),
                    ("http", variant.http.clone()),
                    (
                        "tls",
                        variant.tls.clone().unwrap_or_else(|| "none".to_owned()),
                    ),
                    ("resume", on_off(variant.resume)),
                    ("dns", variant.dns.unwrap_or("system").to_owned()),
                    ("concurrency", variant.concurrency.to_string()),
                    ("streams", variant.streams.to_string()),
                    (
                        "rate",
                        variant
                            .open_loop
                            .as_ref()
                            .map_or_else(|| "closed".to_owned(), |open| open.rate.clone()),
                    ),
                ],
            })
            .collect()
    }

    fn value(&self, subject: usize, metric: &Metric) -> Result<Measured, NoData> {
        let variant = self.variants.get(subject).ok_or(NoData::NothingHappened)?;
        // a count of what did not work is no figure: `failed == 0` holds where every response was
        // an error
        if let Some(why) = variant.no_success {
            return Err(NoData::CannotSee(why));
        }
        let unobserved = Unobserved::by_caveats(&self.caveats);
        match metric {
            Metric::Unlike => match &self.like {
                Some(like) => like.unlike(subject),
                None => Err(NO_PRODUCTION),
            },
            Metric::Traffic(metric) => Ok(with_warmup(
                traffic(variant, *metric, &unobserved)?,
                variant,
                *metric,
            )),
            Metric::Findings(selector) => {
                let findings = self.findings.iter();
                let of_variant = findings.filter(|one| one.subject == variant.name);
                selector.count(of_variant, &unobserved, rules::needs)
            }
            metric => self
                .figure(variant, metric)
                .map(|value| unobserved.statistic(value)),
        }
    }

    fn unobserved(&self) -> Unobserved {
        let mut all = Unobserved::by_caveats(&self.caveats);
        for variant in &self.variants {
            if let Some(why) = variant.no_success {
                all.add(&Unobserved::because(&format!("{}: {why}", variant.name)));
            }
        }
        all
    }
}

impl BenchFacts {
    /// A figure that is not about traffic alone, in base units.
    fn figure(&self, variant: &VariantFacts, metric: &Metric) -> Result<f64, NoData> {
        let ok = variant.requests.ok;
        let each = |us: f64| us * NANOS_PER_US;
        match metric {
            Metric::Latency(statistic) => variant.latency_ms.nanos(*statistic, ok),
            Metric::WithoutSetup(statistic) => {
                variant.latency_without_setup_ms.nanos(*statistic, ok)
            }
            Metric::Phase(phase, statistic) => variant
                .phases_ms
                .get(phase.id())
                .and_then(Option::as_ref)
                .ok_or(NoData::NothingHappened)?
                .nanos(*statistic),
            Metric::Load(LoadMetric::Throughput) => {
                variant.rate_per_s.ok_or(NoData::NothingHappened)
            }
            Metric::Load(LoadMetric::Typical) => variant
                .typical_ms
                .map(|ms| ms * NANOS_PER_MS)
                .ok_or(NoData::NothingHappened),
            Metric::Load(LoadMetric::ClientDelay) => variant
                .client_delay_ms
                .as_ref()
                .map(|queue| queue.share)
                .ok_or(NoData::CannotSee("the kernel gave no receive timestamps")),
            Metric::Load(LoadMetric::ServerCpuPerRequest) => variant
                .server_cpu_us_per_request
                .map(each)
                .ok_or(NoData::NotMeasured("name the server with --server-pid")),
            Metric::Load(LoadMetric::Achieved) => {
                open_loop(variant)?.achieved.ok_or(NoData::NothingHappened)
            }
            Metric::Load(LoadMetric::SchedulingError) => {
                let open = open_loop(variant)?;
                let sent = open.due - open.unsent;
                open.scheduling_error_ms.nanos(Statistic::P99, sent)
            }
            Metric::Load(LoadMetric::Queued) => open_loop(variant)?
                .queued_share()
                .ok_or(NoData::NothingHappened),
            Metric::Load(LoadMetric::Capacity | LoadMetric::Recovery) => {
                Err(NoData::NOT_IN_DOCUMENT)
            }
            Metric::Load(LoadMetric::Gain) => {
                let service = self.services.get(variant.index as usize);
                let service = service.ok_or(NoData::NotMeasured("name services with --service"))?;
                if variant.index == 0 {
                    return Err(NoData::Baseline);
                }
                let gain = service.throughput_gain.map(|gain| gain.low);
                gain.ok_or(NoData::TooFew {
                    had: variant.rounds.len() as u64,
                    needed: MIN_ROUNDS as u64,
                })
            }
            Metric::CpuPerRequest => variant
                .cpu_us_per_request
                .map(each)
                .ok_or(NoData::NothingHappened),
            Metric::Saved => self.saved(variant, TimeDifference::least_saved),
            Metric::SavedShare => self.saved(variant, TimeDifference::least_share),
            Metric::Findings(_)
            | Metric::Traffic(_)
            | Metric::IdleTimeout
            | Metric::Drain(_)
            | Metric::Chain(_)
            | Metric::MaxRequests
            | Metric::Invocation(_)
            | Metric::Unlike
            | Metric::Fault(_) => Err(NoData::NOT_IN_DOCUMENT),
        }
    }

    /// What the variant typically saves against the one that it is compared with; no value where
    /// the mean shows the opposite.
    fn saved(
        &self,
        variant: &VariantFacts,
        low: impl Fn(&TimeDifference) -> Option<f64>,
    ) -> Result<f64, NoData> {
        let uncompared = if self.variants.iter().any(|one| one.no_success.is_some()) {
            NoData::CannotSee("no request of a variant that it is compared with succeeded")
        } else {
            uncompared(&self.comparisons, &variant.name)
        };
        let b = (&*variant.name, variant.rounds.len());
        let of_variant = |one: &&TimeDifference| one.statistic == STATISTIC && one.b == b.0;
        let compared = self.comparisons.iter().find(of_variant);
        if compared.is_some_and(|one| without_reuse(one, &self.variants).is_some()) {
            return Err(NO_REUSE);
        }
        if compared.is_some_and(|one| opposite_mean(one, &self.comparisons).is_some()) {
            return Err(CONTRADICTED);
        }
        saved(&self.comparisons, b, STATISTIC, low, uncompared)
    }
}

fn open_loop(variant: &VariantFacts) -> Result<&OpenLoopFacts, NoData> {
    let open = variant.open_loop.as_ref();
    open.ok_or(NoData::NotMeasured(
        "requests have no schedule without --rate",
    ))
}

/// Warm-up is no part of the counts, except that a requirement on failures counts every request
/// that failed.
fn with_warmup(measured: Measured, variant: &VariantFacts, metric: TrafficMetric) -> Measured {
    let failed = &variant.warmup.failed;
    let of_kind = |kind: Failure| failed.get(kind.id()).copied().unwrap_or(0);
    let more = match metric {
        TrafficMetric::Failed => variant.warmup.failures(),
        TrafficMetric::FailedWith(kind) => of_kind(kind),
        TrafficMetric::Stale => of_kind(Failure::Stale),
        _ => 0,
    };
    Measured::between(measured.low() + more as f64, measured.high() + more as f64)
}

/// Requests and connections; the reuse state of every request that was sent is known.
fn traffic(
    variant: &VariantFacts,
    metric: TrafficMetric,
    unobserved: &Unobserved,
) -> Result<Measured, NoData> {
    let connections = &variant.connections;
    let unsent = variant.open_loop.as_ref().map_or(0, |open| open.unsent);
    let present = |value: Option<f64>| value.ok_or(NoData::NothingHappened);
    let bytes = variant.bytes_per_request;
    let source = TrafficSource {
        counts: &variant.counts,
        runs: 1.0,
        avoidable: connections.opened.saturating_sub(connections.needed),
        reuse_known: variant.requests.total - unsent,
        lookups: variant.lookups,
        lookups_in_vain: 0,
        requests_per_connection: variant.requests_per_connection,
        resumed_share: variant.resumed_share.map(|share| [share, share]),
        churn_per_s: present(variant.churn_per_s),
        bytes_per_request: present(bytes.map(|one| one.total())),
        header_bytes_per_request: present(bytes.map(|one| one.heads())),
        unobserved,
    };
    source.value(metric)
}

#[cfg(test)]
mod tests {
    use super::*;
    use intact_document::requirement::Requirement;
    use intact_experiment::{AxisValues, ConnectionSettings, TlsChoice};
    use intact_ledger::{
        Caveat, Event, Exchange, Nanos, Outcome, Producer, Protocol, Reuse, Run, Sink, Span, Tally,
        Vantage, Variant,
    };
    use std::collections::BTreeMap;

    /// Two variants, ten rounds: 1 ms kept, 3 ms not kept.
    fn facts() -> BenchFacts {
        made(|_, _| {})
    }

    /// The same with exchanges changed; `nth` counts those of a variant and round, from 0.
    fn made(change: impl Fn(&mut Exchange, u64)) -> BenchFacts {
        let mut run = Run::new(
            Producer::Bench,
            "0",
            Vantage::Client,
            "2026-01-01T00:00:00Z".parse().unwrap(),
            1,
            &[],
        );
        run.varied = vec!["keepalive".to_owned()];
        for on in ["on", "off"] {
            run.variants.push(Variant {
                name: format!("keepalive={on}"),
                axes: AxisValues {
                    keepalive: on == "on",
                    http: Protocol::Http11,
                    tls: TlsChoice::None,
                    resume: false,
                    early_data: None,
                    dns: None,
                    concurrency: 1,
                    streams: 1,
                    connection: ConnectionSettings::default(),
                    open_loop: None,
                }
                .axes(),
            });
        }
        let mut tally = Tally::new();
        for round in 1..=10 {
            for variant in 0..2u32 {
                for nth in 0..30u64 {
                    let mut one = Exchange::new(nth, Nanos(0));
                    one.variant = Some(variant);
                    one.round = Some(round);
                    one.status = Some(200);
                    one.reuse = Some(if variant == 1 {
                        Reuse::Fresh
                    } else {
                        Reuse::Reused
                    });
                    one.end =
                        Nanos(1_000_000 + u64::from(variant) * 2_000_000 + nth + u64::from(round));
                    change(&mut one, nth);
                    tally.record(Event::Exchange(&one));
                }
                let bounds = intact_ledger::Round {
                    variant,
                    round,
                    span: Span::new(Nanos(0), Nanos(100_000_000)),
                    schedule: None,
                    load: None,
                    client_cpu: None,
                    client_threads: None,
                    server_cpu: None,
                    machine: None,
                    sockets: None,
                };
                tally.record(Event::Round(&bounds));
            }
        }
        BenchFacts::new(&run, &tally, &[]).unwrap()
    }

    #[test]
    fn warm_up_is_in_no_count_and_its_failures_are_reported_and_fail_a_gate() {
        // the first of each round is warm-up; in two rounds it fails
        let facts = made(|one, nth| {
            one.warmup = nth == 0;
            if nth == 0 && one.round <= Some(2) {
                one.outcome = Outcome::Failed(Failure::Reset);
            }
        });
        let kept = &facts.variants[0];
        assert_eq!((kept.requests.total, kept.requests.failures()), (290, 0));
        assert_eq!(kept.requests.status, BTreeMap::from([(200, 290)]));
        assert_eq!((kept.warmup.requests, kept.warmup.ok), (10, 8));
        assert_eq!(kept.warmup.status, BTreeMap::from([(200, 8)]));
        assert_eq!(kept.warmup.failed, BTreeMap::from([("reset", 2)]));
        let finding = facts
            .findings
            .iter()
            .find(|one| one.rule == "failed-requests");
        assert_eq!(
            &*finding.unwrap().claim,
            "2 of 10 requests of warm-up failed"
        );
        let holds = |expression: &str| {
            let requirement: Requirement = expression.parse().unwrap();
            requirement.evaluate(&facts).passed()
        };
        assert!(holds("keepalive=on: status.200 == 290"));
        assert!(!holds("keepalive=on: failed == 0"));
        assert!(holds("keepalive=on: failed == 2"));
        assert!(holds("keepalive=on: failed.reset == 2"));
        assert!(holds("keepalive=on: requests == 290"));
    }

    #[test]
    fn one_slow_request_does_not_hide_a_difference() {
        // 10 s in one round of the faster variant: its mean is that of ten rounds of 36 ms
        let facts = made(|one, nth| {
            if one.variant == Some(0) && one.round == Some(4) && nth == 7 {
                one.end = Nanos(10_000_000_000);
            }
        });
        let mean = facts
            .comparisons
            .iter()
            .find(|one| one.statistic == TimeStatistic::Mean);
        assert_eq!(mean.unwrap().significant, Some(false));
        assert!(facts.verdict[0].starts_with("At -c 1, keep-alive saves 2.00 ms of 3.00 ms"));
        let headline = facts.headline().unwrap();
        assert_eq!(Some(headline.b_ms), facts.variants[0].typical_ms);
        assert_eq!(Some(headline.a_ms), facts.variants[1].typical_ms);
        let saved = headline.saved_share.unwrap().value;
        assert!((saved - (1.0 - headline.b_ms / headline.a_ms)).abs() < 1e-12);
    }

    #[test]
    fn keep_alive_that_no_request_used_saves_nothing_that_is_known() {
        let facts = made(|one, nth| {
            one.reuse = Some(Reuse::Fresh);
            // a mean that shows the opposite is no news then
            if one.variant == Some(0) && nth.is_multiple_of(8) {
                one.end = Nanos(100_000_000 + nth);
            }
        });
        assert!(
            !facts.verdict[0].contains("outweigh"),
            "{:?}",
            facts.verdict
        );
        assert!(
            facts.verdict[0].starts_with("At -c 1, no request of keepalive=on reused"),
            "{:?}",
            facts.verdict
        );
        let saved: Requirement = "saved > 0ms".parse().unwrap();
        assert!(!saved.evaluate(&facts).passed());
        assert!(facts.headline_is_without_reuse());
    }

    #[test]
    fn a_mean_that_shows_the_opposite_is_named_and_no_gate_passes() {
        // every eighth request of the faster variant takes 100 ms
        let facts = made(|one, nth| {
            if one.variant == Some(0) && nth.is_multiple_of(8) {
                one.end = Nanos(100_000_000 + nth);
            }
        });
        assert!(facts.headline_is_contradicted());
        let sentence = &facts.verdict[0];
        assert!(
            sentence.contains(
                "the slowest requests outweigh that: the mean is 14.2 ms instead of 3.00 ms"
            ),
            "{sentence}"
        );
        let requirement: Requirement = "keepalive=on: saved > 0ms".parse().unwrap();
        assert!(!requirement.evaluate(&facts).passed());
    }

    fn holds(expression: &str) -> bool {
        let requirement: Requirement = expression.parse().unwrap();
        requirement.evaluate(&facts()).passed()
    }

    #[test]
    fn requirements_are_checked_for_variants() {
        assert!(holds("keepalive=on: mean < 1.1ms"));
        assert!(!holds("mean < 1.1ms"));
        assert!(holds("keepalive=on: typical < 1.1ms"));
        assert!(!holds("typical < 1.1ms"));
        assert!(holds("keepalive=on: reuse >= 99%"));
        assert!(
            holds("reuse >= 99%"),
            "keep-alive off fixes reuse, so it is left out"
        );
        assert!(holds("keepalive=on: saved > 1.9ms"));
        assert!(
            holds("saved > 1.9ms"),
            "the others are compared with keep-alive off, so it is left out"
        );
        assert!(!holds("saved > 3ms"));
        assert!(!holds("keepalive=off: saved > -1s"));
        assert!(holds("status.2xx == 300"));
        assert!(holds("failed == 0"));
        assert!(holds("p90 < 4ms"));
    }

    #[test]
    fn a_variant_without_success_is_missing_traffic() {
        let mut facts = facts();
        assert_eq!(facts.unobserved().reason(), None);
        facts.variants[1].no_success = Some("no measured request succeeded");
        assert_eq!(
            facts.unobserved().reason().unwrap(),
            "keepalive=off: no measured request succeeded"
        );
    }

    #[test]
    fn missing_traffic_decides_nothing() {
        let mut facts = facts();
        facts
            .caveats
            .push(Caveat::incomplete("cut", "the ledger was cut"));
        for expression in ["failed == 0", "findings == 0", "mean < 1s", "reuse >= 0.1%"] {
            let requirement: Requirement = format!("keepalive=on: {expression}").parse().unwrap();
            assert!(!requirement.evaluate(&facts).passed(), "{expression}");
        }
    }

    #[test]
    fn a_metric_without_data_fails() {
        assert!(!holds("server-cpu-per-request < 1s"));
        assert!(!holds("p999 < 1s"), "300 exchanges do not support p99.9");
        assert!(!holds("keepalive=off: saved < 1s"), "it is the baseline");
    }

    #[test]
    fn the_verdict_says_what_keep_alive_saves() {
        let sentence = &facts().verdict[0];
        assert_eq!(
            sentence,
            "At -c 1, keep-alive saves 2.00 ms of 3.00 ms per request (67 %, 67 % to 67 %)"
        );
    }
}
