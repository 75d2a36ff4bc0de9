//! `intact serve` as a person or a conformance suite meets it.

use crate::peers::program;
use crate::program::{Server, bench, intact};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::Command;

#[test]
fn an_address_without_its_option_is_answered_with_the_option() {
    let out = intact(&["serve", "127.0.0.1:8080"]);
    assert_eq!(out.status.code(), Some(2), "{out:?}");
    let error = String::from_utf8_lossy(&out.stderr);
    assert!(error.contains("--listen 127.0.0.1:8080"), "{error}");
}

#[test]
fn wrong_options_are_usage_errors_with_the_remedy() {
    for (words, reason) in [
        (&["--fault", "stal=0.1"][..], "there are stall,"),
        (&["--fault", "stall=0.6,garbage=0.6"], "at most 1"),
        (&["--close", "softly"], "no-close-notify"),
        (&["--delay", "soon"], "500ms"),
        (&["--idle-timeout", "exp:1s"], "500ms"),
        (&["--header", "no colon"], "Name: value"),
        (&["--max-requests", "0"], "0 is not in"),
        (&["--threads", "0"], "from 1"),
    ] {
        let out = intact(&[&["serve"], words].concat());
        let error = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{words:?}: {error}");
        assert!(error.contains(reason), "{words:?}: {error}");
    }
}

#[test]
fn both_ledgers_agree_for_each_way_to_close() {
    for close in ["goaway", "fin", "rst", "no-close-notify"] {
        for http in ["1.1", "2"] {
            let server = Server::start(&["--max-requests", "5", "--close", close]);
            let document = bench(&[
                &server.plain(),
                "--http",
                http,
                "--keepalive",
                "on",
                "-n",
                "40",
                "--rounds",
                "2",
            ]);
            let variant = &document["variants"][0];
            let theirs = server.end();
            let theirs = &theirs["cells"][0]["connections"];
            let connections = |value: &Value| value.as_u64().unwrap();
            let preflight = connections(&theirs["opened"])
                - connections(&variant["connections"]["opened"])
                - connections(&variant["warmup"]["connections"]);
            assert!(preflight <= 1, "{close} {http}: {theirs} {variant:#}");
            if http == "2" && close != "goaway" {
                // neither side is informed beforehand, so that both may close at once and each be
                // right
                continue;
            }
            let ended: BTreeMap<String, u64> =
                serde_json::from_value(variant["connections"]["ended_by"].clone()).unwrap();
            for (by, count) in ended {
                let count_there = theirs["ended_by"][&by].as_u64().unwrap_or(0);
                assert!(
                    (count..=count + 1).contains(&count_there),
                    "{close} {http} {by}: {count} here, {theirs}"
                );
            }
        }
    }
}

#[test]
fn h2spec_finds_nothing_wrong_plain_and_under_tls() {
    let Some(h2spec) = program("h2spec", "h2spec_finds_nothing_wrong_plain_and_under_tls") else {
        return;
    };
    let server = Server::start(&[]);
    let plain = server.plain();
    let port = plain.trim_end_matches('/').rsplit(':').next().unwrap();
    for words in [
        &["--port", port][..],
        &["--port", &server.tls_port(), "--tls", "--insecure"],
    ] {
        let out = Command::new(&h2spec)
            .args(["--strict", "--host", "127.0.0.1", "--timeout", "5"])
            .args(words)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&out.stdout);
        let counts = text.lines().rev().find(|line| line.contains(" tests, "));
        let counts = counts.unwrap_or_else(|| panic!("{text}"));
        assert!(
            counts.starts_with("146 tests, 146 passed") && counts.ends_with(" 0 failed"),
            "{text}"
        );
    }
    let tally = server.end();
    assert_ne!(tally["cells"][0]["connections"]["opened"], json!(0));
}

#[test]
fn its_page_in_the_docs_has_every_option_and_every_fault() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/serve.md");
    let page = std::fs::read_to_string(page).unwrap();
    let help = intact(&["serve", "--help"]);
    let help = String::from_utf8(help.stdout).unwrap();
    let mut options = 0;
    for line in help.lines().map(str::trim_start) {
        let name: String = line
            .chars()
            .take_while(|&c| c == '-' || c.is_ascii_alphanumeric())
            .collect();
        if name.starts_with("--") && name != "--help" {
            options += 1;
            assert!(page.contains(&name), "{name}");
        }
        let fault = line
            .strip_prefix("- ")
            .and_then(|rest| rest.split_once(':'));
        if let Some((fault, _)) = fault {
            assert!(page.contains(&format!("`{fault}`")), "{fault}");
        }
    }
    assert!(options > 25, "{help}");
}
