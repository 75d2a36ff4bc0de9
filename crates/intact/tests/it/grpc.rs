//! Calls of gRPC: `bench --grpc` against `serve` and a server of Go, and what both ledgers say of
//! them.

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

/// Starts the server of Go with these options; it and its URL.
fn go_server(test: &str, options: &[&str]) -> Option<(Peer, String)> {
    let peer = program("grpc-peer", test)?;
    let mut peer = Command::new(peer);
    let mut peer = peer.args(options).stdout(Stdio::piped()).spawn().unwrap();
    let mut address = String::new();
    let printed = peer.stdout.take().unwrap();
    let peer = Peer(peer);
    BufReader::new(printed).read_line(&mut address).unwrap();
    Some((peer, format!("http://{}/", address.trim())))
}

const CHECK: &str = "grpc.health.v1.Health/Check";
/// The reason of Go's health service for a service that is not registered.
const NOT_FOUND: &str = "grpc-status 5 (NOT_FOUND)";

/// The variants of a bench of the health service.
fn variants(url: &str, options: &[&str]) -> Vec<Value> {
    let words = ["bench", url, "--grpc", CHECK, "--json", "-n", "20"];
    let out = intact(&[&words[..], options].concat());
    let document: Value = serde_json::from_slice(&out.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&out.stderr)));
    document["variants"].as_array().unwrap().clone()
}

#[test]
fn the_health_service_of_go_is_called_and_its_status_is_the_outcome() {
    let Some((_peer, url)) = go_server("bench --grpc against Go", &[]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let (csv, message) = (
        folder.path().join("calls.csv"),
        folder.path().join("message"),
    );
    // HealthCheckRequest { service: "x" }, which is not registered
    std::fs::write(&message, b"\x0a\x01x").unwrap();
    let message = format!("@{}", message.display());
    for variant in variants(&url, &[]) {
        assert_eq!(variant["requests"]["ok"], 20, "{variant:#}");
        let opened = variant["connections"]["opened"].as_u64().unwrap();
        match variant["keepalive"].as_bool().unwrap() {
            true => assert!(opened < 20, "{variant:#}"),
            false => assert_eq!(opened, 20, "{variant:#}"),
        }
    }
    let csv = csv.to_str().unwrap();
    variants(&url, &["-d", &message, "--keepalive", "on", "--csv", csv]);
    let rows = std::fs::read_to_string(csv).unwrap();
    let failed = rows.lines().filter(|row| row.contains(",grpc-status,"));
    // the last column is NOT_FOUND
    let codes: Vec<bool> = failed.map(|row| row.ends_with(",5")).collect();
    assert!(!codes.is_empty() && codes.iter().all(|one| *one), "{rows}");
}

#[test]
fn a_message_in_json_has_the_types_of_go_s_reflection() {
    for version in ["-reflection", "-v1alpha"] {
        let Some((_peer, url)) = go_server("bench --grpc-json against Go", &[version]) else {
            return;
        };
        let keep = ["--keepalive", "on", "--grpc-json"];
        for variant in variants(&url, &[&keep[..], &["{}"]].concat()) {
            assert_eq!(variant["requests"]["ok"], 20, "{variant:#}");
        }
        // only a server that reads the name does not know it
        let out = intact(&[
            "bench",
            &url,
            "--grpc",
            CHECK,
            "-n",
            "20",
            "--keepalive",
            "on",
            "--grpc-json",
            r#"{"service":"x"}"#,
        ]);
        assert_eq!(out.status.code(), Some(3), "{version}");
        let page = String::from_utf8_lossy(&out.stdout).into_owned();
        assert!(page.contains(NOT_FOUND), "{page}");
        let words = [
            "bench",
            &url,
            "--grpc",
            "grpc.health.v1.Health/Watch",
            "--grpc-json",
            "{}",
        ];
        let out = intact(&words);
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(said.contains("streams its responses"), "{said}");
    }
}

#[test]
fn a_server_of_go_without_reflection_is_called_with_descriptors() {
    let Some((_peer, url)) = go_server("bench --descriptors against Go", &[]) else {
        return;
    };
    let words = ["bench", &url, "--grpc", CHECK, "--grpc-json", "{}"];
    let out = intact(&words);
    assert_eq!(out.status.code(), Some(2));
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    let reason = "the server has no reflection (grpc-status 12 (UNIMPLEMENTED))";
    assert!(
        said.contains(reason) && said.contains("--descriptors FILE"),
        "{said}"
    );
    // the method of the descriptors is not there: the call is made, and refused by the server
    let (set, method) = (
        shop(),
        ["--grpc", "shop.Cart/Add", "-n", "10", "--keepalive", "on"],
    );
    let json = ["--grpc-json", r#"{"name":"x"}"#, "--descriptors", &set];
    let out = intact(&[&["bench", &url][..], &method, &json].concat());
    let page = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(page.contains("grpc-status 12 (UNIMPLEMENTED)"), "{page}");
}

/// The descriptor set of `fixtures/grpc/shop.proto`.
fn shop() -> String {
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../fixtures/grpc/shop.binpb"
    );
    folder.to_owned()
}

#[test]
fn a_message_in_json_is_echoed_by_serve_with_the_types_of_its_reflection() {
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("message.json");
    std::fs::write(&file, r#"{"text":"s3cret","number":"7"}"#).unwrap();
    let csv = folder.path().join("calls.csv");
    let (file, csv) = (format!("@{}", file.display()), csv.to_str().unwrap());
    let options = ["--keepalive", "on", "--csv", csv, "--grpc-json", &file];
    let (code, document) = bench(&server, "intact.Test/Echo", &options);
    assert_eq!(code, Some(0), "{document:#}");
    assert_eq!(document["variants"][0]["requests"]["ok"], 20);
    // text and number with their tags: 8 + 2 bytes, after 5 of the length
    let rows = std::fs::read_to_string(csv).unwrap();
    let names: Vec<&str> = rows.lines().next().unwrap().split(',').collect();
    let column = names.iter().position(|name| *name == "body_bytes").unwrap();
    let body = |row: &str| row.split(',').nth(column).unwrap().parse::<u64>().unwrap();
    // the frame of HTTP/2 counts, too
    let sizes: Vec<u64> = rows.lines().skip(1).map(body).collect();
    assert!(
        !sizes.is_empty() && sizes.iter().all(|size| *size == 24),
        "{sizes:?}"
    );
    let options = ["--keepalive", "on", "--grpc-json", r#"{"text":"s3cret"}"#];
    let (_, document) = bench(&server, "intact.Test/Echo", &options);
    assert!(!document.to_string().contains("s3cret"), "{document:#}");
}

#[test]
fn a_message_that_cannot_be_made_is_refused_before_anything_is_sent() {
    let server = Server::start(&[]);
    let url = server.plain();
    let set = shop();
    let missing = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    for (words, remedy) in [
        (
            &["shop.Cart/Add"][..],
            "no service shop.Cart; the types have grpc.health.v1.Health, intact.Test",
        ),
        (
            &["intact.Test/Ecco"],
            "intact.Test has no method Ecco; it has Echo",
        ),
        (&["intact.Test/Echo"], "unrecognized field name 'nam'"),
        (
            &["intact.Test/Echo"],
            "intact.EchoMessage has text, number, data, words",
        ),
        (
            &["shop.Cart/Watch", "--descriptors", &set],
            "shop.Cart/Watch streams its responses",
        ),
        (
            &["shop.Cart/Add", "--descriptors", missing],
            "no descriptor set",
        ),
        (
            &["shop.Cart/Add", "--descriptors", "/nowhere"],
            "--descriptors /nowhere",
        ),
        (&["shop.Cart/Add", "-d", "x"], "cannot be used with"),
    ] {
        let all = ["bench", &url, "--grpc-json", r#"{"nam":"x"}"#, "--grpc"];
        let out = intact(&[&all[..], words].concat());
        assert_eq!(out.status.code(), Some(2), "{words:?}");
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(said.contains(remedy), "{words:?}: {said}");
    }
    let out = intact(&["bench", &url, "--grpc-json", "{}"]);
    assert_eq!(out.status.code(), Some(2), "it needs a method");
    let out = intact(&[
        "bench",
        crate::peers::CLOSED,
        "--grpc",
        "a.B/C",
        "--grpc-json",
        "{}",
    ]);
    assert_eq!(out.status.code(), Some(3), "nothing listens");
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
