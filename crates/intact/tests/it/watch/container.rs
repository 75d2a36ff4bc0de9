//! A container engine's default profile, in a real container: the connections of the program are
//! counted, as root and as another user.

use super::refused::{open_to_all, page};
use super::semantics::{PYTHON, Stage, is_root, run, text};
use crate::peers::{program, skip};
use intact_ledger::Caveat;
use serde_json::Value;
use std::process::{Command, Output};

/// Denies what moby's default profile denies to a container with the default capabilities
/// (moby/profiles, commit 190fa92).
const PROFILE: &str = include_str!("container.json");

/// A server of its own, since the container has a network of its own. Of the words, CLIENT is a
/// program that asks twice, on a connection each, and FUNCTION one that asks once for each event.
const SCRIPT: &str = r#"
import http.server, subprocess, sys, threading
server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
client = """
import http.client, sys
for _ in range(2):
    one = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
    one.request("GET", "/")
    response = one.getresponse()
    response.read()
    print(response.status)
"""
function = """
import http.client, os, sys
api = http.client.HTTPConnection(os.environ["AWS_LAMBDA_RUNTIME_API"])
root = "/2018-06-01/runtime/invocation/"
while True:
    api.request("GET", root + "next")
    event = api.getresponse()
    one = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
    one.request("GET", "/")
    one.getresponse().read()
    body, id = event.read(), event.headers["Lambda-Runtime-Aws-Request-Id"]
    api.request("POST", root + id + "/response", body)
    api.getresponse().read()
"""
words = []
for word in sys.argv[1:]:
    code = {'CLIENT': client, 'FUNCTION': function}.get(word)
    words += [sys.executable, '-c', code, str(server.server_port)] if code else [word]
sys.exit(subprocess.run(words).returncode)
"#;

/// Ways to start a container in which everything is observed.
const WAYS: [&[&str]; 8] = [
    &[],
    &["--user", NOBODY_AND_GROUP],
    &["--cap-drop", "all", "--security-opt", "no-new-privileges"],
    &[
        "--user",
        NOBODY_AND_GROUP,
        "--cap-drop",
        "all",
        "--security-opt",
        "no-new-privileges",
    ],
    &[
        "--read-only",
        "--read-only-tmpfs=false",
        "--tmpfs",
        "/tmp:size=1m,notmpcopyup",
        "--mount",
        READ_ONLY_SHM,
    ],
    NO_PLACE,
    USER_NAMESPACE,
    &[
        "--uidmap",
        "0:0:65536",
        "--gidmap",
        "0:0:65536",
        "--user",
        NOBODY_AND_GROUP,
    ],
];
const NOBODY_AND_GROUP: &str = "65534:65534";
const READ_ONLY_SHM: &str = "type=tmpfs,destination=/dev/shm,ro,notmpcopyup";
/// No file can be written.
const NO_PLACE: &[&str] = &[
    "--read-only",
    "--read-only-tmpfs=false",
    "--mount",
    READ_ONLY_SHM,
];
/// The container's root has no rights outside. Other ids than its own could not read this machine's
/// root.
const USER_NAMESPACE: &[&str] = &["--uidmap", "0:0:65536", "--gidmap", "0:0:65536"];

/// Runs words in a container on this machine's root, where changes are dropped; `None`: there are
/// no containers here.
fn in_container(stage: &Stage, options: &[&str], words: &[&str]) -> Option<Output> {
    let (test, profile) = ("watch in a real container", stage.path("profile.json"));
    program("podman", test)?;
    program("runc", test)?;
    if !is_root() {
        skip(test, "only root can use this machine's root in a container");
        return None;
    }
    let security = format!("seccomp={}", text(&profile));
    let folder = stage.path("");
    let shared = format!("{0}:{0}", text(&folder).trim_end_matches('/'));
    let out = run(Command::new("podman")
        .args(["--cgroup-manager", "cgroupfs", "--runtime", "runc", "run"])
        .args(["--rm", "--network", "none", "--volume", &shared])
        .args([
            "--ulimit",
            "nofile=4096:4096",
            "--ulimit",
            "nproc=8192:8192",
        ])
        .args(["--env", "NO_COLOR=1", "--security-opt", &security])
        .args(options)
        .args(["--rootfs", "/:O"])
        .args(words));
    // the engine's own exit code, and that of `intact`
    let words = page(&out);
    if out.status.code() == Some(125) && !words.contains("intact: ") {
        skip(test, &words);
        return None;
    }
    Some(out)
}

/// A stage for containers, with the words that run `intact` in one.
struct Container {
    stage: Stage,
}

impl Container {
    fn build() -> Option<Container> {
        program("python3", "watch in a real container")?;
        let stage = Stage::set();
        open_to_all(&stage.path(""));
        stage.write("profile.json", PROFILE);
        stage.write("script.py", SCRIPT);
        Some(Container { stage })
    }

    /// Runs `intact` with these words in a container, and what it wrote to `--json`, if it did.
    fn run(&self, options: &[&str], start: &[&str], words: &[&str]) -> Option<(Output, Value)> {
        let [intact, script, json] =
            ["intact", "script.py", "watch.json"].map(|name| self.stage.path(name));
        let _ = std::fs::remove_file(&json);
        let option = format!("--json={}", text(&json));
        let words = words.iter().map(|word| match *word {
            "--json" => &option,
            word => word,
        });
        let words: Vec<&str> = words.collect();
        let start = [&[PYTHON, text(&script)][..], start, &[text(&intact)]].concat();
        let out = in_container(&self.stage, options, &[start, words].concat())?;
        let document = std::fs::read(&json).unwrap_or_else(|_| b"null".to_vec());
        Some((out, serde_json::from_slice(&document).unwrap()))
    }
}

/// All connections and requests are in the document, and nothing is missing.
fn assert_complete(out: &Output, document: &Value, connections: u64) {
    let page = page(out);
    assert_eq!(document["connections"]["opened"], connections, "{page}");
    assert_eq!(document["requests"]["total"], connections, "{page}");
    let caveats: Vec<Caveat> = serde_json::from_value(document["caveats"].clone()).unwrap();
    assert!(!caveats.iter().any(|one| one.incomplete), "{caveats:?}");
}

const BY_SOCKETS: &str = "Observed by sockets that intact makes for the program";

#[test]
fn connections_are_counted_in_a_container() {
    let Some(container) = Container::build() else {
        return;
    };
    for options in WAYS {
        let gates = ["--require", "connections <= 2", "--fail-on", "error"];
        let words = [&["watch", "--json"][..], &gates, &["--", "CLIENT"]].concat();
        let Some((out, document)) = container.run(options, &[], &words) else {
            return;
        };
        assert_eq!(out.status.code(), Some(0), "{options:?}: {out:?}");
        assert!(
            out.stdout.starts_with(b"200\n200\n"),
            "{options:?}: {out:?}"
        );
        assert_complete(&out, &document, 2);
        let page = page(&out);
        assert!(page.contains(BY_SOCKETS), "{options:?}: {page}");
        let words = "There is no place where programs could log the keys";
        assert_eq!(
            page.contains(words),
            options == NO_PLACE,
            "{options:?}: {page}"
        );
    }
    let words = [
        "watch",
        "-q",
        "--require",
        "connections <= 1",
        "--",
        "CLIENT",
    ];
    if let Some((out, _)) = container.run(&[], &[], &words) {
        assert_eq!(out.status.code(), Some(1), "{out:?}");
        assert!(page(&out).contains("connections is 2"), "{out:?}");
    }
}

#[test]
fn compare_and_lambda_work_in_a_container() {
    let Some(container) = Container::build() else {
        return;
    };
    for options in [&[][..], USER_NAMESPACE, NO_PLACE] {
        let compare = ["compare", "--rounds", "1", "--warm-up", "0", "--json"];
        let words = [&compare[..], &["--", "CLIENT", "--", "CLIENT"]].concat();
        let Some((out, document)) = container.run(options, &[], &words) else {
            return;
        };
        assert_eq!(out.status.code(), Some(0), "{options:?}: {out:?}");
        assert_eq!(document["requests"]["total"], 4, "{options:?}: {document}");
        assert!(page(&out).contains(BY_SOCKETS), "{options:?}: {out:?}");
        let words = ["lambda", "-n", "2", "--json", "--", "FUNCTION"];
        let Some((out, document)) = container.run(options, &[], &words) else {
            return;
        };
        assert_eq!(out.status.code(), Some(0), "{options:?}: {out:?}");
        assert_complete(&out, &document, 2);
        assert!(page(&out).contains(BY_SOCKETS), "{options:?}: {out:?}");
    }
}

#[test]
fn a_user_namespace_in_a_container_is_watched_too() {
    let Some(container) = Container::build() else {
        return;
    };
    let namespace = ["unshare", "--user", "--map-root-user"];
    let unconfined = ["--security-opt", "seccomp=unconfined"];
    let words = ["watch", "--json", "--", "CLIENT"];
    let Some((out, document)) = container.run(&unconfined, &namespace, &words) else {
        return;
    };
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    assert_complete(&out, &document, 2);
    // the program makes the namespace itself
    if let Some((out, document)) = container.run(&unconfined, &[], &words_of(&namespace)) {
        assert_eq!(out.status.code(), Some(0), "{out:?}");
        assert_complete(&out, &document, 2);
    }
}

#[test]
fn a_program_that_changes_its_user_in_a_container_is_reported_as_unreadable() {
    let Some(container) = Container::build() else {
        return;
    };
    let nobody = [
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
    ];
    let gates = ["--require", "connections <= 2"];
    let words = [
        &["watch", "--json"][..],
        &gates,
        &["--"],
        &nobody,
        &["CLIENT"],
    ]
    .concat();
    let Some((out, document)) = container.run(&[], &[], &words) else {
        return;
    };
    assert_eq!(out.status.code(), Some(1), "{out:?}");
    assert!(out.stdout.starts_with(b"200\n200\n"), "{out:?}");
    let page = page(&out);
    let words = "connections were not watched: their process cannot be inspected";
    assert!(page.contains(words), "{page}");
    let opened = &document["connections"];
    assert!(opened["opened"].is_null(), "{document}");
    let why = opened["bounds"]["opened"]["why"].as_str().unwrap();
    assert!(why.contains(words), "{document}");
    // with the right to inspect it, its connections are seen, and belong to it
    let allowed = ["--cap-add", "SYS_PTRACE"];
    if let Some((out, document)) = container.run(&allowed, &[], &words_of(&nobody)) {
        assert_eq!(out.status.code(), Some(0), "{out:?}");
        assert_complete(&out, &document, 2);
    }
}

fn words_of<'a>(start: &[&'a str]) -> Vec<&'a str> {
    [&["watch", "--json", "--"][..], start, &["CLIENT"]].concat()
}
