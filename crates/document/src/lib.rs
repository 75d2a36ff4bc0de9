//! What every document about a run is made of: figures, findings in sentences, requirements.
//!
//! Knows no document: each hands in its subjects, its findings and its rules. Must not open files
//! or sockets, print, or read a clock.

pub mod body_arrival;
pub mod cpu;
pub mod error_responses;
pub mod failure_remedy;
pub mod figures;
pub mod finding;
pub mod first_calls;
pub mod population;
pub mod requirement;
pub mod reuse_delay;
pub mod statement;
pub mod unobserved;

pub use error_responses::ErrorResponses;
pub use finding::{Finding, Severity};
pub use population::Population;
pub use statement::{Statement, Value};
pub use unobserved::Unobserved;
