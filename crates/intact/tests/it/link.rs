//! `intact link` and `serve --link`: what a command on a link finds, and how its end is reported.

use crate::peers::skip;
use crate::program::{Schema, intact};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Runs `intact`, or prints that links are forbidden here; in CI that fails.
pub(crate) fn on_link(words: &[&str], test: &str) -> Option<Output> {
    let out = intact(words);
    if out.status.code() != Some(4) {
        return Some(out);
    }
    skip(test, &String::from_utf8_lossy(&out.stderr));
    None
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_command_gets_the_address_of_the_server_and_can_verify_it() {
    let script = "printf '%s\\n' $INTACT_URL $INTACT_TLS_URL; head -1 $INTACT_CA";
    let Some(out) = on_link(&["link", "rtt=0", "--", "sh", "-c", script], "environment") else {
        return;
    };
    assert_eq!(
        text(&out.stdout),
        "http://server.test/\nhttps://server.test/\n-----BEGIN CERTIFICATE-----\n"
    );
    assert!(
        text(&out.stderr).contains("round trip"),
        "{}",
        text(&out.stderr)
    );
}

#[test]
fn a_bench_on_the_link_waits_for_the_round_trip_and_the_server_counts_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let (linked, benched) = (folder.path().join("link"), folder.path().join("bench"));
    let script = format!(
        "exec {} bench $INTACT_TLS_URL --cacert $INTACT_CA --tls 1.3 -n 8 --rounds 1 --json={}",
        env!("CARGO_BIN_EXE_intact"),
        benched.display()
    );
    let json = format!("--json={}", linked.display());
    let words = ["link", "rtt=20ms", &json, "--", "sh", "-c", &script];
    let Some(out) = on_link(&words, "bench on a link") else {
        return;
    };
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let read = |path| -> Value { serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap() };
    let (linked, benched) = (read(linked), read(benched));
    let variants = benched["variants"].as_array().unwrap();
    for (variant, round_trips) in variants.iter().zip([1.0, 3.0]) {
        let mean = variant["latency_ms"]["mean"].as_f64().unwrap();
        assert!(
            mean >= 20.0 * round_trips,
            "{mean} ms, {round_trips} round trips"
        );
    }
    let counted = |of: &str| -> u64 {
        let every = variants.iter().map(|variant| match of {
            "requests" => {
                variant["requests"]["total"].as_u64().unwrap()
                    + variant["warmup"]["requests"].as_u64().unwrap()
            }
            _ => {
                variant["connections"]["opened"].as_u64().unwrap()
                    + variant["warmup"]["connections"].as_u64().unwrap()
            }
        });
        every.sum()
    };
    assert_eq!(linked["server"]["requests"], counted("requests"));
    assert_eq!(linked["server"]["connections"], counted("connections"));
}

#[test]
fn the_document_of_a_link_is_what_its_schema_says() {
    let schema = Schema::named("link");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("link.json");
    let json = format!("--json={}", file.display());
    for words in [
        &[
            "link",
            "rtt=1ms,loss=1%,nat-idle=5s:silent",
            &json,
            "--",
            "true",
        ][..],
        &["link", "rtt=1ms", &json, "--", "sh", "-c", "kill -KILL $$"],
    ] {
        if on_link(words, "schema").is_none() {
            return;
        }
        let document = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        schema.check(&document);
    }
}

#[test]
fn the_exit_code_is_the_commands() {
    for (command, code) in [
        (&["sh", "-c", "exit 9"][..], 9),
        (&["sh", "-c", "kill -TERM $$"], 143),
        (&["/nonexistent/program"], 127),
        (&["/etc/passwd"], 126),
    ] {
        let words = [&["link", "rtt=0", "--"][..], command].concat();
        let Some(out) = on_link(&words, "exit codes") else {
            return;
        };
        assert_eq!(
            out.status.code(),
            Some(code),
            "{command:?}: {}",
            text(&out.stderr)
        );
    }
}

/// The first process of most containers with a shell to look around: it collects no orphans.
#[test]
fn a_link_ends_where_the_first_process_collects_no_orphans() {
    let script = "mount -t proc proc /proc || exit 77
(timeout -s KILL 60 \"$0\" link rtt=0 --port 8000 --server \"exec python3 -m http.server 8000\" -- true; echo \"exit $?\") &
exec tail -f /dev/null";
    let mut container = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "--pid", "--fork"])
        .args(["--kill-child", "sh", "-c", script])
        .arg(env!("CARGO_BIN_EXE_intact"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut lines = BufReader::new(container.stdout.take().unwrap());
    lines.read_line(&mut line).unwrap();
    container.kill().unwrap();
    container.wait().unwrap();
    match line.as_str() {
        "" | "exit 4\n" => skip("a link without a process that collects orphans", &line),
        _ => assert_eq!(line, "exit 0\n"),
    }
}

#[test]
fn a_wrong_spec_is_a_usage_error_that_names_the_key() {
    let out = intact(&["link", "rtt=30ms,bandwith=1mbit", "--", "true"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("there is no \"bandwith\""));
}

#[test]
fn a_server_of_ones_own_is_waited_for() {
    let server = format!(
        "exec {} serve --listen 0.0.0.0:8000 --tls-listen 0.0.0.0:8001 >/dev/null",
        env!("CARGO_BIN_EXE_intact")
    );
    let words = [
        "link",
        "rtt=0",
        "--server",
        &server,
        "--port",
        "8000",
        "--",
        "printenv",
        "INTACT_URL",
    ];
    let Some(out) = on_link(&words, "--server") else {
        return;
    };
    assert_eq!(
        text(&out.stdout),
        "http://server.test:8000/\n",
        "{}",
        text(&out.stderr)
    );
}

#[test]
fn a_server_that_ends_before_it_listens_is_our_failure_with_its_status() {
    let words = ["link", "rtt=0", "--server", "exit 3", "--", "true"];
    let Some(out) = on_link(&words, "--server ends") else {
        return;
    };
    assert_eq!(out.status.code(), Some(125));
    assert!(
        text(&out.stderr).contains("exit status: 3"),
        "{}",
        text(&out.stderr)
    );
}

#[test]
fn serve_behind_a_link_takes_its_own_options() {
    let words = [
        "serve",
        "--max-requests",
        "1",
        "--link",
        "rtt=0",
        "--",
        "sh",
        "-c",
        "exec \"$0\" bench $INTACT_URL -n 8 --rounds 1 --keepalive on --json",
        env!("CARGO_BIN_EXE_intact"),
    ];
    let Some(out) = on_link(&words, "serve --link") else {
        return;
    };
    let document: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(
        document["variants"][0]["reused"], 0,
        "one request per connection"
    );
}

#[test]
fn the_socket_of_a_link_replaces_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("notes");
    std::fs::write(&file, "mine").unwrap();
    let status = Command::new(env!("CARGO_BIN_EXE_intact"))
        .args(["link", "rtt=0", "--control"])
        .arg(&file)
        .args(["--", "true"])
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(!status.success());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
}

#[test]
fn a_link_is_switched_while_a_command_runs() {
    let folder = tempfile::tempdir().unwrap();
    let control = folder.path().join("control");
    let mut child = Command::new(env!("CARGO_BIN_EXE_intact"))
        .args(["link", "rtt=0", "--control"])
        .arg(&control)
        .args(["--", "sh", "-c", "echo ready; read -r line"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut ready = String::new();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut ready).unwrap();
    if ready.is_empty() {
        // covered by the other tests
        assert_eq!(child.wait().unwrap().code(), Some(4));
        return;
    }
    let mut stream = UnixStream::connect(&control).unwrap();
    let mut answers = BufReader::new(stream.try_clone().unwrap()).lines();
    writeln!(stream, "drop=both,forget=queued").unwrap();
    assert_eq!(answers.next().unwrap().unwrap(), "done");
    writeln!(stream, "drop=some").unwrap();
    assert!(
        answers
            .next()
            .unwrap()
            .unwrap()
            .contains("up, down, both or none")
    );
    drop(child.stdin.take());
    child.wait().unwrap();
    assert!(!control.exists());
}

#[test]
fn a_bench_on_the_link_that_the_whole_process_group_is_asked_to_end_prints_its_page() {
    let test = "bench --link and a signal to the group";
    if on_link(&["link", "rtt=0", "--", "true"], test).is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (ledger, json) = (folder.path().join("ledger"), folder.path().join("json"));
    let child = Command::new(env!("CARGO_BIN_EXE_intact"))
        .args([
            "bench", "--link", "rtt=5ms", "-z", "60s", "--rounds", "1000",
        ])
        .arg(format!("--json={}", json.display()))
        .arg("--ledger")
        .arg(&ledger)
        .process_group(0)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    crate::program::wait_for(&ledger.join("tally.json"));
    let group = format!("-{}", child.id());
    let kill = Command::new("kill").args(["-TERM", "--", &group]).status();
    assert!(kill.unwrap().success());
    let out = child.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(143));
    assert!(text(&out.stdout).contains("keepalive=on"));
    assert!(json.exists() && ledger.join("end.json").exists());
}

#[test]
fn where_links_are_forbidden_the_exit_code_says_so_and_the_message_what_would_allow_it() {
    // in a user namespace of its own the limit is its own
    let out = Command::new("unshare")
        .args(["--user", "--map-root-user", "sh", "-c"])
        .arg(
            "echo 0 > /proc/sys/user/max_net_namespaces || exit 99; exec \"$0\" link rtt=0 -- true",
        )
        .arg(env!("CARGO_BIN_EXE_intact"))
        .output();
    let Ok(out) = out else { return };
    if !matches!(out.status.code(), Some(1 | 99)) {
        assert_eq!(out.status.code(), Some(4), "{}", text(&out.stderr));
        assert!(text(&out.stderr).contains("user.max_net_namespaces"));
    }
}

#[test]
fn a_bench_of_our_own_server_goes_behind_a_link_and_says_so() {
    let words = [
        "bench",
        "--link",
        "up=15ms,down=5ms",
        "-n",
        "16",
        "--rounds",
        "8",
        "--json",
    ];
    let Some(out) = on_link(&words, "bench --link") else {
        return;
    };
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let document: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(document["run"]["link"], "up=15ms,down=5ms");
    for (variant, at_least_ms) in document["variants"]
        .as_array()
        .unwrap()
        .iter()
        .zip([20.0, 40.0])
    {
        let mean = variant["latency_ms"]["mean"].as_f64().unwrap();
        assert!(mean >= at_least_ms, "{variant:#}");
        assert!(
            variant["server_cpu_us_per_request"].is_number(),
            "{variant:#}"
        );
    }
    let printed = text(&out.stderr);
    let (before, after) = (printed.find("round trip"), printed.find(" delivered"));
    assert!(before.is_some() && before < after, "{printed}");
}

#[test]
fn another_server_is_not_behind_the_link_of_a_bench() {
    let out = intact(&["bench", "--link", "rtt=1ms", "http://127.0.0.1:1/"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("intact link rtt=1ms --server CMD"));
}

/// Checks the page of the demonstration, and its last lines.
fn check_demonstration(out: &Output, place: &str) {
    let page = text(&out.stdout);
    assert!(
        page.starts_with(&format!("intact bench the built-in server {place}\n")),
        "{page} {}",
        text(&out.stderr)
    );
    let last: Vec<&str> = page.lines().rev().take(2).collect();
    assert_eq!(
        last[0],
        "  Your server: `intact bench https://your.server/`"
    );
    assert!(
        last[1].starts_with("  A request on a new connection takes "),
        "{page}"
    );
}

#[test]
fn the_demonstration_ends_with_the_cost_of_a_connection_and_the_next_command() {
    let Some(_) = on_link(&["link", "rtt=0", "--", "true"], "the demonstration") else {
        return;
    };
    check_demonstration(&intact(&[]), "behind rtt=30ms");
}

#[test]
fn the_demonstration_runs_on_plain_loopback_where_links_are_forbidden() {
    // a user namespace that may not have any namespace below it
    let line = "echo 0 > /proc/sys/user/max_net_namespaces || exit 77; echo 0 > /proc/sys/user/max_user_namespaces; exec \"$0\"";
    let out = Command::new("unshare")
        .args(["-Ur", "sh", "-c", line, env!("CARGO_BIN_EXE_intact")])
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    if out.stdout.is_empty() && !text(&out.stderr).contains("demonstration") {
        skip("the demonstration on loopback", &text(&out.stderr));
        return;
    }
    assert!(text(&out.stderr).contains("so this is plain loopback"));
    check_demonstration(&out, "on plain loopback, 0 ms away");
}

/// A server that writes each response in one or two pieces; every third one in the manner of
/// `SLOW`.
const TIERED_SERVER: &str = r#"
import os, socket, threading, time
slow = os.environ["SLOW"]
def serve(peer):
    data, nth = b"", 0
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, slow != "nagle")
    # elsewhere Nagle's algorithm is on
    while True:
        while b"\r\n\r\n" not in data:
            more = peer.recv(4096)
            if not more:
                return
            data += more
        data = data.partition(b"\r\n\r\n")[2]
        nth += 1
        third = nth % 3 == 0
        if third and slow == "wait":
            time.sleep(0.025)
        head, body = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", b"hello"
        if third and slow in ("gap", "nagle"):
            peer.sendall(head)
            time.sleep(0.02 if slow == "gap" else 0)
            peer.sendall(body)
        else:
            peer.sendall(head + body)
listener = socket.create_server(("0.0.0.0", 80), backlog=100)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"#;

/// The cause of the slowest tier of a bench on a link, and the sentence of all.
fn tiers_on_link(spec: &str, slow: &str, rounds: &str) -> Option<(Value, String)> {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("server.py");
    std::fs::write(&script, TIERED_SERVER).unwrap();
    let json = folder.path().join("bench.json");
    let server = format!("SLOW={slow} exec python3 {}", script.display());
    let intact = env!("CARGO_BIN_EXE_intact");
    let wanted = format!("--json={}", json.display());
    let bench = [
        "bench",
        "http://server.test/",
        "--keepalive",
        "on",
        "-n",
        "90",
    ];
    let words = [
        &["link", spec, "--server", &server, "--", intact][..],
        &bench,
        &["--rounds", rounds, &wanted],
    ]
    .concat();
    let out = on_link(&words, "tiers of the first calls")?;
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let document: Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    let variant = &document["variants"][0];
    let tiers = &variant["tiers"];
    let sentence = tiers["sentence"].as_str().unwrap_or_default();
    let slowest = tiers["levels"].as_array().and_then(|levels| levels.last());
    let cause = slowest.map_or(Value::Null, |one| one["cause"].clone());
    Some((cause, sentence.to_owned()))
}

#[test]
fn the_cause_of_slow_first_calls_on_a_link_is_named() {
    if crate::peers::program("python3", "tiers of the first calls").is_none() {
        return;
    }
    for (spec, slow, rounds, cause, words) in [
        // as many handshakes as rounds show the path
        ("rtt=4ms", "wait", "20", "server-wait", "server wait: "),
        // the acknowledgement comes with the response
        ("rtt=4ms", "wait", "1", "server-or-path", "server or path: "),
        (
            "rtt=4ms",
            "gap",
            "2",
            "headers-to-body",
            "headers-to-body gap: ",
        ),
        ("rtt=4ms", "nagle", "2", "delayed-ack", "delayed ACK: "),
        (
            "rtt=4ms,loss=8%",
            "never",
            "2",
            "retransmission",
            "retransmission: ",
        ),
    ] {
        let Some((seen, sentence)) = tiers_on_link(spec, slow, rounds) else {
            return;
        };
        assert_eq!(seen, cause, "{spec}, {slow}: {sentence}");
        assert!(sentence.contains(words), "{sentence}");
    }
}

#[test]
fn jitter_of_a_link_is_never_blamed_on_the_server() {
    if crate::peers::program("python3", "tiers of the first calls").is_none() {
        return;
    }
    // as many handshakes as rounds show the path
    let found = tiers_on_link("rtt=20ms,jitter=10ms", "never", "20");
    let Some((seen, sentence)) = found else {
        return;
    };
    assert!(seen.is_null() || seen == "jitter", "{sentence}");
}

#[test]
fn a_signal_while_a_link_is_made_ends_it_and_leaves_nothing() {
    if on_link(
        &["link", "rtt=0", "--", "true"],
        "a signal while a link is made",
    )
    .is_none()
    {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let [begun, control] = ["begun", "control"].map(|name| folder.path().join(name));
    // a server that never listens
    let server = format!("echo > {}; sleep 60; true", begun.display());
    let child = Command::new(env!("CARGO_BIN_EXE_intact"))
        .args(["link", "rtt=0", "--server", &server, "--control"])
        .arg(&control)
        .args(["--", "true"])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    crate::program::wait_for(&begun);
    crate::program::signal(child.id(), "-TERM");
    let out = child.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(143));
    assert!(!control.exists());
    let name = begun.to_str().unwrap();
    let end = Instant::now() + Duration::from_secs(10);
    while is_named(name) && Instant::now() < end {
        sleep(Duration::from_millis(5));
    }
    assert!(!is_named(name), "the server has ended");
}

/// Whether a process has this text in its command line.
fn is_named(text: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let mut lines = processes.filter_map(|one| std::fs::read(one.path().join("cmdline")).ok());
    lines.any(|line| String::from_utf8_lossy(&line).contains(text))
}
