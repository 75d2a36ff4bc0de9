//! The producers of documents about traffic: each runs the same programs.

use super::field::Load;
use super::{Field, Kind, Naming, Producer, ROWS, SOUND, is_found};
use crate::program::{Server, intact};
use serde_json::Value;

/// Connections that take more than half of the ports within a minute.
const LOAD: Load = Load {
    ports: 560,
    openings: 300,
};

pub(super) const SLOW: (&str, &str) = (
    "pinned-to-old-address",
    "it waits for 30 s: watch/pinned.rs has its pair, also of compare, lambda and a service",
);

const QUEUE: &str = "waiting-for-pool";

const INTACT: &str = env!("CARGO_BIN_EXE_intact");

/// The words of a run of `intact` that writes its document to the file.
pub(super) fn words(field: &Field, command: &str, options: &[&str], gates: &[&str]) -> Vec<String> {
    let json = format!("--json={}", field.path("out.json"));
    let first = [INTACT, command, &json];
    let all = first.iter().chain(options).chain(gates);
    all.map(|&word| word.to_owned()).collect()
}

fn watch(field: &Field, kind: Kind, rules: &[&str], gates: &[&str]) -> Value {
    let words = words(field, "watch", &["--quiet"], &[gates, &["--"]].concat());
    field.document(LOAD, &[words, field.rows(kind, rules)].concat())
}

#[test]
fn rules_of_watch() {
    Producer {
        test: "rule_pairs::traffic::rules_of_watch",
        rows: &ROWS,
        sound: &SOUND,
        naming: Naming::Each,
        left_out: &[SLOW],
        document: watch,
    }
    .check();
}

fn compare(field: &Field, kind: Kind, rules: &[&str], gates: &[&str]) -> Value {
    let options = ["--rounds", "1", "--warm-up", "0"];
    let words = words(field, "compare", &options, &[gates, &["--"]].concat());
    let sound = field.rows(Kind::DoesNot, &SOUND);
    let both = [sound, vec!["--".to_owned()], field.rows(kind, rules)].concat();
    field.document(LOAD, &[words, both].concat())
}

#[test]
fn rules_of_compare() {
    Producer {
        test: "rule_pairs::traffic::rules_of_compare",
        rows: &ROWS,
        sound: &SOUND,
        naming: Naming::Each,
        left_out: &[SLOW],
        document: compare,
    }
    .check();
}

fn lambda(field: &Field, kind: Kind, rules: &[&str], gates: &[&str]) -> Value {
    let options = ["-n", "1", "--timeout", "300s"];
    let function = field.path("function.py");
    let rest = ["--", "python3", &function];
    let words = words(field, "lambda", &options, &[gates, &rest].concat());
    field.document(LOAD, &[words, field.rows(kind, rules)].concat())
}

#[test]
fn rules_of_lambda() {
    Producer {
        test: "rule_pairs::traffic::rules_of_lambda",
        rows: &ROWS,
        sound: &SOUND,
        naming: Naming::Each,
        left_out: &[SLOW],
        document: lambda,
    }
    .check();
}

fn service(field: &Field, kind: Kind, rules: &[&str], gates: &[&str]) -> Value {
    service_at(field, kind, rules, gates, "1")
}

fn service_at(
    field: &Field,
    kind: Kind,
    rules: &[&str],
    gates: &[&str],
    concurrency: &str,
) -> Value {
    let service = format!("python3 {} ", field.path("service.py"));
    let service = service + &field.rows(kind, rules).join(" ");
    let options = ["http://127.0.0.1:7070/", "-c", concurrency, "-z", "1s"];
    let options = [&options[..], &["--rounds", "1", "--service", &service]].concat();
    field.document(LOAD, &words(field, "bench", &options, gates))
}

/// A queue is one of the service only where the bench has more requests in flight than the service
/// has connections.
#[test]
fn a_queue_in_a_service() {
    let Some(field) = Field::set("rule_pairs::traffic::a_queue_in_a_service") else {
        return;
    };
    for kind in [Kind::Fires, Kind::DoesNot] {
        let document = service_at(&field, kind, &[QUEUE], &[], "6");
        let is_found = is_found(&document, QUEUE, None);
        assert_eq!(is_found, kind == Kind::Fires, "{document:#}");
    }
}

#[test]
fn rules_of_the_outgoing_side_of_a_service() {
    Producer {
        test: "rule_pairs::traffic::rules_of_the_outgoing_side_of_a_service",
        rows: &ROWS,
        sound: &SOUND,
        naming: Naming::OncePerRule,
        left_out: &[SLOW, (QUEUE, "a_queue_in_a_service is its pair")],
        document: service,
    }
    .check();
}

/// A function that keeps a connection over a freeze, which its server ends meanwhile or keeps.
#[test]
fn a_connection_that_dies_in_a_freeze() {
    let Some(field) = Field::set("rule_pairs::traffic::a_connection_that_dies_in_a_freeze") else {
        return;
    };
    for (limit, kind) in [("100ms", Kind::Fires), ("1h", Kind::DoesNot)] {
        let server = Server::start(&["--idle-timeout", limit]);
        let options = ["-n", "3", "--idle", "400ms", "--", "python3"];
        let script = [field.path("frozen.py"), server.plain_port()];
        let words = [words(&field, "lambda", &options, &[]), script.to_vec()].concat();
        let words: Vec<&str> = words[1..].iter().map(String::as_str).collect();
        let out = intact(&words);
        let text = std::fs::read(field.path("out.json")).unwrap_or_else(|_| panic!("{out:?}"));
        let document = serde_json::from_slice(&text).unwrap();
        let is_found = is_found(&document, "died-in-freeze", None);
        assert_eq!(is_found, kind == Kind::Fires, "{document:#}");
    }
}
