//! The binary as a person meets it.

mod cli;
mod ledgers;
mod observed;
mod peers;
mod program;
