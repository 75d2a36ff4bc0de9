//! `cargo xtask dist --try`: installs what was built, as a user would, into empty environments, and runs it there. It prints the table of the
//! release: artefact, size, command, what was run. What cannot be tried here is named with its reason and counts as not run.

mod install;
mod steps;

use super::package::Kind;
use super::platform::Platform;
use super::{Artefact, PACKAGE, ROOT};
use install::install;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
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
pub(super) fn run(artefacts: &[Artefact]) -> anyhow::Result<bool> {
    let mut all_ran = true;
    println!("\n| artefact | size | installed with | run from it |\n| --- | ---: | --- | --- |");
    for artefact in artefacts {
        let room = tempfile::tempdir()?;
        let trial = attempt(artefact, artefacts, room.path());
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

fn attempt(artefact: &Artefact, all: &[Artefact], room: &Path) -> Trial {
    if artefact.kind == Kind::Sbom {
        return Trial::NotRun("a document".to_owned());
    }
    let platform = match (artefact.kind, artefact.platform) {
        // npm's main package runs through that of this machine
        (Kind::Npm, None) => match all
            .iter()
            .filter_map(|one| one.platform)
            .find(|one| one.runs_here())
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
    let ran = install(artefact, all, platform, room).and_then(|mut installed| {
        installed.words.splice(0..0, emulator);
        steps(&installed, platform, artefact.kind, room).map(|steps| (installed.command, steps))
    });
    match ran {
        Ok((command, steps)) => Trial::Ran(command, steps),
        Err(error) => Trial::Failed(format!("{error:#}").replace('\n', " ")),
    }
}

/// The words in front of a program of another system, or why it does not run here.
fn emulator(platform: &Platform, kind: Kind) -> Result<Option<OsString>, String> {
    if platform.runs_here() {
        return Ok(None);
    }
    if matches!(kind, Kind::Wheel | Kind::Image) {
        return Err(format!("its installer runs on {} only", platform.name));
    }
    match platform.emulator {
        Some([program, package]) => match Command::new(program).arg("--version").output() {
            Ok(_) => Ok(Some(program.into())),
            Err(_) => Err(format!(
                "{program} is not installed (apt-get install {package})"
            )),
        },
        None => Err("nothing here runs programs of that system".to_owned()),
    }
}

/// Inputs of the programs that are tried.
fn fixtures() -> PathBuf {
    let folder = Path::new(ROOT).join("fixtures");
    folder.canonicalize().unwrap_or(folder)
}
