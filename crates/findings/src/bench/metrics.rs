//! A bench's figures as requirements ask for them: subjects are the variants, times in nanoseconds, shares of 1.

use super::{BenchFacts, Latency, VariantFacts};
use crate::finding::Severity;
use crate::requirement::{Measured, Metric, MetricSource, NoData, Subject};
use crate::traffic::metrics::missing;

const NANOS_PER_MS: f64 = 1e6;
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
        let name = metric.entry().name;
        if let Some(count) = counted(variant, name, metric.parameter()) {
            return Ok(Measured::count(count, self.missing().is_none()));
        }
        self.figure(variant, metric).map(Measured::exactly)
    }

    fn missing(&self) -> Option<&str> {
        missing(&self.caveats)
    }
}

impl BenchFacts {
    /// A figure that is no count.
    fn figure(&self, variant: &VariantFacts, metric: &Metric) -> Result<f64, NoData> {
        let name = metric.entry().name;
        let parameter = metric.parameter();
        if let Some(statistic) = name.strip_prefix("without-setup.") {
            return latency(
                &variant.latency_without_setup_ms,
                statistic,
                variant.requests.ok,
            );
        }
        if let Some((phase, statistic)) = name.split_once('.')
            && let Some(time) = variant.phases_ms.get(&*phase.replace('-', "_"))
        {
            let time = time.as_ref().ok_or(NoData::NothingHappened)?;
            let ms = match statistic {
                "mean" => Some(time.mean),
                _ => time.p50,
            };
            return ms
                .map(|ms| ms * NANOS_PER_MS)
                .ok_or(too_few(time.count, 0.5));
        }
        let present = |value: Option<f64>| value.ok_or(NoData::NothingHappened);
        match name {
            "reuse" => present(variant.reuse),
            "requests-per-connection" => present(variant.requests_per_connection),
            "rate" => present(variant.rate_per_s),
            "churn" => present(variant.churn_per_s),
            "client-delay" => variant
                .client_delay_ms
                .as_ref()
                .map(|queue| queue.share)
                .ok_or(NoData::CannotSee("the kernel gave no receive stamps")),
            "cpu-per-request" => present(variant.cpu_us_per_request.map(|us| us * NANOS_PER_US)),
            "server-cpu-per-request" => variant
                .server_cpu_us_per_request
                .map(|us| us * NANOS_PER_US)
                .ok_or(NoData::NotMeasured("name the server with --server-pid")),
            "bytes-per-request" => present(variant.bytes_per_request.map(|bytes| bytes.total())),
            "header-bytes-per-request" => {
                present(variant.bytes_per_request.map(|bytes| bytes.heads()))
            }
            "resumed-share" => present(variant.resumed_share),
            "saved" => self.saved(variant, |compared| {
                Some(compared.saved_ms?.low * NANOS_PER_MS)
            }),
            "saved-share" => self.saved(variant, |compared| Some(compared.saved_share?.low)),
            "findings" => Ok(self.found(variant, |_, _| true)),
            "findings.<rule>" => Ok(self.found(variant, |rule, _| Some(rule) == parameter)),
            "warnings" => Ok(self.found(variant, |_, severity| severity == Severity::Warning)),
            "errors" => Ok(self.found(variant, |_, severity| severity == Severity::Error)),
            statistic => latency(&variant.latency_ms, statistic, variant.requests.ok),
        }
    }

    fn found(&self, variant: &VariantFacts, which: impl Fn(&str, Severity) -> bool) -> f64 {
        self.findings
            .iter()
            .filter(|finding| {
                finding.subject == variant.name && which(finding.rule, finding.severity)
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

/// Counts, which always have a value: zero is one.
fn counted(variant: &VariantFacts, name: &str, parameter: Option<&str>) -> Option<u64> {
    let connections = &variant.connections;
    let requests = &variant.requests;
    let count = match name {
        "requests" => requests.total,
        "ok" => requests.ok,
        "failed" => requests.failures(),
        "failed.<kind>" => requests.failed.get(parameter?).copied().unwrap_or(0),
        "status.<code>" => requests.of_status(parameter?),
        "connections" => connections.opened,
        "connections-failed" => connections.failed.values().sum(),
        "needed" => connections.needed,
        "avoidable" => connections.opened.saturating_sub(connections.needed),
        "reused" => variant.reused,
        "lookups" => variant.lookups,
        "stale" => requests.failed.get("stale").copied().unwrap_or(0),
        _ => return None,
    };
    Some(count)
}

fn latency(latency: &Latency, statistic: &str, had: u64) -> Result<f64, NoData> {
    latency
        .statistic(statistic)
        .ok_or(NoData::CannotSee("bench does not measure it"))?
        .map_err(|needed| match had {
            0 => NoData::NothingHappened,
            had => NoData::TooFew { had, needed },
        })
        .map(|ms| ms * NANOS_PER_MS)
}

/// Ten beyond the quantile are needed.
fn too_few(had: u64, q: f64) -> NoData {
    NoData::TooFew {
        had,
        needed: (10.0 / (1.0 - q)).round() as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requirement::Requirement;
    use intact_ledger::{Event, Exchange, Nanos, Reuse, Run, Sink, Span, Tally, Vantage, Variant};

    /// Two variants, ten rounds: 1 ms kept, 3 ms not kept.
    fn facts() -> BenchFacts {
        let mut run = Run::new(
            "bench",
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
                axes: [
                    ("keepalive", on),
                    ("c", "1"),
                    ("tls", "none"),
                    ("http", "1.1"),
                ]
                .map(|(axis, value)| (axis.to_owned(), value.to_owned()))
                .into(),
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
        BenchFacts::new(&run, &tally, &[])
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
