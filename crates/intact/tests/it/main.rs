//! The binary as a person meets it.

mod audit;
mod cli;
mod ledgers;
#[cfg(target_os = "linux")]
mod link;
mod observed;
mod peers;
mod program;
mod readme;
