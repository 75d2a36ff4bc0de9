//! `intact man [COMMAND]`: the manual page of `intact` or of a command, from the same definitions
//! as the help.

use crate::console;
use crate::exit::{self, Failed, refuse};
use anyhow::Context;
use intact_units::suggest;
use std::process::ExitCode;

/// Prints the manual page of a command
#[derive(clap::Args)]
#[command(after_help = "Examples:
  intact man | man -l -
  intact man bench | man -l -
  intact man > /usr/local/share/man/man1/intact.1")]
pub(crate) struct Args {
    /// The command; without it the page of all
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
}

/// Prints the page.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failed> {
    let mut page = Vec::new();
    clap_mangen::Man::new(find(&args.command)?)
        .source(concat!("intact ", env!("CARGO_PKG_VERSION")))
        .render(&mut page)
        .context("the page could not be made")?;
    console::print_written(&String::from_utf8_lossy(&page));
    Ok(ExitCode::from(exit::FINE))
}

/// The command of these words, with its whole name.
fn find(words: &[String]) -> Result<clap::Command, Failed> {
    let mut all = crate::command();
    // fills in the whole names: `intact-bench`
    all.build();
    let mut command = all;
    for word in words {
        let Some(next) = command.find_subcommand(word) else {
            let names = command.get_subcommands().map(clap::Command::get_name);
            let meant = suggest::nearest(word, names)
                .map_or_else(String::new, |name| format!("; did you mean {name}?"));
            refuse!("there is no command {word}{meant}");
        };
        command = next.clone();
    }
    let name = command.get_display_name().unwrap_or("intact").to_owned();
    Ok(command.name(name))
}
