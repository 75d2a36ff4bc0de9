//! What every document about a run is made of: figures, findings in sentences, requirements.
//!
//! Knows no document: each hands in its subjects, its findings and its rules. Must not open files
//! or sockets, print, or read a clock.

#[cfg(not(feature = "schema"))]
#[macro_use]
extern crate intact_schema;
#[cfg(feature = "schema")]
#[macro_use]
extern crate schemars;

pub mod body_arrival;
pub mod claim;
pub mod cpu;
pub mod error_responses;
pub mod facts;
pub mod failure_remedy;
pub mod figures;
pub mod finding;
pub mod first_calls;
pub mod grouping;
pub mod population;
pub mod readings;
pub mod requirement;
pub mod reuse_delay;
pub mod statement;
pub mod traffic_readings;
pub mod unobserved;

pub use claim::{Claim, ClaimKind, Claims};
pub use error_responses::ErrorResponses;
pub use facts::{Conclusions, Facts, RuleState, Subject};
pub use finding::{Finding, Place, Severity};
pub use population::Population;
pub use readings::Readings;
pub use statement::{Statement, Value};
pub use unobserved::Unobserved;
