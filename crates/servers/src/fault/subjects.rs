//! The card as requirements ask for it: a subject for each kind at each destination. Must not
//! compute a figure.

use super::FaultFacts;
use super::card::FaultCell;
use super::findings::{self, RULES};
use intact_document::facts::{add_findings, rules_alike};
use intact_document::figures::NANOS_PER_MS;
use intact_document::unobserved::Unobserved;
use intact_document::{Conclusions, Facts, Finding, RuleState, Subject};
use intact_reading::Why;

/// Why nothing was shown at all.
const NO_FAULT: &str = "no fault was applied";

impl FaultFacts {
    fn subject(&self, cell: &FaultCell) -> Subject {
        let name = findings::subject(cell);
        let own = self.findings.iter().filter(|one| one.subject == name);
        let own: Vec<&Finding> = own.collect();
        let mut subject = Subject::new(name).label("fault", cell.kind.id());
        subject = subject.label("scope", cell.scope.id());
        if cell.is_suited() {
            // found by `fault` alone
            subject = subject.label("fault", "");
        }
        if !cell.destination.is_empty() {
            subject = subject.label("origin", &*cell.destination);
        }
        if let Some(host) = &cell.host {
            subject = subject.label("host", &**host);
        }
        let readings = &mut subject.readings;
        for (name, reading) in [
            ("duplicated", &cell.duplicated),
            ("recovered", &cell.recovered),
            ("truncated", &cell.truncated),
            ("failed", &cell.failed),
            ("leaked", &cell.leaked),
            ("struck", &cell.struck),
        ] {
            readings.set(name, reading.clone());
        }
        readings.set("hung", cell.hung_ms.times(NANOS_PER_MS));
        let obstacle = cell.not_applied.map(super::Obstacle::words);
        let mut unobserved = self.unobserved.clone();
        if let Some(obstacle) = obstacle {
            unobserved.add(&Unobserved::because(obstacle));
        }
        add_findings(readings, own, &rules(obstacle), &unobserved);
        subject
    }
}

/// The rules; none of them could judge where no fault was applied, for this reason.
fn rules(obstacle: Option<&'static str>) -> Vec<RuleState> {
    rules_alike(RULES, obstacle.map(Why::cannot_see).as_ref())
}

impl Facts for FaultFacts {
    /// Kinds that do not suit the connections come last.
    fn subjects(&self) -> Vec<Subject> {
        let suited = self.cells.iter().filter(|cell| cell.is_suited());
        let unsuited = self.cells.iter().filter(|cell| !cell.is_suited());
        let all = suited.chain(unsuited);
        all.map(|cell| self.subject(cell)).collect()
    }

    fn default_subjects(&self) -> Option<usize> {
        Some(self.cells.iter().filter(|cell| cell.is_suited()).count())
    }

    fn conclusions(&self) -> Conclusions<'_> {
        Conclusions::new(&self.verdict, &self.findings, &self.caveats)
    }

    fn rules(&self) -> Vec<RuleState> {
        let is_any_applied = self.cells.iter().any(|cell| cell.not_applied.is_none());
        rules((!is_any_applied).then_some(NO_FAULT))
    }

    fn any_success(&self) -> bool {
        self.counted.any_success()
    }

    fn unobserved(&self) -> Unobserved {
        let mut all = self.unobserved.clone();
        for cell in self.cells.iter().filter(|cell| cell.is_suited()) {
            if let Some(obstacle) = cell.not_applied {
                let words = format!("{}: {}", findings::subject(cell), obstacle.words());
                all.add(&Unobserved::because(&words));
            }
        }
        if self.cells.is_empty() {
            all.add(&Unobserved::because(NO_FAULT));
        }
        all
    }
}
