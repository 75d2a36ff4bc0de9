//! The commands, one file each: arguments -> configuration -> run -> exit code.

pub(crate) mod audit;
pub(crate) mod bench;
pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod fix;
#[cfg(feature = "fleet")]
pub(crate) mod fleet;
pub(crate) mod help;
pub(crate) mod lambda;
pub(crate) mod link;
pub(crate) mod man;
pub(crate) mod model;
pub(crate) mod report;
pub(crate) mod serve;
pub(crate) mod url;
pub(crate) mod watch;

mod builtin;
mod conclusion;
mod config;
mod connect_options;
mod expect;
mod fault_options;
pub(crate) mod foreign_options;
mod gates;
pub(crate) mod internal;
mod json;
mod ladder;
#[cfg(feature = "metrics")]
mod metrics;
pub(crate) mod missing_feature;
mod observing;
mod on_link;
mod options;
mod output_files;
mod page;
mod places;
mod production;
mod progress;
mod recording;
mod requirements;
mod resolver;
mod run_header;
mod server_command;
mod watching;
