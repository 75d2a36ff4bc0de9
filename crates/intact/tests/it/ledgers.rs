//! The two-ledger test: the client's and the server's record of the same traffic agree on
//! connections, exchanges and who closed.

use crate::peers::totals;
use crate::program::{Server, bench, exchanges, intact};
use intact_ledger::{Producer, Run};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Compares a bench with the server's own tally.
fn assert_agrees(document: &Value, server: &Value) {
    let cell = &server["cells"][0];
    let (requests, connections) = totals(document);
    let mut ended: BTreeMap<String, u64> = BTreeMap::new();
    for variant in document["variants"].as_array().unwrap() {
        for (by, count) in variant["connections"]["ended_by"].as_object().unwrap() {
            *ended.entry(by.clone()).or_default() += count.as_u64().unwrap();
        }
    }
    assert!(requests > 0);
    assert_eq!(exchanges(cell), requests);
    assert_eq!(cell["connections"]["opened"], connections);
    // the preflight's connections are in the server's count only
    for (by, count) in ended {
        let theirs = cell["connections"]["ended_by"][&by].as_u64().unwrap_or(0);
        let preflights = document["variants"].as_array().unwrap().len() as u64;
        assert!(
            theirs >= count && theirs <= count + preflights,
            "{by}: {theirs} {count}"
        );
    }
}

#[test]
fn every_version_plain_and_tls_on_and_off() {
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    server.write_ca(&ca);
    let document = bench(&[
        &server.plain(),
        "--tls-port",
        &server.tls_port(),
        "--cacert",
        ca.to_str().unwrap(),
        "--http",
        "1.0,1.1,2",
        "--tls",
        "none,1.2,1.3",
        "-c",
        "1,3",
        "-n",
        "48",
        "--rounds",
        "8",
    ]);
    assert_eq!(
        document["variants"].as_array().unwrap().len(),
        3 * 2 * 3 * 2
    );
    assert_agrees(&document, &server.end());
}

#[test]
fn many_streams_on_one_connection_are_counted_as_the_server_counts_them() {
    let server = Server::start(&[]);
    let document = bench(&[
        &server.plain(),
        "--http",
        "2",
        "--streams",
        "1,20",
        "-c",
        "1,3",
        "-n",
        "480",
        "--rounds",
        "8",
    ]);
    assert_agrees(&document, &server.end());
}

#[test]
fn a_request_body_arrives_whole_in_every_version() {
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let body = folder.path().join("body");
    // larger than HTTP/2's first window, so that it has to wait for the server
    std::fs::write(&body, vec![b'b'; 200_000]).unwrap();
    let document = bench(&[
        &server.plain(),
        "--http",
        "1.1,2",
        "--body-file",
        body.to_str().unwrap(),
        "-n",
        "24",
        "--rounds",
        "8",
    ]);
    let tally = server.end();
    assert_agrees(&document, &tally);
    let cell = &tally["cells"][0];
    let sent: u64 = cell["groups"]
        .as_array()
        .unwrap()
        .iter()
        .map(|group| group["bytes"]["request_body"].as_u64().unwrap())
        .sum();
    assert!(sent >= exchanges(cell) * 200_000, "{sent}");
}

#[test]
fn a_server_that_closes_after_five_requests_is_said_in_words() {
    let server = Server::start(&["--max-requests", "5"]);
    let document = bench(&[&server.plain(), "-n", "80", "--rounds", "8"]);
    let finding = &document["findings"][0];
    assert_eq!(finding["rule"], "server-closes-early");
    assert_eq!(
        finding["claim"],
        "the server closes connections after 5 requests"
    );
    let kept = &document["variants"][0];
    assert_eq!(kept["keepalive"], true);
    assert!(kept["reuse"].as_f64().unwrap() < 0.9);
    assert_agrees(&document, &server.end());
}

#[test]
fn resumption_is_chosen_and_its_share_reported() {
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    server.write_ca(&ca);
    let document = bench(&[
        &server.plain(),
        "--tls-port",
        &server.tls_port(),
        "--cacert",
        ca.to_str().unwrap(),
        "--tls",
        "1.2,1.3",
        "--keepalive",
        "off",
        "--resume",
        "off,on",
        "-n",
        "40",
        "--rounds",
        "8",
    ]);
    for variant in document["variants"].as_array().unwrap() {
        let share = variant["resumed_share"].as_f64().unwrap();
        if variant["resume"] == true {
            assert!(share > 0.9, "{variant:#}");
        } else {
            assert_eq!(share, 0.0);
        }
    }
    let tally = server.end();
    assert_agrees(&document, &tally);
    let resumed: u64 = tally["cells"][0]["connections"]["handshakes"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|kind| kind[1] == "resumed")
        .map(|kind| kind[2].as_u64().unwrap())
        .sum();
    assert!(resumed > 72, "the server saw it too: {resumed}");
}

#[test]
fn a_bench_killed_in_the_middle_leaves_a_ledger_that_can_be_reported() {
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("ledger");
    let mut child = Command::new(env!("CARGO_BIN_EXE_intact"))
        .args([
            "bench",
            &server.plain(),
            "-z",
            "60s",
            "--rounds",
            "2000",
            "--ledger",
        ])
        .arg(&ledger)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // some rounds have to be over; the tally is written after each
    let tally = ledger.join("tally.json");
    let complete = || -> Option<usize> {
        let tally: Value = serde_json::from_slice(&std::fs::read(&tally).ok()?).ok()?;
        Some(tally["cells"].as_array()?.len())
    };
    for _ in 0..3000 {
        if complete().is_some_and(|cells| cells > 10) {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let ledger = ledger.to_str().unwrap();
    let out = intact(&["report", ledger, "--require", "requests >= 1"]);
    let page = String::from_utf8(out.stdout).unwrap();
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    assert!(
        page.contains("keepalive=on") && page.contains("per request"),
        "{page}"
    );
    assert!(page.contains("did not come to its end"), "{page}");
    let document = report(ledger);
    assert_eq!(unfinished(&document), 1, "{:#}", document["caveats"]);
    // the killed run is a baseline all the same, with its caveat
    let server = Server::start(&[]);
    let document = bench(&[&server.plain(), "-n", "20", "--baseline", ledger]);
    assert_eq!(unfinished(&document), 1, "{:#}", document["caveats"]);
}

/// The document of `intact report`.
fn report(ledger: &str) -> Value {
    let out = intact(&["report", ledger, "--json"]);
    serde_json::from_slice(&out.stdout).unwrap()
}

/// How many caveats say that the run did not come to its end.
fn unfinished(document: &Value) -> usize {
    let caveats = document["caveats"].as_array().unwrap();
    let is = |caveat: &&Value| caveat["id"] == "run-not-finished";
    caveats.iter().filter(is).count()
}

#[cfg(unix)]
#[test]
fn a_bench_that_a_signal_ended_has_come_to_its_end() {
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("ledger");
    let mut child = Command::new(env!("CARGO_BIN_EXE_intact"))
        .args(["bench", &server.plain(), "-z", "60s", "--ledger"])
        .arg(&ledger)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    crate::program::wait_for(&ledger.join("tally.json"));
    crate::program::signal(child.id(), "-TERM");
    assert_eq!(child.wait().unwrap().code(), Some(143));
    let document = report(ledger.to_str().unwrap());
    assert_eq!(unfinished(&document), 0, "{:#}", document["caveats"]);
    let caveats = document["caveats"].as_array().unwrap();
    let interrupted = caveats.iter().find(|one| one["id"] == "interrupted");
    let words = interrupted.unwrap()["message"].as_str().unwrap();
    assert!(words.contains("of 20"), "{words}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_watch_that_was_killed_leaves_a_ledger_that_every_reader_calls_incomplete() {
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("ledger");
    let program = format!(
        "{} bench {} -n 30 --keepalive on >/dev/null; read -r _",
        env!("CARGO_BIN_EXE_intact"),
        server.plain()
    );
    let mut child = Command::new(env!("CARGO_BIN_EXE_intact"))
        .args(["watch", "--quiet", "--ledger"])
        .arg(&ledger)
        .args(["--", "sh", "-c", &program])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // held open, so that the program goes on after its requests
    let stdin = child.stdin.take();
    let requests = || -> Option<usize> {
        let events = intact_ledger::store::Reader::open(&ledger)
            .ok()?
            .events()
            .ok()?;
        let is = |row: &intact_ledger::Row| matches!(row, intact_ledger::Row::Exchange(_));
        Some(events.filter(is).count())
    };
    for _ in 0..3000 {
        if requests() >= Some(30) {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    drop(stdin);
    let ledger = ledger.to_str().unwrap();
    let document = report(ledger);
    // it was killed, so that there may be more
    let requests = &document["requests"];
    assert!(requests["total"].is_null(), "{requests:#}");
    assert!(requests["bounds"]["total"]["low"].as_u64() >= Some(30));
    assert_eq!(unfinished(&document), 1, "{:#}", document["caveats"]);
    let out = intact(&["report", ledger, "--require", "requests >= 30"]);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(0), "{said}");
    for words in [
        &["report", ledger][..],
        &["audit", ledger],
        &["model", ledger],
        &["compare", ledger, ledger],
    ] {
        let out = intact(words);
        let page = String::from_utf8_lossy(&out.stdout).into_owned();
        assert!(
            page.contains("did not come to its end"),
            "{words:?}: {page} {}",
            String::from_utf8_lossy(&out.stderr)
        );
    }
}

#[test]
fn csv_has_a_row_for_every_request_and_the_ledger_says_what_it_keeps() {
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("rows.csv");
    let ledger = folder.path().join("ledger");
    let document = bench(&[
        &server.plain(),
        "-n",
        "600",
        "--csv",
        csv.to_str().unwrap(),
        "--ledger",
        ledger.to_str().unwrap(),
    ]);
    let seen = exchanges(&server.end()["cells"][0]);
    let text = std::fs::read_to_string(&csv).unwrap();
    assert!(text.starts_with("response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset,"));
    assert_eq!(text.lines().count() as u64 - 1, seen);
    assert_eq!(
        document["run"]["rows"], "all",
        "a CSV has all rows, so the ledger does too"
    );
}

#[test]
fn an_earlier_ledger_is_compared_with_this_run() {
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let before = folder.path().join("before");
    bench(&[
        &server.plain(),
        "-n",
        "40",
        "--ledger",
        before.to_str().unwrap(),
    ]);
    let document = bench(&[
        &server.plain(),
        "-n",
        "40",
        "--baseline",
        before.to_str().unwrap(),
    ]);
    let variants = document["baseline"]["variants"].as_array().unwrap();
    let said = document["verdict"].as_array().unwrap().iter();
    let said: Vec<&str> = said.filter_map(|one| one.as_str()).collect();
    let is_change = |one: &&str| one.starts_with("Compared with the earlier run, ");
    assert!(said.iter().any(is_change), "{said:?}");
    assert_eq!(variants.len(), 2);
    assert!(
        variants[0]["then_ms"].as_f64().unwrap() > 0.0
            && variants[0]["now_ms"].as_f64().unwrap() > 0.0
    );
}

#[test]
fn a_ledger_with_an_unreadable_axis_is_an_error_and_no_default() {
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("ledger");
    let ledger = ledger.to_str().unwrap();
    let made = intact(&["bench", &server.plain(), "-n", "8", "--ledger", ledger]);
    assert_eq!(made.status.code(), Some(0));
    assert_eq!(intact(&["report", ledger]).status.code(), Some(0));

    let path = folder.path().join("ledger/run.json");
    let written = std::fs::read_to_string(&path).unwrap();
    let mut run: Run = serde_json::from_str(&written).unwrap();
    let concurrency = run.variants[0].axes.get_mut("c").unwrap();
    *concurrency = "many".to_owned();
    std::fs::write(&path, serde_json::to_string(&run).unwrap()).unwrap();

    let url = server.plain();
    for command in [
        vec!["report", ledger],
        vec!["bench", &url, "-n", "8", "--baseline", ledger],
    ] {
        let read = intact(&command);
        let said = String::from_utf8(read.stderr).unwrap();
        assert_eq!(read.status.code(), Some(5), "{command:?}: {said}");
        assert!(
            said.contains("axis `c` is \"many\"") && said.contains(ledger),
            "{command:?}: {said}"
        );
    }
}

#[test]
fn a_ledger_of_an_unknown_producer_is_read_as_observed_traffic() {
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("ledger");
    let ledger = ledger.to_str().unwrap();
    let made = intact(&["bench", &server.plain(), "-n", "8", "--ledger", ledger]);
    assert_eq!(made.status.code(), Some(0));

    let path = folder.path().join("ledger/run.json");
    let written = std::fs::read_to_string(&path).unwrap();
    let mut run: Run = serde_json::from_str(&written).unwrap();
    assert_eq!(run.producer, Producer::Bench);
    run.producer = Producer::Other("mitmproxy".to_owned());
    std::fs::write(&path, serde_json::to_string(&run).unwrap()).unwrap();

    let read = intact(&["report", ledger, "--json"]);
    let said = String::from_utf8(read.stdout).unwrap();
    assert_eq!(read.status.code(), Some(0), "{said}");
    let document: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(document["schema"], "intact.mitmproxy/1");
    assert_eq!(document["destinations"].as_array().unwrap().len(), 1);
    let baseline = intact(&["bench", &server.plain(), "-n", "8", "--baseline", ledger]);
    assert_eq!(baseline.status.code(), Some(5));
}

#[test]
fn a_used_ledger_folder_and_options_without_effect_are_usage_errors() {
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().to_str().unwrap();
    let url = server.plain();
    let kept = intact(&[
        "bench",
        &url,
        "-n",
        "2",
        "--keepalive",
        "on",
        "--full",
        "--ledger",
        ledger,
    ]);
    assert_eq!(kept.status.code(), Some(0), "{kept:?}");
    let page = String::from_utf8(kept.stdout).unwrap();
    assert!(page.contains("1 round, 2 requests measured, 1 connection opened"));
    assert!(
        page.contains("Reuse was seen up to request 3 on a connection"),
        "{page}"
    );
    let announced = String::from_utf8(kept.stderr).unwrap();
    assert!(announced.contains(": 1 variant, 1 round\n"), "{announced}");
    for (words, reason) in [
        (&["--ledger", ledger][..], "holds a ledger already"),
        (
            &["--streams", "32"],
            "--streams: only HTTP/2 and HTTP/3 have streams",
        ),
        (
            &["--resume", "off,on"],
            "--resume: plain HTTP has no TLS session",
        ),
        (
            &["--tls-port", "1"],
            "--tls-port: no variant connects to it",
        ),
        (
            &["--plain-port", "1"],
            "--plain-port: no variant connects to it",
        ),
    ] {
        let words = [&["bench", &url, "-n", "2"], words].concat();
        let out = intact(&words);
        let said = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains(reason), "{said}");
    }
}
