//! The commands, one file each: arguments -> configuration -> run -> exit code.

pub(crate) mod bench;
pub(crate) mod demo;
pub(crate) mod fix;
pub(crate) mod report;
pub(crate) mod serve;

mod builtin;
mod recording;
mod requirements;
