//! The table of documents: which one a ledger is read as, and the rules of each.

use intact_document::requirement::{Document, ParseError, Requirement};
use intact_experiments::{bench, capacity, scenario};
use intact_ledger::{Producer, Run};
use intact_servers::{chain, check, fault};
use intact_traffic::rules;

/// The document that a ledger is read as. A server, a link and a foreign producer that writes our
/// events observed traffic.
pub fn document_of(run: &Run) -> Document {
    match &run.producer {
        Producer::Watch | Producer::Lambda if fault::is_of_faults(run) => Document::Fault,
        Producer::Bench if run.capacity.is_some() => Document::Capacity,
        Producer::Bench if run.scenario.is_some() => Document::Scenario,
        Producer::Bench => Document::Bench,
        Producer::Check => Document::Check,
        Producer::Audit => Document::Audit,
        Producer::Compare => Document::Compare,
        Producer::Lambda => Document::Lambda,
        Producer::Watch
        | Producer::Link
        | Producer::Serve
        | Producer::Fleet
        | Producer::Other(_) => Document::Watch,
    }
}

/// The rules that a document applies: where another one is asked for, no finding is no evidence.
pub fn rules_of(document: Document) -> Vec<&'static str> {
    match document {
        Document::Check => check::rule_ids(),
        Document::Chain => chain::RULES.to_vec(),
        Document::Bench => bench::RULES.to_vec(),
        Document::Scenario => scenario::RULES.to_vec(),
        Document::Capacity => capacity::RULES.to_vec(),
        Document::Fault => fault::RULES.to_vec(),
        Document::Fleet => [check::rule_ids(), bench::RULES.to_vec()].concat(),
        Document::Watch | Document::Compare | Document::Audit | Document::Lambda => {
            rules::ids().collect()
        }
    }
}

/// Refuses a requirement that no run of `document` can have a value for.
///
/// # Errors
/// A metric, a selector or a rule that the document does not have.
pub fn check_requirement(requirement: &Requirement, document: Document) -> Result<(), ParseError> {
    requirement.check_for(document, rules_of)
}
