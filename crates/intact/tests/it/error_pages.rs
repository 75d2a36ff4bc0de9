//! Runs in which nothing succeeded: error pages, a TLS port, answers that stop working after the
//! first. They exit 3, say what happened, and no requirement passes on them.

use crate::check_peers::{ANSWER, next_request, peer};
use crate::program::{Server, bench, intact};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::process::Output;

const NOT_FOUND: &[u8] = b"HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\nno";
const GARBAGE: &[u8] = b"SSH-2.0-OpenSSH_9.2\r\n";

/// Answers the requests of each connection by their number, from 0; `None` closes.
fn answers(by_number: fn(u32) -> Option<&'static [u8]>) -> SocketAddr {
    peer(move |stream, _| {
        let mut reader = BufReader::new(stream);
        for nth in 0.. {
            let answer = next_request(&mut reader).then(|| by_number(nth)).flatten();
            let Some(answer) = answer else { return };
            if reader.get_mut().write_all(answer).is_err() {
                return;
            }
        }
    })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The first sentence of a page: it follows the first empty line.
fn headline(out: &Output) -> String {
    let page = text(&out.stdout);
    let mut lines = page.lines().skip_while(|line| !line.is_empty()).skip(1);
    let sentence = lines.by_ref().take_while(|line| !line.is_empty());
    sentence.map(str::trim).collect::<Vec<_>>().join(" ")
}

/// Every requirement fails on this run, also those that a count of nothing would meet.
fn no_gate_passes(words: &[&str], requirements: &[&str]) {
    for requirement in requirements {
        let mut all = words.to_vec();
        all.extend(["--require", requirement]);
        let out = intact(&all);
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(3), "{requirement}: {said}");
        assert!(said.contains(&format!("NOT met: {requirement}")), "{said}");
    }
}

const OF_A_BENCH: [&str; 4] = [
    "failed == 0",
    "keepalive=on: connections <= 9999",
    "keepalive=on: avoidable >= 0",
    "p50 < 10s",
];
const OF_A_BENCH_WITHOUT_SELECTORS: [&str; 3] = ["requests >= 50", "failed >= 50", "p50 < 10s"];

#[test]
fn a_bench_of_an_error_page_exits_3_and_names_the_option_that_allows_it() {
    let server = Server::start(&["--status", "404"]);
    let url = server.plain();
    let words = ["bench", &url, "-n", "40", "--rounds", "8"];
    let out = intact(&words);
    assert_eq!(out.status.code(), Some(3), "{}", text(&out.stderr));
    assert_eq!(
        headline(&out),
        "Every response was 404 (80 of 80): these figures measure an error page; pass --expect 404 if that is intended."
    );
    assert!(!text(&out.stdout).contains("keep-alive saves"));
    no_gate_passes(&words, &OF_A_BENCH);
    let document = bench(&words[1..]);
    assert_eq!(document["comparisons"], serde_json::json!([]));
    for expect in ["404", "4xx", "any"] {
        let mut allowed = words.to_vec();
        allowed.extend(["--expect", expect, "--require", "failed == 0"]);
        let out = intact(&allowed);
        assert_eq!(out.status.code(), Some(0), "{expect}");
        assert!(headline(&out).starts_with("At -c 1"), "{}", headline(&out));
        assert!(!text(&out.stdout).contains("not-2xx"), "{expect}");
    }
    let mut refused = words.to_vec();
    refused.extend(["--expect", "2xx"]);
    let out = intact(&refused);
    assert_eq!(out.status.code(), Some(3));
    assert!(headline(&out).contains("status 404"), "{}", headline(&out));
}

#[test]
fn a_stored_bench_of_an_error_page_has_the_same_headline() {
    let server = Server::start(&["--status", "503"]);
    let folder = tempfile::tempdir().unwrap();
    for (expect, headline_is) in [(None, "Every response was 503"), (Some("503"), "At -c 1")] {
        let ledger = folder.path().join(expect.unwrap_or("none"));
        let ledger = ledger.to_str().unwrap();
        let url = server.plain();
        let mut words = vec![
            "bench", &url, "-n", "40", "--rounds", "8", "--ledger", ledger,
        ];
        words.extend(expect.iter().flat_map(|status| ["--expect", status]));
        let live = intact(&words);
        let stored = intact(&["report", ledger, "--require", "failed == 0"]);
        assert_eq!(headline(&stored), headline(&live));
        assert!(
            headline(&stored).starts_with(headline_is),
            "{}",
            headline(&stored)
        );
        let code = if expect.is_some() { 0 } else { 1 };
        assert_eq!(stored.status.code(), Some(code), "{}", text(&stored.stderr));
    }
}

#[test]
fn many_errors_are_the_first_sentence() {
    let address = answers(|nth| Some(if nth % 4 == 3 { NOT_FOUND } else { ANSWER }));
    let document = bench(&[&format!("http://{address}/"), "-n", "80", "--rounds", "8"]);
    let first = document["verdict"][0].as_str().unwrap();
    assert!(
        first.contains("had the status 404, so the times"),
        "{first}"
    );
}

#[test]
fn a_share_of_errors_precedes_the_times() {
    let address = answers(|nth| Some(if nth == 10 { NOT_FOUND } else { ANSWER }));
    let url = format!("http://{address}/");
    let document = bench(&[&url, "-n", "80", "--rounds", "8"]);
    let verdict = document["verdict"].as_array().unwrap();
    let place = |words: &str| {
        let is_it = |one: &Value| one.as_str().unwrap().contains(words);
        verdict.iter().position(is_it)
    };
    // whether eight rounds show a gain depends on the machine; one that is stated comes second
    let (errors, gain) = (place("had the status 404"), place("keep-alive saves"));
    assert_eq!(errors, Some(0), "{verdict:?}");
    assert!(gain.is_none_or(|place| place == 1), "{verdict:?}");
    let out = intact(&["bench", &url, "-n", "80", "--rounds", "8"]);
    assert_eq!(out.status.code(), Some(0));
    let out = intact(&["check", &url, "--no-idle"]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let page = text(&out.stdout);
    assert!(headline(&out).contains("had the status 404"), "{page}");
    assert!(page.contains("Keeps connections"), "{page}");
}

#[test]
fn a_variant_with_errors_only_is_not_compared_and_passes_no_gate() {
    let address = peer(|stream, _| {
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        while reader.read_line(&mut head).is_ok_and(|count| count > 0) {
            if head.ends_with("\r\n\r\n") {
                let closes = head.to_ascii_lowercase().contains("connection: close");
                let answer = if closes { ANSWER } else { NOT_FOUND };
                if reader.get_mut().write_all(answer).is_err() {
                    return;
                }
                head.clear();
            }
        }
    });
    let url = format!("http://{address}/");
    let document = bench(&[&url, "-n", "40", "--rounds", "8"]);
    assert_eq!(document["comparisons"], serde_json::json!([]));
    let verdicts = document["verdict"].to_string();
    assert!(
        verdicts.contains("keepalive=on: every response was 4xx"),
        "{verdicts}"
    );
    let held = |requirement: &str| {
        let out = intact(&["bench", &url, "-n", "40", "--require", requirement]);
        (out.status.code(), text(&out.stderr))
    };
    assert_eq!(held("keepalive=off: failed == 0").0, Some(0));
    let reason = "every response was 4xx or 5xx, which --expect can allow";
    for (requirement, words) in [
        ("failed == 0", "keepalive=on: failed is 0, not judged: "),
        (
            "keepalive=on: avoidable <= 9999",
            "keepalive=on: avoidable is ",
        ),
        ("saved >= -1s", "saved is unknown ("),
    ] {
        let (code, said) = held(requirement);
        assert_eq!(code, Some(1), "{requirement}: {said}");
        assert!(said.contains(words), "{requirement}: {said}");
        assert!(said.contains(reason), "{requirement}: {said}");
    }
}

#[test]
fn a_bench_that_only_its_preflight_survives_exits_3() {
    let address = peer(|stream, nth| {
        let mut reader = BufReader::new(stream);
        while next_request(&mut reader) {
            let answer = if nth == 0 { ANSWER } else { GARBAGE };
            if reader.get_mut().write_all(answer).is_err() || nth > 0 {
                return;
            }
        }
    });
    // the peer answers the first connection only: one bench is all that it is good for
    let url = format!("http://{address}/");
    let mut words = vec!["bench", &*url, "-n", "50", "--keepalive", "off"];
    for requirement in OF_A_BENCH_WITHOUT_SELECTORS {
        words.extend(["--require", requirement]);
    }
    let out = intact(&words);
    let said = text(&out.stderr);
    assert_eq!(out.status.code(), Some(3), "{}", text(&out.stdout));
    let verdict = headline(&out);
    assert!(
        verdict.starts_with("Nothing could be measured. malformed ×50"),
        "{verdict}"
    );
    for requirement in OF_A_BENCH_WITHOUT_SELECTORS {
        assert!(said.contains(&format!("NOT met: {requirement}")), "{said}");
    }
}

#[test]
fn a_check_of_an_error_page_exits_3_and_so_does_a_url_in_the_place_of_a_command() {
    let server = Server::start(&["--status", "404"]);
    let url = server.plain();
    let words = ["check", &url, "--no-idle"];
    let out = intact(&words);
    assert_eq!(out.status.code(), Some(3));
    assert_eq!(
        headline(&out),
        "Every response was 404: this profile describes an error page; pass --expect 404 if that is intended."
    );
    no_gate_passes(&words, &["max-requests >= 1", "warnings == 0"]);
    let out = intact(&[&url]);
    assert_eq!(out.status.code(), Some(3));
    assert!(!text(&out.stdout).contains("Variants"), "no bench follows");
    let out = intact(&["check", &url, "--no-idle", "--expect", "404"]);
    assert_eq!(out.status.code(), Some(0));
    assert!(headline(&out).starts_with("Keeps connections"));
    assert!(!text(&out.stdout).contains("not-2xx"));
    let out = intact(&["check", &url, "--no-idle", "--expect", "200"]);
    assert_eq!(out.status.code(), Some(3));
    assert!(headline(&out).contains("status 404"), "{}", headline(&out));
}

#[test]
fn an_expected_status_is_that_of_the_response_at_the_end_of_redirects() {
    let end = Server::start(&[]);
    let location = format!("Location: {}", end.plain());
    let server = Server::start(&["--status", "302", "--header", &location]);
    let url = server.plain();
    let code = |words: &[&str]| {
        let mut all = vec!["check", &url, "--no-idle", "--expect", "200", "--json"];
        all.extend(words);
        let out = intact(&all);
        let document: Value = serde_json::from_slice(&out.stdout).unwrap();
        (out.status.code(), document["requests"]["failed"].clone())
    };
    assert_eq!(code(&["-L"]), (Some(0), serde_json::json!({})));
    assert_eq!(
        code(&[]),
        (Some(3), serde_json::json!({"unexpected-status": 1}))
    );
}

#[test]
fn plain_http_to_a_tls_port_is_named() {
    let server = Server::start(&[]);
    let tls = format!("http://127.0.0.1:{}/", server.tls_port());
    // as nginx answers
    let polite = peer(|mut stream, _| {
        let _ = stream.read(&mut [0; 1024]);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n<center>The plain HTTP request was sent to HTTPS port</center>");
    });
    let polite = format!("http://{polite}/");
    for words in [
        &["bench", &tls, "-n", "10"][..],
        &["bench", &tls, "-n", "10", "--http", "2"],
        &["check", &tls],
        &[&tls],
        &["bench", &polite, "-n", "10"],
        &["check", &polite],
    ] {
        let out = intact(words);
        assert_eq!(out.status.code(), Some(3), "{words:?}");
        let said = headline(&out);
        assert!(
            said.contains("the server on this port speaks TLS") && said.contains("use https://"),
            "{words:?}: {said}"
        );
    }
}
