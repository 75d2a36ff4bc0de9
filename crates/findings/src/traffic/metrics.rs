//! Observed facts as requirements ask for them: the run as a whole, then each destination; times in nanoseconds, shares of 1.

use super::facts::{Figures, ObservedFacts};
use crate::figures::Latency;
use crate::finding::Severity;
use crate::requirement::{Measured, Metric, MetricSource, NoData, Subject};
use intact_ledger::Caveat;

const NANOS_PER_MS: f64 = 1e6;
/// The subject of requirements without a selector.
const WHOLE: &str = "all destinations";

impl MetricSource for ObservedFacts {
    /// Requirements without a selector are about the whole; those with one about the destinations that it finds.
    fn subjects(&self) -> Vec<Subject> {
        let whole = Subject {
            name: WHOLE.to_owned(),
            labels: Vec::new(),
        };
        let each = self.destinations.iter().map(|one| {
            let mut labels = vec![("origin", one.origin.clone())];
            labels.extend(one.host.clone().map(|host| ("host", host)));
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
        let name = metric.entry().name;
        let parameter = metric.parameter();
        let found = |which: &dyn Fn(&str, Severity) -> bool| {
            let findings = self.findings.iter();
            let count = findings
                .filter(|finding| destination.is_none_or(|one| finding.subject == one.origin))
                .filter(|finding| which(finding.rule, finding.severity))
                .count();
            Ok(figures.unobserved.findings(count))
        };
        match name {
            "findings" => found(&|_, _| true),
            "findings.<rule>" => found(&|rule, _| Some(rule) == parameter),
            "warnings" => found(&|_, severity| severity == Severity::Warning),
            "errors" => found(&|_, severity| severity == Severity::Error),
            _ => figures.value(name, parameter),
        }
    }

    fn missing(&self) -> Option<&str> {
        let unassigned = self.totals.unobserved.without_connection > 0;
        missing(&self.caveats).or(unassigned.then_some(NO_CONNECTION_DATA))
    }
}

/// Why nothing can be concluded about the connections of requests that have none.
pub(crate) const NO_CONNECTION_DATA: &str =
    "the input does not say which connection carried a request";

/// The first caveat that reports missing traffic.
pub(crate) fn missing(caveats: &[Caveat]) -> Option<&str> {
    let mut incomplete = caveats.iter().filter(|caveat| caveat.incomplete);
    incomplete.next().map(|caveat| caveat.message.as_str())
}

impl Figures {
    pub(crate) fn value(&self, name: &str, parameter: Option<&str>) -> Result<Measured, NoData> {
        let unobserved = &self.unobserved;
        let requests = &self.requests;
        let total = requests.total;
        let opened = self.connections.opened;
        let of_requests = |count: u64| unobserved.requests(count, total);
        let of_connections = |count: u64| unobserved.connections(count, opened);
        let present = |value: Option<f64>| {
            of_requests(0)?;
            value.ok_or(NoData::NothingHappened)
        };
        match name {
            "requests" => of_requests(total),
            "ok" => of_requests(requests.ok),
            "failed" => of_requests(requests.failures()),
            "failed.<kind>" => of_requests(
                parameter
                    .and_then(|kind| requests.failed.get(kind).copied())
                    .unwrap_or(0),
            ),
            "stale" => of_requests(requests.failed.get("stale").copied().unwrap_or(0)),
            "status.<code>" => {
                of_requests(parameter.map_or(0, |wanted| requests.of_status(wanted)))
            }
            "connections" => of_connections(opened),
            "connections-failed" => of_connections(self.connections.failed.values().sum()),
            "needed" => of_connections(self.connections.needed),
            "avoidable" => unobserved.avoidable(self.avoidable, opened),
            "reused" => unobserved.reused(self.reused, self.reuse_known, total),
            "reuse" => unobserved.reuse(self.reused, self.reuse_known, total),
            "requests-per-connection" => {
                let ratio = present(self.requests_per_connection)?;
                of_connections(opened)?;
                Ok(unobserved.ratio(ratio))
            }
            "churn" => {
                of_connections(opened)?;
                let churn = self.churn_per_s.ok_or(NoData::NothingHappened)?;
                Ok(unobserved.at_least_connections(churn))
            }
            "lookups" => Ok(Measured::count(self.lookups.total, !unobserved.traffic)),
            "resumed-share" => self
                .resumed_share
                .map(|share| unobserved.share_of_connections(share))
                .ok_or(NoData::NothingHappened),
            "bytes-per-request" | "header-bytes-per-request" => Err(NoData::NotMeasured(
                "bytes are in the ledger (--ledger DIR), not summed up yet",
            )),
            _ => {
                of_requests(0)?;
                self.time(name).map(|value| unobserved.statistic(value))
            }
        }
    }

    fn time(&self, name: &str) -> Result<f64, NoData> {
        if let Some(statistic) = name.strip_prefix("without-setup.") {
            return latency(&self.latency_without_setup_ms, statistic, self.requests.ok);
        }
        let Some((phase, statistic)) = name.split_once('.') else {
            return latency(&self.latency_ms, name, self.requests.ok);
        };
        let phases = self.phases_ms.as_ref().ok_or(NoData::CannotSee(
            "too many destinations for histograms of each",
        ))?;
        let key = phase.replace('-', "_");
        // setup phases are those of cold requests, the others those of warm ones where there are any
        let time = [&phases.reused, &phases.fresh]
            .into_iter()
            .find_map(|phases| phases.get(&*key)?.as_ref())
            .ok_or(NoData::NothingHappened)?;
        match statistic {
            "mean" => Ok(time.mean * NANOS_PER_MS),
            _ => time.p50.map(|ms| ms * NANOS_PER_MS).ok_or(NoData::TooFew {
                had: time.count,
                needed: 20,
            }),
        }
    }
}

fn latency(latency: &Latency, statistic: &str, had: u64) -> Result<f64, NoData> {
    latency
        .statistic(statistic)
        .ok_or(NoData::CannotSee("an observer does not measure it"))?
        .map_err(|needed| match had {
            0 => NoData::NothingHappened,
            had => NoData::TooFew { had, needed },
        })
        .map(|ms| ms * NANOS_PER_MS)
}
