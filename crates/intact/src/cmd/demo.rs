//! Bare `intact`: the demonstration.

use crate::exit::Failed;
use clap::Parser;
use std::process::ExitCode;

/// A bench of the built-in server with its defaults.
pub(crate) fn run() -> Result<ExitCode, Failed> {
    #[derive(Parser)]
    struct Defaults {
        #[command(flatten)]
        args: super::bench::Args,
    }
    super::bench::run(Defaults::parse_from(["intact"]).args)
}
