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

/// `opened` ends with a jump into the C library and has no frame any more; `main` did not open.
const LEFT: &str = r#"#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/socket.h>
static struct sockaddr_in to;
__attribute__((noinline)) static int opened(int one) {
    return connect(one, (struct sockaddr *)&to, sizeof to);
}
int main(int count, char **words) {
    to.sin_family = AF_INET;
    to.sin_port = htons(atoi(words[count - 1]));
    inet_aton("127.0.0.1", &to.sin_addr);
    return opened(socket(AF_INET, SOCK_STREAM, 0)) != 0;
}
"#;

#[test]
fn a_function_that_left_by_a_jump_is_not_taken_for_its_caller() {
    if program("gcc", "places of functions that left").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("left.c"), folder.path().join("left"));
    std::fs::write(&from, LEFT).unwrap();
    for (options, line) in [("-O0", Some(6)), ("-O2", None), ("-O2 -fno-plt", None)] {
        let compiler = Command::new("gcc")
            .args(["-g", "-o"])
            .args([&to, &from])
            .args(options.split(' '))
            .status();
        assert!(compiler.unwrap().success());
        let seen = seen(folder.path(), "left.c", &[to.to_str().unwrap(), "{port}"]);
        let lines: Vec<u32> = seen.lines.into_keys().collect();
        assert_eq!(lines, Vec::from_iter(line), "{options}");
    }
}
