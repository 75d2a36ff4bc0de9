//! `intact compare`: programs under `watch` in interleaved rounds, and stored ledgers. The programs
//! are benches of our own server.

#![cfg(target_os = "linux")]

use crate::observed::store;
use crate::program::{Schema, Server, intact};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// A line for sh: five requests, kept or not.
fn requests(keepalive: &str, url: &str) -> String {
    format!(
        "{} bench {url} -n 5 --rounds 1 --keepalive {keepalive}",
        env!("CARGO_BIN_EXE_intact")
    )
}

#[test]
fn the_fix_shows_in_connections_and_the_server_saw_the_same() {
    let server = Server::start(&["--delay", "1ms"]);
    let dir = tempfile::tempdir().unwrap();
    let (json, ledger) = (dir.path().join("c.json"), dir.path().join("ledger"));
    let out = intact(&[
        "compare",
        "--rounds",
        "3",
        &format!("--json={}", json.display()),
        "--ledger",
        ledger.to_str().unwrap(),
        "--require",
        "avoidable <= 1",
        "--",
        &requests("off", &server.plain()),
        "--",
        &requests("on", &server.plain()),
    ]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let document = read(&json);
    Schema::named("compare").check(&document);
    let variants = document["variants"].as_array().unwrap();
    let model = intact(&["model", ledger.to_str().unwrap()]);
    assert_eq!(model.status.code(), Some(2), "{}", text(&model.stdout));
    assert!(text(&model.stderr).contains("a ledger of `compare`"));
    assert_eq!(variants[0]["name"], "--keepalive off");
    assert_eq!(variants[1]["name"], "--keepalive on");
    // the preflight of a bench has a connection of its own, so that one of two is avoidable
    let opened = |variant: &Value| variant["connections"]["opened"].as_u64().unwrap();
    assert!(opened(&variants[0]) > opened(&variants[1]), "{document:#}");
    assert_eq!(variants[0]["rounds"].as_array().unwrap().len(), 3);
    // the figures are those of one run on average; four rounds with the one that warms up, each
    // like the others
    let of_a_round = opened(&variants[0]) + opened(&variants[1]);
    let seen = server.end();
    let accepted: u64 = seen["cells"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cell| cell["connections"]["opened"].as_u64().unwrap())
        .sum();
    assert_eq!(accepted, of_a_round * 4);
    // the stored ledger shows the same
    let again = intact(&["report", ledger.to_str().unwrap(), "--json"]);
    let mut again: Value = serde_json::from_slice(&again.stdout).unwrap();
    again["run"] = document["run"].clone();
    assert_eq!(again, document);
    let page = intact(&["report", ledger.to_str().unwrap()]);
    assert_eq!(page.stdout, out.stdout);
}

#[test]
fn variables_make_programs_and_a_failing_one_ends_the_comparison_with_its_code() {
    let words = |more: &[&str]| -> Output {
        let mut all = vec!["compare", "--rounds", "2", "--env", "CODE=0,7"];
        all.extend_from_slice(more);
        all.extend_from_slice(&["--", "sh", "-c", "exit $CODE"]);
        intact(&all)
    };
    let out = words(&[]);
    assert_eq!(out.status.code(), Some(7), "{}", text(&out.stderr));
    assert!(
        text(&out.stderr).contains("--ignore-failure"),
        "{}",
        text(&out.stderr)
    );
    let out = words(&["--ignore-failure"]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    assert!(
        text(&out.stdout).contains("CODE=7 failed in 3 of its runs"),
        "{}",
        text(&out.stdout)
    );
}

#[test]
fn a_signal_ends_the_comparison_whatever_the_program_does_at_it() {
    let dir = tempfile::tempdir().unwrap();
    let (runs, json) = (dir.path().join("runs"), dir.path().join("json"));
    // SIGINT is ignored in what a shell runs in the background, and cannot be trapped then
    let program = "trap 'exit 0' TERM; echo >> $0; while :; do sleep 0.05; done";
    let child = Command::new(env!("CARGO_BIN_EXE_intact"))
        .args(["compare", "--warm-up", "0", "--ignore-failure"])
        .arg(format!("--json={}", json.display()))
        .args(["--", "sh", "-c", program])
        .arg(&runs)
        .args(["--", "sh", "-c", program])
        .arg(&runs)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    crate::program::wait_for(&runs);
    crate::program::signal(child.id(), "-TERM");
    let out = child.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(143), "{}", text(&out.stderr));
    assert_eq!(std::fs::read_to_string(&runs).unwrap(), "\n");
    let document = read(&json);
    assert_eq!(document["rounds"], 0);
    assert!(
        text(&out.stdout).contains("interrupted in round 1 of 10"),
        "{}",
        text(&out.stdout)
    );
}

#[test]
fn a_signal_between_two_rounds_keeps_what_was_measured() {
    let dir = tempfile::tempdir().unwrap();
    let [runs, json] = ["runs", "json"].map(|name| dir.path().join(name));
    // the command before the third program interrupts the comparison
    let prepare = format!(
        "echo >> {0}; if [ $(wc -l < {0}) = 3 ]; then kill -INT $PPID; fi",
        runs.display()
    );
    let out = Command::new(env!("CARGO_BIN_EXE_intact"))
        .args(["compare", "--warm-up", "0", "--prepare", &prepare])
        .arg(format!("--json={}", json.display()))
        .args(["--", "true", "--", "true"])
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(130), "{out:?}");
    assert_eq!(read(&json)["rounds"], 1);
    assert_eq!(std::fs::read_to_string(&runs).unwrap(), "\n\n\n");
    assert!(
        text(&out.stdout).contains("interrupted in round 2 of 10"),
        "{}",
        text(&out.stdout)
    );
}

#[test]
fn a_signal_ends_what_prepares_a_round_and_keeps_what_was_measured() {
    let dir = tempfile::tempdir().unwrap();
    let [begun, ended, json] = ["begun", "ended", "json"].map(|name| dir.path().join(name));
    // the second one waits, and has the signals of any program
    let prepare = format!(
        "[ -e {0}.first ] || {{ echo > {0}.first; exit; }}
         trap 'echo > {1}; exit' TERM; echo > {0}; while :; do sleep 0.05; done",
        begun.display(),
        ended.display()
    );
    let child = Command::new(env!("CARGO_BIN_EXE_intact"))
        .args(["compare", "--warm-up", "0", "--prepare", &prepare])
        .arg(format!("--json={}", json.display()))
        .args(["--", "true", "--", "true"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    crate::program::wait_for(&begun);
    crate::program::signal(child.id(), "-TERM");
    let out = child.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(143), "{}", text(&out.stderr));
    assert!(ended.exists(), "the command had the signal");
    assert!(
        text(&out.stdout).contains("interrupted in round 1 of 10"),
        "{}",
        text(&out.stdout)
    );
    assert_eq!(read(&json)["rounds"], 0);
}

#[test]
fn programs_are_looked_for_along_their_own_path() {
    let folder = tempfile::tempdir().unwrap();
    let places = ["one", "two"].map(|name| {
        let place = folder.path().join(name);
        std::fs::create_dir(&place).unwrap();
        let script = format!("#!/bin/sh\n: > {}/ran\n", place.display());
        std::fs::write(place.join("tell-which"), script).unwrap();
        let rights = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(place.join("tell-which"), rights).unwrap();
        place
    });
    let [one, two] = places.each_ref().map(|place| place.display());
    let path = format!("PATH={one}:/usr/bin,{two}:/usr/bin");
    let out = intact(&[
        "compare",
        "--rounds",
        "1",
        "--env",
        &path,
        "--",
        "tell-which",
    ]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    assert!(places.iter().all(|place| place.join("ran").exists()));
}

#[test]
fn a_program_that_cannot_be_run_has_its_own_exit_code() {
    for (program, code) in [("/no/such/program", 127), ("/etc/passwd", 126)] {
        let out = intact(&["compare", "--", program, "--", "true"]);
        assert_eq!(out.status.code(), Some(code), "{}", text(&out.stderr));
    }
    for words in [
        &["compare"][..],
        &["compare", "--", "true"],
        &["compare", "a", "b", "--", "true", "--", "false"],
        &["compare", "--env", "X", "--", "true"],
        &[
            "compare",
            "--require",
            "idle-timeout > 1s",
            "--",
            "true",
            "--",
            "true",
        ],
    ] {
        let out = intact(words);
        assert_eq!(
            out.status.code(),
            Some(2),
            "{words:?}: {}",
            text(&out.stderr)
        );
    }
    let out = intact(&["compare", "--prepare", "exit 3", "--", "true", "--", "true"]);
    assert_eq!(out.status.code(), Some(125), "{}", text(&out.stderr));
    assert!(text(&out.stderr).contains("--prepare"));
}

#[test]
fn stored_ledgers_are_compared_without_intervals() {
    let dir = tempfile::tempdir().unwrap();
    let before = store(
        &dir.path().join("before"),
        "new-connection-per-request/fires",
    );
    let after = store(&dir.path().join("after"), "lookup-per-request/does-not");
    let json = dir.path().join("c.json");
    let written = format!("--json={}", json.display());
    let out = intact(&["compare", &before, &after, &written]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let document = read(&json);
    Schema::named("compare").check(&document);
    assert_eq!(document["variants"][0]["name"], "before");
    assert_eq!(document["changes"][0]["fate"], "gone");
    assert_eq!(document["comparisons"][0]["saved_ms"], Value::Null);
    let page = text(&out.stdout);
    // a load test that reuses connections is no improvement of production, which does not
    for words in [
        "after does not behave like before",
        "Only in before: new-connection-per-request",
        "recorded separately",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(!page.contains("Gone") && !page.contains("gone"), "{page}");
    for option in [["--csv", "rows.csv"], ["--rounds", "20"], ["--rtt", "30ms"]] {
        let out = intact(&["compare", &before, &after, option[0], option[1]]);
        assert_eq!(out.status.code(), Some(2), "{option:?}");
        assert!(
            text(&out.stderr).contains(option[0]),
            "{}",
            text(&out.stderr)
        );
    }
    // gates are about the program that is compared with the baseline
    for (words, code) in [
        (["--fail-on", "warning"], 0),
        (["--require", "connections == 1"], 0),
        (["--require", "variant=before: connections == 1"], 1),
        (["--require", "saved > 0ms"], 1),
    ] {
        let out = intact(&["compare", &before, &after, words[0], words[1]]);
        assert_eq!(
            out.status.code(),
            Some(code),
            "{words:?}: {}",
            text(&out.stderr)
        );
    }
    let out = intact(&["compare", &before]);
    assert_eq!(out.status.code(), Some(2));
    let out = intact(&["compare", &before, dir.path().to_str().unwrap()]);
    assert_eq!(out.status.code(), Some(5));
}
