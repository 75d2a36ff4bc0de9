//! Tests of `clients`.

use super::*;
use std::process::Command;

#[path = "../../../fixtures/tests/skip.rs"]
mod skip;

/// Whether a program is there; a missing one is printed, and is a failure in CI.
fn is_there(program: &str, test: &str) -> bool {
    let there = Command::new(program).arg("--version").output().is_ok();
    if !there {
        skip::skip(
            test,
            &format!("{program} is not installed: cargo xtask test --install"),
        );
    }
    there
}

#[test]
fn the_catalogue_holds_for_a_client_that_needs_no_packages() {
    if !is_there("python3", "the catalogue holds") {
        return;
    }
    let args = Args {
        names: vec!["http-client/default".to_owned()],
        ..Args::check(false)
    };
    let done = run(&args).unwrap();
    assert_eq!((done.passed, done.failed), (1, Vec::new()));
}
