//! Runs the tests and prints a summary, with the skipped tests.

use crate::{clients, kits, peers, tool};
use anyhow::{Context, bail};
use serde::Deserialize;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Set where each test does all it can, however long that takes.
const ALL: &str = "INTACT_TEST_ALL";

/// The test program that measures real programs, and waits for them most of its time. It runs first
/// and alone, with two threads for each processor: next to others its programs come late.
const ALONE: &str = "intact it";

/// Its tests whose programs must open connections at a rate: one thread for each processor.
const AT_A_RATE: &str = "rule_pairs";

/// A program of tests that prints nothing for this long is ended. Its last lines name what ran over
/// a minute.
const SILENCE: Duration = Duration::from_secs(900);

/// Runs all tests; `all`: also what takes too long for each change. `Ok(false)`: some failed, or
/// in CI some were skipped.
pub(crate) fn run(install: bool, all: bool) -> anyhow::Result<bool> {
    let ci = std::env::var_os("CI").is_some();
    if install || ci {
        peers::install()?;
        clients::install_runtimes()?;
    }
    for peer in peers::PEERS
        .iter()
        .filter(|peer| !peers::is_installed(peer.program))
    {
        println!(
            "{} is not installed: its tests will be skipped (cargo xtask test --install)",
            peer.program
        );
    }
    let skipped_log = std::env::temp_dir().join(format!("intact-skipped-{}", std::process::id()));
    let tests = build()?;
    let [mut passed, mut failed] = run_all(tests, &skipped_log, all);
    if all {
        // the crates have no example that runs; one that comes is not lost
        let status = tool::cargo()
            .args(["test", "--doc", "--workspace"])
            .status();
        failed += u64::from(!status.context("cargo test --doc")?.success());
    }
    if install || ci || all {
        for (what, args) in clients::Args::checks(all) {
            println!("{what}");
            let done = clients::run(&args)?;
            passed += done.fine;
            failed += done.failed;
        }
        println!("the tests of the kits:");
        let [kits_passed, kits_failed] = kits::run_all()?;
        passed += kits_passed;
        failed += kits_failed;
    } else {
        println!(
            "not run here: the catalogue of clients (cargo xtask clients --check --quick, --watched --quick and --loop --quick) and the test kits (cargo xtask kits)"
        );
    }
    let skipped = skipped(&skipped_log);
    for line in &skipped {
        println!("SKIPPED {line}");
    }
    println!(
        "{passed} passed, {failed} failed, {} skipped",
        skipped.len()
    );
    let all_ran = skipped.is_empty() || !ci;
    Ok(failed == 0 && all_ran)
}

/// A line of cargo about what it built.
#[derive(Deserialize)]
struct Artifact {
    manifest_path: Option<PathBuf>,
    target: Option<Target>,
    profile: Option<Profile>,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// A built program with tests.
struct TestProgram {
    name: String,
    path: PathBuf,
    crate_folder: PathBuf,
}

/// Builds all programs with tests.
fn build() -> anyhow::Result<Vec<TestProgram>> {
    let mut cargo = tool::cargo();
    cargo.args([
        "test",
        "--workspace",
        "--lib",
        "--bins",
        "--tests",
        "--no-run",
    ]);
    cargo.args(["--message-format", "json-render-diagnostics"]);
    let built = cargo
        .stderr(Stdio::inherit())
        .output()
        .context("cargo test")?;
    if !built.status.success() {
        bail!("the tests do not build");
    }
    let mut tests = Vec::new();
    for line in built.stdout.lines() {
        let artifact: Artifact = serde_json::from_str(&line?).context("what cargo built")?;
        let Artifact {
            manifest_path: Some(manifest),
            target: Some(target),
            profile: Some(profile),
            executable: Some(path),
        } = artifact
        else {
            continue;
        };
        if !profile.test {
            if target.name == "intact" {
                clients::set_built(path);
            }
            continue;
        }
        let crate_folder = manifest
            .parent()
            .context("a manifest has a folder")?
            .to_owned();
        let manifest = std::fs::read_to_string(&manifest)?;
        let manifest: toml::Table = manifest.parse()?;
        let package = manifest["package"]["name"].as_str().unwrap_or_default();
        let program = TestProgram {
            name: format!("{package} {}", target.name),
            path,
            crate_folder,
        };
        tests.push(program);
    }
    Ok(tests)
}

/// Runs the programs, as many at a time as there are processors: how many tests passed and failed.
fn run_all(tests: Vec<TestProgram>, skipped_log: &Path, all: bool) -> [u64; 2] {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let (alone, others): (Vec<_>, Vec<_>) = tests.into_iter().partition(|test| test.name == ALONE);
    let sums = Mutex::new([0; 2]);
    let run = |program: &TestProgram, threads: usize, words: &[&str]| {
        let started = Instant::now();
        let done = program.run(threads, words, skipped_log, all);
        let [passed, failed] = done.unwrap_or_else(|error| {
            println!("{}: FAILED: {error:#}", program.name);
            [0, 1]
        });
        let seconds = started.elapsed().as_secs();
        println!(
            "{}: {passed} passed, {failed} failed, {seconds} s",
            program.name
        );
        let mut sums = sums.lock().unwrap_or_else(PoisonError::into_inner);
        sums[0] += passed;
        sums[1] += failed;
    };
    for program in &alone {
        run(program, 2 * processors, &["--skip", AT_A_RATE]);
        run(program, processors, &[AT_A_RATE]);
    }
    let waiting = Mutex::new(VecDeque::from(others));
    let next = || {
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.pop_front()
    };
    thread::scope(|scope| {
        for _ in 0..processors {
            scope.spawn(|| {
                while let Some(program) = next() {
                    run(&program, processors, &[]);
                }
            });
        }
    });
    sums.into_inner().unwrap_or_else(PoisonError::into_inner)
}

impl TestProgram {
    /// Runs the tests and prints their lines: how many passed and failed.
    fn run(
        &self,
        threads: usize,
        words: &[&str],
        skipped_log: &Path,
        all: bool,
    ) -> anyhow::Result<[u64; 2]> {
        let mut command = Command::new(&self.path);
        command.args(words);
        command.current_dir(&self.crate_folder);
        command.env("CARGO_MANIFEST_DIR", &self.crate_folder);
        command.env("INTACT_SKIPPED", skipped_log);
        command.env("RUST_TEST_THREADS", threads.to_string());
        if let Some(intact) = clients::built() {
            command.env(clients::BUILT, intact);
        }
        if all {
            command.env(ALL, "1");
        }
        let mut running = command.stdout(Stdio::piped()).spawn()?;
        let mut counts = None;
        let out = running.stdout.take().context("its output")?;
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            let mut lines = BufReader::new(out).lines();
            while lines.next().is_some_and(|line| sender.send(line).is_ok()) {}
        });
        loop {
            let line = match lines.recv_timeout(SILENCE) {
                Ok(line) => line.context("reading what it prints")?,
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    running.kill()?;
                    bail!("printed nothing for {SILENCE:?}: a test waits for ever");
                }
            };
            match line.strip_prefix("test result: ") {
                Some(result) => counts = Some([count(result, "passed"), count(result, "failed")]),
                None if line.is_empty() => {}
                None => println!("{}: {line}", self.name),
            }
        }
        let status = running.wait()?;
        match counts {
            Some([_, 0]) | None if !status.success() => bail!("ended with {status}"),
            counts => counts.context("no result"),
        }
    }
}

/// The number before a word in the summary of a test program.
fn count(summary: &str, word: &str) -> u64 {
    let words: Vec<&str> = summary
        .split([' ', ';', '.'])
        .filter(|part| !part.is_empty())
        .collect();
    words
        .windows(2)
        .find(|pair| pair[1] == word)
        .and_then(|pair| pair[0].parse().ok())
        .unwrap_or(0)
}

/// The lines that skipped tests printed.
fn skipped(log: &PathBuf) -> Vec<String> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let _ = std::fs::remove_file(log);
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines.dedup();
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_read() {
        let line =
            "ok. 26 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.04s";
        assert_eq!((count(line, "passed"), count(line, "failed")), (26, 3));
    }
}
