//! A scenario's figures as requirements ask for them: the whole run, then each session, then each
//! tag of each session.

use super::{RequestFigures, ScenarioFacts};
use intact_document::figures::{Latency, PhaseTime, TrafficCounts};
use intact_document::requirement::{
    LoadMetric, Measured, Metric, MetricSource, NoData, Statistic, Subject, TrafficMetric,
    TrafficSource,
};
use intact_document::unobserved::Unobserved;
use intact_traffic::rules;
use std::collections::BTreeMap;

/// Why there is no figure where nothing succeeded.
const NO_SUCCESS: NoData = NoData::CannotSee("no request succeeded");
/// Connections belong to clients, not to tags.
const NO_CONNECTIONS: NoData =
    NoData::NotMeasured("connections are counted by session, not by tag");
/// A figure of the run, not of a part.
const OF_THE_RUN: NoData = NoData::NotMeasured("it is known of the whole run only");

/// What a requirement can be about.
struct Part<'a> {
    counts: TrafficCounts,
    has_connections: bool,
    latency_ms: &'a Latency,
    latency_without_setup_ms: &'a Latency,
    phases_ms: Option<&'a BTreeMap<&'static str, Option<PhaseTime>>>,
    requests_per_connection: Option<f64>,
    is_whole: bool,
}

impl ScenarioFacts {
    fn part(&self, subject: usize) -> Option<Part<'_>> {
        if subject == 0 {
            return Some(Part {
                counts: self.counts.clone(),
                has_connections: true,
                latency_ms: &self.latency_ms,
                latency_without_setup_ms: &self.latency_without_setup_ms,
                phases_ms: None,
                requests_per_connection: self.per_connection(),
                is_whole: true,
            });
        }
        if let Some(session) = self.sessions.get(subject - 1) {
            return Some(Part {
                counts: session.counts.clone(),
                has_connections: true,
                latency_ms: &session.latency_ms,
                latency_without_setup_ms: &session.latency_without_setup_ms,
                phases_ms: None,
                requests_per_connection: session.requests_per_connection,
                is_whole: false,
            });
        }
        let mut tags = self.sessions.iter().flat_map(|session| &session.tags);
        let tag = tags.nth(subject - 1 - self.sessions.len())?;
        let figures: &RequestFigures = &tag.figures;
        Some(Part {
            counts: TrafficCounts {
                requests: figures.requests.clone(),
                reused: figures.reused,
                reuse: figures.reuse,
                ..TrafficCounts::default()
            },
            has_connections: false,
            latency_ms: &figures.latency_ms,
            latency_without_setup_ms: &figures.latency_without_setup_ms,
            phases_ms: Some(&tag.phases_ms),
            requests_per_connection: None,
            is_whole: false,
        })
    }

    fn per_connection(&self) -> Option<f64> {
        let opened = self.connections.opened;
        (opened > 0).then(|| self.requests.total as f64 / opened as f64)
    }

    /// A figure that is not about traffic alone, in base units.
    fn figure(&self, part: &Part<'_>, metric: &Metric) -> Result<f64, NoData> {
        let ok = part.counts.requests.ok;
        let of_run = |value: Option<f64>| match part.is_whole {
            true => value.ok_or(NoData::NothingHappened),
            false => Err(OF_THE_RUN),
        };
        match metric {
            Metric::Latency(statistic) => part.latency_ms.nanos(*statistic, ok),
            Metric::WithoutSetup(statistic) => part.latency_without_setup_ms.nanos(*statistic, ok),
            Metric::Phase(phase, statistic) => part
                .phases_ms
                .ok_or(NoData::NotMeasured(
                    "phases are known by tag: select one with tag=",
                ))?
                .get(phase.id())
                .and_then(Option::as_ref)
                .ok_or(NoData::NothingHappened)?
                .nanos(*statistic),
            Metric::Load(LoadMetric::Throughput) => of_run(self.rate_per_s),
            Metric::Load(LoadMetric::SchedulingError) => {
                of_run(Some(0.0))?;
                self.scheduling_error_ms
                    .nanos(Statistic::P99, self.requests.total)
            }
            _ => Err(NoData::NOT_IN_DOCUMENT),
        }
    }

    fn traffic(
        &self,
        part: &Part<'_>,
        metric: TrafficMetric,
        unobserved: &Unobserved,
    ) -> Result<Measured, NoData> {
        let of_connections = matches!(
            metric,
            TrafficMetric::Connections
                | TrafficMetric::ConnectionsFailed
                | TrafficMetric::Needed
                | TrafficMetric::Avoidable
                | TrafficMetric::RequestsPerConnection
                | TrafficMetric::Churn
        );
        if of_connections && !part.has_connections {
            return Err(NO_CONNECTIONS);
        }
        let connections = &part.counts.connections;
        let churn = self
            .seconds
            .map(|seconds| connections.opened as f64 / seconds);
        let source = TrafficSource {
            counts: &part.counts,
            runs: 1.0,
            avoidable: connections.opened.saturating_sub(connections.needed),
            reuse_known: part.counts.requests.total,
            lookups: 0,
            lookups_in_vain: 0,
            requests_per_connection: part.requests_per_connection,
            resumed_share: None,
            churn_per_s: churn.ok_or(NoData::NothingHappened),
            bytes_per_request: Err(NoData::NOT_IN_DOCUMENT),
            header_bytes_per_request: Err(NoData::NOT_IN_DOCUMENT),
            unobserved,
        };
        match metric {
            TrafficMetric::Lookups | TrafficMetric::ResumedShare => Err(NoData::NOT_IN_DOCUMENT),
            metric => source.value(metric),
        }
    }
}

impl MetricSource for ScenarioFacts {
    fn subjects(&self) -> Vec<Subject> {
        let mut subjects = vec![Subject {
            name: "all sessions".to_owned(),
            labels: Vec::new(),
        }];
        subjects.extend(self.sessions.iter().map(|session| Subject {
            name: session.name.clone(),
            labels: vec![("session", session.name.clone())],
        }));
        for session in &self.sessions {
            subjects.extend(session.tags.iter().map(|tag| Subject {
                name: format!("{}: {}", session.name, tag.tag),
                labels: vec![("tag", tag.tag.clone())],
            }));
        }
        subjects
    }

    fn default_subjects(&self) -> Option<usize> {
        Some(1)
    }

    fn value(&self, subject: usize, metric: &Metric) -> Result<Measured, NoData> {
        let part = self.part(subject).ok_or(NoData::NothingHappened)?;
        // a count of what did not work is no figure: `failed == 0` holds where nothing happened
        if !self.any_success() {
            return Err(NO_SUCCESS);
        }
        let unobserved = Unobserved::by_caveats(&self.caveats);
        match metric {
            Metric::Traffic(metric) => self.traffic(&part, *metric, &unobserved),
            Metric::Findings(selector) => {
                let name = subject.checked_sub(1).and_then(|at| self.sessions.get(at));
                let findings = self.findings.iter();
                let of_part = findings.filter(|one| {
                    part.is_whole || name.is_some_and(|session| one.subject == session.name)
                });
                selector.count(of_part, &unobserved, rules::needs)
            }
            metric => self
                .figure(&part, metric)
                .map(|value| unobserved.statistic(value)),
        }
    }

    fn unobserved(&self) -> Unobserved {
        let mut all = Unobserved::by_caveats(&self.caveats);
        if !self.any_success() {
            all.add(&Unobserved::because("no request succeeded"));
        }
        all
    }
}
