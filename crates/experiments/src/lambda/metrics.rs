//! A function's facts as requirements ask for them: subjects are the variants. Latency is the
//! function's own time of invocations that found their environment there; counts are of the traffic
//! that the variant sent.

use super::{LambdaFacts, VariantFacts};
use crate::time_difference::{TimeDifference, TimeStatistic, saved, uncompared};
use intact_document::figures::NANOS_PER_MS;
use intact_document::requirement::{
    InvocationMetric, Measured, Metric, MetricSource, NoData, Subject,
};
use intact_document::unobserved::Unobserved;

const NOT_WATCHED: &str = "its connections were not watched (--watch off)";
const UNSEEN: NoData = NoData::NotMeasured(NOT_WATCHED);

/// A variant that does less is faster for that reason.
const FEWER_REQUESTS: NoData =
    NoData::CannotSee("it sends fewer requests per invocation than the first variant");

impl MetricSource for LambdaFacts {
    fn subjects(&self) -> Vec<Subject> {
        let subject = |one: &VariantFacts| Subject {
            name: one.name.clone(),
            labels: vec![("variant", one.name.clone())],
        };
        self.variants.iter().map(subject).collect()
    }

    fn default_subjects(&self) -> Option<usize> {
        None
    }

    fn value(&self, subject: usize, metric: &Metric) -> Result<Measured, NoData> {
        let variant = self.variants.get(subject).ok_or(NoData::NothingHappened)?;
        let all: u64 = variant.outcomes.values().sum();
        let answered = variant.outcomes.get("answered").copied().unwrap_or(0);
        let observed = variant.observed.as_deref().ok_or(UNSEEN);
        let exactly = |value: f64| Ok(Measured::exactly(value));
        match metric {
            Metric::Invocation(InvocationMetric::Invocations) => exactly(all as f64),
            Metric::Invocation(InvocationMetric::Failed) => exactly((all - answered) as f64),
            Metric::Invocation(InvocationMetric::ConnectionsPerInvocation) => {
                let sent = variant.sent.as_ref().ok_or(UNSEEN)?;
                let each = sent
                    .connections_per_invocation
                    .ok_or(NoData::NothingHappened)?;
                Ok(observed?.totals.unobserved.at_least_connections(each))
            }
            Metric::Invocation(InvocationMetric::ColdStart) => variant
                .cold_start_ms
                .map(|ms| Measured::exactly(ms * NANOS_PER_MS))
                .ok_or(NoData::NothingHappened),
            Metric::Saved if variant.sends_fewer(&self.variants[0]) => Err(FEWER_REQUESTS),
            Metric::Saved => saved(
                &self.comparisons,
                (&variant.name, variant.rounds.len()),
                TimeStatistic::Mean,
                TimeDifference::least_saved,
                uncompared(&self.comparisons, &variant.name),
            )
            .map(Measured::exactly),
            Metric::Latency(statistic) => variant
                .warm_ms
                .nanos(*statistic, answered)
                .map(Measured::exactly),
            Metric::Traffic(_)
            | Metric::Findings(_)
            | Metric::WithoutSetup(_)
            | Metric::Phase(..)
            | Metric::Load(_)
            | Metric::CpuPerRequest
            | Metric::SavedShare
            | Metric::IdleTimeout
            | Metric::Drain(_)
            | Metric::Chain(_)
            | Metric::Unlike
            | Metric::Fault(_)
            // the first subject is the whole
            | Metric::MaxRequests => observed?.value(0, metric),
        }
    }

    fn unobserved(&self) -> Unobserved {
        let mut all = Unobserved::default();
        for variant in &self.variants {
            match &variant.observed {
                Some(observed) => all.add(&observed.unobserved()),
                None => all.add(&Unobserved::because(NOT_WATCHED)),
            }
        }
        all
    }
}
