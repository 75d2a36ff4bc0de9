//! Tests of `clients`.

use super::*;
use std::fs;
use std::io::Write;

/// Whether a program is there; that it is not is told, and is a failure in CI.
fn is_there(program: &str, test: &str) -> bool {
    let there = Command::new(program).arg("--version").output().is_ok();
    if !there {
        assert!(
            std::env::var_os("CI").is_none(),
            "{program} is missing in CI: cargo xtask test --install"
        );
        if let Some(log) = std::env::var_os("INTACT_SKIPPED") {
            let mut log = fs::File::options()
                .create(true)
                .append(true)
                .open(log)
                .unwrap();
            writeln!(log, "{test}: {program} is not installed").unwrap();
        }
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
        quick: false,
        ..Args::quick_check()
    };
    let done = run(&args).unwrap();
    assert_eq!((done.fine, done.failed), (1, 0));
}
