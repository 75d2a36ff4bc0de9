//! Every consumer of a stored ledger: facts, requirements, documents, pages, forecasts, a
//! comparison with itself, and exports. The fuzz target `ledger` gives them any files. A ledger is
//! consumed or refused, and nothing may panic.

use intact_document::requirement::{METRICS, MetricEntry, MetricSource, Requirement};
use intact_experiments::compare::Comparison;
use intact_findings::stored::{self, Stored, StoredError};
use intact_ledger::store::Reader;
use intact_ledger::{Row, Sink, Tally, Variant, export};
use intact_model::{Counting, Forecast, Reuse};
use intact_report::documents::{self, CompareRun, Source};
use intact_report::page::Page;
use intact_report::terminal::TerminalOptions;
use intact_report::{html, json, markdown, terminal};
use serde_json::Value;
use std::io;
use std::path::Path;

/// Reads a ledger in every way. Returns why it was refused.
pub(crate) fn consume(folder: &Path, with_html: bool) -> Option<StoredError> {
    let reader = match Reader::open(folder) {
        Ok(reader) => reader,
        Err(error) => return Some(error.into()),
    };
    let stored = match Stored::read(folder, &reader) {
        Ok(stored) => stored,
        Err(error) => return Some(error),
    };
    let facts: &dyn MetricSource = match &stored {
        Stored::Bench(one) => &one.facts,
        Stored::Scenario(one) => &one.facts,
        Stored::Capacity(one) => &one.facts,
        Stored::Observed(one) => &one.facts,
        Stored::Compared(one) => &one.facts,
        Stored::Faults(one) => &one.facts,
        Stored::Check(one) => &one.facts,
        Stored::Lambda(one) => &one.facts,
    };
    for requirement in requirements() {
        requirement.evaluate(facts);
    }
    document(&stored);
    print(&Source::from(&stored).page(), with_html);
    if let Ok(traffic) = stored::traffic(&reader) {
        let facts = traffic.facts();
        if let Some(fit) = intact_model::fit("client", &facts) {
            let forecast = Forecast::new(&fit.chain, Counting::Tcp, Reuse::Configured);
            print(&documents::model(&forecast, "client", Some(&fit)), false);
        }
        let mut run = reader.run().clone();
        run.variants = ["on", "off"].map(variant).to_vec();
        let mut comparison = Comparison::new(&run);
        for program in [0, 1, 0, 1] {
            comparison.take(program, Some(u64::MAX), Some(u64::MAX), &facts);
        }
        let facts = comparison.facts();
        let both = CompareRun {
            run: &run,
            facts: &facts,
        };
        print(&Source::Compare(both).page(), false);
        json::compare(&run, &facts).unwrap();
    }
    export_rows(&reader);
    None
}

/// Every metric without a parameter, in a unit that it has.
fn requirements() -> Vec<Requirement> {
    let units = ["", "ms", "%", "kB", "/s"];
    let of = |entry: &MetricEntry| {
        let mut all = units
            .iter()
            .map(|unit| format!("{} < 1{unit}", entry.name).parse());
        all.find_map(Result::ok)
    };
    METRICS.iter().filter_map(of).collect()
}

fn document(stored: &Stored) {
    let text = match stored {
        Stored::Bench(one) => json::bench(&one.run, &one.facts),
        Stored::Capacity(one) => json::capacity(&one.run, &one.facts),
        Stored::Scenario(one) => json::scenario(&one.run, &one.facts),
        Stored::Observed(one) => json::observed(&one.run, &one.facts),
        Stored::Compared(one) => json::compare(&one.run, &one.facts),
        Stored::Faults(one) => json::fault(&one.run, &one.facts),
        Stored::Check(one) => json::check(&one.run, &one.facts),
        Stored::Lambda(one) => json::lambda(&one.run, &one.facts),
    };
    let _: Value = serde_json::from_str(&text.unwrap()).unwrap();
}

fn print(page: &Page<'_>, with_html: bool) {
    let paper = TerminalOptions::plain(80);
    let text = terminal::write(page, paper);
    let is_plain = |letter: char| letter == '\n' || !letter.is_control();
    assert!(
        text.chars().all(is_plain),
        "a control character reaches the terminal"
    );
    markdown::write(std::slice::from_ref(page));
    if with_html {
        html::write(std::slice::from_ref(page)).unwrap();
    }
}

fn export_rows(reader: &Reader) {
    let har = export::har::HarWriter::new(Vec::new(), reader.run());
    // a HAR has the time of the start, which is text in a ledger
    let is_refused = |error: &io::Error| error.kind() == io::ErrorKind::InvalidData;
    assert!(har.as_ref().err().is_none_or(is_refused));
    let mut har = har.ok();
    let mut csv = Vec::new();
    let mut tally = Tally::new();
    for row in reader.events().unwrap() {
        tally.record(row.as_event());
        if let Row::Exchange(exchange) = &row {
            if let Some(har) = &mut har {
                har.entry(exchange, None).unwrap();
            }
            export::csv::write_row(&mut csv, "run", "variant", exchange).unwrap();
        }
    }
    let again = tally.clone();
    tally.merge(&again);
}

/// A variant with keep-alive on or off.
pub(crate) fn variant(on: &str) -> Variant {
    let axes = [
        ("keepalive", on),
        ("c", "1"),
        ("http", "1.1"),
        ("tls", "1.3"),
        ("resume", "off"),
        ("streams", "1"),
    ];
    Variant {
        name: format!("keepalive={on}"),
        axes: axes
            .map(|(axis, value)| (axis.to_owned(), value.to_owned()))
            .into(),
    }
}
