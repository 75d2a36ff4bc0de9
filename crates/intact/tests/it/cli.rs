//! Exit codes and messages.

use crate::peers::CLOSED;
use crate::program::{Schema, Server, intact};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::Output;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

fn code(out: &Output) -> i32 {
    out.status.code().unwrap()
}

fn said(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

#[test]
fn bad_usage_exits_2_and_names_the_option() {
    for (words, name) in [
        (&["bench", "http://127.0.0.1:9/", "-n", "0"][..], "-n"),
        (&["bench", "http://127.0.0.1:9/", "-c", "0"], "-c"),
        (
            &["bench", "http://127.0.0.1:9/", "-c", "0", "-n", "5"],
            "-c",
        ),
        (
            &[
                "bench",
                "https://localhost:9/",
                "--http",
                "2",
                "--streams",
                "0",
                "-n",
                "5",
            ],
            "--streams",
        ),
        (&["bench", "http://127.0.0.1:9/", "--http", "4"], "--http"),
        (
            &["bench", "http://127.0.0.1:9/", "--require", "p98 < 1ms"],
            "--require",
        ),
        (&["bench", "http://127.0.0.1:9/", "-H", "no colon"], "-H"),
        (
            &["bench", "http://127.0.0.1:9/", "--resolve", "x"],
            "--resolve",
        ),
        (&["bench", "http://127.0.0.1:9/", "-z", "10x"], "-z"),
        (
            &["bench", "http://127.0.0.1:9/", "--tls", "1.3"],
            "--tls-port",
        ),
        (
            &["bench", "https://localhost:9/", "--cacert", "/no/such/file"],
            "--cacert",
        ),
        (&["bench", "ftp://host/"], "http or https"),
        (
            &["bench", "http://127.0.0.1:9/", "-c", "1,"],
            "as in -c 1,10",
        ),
        (
            &["bench", "http://127.0.0.1:9/", "--rtt", "30ms"],
            "--link rtt=30ms",
        ),
        (&["serve", "--body", "10kb"], "20kB"),
        (
            &[
                "bench",
                "http://127.0.0.1:9/",
                "--body-file",
                "/no/such/file",
            ],
            "--body-file",
        ),
    ] {
        let out = intact(words);
        assert_eq!(code(&out), 2, "{words:?}: {}", said(&out));
        assert!(said(&out).contains(name), "{words:?}: {}", said(&out));
    }
}

/// What ends a line, or a part of it, in some reader.
const BREAKS: [&str; 6] = ["\r\nX: 1", "\nX: 1", "\rX", "\u{1}", "\u{7f}", "\u{1b}[2J"];

/// Every option whose text becomes bytes on the wire, as words around the place of that text.
const WIRE_TEXTS: &[(&[&str], &str, &str)] = &[
    (
        &["bench", "http://127.0.0.1:9/", "-n", "1", "-X"],
        "GET",
        "-X",
    ),
    (
        &["bench", "http://127.0.0.1:9/", "-n", "1", "-X"],
        "GET / HTTP/1.1",
        "-X",
    ),
    (
        &["bench", "http://127.0.0.1:9/", "-n", "1", "-H"],
        "X-A",
        "-H",
    ),
    (
        &["bench", "http://127.0.0.1:9/", "-n", "1", "-H"],
        "X-A: b",
        "-H",
    ),
    (
        &["bench", "http://127.0.0.1:9/", "-n", "1", "-H"],
        "Host: h",
        "-H",
    ),
    (
        &["bench", "http://127.0.0.1:9/", "-n", "1", "-H"],
        "User-Agent: a",
        "-H",
    ),
    (
        &[
            "bench",
            "http://127.0.0.1:9/",
            "-n",
            "1",
            "--http",
            "2",
            "-H",
        ],
        "X-A: b",
        "-H",
    ),
    (
        &["bench", "http://127.0.0.1:9/", "-n", "1", "-d", "x", "-T"],
        "text/plain",
        "Content-Type",
    ),
    (&["bench", "-n", "1"], "http://127.0.0.1:9/a", "http://"),
    (&["bench", "-n", "1"], "http://127.0.0.1:9/a?b=", "http://"),
    (&["bench", "-n", "1"], "http://127.0.0.1", "http://"),
    (&["bench", "-n", "1"], "https://localhost", "https://"),
    (
        &["bench", "http://127.0.0.1:9/", "-n", "1", "--resolve"],
        "a",
        "--resolve",
    ),
    (
        &["bench", "http://127.0.0.1:9/", "-n", "1", "--resolve"],
        "a:1:127.0.0.1",
        "--resolve",
    ),
    (
        &["bench", "http://127.0.0.1:9/", "-n", "1", "--connect-to"],
        "::b",
        "--connect-to",
    ),
    (
        &["bench", "http://127.0.0.1:9/", "-n", "1", "--connect-to"],
        "x:1:b:2",
        "--connect-to",
    ),
    (
        &["bench", "http://127.0.0.1:9/", "-n", "1", "--proxy"],
        "http://127.0.0.1:9",
        "http://",
    ),
    (
        &["check", "http://127.0.0.1:9/", "--no-idle", "-X"],
        "GET",
        "-X",
    ),
    (
        &["check", "http://127.0.0.1:9/", "--no-idle", "-H"],
        "X-A: b",
        "-H",
    ),
    (
        &["check", "http://127.0.0.1:9/", "--no-idle", "--try"],
        "/a",
        "--try",
    ),
    (
        &["check", "http://127.0.0.1:9/", "--no-idle", "--try"],
        "POST /a",
        "--try",
    ),
    (
        &["check", "http://127.0.0.1:9/", "--no-idle", "--resolve"],
        "a:1:127.0.0.1",
        "--resolve",
    ),
    (
        &["check", "http://127.0.0.1:9/", "--no-idle", "--connect-to"],
        "x:1:b:2",
        "--connect-to",
    ),
    (&["check", "--no-idle"], "http://127.0.0.1:9/a", "http://"),
];

#[test]
fn no_argument_ends_its_line_on_the_wire() {
    for (words, text, name) in WIRE_TEXTS {
        for broken in BREAKS {
            let text = format!("{text}{broken}");
            let mut all = words.to_vec();
            all.push(&text);
            let out = intact(&all);
            assert_eq!(code(&out), 2, "{all:?}: {}", said(&out));
            assert!(said(&out).contains(name), "{all:?}: {}", said(&out));
        }
    }
}

#[test]
fn a_target_that_never_answers_exits_3() {
    let out = intact(&["bench", &format!("http://{CLOSED}/"), "-n", "10"]);
    assert_eq!(code(&out), 3, "{}", said(&out));
    assert!(String::from_utf8_lossy(&out.stdout).contains("refused"));
}

#[test]
fn a_requirement_that_fails_exits_1_and_says_which() {
    let server = Server::start(&[]);
    let out = intact(&[
        "bench",
        &server.plain(),
        "-n",
        "40",
        "--require",
        "failed == 0",
        "--require",
        "keepalive=on: mean < 1ns",
    ]);
    assert_eq!(code(&out), 1, "{}", said(&out));
    assert!(
        said(&out).contains("mean < 1ns") || said(&out).contains("1ns"),
        "{}",
        said(&out)
    );
    let out = intact(&[
        "bench",
        &server.plain(),
        "-n",
        "40",
        "--require",
        "failed == 0",
    ]);
    assert_eq!(code(&out), 0, "{}", said(&out));
}

#[test]
fn an_unreadable_ledger_exits_5() {
    let folder = tempfile::tempdir().unwrap();
    let out = intact(&["report", folder.path().to_str().unwrap()]);
    assert_eq!(code(&out), 5);
    assert!(said(&out).contains("no ledger"));
}

#[test]
fn json_comes_alone_on_standard_output() {
    let server = Server::start(&[]);
    let out = intact(&[
        "bench",
        "--json",
        &server.plain(),
        "-n",
        "20",
        "--require",
        "failed == 0",
    ]);
    let document: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(document["schema"], "intact.bench/1");
}

#[test]
fn the_certificate_of_a_server_is_checked_by_default() {
    let server = Server::start(&[]);
    let url = format!("https://localhost:{}/", server.tls_port());
    let out = intact(&["bench", &url, "-n", "10"]);
    assert_eq!(code(&out), 3);
    assert!(
        String::from_utf8_lossy(&out.stdout).contains("certificate-unknown"),
        "{}",
        String::from_utf8_lossy(&out.stdout)
    );
    assert_eq!(code(&intact(&["bench", &url, "-n", "10", "--insecure"])), 0);
}

#[cfg(unix)]
#[test]
fn an_interrupted_bench_prints_what_was_measured_and_exits_by_the_signal() {
    use std::process::{Command, Stdio};
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("ledger");
    let child = Command::new(env!("CARGO_BIN_EXE_intact"))
        .args([
            "bench",
            &server.plain(),
            "-z",
            "60s",
            "--rounds",
            "1000",
            "--ledger",
        ])
        .arg(&ledger)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    crate::program::wait_for(&ledger.join("tally.json"));
    crate::program::signal(child.id(), "-INT");
    let out = child.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(130));
    assert!(String::from_utf8_lossy(&out.stdout).contains("keepalive=on"));
}

#[test]
fn connections_that_time_out_do_not_break_the_number_that_was_announced() {
    let server = Server::start(&["--delay", "10s"]);
    let out = intact(&[
        "bench",
        &server.plain(),
        "--rate",
        "20/s",
        "-n",
        "20",
        "-c",
        "2",
        "--keepalive",
        "on",
        "--timeout",
        "50ms",
        "--rounds",
        "1",
    ]);
    let announced = String::from_utf8_lossy(&out.stderr);
    assert!(
        announced.contains("on 3 connections if none ends early"),
        "{announced}"
    );
}

#[test]
fn the_document_is_what_its_schema_says() {
    let schema = Schema::named("bench");
    let server = Server::start(&["--max-requests", "7"]);
    for words in [
        &[
            server.plain().as_str(),
            "--http",
            "1.0,1.1,2",
            "-n",
            "160",
            "--rounds",
            "8",
        ][..],
        &[server.plain().as_str(), "-n", "6", "--rounds", "2"],
        &[&format!("http://{CLOSED}/"), "-n", "4"],
    ] {
        let document = crate::program::bench(words);
        schema.check(&document);
    }
}

#[test]
fn a_url_in_the_place_of_a_command_is_a_short_check_and_a_short_bench() {
    let server = Server::start(&[]);
    let out = intact(&[&server.plain(), "-H", "X-A: b"]);
    assert_eq!(code(&out), 0, "{}", said(&out));
    let page = String::from_utf8(out.stdout).unwrap();
    assert!(page.contains("Keeps connections"), "{page}");
    assert!(page.contains("keepalive=off"), "{page}");
    let out = intact(&[CLOSED]);
    assert_eq!(code(&out), 3, "{}", said(&out));
    assert!(!String::from_utf8(out.stdout).unwrap().contains("Variants"));
}

#[test]
fn a_file_or_a_ledger_in_the_place_of_a_command_names_what_reads_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("access.log");
    std::fs::write(&file, "x").unwrap();
    std::fs::write(folder.path().join("run.json"), "{}").unwrap();
    for (path, command) in [
        (file.as_path(), "intact audit "),
        (folder.path(), "intact report "),
    ] {
        let out = intact(&[path.to_str().unwrap()]);
        assert_eq!(code(&out), 2);
        assert!(said(&out).contains(command), "{}", said(&out));
    }
}

#[test]
fn watch_without_a_program_names_those_that_run() {
    let out = intact(&["watch"]);
    assert_eq!(code(&out), 2);
    assert!(said(&out).contains("--pid"), "{}", said(&out));
}

#[test]
fn a_misspelt_command_is_no_url() {
    let out = intact(&["bnech"]);
    assert_eq!(code(&out), 2);
    assert!(said(&out).contains("'bench'"), "{}", said(&out));
}

#[test]
fn a_bench_has_the_gates_of_the_other_commands() {
    let dir = tempfile::tempdir().unwrap();
    let (junit, markdown) = (dir.path().join("j.xml"), dir.path().join("s.md"));
    let server = Server::start(&["--max-requests", "5"]);
    let words = |fail_on: &'static str| {
        let out = intact(&[
            "bench",
            &server.plain(),
            "-n",
            "100",
            "--keepalive",
            "on",
            "--fail-on",
            fail_on,
            "--junit",
            junit.to_str().unwrap(),
            "--report",
            markdown.to_str().unwrap(),
        ]);
        out.status.code()
    };
    assert_eq!(
        words("warning"),
        Some(1),
        "the server closes after 5 requests"
    );
    let tests = std::fs::read_to_string(&junit).unwrap();
    assert!(
        tests.contains("<testcase classname=\"intact.bench.rules\" name=\"server-closes-early\">"),
        "{tests}"
    );
    assert!(
        !tests.contains("stale-reuse"),
        "a rule that nobody looked at: {tests}"
    );
    assert_eq!(words("error"), Some(0));
    let pages = std::fs::read_to_string(&markdown).unwrap();
    assert_eq!(pages.matches("## intact bench").count(), 2, "{pages}");
}

#[test]
fn a_run_that_measured_nothing_does_not_pass_fail_on() {
    let dir = tempfile::tempdir().unwrap();
    for command in ["bench", "check"] {
        let ledger = dir.path().join(command);
        let ledger = ledger.to_str().unwrap();
        let out = intact(&[command, CLOSED, "--ledger", ledger, "--fail-on", "error"]);
        assert_eq!(code(&out), 3, "{command}: {}", said(&out));
        let out = intact(&["report", ledger, "--fail-on", "error"]);
        assert_eq!(code(&out), 1, "{command}: {}", said(&out));
        let reason = "--fail-on: findings may be missing";
        assert!(said(&out).contains(reason), "{command}: {}", said(&out));
    }
}

// a program is watched on Linux only
#[cfg(target_os = "linux")]
#[test]
fn a_program_needs_no_dashes_before_it_and_keeps_its_own() {
    for before in [&["watch", "--quiet"][..], &["watch", "--quiet", "--"]] {
        let script = "echo \"$@\"; exit 3";
        let program = ["sh", "-c", script, "sh", "--json", "--", "-q", "x"];
        let out = intact(&[before, &program].concat());
        assert_eq!(code(&out), 3, "{before:?}: {}", said(&out));
        assert_eq!(String::from_utf8_lossy(&out.stdout), "--json -- -q x\n");
    }
    // an option that does not exist is no program
    let out = intact(&["watch", "--qiet", "true"]);
    assert_eq!(code(&out), 2, "{}", said(&out));
    assert!(said(&out).contains("'--quiet'"), "{}", said(&out));
}

#[test]
fn data_after_an_at_sign_is_read_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("order.json");
    std::fs::write(&file, "{\"a\": 1}\n").unwrap();
    let (url, bodies) = body_collector();
    let data = format!("@{}", file.display());
    let words = ["bench", &url, "-n", "1", "--keepalive", "off", "-d", &data];
    let out = intact(&words);
    assert_eq!(code(&out), 0, "{}", said(&out));
    let bodies: Vec<String> = bodies.try_iter().collect();
    assert!(!bodies.is_empty());
    assert!(bodies.iter().all(|one| one == "{\"a\": 1}\n"), "{bodies:?}");
    let out = intact(&["bench", &url, "-d", "@/no/such/file"]);
    assert_eq!(code(&out), 2, "{}", said(&out));
    assert!(
        said(&out).contains("--data @/no/such/file"),
        "{}",
        said(&out)
    );
}

/// A server that closes after each response, and the bodies of the requests that it received.
fn body_collector() -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let (sender, bodies) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let mut length = 0;
            loop {
                let mut line = String::new();
                if stream.read_line(&mut line).unwrap_or(0) == 0 {
                    break;
                }
                if let Some(value) = line.strip_prefix("Content-Length: ") {
                    length = value.trim().parse().unwrap();
                }
                if line == "\r\n" {
                    let mut body = vec![0; length];
                    stream.read_exact(&mut body).unwrap();
                    let response =
                        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
                    stream.get_mut().write_all(response).unwrap();
                    let _ = sender.send(String::from_utf8(body).unwrap());
                    break;
                }
            }
        }
    });
    (url, bodies)
}

#[test]
fn no_message_names_what_the_help_does_not() {
    for words in [
        &["intern"][..],
        &["internals"],
        &["link-keep"],
        &["lambda-watch"],
        &["help", "link-keeper"],
    ] {
        let out = intact(words);
        assert_eq!(code(&out), 2, "{words:?}");
        let hidden = ["'internal'", "'link-keeper'", "'lambda-watcher'"];
        let quoted = said(&out);
        // clap repeats what was written
        let rest = quoted.replace(&format!("'{}'", words[words.len() - 1]), "");
        for name in hidden {
            assert!(!rest.contains(name), "{words:?}: {quoted}");
        }
    }
}

#[test]
fn an_unknown_metric_gets_a_suggestion() {
    for (written, meant) in [
        ("conections <= 3", "did you mean `connections`?"),
        ("rps > 100", "did you mean `throughput`?"),
        ("p95 < 10ms", "did you mean `p90`?"),
        ("latency < 10ms", "did you mean `mean`?"),
        ("temperature < 3", "`--require help` lists all metrics"),
    ] {
        let out = intact(&["bench", "http://127.0.0.1:9/", "--require", written]);
        assert_eq!(code(&out), 2, "{written}");
        assert!(said(&out).contains(meant), "{written}: {}", said(&out));
    }
}

#[test]
fn completions_and_manual_pages_are_printed() {
    for shell in ["bash", "zsh", "fish"] {
        let out = intact(&["completions", shell]);
        assert_eq!(code(&out), 0, "{}", said(&out));
        let script = String::from_utf8(out.stdout).unwrap();
        assert!(script.contains("idle-limit") && script.contains("completions"));
        assert!(!script.contains("link-keeper"), "{shell}");
    }
    let page = |words: &[&str]| {
        let out = intact(&[&["man"], words].concat());
        assert_eq!(code(&out), 0, "{}", said(&out));
        String::from_utf8(out.stdout).unwrap()
    };
    assert!(page(&[]).contains(".TH intact 1"));
    let bench = page(&["bench"]);
    assert!(bench.contains(".TH intact-bench 1"), "{bench}");
    assert!(bench.contains("keepalive"), "{bench}");
    let out = intact(&["man", "bensh"]);
    assert_eq!(code(&out), 2);
    assert!(said(&out).contains("did you mean bench?"), "{}", said(&out));
}
