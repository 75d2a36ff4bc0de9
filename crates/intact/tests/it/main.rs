//! The binary as a person meets it.

mod check;
mod check_peers;
mod cli;
mod ledgers;
mod peers;
mod program;
mod readme;
