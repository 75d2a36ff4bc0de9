//! Man page and completions, from the same definitions as the help.

use anyhow::Context;
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
    let mut command = intact::command();
    clap_mangen::generate_to(command.clone(), &man)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut command, "intact", &completions)?;
    }
    println!("man pages and completions are in {}", folder.display());
    Ok(())
}
