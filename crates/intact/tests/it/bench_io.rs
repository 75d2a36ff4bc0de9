//! `bench --io`: which back end was in use, and what happens where io_uring is forbidden.

use crate::peers::program;
use crate::program::{Server, bench, intact};
use crate::skip::skip;
use serde_json::{Value, json};
use std::process::{Command, Output};

const LOAD: [&str; 8] = [
    "-n",
    "40",
    "-c",
    "4",
    "--rounds",
    "2",
    "--keepalive",
    "on,off",
];

fn stderr(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

/// Runs `intact` where `io_uring_setup` fails with this error; `None` if the test was skipped.
fn confined(error: &str, words: &[&str]) -> Option<Output> {
    let python = program("python3", "bench where io_uring is forbidden")?;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/watch/confine.py");
    let mut command = Command::new(python);
    command.args([script, error, "io_uring_setup"]);
    command.arg(env!("CARGO_BIN_EXE_intact")).args(words);
    Some(command.env("NO_COLOR", "1").output().unwrap())
}

fn counts(document: &Value) -> Value {
    let variants = document["variants"].as_array().unwrap().iter();
    let counts = |one: &Value| json!([one["name"], one["requests"], one["connections"]["opened"]]);
    json!([
        variants.map(counts).collect::<Vec<_>>(),
        document["requests"],
        document["connections"]["ended_by"]
    ])
}

#[test]
fn both_back_ends_are_named_and_count_the_same() {
    let test = "bench --io uring";
    let allowed = intact(&["bench", "http://127.0.0.1:9/", "-n", "1", "--io", "uring"]);
    if allowed.status.code() == Some(4) {
        return skip(test, &stderr(&allowed));
    }
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let report = format!("--report={}", page.display());
    let mut seen = Vec::new();
    for (io, name) in [("epoll", "epoll"), ("uring", "io_uring")] {
        let server = Server::start(&[]);
        let url = server.plain();
        let words = [&[url.as_str(), "--io", io, &report][..], &LOAD].concat();
        let document = bench(&words);
        assert_eq!(document["run"]["io"], json!({ "backend": name }));
        let page = std::fs::read_to_string(&page).unwrap();
        assert!(page.contains("I/O of the client") && page.contains(name));
        seen.push(counts(&document));
    }
    assert_eq!(seen[0], seen[1]);
}

#[test]
fn where_io_uring_is_forbidden_auto_says_so_and_uring_is_not_permitted() {
    let server = Server::start(&[]);
    let url = server.plain();
    // enough connections for auto to use io_uring
    let many = ["-n", "640", "-c", "64", "--rounds", "2", "--json"];
    let kept = ["bench", &url, "--keepalive", "on", "--io"];
    let load = |io| [&kept[..], &[io], &many].concat();
    for (error, reason) in [
        ("EPERM", "is forbidden here"),
        ("ENOSYS", "has no io_uring"),
    ] {
        let Some(out) = confined(error, &load("uring")) else {
            return;
        };
        assert_eq!(out.status.code(), Some(4), "{}", stderr(&out));
        assert!(stderr(&out).contains(reason), "{}", stderr(&out));
        assert!(stderr(&out).contains("--io epoll"), "{}", stderr(&out));
        let Some(out) = confined(error, &load("auto")) else {
            return;
        };
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
        let document: Value = serde_json::from_slice(&out.stdout).unwrap();
        let io = &document["run"]["io"];
        assert_eq!(io["backend"], "epoll");
        assert!(io["reason"].as_str().unwrap().contains(reason), "{io}");
    }
}

#[test]
fn http3_and_scenarios_use_epoll_and_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("one.js");
    let text = "definition.session('s', (session) => { session.get('/'); });";
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    let http3: &[&str] = &["--http", "1.1,3", "-n", "128", "-c", "64"];
    let scenario: &[&str] = &["--scenario", file, "-n", "4"];
    for (words, why) in [
        (http3, "HTTP/3 uses UDP"),
        (scenario, "a scenario adds connections"),
    ] {
        let io = &bench(words)["run"]["io"];
        assert_eq!(io["backend"], "epoll");
        assert!(io["reason"].as_str().unwrap().contains(why), "{io}");
        let io = &bench(&[words, &["--io", "epoll"]].concat())["run"]["io"];
        assert_eq!(io, &json!({ "backend": "epoll" }));
        let refused = intact(&[&["bench"], words, &["--io", "uring"]].concat());
        assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
        assert!(stderr(&refused).contains(why), "{}", stderr(&refused));
        assert!(stderr(&refused).contains("--io epoll"));
    }
}
