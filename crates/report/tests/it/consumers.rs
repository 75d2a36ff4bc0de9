//! Every consumer of a stored ledger: facts, requirements, documents, pages, forecasts, a
//! comparison with itself, and exports. The fuzz target `ledger` gives them any files. A ledger is
//! consumed or refused, and nothing may panic.

use intact_document::requirement::{FIGURES, Figure, Requirement};
use intact_experiments::compare::Comparison;
use intact_findings::stored::{self, StoredError};
use intact_findings::{Document, Parts};
use intact_ledger::store::Reader;
use intact_ledger::{Row, Sink, Tally, Variant, export};
use intact_model::{Counting, Forecast, Reuse};
use intact_report::documents;
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
    let document = match Document::read(folder, &reader) {
        Ok(document) => document,
        Err(error) => return Some(error),
    };
    for requirement in requirements() {
        requirement.evaluate(document.facts());
    }
    print_document(&document, with_html);
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
        let document = Document::new(run, Parts::Compare(Box::new(facts)));
        print_document(&document, false);
    }
    export_rows(&reader);
    None
}

/// Every figure without a parameter, in a unit that it has.
fn requirements() -> Vec<Requirement> {
    let units = ["", "ms", "%", "kB", "/s"];
    let of = |entry: &Figure| {
        let mut all = units
            .iter()
            .map(|unit| format!("{} < 1{unit}", entry.name).parse());
        all.find_map(Result::ok)
    };
    FIGURES.iter().filter_map(of).collect()
}

fn print_document(document: &Document, with_html: bool) {
    let text = json::document(document).unwrap();
    let _: Value = serde_json::from_str(&text).unwrap();
    print(&documents::page(document), with_html);
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
