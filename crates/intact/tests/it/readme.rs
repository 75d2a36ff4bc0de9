//! The transcript in README.md is what the program prints, except for its figures.

use crate::program::Server;
use crate::transcript::find;
use std::process::Command;

#[test]
fn the_transcript_in_the_readme_is_what_bench_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
    let readme = std::fs::read_to_string(path).unwrap();
    let (before, rest) = readme
        .split_once("$ intact bench http://127.0.0.1:8080/ -n 400\n")
        .expect("README.md shows the command");
    let (shown, after) = rest.split_once("```").unwrap();

    let server = Server::start(&["--max-requests", "5", "--first-request-cost", "5ms"]);
    let out = Command::new(env!("CARGO_BIN_EXE_intact"))
        .args(["bench", &server.plain(), "-n", "400"])
        .env("NO_COLOR", "1")
        .env("COLUMNS", "100")
        .output()
        .unwrap();
    let printed = String::from_utf8(out.stdout).unwrap();
    let found = find(shown, &printed).unwrap_or_else(|line| {
        panic!("README.md shows a line that bench does not print: {line}\n{printed}")
    });

    if std::env::var_os("INTACT_UPDATE").is_some() {
        let indented = |line: &&str| line.strip_prefix("  ").unwrap_or(line).to_owned();
        let block = found.iter().map(indented).collect::<Vec<_>>().join("\n");
        let command = "$ intact bench http://127.0.0.1:8080/ -n 400";
        std::fs::write(path, format!("{before}{command}\n{block}\n```{after}")).unwrap();
    }
}

/// The guide's test runs the command; the README quotes its first lines.
#[test]
fn the_watched_program_in_the_readme_is_that_of_the_guide() {
    let readme = include_str!("../../../../README.md");
    let guide = include_str!("../../../../docs/guide/is-my-program-reusing-connections.md");
    let (_, rest) = readme
        .split_once("```console\n$ intact serve &\n")
        .expect("README.md shows a watched program");
    let (quoted, _) = rest.split_once("```").unwrap();
    assert!(quoted.lines().count() >= 3, "{quoted}");
    find(quoted, guide).unwrap_or_else(|line| panic!("the guide does not show the line: {line}"));
}
