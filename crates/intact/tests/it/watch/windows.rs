//! `--windows`: a part of a run is judged while it goes on. `kits/` has the tests on real clients;
//! these are about what a kit cannot show.

use crate::program::{Server, intact};
use std::process::Output;

/// What a script needs: requests, and windows by the module of the pytest kit.
const PRELUDE: &str = "
import http.client, os, socket, subprocess, sys, threading, time
from intact_http import NotWatched, expect
host = os.environ['SERVER']
def get(connection=None, path='/'):
    own = connection or http.client.HTTPConnection(host)
    own.request('GET', path)
    own.getresponse().read()
    connection or own.close()
def failure(*requirements, do, **more):
    try:
        with expect(*requirements, **more):
            do()
    except AssertionError as failed:
        return str(failed)
    sys.exit(f'{requirements} passed')
";

/// Runs a script under `watch --windows`.
fn script(server: &Server, options: &[&str], text: &str) -> Output {
    let kit = concat!(env!("CARGO_MANIFEST_DIR"), "/../../kits/pytest/src");
    let host = format!("SERVER=127.0.0.1:{}", server.plain_port());
    let (path, text) = (format!("PYTHONPATH={kit}"), format!("{PRELUDE}{text}"));
    let command = ["--", "env", &path, &host, "python3", "-c", &text];
    intact(&[&["watch", "--windows", "-q"], options, &command].concat())
}

fn passes(options: &[&str], text: &str) {
    let server = Server::start(&[]);
    let out = script(&server, options, text);
    assert!(out.status.success(), "{out:?}");
}

#[test]
fn a_request_without_a_response_is_not_taken_for_none() {
    passes(
        &[],
        "
waiting = http.client.HTTPConnection(host)
def begin():
    get()
    waiting.request('GET', '/delay/600000')
text = failure('requests == 1', do=begin)
assert 'had no complete response' in text, text
with expect('connections == 1'):
    get()
",
    );
}

#[test]
fn requests_in_tls_without_keys_decide_nothing_about_requests() {
    let server = Server::start(&[]);
    let port = server.tls_port();
    let text = format!(
        "
import ssl
def secure():
    own = http.client.HTTPSConnection('127.0.0.1:{port}', context=ssl._create_unverified_context())
    get(own)
    get(own)
    own.close()
with expect('avoidable == 0', 'requests == 2', 'connections == 1'):
    secure()
"
    );
    let out = script(&server, &[], &text);
    assert!(out.status.success(), "{out:?}");
    let out = script(&server, &["--keys", "off"], &text);
    assert_eq!(out.status.code(), Some(1), "{out:?}");
    let error = String::from_utf8(out.stderr).unwrap();
    // how many are inferred depends on when the bytes come
    assert!(error.contains("requests is unknown, ~"), "{error}");
    assert!(error.contains("connections is 1\n"), "{error}");
}

#[test]
fn connections_without_the_relay_pass_nothing() {
    passes(
        &["--mode", "passthrough"],
        "
text = failure('connections <= 5', do=get)
assert 'without the relay' in text, text
",
    );
}

#[test]
fn windows_of_two_processes_are_separate() {
    passes(
        &[],
        r#"
child = """
count = int(sys.argv[1])
with expect(f'connections == {count}', f'requests == {count}'):
    print('open', flush=True)
    sys.stdin.readline()
    for _ in range(count):
        get()
"""
prelude = open('/proc/self/cmdline').read().split('\0')[2].split('child =')[0]
pipe = subprocess.PIPE
def start(count):
    return subprocess.Popen([sys.executable, '-c', prelude + child, str(count)], stdin=pipe, stdout=pipe)
children = [start(1), start(3)]
assert [one.stdout.readline() for one in children] == [b'open\n'] * 2
get()
for one in children:
    one.stdin.close()
assert [one.wait() for one in children] == [0, 0]
# a window of the parent has its children, which can open none
with expect('connections == 1'):
    refused = subprocess.run([sys.executable, '-c', prelude + child, '1'], stderr=pipe)
    get()
assert b'is open in process' in refused.stderr, refused.stderr
"#,
    );
}

#[test]
fn bytes_that_are_no_request_end_their_connection_only() {
    passes(
        &[],
        r#"
for garbage in (b'\xff\xfe\n\n', b'begin\n\n', b'name a', b'x' * 100_000, b'require avoidable == 0\n\nstop\n'):
    control = socket.socket(socket.AF_UNIX)
    control.connect(os.environ['INTACT_CONTROL'])
    try:
        control.sendall(garbage)
        control.shutdown(socket.SHUT_WR)
        reply = control.recv(10_000)
    except (BrokenPipeError, ConnectionResetError):
        reply = b''
    assert not reply.startswith(b'passed'), (garbage, reply)
    control.close()
for _ in range(200):
    try:
        with expect('connections == 1'):
            get()
        break
    except NotWatched as error:
        # a closed connection is noticed a little later
        assert 'is open in process' in str(error), error
        time.sleep(0.05)
else:
    raise AssertionError('the window of a closed connection stays open')
"#,
    );
}

#[test]
fn the_socket_is_private_and_gone_after_the_run() {
    let server = Server::start(&[]);
    let out = script(
        &server,
        &[],
        "
path = os.environ['INTACT_CONTROL']
assert os.stat(os.path.dirname(path)).st_mode & 0o777 == 0o700
print(path)
",
    );
    assert!(out.status.success(), "{out:?}");
    let path = String::from_utf8(out.stdout).unwrap();
    assert!(!std::path::Path::new(path.trim()).parent().unwrap().exists());
    let out = intact(&[
        "watch",
        "-q",
        "--",
        "sh",
        "-c",
        "echo ${INTACT_CONTROL-none}",
    ]);
    assert_eq!(out.stdout, b"none\n");
}

#[test]
fn a_window_that_passed_fails_the_run_where_a_connection_was_unseen() {
    let server = Server::start(&[]);
    let kit = concat!(env!("CARGO_MANIFEST_DIR"), "/../../kits/pytest/src");
    let host = format!("127.0.0.1:{}", server.plain_port());
    // the parent hands its connection over once the window has passed, so no scan finds it before
    let parent = "
import array, os, socket, subprocess, sys
address, port = os.environ['SERVER'].split(':')
own = socket.create_connection((address, int(port)))
here, there = socket.socketpair()
child = subprocess.Popen([*sys.argv[1:], str(there.fileno())], pass_fds=[there.fileno()])
there.close()
if here.recv(1):
    rights = array.array('i', [own.fileno()])
    here.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
sys.exit(child.wait())
";
    // a scan finds the socket after half a second
    let child = format!(
        "{PRELUDE}
import array
parent = socket.socket(fileno=int(sys.argv[1]))
with expect('connections == 1'):
    get()
parent.send(b'x')
received = parent.recvmsg(1, socket.CMSG_SPACE(4))
time.sleep(1.5)
"
    );
    let out = std::process::Command::new("python3")
        .args(["-c", parent, env!("CARGO_BIN_EXE_intact"), "watch"])
        .args(["--windows", "-q", "--", "python3", "-c", &child])
        .envs([("PYTHONPATH", kit), ("SERVER", &host)])
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(1), "{out:?}");
    let error = String::from_utf8(out.stderr).unwrap();
    assert!(error.contains("a window has passed, but"), "{error}");
}
