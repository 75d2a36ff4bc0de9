//! `cargo xtask dist --try`: installs the artefacts into empty environments, as a user would, and
//! runs them. It prints the table of the release: artefact, size, command, steps that ran. An
//! artefact that cannot be tried here is listed with the reason and counts as not run.

mod install;
mod steps;

use super::package::Kind;
use super::platform::Platform;
use super::tools::Tools;
use super::{Artefact, PACKAGE, ROOT};
use crate::peers::is_installed;
use crate::tool;
use anyhow::Context;
use install::install;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use steps::steps;

/// A program that was installed: the words that start it, and how it came there.
struct Installed {
    words: Vec<OsString>,
    command: String,
    /// All commands are run, not only `--version` and `audit`.
    is_thorough: bool,
}

/// The result for an artefact.
enum Trial {
    Ran(String, Vec<&'static str>),
    NotRun(String),
    Failed(String),
}

/// Tries all of them and prints the table. `Ok(false)`: one does not run.
pub(super) fn run(artefacts: &[Artefact], tools: &Tools) -> anyhow::Result<bool> {
    let mut all_ran = true;
    println!("\n| artefact | size | installed with | run from it |\n| --- | ---: | --- | --- |");
    for artefact in artefacts {
        let room = tempfile::tempdir()?;
        let trial = attempt(artefact, artefacts, room.path(), tools);
        let (command, ran) = match trial {
            Trial::Ran(command, steps) => (format!("`{command}`"), steps.join(", ")),
            Trial::NotRun(why) => ("-".to_owned(), format!("not run: {why}")),
            Trial::Failed(why) => {
                all_ran = false;
                ("-".to_owned(), format!("FAILED: {why}"))
            }
        };
        println!(
            "| {} | {} | {command} | {ran} |",
            artefact.name(),
            artefact.size()?
        );
    }
    Ok(all_ran)
}

fn attempt(artefact: &Artefact, all: &[Artefact], room: &Path, tools: &Tools) -> Trial {
    if artefact.kind == Kind::Sbom {
        return Trial::NotRun("a document".to_owned());
    }
    let platform = match (artefact.kind, artefact.platform) {
        // npm's main package runs through that of this machine
        (Kind::Npm, None) => match all
            .iter()
            .filter_map(|one| one.platform)
            .find(|one| one.runs_here() && one.suits_npm())
        {
            Some(platform) => platform,
            None => {
                return Trial::NotRun("no program of this machine's system was built".to_owned());
            }
        },
        (Kind::Npm, Some(_)) => {
            return Trial::NotRun(format!("through {PACKAGE}, if it is this machine's"));
        }
        (_, Some(platform)) => platform,
        (_, None) => return Trial::NotRun("no program".to_owned()),
    };
    let emulator = match emulator(platform, artefact.kind) {
        Ok(emulator) => emulator,
        Err(why) => return Trial::NotRun(why),
    };
    let installer = match artefact.kind {
        Kind::Deb => "dpkg",
        Kind::Rpm => "rpm",
        Kind::Npm => "npm",
        Kind::Image => "podman",
        Kind::Archive | Kind::Wheel | Kind::Sbom => "python3",
    };
    if !is_installed(installer) {
        return Trial::NotRun(format!("{installer} is not installed"));
    }
    let ran = install(artefact, all, platform, room).and_then(|mut installed| {
        if platform.is_windows() {
            complete_wine(Path::new(&installed.words[0]), tools)?;
        }
        let words = emulator.iter().map(OsString::from);
        installed.words.splice(0..0, words);
        steps(&installed, platform, artefact.kind, room).map(|steps| (installed.command, steps))
    });
    match ran {
        Ok((command, steps)) => Trial::Ran(command, steps),
        Err(error) => Trial::Failed(format!("{error:#}").replace('\n', " ")),
    }
}

/// The words in front of a program of another system, or why it does not run here.
fn emulator(platform: &Platform, kind: Kind) -> Result<&'static [&'static str], String> {
    if platform.runs_here() {
        return Ok(&[]);
    }
    if matches!(kind, Kind::Wheel | Kind::Image) {
        return Err(format!("its installer runs on {} only", platform.name));
    }
    let Some(emulator) = &platform.emulator else {
        return Err("nothing here runs programs of that system".to_owned());
    };
    let is_there = emulator.file.is_none_or(|file| Path::new(file).exists());
    if is_there && is_installed(emulator.words[0]) {
        return Ok(emulator.words);
    }
    Err(format!(
        "{} is not installed (apt-get install {})",
        emulator
            .file
            .filter(|_| !is_there)
            .unwrap_or(emulator.words[0]),
        emulator.packages
    ))
}

/// Puts a library of Windows next to the program: Wine 8 lacks it, and Rust's standard library
/// takes random bytes from it.
fn complete_wine(program: &Path, tools: &Tools) -> anyhow::Result<()> {
    let source = Path::new(ROOT).join("xtask/src/dist/trial/bcryptprimitives.c");
    let source = source.canonicalize()?.display().to_string();
    let words =
        "-m ziglang cc -target x86_64-windows-gnu -shared -ladvapi32 -o bcryptprimitives.dll";
    let words: Vec<&str> = words.split(' ').chain([source.as_str()]).collect();
    let folder = program.parent().context("a program in a folder")?;
    tool::run(folder, tools.python()?, &words).map(drop)
}

/// Inputs of the programs that are tried.
fn fixtures() -> PathBuf {
    let folder = Path::new(ROOT).join("fixtures");
    folder.canonicalize().unwrap_or(folder)
}
