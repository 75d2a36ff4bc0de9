//! A check's figures as requirements ask for them: one subject, the server.

use super::CheckFacts;
use crate::requirement::{Measured, Metric, MetricSource, NoData, Subject};
use crate::unobserved::Unobserved;

const NANOS_PER_S: f64 = 1e9;
/// How to have the idle limit measured.
const WATCH_IDLE: &str = "leave --no-idle out";

impl MetricSource for CheckFacts {
    fn subjects(&self) -> Vec<Subject> {
        let Some(target) = &self.target else {
            return Vec::new();
        };
        let (scheme, rest) = target.url.split_once("://").unwrap_or(("", &target.url));
        let authority = rest.split('/').next().unwrap_or(rest);
        vec![Subject {
            name: target.url.clone(),
            labels: vec![
                ("host", authority.to_owned()),
                ("origin", format!("{scheme}://{authority}")),
            ],
        }]
    }

    fn value(&self, _: usize, metric: &Metric) -> Result<Measured, NoData> {
        if let Some(why) = self.no_success() {
            return Err(NoData::CannotSee(why));
        }
        match metric {
            Metric::IdleTimeout => self.idle_value(),
            Metric::MaxRequests => self.max_value(),
            Metric::Findings(selector) => Ok(selector.count(&self.findings, &self.unobserved())),
            Metric::Traffic(_)
            | Metric::Latency(_)
            | Metric::WithoutSetup(_)
            | Metric::Phase(..)
            | Metric::Load(_)
            | Metric::CpuPerRequest
            | Metric::Saved
            | Metric::SavedShare
            | Metric::Invocation(_) => Err(NoData::NOT_IN_DOCUMENT),
        }
    }

    fn unobserved(&self) -> Unobserved {
        self.no_success().map_or_else(
            || Unobserved::by_caveats(&self.caveats),
            Unobserved::because,
        )
    }
}

impl CheckFacts {
    fn idle_value(&self) -> Result<Measured, NoData> {
        let idle = self
            .idle_timeout
            .as_ref()
            .ok_or(NoData::NotMeasured(WATCH_IDLE))?;
        match (idle.measured_s, idle.at_least_s) {
            (Some(first), _) => {
                // the range of the samples: a requirement has to hold for all of it
                let last = idle.samples_s.iter().copied().fold(first, f64::max);
                let earliest = idle.earliest_s.unwrap_or(first);
                let high = if earliest < first { last } else { first };
                Ok(Measured::between(
                    earliest.min(first) * NANOS_PER_S,
                    high * NANOS_PER_S,
                ))
            }
            (None, Some(least)) => Ok(Measured::at_least(least * NANOS_PER_S)),
            (None, None) => Err(NoData::NothingHappened),
        }
    }

    fn max_value(&self) -> Result<Measured, NoData> {
        let max = self.max_requests.as_ref().ok_or(NoData::NothingHappened)?;
        match (max.measured, max.at_least) {
            (Some(measured), _) => Ok(Measured::exactly(f64::from(measured))),
            (None, Some(least)) => Ok(Measured::at_least(f64::from(least))),
            (None, None) => Err(NoData::NothingHappened),
        }
    }
}
