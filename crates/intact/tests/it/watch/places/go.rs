//! Places in Go programs: also stripped, at another address, and without the paths of the machine.

#![cfg(target_arch = "x86_64")]

use super::{hold, seen};
use crate::peers::program;
use std::path::Path;
use std::process::Command;

const PLANTED: &str = include_str!("planted.go");
const CASES: [&str; 14] = [
    "sync", "inlined", "method", "value", "generic", "closure", "direct", "pool", "shared", "name",
    "both", "context", "deferred", "dialer",
];
/// Ways to build, and the cases that are tried with each.
const BUILDS: [(&[&str], &[&str]); 3] = [
    (&[], &CASES),
    (
        &["-trimpath", "-ldflags=-s -w"],
        &["sync", "inlined", "name"],
    ),
    (&["-buildmode=pie"], &["pool", "generic"]),
];

/// Builds the planted program, where Go is installed.
fn built(folder: &Path, options: &[&str]) -> Option<String> {
    let go = program("go", "places of Go")?;
    let (from, to) = (folder.join("planted.go"), folder.join("program"));
    std::fs::write(&from, PLANTED).unwrap();
    let built = Command::new(go)
        .current_dir(folder)
        .arg("build")
        .args(options)
        .args(["-o", "program", "planted.go"])
        .env("CGO_ENABLED", "0")
        .status();
    assert!(built.unwrap().success());
    Some(to.to_str().unwrap().to_owned())
}

#[test]
fn a_go_program_is_named_at_the_line_that_opened() {
    for (options, cases) in BUILDS {
        let folder = tempfile::tempdir().unwrap();
        let Some(program) = built(folder.path(), options) else {
            return;
        };
        for case in cases {
            let seen = seen(folder.path(), "planted.go", &[&program, "{port}", case]);
            hold(&format!("go build {options:?}"), PLANTED, case, &seen);
        }
    }
}
