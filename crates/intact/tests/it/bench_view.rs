//! What a bench shows on a terminal: q stops it and keeps what was measured, and the terminal is
//! then what it was.

use crate::peers::program;
use crate::program::{Server, intact};
use std::io::{Read, Write};
use std::process::{Command, Stdio};

/// Runs `intact bench` for a minute on a terminal of 100 columns; types `key` once `sign` is shown.
/// What the terminal showed, with the exit code and the terminal's settings at the end. `None` if
/// the test was skipped.
fn on_terminal(test: &str, options: &str, sign: &str, key: &[u8]) -> Option<String> {
    program("script", test)?;
    let server = Server::start(&[]);
    let url = server.plain();
    let bench = format!("\"$INTACT\" bench {url} -z 30s --rounds 4 {options}");
    let line = format!("stty rows 30 cols 100; {bench}; echo code $?; stty -a");
    let mut child = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .env("INTACT", env!("CARGO_BIN_EXE_intact"))
        .env("TERM", "xterm")
        .env("NO_COLOR", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = child.stdout.take().unwrap();
    let (mut keyboard, mut typing) = (child.stdin.take(), None);
    let (mut shown, mut buffer) = (Vec::new(), [0; 4096]);
    while let Ok(read @ 1..) = out.read(&mut buffer) {
        shown.extend_from_slice(&buffer[..read]);
        let has_sign = String::from_utf8_lossy(&shown).contains(sign);
        if let Some(mut typed) = keyboard.take_if(|_| has_sign) {
            typed.write_all(key).unwrap();
            // the end of input would be a key as well
            typing = Some(typed);
        }
    }
    drop(typing);
    child.wait().unwrap();
    Some(String::from_utf8_lossy(&shown).into_owned())
}

/// Whether `stty -a` has what a shell starts programs with.
fn is_restored(shown: &str) -> bool {
    let settings = shown.rsplit("code ").next().unwrap();
    let is_set = |name: &&str| settings.split_whitespace().any(|word| word == *name);
    ["icanon", "echo", "isig", "opost"].iter().all(is_set)
}

#[test]
fn q_stops_a_bench_and_keeps_what_was_measured() {
    let test = "q_stops_a_bench_and_keeps_what_was_measured";
    for options in ["", "--live"] {
        let Some(shown) = on_terminal(test, options, " %", b"q") else {
            return;
        };
        assert!(shown.contains("keepalive=off"), "{options}: {shown}");
        assert!(
            shown.contains("the run was interrupted in round"),
            "{options}: {shown}"
        );
        assert!(shown.contains("code 0"), "{options}: {shown}");
        assert!(is_restored(&shown), "{options}: {shown}");
    }
}

#[test]
fn ctrl_c_ends_it_with_the_code_of_the_signal_and_the_terminal_is_restored() {
    let test = "ctrl_c_ends_it_with_the_code_of_the_signal_and_the_terminal_is_restored";
    for (options, key) in [("", &b"\x03"[..]), ("--live", b"\x03"), ("", b"\x03\x03")] {
        let Some(shown) = on_terminal(test, options, "stops", key) else {
            return;
        };
        assert!(shown.contains("code 130"), "{options}: {shown}");
        assert!(is_restored(&shown), "{options}: {shown}");
    }
}

#[test]
fn without_a_terminal_nothing_is_drawn_and_the_screen_is_refused() {
    let server = Server::start(&[]);
    let url = server.plain();
    let out = intact(&["bench", &url, "-n", "4", "--live"]);
    assert_eq!(out.status.code(), Some(2));
    let text = String::from_utf8_lossy(&out.stderr);
    assert!(text.contains("--live needs a terminal"), "{text}");
    let out = intact(&["bench", &url, "-n", "40", "--rounds", "2"]);
    let text = String::from_utf8_lossy(&out.stderr);
    assert!(!text.contains("round 1 of 2"), "{text}");
}
