//! What a person sees of `watch` itself: exit codes, signals, streams, what is left behind.

use super::watch;
use crate::peers::program;
use crate::program::{ReadyProgram, Server, intact};
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdout, Command, Stdio};

/// The text of a page, or of an error.
fn words(out: &std::process::Output) -> String {
    String::from_utf8(out.stderr.clone()).unwrap()
}

/// The first line that a child prints, and where the others come.
fn first_line(child: &mut Child) -> (String, BufReader<ChildStdout>) {
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    (line, out)
}

#[test]
fn exit_codes_are_the_programs_own_or_those_of_a_wrapper() {
    for (script, code) in [("exit 0", 0), ("exit 42", 42), ("kill -TERM $$", 143)] {
        let out = intact(&["watch", "-q", "--", "sh", "-c", script]);
        assert_eq!(out.status.code(), Some(code), "{script}: {out:?}");
        assert!(out.stderr.is_empty(), "{out:?}");
    }
    let missing = intact(&["watch", "--", "no-such-program-anywhere"]);
    assert_eq!(missing.status.code(), Some(127));
    assert!(words(&missing).contains("not found"), "{missing:?}");
    let data = intact(&["watch", "--", "/etc/passwd"]);
    assert_eq!(data.status.code(), Some(126));
    let nothing = intact(&["watch"]);
    assert_eq!(nothing.status.code(), Some(2));
    let ledger = intact(&["watch", "--ledger", "/proc/nowhere", "--", "true"]);
    assert_eq!(ledger.status.code(), Some(125), "{ledger:?}");
}

#[test]
fn a_watch_within_a_watch_says_so() {
    let binary = env!("CARGO_BIN_EXE_intact");
    let out = intact(&["watch", "-q", "--", binary, "watch", "--", "true"]);
    assert_eq!(out.status.code(), Some(125), "{out:?}");
    assert!(words(&out).contains("cannot watch another"), "{out:?}");
}

#[test]
fn a_failed_requirement_is_printed_and_is_the_exit_code() {
    let out = intact(&["watch", "-q", "--require", "connections > 3", "--", "true"]);
    assert_eq!(out.status.code(), Some(1), "{out:?}");
    assert!(words(&out).contains("connections"), "{out:?}");
    let own = intact(&["watch", "-q", "--require", "connections > 3", "--", "false"]);
    assert_eq!(own.status.code(), Some(1));
    let unknown = intact(&["watch", "--require", "nonsense > 3", "--", "true"]);
    assert_eq!(unknown.status.code(), Some(2));
}

#[test]
fn a_signal_reaches_the_program_and_the_report_is_still_made() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("ledger");
    let mut child = Command::new(env!("CARGO_BIN_EXE_intact"))
        .args([
            "watch",
            "--ledger",
            ledger.to_str().unwrap(),
            "--",
            "sh",
            "-c",
        ])
        .arg("trap 'echo told; exit 7' TERM; echo ready; while :; do sleep 0.05; done")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (line, mut out) = first_line(&mut child);
    assert_eq!(line, "ready\n");
    crate::program::signal(child.id(), "-TERM");
    let rest = std::io::read_to_string(&mut out).unwrap();
    assert_eq!(rest, "told\n");
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(7));
    assert!(
        words(&ended).contains("No connection was opened"),
        "{ended:?}"
    );
    assert!(ledger.join("tally.json").exists());
}

#[test]
fn after_a_kill_nine_no_key_log_is_left_and_the_ledger_can_be_read() {
    if program("curl", "watch killed").is_none() {
        return;
    }
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("ledger");
    let script = format!(
        "curl -s -o /dev/null {url}; sleep 1.5; curl -s -o /dev/null {url}; sleep 1.5; echo $SSLKEYLOGFILE; exec sleep 60",
        url = server.plain()
    );
    let mut child = Command::new(env!("CARGO_BIN_EXE_intact"))
        .args([
            "watch",
            "--keys",
            "on",
            "--ledger",
            ledger.to_str().unwrap(),
        ])
        .args(["--", "sh", "-c", &script])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (line, _out) = first_line(&mut child);
    let keys = std::path::PathBuf::from(line.trim());
    assert!(keys.exists(), "{line:?}");
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    let secret_dir = keys.parent().unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while secret_dir.exists() {
        assert!(
            std::time::Instant::now() < deadline,
            "{keys:?} is still there"
        );
        std::thread::yield_now();
    }
    let report = intact(&["report", "--json", ledger.to_str().unwrap()]);
    assert!(report.status.success(), "{report:?}");
    let facts: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
    assert_eq!(facts["requests"]["bounds"]["total"]["low"], 2, "{facts}");
}

#[test]
fn after_a_kill_nine_the_program_goes_on() {
    if program("python3", "watch killed beside a program").is_none() {
        return;
    }
    let server = Server::start(&[]);
    let script = "
import socket, sys
place = ('127.0.0.1', int(sys.argv[1]))
def ask():
    with socket.create_connection(place) as stream:
        stream.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n')
        answer = stream.makefile('rb').readline().split()[1].decode()
        return f'{answer} {stream.getpeername() == place}'
print(ask(), flush=True)
sys.stdin.readline()
print(ask())
sys.exit(7)
";
    let wrapped = format!("python3 -c \"$0\" {}; echo $?", port_of(&server.plain()));
    let mut child = Command::new(env!("CARGO_BIN_EXE_intact"))
        .args(["watch", "-q", "--", "sh", "-c", &wrapped, script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (line, mut out) = first_line(&mut child);
    assert_eq!(line, "200 True\n");
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    drop(child.stdin.take());
    let rest = std::io::read_to_string(&mut out).unwrap();
    assert_eq!(rest, "200 True\n7\n");
}

fn port_of(url: &str) -> &str {
    url.trim_end_matches('/').rsplit(':').next().unwrap()
}

#[test]
fn a_refused_connection_is_a_failed_dial() {
    if program("curl", "watch of a refusal").is_none() {
        return;
    }
    let (out, facts) = watch(&[], &["curl", "-s", "http://127.0.0.1:1/"]);
    assert_eq!(out.status.code(), Some(7));
    assert_eq!(facts["connections"]["failed"]["refused"], 1, "{facts}");
    assert_eq!(facts["connections"]["opened"], 0);
}

#[test]
fn connections_to_unix_sockets_are_named_and_never_read_as_none() {
    if program("python3", "watch of Unix sockets").is_none() {
        return;
    }
    let script = "
import os, socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()
for _ in range(3):
    socket.socket(socket.AF_UNIX).connect(sys.argv[1])
try:
    socket.socket(socket.AF_UNIX).connect(sys.argv[1] + '-missing')
except FileNotFoundError:
    pass
";
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("service");
    let socket = socket.to_str().unwrap();
    let gate = ["--require", "avoidable == 0"];
    let out = intact(
        &[
            &["watch"][..],
            &gate,
            &["--", "python3", "-c", script, socket],
        ]
        .concat(),
    );
    let page = String::from_utf8_lossy(&out.stderr).replace(char::is_whitespace, "");
    let words =
        format!("NoTCPconnectionwasopened;connectionstoUnixsocketsarenotwatched:{socket}(3)");
    assert!(page.contains(&words), "{page}");
    assert_eq!(out.status.code(), Some(1), "{page}");
}

#[test]
fn datagrams_are_named_and_never_read_as_no_traffic() {
    if program("python3", "watch of UDP").is_none() {
        return;
    }
    let script = "
import socket, sys
peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
peer.bind(('127.0.0.1', 0))
print(peer.getsockname()[1])
for size in 1200, 0, 1200:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.connect(peer.getsockname())
        if size:
            client.send(b'x' * size)
            peer.sendto(b'y', peer.recvfrom(2000)[1])
            client.recv(2000)
";
    let gate = ["watch", "--require", "avoidable == 0", "--"];
    let out = intact(&[&gate[..], &["python3", "-c", script]].concat());
    let page = String::from_utf8_lossy(&out.stderr).replace(char::is_whitespace, "");
    let port = String::from_utf8_lossy(&out.stdout).trim().to_owned();
    let words =
        format!("NoTCPconnectionwasopened;UDPisnotwatched,andHTTP/3usesit:127.0.0.1:{port}(2)");
    assert!(page.contains(&words), "{page}");
    assert_eq!(out.status.code(), Some(1), "{page}");
}

/// The program itself succeeds, so the exit code is that of the gate.
#[test]
fn no_gate_passes_where_no_connection_could_be_opened_or_none_was_wanted() {
    if program("curl", "watch of a refusal").is_none() {
        return;
    }
    let refused = "curl -s http://127.0.0.1:1/ || true";
    for (script, reason) in [
        (refused, "no connection could be opened"),
        ("true", "no request and no connection was observed"),
    ] {
        for gate in ["avoidable == 0", "failed == 0", "connections-failed <= 1"] {
            let out = intact(&["watch", "--require", gate, "--", "sh", "-c", script]);
            let page = String::from_utf8_lossy(&out.stderr);
            assert_eq!(out.status.code(), Some(1), "{gate}: {page}");
            assert!(page.contains(reason), "{gate}: {page}");
        }
    }
    let out = intact(&["watch", "--fail-on", "error", "--", "sh", "-c", refused]);
    assert_eq!(out.status.code(), Some(1), "{out:?}");
}

#[test]
fn a_running_program_is_followed_from_outside() {
    if program("python3", "watch --pid").is_none() {
        return;
    }
    // the accepting side is the program's own too, and is not counted
    let script = "
import socket, sys
listener = socket.create_server(('127.0.0.1', 0))
held = [socket.create_connection(listener.getsockname()) for _ in range(5)]
held += [listener.accept() for _ in range(5)]
print('ready', flush=True)
sys.stdin.read()
";
    let running = ReadyProgram::start(&["python3", "-c", script]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("watch.json");
    let (pid, json) = (running.id(), format!("--json={}", path.display()));
    let words = ["watch", "-q", "--mode", "passthrough", "--pid", &pid];
    let out = intact(&[&words[..], &["--for", "300ms", &json]].concat());
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    let facts: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    // they were open before
    assert_eq!(facts["connections"]["opened"], 0, "{facts}");
    assert_eq!(facts["totals"]["open_before"], 5, "{facts}");
    let verdict = facts["verdict"][0].as_str().unwrap();
    assert!(
        verdict.contains("5 connections were open before the recording"),
        "{verdict}"
    );
    let caveats = facts["caveats"].to_string();
    assert!(
        caveats.contains("it is unknown when they were opened: 5\""),
        "{caveats}"
    );
    drop(running);
    let gone = intact(&["watch", "--pid", &pid]);
    assert_eq!(gone.status.code(), Some(3), "{gone:?}");
}
