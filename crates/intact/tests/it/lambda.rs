//! `intact lambda` as a person runs it, with a runtime client in Python's standard library.

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
