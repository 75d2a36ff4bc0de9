//! Events in, facts out: statistics, and the requirements that a run is held against.
//!
//! Sees the ledger and nothing that produces one. Must not open, print, or ask the time; what is random
//! draws from a seed that the caller hands in.

pub mod bench;
pub mod body_arrival;
pub mod check;
pub mod compare;
pub mod cpu;
mod error_responses;
pub mod figures;
mod finding;
pub mod fleet;
pub mod lambda;
mod overlap;
mod population;
pub mod requirement;
pub mod rules;
pub mod stats;
pub mod stored;
mod time_difference;
pub mod timeline;
pub mod traffic;
mod unobserved;

pub use error_responses::ErrorResponses;
pub use finding::{Finding, Severity};
pub use population::Population;
pub use unobserved::Unobserved;
