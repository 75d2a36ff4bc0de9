//! The two-ledger test with real clients: what `watch` counts equals what the server counts.

use super::watch;
use crate::peers::program;
use crate::program::{Server, counted, exchanges};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// What both sides counted: requests, connections.
fn counts(facts: &Value, tally: &Value) -> [(u64, u64); 2] {
    let ours = (
        counted(&facts["requests"], "total"),
        counted(&facts["connections"], "opened"),
    );
    let cell = &tally["cells"][0];
    let theirs = (exchanges(cell), counted(&cell["connections"], "opened"));
    [ours, theirs]
}

/// Runs a client against a server of its own under `watch`; `{url}` and `{ca}` in its words are
/// filled in.
fn hold_ledgers_together(name: &str, scheme: &str, words: &[&str], expected: (u64, u64)) -> Value {
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    server.write_ca(&ca);
    let url = match scheme {
        "http" => server.plain(),
        _ => format!("https://localhost:{}/", server.tls_port()),
    };
    let fill = |word: &&str| {
        word.replace("{url}", &url)
            .replace("{ca}", ca.to_str().unwrap())
    };
    let words: Vec<String> = words.iter().map(fill).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (out, facts) = watch(&[], &words);
    assert!(out.status.success(), "{name} {scheme}: {out:?}");
    assert!(
        out.stderr.is_empty(),
        "{name} {scheme}: {}",
        String::from_utf8_lossy(&out.stderr)
    );
    let [ours, theirs] = counts(&facts, &server.end());
    assert_eq!(ours, theirs, "{name} {scheme}: ours, the server's: {facts}");
    assert_eq!(ours, expected, "{name} {scheme}");
    let inferred = facts["totals"]["inferred"].as_array().unwrap();
    assert!(inferred.is_empty(), "{name} {scheme}: {inferred:?}");
    facts
}

#[test]
fn curl_and_wget_reuse_their_connection() {
    if program("curl", "watch curl").is_some() {
        let words = [
            "curl",
            "-sS",
            "--cacert",
            "{ca}",
            "-o",
            "/dev/null",
            "-o",
            "/dev/null",
            "{url}",
            "{url}",
        ];
        for scheme in ["http", "https"] {
            hold_ledgers_together("curl", scheme, &words, (2, 1));
        }
    }
    if program("wget", "watch wget").is_some() {
        let words = [
            "wget",
            "-q",
            "--ca-certificate",
            "{ca}",
            "-O",
            "/dev/null",
            "{url}",
            "{url}",
        ];
        for scheme in ["http", "https"] {
            hold_ledgers_together("wget", scheme, &words, (2, 1));
        }
    }
}

#[test]
fn programs_that_log_no_keys_are_read_with_those_in_their_memory() {
    // rustls, which erases the secrets of connections that are over: there must be time to look
    for version in ["1", "2"] {
        let words = [
            "sh",
            "-c",
            "exec \"$@\" 2>/dev/null",
            "sh",
            env!("CARGO_BIN_EXE_intact"),
            "bench",
            "{url}delay/100",
            "--insecure",
            "--http",
            version,
            "-c",
            "2",
            "-n",
            "8",
            "--rounds",
            "1",
            "--keepalive",
            "on",
        ];
        hold_ledgers_together("rustls", "https", &words, (11, 3));
    }
    // OpenSSL, in a Python without a key log
    if program("python3", "watch a Python without a key log").is_none() {
        return;
    }
    for version in ["TLSv1_2", "TLSv1_3"] {
        let script = format!(
            "import http.client, ssl, sys, urllib.parse
place = urllib.parse.urlsplit(sys.argv[1])
context = ssl.create_default_context(cafile=sys.argv[2])
context.maximum_version = ssl.TLSVersion.{version}
connection = http.client.HTTPSConnection(place.hostname, place.port, context=context)
for number in range(5):
    connection.request('POST', '/delay/100', body=iter([b'in', b'two', b'parts']), encode_chunked=True,
        headers={{'Transfer-Encoding': 'chunked'}})
    connection.getresponse().read()
"
        );
        let words = [
            "env",
            "-u",
            "SSLKEYLOGFILE",
            "python3",
            "-c",
            &script,
            "{url}",
            "{ca}",
        ];
        hold_ledgers_together("Python without a key log", "https", &words, (5, 1));
    }
}

/// A proxy that grants every CONNECT, and prints its port.
const PROXY: &str = "
import socket, threading
def copy(source, sink):
    while data := source.recv(65536): sink.sendall(data)
    sink.shutdown(socket.SHUT_WR)
def carry(near):
    head = b''
    while b'\\r\\n\\r\\n' not in head: head += near.recv(65536)
    host, port = head.split()[1].decode().rsplit(':', 1)
    far = socket.create_connection((host, int(port)))
    near.sendall(b'HTTP/1.1 200 Connection established\\r\\n\\r\\n')
    threading.Thread(target=copy, args=(near, far), daemon=True).start()
    copy(far, near)
server = socket.create_server(('127.0.0.1', 0))
print(server.getsockname()[1], flush=True)
while True: threading.Thread(target=carry, args=server.accept()[:1], daemon=True).start()
";

struct Proxy {
    child: Child,
    port: String,
}

impl Proxy {
    fn start() -> Proxy {
        let mut child = Command::new("python3")
            .args(["-c", PROXY])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut port = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut port).unwrap();
        let port = port.trim().to_owned();
        Proxy { child, port }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn what_passes_through_the_tunnel_of_a_proxy_is_seen() {
    if program("curl", "watch curl through a proxy").is_none()
        || program("python3", "watch curl through a proxy").is_none()
    {
        return;
    }
    let proxy = Proxy::start();
    let proxy_url = format!("http://127.0.0.1:{}", proxy.port);
    for scheme in ["http", "https"] {
        let mut words = vec![
            "curl",
            "-sS",
            "--http1.1",
            "--proxytunnel",
            "--cacert",
            "{ca}",
        ];
        words.extend(["--proxy", &proxy_url, "--noproxy", ""]);
        words.extend(["-o", "/dev/null", "{url}", "-o", "/dev/null", "{url}"]);
        let facts = hold_ledgers_together("curl through a proxy", scheme, &words, (2, 1));
        let destinations = facts["destinations"].as_array().unwrap();
        assert_eq!(destinations.len(), 1, "{facts}");
        let host = destinations[0]["host"].as_str().unwrap();
        assert!(!host.ends_with(&proxy.port), "{host}");
    }
}

#[test]
fn curl_multiplexes_on_one_connection() {
    if program("curl", "watch curl over HTTP/2").is_none() {
        return;
    }
    let mut words = vec![
        "curl",
        "-sS",
        "--no-progress-meter",
        "--http2",
        "-Z",
        "--cacert",
        "{ca}",
    ];
    for _ in 0..10 {
        words.extend(["-o", "/dev/null", "{url}delay/20"]);
    }
    let facts = hold_ledgers_together("curl", "https", &words, (10, 1));
    assert_eq!(facts["destinations"][0]["protocols"]["2"], 1, "{facts}");
}

#[test]
fn a_shell_loop_opens_a_connection_each_time() {
    if program("curl", "watch a shell loop").is_none() {
        return;
    }
    let script = "for i in 1 2 3 4 5; do curl -s -o /dev/null {url}; done";
    let facts = hold_ledgers_together("sh", "http", &["sh", "-c", script], (5, 5));
    assert_eq!(facts["totals"]["requests"]["total"], 5);
    assert_eq!(facts["connections"]["needed"], 1, "{facts}");
}

const NODE: &str = "
const [url, ca, keep] = process.argv.slice(1);
const lib = require(url.startsWith('https') ? 'https' : 'http');
const agent = new lib.Agent({ keepAlive: keep === 'keep', ca: require('fs').readFileSync(ca) });
const get = () => new Promise((done, fail) =>
  lib.get(url, { agent }, (answer) => answer.resume().on('end', done)).on('error', fail));
(async () => { for (let i = 0; i < 10; i++) await get(); agent.destroy(); })();
";

#[test]
fn node_reuses_with_an_agent_that_keeps_alive_only() {
    if program("node", "watch Node").is_none() {
        return;
    }
    for scheme in ["http", "https"] {
        for (keep, connections) in [("keep", 1), ("drop", 10)] {
            let words = ["node", "-e", NODE, "{url}", "{ca}", keep];
            hold_ledgers_together("node", scheme, &words, (10, connections));
        }
    }
}

const PYTHON: &str = "
import http.client, ssl, sys, urllib.parse
url, ca = urllib.parse.urlsplit(sys.argv[1]), sys.argv[2]
if url.scheme == 'https':
    c = http.client.HTTPSConnection(url.hostname, url.port, context=ssl.create_default_context(cafile=ca))
else:
    c = http.client.HTTPConnection(url.hostname, url.port)
for _ in range(10):
    c.request('POST', '/', b'x' * 60000)
    c.getresponse().read()
";

#[test]
fn python_posts_on_one_connection() {
    if program("python3", "watch Python").is_none() {
        return;
    }
    for scheme in ["http", "https"] {
        let words = ["python3", "-c", PYTHON, "{url}", "{ca}"];
        hold_ledgers_together("python", scheme, &words, (10, 1));
    }
}

#[test]
fn a_connection_that_is_still_open_at_the_end_is_counted() {
    if program("python3", "watch an open connection").is_none() {
        return;
    }
    let script = "
import socket, sys, os, urllib.parse
url = urllib.parse.urlsplit(sys.argv[1])
held = [socket.create_connection((url.hostname, url.port)) for _ in range(30)]
for s in held[:3]:
    s.sendall(b'GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'); s.recv(1000)
os._exit(0)
";
    let words = ["python3", "-c", script, "{url}"];
    hold_ledgers_together("python", "http", &words, (3, 30));
}

#[test]
fn a_request_onto_a_connection_that_the_server_has_closed_is_stale() {
    if program("python3", "watch stale reuse").is_none() {
        return;
    }
    let server = Server::start(&["--idle-timeout", "100ms"]);
    let script = "
import socket, sys, select, urllib.parse
url = urllib.parse.urlsplit(sys.argv[1])
s = socket.create_connection((url.hostname, url.port))
ask = b'GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'
s.sendall(ask); s.recv(1000)
select.select([s], [], [], 10)
s.sendall(ask)
try: print(s.recv(1000))
except ConnectionError: print(b'')
";
    let (out, facts) = watch(&[], &["python3", "-c", script, &server.plain()]);
    assert_eq!(out.stdout, b"b''\n");
    assert_eq!(facts["requests"]["total"], 2, "{facts}");
    assert_eq!(facts["requests"]["failed"]["stale"], 1, "{facts}");
}

#[test]
fn a_request_that_the_server_read_before_it_closed_is_not_stale() {
    if program("python3", "watch of an executed request").is_none() {
        return;
    }
    let server = Server::start(&[]);
    let script = "
import socket, sys, urllib.parse
url = urllib.parse.urlsplit(sys.argv[1])
for _ in range(5):
    s = socket.create_connection((url.hostname, url.port))
    s.sendall(b'GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'); s.recv(1000)
    s.sendall(b'POST /fault/close-before-answer HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 0\\r\\n\\r\\n')
    assert s.recv(1000) == b''
";
    let (out, facts) = watch(&[], &["python3", "-c", script, &server.plain()]);
    assert!(out.status.success(), "{out:?}");
    assert_eq!(facts["requests"]["total"], 10, "{facts}");
    assert_eq!(facts["requests"]["failed"]["closed"], 5, "{facts}");
    let findings = facts["findings"].as_array().unwrap();
    let has = |rule: &str| findings.iter().any(|one| one["rule"] == rule);
    assert!(
        has("closed-before-response") && !has("stale-reuse"),
        "{facts}"
    );
}

#[test]
fn a_connection_that_was_opened_ahead_and_used_once_is_not_reused() {
    if program("python3", "watch preconnected requests").is_none() {
        return;
    }
    let server = Server::start(&[]);
    let script = "
import socket, sys, time, urllib.parse
url = urllib.parse.urlsplit(sys.argv[1])
for _ in range(5):
    s = socket.create_connection((url.hostname, url.port))
    time.sleep(.3)
    s.sendall(b'GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'); s.recv(1000)
    s.close()
";
    let gate = ["--require", "reuse > 0%"];
    let (out, facts) = watch(&gate, &["python3", "-c", script, &server.plain()]);
    assert_eq!(facts["requests"]["total"], 5, "{facts}");
    assert_eq!(facts["reused"], 0, "{facts}");
    assert_eq!(facts["reuse"], 0.0, "{facts}");
    assert_eq!(out.status.code(), Some(1), "{out:?}");
}

#[test]
fn an_emulated_round_trip_is_paid_by_syn_tls_and_data() {
    if program("curl", "watch --rtt").is_none() {
        return;
    }
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    server.write_ca(&ca);
    let url = format!("https://localhost:{}/", server.tls_port());
    let words = [
        "curl",
        "-sS",
        "--cacert",
        ca.to_str().unwrap(),
        "-o",
        "/dev/null",
        &url,
    ];
    let (out, facts) = watch(&["--rtt", "40ms"], &words);
    assert!(out.status.success(), "{out:?}");
    let cold = &facts["totals"]["phases_ms"]["fresh"];
    for phase in ["connect", "ssl", "wait"] {
        let mean = cold[phase]["mean"].as_f64().unwrap();
        assert!(mean >= 40.0, "{phase}: {cold}");
    }
}

#[test]
fn from_outside_connections_are_counted_and_requests_are_not() {
    if program("curl", "watch --mode passthrough").is_none() {
        return;
    }
    let server = Server::start(&[]);
    let script = format!(
        "for i in 1 2 3; do curl -s -o /dev/null {0} -o /dev/null {0}; done; curl -s http://127.0.0.1:1/; true",
        server.plain()
    );
    let (out, facts) = watch(&["--mode", "passthrough"], &["sh", "-c", &script]);
    assert!(out.status.success(), "{out:?}");
    assert_eq!(facts["connections"]["opened"], 3, "{facts}");
    assert_eq!(facts["connections"]["failed"]["refused"], 1, "{facts}");
    let requests = &facts["requests"];
    assert!(requests["total"].is_null(), "{facts}");
    assert!(requests["bounds"]["total"]["high"].is_null(), "{facts}");
    let why = requests["bounds"]["total"]["why"].as_str();
    assert_eq!(why, Some("the connections do not show what they carry"));
    let inferred = facts["totals"]["inferred"].to_string();
    assert!(inferred.contains("from outside"), "{facts}");
    assert_eq!(server.end()["cells"][0]["connections"]["opened"], 3);
}

#[test]
fn from_outside_connections_in_turn_are_never_open_at_once() {
    if program("python3", "watch --mode passthrough in turn").is_none() {
        return;
    }
    let server = Server::start(&[]);
    let script = "
import socket, sys, urllib.parse
url = urllib.parse.urlsplit(sys.argv[1])
for _ in range(200):
    with socket.create_connection((url.hostname, url.port)) as s:
        s.sendall(b'GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n')
        s.recv(1000)
";
    let words = ["python3", "-c", script, &server.plain()];
    let (out, facts) = watch(&["--mode", "passthrough"], &words);
    assert!(out.status.success(), "{out:?}");
    // the kernel reports an end when it has time; the next socket in its place shows that it was
    // earlier
    assert_eq!(facts["connections"]["opened"], 200, "{facts}");
    assert_eq!(facts["connections"]["needed"], 1, "{facts}");
    let why = facts["findings"][0].to_string();
    assert!(!why.contains("broken"), "{why}");
}

#[test]
fn keep_alive_probes_are_noted_before_and_after_the_connect() {
    if program("python3", "watch keep-alive probes").is_none() {
        return;
    }
    let server = Server::start(&[]);
    let script = "
import socket, sys, urllib.parse
url = urllib.parse.urlsplit(sys.argv[1])
def probe(s, seconds):
    s.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, seconds)
for before, after in (30, None), (None, 77), (None, None):
    s = socket.socket()
    before and probe(s, before)
    s.connect((url.hostname, url.port))
    after and probe(s, after)
    s.sendall(b'GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'); s.recv(1000); s.close()
";
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("ledger");
    let options = ["--ledger", ledger.to_str().unwrap()];
    let (out, _) = watch(&options, &["python3", "-c", script, &server.plain()]);
    assert!(out.status.success(), "{out:?}");
    let reader = intact_ledger::store::Reader::open(&ledger).unwrap();
    let probes: Vec<Option<u32>> = reader
        .events()
        .unwrap()
        .filter_map(|row| match row {
            intact_ledger::Row::Closed(closed) => Some(closed.close.probes.tcp_keepalive_s),
            _ => None,
        })
        .collect();
    assert_eq!(probes, [Some(30), Some(77), None]);
}

#[test]
fn the_connection_to_the_destination_has_the_probes_of_the_program() {
    if program("python3", "watch keep-alive probes").is_none() {
        return;
    }
    let server = Server::start(&[]);
    // the timer 02 in /proc/net/tcp is that of the probes
    // (Documentation/networking/proc_net_tcp.rst)
    let script = "
import socket, sys, time
port = int(sys.argv[1])
def armed():
    rows = [row.split() for row in open('/proc/net/tcp').readlines()[1:]]
    return [row[5][:2] for row in rows if row[2].endswith(':%04X' % port) and row[3] == '01']
for probes in 0, 1:
    s = socket.create_connection(('127.0.0.1', port))
    s.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, probes)
    s.sendall(b'GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'); s.recv(1000)
    end = time.monotonic() + 3
    while armed() != ['02'] and time.monotonic() < end: time.sleep(0.05)
    print(armed())
    s.close(); time.sleep(0.3)
";
    let port = server.plain_port();
    let (out, _) = watch(&[], &["python3", "-c", script, &port]);
    let printed = String::from_utf8_lossy(&out.stdout);
    assert_eq!(printed, "['00']\n['02']\n", "{out:?}");
}

#[test]
fn the_limit_on_unacknowledged_bytes_is_noted() {
    if program("python3", "watch TCP_USER_TIMEOUT").is_none() {
        return;
    }
    let server = Server::start(&[]);
    let script = "
import socket, sys, urllib.parse
url = urllib.parse.urlsplit(sys.argv[1])
for limit in 2500, None:
    s = socket.create_connection((url.hostname, url.port))
    limit and s.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, limit)
    s.sendall(b'GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'); s.recv(1000); s.close()
";
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("ledger");
    let options = ["--ledger", ledger.to_str().unwrap()];
    let (out, _) = watch(&options, &["python3", "-c", script, &server.plain()]);
    assert!(out.status.success(), "{out:?}");
    let reader = intact_ledger::store::Reader::open(&ledger).unwrap();
    let limits = reader.events().unwrap().filter_map(|row| match row {
        intact_ledger::Row::Closed(closed) => Some(closed.close.probes.user_timeout_ms),
        _ => None,
    });
    assert_eq!(limits.collect::<Vec<_>>(), [Some(2500), None]);
}

/// A ledger that can be read again.
fn is_ledger(folder: &Path) -> bool {
    folder.join("run.json").is_file() && folder.join("events.jsonl.zst").is_file()
}

#[test]
fn the_stored_ledger_gives_the_same_report() {
    if program("curl", "watch --ledger").is_none() {
        return;
    }
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("ledger");
    let (_, live) = watch(
        &["--ledger", ledger.to_str().unwrap()],
        &["curl", "-s", "-o", "/dev/null", &server.plain()],
    );
    assert!(is_ledger(&ledger));
    let stored = crate::program::intact(&["report", "--json", ledger.to_str().unwrap()]);
    let stored: Value = serde_json::from_slice(&stored.stdout).unwrap();
    assert_eq!(live["totals"], stored["totals"]);
    assert_eq!(live["destinations"], stored["destinations"]);
}

/// Six goroutines with eight requests each, which share one connection; every body is read to its
/// end. With `in-turn` as the last argument, one goroutine over TLS 1.2.
const GO_SIDE_BY_SIDE: &str = "package main
import (\"crypto/tls\"; \"crypto/x509\"; \"io\"; \"net/http\"; \"os\"; \"strconv\"; \"sync\")
func main() {
	pem, _ := os.ReadFile(os.Args[2])
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	config := &tls.Config{RootCAs: roots}
	workers := 6
	if os.Args[len(os.Args)-1] == \"in-turn\" {
		config.MaxVersion = tls.VersionTLS12
		workers = 1
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}}
	body, _ := strconv.Atoi(os.Args[3])
	var all sync.WaitGroup
	for range workers {
		all.Add(1)
		go func() {
			defer all.Done()
			for range 8 {
				response, err := client.Get(os.Args[1])
				if err != nil { panic(err) }
				read, err := io.Copy(io.Discard, response.Body)
				if err != nil || read != int64(body) { panic(err) }
				response.Body.Close()
			}
		}()
	}
	all.Wait()
}";

/// Builds [`GO_SIDE_BY_SIDE`] in a folder, where Go is installed.
fn go_side_by_side(folder: &Path, test: &str) -> Option<String> {
    let go = program("go", test)?;
    let [source, client] = ["main.go", "client"].map(|name| folder.join(name));
    std::fs::write(&source, GO_SIDE_BY_SIDE).unwrap();
    let built = Command::new(go)
        .args(["build", "-o"])
        .args([&client, &source])
        .env("CGO_ENABLED", "0")
        .status();
    assert!(built.unwrap().success());
    Some(client.to_str().unwrap().to_owned())
}

#[test]
fn a_fast_download_waits_for_its_keys_or_is_said_to_be_a_lower_bound() {
    let folder = tempfile::tempdir().unwrap();
    let Some(client) = go_side_by_side(folder.path(), "watch a fast download of Go") else {
        return;
    };
    let ca = folder.path().join("ca.pem");
    // three times what may wait for keys
    let server = Server::start(&["--body", "1000000"]);
    server.write_ca(&ca);
    let url = format!("https://localhost:{}/", server.tls_port());
    let command = [&client, &url, ca.to_str().unwrap(), "1000000"];
    let (out, facts) = watch(&[], &command);
    assert!(out.status.success(), "{out:?}");
    let [ours, theirs] = counts(&facts, &server.end());
    assert_eq!(theirs.0, 48);
    let is_lower_bound = facts["caveats"]
        .to_string()
        .contains("requests-not-counted");
    assert!(ours.0 == 48 || is_lower_bound && ours.0 < 48, "{facts}");
}

#[test]
fn window_updates_of_tls_1_2_are_no_requests() {
    let folder = tempfile::tempdir().unwrap();
    let Some(client) = go_side_by_side(folder.path(), "watch Go over TLS 1.2") else {
        return;
    };
    let ca = folder.path().join("ca.pem");
    let server = Server::start(&["--body", "400000"]);
    server.write_ca(&ca);
    let url = format!("https://localhost:{}/", server.tls_port());
    let command = [&client, &url, ca.to_str().unwrap(), "400000", "in-turn"];
    let (out, facts) = watch(&["--keys", "off"], &command);
    assert!(out.status.success(), "{out:?}");
    let [ours, theirs] = counts(&facts, &server.end());
    assert_eq!(theirs, (8, 1));
    assert_eq!(ours.1, 1);
    // updates in one read with a short request look like more updates
    let is_lower_bound = facts["caveats"]
        .to_string()
        .contains("requests-not-counted");
    assert!(ours.0 == 8 || is_lower_bound && ours.0 < 8, "{facts}");
}

#[test]
fn large_bodies_side_by_side_over_http_2_are_counted_or_said_to_be_a_lower_bound() {
    let folder = tempfile::tempdir().unwrap();
    let Some(client) = go_side_by_side(folder.path(), "watch Go over HTTP/2 with large bodies")
    else {
        return;
    };
    let ca = folder.path().join("ca.pem");
    for keys in ["auto", "off"] {
        let server = Server::start(&["--body", "30000"]);
        server.write_ca(&ca);
        let url = format!("https://localhost:{}/", server.tls_port());
        let command = [&client, &url, ca.to_str().unwrap(), "30000"];
        let gate = ["--keys", keys, "--require", "failed == 0"];
        let (out, facts) = watch(&gate, &command);
        let failed = &facts["requests"]["failed"];
        if keys == "auto" {
            assert_eq!(*failed, serde_json::json!({}), "{facts}");
        } else {
            // none failed that was seen, and others may have
            assert_eq!(failed.as_object().unwrap().len(), 2, "{facts}");
            assert!(failed["other"].is_null(), "{facts}");
            assert!(failed["bounds"]["other"]["why"].is_string(), "{facts}");
        }
        let [ours, theirs] = counts(&facts, &server.end());
        assert_eq!(ours.1, theirs.1, "{keys}: {facts}");
        assert_eq!(theirs.0, 48);
        let caveats = facts["caveats"].to_string();
        if keys == "auto" {
            assert_eq!(ours.0, 48, "{facts}");
            assert_eq!(out.status.code(), Some(0), "{out:?}");
            assert!(!caveats.contains("requests-not-counted"), "{caveats}");
        } else {
            // what cannot be distinguished decides no gate
            assert!((1..=48).contains(&ours.0), "{facts}");
            assert_eq!(out.status.code(), Some(1), "{out:?}");
            assert!(caveats.contains("requests-not-counted"), "{caveats}");
        }
    }
}
