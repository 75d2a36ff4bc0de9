//! `watch --pid` with packets: services that ran before are counted as they count themselves, on
//! both sides. What the ring could not hold is never silent.

use super::semantics::{NOBODY, PYTHON, Stage, is_root, text};
use crate::peers::{certificate, program, skip};
use crate::program::{Server, counted, exchanges, intact, signal, wait_for};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};

/// A service: a server that counts its connections and requests, and a client that keeps one
/// connection to each address. A line `get N URL` has it call, another line prints its counts.
pub(super) const SERVICE: &str = "
import ctypes, http.client, http.server, ssl, sys, threading, urllib.parse
counts, kept = [0, 0], {}
class Server(http.server.ThreadingHTTPServer):
    def process_request(self, request, address):
        counts[0] += 1
        super().process_request(request, address)
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version, wbufsize = 'HTTP/1.1', -1
    def do_GET(self):
        counts[1] += 1
        body = b'x' * int(self.path.partition('?')[2] or 10)
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass
_, name, *certificate = sys.argv
ctypes.CDLL(None).prctl(15, name.encode(), 0, 0, 0)
server = Server(('0.0.0.0', 0), Handler)
if certificate:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_address[1], flush=True)
def connect(url):
    if url.scheme == 'http':
        return http.client.HTTPConnection(url.netloc)
    return http.client.HTTPSConnection(url.netloc, context=ssl._create_unverified_context())
for line in sys.stdin:
    words = line.split()
    if words[0] == 'get':
        url = urllib.parse.urlsplit(words[2])
        for _ in range(int(words[1])):
            if url.netloc not in kept:
                kept[url.netloc] = connect(url)
            kept[url.netloc].request('GET', url.path + '?' + url.query)
            kept[url.netloc].getresponse().read()
    if words[0] == 'close':
        for one in kept.values():
            one.close()
        kept = {}
    print(*counts, flush=True)
";

/// A running service.
pub(super) struct Service {
    child: Child,
    input: ChildStdin,
    out: BufReader<ChildStdout>,
    port: String,
}

impl Service {
    /// Starts it by these words, which run Python.
    pub(super) fn start(
        before: &[&str],
        script: &Path,
        name: &str,
        certificate: &[&str],
    ) -> Service {
        let words = [before, &[PYTHON, text(script), name], certificate].concat();
        let mut child = Command::new(words[0])
            .args(&words[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut service = Service {
            input: child.stdin.take().unwrap(),
            out: BufReader::new(child.stdout.take().unwrap()),
            child,
            port: String::new(),
        };
        service.port = service.line();
        service
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    /// Sends it a line; its counts of connections and requests as a server.
    pub(super) fn ask(&mut self, line: &str) -> [u64; 2] {
        writeln!(self.input, "{line}").unwrap();
        let line = self.line();
        let (connections, requests) = line.split_once(' ').unwrap();
        [connections, requests].map(|count| count.parse().unwrap())
    }

    pub(super) fn id(&self) -> String {
        self.child.id().to_string()
    }

    pub(super) fn url(&self, scheme: &str) -> String {
        format!("{scheme}://localhost:{}/", self.port)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Follows while something is done, until Ctrl-C unless the words have a time; the exit code and
/// the document.
pub(super) fn follow(words: &[&str], act: impl FnOnce(u32)) -> (Option<i32>, Value) {
    let (out, document) = followed(words, act);
    (out.status.code(), document)
}

/// Follows while something is done, until Ctrl-C unless the words have a time alone; the output and
/// the document.
pub(super) fn followed(words: &[&str], act: impl FnOnce(u32)) -> (Output, Value) {
    let ends_itself = words.contains(&"--for") && !words.contains(&"--every");
    let folder = tempfile::tempdir().unwrap();
    let (ledger, json) = (folder.path().join("ledger"), folder.path().join("o.json"));
    let watcher = Command::new(env!("CARGO_BIN_EXE_intact"))
        .args(["watch", "--quiet", "--ledger", text(&ledger)])
        .arg(format!("--json={}", json.display()))
        .args(words)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // its packets come and the first look has passed before the ledger is there
    wait_for(&ledger.join("run.json"));
    act(watcher.id());
    if !ends_itself {
        signal(watcher.id(), "-INT");
    }
    let out = watcher.wait_with_output().unwrap();
    let text = std::fs::read(&json).unwrap_or_else(|error| panic!("{words:?}: {error}: {out:?}"));
    (out, serde_json::from_slice(&text).unwrap())
}

/// The script, where the machine permits what these tests need.
pub(super) fn script(what: &str) -> Option<(Stage, std::path::PathBuf)> {
    program("python3", what)?;
    if !is_root() {
        skip(what, "packets need root");
        return None;
    }
    let stage = Stage::set();
    stage.write("service.py", SERVICE);
    let script = stage.path("service.py");
    Some((stage, script))
}

pub(super) fn opened_and_requests(document: &Value) -> [u64; 2] {
    let totals = &document["totals"];
    [
        counted(&totals["connections"], "opened"),
        counted(&totals["requests"], "total"),
    ]
}

/// Which of these requirements passed.
pub(super) fn met<const N: usize>(out: &Output, gates: [&str; N]) -> [bool; N] {
    let words = String::from_utf8_lossy(&out.stderr);
    gates.map(|gate| {
        let mut lines = words.lines();
        let line = lines.find_map(|line| line.strip_suffix(&format!("met: {gate}")));
        line.unwrap_or_else(|| panic!("{gate}: {words}")).is_empty()
    })
}

/// Which caveats report that something is missing.
pub(super) fn missing(document: &Value) -> Vec<&str> {
    let caveats = document["caveats"].as_array().unwrap().iter();
    let missing = caveats.filter(|one| one["incomplete"] == true);
    missing.map(|one| one["id"].as_str().unwrap()).collect()
}

#[test]
fn a_service_that_runs_is_counted_on_both_sides_as_it_counts_itself() {
    let Some((_stage, script)) = script("watch --pid with packets") else {
        return;
    };
    let mut server = Service::start(&[], &script, "server", &[]);
    let mut client = Service::start(&[], &script, "client", &[]);
    let url = server.url("http");
    let get = format!("get 5 {url}");
    // a connection from before is kept, and was not opened in the run
    client.ask(&get);
    for (side, id) in [("client", client.id()), ("server", server.id())] {
        let before = server.ask("counts");
        let (code, document) = follow(&["--pid", &id, "--side", side], |_| {
            for line in [&get, "close", &get, "close", &get] {
                client.ask(line);
            }
        });
        assert_eq!(code, Some(130), "{document}");
        let after = server.ask("counts");
        let own = [after[0] - before[0], after[1] - before[1]];
        assert_eq!(own, [2, 15]);
        assert_eq!(opened_and_requests(&document), own, "{side}: {document}");
        assert_eq!(document["totals"]["open_before"], 1, "{side}: {document}");
        assert_eq!(missing(&document), [""; 0], "{side}: {document}");
        let owned = document["destinations"][0]["commands"].to_string();
        assert_eq!(owned.contains("client"), side == "client", "{owned}");
    }
}

#[test]
fn a_long_look_has_the_requests_of_each_part_and_its_gaps_pass_no_requirement() {
    let Some((_stage, script)) = script("watch --every") else {
        return;
    };
    let mut server = Service::start(&[], &script, "server", &[]);
    let mut client = Service::start(&[], &script, "client", &[]);
    let get = format!("get 3 {}", server.url("http"));
    client.ask(&get);
    let gates = [
        "requests >= 3",
        "requests <= 100000",
        "connections <= 100000",
        "reuse >= 0%",
    ];
    let id = client.id();
    let mut words = vec!["--pid", &id, "--every", "400ms", "--for", "200ms"];
    words.extend(gates.iter().flat_map(|gate| ["--require", *gate]));
    let before = server.ask("counts")[1];
    let mut most = 0;
    let (out, document) = followed(&words, |_| {
        // some of them come within the parts that are seen
        for _ in 0..40 {
            client.ask(&get);
            most = server.ask("counts")[1] - before;
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    });
    // one connection, which was there before, in each part
    assert_eq!(document["totals"]["open_before"], 1, "{document}");
    assert!(missing(&document).contains(&"gaps-not-seen"), "{document}");
    let least = &document["totals"]["requests"]["bounds"]["total"]["low"];
    let least = least.as_u64().unwrap_or_else(|| panic!("{document}"));
    assert!((3..most).contains(&least), "{least} of {most}: {document}");
    let met = met(&out, gates);
    assert_eq!(met, [true, false, false, false], "{document}");
}

#[test]
fn keys_of_a_service_that_runs_are_found_or_its_requests_are_inferred() {
    let Some((stage, script)) = script("watch --pid with TLS") else {
        return;
    };
    if program("openssl", "watch --pid with TLS").is_none() {
        return;
    }
    let folder = stage.path("");
    certificate(&folder);
    let files = [folder.join("cert.pem"), folder.join("key.pem")];
    let mut server = Service::start(&[], &script, "server", &[text(&files[0]), text(&files[1])]);
    let mut client = Service::start(&[], &script, "client", &[]);
    let get = format!("get 4 {}", server.url("https"));
    for (side, id) in [("client", client.id()), ("server", server.id())] {
        let before = server.ask("counts");
        let (_, document) = follow(&["--pid", &id, "--side", side], |_| {
            for line in [&get[..], "close", &get] {
                client.ask(line);
            }
        });
        client.ask("close");
        let after = server.ask("counts");
        let own = [after[0] - before[0], after[1] - before[1]];
        assert_eq!(opened_and_requests(&document), own, "{side}: {document}");
    }
}

#[test]
fn http2_of_a_service_that_runs_is_read() {
    let what = "watch --pid with HTTP/2";
    if script(what).is_none() {
        return;
    }
    let server = Server::start(&[]);
    let (id, url) = (server.pid().to_string(), server.plain());
    let (_, document) = follow(&["--pid", &id, "--side", "server"], |_| {
        let words = ["bench", &url, "--http", "2", "-n", "20", "--rounds", "2"];
        assert!(intact(&words).status.success());
    });
    let tally = server.end();
    let cell = &tally["cells"][0];
    let own = [
        cell["connections"]["opened"].as_u64().unwrap(),
        exchanges(cell),
    ];
    assert_eq!(opened_and_requests(&document), own, "{document}");
    assert_eq!(missing(&document), [""; 0], "{document}");
    assert!(
        document.to_string().contains("\"protocols\":{\"2\""),
        "{document}"
    );
}

#[test]
fn a_service_in_its_own_network_namespace_is_read() {
    let what = "watch --pid in another network namespace";
    let Some((_stage, script)) = script(what) else {
        return;
    };
    if program("unshare", what).is_none() || program("ip", what).is_none() {
        return;
    }
    let up = "ip link set lo up; exec \"$@\"";
    let before = ["unshare", "--net", "sh", "-c", up, "sh"];
    // it calls itself
    let mut service = Service::start(&before, &script, "service", &[]);
    let get = format!("get 6 {}", service.url("http"));
    for side in ["client", "server", "both"] {
        let (_, document) = follow(&["--pid", &service.id(), "--side", side], |_| {
            service.ask(&get);
            service.ask("close");
        });
        assert_eq!(opened_and_requests(&document), [1, 6], "{side}: {document}");
        assert_eq!(missing(&document), [""; 0], "{side}: {document}");
    }
}

#[test]
fn a_service_that_restarts_is_followed_by_its_name() {
    let Some((_stage, script)) = script("watch --name") else {
        return;
    };
    let mut server = Service::start(&[], &script, "server", &[]);
    let name = format!("s{}", std::process::id());
    let get = format!("get 3 {}", server.url("http"));
    let mut first = Some(Service::start(&[], &script, &name, &[]));
    let (_, document) = follow(&["--name", &name], |_| {
        first.as_mut().unwrap().ask(&get);
        drop(first.take());
        let mut second = Service::start(&[], &script, &name, &[]);
        second.ask(&get);
    });
    assert_eq!(server.ask("counts"), [2, 6]);
    assert_eq!(opened_and_requests(&document), [2, 6], "{document}");
    let gone = intact(&["watch", "--name", &name]);
    assert_eq!(gone.status.code(), Some(3), "{gone:?}");
}

#[test]
fn packets_that_the_ring_could_not_hold_leave_every_count_open() {
    let Some((_stage, script)) = script("watch --pid of lost packets") else {
        return;
    };
    let server = Service::start(&[], &script, "server", &[]);
    let mut client = Service::start(&[], &script, "client", &[]);
    let words = ["--pid", &client.id(), "--buffer", "2", "--for", "4s"];
    let gate = ["--require", "requests >= 1", "--require", "reuse >= 0%"];
    let (code, document) = follow(&[&words[..], &gate].concat(), |watcher| {
        client.ask(&format!("get 2 {}", server.url("http")));
        // it does not read while 20 MB come
        signal(watcher, "-STOP");
        client.ask(&format!("get 10 {}?2000000", server.url("http")));
        signal(watcher, "-CONT");
    });
    assert_eq!(code, Some(1), "{document}");
    assert!(
        missing(&document).contains(&"packets-dropped"),
        "{document}"
    );
    assert!(
        document["totals"]["requests"]["total"].is_null(),
        "{document}"
    );
}

#[test]
fn without_the_rights_the_page_has_the_commands_that_show_requests() {
    let Some((stage, script)) = script("watch --pid without rights") else {
        return;
    };
    let (user, group) = (format!("--reuid={NOBODY}"), format!("--regid={NOBODY}"));
    let nobody = ["setpriv", &user, &group, "--clear-groups"];
    let service = Service::start(&nobody, &script, "service", &[]);
    let binary = stage.path("intact");
    let out = Command::new(nobody[0])
        .args(&nobody[1..])
        .args([
            text(&binary),
            "watch",
            "--for",
            "50ms",
            "--pid",
            &service.id(),
        ])
        .env("NO_COLOR", "1")
        .env("COLUMNS", "10000")
        .output()
        .unwrap();
    let page = String::from_utf8_lossy(&out.stderr);
    for words in [
        &format!("`sudo intact watch --pid {}`", service.id())[..],
        "setcap cap_net_raw",
        "kubectl debug",
        "tcpdump -i any",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
}

#[test]
fn a_program_that_opens_nothing_is_said_to_be_a_server_perhaps_unless_it_looks_up_names() {
    let look_up = "import socket; socket.getaddrinfo('nothing.invalid', 80)";
    let out = intact(&["watch", "--", PYTHON, "-c", look_up]);
    let page = String::from_utf8_lossy(&out.stderr);
    assert!(page.contains("1 lookup failed"), "{page}");
    assert!(!page.contains("--side server"), "{page}");
    let out = intact(&["watch", "--", "true"]);
    let page = String::from_utf8_lossy(&out.stderr);
    for words in [
        "the program opened no TCP connection",
        "--side server",
        "intact check URL",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
}
