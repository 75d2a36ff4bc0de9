//! `--like`: a load test whose connections are used otherwise than in production is found out.
//! `--flamegraph` of `bench` and `compare`: a graph for each variant and each program.

use crate::observed::store;
use crate::program::{Server, bench, intact};
use crate::skip::skip;
use serde_json::{Value, json};
use std::process::Output;

fn stderr(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

/// What the comparison of connections per request resulted in, by test.
fn results(document: &Value) -> Vec<(&str, &str)> {
    let tests = document["like"]["tests"].as_array().unwrap().iter();
    tests.map(result).collect()
}

fn result(test: &Value) -> (&str, &str) {
    let mut aspects = test["aspects"].as_array().unwrap().iter();
    let one = aspects.find(|one| one["aspect"] == "connections-per-request");
    (
        test["behaviour"]["name"].as_str().unwrap(),
        one.unwrap()["result"].as_str().unwrap(),
    )
}

#[test]
fn a_bench_without_reuse_is_like_production_only_where_that_has_none() {
    let dir = tempfile::tempdir().unwrap();
    let new = store(&dir.path().join("new"), "new-connection-per-request/fires");
    let kept = store(&dir.path().join("kept"), "unbalanced-by-reuse/fires");
    let server = Server::start(&[]);
    let url = server.plain();
    for (production, wanted) in [(&new, ["differs", "alike"]), (&kept, ["alike", "differs"])] {
        let words = [&url, "-n", "40", "--rounds", "2", "--like", production];
        let document = bench(&words);
        let [on, off] = wanted;
        assert_eq!(
            results(&document),
            [("keepalive=on", on), ("keepalive=off", off)],
            "{:#}",
            document["like"]
        );
        let verdict = document["verdict"].as_array().unwrap();
        let mut sentences = verdict.iter().filter_map(Value::as_str);
        let unlike = if on == "differs" {
            "keepalive=on opens"
        } else {
            "keepalive=off opens"
        };
        assert!(
            sentences
                .any(|one| one.starts_with(unlike) && one.ends_with("its p99 is not production's")),
            "{verdict:?}"
        );
    }
    let gate = ["--require", "unlike == 0"];
    let words = [
        &["bench", url.as_str(), "-n", "20", "--like", &kept][..],
        &gate,
    ]
    .concat();
    let out = intact(&words);
    assert_eq!(out.status.code(), Some(1), "{}", stderr(&out));
    // without a ledger of production there is nothing that the gate could be met by
    let out = intact(&[&["bench", url.as_str(), "-n", "20"][..], &gate].concat());
    assert_eq!(out.status.code(), Some(1));
    assert!(
        stderr(&out).contains("name the ledger of production with --like"),
        "{out:?}"
    );
}

#[test]
fn stored_tests_are_compared_with_production_and_a_bench_is_none() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let new = store(&at("new"), "new-connection-per-request/fires");
    let kept = store(&at("kept"), "unbalanced-by-reuse/fires");
    let json = at("like.json");
    let to = format!("--json={}", json.display());
    let out = intact(&[
        "compare",
        "--like",
        &kept,
        &new,
        &to,
        "--require",
        "unlike == 0",
    ]);
    assert_eq!(out.status.code(), Some(1), "{}", stderr(&out));
    let document: Value = serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
    assert_eq!(results(&document), [("new", "differs")]);
    assert_eq!(document["like"]["production"]["name"], json!("kept"));
    let page = String::from_utf8(out.stdout).unwrap();
    assert!(page.contains("its p99 is not production's"), "{page}");
    // said once: the comparison of two ledgers has a sentence of its own for this
    assert_eq!(
        page.matches("1.00").count(),
        2,
        "sentence and table: {page}"
    );
    for words in ["does not behave like", "recorded separately"] {
        assert!(!page.contains(words), "{words}: {page}");
    }

    let server = Server::start(&[]);
    let of_bench = at("bench").display().to_string();
    bench(&[&server.plain(), "-n", "4", "--ledger", &of_bench]);
    let out = intact(&["bench", &server.plain(), "-n", "4", "--like", &of_bench]);
    assert_eq!(out.status.code(), Some(5));
    assert!(stderr(&out).contains("no traffic of production"), "{out:?}");
}

#[test]
fn each_variant_has_a_flame_graph_of_client_and_server() {
    let dir = tempfile::tempdir().unwrap();
    let svg = dir.path().join("bench.svg");
    let server = Server::start(&[]);
    let (pid, url) = (server.pid().to_string(), server.plain());
    let words = ["-n", "4000", "--rounds", "2", "--server-pid", &pid];
    let words = [
        &["bench", url.as_str()][..],
        &words,
        &["--flamegraph", svg.to_str().unwrap()],
    ]
    .concat();
    let out = intact(&words);
    if out.status.code() == Some(4) {
        return skip("bench --flamegraph", &stderr(&out));
    }
    assert!(out.status.success(), "{}", stderr(&out));
    let svg = std::fs::read_to_string(svg).unwrap();
    let graphs: Vec<&str> = svg.split("class=\"panel\"").skip(1).collect();
    assert_eq!(graphs.len(), 2);
    for (graph, name) in graphs.iter().zip(["keepalive=on", "keepalive=off"]) {
        assert!(graph.contains(&format!(">{name}</text>")), "{name}");
        // a thread of the client, and the server's process
        assert!(graph.contains("<title>engine-0 ("), "{name}");
        assert!(graph.contains("<title>intact ("), "{name}");
    }
}
