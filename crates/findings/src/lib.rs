//! Events in, facts out: statistics, rules, and the requirements that a run must meet.
//!
//! Uses the ledger and no producer. Must not open files or sockets, print, or read a clock; random
//! draws use a seed of the caller.

pub mod bench;
pub mod body_arrival;
pub mod capacity;
pub mod chain;
pub mod check;
pub mod compare;
pub mod cpu;
mod error_responses;
mod failure_remedy;
pub mod fault;
pub mod figures;
mod finding;
mod first_calls;
pub mod fleet;
pub mod lambda;
pub mod likeness;
mod overlap;
mod population;
pub mod requirement;
mod reuse_delay;
pub mod rules;
pub mod scenario;
mod statement;
pub mod stats;
pub mod stored;
mod time_difference;
pub mod timeline;
pub mod traffic;
mod unobserved;

pub use error_responses::ErrorResponses;
pub use finding::{Finding, Severity};
pub use population::Population;
pub use statement::{Statement, Value};
pub use unobserved::{Evidence, Unobserved};
