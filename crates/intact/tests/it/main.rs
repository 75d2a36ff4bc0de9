//! The binary as a person meets it.

mod cli;
mod compare;
mod ledgers;
mod observed;
mod peers;
mod program;
mod watch;
