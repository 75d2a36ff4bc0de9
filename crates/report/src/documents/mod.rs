//! Fills pages: a module for each document. Must not compute, and must not know a writer.

mod bench;
mod capacity;
mod chain;
mod check;
mod common;
mod compare;
mod fault;
pub(crate) mod fix;
mod fleet;
mod lambda;
mod likeness;
mod model;
mod plain;
mod populations;
mod scenario;
mod timeline;
mod traffic;

pub use bench::demonstration;
pub use check::{CheckPart, CheckRun, page as check};
pub use fix::{FixRequest, fix_articles, fix_client, fix_hop, fix_library, fix_list, fix_overview};
pub use fleet::{campaign, first_checks, profiles};
pub use model::{model, sequence_of};
pub use traffic::{LadderFacts, answers, ladder};

use super::json;
use super::page::{File, Page};
use intact_findings::{Document, Parts};

/// The page of a document.
pub fn page(document: &Document) -> Page<'_> {
    let run = &document.run;
    let mut page = match &document.parts {
        Parts::Bench(one) => bench::page(run, &one.facts, &one.charts),
        Parts::Scenario(facts) => scenario::page(run, facts),
        Parts::Capacity(facts) => capacity::page(run, facts),
        Parts::Check(facts) => check::page(CheckRun { run, facts }, CheckPart::All),
        Parts::Chain(facts) => chain::page(run, facts),
        Parts::Observed(one) => traffic::page(run, one),
        Parts::Fault(facts) => fault::page(run, facts),
        Parts::Compare(facts) => compare::page(run, facts),
        Parts::Lambda(facts) => lambda::page(run, facts),
        _ => plain::page(run, document.facts()),
    };
    let name = document.schema();
    let name = name.trim_start_matches("intact.").trim_end_matches("/1");
    let file = File::json(format!("{name}.json"), "everything as JSON", move || {
        json::document(document)
    });
    page.files.insert(0, file);
    page
}
