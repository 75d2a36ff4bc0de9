//! Connections that the program has and was never seen to make are counted as unwatched, and those
//! that are not followed; those that it made as usual, or accepted, are not.

use super::watch;
use crate::peers::{program, skip};
use crate::program::Server;
use serde_json::Value;
use std::process::Command;

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
