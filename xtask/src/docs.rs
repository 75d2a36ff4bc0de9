//! Man page and completions, from the same definitions as the help.

use anyhow::Context;
use clap::Command;
use clap::builder::StyledStr;
use clap_complete::Shell;
use std::fs;
use std::path::Path;

/// Writes `man/intact*.1` and `completions/` below `folder`.
pub(crate) fn write(folder: &Path) -> anyhow::Result<()> {
    let man = folder.join("man");
    let completions = folder.join("completions");
    for folder in [&man, &completions] {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    let mut command = shown(&intact::command());
    clap_mangen::generate_to(command.clone(), &man)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut command, "intact", &completions)?;
    }
    println!("man pages and completions are in {}", folder.display());
    Ok(())
}

/// Without the commands that are for our own use: completions would offer hidden ones too.
fn shown(command: &Command) -> Command {
    let mut shown = Command::new("intact").args(command.get_arguments().cloned());
    let below = command.get_subcommands();
    shown = shown.subcommands(below.filter(|one| !one.is_hide_set()).cloned());
    for (text, set) in [
        (
            command.get_about(),
            Command::about as fn(Command, StyledStr) -> Command,
        ),
        (command.get_after_help(), Command::after_help),
    ] {
        if let Some(text) = text {
            shown = set(shown, text.clone());
        }
    }
    match command.get_version() {
        Some(version) => shown.version(version.to_owned()),
        None => shown,
    }
}
