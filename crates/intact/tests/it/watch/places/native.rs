//! Places in C and Rust, with and without optimisation, where there is debugging information.

#![cfg(target_arch = "x86_64")]

use super::{hold, seen};
use crate::peers::program;
use std::path::Path;
use std::process::Command;

const C: &str = include_str!("planted.c");
const RUST: &str = include_str!("planted.rs");

/// Compiles a program, and holds what its cases open to its lines.
fn hold_program(folder: &Path, source: (&str, &str), compiler: &[&str], cases: &[&str]) {
    let (file, text) = source;
    let (from, to) = (folder.join(file), folder.join("program"));
    std::fs::write(&from, text).unwrap();
    let mut command = Command::new(compiler[0]);
    let command = command.args(&compiler[1..]).arg(&from).arg("-o").arg(&to);
    let out = command.output().unwrap();
    assert!(out.status.success(), "{compiler:?}: {out:?}");
    for case in cases {
        let seen = seen(folder, file, &[to.to_str().unwrap(), "{port}", case]);
        hold(&compiler.join(" "), text, case, &seen);
    }
}

#[test]
fn a_c_program_is_named_at_the_line_that_opened() {
    if program("gcc", "places of C").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let cases = ["sync", "pointer", "large", "inlined", "thread"];
    for options in [&["-O0"][..], &["-O2"], &["-O2", "-fno-omit-frame-pointer"]] {
        let compiler = [&["gcc", "-g", "-pthread"][..], options].concat();
        hold_program(folder.path(), ("planted.c", C), &compiler, &cases);
    }
}

#[test]
fn a_rust_program_is_named_at_the_line_that_opened() {
    if program("rustc", "places of Rust").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let cases = ["sync", "method", "closure", "boxed", "thread"];
    for level in ["opt-level=0", "opt-level=2"] {
        let compiler = ["rustc", "-g", "-C", level];
        hold_program(folder.path(), ("planted.rs", RUST), &compiler, &cases);
    }
}

#[test]
fn a_program_without_lines_has_no_place() {
    if program("gcc", "places without lines").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (
        folder.path().join("planted.c"),
        folder.path().join("program"),
    );
    std::fs::write(&from, C).unwrap();
    let compiler = Command::new("gcc")
        .args(["-O2", "-s", "-pthread", "-o"])
        .args([&to, &from])
        .status();
    assert!(compiler.unwrap().success());
    let seen = seen(
        folder.path(),
        "planted.c",
        &[to.to_str().unwrap(), "{port}", "sync"],
    );
    assert_eq!((seen.lines.len(), seen.not_known), (0, 3));
}
