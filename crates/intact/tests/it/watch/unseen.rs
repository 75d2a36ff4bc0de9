//! Connections that the program has and was never seen to make are counted as unwatched, and those
//! that are not followed; those that it made as usual, or accepted, are not.

use super::watch;
use crate::peers::{program, skip};
use crate::program::Server;
use serde_json::Value;
use std::net::TcpStream;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Command, Output, Stdio};

/// Connects, and starts a command that inherits the socket; its number is the last word.
const PARENT: &str = "
import socket, subprocess, sys
own = socket.create_connection(('127.0.0.1', int(sys.argv[1])))
sys.exit(subprocess.run([*sys.argv[2:], str(own.fileno())], pass_fds=[own.fileno()]).returncode)
";

/// Speaks on the socket that it has inherited and on thirty of its own, accepts one more, and stays
/// for a while.
const CHILD: &str = "
import socket, sys, time
port, inherited = int(sys.argv[1]), socket.socket(fileno=int(sys.argv[2]))
own = [socket.create_connection(('127.0.0.1', port)) for _ in range(30)]
for one in [inherited, *own]:
    one.sendall(b'GET / HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n')
    one.recv(1000)
listener = socket.create_server(('127.0.0.1', 0))
other = socket.create_connection(listener.getsockname())
accepted = listener.accept()
time.sleep(1.5)
";

#[test]
fn a_connection_that_was_inherited_is_counted_as_unwatched_and_no_other() {
    if program("python3", "watch an inherited connection").is_none() {
        return;
    }
    for mode in ["relay", "passthrough"] {
        let server = Server::start(&[]);
        let port = server.plain_port();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("watch.json");
        let json = format!("--json={}", path.display());
        let out = Command::new("python3")
            .args(["-c", PARENT, &port, env!("CARGO_BIN_EXE_intact"), "watch"])
            .args(["-q", "--mode", mode, &json, "--"])
            .args(["python3", "-c", CHILD, &port])
            .output()
            .unwrap();
        assert!(out.status.success() && out.stderr.is_empty(), "{out:?}");
        let document: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let opened = &document["connections"]["bounds"]["opened"]["low"];
        assert_eq!(*opened, 31, "{mode}: {document}");
        let caveats = document["caveats"].as_array().unwrap();
        let unseen: Vec<&str> = caveats
            .iter()
            .filter(|one| one["id"] == "unwatched-unseen")
            .map(|one| one["message"].as_str().unwrap())
            .collect();
        assert_eq!(unseen.len(), 1, "{mode}: {caveats:?}");
        assert!(
            unseen[0].starts_with("one connection was not watched"),
            "{mode}: {unseen:?}"
        );
    }
}

#[test]
fn connections_of_multipath_tcp_are_counted_as_unwatched() {
    if program("python3", "watch Multipath TCP").is_none() {
        return;
    }
    let server = Server::start(&[]);
    let port = server.plain_port();
    let script = "
import socket, sys
try: s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
except OSError: sys.exit(3)
s.connect(('127.0.0.1', int(sys.argv[1])))
s.sendall(b'GET / HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n')
print(s.recv(15))
";
    for mode in ["relay", "passthrough"] {
        let (out, document) = watch(&["--mode", mode], &["python3", "-c", script, &port]);
        if out.status.code() == Some(3) {
            return skip("watch Multipath TCP", "this kernel has none");
        }
        assert_eq!(out.stdout, b"b'HTTP/1.1 200 OK'\n", "{out:?}");
        let caveats = document["caveats"].to_string();
        assert!(
            caveats.contains("one connection was not watched: they speak Multipath TCP"),
            "{mode}: {caveats}"
        );
    }
}

/// The hidden connections of [`hidden`].
const HIDDEN: u64 = 20;

/// Runs `hidden.c`, which opens one connection by `connect` and [`HIDDEN`] in this way, with a gate
/// on one connection. `None`: the machine has no compiler, or no such call.
fn hidden(how: &str, mode: &str) -> Option<(Output, Value)> {
    let gcc = program("gcc", "watch calls that connect")?;
    let folder = tempfile::tempdir().unwrap();
    let built = folder.path().join("hidden");
    let source = folder.path().join("hidden.c");
    std::fs::write(&source, include_str!("hidden.c")).unwrap();
    let status = Command::new(&gcc)
        .args(["-O1", "-o"])
        .args([&built, &source])
        .status();
    assert!(status.unwrap().success());
    let server = Server::start(&[]);
    let path = folder.path().join("watch.json");
    let json = format!("--json={}", path.display());
    let intact = env!("CARGO_BIN_EXE_intact");
    let gate = ["--require", "connections <= 1"];
    let mut command = Command::new(if how == "ring" {
        built.to_str()?
    } else {
        intact
    });
    if how == "ring" {
        command.args(["ring-for", intact]);
    }
    let out = command
        .args(["watch", "-q", "--mode", mode, &json])
        .args(gate)
        .arg("--")
        .args([
            built.to_str()?,
            how,
            &server.plain_port(),
            &HIDDEN.to_string(),
        ])
        .output()
        .unwrap();
    if out.status.code() == Some(3) {
        skip("watch io_uring", "this kernel allows none");
        return None;
    }
    assert_eq!(
        out.stdout,
        format!("{}\n", HIDDEN + 1).as_bytes(),
        "{how}: {out:?}"
    );
    let document = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    Some((out, document))
}

#[test]
fn no_connection_is_hidden_by_a_call_that_sends_and_connects() {
    let ways: &[&str] = if cfg!(target_arch = "x86_64") {
        &["sendto", "sendmsg", "sendmmsg", "int80", "socketcall"]
    } else {
        &["sendto", "sendmsg", "sendmmsg"]
    };
    for how in ways {
        for mode in ["relay", "passthrough"] {
            let Some((out, document)) = hidden(how, mode) else {
                return;
            };
            assert_eq!(out.status.code(), Some(1), "{how}, {mode}: {out:?}");
            let opened = &document["connections"]["opened"];
            assert_eq!(*opened, HIDDEN + 1, "{how}, {mode}: {document}");
        }
    }
}

#[test]
fn a_ring_that_the_program_was_started_with_leaves_gates_without_a_judgement() {
    for mode in ["relay", "passthrough"] {
        let Some((out, document)) = hidden("ring", mode) else {
            return;
        };
        assert_eq!(out.status.code(), Some(1), "{mode}: {out:?}");
        assert_eq!(
            document["connections"]["bounds"]["opened"]["low"], 1,
            "{mode}"
        );
        let caveats = document["caveats"].as_array().unwrap();
        let ring = caveats.iter().find(|one| one["id"] == "unwatched-ring");
        assert_eq!(ring.unwrap()["incomplete"], true, "{mode}");
        let words = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(words.contains("does not decide"), "{mode}: {words}");
    }
}

/// Takes a connection of its parent's by pidfd_getfd(2), and speaks on it.
const TAKES: &str = "
import ctypes, os, socket, sys
handle = os.pidfd_open(int(sys.argv[1]))
taken = ctypes.CDLL(None, use_errno=True).syscall(438, handle, int(sys.argv[2]), 0)
if taken < 0: sys.exit(3)
taken = socket.socket(fileno=taken)
taken.sendall(b'GET / HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n')
taken.recv(1000)
";

#[test]
fn connections_that_a_short_program_got_from_others_are_counted() {
    if program("python3", "watch what a program got from others").is_none() {
        return;
    }
    let server = Server::start(&[]);
    let stream = TcpStream::connect(("127.0.0.1", server.plain_port().parse().unwrap())).unwrap();
    let id = std::process::id().to_string();
    let number = stream.as_raw_fd().to_string();
    let inherits = ["python3", "-c", "import sys; sys.stdin.fileno()"];
    let takes = ["python3", "-c", TAKES, &id, &number];
    for (command, is_inherited) in [(&inherits[..], true), (&takes[..], false)] {
        for mode in ["relay", "passthrough"] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("watch.json");
            let stdin = if is_inherited {
                Stdio::from(OwnedFd::from(stream.try_clone().unwrap()))
            } else {
                Stdio::null()
            };
            let out = Command::new(env!("CARGO_BIN_EXE_intact"))
                .args([
                    "watch",
                    "-q",
                    "--mode",
                    mode,
                    "--require",
                    "connections <= 0",
                ])
                .arg(format!("--json={}", path.display()))
                .arg("--")
                .args(command)
                .stdin(stdin)
                .output()
                .unwrap();
            if out.status.code() == Some(3) {
                return skip("watch pidfd_getfd", "this system refuses it");
            }
            let document: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
            let caveats = document["caveats"].as_array().unwrap();
            let unseen = caveats.iter().find(|one| one["id"] == "unwatched-unseen");
            assert_eq!(unseen.unwrap()["incomplete"], true, "{mode}: {document}");
            assert_eq!(out.status.code(), Some(1), "{mode}: {out:?}");
        }
    }
}

/// Starts a command with a Unix socket, and sends it a connection each time that it asks for one.
const SENDS: &str = "
import array, socket, subprocess, sys
here, there = socket.socketpair()
child = subprocess.Popen([*sys.argv[2:], str(there.fileno())], pass_fds=[there.fileno()])
there.close()
while here.recv(1):
    with socket.create_connection(('127.0.0.1', int(sys.argv[1]))) as own:
        rights = array.array('i', [own.fileno()])
        here.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
sys.exit(child.wait())
";

/// Speaks on a connection of its own, and on three that it receives and closes immediately.
const RECEIVES: &str = "
import array, socket, sys
def speak(stream):
    with stream:
        stream.sendall(b'GET / HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n')
        print(stream.recv(1000)[9:12])
parent = socket.socket(fileno=int(sys.argv[2]))
speak(socket.create_connection(('127.0.0.1', int(sys.argv[1]))))
for _ in range(3):
    parent.send(b'x')
    data, (message,), *_ = parent.recvmsg(1, socket.CMSG_SPACE(4))
    speak(socket.socket(fileno=array.array('i', message[2])[0]))
parent.shutdown(socket.SHUT_WR)
";

#[test]
fn connections_that_were_sent_over_a_unix_socket_are_counted_however_short_they_live() {
    if program("python3", "watch what another process sends").is_none() {
        return;
    }
    let server = Server::start(&[]);
    let port = server.plain_port();
    for mode in ["relay", "passthrough"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("watch.json");
        let out = Command::new("python3")
            .args(["-c", SENDS, &port, env!("CARGO_BIN_EXE_intact"), "watch"])
            .args(["-q", "--mode", mode, "--require", "connections <= 1"])
            .arg(format!("--json={}", path.display()))
            .args(["--", "python3", "-c", RECEIVES, &port])
            .output()
            .unwrap();
        assert_eq!(out.stdout, b"b'200'\n".repeat(4), "{mode}: {out:?}");
        let document: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let caveats = document["caveats"].as_array().unwrap();
        let unseen = caveats.iter().find(|one| one["id"] == "unwatched-unseen");
        let words = unseen.unwrap()["message"].as_str().unwrap();
        assert!(
            words.starts_with("3 connections were not watched"),
            "{mode}: {words}"
        );
        assert_eq!(out.status.code(), Some(1), "{mode}: {out:?}");
    }
}

#[test]
fn a_stream_of_another_family_is_counted() {
    if program("python3", "watch vsock").is_none() {
        return;
    }
    // there is no host to reach: the attempt counts
    let script = "
import socket, sys
try: s = socket.socket(socket.AF_VSOCK)
except OSError: sys.exit(3)
s.settimeout(0.2)
try: s.connect((1, 9))
except OSError: pass
";
    for mode in ["relay", "passthrough"] {
        let (out, document) = watch(&["--mode", mode], &["python3", "-c", script]);
        if out.status.code() == Some(3) {
            return skip("watch vsock", "this kernel has none");
        }
        let caveats = document["caveats"].to_string();
        assert!(
            caveats.contains("they speak another protocol than TCP"),
            "{mode}: {caveats}"
        );
    }
}

#[test]
fn connects_that_are_refused_opened_nothing_whether_their_caller_waited_or_not() {
    if program("python3", "watch refused connects").is_none() {
        return;
    }
    let server = Server::start(&[]);
    let script = "
import socket, sys
unused = socket.socket()
unused.bind(('127.0.0.1', 0))
for waits in [True, False] * 3:
    s = socket.socket()
    s.setblocking(waits)
    try: s.connect(unused.getsockname())
    except OSError: pass
    s.close()
s = socket.create_connection(('127.0.0.1', int(sys.argv[1])))
s.sendall(b'GET / HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n')
s.recv(1000)
";
    for mode in ["relay", "passthrough"] {
        let command = ["python3", "-c", script, &server.plain_port()];
        let (_, document) = watch(&["--mode", mode], &command);
        let connections = &document["connections"];
        let counts = [&connections["opened"], &connections["failed"]["refused"]];
        assert_eq!(counts, [1, 6], "{mode}: {connections}");
    }
}

/// Sends requests of HTTP/2 that no response comes for; their number is the last word.
const UNANSWERED: &str = "
import socket, struct, sys, threading
listener = socket.create_server(('127.0.0.1', 0))
def serve():
    accepted = listener.accept()[0]
    accepted.sendall(bytes([0, 0, 6, 4, 0, 0, 0, 0, 0]) + struct.pack('>HI', 3, 0x7fffffff))
    while accepted.recv(65536): pass
server = threading.Thread(target=serve)
server.start()
client = socket.create_connection(listener.getsockname())
client.sendall(b'PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n' + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
block = bytes([0x82, 0x86, 0x84, 0x41, 1, 0x61])
for nth in range(int(sys.argv[1])):
    client.sendall(bytes([0, 0, len(block), 1, 5]) + struct.pack('>I', 2 * nth + 1) + block)
client.shutdown(socket.SHUT_WR)
server.join()
";

#[test]
fn requests_beyond_those_that_are_followed_have_a_caveat() {
    if program("python3", "watch requests without a response").is_none() {
        return;
    }
    for (requests, is_complete) in [(4096, true), (5000, false)] {
        let command = ["python3", "-c", UNANSWERED, &requests.to_string()];
        let (_, document) = watch(&["--mode", "relay"], &command);
        let total = &document["requests"]["total"];
        assert_eq!(*total == 4096, is_complete, "{}", document["requests"]);
        let caveats = document["caveats"].to_string();
        assert_eq!(
            caveats.contains("requests-beyond-limit"),
            !is_complete,
            "{caveats}"
        );
    }
}

/// Connects to a name in a folder that never responds: a file system in this process (FUSE) that
/// reads no request. Then it speaks with the server of the last word.
const FROZEN_FOLDER: &str = "
import ctypes, os, socket, sys, tempfile, threading
folder = tempfile.mkdtemp()
try: device = os.open('/dev/fuse', os.O_RDWR)
except OSError: sys.exit(3)
options = 'fd=%d,rootmode=40000,user_id=0,group_id=0' % device
mount = ctypes.CDLL(None, use_errno=True).mount
if mount(b'frozen', folder.encode(), b'fuse', 0, options.encode()): sys.exit(3)
def connect():
    try: socket.socket(socket.AF_UNIX).connect(folder + '/name')
    except OSError: pass
threading.Thread(target=connect, daemon=True).start()
import time; time.sleep(0.5)
for _ in range(3):
    s = socket.create_connection(('127.0.0.1', int(sys.argv[1])), 10)
    s.sendall(b'GET / HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n')
    s.recv(1000)
ctypes.CDLL(None).umount2(folder.encode(), 2)
os._exit(0)
";

#[test]
fn a_folder_of_the_program_that_never_responds_stops_no_call() {
    if program("python3", "watch a program with a frozen folder").is_none() {
        return;
    }
    let server = Server::start(&[]);
    let command = ["python3", "-c", FROZEN_FOLDER, &server.plain_port()];
    let (out, document) = watch(&["--mode", "relay"], &command);
    if out.status.code() == Some(3) {
        return skip(
            "watch a frozen folder",
            "no file system can be mounted here",
        );
    }
    assert!(out.status.success(), "{out:?}");
    assert_eq!(document["connections"]["opened"], 3, "{document}");
}
