//! Observed facts as requirements ask for them: the run as a whole, then each destination; times in
//! nanoseconds, shares of 1.

use super::facts::ObservedFacts;
use super::figures::Figures;
use crate::rules;
use intact_document::requirement::{
    Measured, Metric, MetricSource, NoData, PhaseStatistic, Subject, TrafficMetric, TrafficSource,
};
use intact_document::unobserved::Unobserved;
use intact_ledger::{Failure, Phase};
use intact_units::plural::counted;

/// The subject of requirements without a selector.
const WHOLE: &str = "all destinations";
/// Rows have their bytes, the counts of a destination have not.
const NO_BYTES: NoData =
    NoData::NotMeasured("bytes are in the ledger (--ledger DIR), not summed up yet");

impl MetricSource for ObservedFacts {
    /// Requirements without a selector are about the whole; those with one about the destinations
    /// that it finds.
    fn subjects(&self) -> Vec<Subject> {
        let whole = Subject {
            name: WHOLE.to_owned(),
            labels: Vec::new(),
        };
        let each = self.destinations.iter().map(|one| {
            let mut labels = vec![("origin", one.origin.clone())];
            let hosts = one.host.iter().chain(&one.aliases);
            labels.extend(hosts.map(|host| ("host", host.clone())));
            if let [protocol] = one.protocols.keys().collect::<Vec<_>>()[..] {
                labels.push(("http", (*protocol).to_owned()));
            }
            let versions: Vec<_> = one.tls.iter().filter_map(|tls| tls.version).collect();
            match versions[..] {
                [] if one.origin.starts_with("http:") => labels.push(("tls", "none".to_owned())),
                [version] => labels.push(("tls", version.as_str().to_owned())),
                _ => {}
            }
            Subject {
                name: one.origin.clone(),
                labels,
            }
        });
        std::iter::once(whole).chain(each).collect()
    }

    fn default_subjects(&self) -> Option<usize> {
        Some(1)
    }

    fn value(&self, subject: usize, metric: &Metric) -> Result<Measured, NoData> {
        let destination = match subject.checked_sub(1) {
            None => None,
            Some(at) => Some(self.destinations.get(at).ok_or(NoData::NothingHappened)?),
        };
        let figures = destination.map_or(&self.totals, |one| &one.figures);
        // a count of what did not work is no figure
        if let Some(reason) = figures.no_response() {
            return Err(NoData::NotJudged(reason));
        }
        let Metric::Findings(selector) = metric else {
            return figures.value(metric);
        };
        let findings = self.findings.iter();
        let of_subject =
            findings.filter(|one| destination.is_none_or(|place| one.is_about(&place.origin)));
        selector.count(of_subject, &figures.unobserved, rules::needs)
    }

    fn undecided(&self, subject: usize) -> Option<String> {
        let destination = subject
            .checked_sub(1)
            .and_then(|at| self.destinations.get(at));
        let figures = destination.map_or(&self.totals, |one| &one.figures);
        self.unobserved().reason().or_else(|| {
            let unsent = figures.unsent(TrafficMetric::Failed);
            let dials = counted(unsent, "dial");
            let them = if unsent == 1 { "it" } else { "them" };
            (unsent > 0).then(|| format!("{dials} failed, and requests may have waited for {them}"))
        })
    }

    fn unobserved(&self) -> Unobserved {
        let mut all = self.totals.unobserved.clone();
        if let Some(reason) = self.totals.no_response() {
            all.add(&Unobserved::because(reason));
        }
        all
    }
}

impl Figures {
    /// A metric of the whole or of one destination; findings are counted by the caller.
    fn value(&self, metric: &Metric) -> Result<Measured, NoData> {
        let ok = self.requests.ok;
        let value = match metric {
            Metric::Traffic(metric) => return self.traffic(*metric),
            Metric::Latency(statistic) => self.latency_ms.nanos(*statistic, ok),
            Metric::WithoutSetup(statistic) => self.latency_without_setup_ms.nanos(*statistic, ok),
            Metric::Phase(phase, statistic) => self.phase(*phase, *statistic),
            Metric::Load(_)
            | Metric::CpuPerRequest
            | Metric::Saved
            | Metric::SavedShare
            | Metric::IdleTimeout
            | Metric::Drain(_)
            | Metric::Chain(_)
            | Metric::MaxRequests
            | Metric::Invocation(_)
            | Metric::Unlike
            | Metric::Fault(_)
            | Metric::Findings(_) => return Err(NoData::NOT_IN_DOCUMENT),
        };
        // a connection that cannot be read says more than the missing samples
        self.unobserved.requests(0, self.requests.total)?;
        value.map(|value| self.unobserved.statistic(value))
    }

    fn traffic(&self, metric: TrafficMetric) -> Result<Measured, NoData> {
        let source = TrafficSource {
            counts: &self.counts,
            runs: 1.0,
            avoidable: self.avoidable,
            reuse_known: self.reuse_known,
            lookups: self.lookups.total,
            lookups_in_vain: self.lookups.in_vain,
            requests_per_connection: self.requests_per_connection,
            resumed_share: self.resumed_range,
            churn_per_s: self.churn_per_s.ok_or(NoData::NothingHappened),
            bytes_per_request: Err(NO_BYTES),
            header_bytes_per_request: Err(NO_BYTES),
            unobserved: &self.unobserved,
        };
        let value = source.value(metric)?;
        Ok(match (self.unsent(metric), metric) {
            (0, _) => value,
            (_, TrafficMetric::FailedShare) => Measured::between(value.low(), 1.0),
            _ => Measured::at_least(value.low()),
        })
    }

    /// Dials that failed after their transport was established, and that no request of this metric
    /// shows: requests may have waited for them.
    fn unsent(&self, metric: TrafficMetric) -> u64 {
        let is_asked = |kind: &Failure| match metric {
            TrafficMetric::Failed | TrafficMetric::FailedShare => true,
            TrafficMetric::FailedWith(asked) => asked == *kind,
            _ => false,
        };
        let kinds = Failure::ALL.iter().copied();
        kinds
            .filter(|kind| (Failure::Proxy..=Failure::Tls).contains(kind) && is_asked(kind))
            .map(|kind| {
                let dials = self.connections.failed.get(kind.id());
                let dials = dials.copied().unwrap_or_default();
                dials.saturating_sub(self.requests.failed_with(kind))
            })
            .sum()
    }

    fn phase(&self, phase: Phase, statistic: PhaseStatistic) -> Result<f64, NoData> {
        let phases = self.phases_ms.as_ref().ok_or(NoData::CannotSee(
            "too many destinations for histograms of each",
        ))?;
        // setup phases are those of fresh requests, the others those of reused ones where there are
        // any
        [&phases.reused, &phases.fresh]
            .into_iter()
            .find_map(|phases| phases.get(phase.id())?.as_ref())
            .ok_or(NoData::NothingHappened)?
            .nanos(statistic)
    }
}
