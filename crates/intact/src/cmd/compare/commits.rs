//! `--commits`: two commits of the repository, each in a checkout of its own in a private folder.
//!
//! A checkout is a repository that borrows the objects of the user's, so that neither git nor a
//! setup command (`git config`, hooks of a package) can change the user's. The folder ends with
//! this process, also after `kill -9`. Must not run the programs.

mod checkout;
mod git;
mod revisions;

use crate::cmd::compare::programs::{self, Program};
use crate::exit::{self, Failed};
use anyhow::anyhow;
use checkout::Checkout;
use git::Git;
use intact_experiments::compare::COMMIT_AXIS;
use intact_ledger::{Caveat, Variant};
use intact_sys::scratch_dir::ScratchDir;
use intact_units::foreign_text::escape;
use revisions::{Revisions, Side};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::Command;

/// Both sides of a change, ready to run.
pub(super) struct Commits {
    /// The program of each side, the base first.
    pub(super) programs: Vec<Program>,
    /// What limits the comparison.
    pub(super) caveats: Vec<Caveat>,
    /// Holds the checkouts.
    _scratch: ScratchDir,
}

/// What the command line asks for.
pub(super) struct Request<'a> {
    /// `BASE..HEAD`, `BASE...HEAD` or `BASE`.
    pub(super) commits: &'a str,
    /// A command for sh that is run in each checkout.
    pub(super) setup: Option<&'a str>,
    /// Whether it prints.
    pub(super) shows_output: bool,
    /// The words of the program.
    pub(super) words: &'a [OsString],
}

/// Checks both commits out and runs the setup in each.
pub(super) fn prepare(request: &Request<'_>, note: impl Fn(&str)) -> Result<Commits, Failed> {
    let command = programs::one(request.words)?;
    let here = std::env::current_dir()
        .and_then(|here| here.canonicalize())
        .map_err(|error| unprepared(anyhow!("the working folder: {error}")))?;
    let user = Git::of_user(&here);
    let revisions = Revisions::read(&user, request.commits)?;
    let parent = std::env::temp_dir();
    let scratch = ScratchDir::make(&parent).map_err(|error| {
        let parent = parent.display();
        unprepared(anyhow!(
            "{parent}: no folder for the checkouts: {error}; set TMPDIR"
        ))
    })?;
    let mut programs = Vec::new();
    for side in [&revisions.base, &revisions.head] {
        note(&format!("{}: checkout", side.name));
        let checkout = Checkout::make(&user, &revisions, side, scratch.path())?;
        if let Some(line) = request.setup {
            note(&format!("{}: setup", side.name));
            checkout.set_up(line, request.shows_output)?;
        }
        checkout.check_complete(request.setup.is_some())?;
        checkout.check_program(&command)?;
        programs.push(program(&command, side, &checkout));
    }
    Ok(Commits {
        programs,
        caveats: revisions.caveats(),
        _scratch: scratch,
    })
}

fn program(command: &[OsString], side: &Side, checkout: &Checkout) -> Program {
    let mut axes = BTreeMap::from([
        (COMMIT_AXIS.to_owned(), side.short.clone()),
        ("subject".to_owned(), escape(&side.subject)),
    ]);
    if side.changed > 0 {
        axes.insert("uncommitted".to_owned(), side.changed.to_string());
    }
    Program {
        command: command.to_vec(),
        environment: checkout.environment(),
        directory: Some(checkout.directory.clone()),
        code_root: Some(checkout.root.clone()),
        variant: Variant {
            name: side.name.to_owned(),
            axes,
        },
    }
}

/// A failure before anything ran.
fn unprepared(error: anyhow::Error) -> Failed {
    Failed::with_code(exit::WRAPPER_FAILURE, error)
}

/// Makes a command end with this process.
fn end_with_us(command: &mut Command) {
    intact_sys::guard::end_with_us(command);
}
