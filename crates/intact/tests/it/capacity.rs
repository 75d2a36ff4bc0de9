//! `intact bench --find-max` and `--overload`: what they find at a server with a limit, what they
//! keep, and what they refuse.

use crate::program::{Schema, Server, intact};
use serde_json::Value;
use std::process::Output;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn json(out: &Output) -> Value {
    serde_json::from_slice(&out.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", text(&out.stderr)))
}

fn refused(arguments: &[&str], remedy: &str) {
    let out = intact(arguments);
    let words = text(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{arguments:?}: {words}");
    assert!(words.contains(remedy), "{arguments:?}: {words}");
}

/// Each response takes 50 ms, and two connections carry 40 requests a second: no machine is too
/// slow to show this limit.
#[test]
fn the_search_finds_the_rate_that_two_connections_carry() {
    let server = Server::start(&["--delay", "50ms"]);
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("ledger");
    let ledger = ledger.to_str().unwrap();
    let out = intact(&[
        "bench",
        &format!("http://127.0.0.1:{}/", server.plain_port()),
        "--find-max",
        "p50 < 1s, failed < 5 %",
        "--keepalive",
        "on",
        "-c",
        "2",
        "--step",
        "600ms",
        "-z",
        "25s",
        "--json",
        "--ledger",
        ledger,
        "--require",
        "capacity >= 1000/s",
    ]);
    let document = json(&out);
    Schema::named("capacity").check(&document);
    // met or not, 1000/s is far beyond
    assert_eq!(out.status.code(), Some(1), "{}", text(&out.stderr));
    let kept = &document["variants"][0];
    assert_ne!(kept["bounded_by"], "most-rate");
    if let Some(low) = kept["capacity_per_s"]["low"].as_f64() {
        assert!(low < 60.0, "{low}");
    }
    let steps = kept["steps"].as_array().unwrap();
    assert!(steps.iter().any(|step| step["outcome"] != "met"));
    // the ledger gives the same document
    let again = intact(&["report", ledger, "--json"]);
    let again = json(&again);
    assert_eq!(again["variants"], document["variants"]);
    assert_eq!(again["verdict"], document["verdict"]);
}

#[test]
fn an_overload_has_its_windows_and_a_recovery_that_can_be_required() {
    let server = Server::start(&[]);
    let out = intact(&[
        "bench",
        &format!("http://127.0.0.1:{}/", server.plain_port()),
        "--rate",
        "100/s",
        "--holds",
        "p50 < 5s",
        "--overload",
        "1.5x",
        "--for",
        "1s",
        "--recover-within",
        "2s",
        "--step",
        "500ms",
        "-c",
        "4",
        "--keepalive",
        "on",
        "--json",
        "--require",
        "recovery < 1h",
    ]);
    let document = json(&out);
    Schema::named("capacity").check(&document);
    let recovery = &document["variants"][0]["recovery"];
    assert_eq!(recovery["overload_per_s"], 150.0);
    assert_eq!(recovery["rate_per_s"], 80.0);
    let windows = recovery["windows"].as_array().unwrap();
    let of = |purpose: &str| {
        let windows = windows.iter().filter(|one| one["purpose"] == purpose);
        windows
            .map(|one| one["requests"].as_u64().unwrap())
            .sum::<u64>()
    };
    // what fell due is counted, whatever the machine did
    assert_eq!((of("overload"), of("after")), (150, 160));
    // nothing broke, so there is no recovery that a requirement could pass on
    assert_eq!(recovery["broke"], false, "{recovery}");
    assert_eq!(out.status.code(), Some(1), "{}", text(&out.stderr));
    assert!(text(&out.stderr).contains("broke no condition"));
}

#[test]
fn what_cannot_be_searched_is_refused_with_the_remedy() {
    let url = "http://127.0.0.1:9/";
    refused(
        &["bench", "http://192.0.2.1/", "--find-max", "p99 < 1s"],
        "--max-rate",
    );
    refused(&["bench", url, "--find-max", "p98 < 1s"], "p98");
    refused(&["bench", url, "--find-max", ""], "p99 < 100ms");
    refused(
        &["bench", url, "--find-max", "keepalive=on: p99 < 1s"],
        "before the colon",
    );
    refused(
        &["bench", url, "--find-max", "p99 < 1s", "-z", "5s"],
        "takes 10.2 s",
    );
    refused(
        &["bench", url, "--find-max", "p99 < 1s", "-n", "500"],
        "sends up to 122",
    );
    refused(
        &["bench", url, "--find-max", "p99 < 1s", "--rate", "5/s"],
        "--rate",
    );
    refused(
        &["bench", url, "--find-max", "p999 < 1s", "--max-rate", "5/s"],
        "--step",
    );
    refused(&["bench", url, "--overload", "1.2x"], "--holds");
    refused(
        &["bench", url, "--overload", "0.5x", "--find-max", "p99 < 1s"],
        "1.2x",
    );
    refused(
        &["bench", url, "--overload", "2x", "--holds", "p99 < 1s"],
        "--rate 500/s",
    );
    refused(
        &[
            "bench",
            url,
            "--find-max",
            "p99 < 1s",
            "--require",
            "p99 < 1s",
        ],
        "p99",
    );
}

/// Elsewhere what all processes do is not counted.
#[cfg(target_os = "linux")]
mod busy_machine {
    use super::{json, text};
    use crate::program::{Server, intact};
    use std::process::{Child, Command};

    /// Processes that use every processor, until this value ends.
    struct BusyProcessors(Vec<Child>);

    impl BusyProcessors {
        fn start() -> BusyProcessors {
            let all = std::thread::available_parallelism().map_or(1, usize::from) + 1;
            // nice, so that other tests wait less; limited, so that none outlives a test that was
            // killed
            let start = |_| {
                Command::new("nice")
                    .args(["-n", "19", "sh", "-c", "ulimit -t 60; while :; do :; done"])
                    .spawn()
                    .unwrap()
            };
            BusyProcessors((0..all).map(start).collect())
        }
    }

    impl Drop for BusyProcessors {
        fn drop(&mut self) {
            for child in &mut self.0 {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }

    /// No server meets the condition. The processors may be the reason only where the client was
    /// late; where it was not, the page states that the server may have waited for them.
    #[test]
    fn a_machine_that_others_use_is_named_whether_or_not_it_was_the_limit() {
        let server = Server::start(&[]);
        let busy = BusyProcessors::start();
        let out = intact(&[
            "bench",
            &format!("http://127.0.0.1:{}/", server.plain_port()),
            "--find-max",
            "p50 < 1us",
            "--keepalive",
            "on",
            "-c",
            "4",
            "--step",
            "600ms",
            "-z",
            "4s",
            "--json",
        ]);
        drop(busy);
        let document = json(&out);
        let kept = &document["variants"][0];
        let steps = kept["steps"].as_array().unwrap();
        assert!(!steps.is_empty(), "{}", text(&out.stderr));
        let is_missed = steps.iter().any(|step| step["outcome"] == "missed");
        let name = if is_missed {
            "machine-busy"
        } else {
            "machine-limit"
        };
        let mut caveats = document["caveats"].as_array().unwrap().iter();
        assert!(caveats.any(|one| one["id"] == name), "{document:#}");
    }
}
