//! The plain page: what every document has. A document without a page of its own is shown by it.
//! Must not know a document.

use super::common::{findings, method, page as start};
use crate::page::*;
use intact_document::figures::NANOS_PER_MS;
use intact_document::requirement::{Dimension, FIGURES, Figure};
use intact_document::{Facts, Subject};
use intact_ledger::Run;
use intact_reading::Reading;

/// The verdict, the figures of each subject, what stands out, and how it was measured.
pub(super) fn page<'a>(run: &'a Run, facts: &'a dyn Facts) -> Page<'a> {
    let mut page = start(run, facts, || run.producer.to_string());
    let table = figures(&facts.subjects());
    page.section(Section::new("figures", "Figures").summary(table));
    page.section(findings(facts.findings(), ""));
    page.method = Some(method(run, &[], Vec::new()));
    page
}

/// A row for each subject and a column for each row of the table of figures that has a value.
fn figures(subjects: &[Subject]) -> Table {
    let rows = Rows::of(subjects).column("subject", |one| &one.name);
    let figures = FIGURES.iter().filter(|figure| figure.parameter.is_none());
    let rows = figures.fold(rows, |rows, figure| {
        let reading = |one: &Subject| cell(figure, &one.readings.get(figure.name));
        rows.column(figure.column, reading).about(figure.meaning)
    });
    rows.table()
}

fn cell(figure: &Figure, reading: &Reading) -> Cell {
    match figure.dimension {
        Dimension::Time => Cell::of(figure, &reading.times(1.0 / NANOS_PER_MS)),
        _ => Cell::of(figure, reading),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_facts::MadeFacts;
    use intact_document::{Claim, ClaimKind, Claims};
    use intact_ledger::{Caveat, Producer, Vantage};
    use intact_reading::Why;

    #[test]
    fn a_document_without_a_page_shows_its_verdict_its_readings_and_its_limits() {
        let subject = |name: &str, mean: Reading| {
            let mut subject = Subject::new(name);
            subject.readings.set("connections", 1_200);
            subject.readings.set("mean", mean);
            subject
        };
        let why = Why::cannot_see("no times");
        let two = MadeFacts {
            subjects: vec![
                subject("first", Reading::known(5e6)),
                subject("second", Reading::at_least(2e6, why)),
            ],
            verdict: Claims::ranked([Claim::new(ClaimKind::Opened, 0.0, "Two things were read")]),
            caveats: vec![Caveat::new("cut", "the end is missing")],
        };
        let started = "2026-01-01T00:00:00Z".parse().unwrap();
        let run = Run::new(Producer::Serve, "0", Vantage::Client, started, 1, &[]);
        let text = crate::markdown::write(&[page(&run, &two)]);
        for part in [
            "Two things were read",
            "| subject | opened |",
            "| first | 1,200 | 5.00 ms |",
            "| second | 1,200 | at least 2.00 ms |",
            "the end is missing.",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
