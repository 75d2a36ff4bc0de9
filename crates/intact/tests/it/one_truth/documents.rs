//! The documents that the test reads: every fixture of `audit`, and one ledger of each other
//! producer. Which figures each has, and where its JSON states them.

use super::reading::Reading;
use crate::program::{Server, intact};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A kind of document: how its subjects are named and selected.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    /// As `intact help --json` names the command.
    pub(crate) command: &'static str,
    /// The objects of all traffic, if the gate has a subject for it; the same figures in each.
    pub(crate) whole: &'static [&'static str],
    /// The list of the other subjects.
    pub(crate) list: &'static str,
    figures: &'static [Figure],
}

/// One subject of a document.
#[derive(Debug)]
pub(crate) struct Subject {
    /// As the pages and the gate name it; empty for the whole.
    pub(crate) label: String,
    /// Before a requirement; empty for the whole.
    pub(crate) selector: String,
    /// Its objects in JSON.
    pub(crate) objects: Vec<String>,
}

/// A document to read again: the words before the options.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    pub(crate) name: String,
    pub(crate) words: Vec<String>,
    pub(crate) kind: Kind,
}

/// Where JSON states a figure.
#[derive(Clone, Copy, Debug)]
enum Key {
    /// A number.
    At(&'static str),
    /// A number in other units: times this.
    Times(&'static str, f64),
    /// The sum of an object's numbers.
    Sum(&'static str),
    /// An entry of an object of counts; one that is not there is 0.
    Entry(&'static str, &'static str),
    /// The length of a list.
    Length(&'static str),
}

type Figure = (&'static str, Key);

const COUNTS: &[Figure] = &[
    ("requests", Key::At("/requests/total")),
    ("ok", Key::At("/requests/ok")),
    ("failed", Key::At("/requests/failures")),
    ("failed-share", Key::At("/requests/failed_share")),
    ("failed.timeout", Key::Entry("/requests/failed", "timeout")),
    ("status.200", Key::Entry("/requests/status", "200")),
    ("connections", Key::At("/connections/opened")),
    ("connections-failed", Key::At("/connections/failures")),
    ("needed", Key::At("/connections/needed")),
    ("avoidable", Key::At("/avoidable")),
    ("avoidable-by-server", Key::At("/avoidable_by_server")),
    ("reused", Key::At("/reused")),
    ("reuse", Key::At("/reuse")),
    (
        "requests-per-connection",
        Key::At("/requests_per_connection"),
    ),
    ("churn", Key::At("/churn_per_s")),
    ("throughput", Key::At("/rate_per_s")),
    ("typical", Key::At("/typical_ms")),
    ("resumed-share", Key::At("/resumed_share")),
    ("findings", Key::Length("/findings")),
    ("mean", Key::At("/latency_ms/mean")),
    ("p50", Key::At("/latency_ms/p50")),
    ("p90", Key::At("/latency_ms/p90")),
    ("p99", Key::At("/latency_ms/p99")),
    ("p999", Key::At("/latency_ms/p999")),
    ("max", Key::At("/latency_ms/max")),
    (
        "without-setup.mean",
        Key::At("/latency_without_setup_ms/mean"),
    ),
    (
        "without-setup.p50",
        Key::At("/latency_without_setup_ms/p50"),
    ),
    (
        "without-setup.p90",
        Key::At("/latency_without_setup_ms/p90"),
    ),
    (
        "without-setup.p99",
        Key::At("/latency_without_setup_ms/p99"),
    ),
    (
        "without-setup.p999",
        Key::At("/latency_without_setup_ms/p999"),
    ),
    (
        "without-setup.max",
        Key::At("/latency_without_setup_ms/max"),
    ),
];

const OBSERVED: &[Figure] = &[
    ("lookups", Key::At("/lookups/total")),
    // a reused connection has no setup
    ("dns.mean", Key::At("/phases_ms/fresh/dns/mean")),
    ("connect.mean", Key::At("/phases_ms/fresh/connect/mean")),
    ("ssl.mean", Key::At("/phases_ms/fresh/ssl/mean")),
];

const VARIANT: &[Figure] = &[
    ("lookups", Key::At("/lookups")),
    ("client-delay", Key::At("/client_delay_ms/share")),
    ("cpu-per-request", Key::Times("/cpu_us_per_request", 1e-3)),
    (
        "server-cpu-per-request",
        Key::Times("/server_cpu_us_per_request", 1e-3),
    ),
    ("bytes-per-request", Key::At("/bytes_per_request/total")),
    ("schedule.error", Key::At("/scheduling_error_ms/p99")),
    ("connect.mean", Key::At("/phases_ms/connect/mean")),
    ("send.mean", Key::At("/phases_ms/send/mean")),
    ("wait.mean", Key::At("/phases_ms/wait/mean")),
    ("receive.mean", Key::At("/phases_ms/receive/mean")),
];

const FUNCTION: &[Figure] = &[
    ("requests", Key::At("/sent/requests")),
    ("connections", Key::At("/sent/connections")),
    ("avoidable", Key::At("/sent/avoidable")),
    ("avoidable-by-server", Key::At("/sent/avoidable_by_server")),
    ("reused", Key::At("/sent/reused")),
    ("reuse", Key::At("/sent/reuse")),
    (
        "connections-per-invocation",
        Key::At("/sent/connections_per_invocation"),
    ),
    ("invocations", Key::Sum("/outcomes")),
    ("cold-start", Key::At("/cold_start_ms")),
    ("mean", Key::At("/warm_ms/mean")),
    ("p50", Key::At("/warm_ms/p50")),
    ("p90", Key::At("/warm_ms/p90")),
    ("p99", Key::At("/warm_ms/p99")),
    ("max", Key::At("/warm_ms/max")),
];

const CELL: &[Figure] = &[
    ("struck", Key::At("/struck")),
    ("failed", Key::At("/failed")),
    ("recovered", Key::At("/recovered")),
    ("duplicated", Key::At("/duplicated")),
    ("truncated", Key::At("/truncated")),
    ("leaked", Key::At("/leaked")),
    ("hung", Key::At("/hung_ms")),
];

const SERVER: &[Figure] = &[
    ("idle-timeout", Key::Times("/idle_timeout/measured_s", 1e3)),
    ("max-requests", Key::At("/max_requests/measured")),
    ("findings", Key::Length("/findings")),
];

const CAPACITY: &[Figure] = &[
    ("capacity", Key::At("/capacity_per_s")),
    ("recovery", Key::Times("/recovery/recovered_after_s", 1e3)),
];

const AUDIT: Kind = Kind {
    command: "audit",
    whole: &["/totals", ""],
    list: "/destinations",
    figures: OBSERVED,
};
const WATCH: Kind = Kind {
    command: "watch",
    ..AUDIT
};
const BENCH: Kind = Kind {
    command: "bench",
    whole: &[],
    list: "/variants",
    figures: VARIANT,
};
const COMPARE: Kind = Kind {
    command: "compare",
    ..BENCH
};
const SCENARIO: Kind = Kind {
    command: "bench --scenario",
    whole: &[""],
    list: "/sessions",
    figures: VARIANT,
};
const LAMBDA: Kind = Kind {
    command: "lambda",
    figures: FUNCTION,
    ..BENCH
};
const FAULT: Kind = Kind {
    command: "watch --fault",
    whole: &[],
    list: "/cells",
    figures: CELL,
};
const CHECK: Kind = Kind {
    command: "check",
    whole: &[""],
    list: "/hops",
    figures: SERVER,
};
const FIND_MAX: Kind = Kind {
    command: "bench --find-max",
    figures: CAPACITY,
    ..BENCH
};

/// Every kind of document that the test reads.
pub(crate) const KINDS: [Kind; 9] = [
    AUDIT, WATCH, BENCH, COMPARE, SCENARIO, LAMBDA, FAULT, CHECK, FIND_MAX,
];

impl Kind {
    /// The figures of its documents that JSON has a key for. A figure of its own stands for the one
    /// of the same name that all have.
    fn keys(self) -> impl Iterator<Item = Figure> {
        let has_counts = ![LAMBDA, FAULT, CHECK, FIND_MAX]
            .iter()
            .any(|kind| kind.command == self.command);
        let counts = if has_counts { COUNTS } else { &[] };
        self.figures.iter().chain(counts).copied()
    }

    /// Whether a key states the figure in any of its documents.
    pub(crate) fn has(self, metric: &str) -> bool {
        self.keys().any(|(name, _)| name == metric)
    }

    /// What JSON states of a figure of the whole run.
    pub(crate) fn stated_of_run(self, document: &Value, metric: &str) -> Option<Reading> {
        let (_, key) = COUNTS.iter().find(|(name, _)| *name == metric)?;
        key.read(document)
    }

    /// What an object of JSON states of a figure, if it has its key.
    pub(crate) fn stated(self, document: &Value, object: &str, metric: &str) -> Option<Reading> {
        let (_, key) = self.keys().find(|(name, _)| *name == metric)?;
        key.read(document.pointer(object)?)
    }

    pub(crate) fn subjects(self, document: &Value) -> Vec<Subject> {
        let mut subjects = Vec::new();
        if !self.whole.is_empty() {
            subjects.push(Subject {
                label: String::new(),
                selector: String::new(),
                objects: self.whole.iter().map(|at| (*at).to_owned()).collect(),
            });
        }
        let listed = document.pointer(self.list).and_then(Value::as_array);
        for (nth, one) in listed.into_iter().flatten().enumerate() {
            let text = |key: &str| one[key].as_str().unwrap_or_default().to_owned();
            let (label, selector) = match self.list {
                "/destinations" => (text("origin"), format!("origin={}: ", text("origin"))),
                "/sessions" => (text("name"), format!("session={}: ", text("name"))),
                "/cells" => (
                    format!("{} at {}", text("name"), text("destination")),
                    format!("fault.{},origin={}: ", text("kind"), text("destination")),
                ),
                _ => (text("name"), format!("variant={}: ", text("name"))),
            };
            subjects.push(Subject {
                label,
                selector,
                objects: vec![format!("{}/{nth}", self.list)],
            });
        }
        with_sides(document, subjects)
    }
}

/// A variant that is a service has two sides.
fn with_sides(document: &Value, mut subjects: Vec<Subject>) -> Vec<Subject> {
    let Some(services) = document.pointer("/services").and_then(Value::as_array) else {
        return subjects;
    };
    for one in &mut subjects {
        one.selector = one.selector.replace(": ", ",side=inbound: ");
        one.label += ", inbound";
    }
    subjects.extend(services.iter().enumerate().map(|(nth, one)| {
        let name = one["variant"].as_str().unwrap();
        Subject {
            label: format!("{name}, outgoing"),
            selector: format!("variant={name},side=outgoing: "),
            objects: vec![format!("/services/{nth}")],
        }
    }));
    subjects
}

impl Key {
    fn read(self, object: &Value) -> Option<Reading> {
        let (path, scale) = match self {
            Key::At(path) | Key::Sum(path) | Key::Entry(path, _) | Key::Length(path) => (path, 1.0),
            Key::Times(path, scale) => (path, scale),
        };
        let (parent, name) = path.rsplit_once('/')?;
        let parent = object.pointer(parent)?.as_object()?;
        let bounds = parent.get("bounds").and_then(|bounds| bounds.get(name));
        let value = parent.get(name);
        let counts = value.and_then(Value::as_object);
        match (self, bounds) {
            (Key::At(_) | Key::Times(..), _) => Reading::stated(parent, name, scale),
            (Key::Entry(_, entry), _) => {
                let counts = counts?;
                let stated = Reading::stated(counts, entry, scale);
                // one that is not there is 0, unless `other` states what is not listed
                let other = || Reading::stated(counts, "other", scale);
                let stated = stated.or_else(other);
                Some(stated.unwrap_or_else(|| Reading::known(0.0)))
            }
            (_, Some(bounds)) => Some(Reading::of_bounds(bounds, scale)),
            (Key::Sum(_), None) => {
                let counts = counts?.values().filter_map(Value::as_f64);
                let sum = counts.fold(0.0, |sum, count| sum + count);
                Some(Reading::known(sum * scale))
            }
            (Key::Length(_), None) => Some(Reading::known(value?.as_array()?.len() as f64)),
        }
    }
}

/// Every fixture that `audit` can read.
pub(crate) fn fixtures() -> Vec<Input> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let folders = ["captures", "har", "logs", "logs/zeek", "netlog", "tools"];
    let files = folders.iter().flat_map(|folder| {
        let entries = std::fs::read_dir(root.join(folder)).unwrap();
        entries.map(|entry| entry.unwrap().path())
    });
    let mut inputs: Vec<PathBuf> = files.filter(|path| path.is_file()).collect();
    // one recording in three files
    inputs.push(root.join("logs/zeek"));
    inputs.sort();
    let inputs = inputs.into_iter().filter_map(|path| {
        let words = vec!["audit".to_owned(), path.to_str()?.to_owned()];
        let is_readable = intact(&[&words[0], &words[1]]).status.success();
        let name = path.strip_prefix(&root).unwrap().display().to_string();
        is_readable.then_some(Input {
            name,
            words,
            kind: AUDIT,
        })
    });
    inputs.collect()
}

/// Opens a connection in every invocation.
const FUNCTION_CLIENT: &str = concat!(
    include_str!("../runtime.py"),
    r#"
def call(event, id):
    called = http.client.HTTPConnection("127.0.0.1", int(os.environ["PORT"]))
    called.request("GET", "/")
    called.getresponse().read()
run(call)
"#
);

/// Six requests on a connection that is kept while it can be.
const CALLER: &str = r#"
import http.client, sys
kept = http.client.HTTPConnection(sys.argv[1])
for nth in range(6):
    try:
        kept.request("GET", "/")
        kept.getresponse().read()
    except (OSError, http.client.HTTPException):
        kept.close()
"#;

const SESSIONS: &str = "
definition.setTarget('testapp.example');
definition.session('kept', 50, function (session) {
  session.times(6, function (context) { context.get('/kept', { tag: 'kept' }); });
});
definition.session('closed', 50, function (session) {
  session.times(5, function (context) {
    context.get('/closed', { tag: 'closed', headers: { Connection: 'close' } });
  });
});
";

/// Every second request has no response; each calls a port where nothing listens, and our server.
const SERVICE: &str = r#"
import http.client, http.server, sys
port, upstream = int(sys.argv[1]), int(sys.argv[2])
seen = [0]
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_GET(self):
        seen[0] += 1
        for called in [9, upstream]:
            try:
                call = http.client.HTTPConnection('127.0.0.1', called)
                call.request('GET', '/')
                call.getresponse().read()
                call.close()
            except OSError:
                pass
        if seen[0] % 2 == 0:
            self.close_connection = True
            return
        self.send_response(200)
        self.send_header('Content-Length', '0')
        self.end_headers()
    def log_message(self, *_):
        pass
http.server.HTTPServer(('127.0.0.1', port), Handler).serve_forever()
"#;

/// One ledger of each other producer, in a folder, of traffic to our own server.
pub(crate) fn ledgers(folder: &Path) -> Vec<Input> {
    let server = Server::start(&["--idle-timeout", "300ms"]);
    let (url, port) = (server.plain(), server.plain_port());
    let program = env!("CARGO_BIN_EXE_intact");
    let client =
        |keepalive: &str| format!("{program} bench {url} -n 6 --rounds 1 --keepalive {keepalive}");
    let (kept, closed) = (client("on"), client("off"));
    let sessions = folder.join("sessions.js");
    std::fs::write(&sessions, SESSIONS).unwrap();
    let sessions = sessions.to_str().unwrap();
    let host = url.trim_start_matches("http://").trim_end_matches('/');
    let caller = folder.join("caller.py");
    std::fs::write(&caller, CALLER).unwrap();
    let caller = caller.to_str().unwrap();
    let function = folder.join("function.py");
    std::fs::write(&function, FUNCTION_CLIENT).unwrap();
    let function = function.to_str().unwrap();
    let route = format!("testapp.example:80:127.0.0.1:{port}");
    let words = |line: &'static str| line.split(' ');
    let called = format!("PORT={port}");
    let script = folder.join("service.py");
    std::fs::write(&script, SERVICE).unwrap();
    let own = crate::peers::free_port();
    let service = format!("python3 {} {own} {port}", script.display());
    let at_service = format!("http://127.0.0.1:{own}/");
    let refused = format!("{program} bench http://127.0.0.1:9/ -n 3");
    let runs: [(Kind, Vec<&str>); 11] = [
        (
            BENCH,
            words("bench -n 40 --rounds 4").chain([&*url]).collect(),
        ),
        (
            WATCH,
            words("watch -q -- sh -c").chain([&*closed]).collect(),
        ),
        (CHECK, vec!["check", &url]),
        (
            COMPARE,
            words("compare --rounds 2 --")
                .chain([&*closed, "--", &kept])
                .collect(),
        ),
        (
            LAMBDA,
            words("lambda -n 6 --rounds 1 --variants A=1 B=2 -- env")
                .chain([&*called, "python3", function])
                .collect(),
        ),
        (
            FAULT,
            words("watch -q --fault rst,reset-mid-response,black-hole --fault-wait 1s --")
                .chain(["python3", caller, host])
                .collect(),
        ),
        (
            SCENARIO,
            words("bench -n 8 -c 4 --connect-to")
                .chain([&*route, "--scenario", sessions])
                .collect(),
        ),
        (
            FIND_MAX,
            words("bench --keepalive on -c 1 --step 200ms -z 2s --find-max")
                .chain(["p50 < 1s, failed < 5 %", &url])
                .collect(),
        ),
        // nothing listens there
        (
            WATCH,
            words("watch -q -- sh -c").chain([&*refused]).collect(),
        ),
        (BENCH, words("bench -n 3 http://127.0.0.1:9/").collect()),
        // requests of warm-up fail, too; both sides have figures
        (
            BENCH,
            words("bench -c 2 -z 400ms --rounds 2 --service")
                .chain([&*service, &*at_service])
                .collect(),
        ),
    ];
    std::thread::scope(|scope| {
        let made = runs.iter().enumerate().map(|(nth, (kind, words))| {
            scope.spawn(move || {
                let ledger = folder.join(nth.to_string()).display().to_string();
                let (command, rest) = words.split_first().unwrap();
                let words = [&[*command, "--ledger", &ledger], rest].concat();
                let out = intact(&words);
                assert!(Path::new(&ledger).is_dir(), "{words:?}: {out:?}");
                Input {
                    name: format!("ledger of {}", kind.command),
                    words: vec!["report".to_owned(), ledger],
                    kind: *kind,
                }
            })
        });
        let made: Vec<_> = made.collect();
        made.into_iter().map(|run| run.join().unwrap()).collect()
    })
}
