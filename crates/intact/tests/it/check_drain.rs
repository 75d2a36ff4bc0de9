//! `intact check --drain` against commands that end in good order, at once, not at all, or too
//! early.

use crate::check::check;
use crate::peers::free_port;
use crate::program::intact;
use serde_json::Value;
use std::process::Output;

const INTACT: &str = env!("CARGO_BIN_EXE_intact");

/// A check of a server on a free port; `command` is a shell command in which `$SERVE` starts our
/// server there.
fn drain(options: &[&str], command: &str) -> (Output, Value) {
    let port = free_port();
    let url = format!("http://127.0.0.1:{port}/");
    let serve = format!("{INTACT} serve --listen 127.0.0.1:{port} --tls-listen 127.0.0.1:0");
    let command = command.replace("$SERVE", &serve);
    let mut words = vec![&*url, "--drain", "--drain-slow", "/delay/500"];
    words.extend_from_slice(options);
    words.extend(["--", "sh", "-c", &command]);
    check(&words)
}

fn rules(document: &Value) -> Vec<&str> {
    let found = document["findings"].as_array().unwrap();
    found
        .iter()
        .map(|one| one["rule"].as_str().unwrap())
        .collect()
}

#[test]
fn our_own_server_ends_in_good_order() {
    let gates = [
        "--require",
        "drain.lost == 0",
        "--require",
        "drain.announced == 100%",
        "--require",
        "drain.time < 20s",
    ];
    let (out, document) = drain(&gates, "exec $SERVE");
    assert_eq!(out.status.code(), Some(0), "{document:#}");
    let drain = &document["drain"];
    assert_eq!(drain["process"]["end"], "ended");
    assert_eq!(drain["process"]["status"], "exit code 143");
    let versions = drain["versions"].as_array().unwrap();
    let names: Vec<_> = versions
        .iter()
        .map(|one| one["http"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["1.1", "2"]);
    for version in versions {
        assert!(version["announced"].as_u64().unwrap() > 0, "{version}");
        assert_eq!(version["not_announced"], 0);
    }
    assert!(
        drain["in_flight"]["answered"].as_u64().unwrap() >= 3,
        "{drain:#}"
    );
    assert!(
        drain["kept"]["answered"].as_u64().unwrap() >= 1,
        "{drain:#}"
    );
    let unwanted = ["lost-in-drain", "drain-not-announced", "drain-not-ended"];
    assert!(!rules(&document).iter().any(|rule| unwanted.contains(rule)));
}

#[test]
fn a_server_that_ends_at_once_loses_what_is_in_flight() {
    let gate = ["--require", "drain.lost == 0"];
    let (out, document) = drain(&gate, "exec $SERVE --drain-time 0s");
    assert_eq!(out.status.code(), Some(1), "{document:#}");
    let in_flight = &document["drain"]["in_flight"];
    assert!(in_flight["lost"].as_u64().unwrap() >= 3, "{document:#}");
    assert!(rules(&document).contains(&"lost-in-drain"));
}

#[test]
fn a_server_that_ignores_the_signal_is_killed() {
    let options = ["--drain-time", "1s", "--require", "drain.time < 60s"];
    let (out, document) = drain(&options, "trap '' TERM; $SERVE & wait; wait");
    assert_eq!(out.status.code(), Some(1), "{document:#}");
    let process = &document["drain"]["process"];
    assert_eq!(process["end"], "killed");
    let time = &process["bounds"]["ended_ms"];
    assert!(process["ended_ms"].is_null(), "{process:#}");
    assert!(time["low"].as_f64().unwrap() >= 1000.0, "{process:#}");
    assert!(time["high"].is_null(), "{process:#}");
    assert!(rules(&document).contains(&"drain-not-ended"));
    assert!(rules(&document).contains(&"drain-not-announced"));
}

#[test]
fn a_shell_that_does_not_pass_the_signal_on_is_named() {
    let (_, document) = drain(&["--drain-time", "1s"], "$SERVE & wait");
    let process = &document["drain"]["process"];
    assert_eq!(process["end"], "killed", "{document:#}");
    assert_eq!(process["status"], "SIGTERM");
    assert!(process["command_ended_ms"].as_f64().is_some());
    let findings = document["findings"].as_array().unwrap();
    let finding = findings.iter().find(|one| one["rule"] == "drain-not-ended");
    let claim = finding.unwrap()["claim"].as_str().unwrap();
    assert!(claim.contains("does not pass it on"), "{claim}");
}

/// The message and exit code of a drain that cannot be measured.
fn refused(url: &str, command: &[&str]) -> (Option<i32>, String) {
    let mut words = vec!["check", url, "--drain", "--"];
    words.extend_from_slice(command);
    let out = intact(&words);
    assert!(out.stdout.is_empty());
    (out.status.code(), String::from_utf8(out.stderr).unwrap())
}

#[test]
fn what_cannot_be_measured_is_an_error_with_its_remedy() {
    let port = free_port();
    let url = format!("http://127.0.0.1:{port}/");
    let background = format!(
        "{INTACT} serve --listen 127.0.0.1:{port} --tls-listen 127.0.0.1:0 & until : < /dev/tcp/127.0.0.1/{port}; do :; done"
    );
    let server = crate::program::Server::start(&[]);
    for (url, command, code, words) in [
        (&*url, &["bash", "-c", &*background][..], 3, "foreground"),
        (
            &url,
            &["sh", "-c", "exit 7"],
            3,
            "ended (exit code 7) before it listened",
        ),
        (
            &url,
            &["/no/such/program"],
            2,
            "cannot run /no/such/program",
        ),
        (&server.plain(), &["true"], 2, "listens at"),
        ("http://192.0.2.1/", &["true"], 2, "name a URL on localhost"),
    ] {
        let (found, message) = refused(url, command);
        assert_eq!(found, Some(code), "{command:?}: {message}");
        assert!(message.contains(words), "{command:?}: {message}");
    }
}

#[test]
fn the_options_of_a_drain_need_each_other() {
    for words in [
        &["check", "http://localhost/", "--drain"][..],
        &["check", "http://localhost/", "--", "true"],
        &["check", "http://localhost/", "--drain-slow", "/slow"],
        &[
            "check",
            "http://localhost/",
            "--drain",
            "--thorough",
            "--",
            "true",
        ],
        &[
            "check",
            "http://localhost/",
            "--drain",
            "--drain-signal",
            "KILL",
            "--",
            "true",
        ],
        &["check", "--drain", "--", "true"],
    ] {
        assert_eq!(intact(words).status.code(), Some(2), "{words:?}");
    }
}
