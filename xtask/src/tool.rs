//! Runs an external program, such as a compiler, to its end. Its output is shown only if it fails.

use anyhow::{Context, bail};
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

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
    let output = command.stdin(Stdio::null()).output().with_context(|| {
        let name = command.get_program().to_string_lossy().into_owned();
        match package_of(&name) {
            Some(package) => format!("{name} is not installed: apt-get install {package}"),
            None => format!("{command:?}"),
        }
    })?;
    if !output.status.success() {
        bail!(
            "{command:?} failed: {}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The Debian package that brings a program.
pub(crate) fn package_of(program: &str) -> Option<&'static str> {
    Some(match program {
        "npm" | "node" => "nodejs npm",
        "python3" => "python3-venv",
        "go" => "golang-go",
        "java" | "javac" => "default-jdk-headless",
        "mvn" => "maven",
        "cargo" => "cargo",
        "php" => "php-cli php-curl",
        "ruby" => "ruby",
        "curl" => "curl",
        "wget" => "wget",
        _ => return None,
    })
}
