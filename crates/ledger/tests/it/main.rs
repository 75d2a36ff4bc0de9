//! The ledger from outside.

mod store;
mod tally;
