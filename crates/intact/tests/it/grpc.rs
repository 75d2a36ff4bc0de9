//! Calls of gRPC: `bench --grpc` against `serve` and a server of Go, and what both ledgers say of them.

use crate::peers::{Peer, program};
use crate::program::{Server, intact};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

fn bench(server: &Server, method: &str, options: &[&str]) -> (Option<i32>, Value) {
    let url = server.plain();
    let mut words = vec!["bench", &url, "--grpc", method, "--json", "-n", "20"];
    words.extend_from_slice(options);
    let out = intact(&words);
    let document = serde_json::from_slice(&out.stdout).unwrap_or(Value::Null);
    (out.status.code(), document)
}

#[test]
fn a_call_with_status_0_is_ok_and_any_other_is_a_failure_of_its_own() {
    let server = Server::start(&[]);
    let (code, document) = bench(&server, "grpc.health.v1.Health/Check", &[]);
    assert_eq!(code, Some(0), "{document:#}");
    for variant in document["variants"].as_array().unwrap() {
        assert_eq!(variant["requests"]["ok"], 20, "{variant:#}");
    }
    // the message comes back with its frame
    let (code, _) = bench(
        &server,
        "intact.Test/Echo",
        &["-d", "hello", "--require", "failed == 0"],
    );
    assert_eq!(code, Some(0));
    let (code, document) = bench(&server, "intact.Test/None", &["--keepalive", "on"]);
    assert_eq!(code, Some(3), "no call succeeded");
    let text = document.to_string();
    assert!(
        text.contains("grpc-status 12 (UNIMPLEMENTED)"),
        "{document:#}"
    );
}

#[test]
fn the_health_service_of_go_is_called_and_its_status_is_the_outcome() {
    let Some(peer) = program("grpc-health-peer", "bench --grpc against Go") else {
        return;
    };
    let mut peer = Command::new(peer).stdout(Stdio::piped()).spawn().unwrap();
    let mut address = String::new();
    let printed = peer.stdout.take().unwrap();
    let _peer = Peer(peer);
    BufReader::new(printed).read_line(&mut address).unwrap();
    let url = format!("http://{}/", address.trim());
    let folder = tempfile::tempdir().unwrap();
    let (csv, message) = (
        folder.path().join("calls.csv"),
        folder.path().join("message"),
    );
    // HealthCheckRequest { service: "x" }, which is not registered
    std::fs::write(&message, b"\x0a\x01x").unwrap();
    let message = format!("@{}", message.display());
    let method = "grpc.health.v1.Health/Check";
    let call = |options: &[&str]| {
        let words = ["bench", &url, "--grpc", method, "--json", "-n", "20"];
        let out = intact(&[&words[..], options].concat());
        let document: Value = serde_json::from_slice(&out.stdout).unwrap();
        document["variants"].as_array().unwrap().clone()
    };
    for variant in call(&[]) {
        assert_eq!(variant["requests"]["ok"], 20, "{variant:#}");
        let opened = variant["connections"]["opened"].as_u64().unwrap();
        match variant["keepalive"].as_bool().unwrap() {
            true => assert!(opened < 20, "{variant:#}"),
            false => assert_eq!(opened, 20, "{variant:#}"),
        }
    }
    let csv = csv.to_str().unwrap();
    call(&["-d", &message, "--keepalive", "on", "--csv", csv]);
    let rows = std::fs::read_to_string(csv).unwrap();
    let failed = rows.lines().filter(|row| row.contains(",grpc-status,"));
    // the last column is NOT_FOUND
    let codes: Vec<bool> = failed.map(|row| row.ends_with(",5")).collect();
    assert!(!codes.is_empty() && codes.iter().all(|one| *one), "{rows}");
}

#[test]
fn a_wrong_method_is_refused_with_the_form() {
    for (words, remedy) in [
        (
            &["http://127.0.0.1:9/", "--grpc", "Check"][..],
            "package.Service/Method",
        ),
        (
            &["http://127.0.0.1:9/path", "--grpc", "a.B/C"],
            "name the server alone",
        ),
        (
            &["http://127.0.0.1:9/", "--grpc", "a.B/C", "-X", "GET"],
            "cannot be used with",
        ),
        (
            &["http://127.0.0.1:9/", "--grpc", "a.B/C", "--http", "1.1"],
            "cannot be used with",
        ),
    ] {
        let out = intact(&[&["bench"], words].concat());
        assert_eq!(out.status.code(), Some(2), "{words:?}");
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(said.contains(remedy), "{said}");
    }
}
