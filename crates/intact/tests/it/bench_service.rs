//! `intact bench --service`: both sides of services that call another server, and what it refuses.

use crate::peers::{CLOSED, free_port};
use crate::program::{Schema, Server, intact, signal};
use serde_json::Value;
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A service that calls another server for each request, on a connection of its own or on one that
/// it keeps.
const SERVICE: &str = "
import http.client, http.server, sys
port, upstream, kept = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == 'kept'
connection = http.client.HTTPConnection('127.0.0.1', upstream)
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_GET(self):
        call = connection if kept else http.client.HTTPConnection('127.0.0.1', upstream)
        call.request('GET', '/')
        call.getresponse().read()
        if not kept:
            call.close()
        self.send_response(200)
        self.send_header('Content-Length', '0')
        self.end_headers()
    def log_message(self, *_):
        pass
http.server.HTTPServer(('127.0.0.1', port), Handler).serve_forever()
";

#[test]
fn both_sides_of_two_services_are_reported() {
    let upstream = Server::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("service.py");
    std::fs::write(&script, SERVICE).unwrap();
    let port = free_port();
    let service = |kind: &str| {
        let script = script.display();
        format!("python3 {script} {port} {} {kind}", upstream.plain_port())
    };
    let ledger = folder.path().join("ledger");
    let ledger = ledger.to_str().unwrap();
    let out = intact(&[
        "bench",
        &format!("http://127.0.0.1:{port}/"),
        "--ledger",
        ledger,
        "--service",
        &service("each"),
        "--service",
        &service("kept"),
        "-c",
        "1",
        "-z",
        "1s",
        "--rounds",
        "2",
        "--json",
        "--require",
        "throughput-gain > 0%",
    ]);
    let stderr = String::from_utf8_lossy(&out.stderr);
    let document: Value =
        serde_json::from_slice(&out.stdout).unwrap_or_else(|_| panic!("{stderr}"));
    Schema::named("bench").check(&document);
    let services = document["services"].as_array().unwrap();
    let (each, kept) = (&services[0], &services[1]);
    let of = |one: &Value, key: &str| one[key].as_f64().unwrap();
    assert_eq!(of(each, "connections_per_request"), 1.0, "{each}");
    assert_eq!(of(each, "reused"), 0.0);
    // a connection in each round
    assert_eq!(kept["connections"]["opened"], 2, "{kept}");
    // every inbound request, warm-up included, made one outgoing request
    for (service, variant) in services
        .iter()
        .zip(document["variants"].as_array().unwrap())
    {
        let outgoing = service["requests"]["total"].as_u64().unwrap();
        let inbound = variant["requests"]["total"].as_u64().unwrap();
        assert!(inbound > 0 && outgoing > inbound, "{outgoing} of {inbound}");
        assert!(of(service, "throughput_per_s") > 0.0);
    }
    // two rounds give no interval, so no requirement passes
    assert!(kept["throughput_gain"].is_null());
    assert_eq!(out.status.code(), Some(1), "{stderr}");
    // one record has both sides: the same document, and the outgoing side of each round as one of
    // its own
    let stored = |folder: &str| -> Value {
        let out = intact(&["report", folder, "--json"]);
        let stderr = String::from_utf8_lossy(&out.stderr);
        serde_json::from_slice(&out.stdout).unwrap_or_else(|_| panic!("{folder}: {stderr}"))
    };
    let again = stored(ledger);
    for key in ["services", "verdict", "variants", "caveats"] {
        assert_eq!(again[key], document[key], "{key}");
    }
    let sum = |service: &Value| -> u64 {
        let ledgers = service["ledgers"].as_array().unwrap();
        assert_eq!(ledgers.len(), 2);
        let requests = ledgers.iter().map(|name| {
            let round = stored(&format!("{ledger}/{}", name.as_str().unwrap()));
            Schema::named("traffic").check(&round);
            round["requests"]["total"].as_u64().unwrap()
        });
        requests.sum()
    };
    for service in services {
        assert_eq!(service["requests"]["total"], sum(service), "{service}");
    }
    // a round whose record was lost is named, and the others are a lower bound
    std::fs::remove_file(format!("{ledger}/outgoing/service-1-round-2/run.json")).unwrap();
    let less = stored(ledger);
    let outgoing = |one: &Value| one["services"][0]["requests"].clone();
    let (less_than, all) = (outgoing(&less), outgoing(&document));
    assert!(less_than["total"].is_null(), "{less_than}");
    if let Some(least) = less_than["bounds"]["total"]["low"].as_u64() {
        assert!(Some(least) < all["total"].as_u64(), "{less_than}");
    }
    let caveats = less["caveats"].as_array().unwrap();
    let is_named = |one: &Value| one["id"] == "service-not-observed";
    assert!(caveats.iter().any(is_named), "{caveats:?}");
}

#[test]
fn what_cannot_be_started_is_refused_with_the_remedy() {
    let refused = |arguments: &[&str], remedy: &str| {
        let out = intact(arguments);
        let words = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{arguments:?}: {words}");
        assert!(words.contains(remedy), "{arguments:?}: {words}");
    };
    let taken = Server::start(&[]);
    let url = format!("http://127.0.0.1:{}/", taken.plain_port());
    refused(&["bench", &url, "--service", "true"], "name another port");
    let free = format!("http://{CLOSED}/");
    refused(
        &["bench", &free, "--service", "sh -c 'exit 3'"],
        "exit code 3",
    );
    refused(
        &["bench", &free, "--service", "true", "-c", "1,2"],
        "one value of each axis",
    );
    refused(
        &["bench", "http://192.0.2.1/", "--service", "true"],
        "127.0.0.1",
    );
    refused(&["bench", "--service", "true"], "URL");
}

#[test]
fn a_bench_that_is_killed_leaves_no_service_behind() {
    let upstream = Server::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("service.py");
    std::fs::write(&script, SERVICE).unwrap();
    for name in ["-QUIT", "-KILL"] {
        let port = free_port();
        let upstream = upstream.plain_port();
        let service = format!("python3 {} {port} {upstream} kept", script.display());
        let url = format!("http://127.0.0.1:{port}/");
        let mut bench = Command::new(env!("CARGO_BIN_EXE_intact"))
            .args(["bench", &url, "-z", "30s", "--service", &service])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let listens = || TcpStream::connect(("127.0.0.1", port)).is_ok();
        let until = |is_wanted: bool| {
            let mut looks = (0..3_000).map(|_| std::thread::sleep(Duration::from_millis(10)));
            looks.any(|()| listens() == is_wanted)
        };
        assert!(until(true), "the service did not start");
        signal(bench.id(), name);
        bench.wait().unwrap();
        assert!(until(false), "{name}: the service is still there");
    }
}
