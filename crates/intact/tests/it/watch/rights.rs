//! What a program gave up stays given up while it is watched, and what it is not disturbed by: its
//! own rules for connects, its user, other users of the machine, and places that are full.

use super::refused::{open_to_all, page};
use super::semantics::{NOBODY, PYTHON, Stage, is_root, run, text};
use crate::peers::{program, skip};
use crate::program::Server;
use intact_ledger::Caveat;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

/// Asks as often as the second word says, on a connection each.
const CLIENT: &str = "
import socket, sys
for _ in range(int(sys.argv[2])):
    with socket.create_connection(('127.0.0.1', int(sys.argv[1]))) as stream:
        stream.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n')
        print(stream.recv(15))
";
const ANSWER: &str = "b'HTTP/1.0 200 OK'\n";

/// Runs `intact watch` of these words; what it gave, and the document.
fn watch(stage: &Stage, start: &[&str], options: &[&str], words: &[&str]) -> (Output, Value) {
    let (intact, json) = (stage.path("intact"), stage.path("watch.json"));
    let option = format!("--json={}", text(&json));
    let watch = [text(&intact), "watch", &option];
    let all = [start, &watch, options, &["--"], words].concat();
    let out = run(Command::new(all[0]).args(&all[1..]).env("NO_COLOR", "1"));
    let document = std::fs::read(&json).unwrap_or_else(|error| panic!("{error}: {out:?}"));
    (out, serde_json::from_slice(&document).unwrap())
}

/// The caveats on what was observed: the code of these programs is not here.
fn caveats(document: &Value) -> Vec<Caveat> {
    let mut all: Vec<Caveat> = serde_json::from_value(document["caveats"].clone()).unwrap();
    all.retain(|caveat| !caveat.is_about_places());
    all
}

fn has_caveat(document: &Value, id: &str, is_incomplete: bool) -> bool {
    let mut caveats = caveats(document).into_iter();
    caveats.any(|one| one.id == id && one.incomplete == is_incomplete)
}

/// A stage that every user may write to; `None` where a program is missing.
fn stage(needed: &str, test: &str) -> Option<Stage> {
    program(needed, test)?;
    let stage = Stage::set();
    open_to_all(&stage.path(""));
    stage.write("client.py", CLIENT);
    Some(stage)
}

fn as_unprivileged_user() -> [String; 4] {
    let (user, group) = (format!("--reuid={NOBODY}"), format!("--regid={NOBODY}"));
    [
        "setpriv".to_owned(),
        user,
        group,
        "--clear-groups".to_owned(),
    ]
}

/// Restricts itself to connects to the port, asks there, and tries another port.
const CONFINED: &str = "
import ctypes, socket, struct, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
rights = struct.pack('QQ', 0, 2)
rules = libc.syscall(444, rights, len(rights), 0)
if rules < 0: sys.exit(3)
libc.syscall(445, rules, 2, struct.pack('QQ', 2, int(sys.argv[1])), 0)
libc.prctl(38, 1, 0, 0, 0)
libc.syscall(446, rules, 0)
other = socket.create_server(('127.0.0.1', 0))
try: socket.create_connection(other.getsockname())
except OSError as error: print(type(error).__name__, flush=True)
sys.exit(subprocess.run([sys.executable, *sys.argv[2:]]).returncode)
";

#[test]
fn a_program_that_restricts_its_own_connects_makes_them_itself() {
    let test = "watch of a program that restricts itself";
    let Some(stage) = stage("python3", test) else {
        return;
    };
    stage.write("confined.py", CONFINED);
    let server = Server::start(&[]);
    let port = server.plain_port();
    let (confined, client) = (stage.path("confined.py"), stage.path("client.py"));
    let client = [text(&client), &port, "2"];
    let words = [&[PYTHON, text(&confined), &port][..], &client].concat();
    for (mode, opened, caveat) in [
        ("auto", json!(2), "followed-landlock"),
        ("relay", Value::Null, "unwatched-landlock"),
    ] {
        let gate = ["--mode", mode, "--require", "connections <= 9"];
        let (out, document) = watch(&stage, &[], &gate, &words);
        if out.status.code() == Some(3) {
            return skip(test, "this kernel has no Landlock for connects");
        }
        let printed = format!("PermissionError\n{}", ANSWER.repeat(2));
        assert_eq!(
            String::from_utf8_lossy(&out.stdout),
            printed,
            "{mode}: {out:?}"
        );
        assert_eq!(
            document["connections"]["opened"], opened,
            "{mode}: {document}"
        );
        assert!(
            document["requests"]["total"].is_null(),
            "{mode}: {document}"
        );
        let refused = if mode == "auto" {
            1.into()
        } else {
            Value::Null
        };
        assert_eq!(
            document["connections"]["failed"]["unreachable"], refused,
            "{mode}: {document}"
        );
        assert!(has_caveat(&document, caveat, true), "{mode}: {document}");
        assert!(page(&out).contains("by Landlock"), "{mode}: {out:?}");
        // where the kernel reports connections, none is missing; in the relay all are
        let code = if mode == "auto" { 0 } else { 1 };
        assert_eq!(out.status.code(), Some(code), "{mode}: {out:?}");
        let gate = ["--mode", mode, "--require", "avoidable <= 9"];
        let (out, _) = watch(&stage, &[], &gate, &words);
        assert_eq!(out.status.code(), Some(1), "{mode}: {out:?}");
    }
}

/// A server that answers with the user that the other side's socket belongs to.
const OWNERS: &str = "
import socket
listener = socket.create_server(('127.0.0.1', 0), backlog=64)
print(listener.getsockname()[1], flush=True)
while True:
    stream, peer = listener.accept()
    ends = [f'0100007F:{end[1]:04X}' for end in (peer, stream.getsockname())]
    owner = None
    while owner is None: # a row can be missing while other sockets come and go
        rows = [row.split() for row in open('/proc/net/tcp')]
        owner = next((row[7] for row in rows if row[1:3] == ends), None)
    stream.recv(1000)
    stream.sendall(f'HTTP/1.0 200 OK\\r\\nContent-Length: {len(owner)}\\r\\n\\r\\n{owner}'.encode())
    stream.close()
";

/// A script that runs until it is dropped, with its first line.
struct Script {
    child: Child,
    out: BufReader<ChildStdout>,
    line: String,
}

impl Script {
    fn start(start: &[String], script: &str, words: &[&str]) -> Script {
        let mut all: Vec<&str> = start.iter().map(String::as_str).collect();
        all.extend([PYTHON, "-c", script]);
        all.extend_from_slice(words);
        Script::run(&all)
    }

    fn run(words: &[&str]) -> Script {
        let mut child = Command::new(words[0])
            .args(&words[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let line = next_line(&mut out);
        Script { child, out, line }
    }

    /// Sends it a line, and waits for its next one.
    fn go_on(&mut self, line: &str) -> String {
        let mut input = self.child.stdin.take().unwrap();
        writeln!(input, "{line}").unwrap();
        next_line(&mut self.out)
    }
}

fn next_line(out: &mut BufReader<ChildStdout>) -> String {
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    line.trim().to_owned()
}

impl Drop for Script {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn connections_of_a_program_that_gave_up_root_belong_to_its_new_user() {
    let test = "watch of a program that gives up root";
    let Some(stage) = stage("curl", test) else {
        return;
    };
    if !is_root() {
        return skip(test, "only root can become another user");
    }
    let server = Script::start(&[], OWNERS, &[]);
    let url = format!("http://127.0.0.1:{}/", server.line);
    let nobody = as_unprivileged_user();
    let mut words: Vec<&str> = nobody.iter().map(String::as_str).collect();
    words.extend(["curl", "-s", &url]);
    let (out, document) = watch(&stage, &[], &[], &words);
    assert_eq!(String::from_utf8_lossy(&out.stdout), NOBODY, "{out:?}");
    assert_eq!(document["requests"]["total"], 1, "{document}");
    assert_eq!(caveats(&document), [], "{document}");

    // a program that runs as its file's owner, for whom we may not make sockets
    let (found, copy) = (program("curl", test).unwrap(), stage.path("curl"));
    std::fs::copy(found, &copy).unwrap();
    let changed = [["chown", NOBODY], ["chmod", "4755"]]
        .iter()
        .all(|[change, to]| {
            run(Command::new(change).args([*to, text(&copy)]))
                .status
                .success()
        });
    assert!(changed);
    let start = ["setpriv", "--bounding-set=-setuid,-setgid"];
    let (out, document) = watch(&stage, &start, &[], &[text(&copy), "-s", &url]);
    if out.stdout == b"0" {
        return skip(test, "files do not change the user here");
    }
    assert_eq!(String::from_utf8_lossy(&out.stdout), NOBODY, "{out:?}");
    assert_eq!(document["connections"]["opened"], 1, "{document}");
    assert!(
        has_caveat(&document, "followed-other-owner", true),
        "{document}"
    );
}

#[test]
fn sockets_of_another_network_are_left_alone_where_they_do_not_show_it() {
    let test = "watch of another network before Linux 5.14";
    let Some(stage) = stage("python3", test) else {
        return;
    };
    stage.write("confine.py", include_str!("confine.py"));
    let other = ["unshare", "--user", "--map-root-user", "--net"];
    if !run(Command::new(other[0]).args(&other[1..]).arg("true"))
        .status
        .success()
    {
        return skip(test, "no network of its own");
    }
    let server = Server::start(&[]);
    let (filter, client) = (stage.path("confine.py"), stage.path("client.py"));
    let port = server.plain_port();
    let client = [PYTHON, text(&client), &port, "1"];
    let start = [PYTHON, text(&filter), "ENOPROTOOPT", "socket_network"];
    let (out, document) = watch(&stage, &start, &[], &[&other[..], &client].concat());
    assert!(out.stdout.is_empty(), "{out:?}");
    assert!(document["connections"]["opened"].is_null(), "{document}");
    assert!(
        has_caveat(&document, "unwatched-other-namespace", true),
        "{document}"
    );
    let (out, document) = watch(&stage, &start, &[], &client);
    assert_eq!(String::from_utf8_lossy(&out.stdout), ANSWER, "{out:?}");
    assert_eq!(document["requests"]["total"], 1, "{document}");
}

/// Waits for a line, then asks on forty connections, of which every other one does not block while
/// it connects.
const PATIENT: &str = "
import socket, sys
print('ready', flush=True)
sys.stdin.readline()
for number in range(40):
    stream = socket.socket()
    stream.settimeout(20 if number % 2 else None)
    stream.connect(('127.0.0.1', int(sys.argv[1])))
    stream.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n')
    assert stream.recv(15) == b'HTTP/1.0 200 OK'
    stream.close()
print('done')
";

/// Waits for a line of ports, fills the queues of the listeners there, and says how many it has
/// filled.
const FLOOD: &str = "
import resource, socket, sys, time
limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
queue = int(open('/proc/sys/net/core/somaxconn').read()) + 50
print('ready', flush=True)
held, full = [], 0
def attempt(port, patience):
    one = socket.socket()
    one.settimeout(patience)
    held.append(one)
    one.connect(('127.0.0.1', port))
for port in sys.stdin.readline().split():
    try:
        for _ in range(queue): attempt(int(port), 1)
    except TimeoutError: full += 1
    except OSError: pass
print(full, flush=True)
time.sleep(60)
";

/// The ports of the loopback interface that a process listens on.
fn listening_ports(process: u32) -> Vec<String> {
    let files = std::fs::read_dir(format!("/proc/{process}/fd")).unwrap();
    let links = files.filter_map(|file| std::fs::read_link(file.unwrap().path()).ok());
    let sockets: Vec<String> = links.map(|link| text(&link).to_owned()).collect();
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let rows = table.lines().map(|row| row.split_whitespace().collect());
    let of_process = rows.filter(|row: &Vec<&str>| {
        let is_listening = row[3] == "0A" && row[1].starts_with("0100007F:");
        is_listening && sockets.contains(&format!("socket:[{}]", row[9]))
    });
    let port = |row: Vec<&str>| u16::from_str_radix(&row[1][9..], 16).unwrap().to_string();
    of_process.map(port).collect()
}

#[test]
fn a_flood_of_another_user_neither_stops_the_program_nor_counts_as_its_own() {
    let test = "watch while another user floods";
    let Some(stage) = stage("python3", test) else {
        return;
    };
    let server = Server::start(&[]);
    let (port, json) = (server.plain_port(), stage.path("watch.json"));
    let start = if is_root() {
        as_unprivileged_user().to_vec()
    } else {
        Vec::new()
    };
    let mut flood = Script::start(&start, FLOOD, &[]);
    let option = format!("--json={}", text(&json));
    let intact = stage.path("intact");
    let words = [text(&intact), "watch", "-q", &option, "--", "timeout", "60"];
    let words = words.map(str::to_owned);
    let mut watched = Script::start(&words, PATIENT, &[&port]);
    let ports = listening_ports(watched.child.id());
    assert!(!ports.is_empty());
    if flood.go_on(&ports.join(" ")) != ports.len().to_string() {
        return skip(test, "the queue of a listener cannot be filled here");
    }
    assert_eq!(watched.go_on(""), "done");
    assert!(watched.child.wait().unwrap().success());
    let document: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    assert_eq!(document["connections"]["opened"], 40, "{document}");
    assert_eq!(document["requests"]["total"], 40, "{document}");
    assert_eq!(caveats(&document), [], "{document}");
}

#[test]
fn only_the_program_reaches_its_key_log() {
    let test = "a key log and another user";
    let Some(stage) = stage("python3", test) else {
        return;
    };
    if !is_root() {
        return skip(
            test,
            "only root shares the log, with programs that give up root",
        );
    }
    // the program gives up root, and says where it logs; the folder's name is all that another user
    // can find out
    let line = "echo LINE >> $SSLKEYLOGFILE && echo $SSLKEYLOGFILE; read line";
    let nobody = as_unprivileged_user();
    let intact = stage.path("intact");
    let mut words = vec![text(&intact), "watch", "-q", "--keys", "on", "--"];
    words.extend(nobody.iter().map(String::as_str).chain(["sh", "-c", line]));
    let mut watched = Script::run(&words);
    let keys = std::path::PathBuf::from(&watched.line);
    let mut folders = keys.ancestors().skip(1);
    let (inner, outer) = (folders.next().unwrap(), folders.next().unwrap());
    assert!(
        outer
            .file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .starts_with("intact-")
    );
    // not even reading shows it the name of the inner folder
    let other = |words: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65533", "--regid=65533", "--clear-groups"]);
        run(command.args(words)).status.success()
    };
    assert!(!other(&["ls", text(outer)]));
    assert!(!other(&["ls", text(inner)]));
    assert!(!other(&["cat", text(&keys)]));
    for file in ["keys", "preload.cjs"] {
        assert!(!other(&["test", "-e", text(&outer.join(file))]), "{file}");
    }
    watched.go_on("");
    assert!(watched.child.wait().unwrap().success());
    assert!(!outer.exists());
}
