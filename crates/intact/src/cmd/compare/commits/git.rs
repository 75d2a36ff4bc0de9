//! The program `git`, in the user's repository or in a checkout. Must not write to the user's
//! repository.

use super::unprepared;
use crate::exit::Failed;
use anyhow::anyhow;
use intact_units::foreign_text::escape;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Variables that lead git, and programs that run it, to another repository than that of their
/// folder. A hook of git has them.
pub(super) const OF_REPOSITORY: [&str; 8] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_QUARANTINE_PATH",
    "GIT_WORK_TREE",
];

/// git in a folder.
pub(super) struct Git {
    pub(super) directory: PathBuf,
    is_checkout: bool,
}

/// What git answered instead of what it was asked for.
#[derive(Debug)]
pub(super) struct Refusal(String);

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl Git {
    /// In the user's repository, which has this folder.
    pub(super) fn of_user(directory: &Path) -> Git {
        Git {
            directory: directory.to_owned(),
            is_checkout: false,
        }
    }

    /// In a checkout of ours.
    pub(super) fn of_checkout(directory: &Path) -> Git {
        Git {
            directory: directory.to_owned(),
            is_checkout: true,
        }
    }

    /// What a command prints; the inner error is git's own.
    ///
    /// # Errors
    /// There is no git.
    pub(super) fn ask(&self, words: &[&str]) -> Result<Result<Vec<u8>, Refusal>, Failed> {
        let mut command = Command::new("git");
        command
            .args(["-c", "advice.detachedHead=false", "--no-optional-locks"])
            .args(words)
            .current_dir(&self.directory)
            .env("LC_ALL", "C")
            .env("GIT_TERMINAL_PROMPT", "0");
        if self.is_checkout {
            for name in OF_REPOSITORY {
                command.env_remove(name);
            }
        }
        super::end_with_us(&mut command);
        let out: Output = command.output().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => unprepared(anyhow!(
                "--commits needs the program git, which is not in PATH: install it, or compare two programs: `intact compare -- CMD_A -- CMD_B`"
            )),
            _ => unprepared(anyhow!("git cannot be run: {error}")),
        })?;
        if out.status.success() {
            return Ok(Ok(out.stdout));
        }
        let said = String::from_utf8_lossy(&out.stderr);
        let mut lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
        let is_fatal = |line: &&str| line.starts_with("fatal:") || line.starts_with("error:");
        let last = lines.clone().find(is_fatal).or_else(|| lines.next_back());
        Ok(Err(Refusal(escape(last.unwrap_or("it gave no reason")))))
    }

    /// The same where git's refusal ends the comparison, with what was wanted from it.
    pub(super) fn must(&self, wanted: &str, words: &[&str]) -> Result<Vec<u8>, Failed> {
        self.ask(words)?
            .map_err(|refusal| unprepared(anyhow!("{wanted}: git: {refusal}")))
    }

    /// The first line that a command prints; `None` where git refuses.
    pub(super) fn line(&self, words: &[&str]) -> Result<Option<String>, Failed> {
        Ok(self.ask(words)?.ok().map(|bytes| {
            let text = String::from_utf8_lossy(&bytes);
            text.lines().next().unwrap_or_default().to_owned()
        }))
    }

    /// A path that a command prints, seen from this folder.
    pub(super) fn path(&self, words: &[&str]) -> Result<Option<PathBuf>, Failed> {
        Ok(self.ask(words)?.ok().map(|bytes| {
            let end = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
            self.directory.join(OsStr::from_bytes(end))
        }))
    }

    /// The paths that a command prints, each with a NUL after it.
    pub(super) fn paths(&self, wanted: &str, words: &[&str]) -> Result<Vec<PathBuf>, Failed> {
        let bytes = self.must(wanted, words)?;
        let paths = bytes
            .split(|byte| *byte == 0)
            .filter(|path| !path.is_empty());
        Ok(paths
            .map(|path| PathBuf::from(OsStr::from_bytes(path)))
            .collect())
    }
}
