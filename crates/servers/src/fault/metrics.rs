//! The card as requirements ask for it: a subject for each kind at each destination. What was not
//! shown has no value.

use super::card::{Bounds, FaultCell};
use super::{FaultFacts, findings};
use intact_document::figures::NANOS_PER_MS;
use intact_document::requirement::{
    FaultMetric, Measured, Metric, MetricSource, NoData, Subject, TrafficMetric,
};
use intact_document::unobserved::Unobserved;
use intact_traffic::rules;

impl FaultFacts {
    /// The cells as requirements number them: kinds that do not suit the connections come last.
    fn ordered(&self) -> impl Iterator<Item = &FaultCell> {
        let suited = self.cells.iter().filter(|cell| cell.is_suited());
        suited.chain(self.cells.iter().filter(|cell| !cell.is_suited()))
    }

    /// Whether any run of the program got a response.
    pub fn any_success(&self) -> bool {
        self.counts.any_success()
    }
}

impl MetricSource for FaultFacts {
    fn subjects(&self) -> Vec<Subject> {
        self.ordered().map(subject).collect()
    }

    fn default_subjects(&self) -> Option<usize> {
        Some(self.cells.iter().filter(|cell| cell.is_suited()).count())
    }

    fn value(&self, subject: usize, metric: &Metric) -> Result<Measured, NoData> {
        let cell = self.ordered().nth(subject).ok_or(NoData::NothingHappened)?;
        if let Metric::Findings(selector) = metric {
            let own = findings::subject(cell);
            let found = self.findings.iter().filter(|one| one.subject == own);
            let mut unobserved = self.unobserved.clone();
            if let Some(obstacle) = cell.not_applied {
                unobserved.add(&Unobserved::because(obstacle.words()));
            }
            return selector.count(found, &unobserved, rules::needs);
        }
        if let (Some(obstacle), false) = (cell.not_applied, *metric == STRUCK) {
            return Err(NoData::CannotSee(obstacle.words()));
        }
        let is_least = cell.is_partly_seen || cell.has_held;
        let count = |bounds: Bounds| Ok(bounded(bounds, cell.is_partly_seen));
        match metric {
            Metric::Fault(FaultMetric::Hung) => hung(cell),
            Metric::Fault(FaultMetric::Duplicated) => count(cell.duplicated),
            Metric::Fault(FaultMetric::Recovered) => Ok(bounded(cell.recovered, is_least)),
            Metric::Fault(FaultMetric::Truncated) => count(cell.truncated),
            Metric::Traffic(TrafficMetric::Failed) => Ok(bounded(cell.failed, is_least)),
            Metric::Fault(FaultMetric::Leaked) => count(Bounds::exactly(cell.leaked)),
            Metric::Fault(FaultMetric::Struck) => Ok(Measured::exactly(cell.struck as f64)),
            _ => Err(NoData::NOT_IN_DOCUMENT),
        }
    }

    fn unobserved(&self) -> Unobserved {
        let mut all = self.unobserved.clone();
        let missing = self.cells.iter().filter(|cell| cell.is_suited());
        for cell in missing {
            if let Some(obstacle) = cell.not_applied {
                let words = format!("{}: {}", findings::subject(cell), obstacle.words());
                all.add(&Unobserved::because(&words));
            }
        }
        if self.cells.is_empty() {
            all.add(&Unobserved::because("no fault was applied"));
        }
        all
    }

    fn undecided(&self, subject: usize) -> Option<String> {
        let cell = self.ordered().nth(subject)?;
        let reason = cell.undecided.map(str::to_owned);
        match cell.is_partly_seen {
            true => self.unobserved.reason().or(reason),
            false => reason,
        }
    }
}

const STRUCK: Metric = Metric::Fault(FaultMetric::Struck);

fn subject(cell: &FaultCell) -> Subject {
    let mut labels = vec![("fault", cell.kind.id().to_owned())];
    if cell.is_suited() {
        // found by `fault` alone
        labels.push(("fault", String::new()));
    }
    if !cell.destination.is_empty() {
        labels.push(("origin", cell.destination.clone()));
    }
    labels.extend(cell.host.iter().map(|host| ("host", host.clone())));
    Subject {
        name: findings::subject(cell),
        labels,
    }
}

fn hung(cell: &FaultCell) -> Result<Measured, NoData> {
    let nanos = cell.hung_ms.ok_or(NoData::NothingHappened)? * NANOS_PER_MS;
    Ok(
        match cell.hung_at_least || cell.is_partly_seen || cell.has_held {
            true => Measured::at_least(nanos),
            false => Measured::exactly(nanos),
        },
    )
}

fn bounded(bounds: Bounds, is_partly_seen: bool) -> Measured {
    match is_partly_seen {
        true => Measured::at_least(bounds.least as f64),
        false => Measured::between(bounds.least as f64, bounds.most as f64),
    }
}

impl Bounds {
    fn exactly(count: u64) -> Bounds {
        Bounds {
            least: count,
            most: count,
        }
    }
}
