//! What `watch --pid` and `--mode passthrough` can miss: connections that end before their owner is
//! seen, and processes whose sockets cannot be listed. Each is a caveat that says that the record
//! is incomplete. Where the kernel's trace of connects may be read, no connection is too short.

use super::refused::{open_to_all, page};
use super::semantics::{NOBODY, PYTHON, Stage, is_root, run, text};
use super::watch;
use crate::peers::{program, skip};
use crate::program::{ReadyProgram, Server, intact};
use intact_ledger::Caveat;
use serde_json::Value;
use std::process::Command;

fn caveats(document: &Value) -> Vec<Caveat> {
    serde_json::from_value(document["caveats"].clone()).unwrap()
}

fn named<'a>(caveats: &'a [Caveat], id: &str) -> &'a Caveat {
    let mut named = caveats.iter().filter(|one| one.id == id);
    match (named.next(), named.next()) {
        (Some(one), None) => one,
        _ => panic!("{id}: {caveats:?}"),
    }
}

/// No caveat reports missing connections; that their content cannot be seen is another matter.
fn assert_has_all_connections(caveats: &[Caveat]) {
    let is_whole = |one: &Caveat| !one.incomplete || one.id == "cannot-see-inside";
    assert!(caveats.iter().all(is_whole), "{caveats:?}");
}

/// A program that opens a connection every 20 ms, and closes it at once.
const SHORT: &str = "
import select, socket, sys
print('ready', flush=True)
while not select.select([sys.stdin], [], [], 0.02)[0]:
    with socket.create_connection(('127.0.0.1', int(sys.argv[1]))) as stream:
        stream.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n')
        stream.recv(1000)
";

#[test]
fn connections_that_are_shorter_than_the_time_between_two_looks_are_said_to_be_missing() {
    let what = "watch --pid of short connections";
    if program("python3", what).is_none() {
        return;
    }
    let server = Server::start(&[]);
    let stage = Stage::set();
    stage.write("short.py", SHORT);
    // root may read the kernel's trace, which misses none
    let (user, group) = (format!("--reuid={NOBODY}"), format!("--regid={NOBODY}"));
    let nobody = ["setpriv", &user, &group, "--clear-groups"];
    let start: &[&str] = if is_root() { &nobody } else { &[] };
    let (script, intact, port) = (
        stage.path("short.py"),
        stage.path("intact"),
        server.plain_port(),
    );
    let running = ReadyProgram::start(&[start, &[PYTHON, text(&script), &port]].concat());
    let id = running.id();
    for whom in [&["--pid", &id][..], &["--all"]] {
        for gate in ["avoidable == 0", "connections <= 1"] {
            let folder = tempfile::tempdir().unwrap();
            open_to_all(folder.path());
            let json = folder.path().join("watch.json");
            let option = format!("--json={}", text(&json));
            let gates = ["--require", gate, "--fail-on", "warning"];
            let words = [text(&intact), "watch", "--for", "1s", &option];
            let words = [start, &words, &gates, whom].concat();
            let out = run(Command::new(words[0])
                .args(&words[1..])
                .env("NO_COLOR", "1"));
            assert_eq!(out.status.code(), Some(1), "{words:?}: {out:?}");
            let document: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
            let all = caveats(&document);
            let sampled = named(&all, "unwatched-short");
            assert!(sampled.incomplete, "{sampled:?}");
            let words = "sockets are looked up every 10 ms";
            assert!(sampled.message.starts_with(words), "{sampled:?}");
            let page = page(&out);
            for words in [
                words,
                "The kernel's trace of connects would show them: it needs root or CAP_PERFMON",
                &format!("NOT met: {gate}"),
                "--fail-on: findings may be missing",
            ] {
                assert!(page.contains(words), "{words}: {page}");
            }
            assert!(!page.contains("nothing was measured"), "{page}");
            // seen or not, every connection is in a count; a loaded machine makes fewer
            let gone = sampled.message.split_whitespace();
            let gone: Vec<u64> = gone.filter_map(|word| word.parse().ok()).collect();
            let opened = document["connections"]["bounds"]["opened"]["low"].as_u64();
            let opened = opened.unwrap_or(0);
            assert!(opened + gone[gone.len() - 1] >= 10, "{opened}: {sampled:?}");
        }
    }
}

/// Waits for a line, then opens a connection every 20 ms, half of them in children.
const TRACED: &str = "
import os, socket, sys, time
print('ready', flush=True)
sys.stdin.readline()
def ask():
    with socket.create_connection(('127.0.0.1', int(sys.argv[1]))) as stream:
        stream.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n')
        stream.recv(1000)
for number in range(40):
    time.sleep(0.02)
    child = os.fork() if number % 2 else -1
    if child <= 0: ask()
    if child == 0: os._exit(0)
    if child > 0: os.waitpid(child, 0)
";

/// Whether a process reads a trace of the kernel, on each processor.
fn is_tracing(process: u32) -> bool {
    let entries = std::fs::read_dir(format!("/proc/{process}/fd"));
    let rings = entries.into_iter().flatten().flatten().filter(|entry| {
        let target = std::fs::read_link(entry.path());
        target.is_ok_and(|target| text(&target).contains("perf_event"))
    });
    rings.count() >= std::thread::available_parallelism().map_or(1, usize::from)
}

#[test]
fn the_kernels_trace_counts_connections_of_any_length_and_of_children() {
    let what = "watch --pid with the kernel's trace";
    if program("python3", what).is_none() {
        return;
    }
    if !is_root() {
        return skip(what, "only root may read the kernel's trace");
    }
    let server = Server::start(&[]);
    let port = server.plain_port();
    // another program's connections are not counted
    let other = ReadyProgram::start(&[PYTHON, "-c", SHORT, &port]);
    let quiet = ReadyProgram::start(&["sh", "-c", "echo ready; read line"]);
    // the trace misses nothing, so that none is known to be none
    let none: &[&str] = &["connections == 0", "--allow-empty"];
    let some = &["connections == 40"][..];
    for (mode, by, followed, gate) in [
        ("passthrough", "observed-by-trace", true, some),
        ("passthrough", "observed-by-trace", false, none),
        ("auto", "observed-by-packets", true, some),
        ("auto", "observed-by-packets", false, none),
    ] {
        let mut running = ReadyProgram::start(&[PYTHON, "-c", TRACED, &port]);
        let id = if followed { running.id() } else { quiet.id() };
        let folder = tempfile::tempdir().unwrap();
        let json = folder.path().join("watch.json");
        let option = format!("--json={}", text(&json));
        let words = ["watch", "--mode", mode, "--pid", &id, &option, "--require"];
        let words = [&words, gate].concat();
        // a quiet program is followed until the busy one has ended
        let limit: &[&str] = if followed { &[] } else { &["--for", "2s"] };
        let mut watcher = Command::new(env!("CARGO_BIN_EXE_intact"))
            .args(words)
            .args(limit)
            .env("NO_COLOR", "1")
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while !is_tracing(watcher.id()) {
            if std::time::Instant::now() > deadline {
                watcher.kill().unwrap();
                panic!("no trace: {:?}", watcher.wait_with_output());
            }
            std::thread::yield_now();
        }
        running.go_on();
        let out = watcher.wait_with_output().unwrap();
        let page = page(&out);
        assert_eq!(out.status.code(), Some(0), "{page}");
        let document: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
        let opened = if followed { 40 } else { 0 };
        assert_eq!(document["connections"]["opened"], opened, "{page}");
        let all = caveats(&document);
        assert_has_all_connections(&all);
        assert!(!named(&all, by).incomplete, "{all:?}");
    }
    drop(other);
}

/// Runs a server and its client in a network namespace of their own, where nothing else opens
/// sockets, and follows the client, which opens three connections and closes each at once (`short`)
/// or after 3 s.
const ALONE: &str = "
import os, signal, socket, subprocess, sys, time
subprocess.run(['ip', 'link', 'set', 'lo', 'up'], check=True)
folder, intact, kind = sys.argv[1:]
listener = socket.create_server(('127.0.0.1', 0))
client = '''
import socket, sys, time
print('ready', flush=True)
sys.stdin.readline()
held = []
for _ in range(3):
    held.append(socket.create_connection(('127.0.0.1', int(sys.argv[1]))))
    if sys.argv[2] == 'short':
        held.pop().close()
# on a busy machine the looks are hundreds of milliseconds apart
time.sleep(0 if sys.argv[2] == 'short' else 3)
while held:
    held.pop().close()
sys.stdin.readline()
'''
program = subprocess.Popen([sys.executable, '-c', client, str(listener.getsockname()[1]), kind],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
program.stdout.readline()
words = [intact, 'watch', '-q', '--ledger', folder + '/ledger', '--pid', str(program.pid), '--json=' + folder + '/pid.json',
    '--mode', 'passthrough', '--require', 'connections <= 3']
watcher = subprocess.Popen(words)
# the ledger is there just before the first look
while not os.path.exists(folder + '/ledger/run.json'):
    time.sleep(0.01)
time.sleep(0.3)
if kind == 'short':
    # it does not look while the sockets are there
    watcher.send_signal(signal.SIGSTOP)
program.stdin.write('\\n')
program.stdin.flush()
accepted = [listener.accept()[0] for _ in range(3)]
for one in accepted:
    one.recv(1)
    one.close()
time.sleep(0.3)
watcher.send_signal(signal.SIGCONT)
time.sleep(0.3)
program.stdin.close()
program.wait()
sys.exit(watcher.wait())
";

#[test]
fn the_record_is_complete_where_the_owner_of_every_socket_that_ended_was_seen() {
    let what = "watch --pid alone";
    if program("python3", what).is_none() || program("unshare", what).is_none() {
        return;
    }
    let spaces = ["--user", "--map-root-user", "--net"];
    for kind in ["long", "short"] {
        let folder = tempfile::tempdir().unwrap();
        let out = Command::new("unshare")
            .args(spaces)
            .args([PYTHON, "-c", ALONE, text(folder.path())])
            .args([env!("CARGO_BIN_EXE_intact"), kind])
            .output()
            .unwrap();
        let code = i32::from(kind == "short");
        assert_eq!(out.status.code(), Some(code), "{kind}: {out:?}");
        let text = std::fs::read(folder.path().join("pid.json")).unwrap();
        let document: Value = serde_json::from_slice(&text).unwrap();
        let all = caveats(&document);
        if kind == "long" {
            assert_eq!(document["connections"]["opened"], 3, "{document}");
            assert_has_all_connections(&all);
        } else {
            assert!(named(&all, "unwatched-short").incomplete, "{all:?}");
        }
    }
}

#[test]
fn a_process_in_another_network_namespace_is_said_to_be_unseen() {
    let what = "watch --pid across namespaces";
    if program("unshare", what).is_none() {
        return;
    }
    let script = "echo ready; cat";
    let running = ReadyProgram::start(&[
        "unshare",
        "--user",
        "--map-root-user",
        "--net",
        "sh",
        "-c",
        script,
    ]);
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("watch.json");
    let option = format!("--json={}", text(&json));
    // the first decides where we look
    let ours = ReadyProgram::start(&["sh", "-c", script]);
    let ids = format!("{},{}", ours.id(), running.id());
    let out = intact(&["watch", "--pid", &ids, "--for", "50ms", &option]);
    let document: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    let all = caveats(&document);
    let hidden = named(&all, "unwatched-other-namespace");
    assert!(hidden.incomplete, "{hidden:?}");
    let page = page(&out);
    assert!(page.contains("another network namespace hides"), "{page}");
    assert!(!page.contains("nothing was measured"), "{page}");
}

#[test]
fn a_descendant_that_cannot_be_inspected_is_said_to_be_unseen() {
    let what = "watch --pid of an undumpable descendant";
    if program("python3", what).is_none() {
        return;
    }
    if !is_root() {
        return skip(what, "only root can become another user");
    }
    let stage = Stage::set();
    // the child inherits the standard input, so that it ends with the test
    stage.write(
        "parent.py",
        "
import ctypes, os, sys
if os.fork() == 0:
    ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
    print('ready', flush=True)
sys.stdin.read()
",
    );
    let (user, group) = (format!("--reuid={NOBODY}"), format!("--regid={NOBODY}"));
    let nobody = ["setpriv", &user, &group, "--clear-groups"];
    let script = stage.path("parent.py");
    let running = ReadyProgram::start(&[&nobody[..], &[PYTHON, text(&script)]].concat());
    let folder = tempfile::tempdir().unwrap();
    open_to_all(folder.path());
    let json = folder.path().join("watch.json");
    let (binary, id) = (stage.path("intact"), running.id());
    let option = format!("--json={}", text(&json));
    let words = [
        text(&binary),
        "watch",
        "--pid",
        &id,
        "--for",
        "2500ms",
        &option,
    ];
    let words = [&nobody[..], &words].concat();
    let out = run(Command::new(words[0]).args(&words[1..]));
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    let document: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    let all = caveats(&document);
    let hidden = named(&all, "unwatched-unreadable");
    assert!(hidden.incomplete, "{hidden:?}");
}

#[test]
fn short_connections_of_a_launched_program_are_all_counted_from_outside() {
    if program("python3", "watch --mode passthrough of short connections").is_none() {
        return;
    }
    let server = Server::start(&[]);
    let script = "
import socket, sys
for _ in range(100):
    with socket.create_connection(('127.0.0.1', int(sys.argv[1]))) as stream:
        stream.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n')
        stream.recv(1000)
";
    let (_, document) = watch(
        &["--mode", "passthrough"],
        &[PYTHON, "-c", script, &server.plain_port()],
    );
    assert_eq!(document["connections"]["opened"], 100, "{document}");
    let all = caveats(&document);
    assert_has_all_connections(&all);
}

#[test]
fn a_socket_that_is_connected_again_hides_its_first_connection_from_outside() {
    if program("python3", "watch --mode passthrough of a socket used again").is_none() {
        return;
    }
    let server = Server::start(&[]);
    let script = "
import ctypes, socket, struct, sys
place = ('127.0.0.1', int(sys.argv[1]))
one = socket.create_connection(place)
ctypes.CDLL(None).connect(one.fileno(), struct.pack('H14x', 0), 16)
one.connect(place)
one.close()
";
    let command = [PYTHON, "-c", script, &server.plain_port()];
    let (_, document) = watch(&["--mode", "passthrough"], &command);
    let all = caveats(&document);
    let missed = named(&all, "outside-missed");
    assert!(missed.incomplete, "{missed:?}");
    assert_eq!(
        document["connections"]["bounds"]["opened"]["low"], 1,
        "{document}"
    );
    let (_, relayed) = watch(&[], &command);
    assert_eq!(relayed["connections"]["opened"], 2, "{relayed}");
    assert_has_all_connections(&caveats(&relayed));
}

#[test]
fn a_connect_that_is_repeated_for_its_error_hides_nothing() {
    if program("python3", "watch --mode passthrough of a repeated connect").is_none() {
        return;
    }
    let script = "
import socket, time
one = socket.socket()
one.setblocking(False)
for _ in range(2):
    print(one.connect_ex(('127.0.0.1', 1)) != 0)
    time.sleep(0.05)
";
    let (out, document) = watch(&["--mode", "passthrough"], &[PYTHON, "-c", script]);
    assert_eq!(out.stdout, b"True\nTrue\n", "{out:?}");
    let all = caveats(&document);
    assert_has_all_connections(&all);
}
