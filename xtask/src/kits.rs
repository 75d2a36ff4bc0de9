//! `cargo xtask kits`: the tests of the test kits, each on a real client, against `intact serve`
//! under `intact watch --windows`. It copies a kit to `target/kits` first, so that no package
//! manager writes into the tree.

use crate::clients::{self, Server};
use crate::tally::Tally;
use crate::tool;
use std::fs;
use std::path::Path;
use std::process::Command;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// A kit: its folder, and the functions that prepare its environment and run its tests.
struct Kit {
    name: &'static str,
    prepare: &'static [&'static [&'static str]],
    test: &'static [&'static str],
}

const KITS: [Kit; 4] = [
    Kit {
        name: "pytest",
        prepare: &[
            &["python3", "-m", "venv", "../venv"],
            &[
                "../venv/bin/pip",
                "install",
                "-q",
                "requests==2.34.2",
                "pytest==9.2.0",
                ".",
            ],
        ],
        test: &["../venv/bin/pytest", "-q", "tests"],
    },
    Kit {
        name: "node",
        prepare: &[],
        test: &["node", "--test", "test/"],
    },
    Kit {
        name: "go",
        prepare: &[&["go", "vet", "./..."]],
        test: &["go", "test", "-count=1", "./..."],
    },
    Kit {
        name: "junit5",
        prepare: &[&["mvn", "-q", "-B", "test-compile"]],
        test: &["mvn", "-q", "-B", "surefire:test"],
    },
];

/// Which kits.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only these: pytest, node, go, junit5; without a name all
    #[arg(value_parser = KITS.map(|kit| kit.name))]
    names: Vec<String>,
}

/// Runs the tests of all kits.
pub(crate) fn run_all() -> anyhow::Result<Tally> {
    run(&Args { names: Vec::new() })
}

/// Runs the tests of the kits and prints what fails.
pub(crate) fn run(args: &Args) -> anyhow::Result<Tally> {
    let intact = clients::build()?;
    let folder = Path::new(ROOT).join("target/kits");
    fs::create_dir_all(&folder)?;
    let folder = folder.canonicalize()?;
    let mut tally = Tally::default();
    let wanted =
        |kit: &Kit| args.names.is_empty() || args.names.iter().any(|name| name == kit.name);
    for kit in KITS.iter().filter(|kit| wanted(kit)) {
        match kit.run(&intact, &folder) {
            Ok(()) => {
                tally.passed += 1;
                println!("kits/{}: passed", kit.name);
            }
            Err(error) => {
                tally.failed.push(format!("kits/{}", kit.name));
                println!("kits/{}: FAILED: {error:#}", kit.name);
            }
        }
    }
    Ok(tally)
}

impl Kit {
    fn run(&self, intact: &Path, folder: &Path) -> anyhow::Result<()> {
        let source = Path::new(ROOT).join("kits").join(self.name);
        let kit = folder.join(self.name);
        let _ = fs::remove_dir_all(&kit);
        let words = ["-R".as_ref(), source.as_os_str(), kit.as_os_str()];
        tool::run(folder, "cp", &words)?;
        for words in self.prepare {
            tool::run(&kit, words[0], &words[1..])?;
        }
        let server = Server::start(intact, &[])?;
        let mut tests = Command::new(intact);
        let tests = tests.args(["watch", "--windows", "-q", "--"]);
        let tests = tests.args(self.test).current_dir(&kit);
        tool::output(tests.env("INTACT_TEST_SERVER", server.plain() + "/"))?;
        Ok(())
    }
}
