//! The binary as a person meets it.

mod cli;
mod ledgers;
mod pages;
mod peers;
mod program;
mod readme;
