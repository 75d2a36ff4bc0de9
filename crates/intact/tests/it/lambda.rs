//! `intact lambda` as a person runs it, with a runtime client in Python's standard library.

use crate::check_peers::{answer_all, peer};
use crate::link::on_link;
use crate::program::{Schema, Server, exchanges};
use intact_ledger::store::Reader;
use intact_ledger::{FaultEvent, Nanos, Row, Span};
use serde_json::{Value, json};
use std::io::{BufReader, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Answers four times, then ends in the middle of an invocation.
const CLIENT: &str = concat!(
    include_str!("runtime.py"),
    r#"
import itertools, sys
calls = itertools.count()
run(lambda event, id: sys.exit(9) if next(calls) == 4 else None)
"#
);

fn lambda(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_intact"));
    command.arg("lambda").args(words);
    command.output().unwrap()
}

#[test]
fn the_document_of_a_function_is_what_its_schema_says() {
    let schema = Schema::named("lambda");
    let folder = tempfile::tempdir().unwrap();
    let (ledger, csv) = (
        folder.path().join("ledger"),
        folder.path().join("calls.csv"),
    );
    let page = folder.path().join("page.html");
    let [ledger, csv, page] = [ledger, csv, page].map(|path| path.display().to_string());
    let out = lambda(&[
        "--ledger",
        &ledger,
        "--csv",
        &csv,
        "--report",
        &page,
        "-n",
        "12",
        "--rounds",
        "2",
        "--idle",
        "0s,20ms",
        "--json",
        "--variants",
        "A=1",
        "B=2",
        "--",
        "python3",
        "-c",
        CLIENT,
    ]);
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    let document: Value = serde_json::from_slice(&out.stdout).unwrap();
    schema.check(&document);
    assert_eq!(document["counts"]["total"], 24);
    assert_eq!(
        document["requests"]["total"], 0,
        "the Runtime API's are ours"
    );
    let stored = Command::new(env!("CARGO_BIN_EXE_intact"))
        .args(["report", &ledger, "--json"])
        .output()
        .unwrap();
    let stored: Value = serde_json::from_slice(&stored.stdout).unwrap();
    assert_eq!(stored, document, "the ledger tells the same");
    let rows = std::fs::read_to_string(csv).unwrap();
    assert_eq!(rows.lines().count(), 25, "{rows}");
    let page = std::fs::read_to_string(page).unwrap();
    for picture in ["latency", "means", "invocations"] {
        assert!(
            page.contains(&format!("<figure id=\"{picture}-chart\"")),
            "{picture}"
        );
    }
    for variant in document["variants"].as_array().unwrap() {
        assert_eq!(variant["outcomes"]["answered"], 10, "{variant}");
        assert_eq!(variant["outcomes"]["crash"], 2, "{variant}");
        assert_eq!(variant["environments"], 4, "{variant}");
    }
}

/// Names its Runtime API in a file, and responds once the file is gone.
const NAMED: &str = concat!(
    include_str!("runtime.py"),
    r#"
import sys, time
def respond(event, id):
    with open(sys.argv[1] + ".new", "w") as file:
        file.write(os.environ["AWS_LAMBDA_RUNTIME_API"])
    os.rename(sys.argv[1] + ".new", sys.argv[1])
    while os.path.exists(sys.argv[1]):
        time.sleep(0.01)
run(respond)
"#
);

/// Asks for the next invocation.
const INTRUDER: &str = r#"
import http.client, sys
c = http.client.HTTPConnection(sys.argv[1], timeout=5)
try:
    c.request("GET", "/2018-06-01/runtime/invocation/next")
    print(c.getresponse().status)
except (http.client.RemoteDisconnected, ConnectionError):
    print("refused")
"#;

#[test]
fn another_user_gets_no_event() {
    // only root can be another user
    if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let named = folder.path().join("api");
    let path = named.display().to_string();
    let run = std::thread::spawn({
        let path = path.clone();
        move || lambda(&["-n", "1", "--json", "--", "python3", "-c", NAMED, &path])
    });
    let api = loop {
        if let Ok(api) = std::fs::read_to_string(&named) {
            break api;
        }
        assert!(!run.is_finished(), "{:?}", run.join());
        std::thread::yield_now();
    };
    let mut intruder = Command::new("/usr/bin/python3");
    let said = intruder.args(["-c", INTRUDER, &api]).uid(65534).output();
    assert_eq!(said.unwrap().stdout, b"refused\n");
    std::fs::remove_file(&named).unwrap();
    let out = run.join().unwrap();
    let document: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(document["counts"]["total"], 1, "{document}");
    assert_eq!(out.status.code(), Some(0), "{out:?}");
}

#[test]
fn a_function_that_never_responds_has_its_exit_code() {
    let out = lambda(&["-n", "1", "--", "sh", "-c", "exit 3"]);
    assert_eq!(out.status.code(), Some(3));
    let page = String::from_utf8(out.stdout).unwrap();
    assert!(
        page.contains("ended with exit code 3 before it asked"),
        "{page}"
    );
    let out = lambda(&["--", "/no/such/program"]);
    assert_eq!(out.status.code(), Some(127));
}

/// Asks a server once an invocation, over one connection or over a new one each.
const CALLER: &str = concat!(
    include_str!("runtime.py"),
    r#"
kept = None
def ask(event, id):
    global kept
    if kept is None or os.environ["KEEP"] == "0":
        kept = http.client.HTTPConnection("127.0.0.1", int(os.environ["SERVER"]))
    kept.request("GET", "/")
    kept.getresponse().read()
run(ask)
"#
);

/// Responds to every request; how many connections it has taken.
fn server() -> (u16, Arc<AtomicU64>) {
    let taken = Arc::new(AtomicU64::new(0));
    let counted = taken.clone();
    let address = peer(move |stream, _| {
        counted.fetch_add(1, Ordering::Relaxed);
        answer_all(&mut BufReader::new(stream));
    });
    (address.port(), taken)
}

#[test]
fn connections_and_requests_belong_to_the_invocation_that_made_them() {
    let (port, taken) = server();
    let variants = ["0", "1"].map(|keep| format!("KEEP={keep} SERVER={port}"));
    let out = lambda(&[
        "-n",
        "4",
        "--rounds",
        "1",
        "--json",
        "--variants",
        &variants[0],
        &variants[1],
        "--",
        "python3",
        "-c",
        CALLER,
    ]);
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    let document: Value = serde_json::from_slice(&out.stdout).unwrap();
    for (variant, connections) in [(0, [1, 1, 1, 1]), (1, [1, 0, 0, 0])] {
        let ours = document["invocations"].as_array().unwrap().iter();
        let ours: Vec<&Value> = ours.filter(|call| call["variant"] == variant).collect();
        let opened: Vec<&Value> = ours.iter().map(|call| &call["connections"]).collect();
        assert_eq!(opened, connections);
        assert!(ours.iter().all(|call| call["requests"] == 1), "{ours:?}");
        let sum: u64 = connections.iter().sum();
        assert_eq!(document["variants"][variant]["sent"]["connections"], sum);
    }
    assert_eq!(
        taken.load(Ordering::Relaxed),
        5,
        "what the server has counted"
    );
}

#[test]
fn a_finding_names_the_line_of_the_function_that_opened() {
    let (port, _) = server();
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("function.py");
    std::fs::write(&script, CALLER).unwrap();
    let root = folder.path().to_str().unwrap();
    let variant = format!("KEEP=0 SERVER={port}");
    let script = script.to_str().unwrap();
    for (places, is_named) in [("on", true), ("off", false)] {
        let out = lambda(&[
            "-n",
            "4",
            "--rounds",
            "1",
            "--json",
            "--places",
            places,
            "--code-root",
            root,
            "--variants",
            &variant,
            "--",
            "python3",
            script,
        ]);
        assert_eq!(out.status.code(), Some(0), "{out:?}");
        let document: Value = serde_json::from_slice(&out.stdout).unwrap();
        let findings = document["findings"].as_array().unwrap();
        let places = findings.iter().filter_map(|one| one["places"].as_array());
        let files: Vec<&Value> = places.flatten().map(|place| &place["file"]).collect();
        assert_eq!(!files.is_empty(), is_named, "{document}");
        assert!(files.iter().all(|file| *file == "function.py"), "{files:?}");
    }
}

#[test]
fn a_requirement_that_fails_has_its_exit_code() {
    let out = lambda(&[
        "-n",
        "2",
        "--require",
        "connections-per-invocation == 0",
        "--require",
        "invocations < 2",
        "--",
        "python3",
        "-c",
        CLIENT,
    ]);
    assert_eq!(out.status.code(), Some(1), "{out:?}");
    let said = String::from_utf8(out.stderr).unwrap();
    assert!(said.contains("invocations < 2"), "{said}");
}

#[test]
fn a_runtime_client_that_is_missing_is_named() {
    // without site-packages it is not there, installed or not
    let out = lambda(&[
        "-n",
        "1",
        "--",
        "python3",
        "-I",
        "-S",
        "-m",
        "awslambdaric",
        "app.handler",
    ]);
    assert_eq!(out.status.code(), Some(3), "{out:?}");
    let page = String::from_utf8(out.stdout).unwrap();
    assert!(page.contains("pip install awslambdaric"), "{page}");
}

#[test]
fn a_link_that_is_forbidden_is_named_with_what_is_not_emulated() {
    let line = format!(
        "echo 0 > /proc/sys/user/max_net_namespaces && exec {} lambda --link rtt=30ms -- true",
        env!("CARGO_BIN_EXE_intact")
    );
    let out = Command::new("unshare")
        .args(["-Ur", "sh", "-c", &line])
        .output();
    let out = out.expect("util-linux has unshare");
    let said = String::from_utf8(out.stderr).unwrap();
    if said.contains("unshare") {
        // without user namespaces there is no link either, for any user
        assert!(
            on_link(
                &["lambda", "-n", "1", "--link", "rtt=1ms", "--", "true"],
                &said
            )
            .is_none()
        );
        return;
    }
    assert_eq!(out.status.code(), Some(4), "{said}");
    assert!(
        said.contains("not emulated are then the round trip"),
        "{said}"
    );
    assert!(said.contains("user.max_net_namespaces"), "{said}");
}

#[test]
fn a_control_group_that_is_forbidden_is_named_with_the_alternative() {
    let out = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(env!("CARGO_BIN_EXE_intact"))
        .args([
            "lambda",
            "--freeze-with",
            "cgroup",
            "--idle",
            "10ms",
            "-n",
            "2",
        ])
        .args(["--watch", "off", "--", "sleep", "1"])
        .output()
        .expect("util-linux has setpriv");
    let said = String::from_utf8(out.stderr).unwrap();
    if said.contains("setpriv:") {
        // not root: it cannot become another user, and our own rights are the test's
        return;
    }
    assert_eq!(out.status.code(), Some(4), "{said}");
    assert!(said.contains("--freeze-with signals"), "{said}");
}

#[test]
fn connections_that_cannot_be_followed_are_named_with_the_alternative() {
    let intact = env!("CARGO_BIN_EXE_intact");
    let out = Command::new(intact)
        .args([
            "watch", "-q", "--", intact, "lambda", "-n", "1", "--", "true",
        ])
        .output()
        .unwrap();
    let said = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(125), "{said}");
    assert!(said.contains("--watch off"), "{said}");
}

#[test]
fn nothing_outlives_a_platform_that_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("pid");
    let script = format!(
        "echo $$ > {0}.new; mv {0}.new {0}; exec sleep 600",
        note.display()
    );
    let mut platform = Command::new(env!("CARGO_BIN_EXE_intact"))
        .args([
            "lambda",
            "--freeze-with",
            "signals",
            "--init-timeout",
            "600s",
            "--",
            "sh",
            "-c",
            &script,
        ])
        .spawn()
        .unwrap();
    let pid = loop {
        match std::fs::read_to_string(&note) {
            Ok(pid) => break pid.trim().to_owned(),
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    platform.kill().unwrap();
    platform.wait().unwrap();
    // the watcher asks once a second whether we are still there
    let deadline = Instant::now() + Duration::from_secs(60);
    while Path::new("/proc").join(&pid).exists() {
        assert!(Instant::now() < deadline, "process {pid} is still there");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Ends each connection 0.2 s after its first answer.
const SERVER: &str = r#"
import socket, threading, time
def serve(connection):
    connection.recv(100)
    connection.send(b"x")
    time.sleep(0.2)
    connection.close()
listener = socket.create_server(("0.0.0.0", 80))
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],)).start()
"#;

/// Asks that server over one connection, and answers with what it saw.
const KEEPER: &str = concat!(
    include_str!("runtime.py"),
    r#"
import socket
kept = socket.create_connection(("server.test", 80))
def look(event, id):
    try:
        kept.send(b"x")
        seen = "answer" if kept.recv(1) else "FIN"
    except ConnectionResetError:
        seen = "RST"
    return {"errorType": "Seen", "errorMessage": seen}
run(look)
"#
);

/// What the function saw before the freeze, and after one that the server's limit does not outlive;
/// and what we say became of its connection.
fn seen(freeze: &str) -> Option<(Vec<String>, Value)> {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("server.py");
    std::fs::write(&script, SERVER).unwrap();
    let server = format!("exec python3 {}", script.display());
    let out = on_link(
        &[
            "lambda", "-n", "2", "--link", "rtt=20ms", "--idle", "1s", "--freeze", freeze,
            "--server", &server, "--json", "--", "python3", "-c", KEEPER,
        ],
        "lambda on a link",
    )?;
    let document: Value =
        serde_json::from_slice(&out.stdout).unwrap_or_else(|error| panic!("{error}: {out:?}"));
    assert_eq!(document["run"]["link"], "rtt=20ms");
    let calls = document["invocations"].as_array().unwrap();
    let seen = calls
        .iter()
        .map(|call| call["detail"].as_str().unwrap().to_owned())
        .collect();
    Some((seen, calls[1]["freeze"].clone()))
}

#[test]
fn stopped_processes_find_the_fin_that_their_kernel_took() {
    if let Some((seen, pause)) = seen("processes") {
        assert_eq!(seen, ["Seen: answer", "Seen: FIN"]);
        assert_eq!(pause["connection_states"], json!(["fin-seen"]));
        assert_eq!(pause["effect"], "failed");
    }
}

#[test]
fn a_frozen_machine_misses_the_fin_and_is_reset() {
    if let Some((seen, pause)) = seen("machine") {
        assert_eq!(seen, ["Seen: answer", "Seen: RST"]);
        assert_eq!(pause["connection_states"], json!(["reset"]));
        assert_eq!(pause["effect"], "failed");
        assert_eq!(pause["dead_use"], "sent");
    }
}

/// Reads what a kept connection has before it writes, as Node does, and fails on its end, or with a
/// second argument drops it.
const READS_FIRST: &str = concat!(
    include_str!("runtime.py"),
    r#"
import select, sys
kept = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
def ask(event, id):
    if kept.sock and select.select([kept.sock], [], [], 0)[0]:
        kept.close()
        if not sys.argv[2:]:
            return {"errorType": "ECONNRESET", "errorMessage": "socket hang up"}
    kept.request("GET", "/")
    kept.getresponse().read()
run(ask)
"#
);

/// A server whose connections end 300 ms after their first response.
fn server_of_one_response() -> String {
    let address = peer(move |mut stream, _| {
        let mut request = [0; 4096];
        let _ = stream.read(&mut request);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
        std::thread::sleep(Duration::from_millis(300));
    });
    address.port().to_string()
}

#[test]
fn the_printed_gate_passes_on_the_printed_remedy_for_a_freeze() {
    let port = server_of_one_response();
    let program = ["--", "python3", "-c", READS_FIRST, &port];
    let freezes = ["-n", "2", "--idle", "1s"];
    let gate = ["--require", "findings.died-in-freeze == 0"];
    let options = [&freezes[..], &gate, &["--fail-on", "warning"]].concat();
    let sick = lambda(&[&options[..], &program].concat());
    let page = String::from_utf8(sick.stdout).unwrap();
    assert_eq!(sick.status.code(), Some(1), "{page}");
    assert!(
        page.contains(&format!("intact lambda {}", freezes.join(" "))),
        "{page}"
    );
    assert!(
        page.contains(&format!("{} '{}' -- python3", gate[0], gate[1])),
        "{page}"
    );
    let fixed = lambda(&[&options[..], &program, &["again"]].concat());
    assert_eq!(fixed.status.code(), Some(0), "{fixed:?}");
}

#[test]
fn a_connection_that_died_in_a_freeze_and_failed_an_invocation_meets_no_gate() {
    let port = server_of_one_response();
    let gates = [
        ["--require", "stale == 0"],
        ["--require", "failed == 0"],
        ["--fail-on", "error"],
    ];
    for [option, gate] in gates {
        let out = lambda(&[
            "-n",
            "2",
            "--idle",
            "1s",
            option,
            gate,
            "--",
            "python3",
            "-c",
            READS_FIRST,
            &port,
        ]);
        let page = String::from_utf8(out.stdout).unwrap();
        assert_eq!(out.status.code(), Some(1), "{gate}: {page}");
        assert!(page.contains("[died-in-freeze]"), "{page}");
        assert!(!page.contains("Raise the server's idle limit"), "{page}");
    }
}

/// Sends a POST once an invocation on a kept connection, and reports an error where it fails.
const ORDERER: &str = concat!(
    include_str!("runtime.py"),
    r#"
kept = http.client.HTTPConnection("127.0.0.1", int(os.environ["SERVER"]))
def order(event, id):
    try:
        kept.request("POST", "/" + id, body=b"order")
        kept.getresponse().read()
    except (OSError, http.client.HTTPException):
        kept.close()
        return {"errorType": "Failed", "errorMessage": "order"}
run(order)
"#
);

/// The strikes of a variant that fell into a freeze, and all of them.
fn strikes(ledger: &Path, variant: u32) -> [usize; 2] {
    let rows: Vec<Row> = Reader::open(ledger).unwrap().events().unwrap().collect();
    let freezes: Vec<Span> = rows
        .iter()
        .filter_map(|row| match row {
            Row::Invocation(one) if one.variant == Some(variant) => one.frozen,
            _ => None,
        })
        .collect();
    let strikes = rows.iter().filter_map(|row| match row {
        Row::Fault(fault) => match &**fault {
            FaultEvent::Struck(strike) if strike.variant == Some(variant) => Some(strike.at),
            _ => None,
        },
        _ => None,
    });
    let strikes: Vec<Nanos> = strikes.collect();
    let is_frozen = |at: &&Nanos| freezes.iter().any(|one| (one.start..one.end).contains(at));
    [strikes.iter().filter(is_frozen).count(), strikes.len()]
}

#[test]
fn a_fault_strikes_across_a_freeze_and_the_card_says_what_the_function_did() {
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("ledger");
    let caller = ["env", &format!("SERVER={}", server.plain_port())].map(str::to_owned);
    let out = lambda(&[
        "-n",
        "3",
        "--idle",
        "2s",
        "--timeout",
        "3s",
        "--fault",
        "none,stale,black-hole",
        "--ledger",
        ledger.to_str().unwrap(),
        "--require",
        "fault.stale: duplicated == 0",
        "--json",
        "--",
        &caller[0],
        &caller[1],
        "python3",
        "-c",
        ORDERER,
    ]);
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    let card: Value = serde_json::from_slice(&out.stdout).unwrap();
    Schema::named("fault").check(&card);
    let invocations: Vec<&Value> = card["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| &run["invocations"])
        .collect();
    let of = |failed, timed_out| json!({"made": 3, "failed": failed, "timed_out": timed_out});
    assert_eq!(invocations, [&of(0, 0), &of(1, 0), &of(1, 1)], "{card}");
    let [stale, hole] = &card["cells"].as_array().unwrap()[..] else {
        panic!("{card}");
    };
    assert_eq!(stale["outcome"], "failed", "{stale}");
    assert_eq!(hole["outcome"], "hung", "{hole}");
    let hung = &hole["bounds"]["hung_ms"];
    assert!(
        hole["hung_ms"].is_null() && hung["low"].is_number() && hung["high"].is_null(),
        "only the function's limit ended it: {hole}"
    );
    assert_eq!(
        strikes(&ledger, 1),
        [1, 1],
        "an idle connection is struck in a freeze"
    );
    // the platform replaced the environment, and the first connection of each is struck
    // the run of one connection between both was left out
    assert_eq!(strikes(&ledger, 3)[1], 2);
    let reached = [stale, hole].map(|cell| {
        let reached = &cell["reached"];
        let low = &cell["bounds"]["reached"]["low"];
        reached.as_u64().or(low.as_u64()).unwrap()
    });
    let served: u64 = server.end()["cells"]
        .as_array()
        .unwrap()
        .iter()
        .map(exchanges)
        .sum();
    assert_eq!(served, 3 + reached.iter().sum::<u64>(), "{card}");
    let again = Command::new(env!("CARGO_BIN_EXE_intact"))
        .args(["report", ledger.to_str().unwrap(), "--json"])
        .output()
        .unwrap();
    let again: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(
        again["cells"], card["cells"],
        "the ledger has the same card"
    );
}

#[test]
fn a_fault_without_a_freeze_or_a_relay_is_refused_with_the_remedy() {
    for (words, remedy) in [
        (&["--fault", "stale"][..], "--idle 1s"),
        (&["--fault", "none", "--idle", "1s"], "--fault none,rst"),
        (
            &["--fault", "rst", "--idle", "1s", "--watch", "off"],
            "--watch off",
        ),
        (
            &["--fault", "rst", "--idle", "1s", "--variants", "A=1", "B=1"],
            "one function",
        ),
    ] {
        let out = lambda(&[words, &["--", "true"]].concat());
        let text = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(2), "{words:?}: {text}");
        assert!(text.contains(remedy), "{words:?}: {text}");
    }
}
