//! `bench --targets`, `--random-path` and `--hdr`: what is sent in turn, and the latencies for
//! readers of HdrHistogram.

use crate::program::{Server, intact};
use intact_ledger::Row;
use intact_ledger::store::Reader;
use serde_json::Value;
use std::path::Path;
use std::process::Output;

/// A bench whose page is JSON.
fn bench(words: &[&str]) -> (Output, Value) {
    let out = intact(&[&["bench", "--json"], words].concat());
    let document = serde_json::from_slice(&out.stdout).unwrap_or_default();
    (out, document)
}

/// The file of targets of this folder.
fn targets(folder: &Path, text: &str) -> String {
    let path = folder.join("x.txt");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn error(out: &Output) -> String {
    assert_eq!(out.status.code(), Some(2), "{out:?}");
    String::from_utf8_lossy(&out.stderr).into_owned()
}

/// Tags and requests of each target of a variant.
fn counts(variant: &Value) -> Vec<(&str, u64)> {
    let targets = variant["targets"].as_array().unwrap();
    let one = |one: &Value| one["requests"]["total"].as_u64().unwrap();
    let named = targets
        .iter()
        .map(|target| (target["tag"].as_str().unwrap(), one(target)));
    named.collect()
}

#[test]
fn each_target_has_its_figures_in_each_variant_and_a_requirement() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&[]);
    let path = targets(
        folder.path(),
        &format!("GET {}a?x\n\nPOST /b\nX-A: b\n", server.plain()),
    );
    let length = ["--targets", &path, "-n", "40", "--rounds", "2"];
    let gates = [
        "--require",
        "tag=GET /a: requests == 20",
        "--require",
        "tag=POST /b: failed == 0",
    ];
    let (out, document) = bench(&[&length[..], &gates].concat());
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    assert_eq!(document["run"]["targets"], path);
    for variant in document["variants"].as_array().unwrap() {
        assert_eq!(counts(variant), [("GET /a", 20), ("POST /b", 20)]);
    }
    let (out, _) = bench(&[&length[..], &["--require", "tag=GET /a: requests == 21"]].concat());
    assert_eq!(out.status.code(), Some(1), "{out:?}");
}

#[test]
fn random_paths_are_drawn_by_the_seed() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("ledger");
    let ledger = ledger.to_str().unwrap();
    let words = [
        "--random-path",
        "/item/[0-9]{5}",
        "-n",
        "20",
        "--keepalive",
        "on",
        "--seed",
        "7",
    ];
    let (out, document) = bench(&[&words[..], &["--ledger", ledger, "--rows", "all"]].concat());
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    assert_eq!(document["run"]["targets"], "--random-path /item/[0-9]{5}");
    assert_eq!(document["variants"][0]["requests"]["ok"], 20);
    assert!(document["variants"][0].get("targets").is_none());
    let events = Reader::open(Path::new(ledger)).unwrap().events().unwrap();
    let paths = events.filter_map(|row| match row {
        Row::Exchange(one) => one.target.map(|target| target.to_string()),
        _ => None,
    });
    let mut paths: Vec<String> = paths.collect();
    let is_item = |path: &&String| path.starts_with("/item/") && path.len() == 11;
    assert_eq!(paths.iter().filter(is_item).count(), paths.len());
    paths.sort();
    paths.dedup();
    assert!(paths.len() >= 15, "{paths:?}");
}

/// What is not a file can be read once.
#[test]
fn targets_come_from_standard_input() {
    let server = Server::start(&[]);
    let text = format!("GET {}a\n\nGET /b\n", server.plain());
    let words = ["bench", "--json", "--targets", "/dev/stdin", "-n", "10"];
    let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_intact"));
    let program = program.args(words).args(["--keepalive", "on"]);
    let pipe = std::process::Stdio::piped;
    let program = program.stdin(pipe()).stdout(pipe()).stderr(pipe());
    let mut program = program.spawn().unwrap();
    let mut stdin = program.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, text.as_bytes()).unwrap();
    drop(stdin);
    let out = program.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    let document: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(document["run"]["targets"], "/dev/stdin");
    assert_eq!(document["variants"][0]["requests"]["ok"], 10);
}

#[test]
fn mistakes_are_named_with_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    for (text, words) in [
        (
            "GET /a\n\nGET http://127.0.0.1:1/b\n\nGET http://127.0.0.1:2/",
            "x.txt:5: http://127.0.0.1:2 is outside",
        ),
        ("GET /a\n@none\n", "x.txt:2: @none: "),
        (
            "{\"method\":\"GET\",\"url\":\"/\",\"bdy\":\"\"}",
            "x.txt:1: unknown key `bdy`: did you mean `body`?",
        ),
    ] {
        let path = targets(folder.path(), text);
        let (out, _) = bench(&["--targets", &path]);
        assert!(error(&out).contains(words), "{text}: {out:?}");
    }
    let (out, _) = bench(&["--random-path", "/["]);
    assert!(
        error(&out).contains("--random-path \"/[\" is no regular expression"),
        "{out:?}"
    );
    let path = targets(folder.path(), "GET /a");
    for option in [["-X", "PUT"], ["-d", "x"], ["--random-path", "/"]] {
        let (out, _) = bench(&[&["--targets", &path], &option[..]].concat());
        assert!(error(&out).contains("cannot be used with"), "{out:?}");
    }
}

#[test]
fn latencies_have_a_line_for_each_round_or_a_file_for_each_variant() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let length = ["-n", "40", "--rounds", "2"];
    let (out, _) = bench(&[&length[..], &["--hdr", &path("a.hlog")]].concat());
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    let log = std::fs::read_to_string(path("a.hlog")).unwrap();
    for variant in ["on", "off"] {
        let tag = format!("Tag=keepalive={variant},");
        let lines = log.lines().filter(|line| line.starts_with(&tag));
        // the base64 of the cookie of a compressed histogram
        let is_histogram = |line: &&str| line.contains(",HISTFAAA");
        assert_eq!(lines.filter(is_histogram).count(), 2, "{log}");
    }
    let (_, document) = bench(&[&length[..], &["--hdr", &path("b.hgrm")]].concat());
    for (nth, variant) in ["on", "off"].iter().enumerate() {
        let text = std::fs::read_to_string(path(&format!("b.keepalive={variant}.hgrm"))).unwrap();
        let max = document["variants"][nth]["latency_ms"]["max"]
            .as_f64()
            .unwrap();
        let words = format!("#[Max     = {max:12.3}, Total count    =           40]");
        assert!(text.contains(&words), "{words}: {text}");
    }
    let (out, _) = bench(&["--hdr", &path("none/a.hlog")]);
    let words = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(
        !out.status.success() && words.contains("--hdr: cannot write"),
        "{words}"
    );
}
