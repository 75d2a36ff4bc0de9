//! Calls of gRPC: `bench --grpc` against `serve`, and what both ledgers say of them.

use crate::program::{Server, intact};
use serde_json::Value;

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
