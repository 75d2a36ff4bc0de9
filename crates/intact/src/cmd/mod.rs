//! The commands, one file each: arguments -> configuration -> run -> exit code.

pub(crate) mod audit;
pub(crate) mod bench;
pub(crate) mod demo;
pub(crate) mod link;
pub(crate) mod report;
pub(crate) mod serve;

mod builtin;
mod gates;
mod keeping;
mod recording;
mod requirements;
mod stored;
