//! The binary as a person meets it.

mod check;
mod check_peers;
mod check_real;
mod cli;
mod ledgers;
#[cfg(target_os = "linux")]
mod link;
mod pages;
mod peers;
mod program;
mod readme;
