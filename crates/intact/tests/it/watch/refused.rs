//! Containers and kernels that refuse `pidfd_getfd` or `process_vm_readv`: the program runs as it
//! would alone, another way sees its connections, and every document names that way. Where no way
//! is left, every document says so and why.

use super::semantics::{NOBODY, PYTHON, Stage, is_root, run, text};
use crate::peers::{program, skip};
use crate::program::{ReadyProgram, Server};
use intact_ledger::Caveat;
use serde_json::{Value, json};
use std::process::{Command, Output};

/// Asks twice, on a connection each.
const CLIENT: &str = "
import socket, sys
for _ in range(2):
    with socket.create_connection(('127.0.0.1', int(sys.argv[1]))) as stream:
        stream.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n')
        print(stream.recv(15))
";
const PRINTED: &[u8] = b"b'HTTP/1.0 200 OK'\nb'HTTP/1.0 200 OK'\n";

/// Calls that are refused, and the caveats on the ways that are in use instead.
const REPLACED: [(&str, &[(&str, &str)]); 4] = [
    ("pidfd_getfd", &[SOCKETS]),
    ("process_vm_readv", &[MEMORY]),
    ("pidfd_getfd,process_vm_readv", &[SOCKETS, MEMORY]),
    (
        "pidfd_getfd,process_vm_readv,proc_mem",
        &[SOCKETS, SOCK_DIAG],
    ),
];
const SOCKETS: (&str, &str) = (
    "observed-by-made-sockets",
    "Observed by sockets that intact makes for the program, because this container or kernel refuses pidfd_getfd",
);
const MEMORY: (&str, &str) = (
    "observed-by-memory-file",
    "Observed by /proc/PID/mem, because this container or kernel refuses process_vm_readv",
);
const SOCK_DIAG: (&str, &str) = (
    "observed-by-sock-diag",
    "Observed by sock_diag, because this container or kernel refuses process_vm_readv",
);

/// Calls without which nothing is seen, the one that is named, and the id of the caveat.
const NEEDED: (&str, &str, &str) = (
    "pidfd_getfd,give_descriptor",
    "pidfd_getfd",
    "unwatched-no-descriptors",
);

/// A stage with the filter and a server; `None` where Python is missing.
struct Container {
    stage: Stage,
    server: Server,
}

impl Container {
    fn build(test: &str) -> Option<Container> {
        program("python3", test)?;
        let stage = Stage::set();
        stage.write("confine.py", include_str!("confine.py"));
        stage.write("client.py", CLIENT);
        Some(Container {
            stage,
            server: Server::start(&[]),
        })
    }

    fn port(&self) -> String {
        self.server.plain_port()
    }

    /// Runs `intact` where these calls fail with that error; `start` becomes another user.
    fn run(&self, start: &[&str], error: &str, calls: &str, words: &[&str]) -> Output {
        let (filter, intact) = (self.stage.path("confine.py"), self.stage.path("intact"));
        let mut all = start.to_vec();
        all.extend([PYTHON, text(&filter), error, calls]);
        // the last words of a start are inside of the container
        if let Some(inside) = all.iter().position(|word| *word == "unshare") {
            let inner: Vec<&str> = all.splice(inside..inside + 3, []).collect();
            all.extend(inner);
        }
        all.push(text(&intact));
        all.extend_from_slice(words);
        run(Command::new(all[0]).args(&all[1..]).env("NO_COLOR", "1"))
    }

    /// Watches the client; its output must be its own. The page, and the document.
    fn watch(&self, start: &[&str], error: &str, calls: &str, mode: &str) -> (String, Value) {
        let folder = tempfile::tempdir().unwrap();
        open_to_all(folder.path());
        let json = format!("--json={}", folder.path().join("watch.json").display());
        let (client, port) = (self.stage.path("client.py"), self.port());
        let words = ["watch", &json, "--mode", mode, "--"];
        let command = [PYTHON, text(&client), &port];
        let out = self.run(start, error, calls, &[&words[..], &command].concat());
        assert_eq!(out.stdout, PRINTED, "{start:?} {calls} {mode}: {out:?}");
        assert_eq!(out.status.code(), Some(0), "{start:?} {calls} {mode}");
        (page(&out), read(&folder.path().join("watch.json")))
    }
}

pub(super) fn open_to_all(folder: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(folder, mode).unwrap();
}

fn read(path: &std::path::Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// What was printed, without its line breaks.
pub(super) fn page(out: &Output) -> String {
    let text = [&out.stdout[..], &out.stderr].concat();
    let text = String::from_utf8(text).unwrap();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The caveats on what was observed: the code of these programs is not here.
fn caveats(document: &Value) -> Vec<Caveat> {
    let mut all: Vec<Caveat> = serde_json::from_value(document["caveats"].clone()).unwrap();
    all.retain(|caveat| !caveat.is_about_places());
    all
}

/// The page and the document name the ways that see the connections, and have all of them.
fn assert_observed(page: &str, document: &Value, error: &str, ways: &[(&str, &str)]) {
    let caveats = caveats(document);
    let named: Vec<&Caveat> = caveats
        .iter()
        .filter(|one| one.id.starts_with("observed-by"))
        .collect();
    assert_eq!(named.len(), ways.len(), "{caveats:?}");
    for (caveat, (id, words)) in named.iter().zip(ways) {
        assert!(caveat.id == *id && !caveat.incomplete, "{caveat:?}");
        let words = format!("{words} ({error})");
        assert!(caveat.message.starts_with(&words), "{caveat:?}");
        assert!(page.contains(&words), "{words}: {page}");
    }
    assert_eq!(document["connections"]["opened"], 2, "{page}");
    let missing = |one: &&Caveat| one.incomplete && one.id != "cannot-see-inside";
    assert_eq!(caveats.iter().find(missing), None, "{page}");
}

/// The page and the document say that these calls are refused, with that error, and what to do.
fn assert_refused(page: &str, document: &Value, error: &str) {
    let (_, call, id) = NEEDED;
    let caveats = caveats(document);
    let found: Vec<&Caveat> = caveats.iter().filter(|one| one.id.ends_with(id)).collect();
    assert_eq!(found.len(), 1, "{caveats:?}");
    assert!(found[0].incomplete, "{found:?}");
    for words in [
        &format!("this container or kernel refuses {call} ({error})"),
        "--cap-add SYS_PTRACE or --security-opt seccomp=unconfined",
        "`intact watch --pid` works without it",
    ] {
        assert!(found[0].message.contains(words), "{words}: {found:?}");
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(!page.contains("No connection was opened"), "{page}");
    assert!(!page.contains("No connection was avoidable"), "{page}");
    // the reason is the container, not the program's processes
    assert!(
        !caveats.iter().any(|one| one.id == "unwatched-unreadable"),
        "{caveats:?}"
    );
}

#[test]
fn where_a_container_refuses_a_call_another_way_sees_the_connections() {
    let Some(container) = Container::build("watch in a container") else {
        return;
    };
    for (calls, ways) in REPLACED {
        for error in ["EPERM", "ENOSYS"] {
            for mode in ["auto", "passthrough"] {
                let (page, document) = container.watch(&[], error, calls, mode);
                assert_observed(&page, &document, error, ways);
                let reads = mode == "auto" && !calls.contains("proc_mem");
                let requests = if reads { json!(2) } else { Value::Null };
                assert_eq!(document["requests"]["total"], requests, "{calls}: {page}");
            }
        }
    }
}

#[test]
fn what_is_refused_is_named_in_page_and_document_where_no_way_is_left() {
    let Some(container) = Container::build("watch of nothing in a container") else {
        return;
    };
    for error in ["EPERM", "ENOSYS"] {
        for mode in ["auto", "passthrough"] {
            let (page, document) = container.watch(&[], error, NEEDED.0, mode);
            assert_refused(&page, &document, error);
            assert!(document["connections"]["opened"].is_null(), "{document}");
        }
    }
    // only the relay may be used, and it needs the address of each connect
    let calls = "process_vm_readv,proc_mem";
    let (page, document) = container.watch(&[], "EPERM", calls, "relay");
    let words = "this container or kernel refuses process_vm_readv (EPERM), so that no connection";
    assert!(page.contains(words), "{page}");
    assert!(caveats(&document)[0].incomplete, "{document}");
}

/// What kernels lack before 5.5, and before 5.9 where a container refuses `pidfd_getfd` too.
#[test]
fn old_kernels_are_named_and_never_hang() {
    let Some(container) = Container::build("watch on an old kernel") else {
        return;
    };
    for command in ["watch", "compare"] {
        let words = [&[command][..], &["--", "echo", "ran"], &["--", "true"]].concat();
        let words = &words[..if command == "watch" { 4 } else { 6 }];
        let out = container.run(&["timeout", "60"], "EINVAL", "answer", words);
        assert_eq!(out.status.code(), Some(4), "{command}: {out:?}");
        assert!(out.stdout.is_empty(), "{command}: {out:?}");
        let words = "seccomp notifications are refused here (Function not implemented";
        assert!(page(&out).contains(words), "{command}: {out:?}");
    }
    let (page, document) = container.watch(&["timeout", "60"], "EINVAL", NEEDED.0, "auto");
    assert_refused(&page, &document, "error 22");
}

#[test]
fn so_it_is_for_other_users_and_in_user_namespaces() {
    let Some(container) = Container::build("watch in a container, as nobody") else {
        return;
    };
    let starts = other_users();
    if starts.is_empty() {
        return skip(
            "watch in a container, as nobody",
            "no other user, no user namespace",
        );
    }
    for start in starts {
        let start: Vec<&str> = start.iter().map(String::as_str).collect();
        for (calls, ways) in REPLACED {
            let (page, document) = container.watch(&start, "EPERM", calls, "auto");
            assert_observed(&page, &document, "EPERM", ways);
        }
        let (page, document) = container.watch(&start, "EPERM", NEEDED.0, "auto");
        assert_refused(&page, &document, "EPERM");
        // a filter that refuses neither
        let (page, document) = container.watch(&start, "EPERM", "getpriority", "auto");
        assert_eq!(document["connections"]["opened"], 2, "{start:?}: {page}");
        assert_eq!(caveats(&document), [], "{start:?}: {page}");
    }
}

/// Commands that run another as another user, or in a user namespace.
fn other_users() -> Vec<Vec<String>> {
    let (user, group) = (format!("--reuid={NOBODY}"), format!("--regid={NOBODY}"));
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let nobody: Vec<String> = words(&["setpriv", &user, &group, "--clear-groups"]);
    let namespace: Vec<String> = words(&["unshare", "--user", "--map-root-user"]);
    let mut starts = vec![namespace.clone()];
    if is_root() {
        starts.push(nobody.clone());
        starts.push([nobody, namespace].concat());
    }
    starts.retain(|start| {
        let tried = Command::new(&start[0])
            .args(&start[1..])
            .arg("true")
            .output();
        tried.is_ok_and(|out| out.status.success())
    });
    starts
}

/// What must not last longer than the program's own socket: its port, and its connection.
const CLOSES: &str = "
import errno, socket, sys, time
def free_port(kind):
    first = socket.socket(type=kind)
    first.bind(('127.0.0.1', 0))
    place = first.getsockname()
    first.close()
    second = socket.socket(type=kind)
    second.bind(place)
free_port(socket.SOCK_STREAM)
free_port(socket.SOCK_DGRAM)
listener = socket.socket()
listener.listen()
place = listener.getsockname()
listener.close()
try: socket.create_connection(('127.0.0.1', place[1]))
except OSError as error: print(errno.errorcode[error.errno])
# many that are never connected, then one that is bound first
held = [socket.socket() for _ in range(400)]
bound = socket.socket()
bound.bind(('127.0.0.1', 0))
for one in [bound, held[0], held[-1]]:
    one.connect(('127.0.0.1', int(sys.argv[1])))
    one.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n')
    print(one.recv(15), one.getpeername()[1] == int(sys.argv[1]))
";

#[test]
fn a_socket_of_ours_lasts_no_longer_than_the_programs() {
    let Some(container) = Container::build("watch of closed sockets in a container") else {
        return;
    };
    container.stage.write("closes.py", CLOSES);
    let (json, script) = (
        container.stage.path("closes.json"),
        container.stage.path("closes.py"),
    );
    let (option, port) = (format!("--json={}", text(&json)), container.port());
    let words = ["watch", "-q", &option, "--", PYTHON, text(&script), &port];
    let out = container.run(&[], "EPERM", "pidfd_getfd", &words);
    let answer = "b'HTTP/1.0 200 OK' True\n";
    let printed = format!("ECONNREFUSED\n{}", answer.repeat(3));
    assert_eq!(String::from_utf8_lossy(&out.stdout), printed, "{out:?}");
    let document = read(&json);
    assert_eq!(document["connections"]["opened"], 3, "{document}");
    assert_eq!(
        document["connections"]["failed"]["refused"], 1,
        "{document}"
    );
    // the first was bound, and of the held ones the oldest have no copy: the kernel reports those
    assert_eq!(
        document["requests"]["bounds"]["total"]["low"], 1,
        "{document}"
    );
}

#[test]
fn a_run_in_which_nothing_could_be_watched_says_so_without_any_connection() {
    let Some(container) = Container::build("watch of no connection in a container") else {
        return;
    };
    let json = container.stage.path("nothing.json");
    let option = format!("--json={}", text(&json));
    let out = container.run(&[], "EPERM", NEEDED.0, &["watch", &option, "--", "true"]);
    assert_refused(&page(&out), &read(&json), "EPERM");
}

#[test]
fn gates_fail_with_the_reason() {
    let Some(container) = Container::build("gates in a container") else {
        return;
    };
    let client = container.stage.path("client.py");
    let port = container.port();
    for gate in [
        ["--require", "avoidable == 0"],
        ["--require", "connections <= 1"],
        ["--fail-on", "warning"],
    ] {
        for command in [&["true"][..], &[PYTHON, text(&client), &port]] {
            let words = [&["watch", "-q"], &gate[..], &["--"], command].concat();
            let out = container.run(&[], "ENOSYS", NEEDED.0, &words);
            assert_eq!(out.status.code(), Some(1), "{words:?}: {out:?}");
            let reason = "this container or kernel refuses pidfd_getfd (ENOSYS)";
            assert!(page(&out).contains(reason), "{words:?}: {out:?}");
        }
    }
}

#[test]
fn gates_count_the_connections_that_another_way_sees() {
    let Some(container) = Container::build("gates in a container, observed") else {
        return;
    };
    let client = container.stage.path("client.py");
    let port = container.port();
    for (calls, _) in REPLACED {
        for (gate, code) in [("connections <= 1", 1), ("connections <= 2", 0)] {
            let words = ["watch", "-q", "--require", gate, "--"];
            let words = [&words[..], &[PYTHON, text(&client), &port]].concat();
            let out = container.run(&[], "EPERM", calls, &words);
            assert_eq!(out.status.code(), Some(code), "{calls} {gate}: {out:?}");
        }
    }
}

#[test]
fn compare_and_lambda_use_the_same_ways() {
    let Some(container) = Container::build("compare and lambda in a container") else {
        return;
    };
    let json = container.stage.path("compare.json");
    let option = format!("--json={}", text(&json));
    let words = ["compare", "--rounds", "1", "--warm-up", "0", &option];
    let (client, port) = (container.stage.path("client.py"), container.port());
    let command = ["--", PYTHON, text(&client), &port];
    let all = [&words[..], &command, &command].concat();
    let out = container.run(&[], "EPERM", "pidfd_getfd", &all);
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    assert!(page(&out).contains(SOCKETS.1), "{out:?}");
    let document = read(&json);
    assert!(
        !caveats(&document).iter().any(|one| one.incomplete),
        "{document}"
    );
    assert_eq!(document["requests"]["total"], 4, "{document}");
    let out = container.run(&[], "EPERM", NEEDED.0, &all);
    assert_refused(&page(&out), &read(&json), "EPERM");

    let json = container.stage.path("lambda.json");
    let option = format!("--json={}", text(&json));
    let function = FUNCTION.replace("PORT", &port);
    let words = ["lambda", "-n", "2", &option, "--", PYTHON, "-c", &function];
    for (calls, requests) in [
        ("pidfd_getfd", json!(2)),
        ("pidfd_getfd,process_vm_readv,proc_mem", Value::Null),
    ] {
        let out = container.run(&[], "ENOSYS", calls, &words);
        assert_eq!(out.status.code(), Some(0), "{out:?}");
        assert!(page(&out).contains(SOCKETS.1), "{out:?}");
        let document = read(&json);
        assert_eq!(document["connections"]["opened"], 2, "{document}");
        assert_eq!(document["requests"]["total"], requests, "{document}");
    }
    let out = container.run(&[], "ENOSYS", NEEDED.0, &words);
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    assert_refused(&page(&out), &read(&json), "ENOSYS");
}

/// Answers each event with itself, and asks the server once for each.
const FUNCTION: &str = concat!(
    include_str!("../runtime.py"),
    r#"
def ask(event, id):
    server = http.client.HTTPConnection("127.0.0.1", PORT)
    server.request("GET", "/")
    server.getresponse().read()
run(ask)
"#
);

#[test]
fn a_running_program_is_followed_where_both_calls_are_refused() {
    let Some(container) = Container::build("watch --pid in a container") else {
        return;
    };
    let script = "
import socket, sys
held = [socket.create_connection(('127.0.0.1', int(sys.argv[1]))) for _ in range(3)]
print('ready', flush=True)
sys.stdin.read()
";
    let running = ReadyProgram::start(&[PYTHON, "-c", script, &container.port()]);
    let json = container.stage.path("pid.json");
    let (pid, option) = (running.id(), format!("--json={}", text(&json)));
    let words = ["watch", "--pid", &pid, "--for", "100ms", &option];
    let out = container.run(&[], "EPERM", "pidfd_getfd,process_vm_readv", &words);
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    let document = read(&json);
    assert_eq!(document["connections"]["opened"], 0, "{document}");
    assert_eq!(document["totals"]["open_before"], 3, "{document}");
    let refused = |one: &Caveat| [NEEDED.2, SOCKETS.0, MEMORY.0].contains(&one.id.as_str());
    assert!(!caveats(&document).iter().any(refused), "{document}");
}

#[test]
fn a_process_that_cannot_be_inspected_is_not_taken_for_a_container() {
    let Some(container) = Container::build("watch of an undumpable program, for its reason") else {
        return;
    };
    let (user, group) = (format!("--reuid={NOBODY}"), format!("--regid={NOBODY}"));
    // root may inspect every process
    let start: &[&str] = if is_root() {
        &["setpriv", &user, &group, "--clear-groups"]
    } else {
        &[]
    };
    let hidden = format!("import ctypes\nctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\n{CLIENT}");
    container.stage.write("client.py", &hidden);
    let (page, document) = container.watch(start, "EPERM", "getpriority", "auto");
    let caveats = caveats(&document);
    assert_eq!(caveats.len(), 1, "{caveats:?}");
    assert_eq!(caveats[0].id, "unwatched-unreadable");
    assert!(caveats[0].incomplete);
    let words = "2 connections were not watched: their process cannot be inspected";
    assert!(page.contains(words), "{page}");
}
