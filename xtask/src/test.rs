//! Runs the tests and prints a summary, with the skipped tests.

use crate::tally::Tally;
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
    let mut tally = run_all(tests, &skipped_log, all);
    if all {
        // the crates have no example that runs; one that comes is not lost
        let status = tool::cargo()
            .args(["test", "--doc", "--workspace"])
            .status();
        if !status.context("cargo test --doc")?.success() {
            tally.failed.push("cargo test --doc".to_owned());
        }
    }
    if install || ci || all {
        for (what, args) in clients::Args::checks(all) {
            println!("{what}");
            tally.add(clients::run(&args)?);
        }
        println!("the tests of the kits:");
        tally.add(kits::run_all()?);
    } else {
        println!(
            "not run here: the catalogue of clients (cargo xtask clients --check --quick, --watched --quick and --loop --quick) and the test kits (cargo xtask kits)"
        );
    }
    let skipped = skipped(&skipped_log);
    for line in &skipped {
        println!("SKIPPED {line}");
    }
    for name in &tally.failed {
        println!("FAILED {name}");
    }
    println!(
        "{} passed, {} failed, {} skipped",
        tally.passed,
        tally.failed.len(),
        skipped.len()
    );
    let all_ran = skipped.is_empty() || !ci;
    Ok(tally.failed.is_empty() && all_ran)
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

/// Runs the programs, as many at a time as there are processors.
fn run_all(tests: Vec<TestProgram>, skipped_log: &Path, all: bool) -> Tally {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let (alone, others): (Vec<_>, Vec<_>) = tests.into_iter().partition(|test| test.name == ALONE);
    let sum = Mutex::new(Tally::default());
    let run = |program: &TestProgram, threads: usize, words: &[&str]| {
        let started = Instant::now();
        let done = program.run(threads, words, skipped_log, all);
        let tally = done.unwrap_or_else(|error| {
            println!("{}: FAILED: {error:#}", program.name);
            Tally {
                passed: 0,
                failed: vec![program.name.clone()],
            }
        });
        println!(
            "{}: {} passed, {} failed, {} s",
            program.name,
            tally.passed,
            tally.failed.len(),
            started.elapsed().as_secs()
        );
        sum.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .add(tally);
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
    sum.into_inner().unwrap_or_else(PoisonError::into_inner)
}

impl TestProgram {
    /// Runs the tests and prints their lines.
    fn run(
        &self,
        threads: usize,
        words: &[&str],
        skipped_log: &Path,
        all: bool,
    ) -> anyhow::Result<Tally> {
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
        let mut passed = None;
        let mut failures = Failures::default();
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
                Some(result) => passed = Some(count(result, "passed")),
                None if line.is_empty() => {}
                None => println!("{}: {line}", self.name),
            }
            failures.read(&line);
        }
        let status = running.wait()?;
        let failed = failures.named(&self.name);
        if failed.is_empty() && !status.success() {
            bail!("ended with {status}");
        }
        let passed = passed.context("no result")?;
        Ok(Tally { passed, failed })
    }
}

/// How much of a message is printed, in characters.
const MESSAGE: usize = 240;

/// The tests of a program that failed: their lines come as they end, their messages at the end.
#[derive(Default)]
struct Failures {
    messages: Vec<(String, String)>,
    /// The test whose output is read.
    reading: Option<usize>,
}

impl Failures {
    fn read(&mut self, line: &str) {
        if let Some(test) = failed_test(line) {
            self.messages.push((test.to_owned(), String::new()));
        }
        let header = line.strip_prefix("---- ");
        if let Some(test) = header.and_then(|rest| rest.strip_suffix(" stdout ----")) {
            self.reading = self.messages.iter().position(|(name, _)| name == test);
            return;
        }
        if line.starts_with("note: ") || line.starts_with("stack backtrace:") {
            self.reading = None;
        }
        let Some(nth) = self.reading else {
            return;
        };
        let message = &mut self.messages[nth].1;
        // it begins with the place of the panic
        let part = match line.split_once(" panicked at ") {
            _ if !message.is_empty() => line.trim(),
            Some((_, place)) => place,
            None => return,
        };
        let left = MESSAGE.saturating_sub(message.chars().count());
        message.push(' ');
        message.extend(part.chars().take(left));
    }

    /// A line for each.
    fn named(&self, program: &str) -> Vec<String> {
        let each = self.messages.iter();
        each.map(|(test, message)| format!("{program}: {test}{message}"))
            .collect()
    }
}

/// The test that failed, of its line. Other lines may stand before it: a test prints as it likes.
fn failed_test(line: &str) -> Option<&str> {
    let before = line.strip_suffix(" ... FAILED")?;
    before.rsplit("test ").next()
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

    #[test]
    fn a_failed_test_is_named() {
        assert_eq!(failed_test("test a::fails ... FAILED"), Some("a::fails"));
        assert_eq!(failed_test("test a::holds ... ok"), None);
        assert_eq!(failed_test("FAILED: nothing"), None);
    }

    #[test]
    fn a_failed_test_has_its_message() {
        let mut failures = Failures::default();
        for line in [
            "test a::fails ... FAILED",
            "test b::ends ... FAILED",
            "---- a::fails stdout ----",
            "it printed this",
            "thread 'a::fails' (7) panicked at src/a.rs:3:5:",
            "assertion `left == right` failed",
            "  left: 1",
            "note: run with `RUST_BACKTRACE=1`",
            "---- b::ends stdout ----",
        ] {
            failures.read(line);
        }
        let message = "src/a.rs:3:5: assertion `left == right` failed left: 1";
        assert_eq!(
            failures.named("p it"),
            [
                format!("p it: a::fails {message}"),
                "p it: b::ends".to_owned()
            ]
        );
        failures.read(&format!("thread 'b::ends' panicked at {}", "x".repeat(999)));
        assert!(failures.named("p it")[1].len() < 300);
    }
}
