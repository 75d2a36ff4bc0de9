//! ledger

pub mod order;
