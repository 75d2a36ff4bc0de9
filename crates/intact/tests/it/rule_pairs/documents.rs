//! The rules of a bench, a scenario, a capacity, faults and a chain: each fires in one run, and
//! does not in the same one without its cause.

use super::checks::Probed;
use super::field::Load;
use super::traffic::words;
use super::{Field, Kind, in_threads};
use crate::peers::program;
use crate::program::{Server, intact};
use intact_document::requirement::DocumentKind;
use serde_json::Value;

/// A rule of a document, and the run that shows it.
struct Pair {
    document: DocumentKind,
    rule: &'static str,
    run: fn(Kind) -> Value,
}

const fn pair(document: DocumentKind, rule: &'static str, run: fn(Kind) -> Value) -> Pair {
    Pair {
        document,
        rule,
        run,
    }
}

const PAIRS: [Pair; 17] = [
    pair(DocumentKind::Bench, "bytes-after-response", |kind| {
        bench_of_peer(kind, "bytes-after-response", &KEEPING)
    }),
    pair(DocumentKind::Bench, "slower-when-reused", |kind| {
        bench_of_peer(kind, "slow-on-reuse", &["--keepalive", "on,off"])
    }),
    pair(DocumentKind::Bench, "failed-requests", |kind| {
        bench_of_peer(kind, "failed-requests", &KEEPING)
    }),
    pair(DocumentKind::Bench, "not-2xx", |kind| {
        bench(kind, &["--status", "404"], &KEEPING)
    }),
    pair(DocumentKind::Bench, "server-closes-early", |kind| {
        bench(kind, &["--max-requests", "3"], &KEEPING)
    }),
    pair(DocumentKind::Bench, "ports-running-out", ports),
    pair(DocumentKind::Scenario, "failed-requests", |kind| {
        scenario(kind, &["--fault", "close-before-answer=0.5"])
    }),
    pair(DocumentKind::Scenario, "not-2xx", |kind| {
        scenario(kind, &["--status", "404"])
    }),
    pair(DocumentKind::Capacity, "did-not-recover", |kind| {
        bench_of_peer(kind, "did-not-recover", &OVERLOAD)
    }),
    pair(DocumentKind::Fault, "duplicate-request", |kind| {
        fault(kind, "reset-mid-response", "repeats-post")
    }),
    pair(DocumentKind::Fault, "failed-on-dead-connection", |kind| {
        fault(kind, "fin-race", "fails")
    }),
    pair(DocumentKind::Fault, "hang-on-dead-connection", |kind| {
        fault(kind, "black-hole", "hangs")
    }),
    pair(DocumentKind::Fault, "leaked-dead-connection", |kind| {
        fault(kind, "stale", "leaks")
    }),
    pair(DocumentKind::Fault, "truncated-as-complete", |kind| {
        fault(kind, "early-close-after-headers", "takes-part")
    }),
    pair(DocumentKind::Chain, "idle-timeout-race", |kind| {
        chain(kind, "app=5s", "app=90s")
    }),
    pair(DocumentKind::Chain, "idle-timeout-unknown", |kind| {
        chain(kind, "app=unknown", "app=90s")
    }),
    pair(DocumentKind::Chain, "connection-not-kept", |kind| {
        chain(kind, "app=off", "app=90s")
    }),
];

const KEEPING: [&str; 2] = ["--keepalive", "on"];

/// 150 requests of which the server responds to 110 in time.
const OVERLOAD: [&str; 16] = [
    "--rate",
    "60/s",
    "--holds",
    "p50 < 500ms",
    "--overload",
    "1.5x",
    "--for",
    "1s",
    "--recover-within",
    "1s",
    "--step",
    "500ms",
    "-c",
    "64",
    "--keepalive",
    "on",
];

fn json(words: &[&str]) -> Value {
    let out = intact(words);
    serde_json::from_slice(&out.stdout)
        .unwrap_or_else(|error| panic!("{words:?}: {error}: {out:?}"))
}

fn bench_at(url: &str, options: &[&str]) -> Value {
    let count: &[&str] = match options.contains(&"--overload") {
        true => &[],
        false => &["-n", "30", "--rounds", "1"],
    };
    json(&[&["bench", url, "--json"], options, count].concat())
}

/// A bench of a server of `servers.py`, or of one that keeps connections.
fn bench_of_peer(kind: Kind, peer: &str, options: &[&str]) -> Value {
    let peer = if kind == Kind::Fires { peer } else { "keeps" };
    let server = Probed::start(peer);
    bench_at(&server.url(), options)
}

/// Our server with these options, or without.
fn server(kind: Kind, serve: &[&str]) -> Server {
    Server::start(if kind == Kind::Fires { serve } else { &[] })
}

fn bench(kind: Kind, serve: &[&str], options: &[&str]) -> Value {
    bench_at(&server(kind, serve).plain(), options)
}

fn scenario(kind: Kind, serve: &[&str]) -> Value {
    let server = server(kind, serve);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clients.js");
    let definition = format!(
        "definition.setTarget('127.0.0.1:{}');
        definition.session('only', 100, function (session) {{
          session.times(5, function (context) {{ context.get('/', {{ tag: 'a' }}); }});
        }});",
        server.plain_port()
    );
    std::fs::write(&path, definition).unwrap();
    let path = path.to_str().unwrap();
    json(&["bench", "--scenario", path, "-n", "10", "-c", "2", "--json"])
}

/// A client under a fault that it does not bear, or one that asks again.
fn fault(kind: Kind, fault: &str, behaviour: &str) -> Value {
    let server = Server::start(&[]);
    let behaviour = if kind == Kind::Fires {
        behaviour
    } else {
        "careful"
    };
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(at("faulted.py"), include_str!("faulted.py")).unwrap();
    let (json, fault) = (
        format!("--json={}", at("card.json")),
        format!("none,{fault}"),
    );
    let options = [
        "watch",
        "--quiet",
        "--fault",
        &fault,
        "--fault-wait",
        "1s",
        &json,
    ];
    let (script, port) = (at("faulted.py"), server.plain_port());
    let command = ["--", "python3", &script, behaviour, &port];
    let out = intact(&[&options[..], &command].concat());
    let text = std::fs::read(at("card.json")).unwrap_or_else(|error| panic!("{error}: {out:?}"));
    serde_json::from_slice(&text).unwrap()
}

/// New connections with 200 ports, or kept ones.
fn ports(kind: Kind) -> Value {
    let Some(field) = Field::set("rule_pairs::documents, ports") else {
        return Value::Null;
    };
    let keepalive = if kind == Kind::Fires { "off" } else { "on" };
    let options = ["http://127.0.0.1:7071/", "-n", "30", "--rounds", "1"];
    let options = [&options[..], &["--keepalive", keepalive]].concat();
    let peer = [
        "sh".to_owned(),
        field.path("with_server.sh"),
        "keeps".to_owned(),
    ];
    let load = Load {
        ports: 200,
        openings: 0,
    };
    field.document(
        load,
        &[&peer[..], &words(&field, "bench", &options, &[])].concat(),
    )
}

/// A path whose last hop is one or the other.
fn chain(kind: Kind, fires: &str, does_not: &str) -> Value {
    let last = if kind == Kind::Fires { fires } else { does_not };
    json(&[
        "check",
        "--json",
        "--chain",
        "client=4s",
        "alb",
        "nginx=75s",
        last,
    ])
}

#[test]
fn each_rule_fires_in_one_run_and_not_in_another() {
    if program("python3", "rule_pairs::documents").is_none() {
        return;
    }
    let each = PAIRS
        .iter()
        .flat_map(|pair| [Kind::Fires, Kind::DoesNot].map(|kind| (pair, kind)));
    let each: Vec<_> = each.collect();
    let documents = in_threads(&each, |(pair, kind)| (pair.run)(*kind));
    let mut faults = Vec::new();
    for ((pair, kind), document) in each.iter().zip(documents) {
        if document.is_null() {
            continue;
        }
        if super::is_found(&document, pair.rule, None) != (*kind == Kind::Fires) {
            let findings = &document["findings"];
            faults.push(format!("{} {kind:?}: {findings:#}", pair.rule));
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn a_rule_that_a_document_claims_has_a_pair() {
    let has_pair = |document: DocumentKind, rule: &str| {
        let mut own = PAIRS.iter().filter(|pair| pair.document == document);
        own.any(|pair| pair.rule == rule)
    };
    use DocumentKind::{Bench, Capacity, Chain, Fault, Scenario};
    for document in [Bench, Scenario, Capacity, Fault, Chain] {
        let claimed = match document {
            // the others are of the outgoing side of a service
            Bench => intact_experiments::bench::RULES.to_vec(),
            document => intact_findings::rules_of(document),
        };
        for rule in claimed {
            assert!(has_pair(document, rule), "{document:?}: {rule}");
        }
    }
}
