//! Runs an external program, such as a compiler, to its end. Its output is shown only if it fails.

use crate::peers::package_of;
use anyhow::{Context, bail};
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Runs a program in a folder and returns what it printed. A failure has all of its output.
pub(crate) fn run(
    folder: &Path,
    program: impl AsRef<OsStr>,
    words: &[impl AsRef<OsStr>],
) -> anyhow::Result<String> {
    output(Command::new(program).args(words).current_dir(folder))
}

/// The same for a command that is already made.
pub(crate) fn output(command: &mut Command) -> anyhow::Result<String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| not_started(command))?;
    if !output.status.success() {
        bail!(
            "{command:?} failed: {}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What to do about a command that does not start.
pub(crate) fn not_started(command: &Command) -> String {
    let name = command.get_program().to_string_lossy();
    match package_of(&name) {
        Some(package) => format!("{name} is not installed: apt-get install {package}"),
        None => format!("cannot start {}", line(command)),
    }
}

/// The words of a command, without its variables.
pub(crate) fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(OsStr::to_string_lossy).collect();
    words.join(" ")
}

/// The cargo that runs this program.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// A process that is killed with this value.
pub(crate) struct Process(pub(crate) Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
