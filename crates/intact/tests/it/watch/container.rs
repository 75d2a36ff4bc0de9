//! A container engine's default profile, in a real container: the connections of the program are counted, as root and as another user.

use super::refused::{open_to_all, page};
use super::semantics::{PYTHON, Stage, is_root, run, text};
use crate::peers::{program, skip};
use intact_ledger::Caveat;
use serde_json::Value;
use std::process::{Command, Output};

/// Denies what moby's default profile denies to a container with the default capabilities (moby/profiles, commit 190fa92).
const PROFILE: &str = include_str!("container.json");

/// A server of its own, since the container has a network of its own; and two requests, on a connection each.
const SCRIPT: &str = "
import http.server, subprocess, sys, threading
server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
client = '''
import http.client, sys
for _ in range(2):
    one = http.client.HTTPConnection(\"127.0.0.1\", int(sys.argv[1]))
    one.request(\"GET\", \"/\")
    print(one.getresponse().status)
'''
words = [*sys.argv[1:], '--', sys.executable, '-c', client, str(server.server_port)]
sys.exit(subprocess.run(words).returncode)
";

/// Runs words in a container on this machine's root, where changes are dropped; `None`: there are no containers here.
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
    // the engine's own exit code
    if out.status.code() == Some(125) {
        skip(test, &page(&out));
        return None;
    }
    Some(out)
}

#[test]
fn connections_are_counted_in_a_container() {
    if program("python3", "watch in a real container").is_none() {
        return;
    }
    let stage = Stage::set();
    open_to_all(&stage.path(""));
    stage.write("profile.json", PROFILE);
    stage.write("script.py", SCRIPT);
    let [intact, script, json] = ["intact", "script.py", "watch.json"].map(|name| stage.path(name));
    let option = format!("--json={}", text(&json));
    for options in [
        &[][..],
        &["--user", "65534:65534"],
        &["--cap-drop", "all", "--security-opt", "no-new-privileges"],
        &[
            "--user",
            "65534:65534",
            "--cap-drop",
            "all",
            "--security-opt",
            "no-new-privileges",
        ],
    ] {
        let _ = std::fs::remove_file(&json);
        let words = [PYTHON, text(&script), text(&intact), "watch", &option];
        let gate = ["--require", "connections <= 2", "--fail-on", "error"];
        let Some(out) = in_container(&stage, options, &[&words[..], &gate].concat()) else {
            return;
        };
        assert_eq!(out.status.code(), Some(0), "{options:?}: {out:?}");
        assert!(
            out.stdout.starts_with(b"200\n200\n"),
            "{options:?}: {out:?}"
        );
        let page = page(&out);
        let words = "Observed by sockets that intact makes for the program";
        assert!(page.contains(words), "{options:?}: {page}");
        let document: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
        assert_eq!(document["connections"]["opened"], 2, "{options:?}: {page}");
        assert_eq!(document["requests"]["total"], 2, "{options:?}: {page}");
        let caveats: Vec<Caveat> = serde_json::from_value(document["caveats"].clone()).unwrap();
        assert!(!caveats.iter().any(|one| one.incomplete), "{caveats:?}");
    }
    let words = [PYTHON, text(&script), text(&intact), "watch", "-q"];
    let gate = ["--require", "connections <= 1"];
    if let Some(out) = in_container(&stage, &[], &[&words[..], &gate].concat()) {
        assert_eq!(out.status.code(), Some(1), "{out:?}");
        assert!(page(&out).contains("connections is 2"), "{out:?}");
    }
}
