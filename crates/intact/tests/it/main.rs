//! The binary as a person meets it.

mod cli;
mod ledgers;
mod peers;
mod program;
mod readme;
