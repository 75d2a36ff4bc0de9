//! `intact lambda` as a person runs it, with a runtime client in Python's standard library.

use crate::link::on_link;
use serde_json::Value;
use std::process::{Command, Output};

/// Answers four times, then ends in the middle of an invocation.
const CLIENT: &str = r#"
import http.client, os, sys
api = http.client.HTTPConnection(os.environ["AWS_LAMBDA_RUNTIME_API"])
root = "/2018-06-01/runtime/invocation/"
for nth in range(5):
    api.request("GET", root + "next")
    answer = api.getresponse()
    event, id = answer.read(), answer.headers["Lambda-Runtime-Aws-Request-Id"]
    if nth == 4:
        sys.exit(9)
    api.request("POST", root + id + "/response", event)
    api.getresponse().read()
"#;

fn lambda(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_intact"));
    command.arg("lambda").args(words);
    command.output().unwrap()
}

#[test]
fn the_document_of_a_function_is_what_its_schema_says() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/schema/lambda.schema.json"
    );
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let told = lambda(&[
        "-n",
        "12",
        "--rounds",
        "2",
        "--idle",
        "0s,20ms",
        "--json",
        "--variants",
        "A=1",
        "B=2",
        "--",
        "python3",
        "-c",
        CLIENT,
    ]);
    assert_eq!(told.status.code(), Some(0), "{told:?}");
    let document: Value = serde_json::from_slice(&told.stdout).unwrap();
    let faults: Vec<String> = validator
        .iter_errors(&document)
        .map(|error| format!("{error} at {}", error.instance_path()))
        .collect();
    assert!(faults.is_empty(), "{faults:?}");
    assert_eq!(document["requests"]["total"], 24);
    for variant in document["variants"].as_array().unwrap() {
        assert_eq!(variant["outcomes"]["answered"], 10, "{variant}");
        assert_eq!(variant["outcomes"]["crash"], 2, "{variant}");
        assert_eq!(variant["environments"], 4, "{variant}");
    }
}

#[test]
fn a_function_that_never_answers_is_told_by_the_exit_code() {
    let told = lambda(&["-n", "1", "--", "sh", "-c", "exit 3"]);
    assert_eq!(told.status.code(), Some(3));
    let page = String::from_utf8(told.stdout).unwrap();
    assert!(
        page.contains("ended with exit code 3 before it asked"),
        "{page}"
    );
    let told = lambda(&["--", "/no/such/program"]);
    assert_eq!(told.status.code(), Some(127));
}

/// Ends each connection 0.2 s after its first answer.
const SERVER: &str = r#"
import socket, threading, time
def serve(connection):
    connection.recv(100)
    connection.send(b"x")
    time.sleep(0.2)
    connection.close()
listener = socket.create_server(("0.0.0.0", 80))
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],)).start()
"#;

/// Asks that server over one connection, and answers with what it saw.
const KEEPER: &str = r#"
import http.client, json, os, socket
api = http.client.HTTPConnection(os.environ["AWS_LAMBDA_RUNTIME_API"])
root = "/2018-06-01/runtime/invocation/"
kept = socket.create_connection(("server.test", 80))
while True:
    api.request("GET", root + "next")
    answer = api.getresponse()
    answer.read()
    try:
        kept.send(b"x")
        seen = "answer" if kept.recv(1) else "FIN"
    except ConnectionResetError:
        seen = "RST"
    body = json.dumps({"errorType": "Seen", "errorMessage": seen})
    api.request("POST", root + answer.headers["Lambda-Runtime-Aws-Request-Id"] + "/error", body)
    api.getresponse().read()
"#;

/// What the function saw before the freeze, and after one that the server's limit does not outlive.
fn seen(freeze: &str) -> Option<Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("server.py");
    std::fs::write(&script, SERVER).unwrap();
    let server = format!("exec python3 {}", script.display());
    let told = on_link(
        &[
            "lambda", "-n", "2", "--link", "rtt=20ms", "--idle", "1s", "--freeze", freeze,
            "--server", &server, "--json", "--", "python3", "-c", KEEPER,
        ],
        "lambda on a link",
    )?;
    let document: Value =
        serde_json::from_slice(&told.stdout).unwrap_or_else(|error| panic!("{error}: {told:?}"));
    assert_eq!(document["run"]["link"], "rtt=20ms");
    let calls = document["invocations"].as_array().unwrap().iter();
    Some(
        calls
            .map(|call| call["detail"].as_str().unwrap().to_owned())
            .collect(),
    )
}

#[test]
fn stopped_processes_find_the_fin_that_their_kernel_took() {
    if let Some(seen) = seen("processes") {
        assert_eq!(seen, ["Seen: answer", "Seen: FIN"]);
    }
}

#[test]
fn a_frozen_machine_misses_the_fin_and_is_reset() {
    if let Some(seen) = seen("machine") {
        assert_eq!(seen, ["Seen: answer", "Seen: RST"]);
    }
}
