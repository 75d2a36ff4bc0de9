//! The table of documents: which one a ledger is read as, and the rules of each.

use intact_document::requirement::{DocumentKind, ParseError, Requirement};
use intact_experiments::{bench, capacity, scenario};
use intact_ledger::{Producer, Run};
use intact_servers::{chain, check, fault};
use intact_traffic::rules;

/// The document that a ledger is read as. A server, a link and a foreign producer that writes our
/// events observed traffic.
pub fn document_of(run: &Run) -> DocumentKind {
    match &run.producer {
        Producer::Watch | Producer::Lambda if fault::is_of_faults(run) => DocumentKind::Fault,
        Producer::Bench if run.capacity.is_some() => DocumentKind::Capacity,
        Producer::Bench if run.scenario.is_some() => DocumentKind::Scenario,
        Producer::Bench => DocumentKind::Bench,
        Producer::Check => DocumentKind::Check,
        Producer::Audit => DocumentKind::Audit,
        Producer::Compare => DocumentKind::Compare,
        Producer::Lambda => DocumentKind::Lambda,
        Producer::Watch
        | Producer::Link
        | Producer::Serve
        | Producer::Fleet
        | Producer::Other(_) => DocumentKind::Watch,
    }
}

/// The rules that a document applies: where another one is asked for, no finding is no evidence.
pub fn rules_of(document: DocumentKind) -> Vec<&'static str> {
    match document {
        DocumentKind::Check => check::rule_ids(),
        DocumentKind::Chain => chain::RULES.to_vec(),
        DocumentKind::Bench => bench::RULES.to_vec(),
        DocumentKind::Scenario => scenario::RULES.to_vec(),
        DocumentKind::Capacity => capacity::RULES.to_vec(),
        DocumentKind::Fault => fault::RULES.to_vec(),
        DocumentKind::Fleet => [check::rule_ids(), bench::RULES.to_vec()].concat(),
        DocumentKind::Watch
        | DocumentKind::Compare
        | DocumentKind::Audit
        | DocumentKind::Lambda => rules::ids().collect(),
    }
}

/// Refuses a requirement that no run of `document` can have a value for.
///
/// # Errors
/// A metric, a selector or a rule that the document does not have.
pub fn check_requirement(
    requirement: &Requirement,
    document: DocumentKind,
) -> Result<(), ParseError> {
    requirement.check_for(document, rules_of)
}
