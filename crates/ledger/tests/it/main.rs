//! Tests of the ledger's public interface.

mod store;
mod tally;
