//! Containers and kernels that refuse `pidfd_getfd` or `process_vm_readv`: the program runs as it would
//! alone, nothing of it is seen, and every document says so and why.

use super::semantics::{NOBODY, PYTHON, Stage, is_root, run, text};
use crate::peers::{program, skip};
use crate::program::{ReadyProgram, Server};
use intact_ledger::Caveat;
use serde_json::Value;
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

/// A call, and the id of the caveat on its refusal.
const CALLS: [(&str, &str); 2] = [
    ("pidfd_getfd", "unwatched-no-descriptors"),
    ("process_vm_readv", "unwatched-no-memory"),
];

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

fn caveats(document: &Value) -> Vec<Caveat> {
    serde_json::from_value(document["caveats"].clone()).unwrap()
}

/// The page and the document say that these calls are refused, with that error, and what to do.
fn assert_refused(page: &str, document: &Value, error: &str, calls: &str) {
    let caveats = caveats(document);
    for (call, id) in CALLS {
        let told: Vec<&Caveat> = caveats.iter().filter(|one| one.id.ends_with(id)).collect();
        if !calls.split(',').any(|one| one == call) {
            assert!(told.is_empty(), "{call} works: {caveats:?}");
            continue;
        }
        assert_eq!(told.len(), 1, "{caveats:?}");
        assert!(told[0].incomplete, "{told:?}");
        for words in [
            &format!("this container or kernel refuses {call} ({error})"),
            "--cap-add SYS_PTRACE or --security-opt seccomp=unconfined",
            "`intact watch --pid` works without it",
        ] {
            assert!(told[0].message.contains(words), "{words}: {told:?}");
            assert!(page.contains(words), "{words}: {page}");
        }
    }
    assert!(!page.contains("No connection was opened"), "{page}");
    assert!(!page.contains("Nothing to gain"), "{page}");
    // the reason is the container, not the program's processes
    assert!(
        !caveats.iter().any(|one| one.id == "unwatched-unreadable"),
        "{caveats:?}"
    );
}

#[test]
fn what_a_container_refuses_is_named_in_page_and_document() {
    let Some(container) = Container::build("watch in a container") else {
        return;
    };
    for calls in [
        "pidfd_getfd",
        "process_vm_readv",
        "pidfd_getfd,process_vm_readv",
    ] {
        for error in ["EPERM", "ENOSYS"] {
            for mode in ["auto", "passthrough"] {
                let (page, document) = container.watch(&[], error, calls, mode);
                assert_refused(&page, &document, error, calls);
                assert_eq!(document["connections"]["opened"], 0, "{document}");
            }
        }
    }
}

#[test]
fn so_it_is_for_other_users_and_in_user_namespaces() {
    let Some(container) = Container::build("watch in a container, as nobody") else {
        return;
    };
    let (user, group) = (format!("--reuid={NOBODY}"), format!("--regid={NOBODY}"));
    let nobody = ["setpriv", &user, &group, "--clear-groups"];
    let namespace = ["unshare", "--user", "--map-root-user"];
    let mut starts = Vec::new();
    if is_root() {
        starts.push(nobody.to_vec());
    }
    for mut start in [Vec::new(), nobody.to_vec()] {
        start.extend(namespace);
        let tried = Command::new(start[0])
            .args(&start[1..])
            .arg("true")
            .output();
        if tried.is_ok_and(|out| out.status.success()) {
            starts.push(start);
        }
    }
    if starts.is_empty() {
        return skip(
            "watch in a container, as nobody",
            "no other user, no user namespace",
        );
    }
    for start in &starts {
        for (call, _) in CALLS {
            let (page, document) = container.watch(start, "EPERM", call, "auto");
            assert_refused(&page, &document, "EPERM", call);
        }
        // a filter that refuses neither
        let (page, document) = container.watch(start, "EPERM", "getpriority", "auto");
        assert_eq!(document["connections"]["opened"], 2, "{start:?}: {page}");
        assert_eq!(caveats(&document), [], "{start:?}: {page}");
    }
}

#[test]
fn a_run_in_which_nothing_could_be_watched_says_so_without_any_connection() {
    let Some(container) = Container::build("watch of nothing in a container") else {
        return;
    };
    for (call, _) in CALLS {
        let json = container.stage.path("nothing.json");
        let option = format!("--json={}", text(&json));
        let out = container.run(&[], "EPERM", call, &["watch", &option, "--", "true"]);
        assert_refused(&page(&out), &read(&json), "EPERM", call);
    }
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
            let out = container.run(&[], "ENOSYS", "pidfd_getfd", &words);
            assert_eq!(out.status.code(), Some(1), "{words:?}: {out:?}");
            let reason = "this container or kernel refuses pidfd_getfd (ENOSYS)";
            assert!(page(&out).contains(reason), "{words:?}: {out:?}");
        }
    }
}

#[test]
fn compare_and_lambda_name_it_too() {
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
    assert_refused(&page(&out), &read(&json), "EPERM", "pidfd_getfd");

    let json = container.stage.path("lambda.json");
    let option = format!("--json={}", text(&json));
    let words = ["lambda", "-n", "2", &option, "--", PYTHON, "-c", FUNCTION];
    let out = container.run(&[], "ENOSYS", "process_vm_readv", &words);
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    assert_refused(&page(&out), &read(&json), "ENOSYS", "process_vm_readv");
}

/// Answers each event with itself.
const FUNCTION: &str = r#"
import http.client, os
api = http.client.HTTPConnection(os.environ["AWS_LAMBDA_RUNTIME_API"])
root = "/2018-06-01/runtime/invocation/"
while True:
    api.request("GET", root + "next")
    answer = api.getresponse()
    event, id = answer.read(), answer.headers["Lambda-Runtime-Aws-Request-Id"]
    api.request("POST", root + id + "/response", event)
    api.getresponse().read()
"#;

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
    assert_eq!(document["connections"]["opened"], 3, "{document}");
    let refused = |one: &Caveat| CALLS.iter().any(|(_, id)| one.id == *id);
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
