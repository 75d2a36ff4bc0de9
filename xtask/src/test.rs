//! Runs the tests and prints a summary, with the skipped tests.

use crate::{clients, kits, peers, tool};
use anyhow::Context;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Stdio;

/// Runs all tests. `Ok(false)`: some failed, or in CI some were skipped.
pub(crate) fn run(install: bool) -> anyhow::Result<bool> {
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
    let mut cargo = tool::cargo()
        .args(["test", "--workspace", "--no-fail-fast"])
        .env("INTACT_SKIPPED", &skipped_log)
        .stdout(Stdio::piped())
        .spawn()
        .context("cargo test")?;
    let (mut passed, mut failed) = (0, 0);
    if let Some(out) = cargo.stdout.take() {
        for line in BufReader::new(out).lines() {
            let line = line.context("reading what cargo test prints")?;
            if let Some(counts) = line.strip_prefix("test result: ") {
                passed += count(counts, "passed");
                failed += count(counts, "failed");
            }
            println!("{line}");
        }
    }
    let status = cargo.wait()?;
    if install || ci {
        for (what, args) in clients::Args::checks() {
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
    Ok(status.success() && failed == 0 && all_ran)
}

/// The number before a word in cargo's summary.
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
    fn cargos_summary_is_read() {
        let line =
            "ok. 26 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.04s";
        assert_eq!((count(line, "passed"), count(line, "failed")), (26, 3));
    }
}
