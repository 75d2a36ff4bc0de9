//! The commands, one file each: arguments -> configuration -> run -> exit code.

pub(crate) mod audit;
pub(crate) mod bench;
pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod demo;
pub(crate) mod fix;
pub(crate) mod fleet;
pub(crate) mod lambda;
pub(crate) mod link;
pub(crate) mod url;
pub(crate) mod model;
pub(crate) mod report;
pub(crate) mod serve;
pub(crate) mod watch;

mod builtin;
mod expect;
mod output_files;
mod gates;
mod run_header;
mod json;
mod ladder;
mod missing_feature;
mod on_link;
#[cfg(feature = "metrics")]
mod metrics;
mod observing;
mod page;
mod connect_options;
mod recording;
mod requirements;
mod stored;
mod watching;
