//! A bench's figures as requirements ask for them: subjects are the variants, times in nanoseconds, shares of 1.

use super::{BenchFacts, VariantFacts};
use crate::figures::NANOS_PER_MS;
use crate::requirement::{
    FindingSelector, LoadMetric, Measured, Metric, MetricSource, NoData, Subject, TrafficMetric,
};
use crate::traffic::metrics::missing;
use intact_ledger::Failure;

const NANOS_PER_US: f64 = 1e3;

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
                    ("concurrency", variant.concurrency.to_string()),
                    ("streams", variant.streams.to_string()),
                ],
            })
            .collect()
    }

    fn value(&self, subject: usize, metric: &Metric) -> Result<Measured, NoData> {
        let variant = self.variants.get(subject).ok_or(NoData::NothingHappened)?;
        // a count of what did not work is no figure: `failed == 0` holds where every response was an error
        if let Some(why) = variant.no_success {
            return Err(NoData::CannotSee(why));
        }
        if let Metric::Traffic(metric) = metric {
            return self.traffic(variant, *metric);
        }
        self.figure(variant, metric).map(Measured::exactly)
    }

    fn missing(&self) -> Option<&str> {
        missing(&self.caveats)
    }
}

impl BenchFacts {
    /// Requests and connections: counts always have a value, zero is one.
    fn traffic(&self, variant: &VariantFacts, metric: TrafficMetric) -> Result<Measured, NoData> {
        let connections = &variant.connections;
        let requests = &variant.requests;
        let count = |count: u64| Ok(Measured::count(count, self.missing().is_none()));
        match metric {
            TrafficMetric::Requests => count(requests.total),
            TrafficMetric::Ok => count(requests.ok),
            TrafficMetric::Failed => count(requests.failures()),
            TrafficMetric::FailedWith(kind) => count(requests.failed_with(kind)),
            TrafficMetric::Stale => count(requests.failed_with(Failure::Stale)),
            TrafficMetric::Status(status) => count(requests.of_status(status)),
            TrafficMetric::Connections => count(connections.opened),
            TrafficMetric::ConnectionsFailed => count(connections.failed.values().sum()),
            TrafficMetric::Needed => count(connections.needed),
            TrafficMetric::Avoidable => {
                count(connections.opened.saturating_sub(connections.needed))
            }
            TrafficMetric::Reused => count(variant.reused),
            TrafficMetric::Lookups => count(variant.lookups),
            TrafficMetric::Reuse => present(variant.reuse),
            TrafficMetric::RequestsPerConnection => present(variant.requests_per_connection),
            TrafficMetric::Churn => present(variant.churn_per_s),
            TrafficMetric::BytesPerRequest => {
                present(variant.bytes_per_request.map(|bytes| bytes.total()))
            }
            TrafficMetric::HeaderBytesPerRequest => {
                present(variant.bytes_per_request.map(|bytes| bytes.heads()))
            }
            TrafficMetric::ResumedShare => present(variant.resumed_share),
        }
    }

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
            Metric::Load(LoadMetric::Rate) => variant.rate_per_s.ok_or(NoData::NothingHappened),
            Metric::Load(LoadMetric::ClientDelay) => variant
                .client_delay_ms
                .as_ref()
                .map(|queue| queue.share)
                .ok_or(NoData::CannotSee("the kernel gave no receive timestamps")),
            Metric::Load(LoadMetric::ServerCpuPerRequest) => variant
                .server_cpu_us_per_request
                .map(each)
                .ok_or(NoData::NotMeasured("name the server with --server-pid")),
            Metric::CpuPerRequest => variant
                .cpu_us_per_request
                .map(each)
                .ok_or(NoData::NothingHappened),
            Metric::Saved => self.saved(variant, |compared| {
                Some(compared.saved_ms?.low * NANOS_PER_MS)
            }),
            Metric::SavedShare => self.saved(variant, |compared| Some(compared.saved_share?.low)),
            Metric::Findings(selector) => Ok(self.found(variant, selector)),
            Metric::Traffic(_)
            | Metric::IdleTimeout
            | Metric::MaxRequests
            | Metric::Invocation(_) => Err(NoData::NOT_IN_DOCUMENT),
        }
    }

    fn found(&self, variant: &VariantFacts, selector: &FindingSelector) -> f64 {
        self.findings
            .iter()
            .filter(|finding| {
                finding.subject == variant.name && selector.selects(finding.rule, finding.severity)
            })
            .count() as f64
    }

    /// What the variant saves against the one that it is held against, by the mean.
    fn saved(
        &self,
        variant: &VariantFacts,
        low: impl Fn(&super::TimeDifference) -> Option<f64>,
    ) -> Result<f64, NoData> {
        let compared = self
            .comparisons
            .iter()
            .find(|compared| compared.statistic == "mean" && compared.b == variant.name)
            .ok_or_else(|| {
                if self.variants.iter().any(|one| one.no_success.is_some()) {
                    NoData::CannotSee("no request of a variant that it is compared with succeeded")
                } else {
                    NoData::NotMeasured("it is the one that others are held against")
                }
            })?;
        low(compared).ok_or(NoData::TooFew {
            had: variant.rounds.len() as u64,
            needed: crate::stats::MIN_ROUNDS as u64,
        })
    }
}

/// A figure that is absent where nothing happened.
fn present(value: Option<f64>) -> Result<Measured, NoData> {
    value.map(Measured::exactly).ok_or(NoData::NothingHappened)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requirement::Requirement;
    use intact_experiment::{AxisValues, TlsChoice};
    use intact_ledger::{
        Event, Exchange, Nanos, Producer, Protocol, Reuse, Run, Sink, Span, Tally, Vantage, Variant,
    };

    /// Two variants, ten rounds: 1 ms kept, 3 ms not kept.
    fn facts() -> BenchFacts {
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
                    concurrency: 1,
                    streams: 1,
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
                    tally.record(Event::Exchange(&one));
                }
                let bounds = intact_ledger::Round {
                    variant,
                    round,
                    span: Span::new(Nanos(0), Nanos(100_000_000)),
                    client_cpu: None,
                    server_cpu: None,
                };
                tally.record(Event::Round(&bounds));
            }
        }
        BenchFacts::new(&run, &tally, &[]).unwrap()
    }

    fn holds(expression: &str) -> bool {
        let requirement: Requirement = expression.parse().unwrap();
        requirement.evaluate(&facts()).passed()
    }

    #[test]
    fn requirements_are_held_against_variants() {
        assert!(holds("keepalive=on: mean < 1.1ms"));
        assert!(!holds("mean < 1.1ms"));
        assert!(holds("keepalive=on: reuse >= 99%"));
        assert!(
            holds("reuse >= 99%"),
            "keep-alive off fixes reuse, so it is left out"
        );
        assert!(holds("keepalive=on: saved > 1.9ms"));
        assert!(holds("status.2xx == 300"));
        assert!(holds("failed == 0"));
        assert!(holds("p90 < 4ms"));
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
