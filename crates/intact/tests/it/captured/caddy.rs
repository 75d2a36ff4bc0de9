//! Caddy, HTTP/1.1 and 2, in the clear and with TLS 1.2 and 1.3: the packets, `watch` of the same
//! run, Caddy's own log and tshark agree.

use super::{Capture, counts, read_log};
use crate::peers::{Peer, certificate, free_port, program, wait_for};
use crate::program::intact;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

/// What the script below asks for.
const REQUESTS: u64 = 2 + 2 + 2 + 12 + 12 + 3 + 2;
/// The connections that it opens.
const CONNECTIONS: u64 = 1 + 1 + 1 + 2 + 2 + 1 + 2;

#[test]
fn packets_the_watched_programs_caddys_log_and_tshark_agree() {
    let test = "captured::caddy::packets_the_watched_programs_caddys_log_and_tshark_agree";
    let tools = ["caddy", "openssl", "curl", "python3", "h2load", "tshark"];
    let tools = tools.map(|name| program(name, test));
    let [
        Some(caddy),
        Some(_),
        Some(curl),
        Some(python),
        Some(h2load),
        Some(tshark),
    ] = tools
    else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().display();
    let path = |name: &str| folder.path().join(name);
    let (plain, tls) = (free_port(), free_port());
    certificate(folder.path());
    let configuration = format!(
        "{{\n admin off\n auto_https off\n}}
         (answer) {{\n log {{\n output file {at}/access.log\n format json\n }}\n respond hello\n}}
         http://127.0.0.1:{plain} {{\n import answer\n}}
         https://localhost:{tls} {{\n bind 127.0.0.1\n tls {at}/cert.pem {at}/key.pem\n import answer\n}}\n"
    );
    std::fs::write(path("Caddyfile"), configuration).unwrap();
    let child = Command::new(caddy)
        .args(["run", "--adapter", "caddyfile", "--config"])
        .arg(path("Caddyfile"))
        .env("HOME", folder.path())
        .stderr(Stdio::null())
        .spawn();
    let _peer = Peer(child.unwrap());
    wait_for(plain);
    wait_for(tls);
    let ports = [plain.to_string(), tls.to_string()];
    let Some(mut capture) = Capture::start(test, folder.path(), &[&ports[0], &ports[1]]) else {
        return;
    };
    let script = format!(
        "set -e
         {curl} -s http://127.0.0.1:{plain}/1 http://127.0.0.1:{plain}/2
         {curl} -s --cacert {at}/cert.pem --http1.1 --tls-max 1.2 https://localhost:{tls}/3 https://localhost:{tls}/4
         {curl} -s --cacert {at}/cert.pem --http2 --tlsv1.3 https://localhost:{tls}/5 https://localhost:{tls}/6
         {h2load} -n 12 -c 2 --h1 http://127.0.0.1:{plain}/7
         {h2load} -n 12 -c 2 -m 1 https://localhost:{tls}/8
         {python} -c '
import http.client, ssl
context = ssl.create_default_context(cafile=\"{at}/cert.pem\")
one = http.client.HTTPSConnection(\"localhost\", {tls}, context=context)
for path in \"abc\":
    one.request(\"GET\", \"/\" + path); one.getresponse().read()
one.close()
for path in \"de\":
    two = http.client.HTTPConnection(\"127.0.0.1\", {plain})
    two.request(\"GET\", \"/\" + path); two.getresponse().read()
    two.close()
'",
        curl = curl.display(),
        h2load = h2load.display(),
        python = python.display(),
    );
    let ran = Command::new(env!("CARGO_BIN_EXE_intact"))
        .args(["watch", "--quiet", &format!("--json={at}/watch.json")])
        .args(["--", "sh", "-c", &script])
        .env("SSLKEYLOGFILE", path("keys.txt"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(ran.status.success(), "{ran:?}");
    let packets = capture.end(REQUESTS, &path("keys.txt"));
    let watched = std::fs::read(path("watch.json")).unwrap();
    let watched: Value = serde_json::from_slice(&watched).unwrap();
    let log = read_log(&path("access.log"));
    let expected = [REQUESTS, CONNECTIONS, REQUESTS - CONNECTIONS];
    assert_eq!(counts(&packets), expected, "{packets:#}");
    assert_eq!(counts(&watched), expected, "{watched:#}");
    // whether the first request of a connection reused it is not in the log
    assert_eq!(log["requests"]["total"], REQUESTS, "{log:#}");
    assert_eq!(log["connections"]["opened"], CONNECTIONS, "{log:#}");
    let reused = &log["bounds"]["reused"];
    assert_eq!(reused["low"], REQUESTS - CONNECTIONS, "{log:#}");
    assert_eq!(reused["high"], REQUESTS, "{log:#}");
    let by_client = serde_json::json!({ "client": CONNECTIONS });
    assert_eq!(packets["connections"]["ended_by"], by_client, "{packets:#}");
    assert_eq!(watched["connections"]["ended_by"], by_client, "{watched:#}");
    assert_eq!(packets["requests"]["status"], log["requests"]["status"]);

    let ours = on_each_connection(&capture.file, &path("keys.txt"), &path("rows.csv"));
    // else it takes the protocol of some client ports for another
    let protocols = [format!("{plain},http"), format!("{tls},tls")];
    let theirs = on_each_stream(&tshark, &capture.file, &path("keys.txt"), &protocols);
    assert_eq!(ours, theirs);
    assert_eq!(ours.iter().sum::<u64>(), REQUESTS);
}

/// Requests on each connection as audit counts them, sorted.
fn on_each_connection(capture: &Path, keys: &Path, rows: &Path) -> Vec<u64> {
    let [capture, keys, rows] = [capture, keys, rows].map(|path| path.to_str().unwrap());
    let run = intact(&["audit", capture, "--keylog", keys, "--csv", rows]);
    assert!(run.status.success(), "{run:?}");
    let text = std::fs::read_to_string(rows).unwrap();
    let mut lines = text.lines().map(|line| line.split(','));
    let column = lines.next().unwrap().position(|name| name == "connection");
    count(lines.map(|mut cells| cells.nth(column.unwrap()).unwrap()))
}

/// Requests on each stream as tshark counts them, sorted.
fn on_each_stream(tshark: &Path, capture: &Path, keys: &Path, protocols: &[String]) -> Vec<u64> {
    let is_of = |one: &String| ["-d".to_owned(), format!("tcp.port=={one}")];
    let run = Command::new(tshark)
        .arg("-r")
        .arg(capture)
        .args(protocols.iter().flat_map(is_of))
        .args(["-o", &format!("tls.keylog_file:{}", keys.display())])
        // two processors may record the packets of a stream in another order than they sent them
        .args(["-o", "tcp.reassemble_out_of_order:TRUE"])
        .args(["-Y", "http.request or http2.headers.method"])
        .args(["-T", "fields", "-e", "tcp.stream"])
        .args(["-e", "http.request.method", "-e", "http2.headers.method"])
        .output()
        .unwrap();
    let text = String::from_utf8(run.stdout).unwrap();
    // several requests in one packet are listed with commas between
    count(text.lines().flat_map(|line| {
        let mut cells = line.split('\t');
        let stream = cells.next().unwrap();
        let methods = cells.flat_map(|cell| cell.split(','));
        methods
            .filter(|method| !method.is_empty())
            .map(move |_| stream)
    }))
}

fn count<'a>(each: impl Iterator<Item = &'a str>) -> Vec<u64> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for one in each {
        *counts.entry(one).or_default() += 1;
    }
    let mut counts: Vec<u64> = counts.into_values().collect();
    counts.sort_unstable();
    counts
}
