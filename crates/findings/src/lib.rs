//! All documents: which one a ledger is read as, and the campaign that puts several together.
//!
//! Uses the ledger and no producer. Must not open sockets, print, or read a clock.

#[cfg(not(feature = "schema"))]
#[macro_use]
extern crate intact_schema;
#[cfg(feature = "schema")]
#[macro_use]
extern crate schemars;

pub mod document;
pub mod fleet;
pub mod stored;

pub use document::{
    AuditParts, BenchParts, Document, ObservedParts, OfRun, Parts, check_requirement, document_of,
    rules_of,
};
