//! Observed facts as requirements ask for them: the run as a whole, then each destination; times in nanoseconds, shares of 1.

use super::facts::{Figures, ObservedFacts};
use crate::figures::Latency;
use crate::finding::Severity;
use crate::requirement::{Facts, Metric, NoData, Subject};

const NANOS_PER_MS: f64 = 1e6;
/// The subject of requirements without a selector.
const WHOLE: &str = "all destinations";

impl Facts for ObservedFacts {
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

    fn value(&self, subject: usize, metric: &Metric) -> Result<f64, NoData> {
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
            Ok(count as f64)
        };
        match name {
            "findings" => found(&|_, _| true),
            "findings.<rule>" => found(&|rule, _| Some(rule) == parameter),
            "warnings" => found(&|_, severity| severity == Severity::Warning),
            "errors" => found(&|_, severity| severity == Severity::Error),
            _ => figures.value(name, parameter),
        }
    }
}

impl Figures {
    pub(crate) fn value(&self, name: &str, parameter: Option<&str>) -> Result<f64, NoData> {
        // a count of what could not be seen is no zero
        let seen = self.requests.total > 0 || self.unseen == 0;
        let count = |count: u64| {
            if seen {
                Ok(count as f64)
            } else {
                Err(NoData::CannotSee(
                    "the connections do not show what they carry",
                ))
            }
        };
        let present = |value: Option<f64>| {
            value.ok_or(if seen {
                NoData::NothingHappened
            } else {
                NoData::CannotSee("the connections do not show what they carry")
            })
        };
        let requests = &self.requests;
        match name {
            "requests" => count(requests.total),
            "ok" => count(requests.ok),
            "failed" => count(requests.failures()),
            "failed.<kind>" => count(
                parameter
                    .and_then(|kind| requests.failed.get(kind).copied())
                    .unwrap_or(0),
            ),
            "stale" => count(requests.failed.get("stale").copied().unwrap_or(0)),
            "status.<code>" => count(parameter.map_or(0, |wanted| requests.of_status(wanted))),
            "connections" => Ok(self.connections.opened as f64),
            "connections-failed" => Ok(self.connections.failed.values().sum::<u64>() as f64),
            "needed" => Ok(self.connections.needed as f64),
            "avoidable" => Ok(self.avoidable as f64),
            "reused" => count(self.reused),
            "reuse" => present(self.reuse),
            "requests-per-connection" => present(self.requests_per_connection),
            "churn" => present(self.churn_per_s),
            "look-ups" => Ok(self.lookups.total as f64),
            "resumed-share" => present(self.resumed_share),
            "bytes-per-request" | "header-bytes-per-request" => Err(NoData::NotMeasured(
                "bytes are in the ledger (--ledger DIR), not summed up yet",
            )),
            _ => self.time(name),
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
        // set-up phases are those of cold requests, the others those of warm ones where there are any
        let time = [&phases.warm, &phases.cold]
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
