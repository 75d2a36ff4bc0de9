//! What goes into every package of a system, in one folder: program, man pages, completions,
//! licences.

use super::platform::Platform;
use super::{ROOT, build::target_folder};
use crate::tool;
use anyhow::{Context, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder with `program/`, `pages/man/`, `pages/completions/` and `licences/`.
pub(super) struct Stage {
    pub(super) folder: PathBuf,
    pub(super) platform: &'static Platform,
}

impl Stage {
    /// Fills the folder. The pages come from the program itself, or from `others` if it does not
    /// run here.
    pub(super) fn fill(
        platform: &'static Platform,
        program: &Path,
        others: &[Stage],
    ) -> anyhow::Result<Stage> {
        let folder = target_folder().join("dist-stage").join(platform.name);
        let _ = fs::remove_dir_all(&folder);
        let stage = Stage { folder, platform };
        for name in ["program", "pages/man", "pages/completions", "licences"] {
            fs::create_dir_all(stage.folder.join(name)).context("the folder of packages")?;
        }
        for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
            let to = stage.folder.join("licences").join(licence);
            fs::copy(Path::new(ROOT).join(licence), to)?;
        }
        fs::copy(program, stage.program())?;
        if platform.runs_here() {
            stage.write_pages()?;
        } else if let Some(other) = others.first() {
            for name in ["pages/man", "pages/completions"] {
                copy_files(&other.folder.join(name), &stage.folder.join(name))?;
            }
        } else {
            bail!(
                "the program does not run here and so cannot print its man pages: add --only linux-x64"
            );
        }
        Ok(stage)
    }

    /// The program's file.
    pub(super) fn program(&self) -> PathBuf {
        self.folder.join("program").join(self.platform.program())
    }

    fn write_pages(&self) -> anyhow::Result<()> {
        let print = |words: &[String]| tool::run(&self.folder, self.program(), words);
        let mut commands = vec![(Vec::new(), intact::command())];
        while let Some((words, command)) = commands.pop() {
            let name = [&["intact".to_owned()][..], &words].concat().join("-");
            let page = match print(&[&["man".to_owned()][..], &words].concat()) {
                // a program that was built before may lack a feature
                Err(error) if error.to_string().contains("there is no command") => continue,
                page => page?,
            };
            fs::write(self.folder.join(format!("pages/man/{name}.1")), page)?;
            for inner in command.get_subcommands().filter(|one| !one.is_hide_set()) {
                let words = [&words[..], &[inner.get_name().to_owned()]].concat();
                commands.push((words, inner.clone()));
            }
        }
        for (shell, file) in [
            ("bash", "intact.bash"),
            ("zsh", "_intact"),
            ("fish", "intact.fish"),
        ] {
            let text = print(&["completions".to_owned(), shell.to_owned()])?;
            fs::write(self.folder.join("pages/completions").join(file), text)?;
        }
        Ok(())
    }
}

/// The time that all packages carry: that of the commit, so that the same source gives the same
/// bytes.
pub(super) fn date() -> String {
    std::env::var("SOURCE_DATE_EPOCH").unwrap_or_else(|_| {
        let words = ["log", "-1", "--format=%ct"];
        tool::run(Path::new(ROOT), "git", &words)
            .map_or_else(|_| "0".to_owned(), |date| date.trim().to_owned())
    })
}

/// Copies the files of a folder into one that exists.
pub(super) fn copy_files(from: &Path, to: &Path) -> anyhow::Result<()> {
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}

/// A command in a folder, with the date of the packages.
pub(super) fn packer(program: impl AsRef<std::ffi::OsStr>, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder).env("SOURCE_DATE_EPOCH", date());
    command
}
