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
pub(crate) mod look;
pub(crate) mod model;
pub(crate) mod report;
pub(crate) mod serve;
pub(crate) mod watch;

mod builtin;
mod expect;
mod files;
mod gates;
mod head;
mod json;
mod ladder;
mod left_out;
mod linked;
#[cfg(feature = "metrics")]
mod metrics;
mod observing;
mod page;
mod reach;
mod recording;
mod requirements;
mod stored;
mod watching;
