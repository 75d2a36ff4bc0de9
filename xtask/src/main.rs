//! Tasks of the workspace. `cargo xtask test [--install]` runs all tests. `cargo xtask clients`
//! measures the clients of the catalogue. `cargo xtask dist` builds the artefacts of a release.
//! `cargo xtask --help` lists the others.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a tool for the terminal"
)]

mod catalogue_page;
mod clients;
mod dependencies;
mod dist;
mod kits;
mod metadata;
mod peers;
mod tally;
mod test;
mod tool;
mod words;

use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Parser)]
#[command(about = "Chores of the workspace")]
struct Cli {
    #[command(subcommand)]
    chore: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Runs all tests. Missing programs are installed with --install (or in CI), otherwise listed
    Test {
        /// Install the missing servers and clients by name, with the system's package manager
        #[arg(long)]
        install: bool,
        /// Also what takes too long for each change, as the whole catalogue of clients
        #[arg(long)]
        all: bool,
    },
    /// Measures the HTTP clients of the catalogue and writes clients/measured.json
    Clients(clients::Args),
    /// Writes the catalogue of clients, proxies and servers as one static page
    CataloguePage {
        /// File to write
        file: PathBuf,
    },
    /// Runs the tests of the test kits on real clients, under `intact watch --windows`
    Kits(kits::Args),
    /// Runs a client inside a link, for `clients`
    #[command(hide = true)]
    Namespace(clients::NamespaceArgs),
    /// Checks licences, sources and duplicates of all dependencies against deny.toml
    Dependencies,
    /// Checks comments, messages, docs and subjects of commits: rejected words, wide lines, long
    /// paragraphs
    Words {
        /// Print a table of hits per folder instead
        #[arg(long)]
        count: bool,
    },
    /// Builds every artefact of a release: programs, packages, image, checksums and the bill of
    /// materials
    Dist(dist::Args),
    /// Type-checks the program for macOS, without a Mac
    Systems,
}

fn main() -> ExitCode {
    let done = match Cli::parse().chore {
        Task::Test { install, all } => test::run(install, all),
        Task::Clients(args) => clients::run(&args).map(|done| done.failed.is_empty()),
        Task::CataloguePage { file } => catalogue_page::write(&file).map(|()| true),
        Task::Kits(args) => kits::run(&args).map(|done| done.failed.is_empty()),
        Task::Namespace(args) => clients::run_in_namespace(&args).map(|()| true),
        Task::Dependencies => dependencies::check(),
        Task::Words { count } => words::check(count),
        Task::Dist(args) => dist::run(&args),
        Task::Systems => dist::type_check::run(),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
