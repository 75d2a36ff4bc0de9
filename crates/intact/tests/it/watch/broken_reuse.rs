//! Rules for connections that die, leak, start cold, queue or drain, each on a real program: one
//! that shows the rule, and the same program without the cause, on which a gate passes.

use super::names::Stage;
use super::watch;
use crate::peers::program;
use crate::program::{Server, intact};
use serde_json::Value;

fn of_rule<'a>(document: &'a Value, rule: &str) -> Vec<&'a Value> {
    let findings = document["findings"].as_array().unwrap();
    findings.iter().filter(|one| one["rule"] == rule).collect()
}

/// Runs a program that shows a rule, and then the same one with the second word, which has no
/// finding of it. The finding of the first.
pub(super) fn finds(rule: &str, options: &[&str], command: &[&str], kinds: [&str; 2]) -> Value {
    let requirement = format!("findings.{rule} == 0");
    let options = [options, &["--require", &requirement]].concat();
    let run = |kind| watch(&options, &[command, &[kind]].concat());
    let (out, document) = run(kinds[1]);
    assert!(of_rule(&document, rule).is_empty(), "{document}");
    assert!(out.status.success(), "{}: {out:?} {document}", kinds[1]);
    let (out, document) = run(kinds[0]);
    let found = of_rule(&document, rule);
    assert_eq!(found.len(), 1, "{}: {out:?} {document}", kinds[0]);
    assert_eq!(out.status.code(), Some(1), "{out:?}");
    found[0].clone()
}

/// The server's kernel drops all packets of the connection after three requests, as a NAT that has
/// forgotten it; or the server hangs.
const SILENT: &str = "
import ctypes, http.client, socket, struct, sys, threading
server = socket.create_server(('127.0.0.1', 0))
def serve():
    s, _ = server.accept()
    for _ in range(3):
        s.recv(65536)
        s.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok')
    if sys.argv[1] == 'forgotten':
        none = ctypes.create_string_buffer(struct.pack('HBBI', 6, 0, 0, 0))
        program = struct.pack('HL', 1, ctypes.addressof(none))
        s.setsockopt(socket.SOL_SOCKET, 26, program) # SO_ATTACH_FILTER
    ready.set()
    gone.wait()
ready, gone = threading.Event(), threading.Event()
threading.Thread(target=serve).start()
c = http.client.HTTPConnection('127.0.0.1', server.getsockname()[1], timeout=2)
def ask():
    c.request('GET', '/')
    c.getresponse().read()
for _ in range(3): ask()
ready.wait()
try: ask()
except TimeoutError: c.close()
gone.set()
";

#[test]
fn a_dead_connection_is_found_and_a_server_that_hangs_is_none() {
    if program("python3", "watch a dead connection").is_none() {
        return;
    }
    let rule = "dead-connection-reused";
    let command = ["python3", "-c", SILENT];
    let found = finds(rule, &[], &command, ["forgotten", "hangs"]);
    assert_eq!(found["severity"], "warning", "{found}");
    let values = &found["values"];
    assert_eq!(
        (&values["requests"], &values["connections"]),
        (&1.into(), &1.into())
    );
    assert!(values["resent"].as_u64() >= Some(2), "{found}");
    assert!(found["cost_ms"].as_f64() >= Some(2000.0), "{found}");
}

/// One connection, one cookie: the credential of another user, or of the same one as each request
/// of Digest and a renewal show it.
const USERS: &str = "
import http.client, sys, urllib.parse
url = urllib.parse.urlsplit(sys.argv[1])
c = http.client.HTTPConnection(url.hostname, url.port)
digest = 'Digest username=\"ann\", nc=0000000%d, response=\"%d\"'
users = {'others': ['Bearer ann', 'Bearer ann', 'Bearer bob'],
         'same': [digest % (n, n) for n in range(3)]}[sys.argv[2]]
for user in users:
    c.request('GET', '/', headers={'Cookie': 'sid=1', 'Authorization': user})
    c.getresponse().read()
";

#[test]
fn a_cookie_that_stays_with_another_user_is_found_and_never_written() {
    if program("python3", "watch two users").is_none() {
        return;
    }
    let server = Server::start(&[]);
    let rule = "state-carried-over";
    let command = ["python3", "-c", USERS, &server.plain()];
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("ledger");
    let option = format!("--ledger={}", ledger.display());
    let found = finds(rule, &[], &command, ["others", "same"]);
    assert_eq!(found["severity"], "warning", "{found}");
    assert_eq!(found["values"]["requests"], 1);
    // the hashes stay in memory, so a stored ledger cannot pass the gate
    watch(&[&option], &[&command[..], &["others"]].concat());
    let requirement = format!("findings.{rule} == 0");
    let words = ["audit", ledger.to_str().unwrap(), "--json"];
    let audited = intact(&[&words[..], &["--require", &requirement]].concat());
    assert_eq!(audited.status.code(), Some(1), "{audited:?}");
    let document: Value = serde_json::from_slice(&audited.stdout).unwrap();
    assert!(of_rule(&document, rule).is_empty(), "{document}");
}

/// Two processes that were forked after the first request: both use its connection at once, one
/// uses it alone, or each makes its own.
const FORKED: &str = "
import http.client, multiprocessing, ssl, sys, urllib.parse
url, kind = urllib.parse.urlsplit(sys.argv[1]), sys.argv[2]
def new():
    if url.scheme == 'http': return http.client.HTTPConnection(url.hostname, url.port, timeout=2)
    trust = ssl.create_default_context(cafile=sys.argv[3])
    return http.client.HTTPSConnection(url.hostname, url.port, timeout=2, context=trust)
def ask(c):
    try:
        c.request('GET', '/')
        c.getresponse().read()
    except Exception: c.close()
fork = multiprocessing.get_context('fork')
together = fork.Barrier(2)
def work(c, number):
    for _ in range(20):
        together.wait()
        if kind == 'own': c = c if c.sock is not warm.sock else new()
        if kind != 'alone' or number == 0: ask(c)
warm = new()
ask(warm)
workers = [fork.Process(target=work, args=[warm, n]) for n in range(2)]
for worker in workers: worker.start()
for worker in workers: worker.join()
";

#[test]
fn processes_that_use_one_connection_at_once_are_found() {
    if program("python3", "watch two processes").is_none() {
        return;
    }
    let server = Server::start(&["--delay", "20ms"]);
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    server.write_ca(&ca);
    let rule = "connection-shared-by-processes";
    for url in [
        server.plain(),
        format!("https://localhost:{}/", server.tls_port()),
    ] {
        for other in ["alone", "own"] {
            let script = FORKED.replace("sys.argv[3]", &format!("{:?}", ca.to_str().unwrap()));
            let command = ["python3", "-c", &script, &url];
            let found = finds(rule, &[], &command, ["shared", other]);
            assert_eq!(found["severity"], "error", "{found}");
            assert_eq!(found["values"]["connections"], 1, "{found}");
        }
    }
}

/// Four clients ask in rounds, and connect again before a request where the server has closed: all
/// connections at one moment, as in a restart, or each that is idle for a shorter time than a
/// pause.
const CLOSING: &str = "
import http.client, select, socket, sys, threading, time
is_limit, pause = sys.argv[1] == 'limit', float(sys.argv[2])
server, open_ones = socket.create_server(('127.0.0.1', 0)), []
def serve(s):
    s.settimeout(pause * 0.6 if is_limit else None)
    try:
        while s.recv(65536):
            time.sleep(0.005)
            s.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok')
    except TimeoutError: pass
    s.close()
def accept():
    while True:
        open_ones.append(server.accept()[0])
        threading.Thread(target=serve, args=[open_ones[-1]], daemon=True).start()
threading.Thread(target=accept, daemon=True).start()
together = threading.Barrier(5)
def work():
    c = http.client.HTTPConnection('127.0.0.1', server.getsockname()[1])
    for _ in range(8):
        together.wait()
        if c.sock and select.select([c.sock], [], [], 0)[0]: c.close()
        c.request('GET', '/')
        c.getresponse().read()
        together.wait()
clients = [threading.Thread(target=work) for _ in range(4)]
for client in clients: client.start()
for number in range(8):
    together.wait()
    together.wait()
    time.sleep(pause * 0.6)
    if number == 5 and not is_limit:
        for s in list(open_ones): s.shutdown(socket.SHUT_RDWR)
    time.sleep(pause * 0.4)
";

#[test]
fn a_restart_is_no_limit_of_the_server() {
    if program("python3", "watch a restart").is_none() {
        return;
    }
    for (pause, rule) in [
        ("0.5", "server-closes-early"),
        ("0.1", "close-announced-not-kept"),
    ] {
        for (kind, severity) in [("restart", "info"), ("limit", "warning")] {
            let (out, document) = watch(&[], &["python3", "-c", CLOSING, kind, pause]);
            let found = of_rule(&document, rule);
            assert_eq!(found.len(), 1, "{kind}: {out:?} {document}");
            assert_eq!(found[0]["severity"], severity, "{kind}: {document}");
        }
    }
}

/// Thirteen connections that the server closes while they are idle; one more is opened after that.
const LEAKING: &str = "
import http.client, select, sys, time, urllib.parse
url = urllib.parse.urlsplit(sys.argv[1])
held = []
def ask():
    c = http.client.HTTPConnection(url.hostname, url.port)
    c.request('GET', '/')
    c.getresponse().read()
    if sys.argv[2] == 'closed': c.close()
    else: held.append(c)
for _ in range(13): ask()
for c in held: select.select([c.sock], [], [], 60)
time.sleep(1.1)
ask()
";

#[test]
fn connections_that_a_program_does_not_close_are_found() {
    if program("python3", "watch leaked connections").is_none() {
        return;
    }
    let server = Server::start(&["--idle-timeout", "100ms"]);
    let command = ["python3", "-c", LEAKING, &server.plain()];
    let found = finds("leaked-connections", &[], &command, ["held", "closed"]);
    let values = &found["values"];
    assert_eq!(
        (&values["held"], &values["in_close_wait"]),
        (&13.into(), &13.into())
    );
    assert_eq!(found["severity"], "warning", "{found}");
}

/// Six pairs of requests at the same time after a rest, on new connections or on ones that have
/// been used.
const BURST: &str = "
import http.client, sys, threading, time, urllib.parse
url = urllib.parse.urlsplit(sys.argv[1])
new = lambda: http.client.HTTPConnection(url.hostname, url.port)
def ask(c):
    c.request('GET', '/')
    c.getresponse().read()
def burst(all):
    start = threading.Barrier(len(all))
    def one(c):
        start.wait()
        ask(c)
        ask(c)
    threads = [threading.Thread(target=one, args=[c]) for c in all]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
warm = [new() for _ in range(6 if sys.argv[2] == 'warm' else 1)]
burst(warm)
time.sleep(1.2)
burst(warm if sys.argv[2] == 'warm' else [new() for _ in range(6)])
";

#[test]
fn a_burst_that_waits_for_setups_is_found() {
    if program("python3", "watch a cold pool").is_none() {
        return;
    }
    let server = Server::start(&[]);
    let command = ["python3", "-c", BURST, &server.plain()];
    let found = finds("cold-pool", &["--rtt", "300ms"], &command, ["cold", "warm"]);
    let values = &found["values"];
    assert_eq!(
        (&values["bursts"], &values["opened"]),
        (&1.into(), &6.into())
    );
    assert!(values["waited_ms"].as_f64() >= Some(6.0 * 300.0), "{found}");
}

/// A server of HTTP/2 and its client: `limit=N` for 400 requests together; `cut` or `drain` for
/// three slow requests of which the last lets the server announce its end.
const HTTP_2: &str = "
const http2 = require('http2');
const what = process.argv[1];
const limit = what.startsWith('limit=') ? +what.slice(6) : 0;
const server = http2.createServer({ settings: { maxConcurrentStreams: limit || 100 } });
let slow = 0;
server.on('stream', (stream) => {
  const end = () => { if (!stream.destroyed) { stream.respond({ ':status': 200 }); stream.end('ok'); } };
  stream.on('error', () => {});
  if (limit || slow++ === 0) return setTimeout(end, 5);
  if (what === 'drain') setTimeout(end, 300);
  if (slow !== 4) return;
  const session = stream.session;
  if (what === 'drain') return session.close();
  session.goaway(0);
  setTimeout(() => session.destroy(), 200);
});
server.listen(0, '127.0.0.1', () => {
  const client = http2.connect(`http://127.0.0.1:${server.address().port}`);
  client.on('error', () => {});
  const ask = (method = 'GET') => new Promise((done) => {
    const stream = client.request({ ':path': '/', ':method': method });
    stream.on('error', () => {}).on('close', done).resume().end();
  });
  client.once('remoteSettings', async () => {
    if (limit) await Promise.all(Array.from({ length: 400 }, () => ask()));
    else { await ask(); await Promise.all([ask(), ask('POST'), ask()]); }
    client.close();
    server.close();
  });
});
";

#[test]
fn requests_behind_the_limit_of_streams_are_found() {
    if program("node", "watch the limit of streams").is_none() {
        return;
    }
    let command = ["node", "-e", HTTP_2];
    let found = finds("h2-stream-limit", &[], &command, ["limit=4", "limit=1000"]);
    assert_eq!(found["values"]["streams"], 4, "{found}");
}

#[test]
fn requests_that_a_shutdown_cuts_are_found() {
    if program("node", "watch a shutdown").is_none() {
        return;
    }
    let command = ["node", "-e", HTTP_2];
    let found = finds("lost-in-drain", &[], &command, ["cut", "drain"]);
    assert_eq!(found["severity"], "error", "{found}");
    let values = &found["values"];
    assert_eq!(
        (&values["lost"], &values["harmful"]),
        (&3.into(), &1.into())
    );
    assert_eq!(
        (&values["in_hand"], &values["late"]),
        (&3.into(), &0.into())
    );
}

/// 120 requests on one connection, or on twelve that go to the addresses of the name in turn.
const ADDRESSES: &str = "
import http.client, socket, sys
name = 'several.example'
found = socket.getaddrinfo(name, 80, socket.AF_INET, socket.SOCK_STREAM)
addresses = sorted(one[4][0] for one in found)
assert len(addresses) == 3, addresses
for nth in range(12):
    if nth == 0 or sys.argv[1] == 'spread':
        c = http.client.HTTPConnection(addresses[nth % 3], 80)
    for _ in range(10):
        c.request('GET', '/', headers={'Host': name})
        c.getresponse().read()
";

#[test]
fn requests_that_reuse_sends_to_one_of_several_addresses_are_found() {
    let Some(stage) = Stage::set("watch a name with several addresses") else {
        return;
    };
    let rule = "unbalanced-by-reuse";
    for (kind, count) in [("pinned", 1), ("spread", 0)] {
        let path = stage.path("watch.json");
        let json = format!("--json={path}");
        let gate = format!("findings.{rule} == 0");
        let intact = env!("CARGO_BIN_EXE_intact");
        let words = [intact, "watch", "-q", &json, "--require", &gate, "--"];
        let command = ["python3", "-c", ADDRESSES, kind];
        let out = stage.run("127.0.0.53", &[&words[..], &command].concat());
        let text = std::fs::read(&path).unwrap_or_else(|error| panic!("{error}: {out:?}"));
        let document: Value = serde_json::from_slice(&text).unwrap();
        let found = of_rule(&document, rule);
        assert_eq!(found.len(), count, "{kind}: {document}");
        assert_eq!(out.status.code(), Some(count as i32), "{kind}: {out:?}");
        if let Some(found) = found.first() {
            let values = &found["values"];
            assert_eq!(
                (&values["requests"], &values["addresses"]),
                (&120.into(), &3.into())
            );
        }
    }
}

/// A HAR file has the times of lookups and not their results.
#[test]
fn a_har_file_does_not_show_to_which_addresses_a_name_leads() {
    let har = r#"{"log":{"entries":[{"startedDateTime":"2026-11-21T08:00:00Z","time":9,"connection":"7",
        "request":{"method":"GET","url":"http://a.example/","httpVersion":"HTTP/1.1"},
        "response":{"status":200,"httpVersion":"HTTP/1.1"},
        "timings":{"blocked":-1,"dns":2,"connect":2,"send":1,"wait":2,"receive":2}}]}}"#;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.har");
    std::fs::write(&path, har).unwrap();
    for rule in ["unbalanced-by-reuse", "pinned-to-old-address"] {
        let gate = format!("findings.{rule} == 0");
        let out = intact(&["audit", path.to_str().unwrap(), "--require", &gate]);
        assert_eq!(out.status.code(), Some(1), "{rule}: {out:?}");
        let text = String::from_utf8_lossy(&out.stderr) + String::from_utf8_lossy(&out.stdout);
        assert!(
            text.contains("addresses that a lookup resulted in"),
            "{text}"
        );
    }
}
