//! The binary as a person meets it.

mod audit;
mod cli;
mod compare;
mod ledgers;
#[cfg(target_os = "linux")]
mod link;
mod observed;
mod pages;
mod peers;
mod program;
mod readme;
mod watch;
