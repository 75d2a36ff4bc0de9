//! The binary as a person meets it.

mod cli;
mod ledgers;
#[cfg(target_os = "linux")]
mod link;
mod pages;
mod peers;
mod program;
mod readme;
mod serve;
