//! `intact completions SHELL`: what a shell needs to complete the command line, from the same
//! definitions as the help.

use crate::console;
use crate::exit::{self, Failed};
use clap_complete::Shell;
use std::process::ExitCode;

/// Prints the completions of a shell
#[derive(clap::Args)]
#[command(after_help = "Examples:
  intact completions bash > /etc/bash_completion.d/intact
  intact completions zsh > \"${fpath[1]}/_intact\"
  intact completions fish > ~/.config/fish/completions/intact.fish")]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

/// Prints the completions.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failed> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::command(), "intact", &mut script);
    console::print_written(&String::from_utf8_lossy(&script));
    Ok(ExitCode::from(exit::FINE))
}
