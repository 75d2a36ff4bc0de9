//! The binary as a person meets it.

mod cli;
mod fix;
mod ledgers;
mod peers;
mod program;
