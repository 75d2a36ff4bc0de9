//! Input that is large, or never ends: memory stays bounded, and nothing hangs.

use crate::observed::store;
use std::fmt::Write as _;
use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const BEFORE: &str = r#"{"log":{"creator":{"name":"x"},"entries":["#;

/// An entry of a HAR.
fn entry(nth: usize, url: &str, more: &str) -> String {
    let (seconds, ms) = (nth / 1000 % 60, nth % 1000);
    let minutes = nth / 60_000;
    format!(
        r#"{{"startedDateTime":"2024-01-01T00:{minutes:02}:{seconds:02}.{ms:03}Z","time":5,"connection":"{nth}","request":{{"method":"GET","url":"{url}"{more}}},"response":{{"status":200}},"timings":{{"connect":1,"send":1,"wait":1,"receive":1}}}}"#
    )
}

/// Runs `intact` with this many megabytes of memory (RLIMIT_DATA), its input from `write`, for at
/// most four minutes.
fn limited(megabytes: u64, words: &[&str], write: impl FnOnce(&mut dyn Write)) -> Output {
    let kilobytes = megabytes * 1024;
    let line = format!("ulimit -d {kilobytes}; exec timeout 240 \"$0\" \"$@\"");
    let mut child = Command::new("bash")
        .args(["-c", &line, env!("CARGO_BIN_EXE_intact")])
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    write(&mut input);
    drop(input);
    child.wait_with_output().unwrap()
}

fn code(out: &Output) -> i32 {
    out.status.code().unwrap_or(-1)
}

fn requests(out: &Output) -> u64 {
    let text = String::from_utf8_lossy(&out.stdout);
    let document: serde_json::Value =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {out:?}"));
    document["requests"]["total"].as_u64().unwrap()
}

#[test]
fn a_har_with_a_huge_url_takes_little_memory() {
    const MEGABYTES: usize = 160;
    let huge = vec![b'x'; 1 << 20];
    let out = limited(96, &["audit", "--json", "-"], |input| {
        let (before, after) = ("https://a.example/p?", "");
        let whole = entry(0, &format!("{before}MIDDLE{after}"), "");
        let (start, end) = whole.split_once("MIDDLE").unwrap();
        let _ = input.write_all(format!("{BEFORE}{start}").as_bytes());
        for _ in 0..MEGABYTES {
            let _ = input.write_all(&huge);
        }
        let rest = format!("{end},{}]}}}}", entry(1, "https://a.example/q", ""));
        let _ = input.write_all(rest.as_bytes());
    });
    assert_eq!(code(&out), 0, "{out:?}");
    assert_eq!(requests(&out), 2);
}

#[test]
fn header_fields_of_a_har_that_are_not_read_are_not_kept() {
    let mut fields = String::from(r#","headers":["#);
    for nth in 0..400_000 {
        let _ = write!(fields, r#"{{"name":"X-{nth}","value":"{nth}"}},"#);
    }
    fields.push_str(r#"{"name":"User-Agent","value":"y"}]"#);
    let har = format!("{BEFORE}{}]}}}}", entry(0, "https://a.example/", &fields));
    let out = limited(32, &["audit", "--json", "-"], |input| {
        let _ = input.write_all(har.as_bytes());
    });
    assert_eq!((code(&out), requests(&out)), (0, 1));
}

/// 1.8 kB were needed for each.
#[test]
fn an_entry_of_a_har_takes_little_memory() {
    const ENTRIES: usize = 40_000;
    let out = limited(80, &["audit", "--json", "-"], |input| {
        let _ = input.write_all(BEFORE.as_bytes());
        for nth in 0..ENTRIES {
            let comma = if nth == 0 { "" } else { "," };
            let url = format!("https://a.example/items/{nth}");
            let _ = input.write_all(format!("{comma}{}", entry(nth, &url, "")).as_bytes());
        }
        let _ = input.write_all(b"]}}");
    });
    assert_eq!(code(&out), 0, "{}", String::from_utf8_lossy(&out.stderr));
    assert_eq!(requests(&out), ENTRIES as u64);
}

/// Runs `intact` on files, with little memory.
fn on_files(words: &[&str]) -> Output {
    limited(256, words, |_| {})
}

fn make_pipe(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}

#[test]
fn a_ledger_of_devices_and_pipes_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["run.json", "events.jsonl.zst", "tally.json", "end.json"] {
        for kind in ["device", "pipe"] {
            let path = folder.path().join(format!("{name}-{kind}"));
            let ledger = store(&path, "tls-never-resumed/fires");
            let file = path.join(name);
            let _ = fs::remove_file(&file);
            if kind == "pipe" {
                make_pipe(&file);
            } else {
                symlink("/dev/zero", &file).unwrap();
            }
            // the tally is of a bench
            if name == "tally.json" {
                let run = fs::read_to_string(path.join("run.json")).unwrap();
                fs::write(path.join("run.json"), run.replace("\"watch\"", "\"bench\"")).unwrap();
            }
            let commands = [
                vec!["report", &ledger],
                vec!["audit", &ledger],
                vec!["compare", &ledger, &ledger],
                vec!["model", &ledger],
                vec!["bench", "--baseline", &ledger],
            ];
            let is_of_bench = name == "tally.json";
            for words in commands {
                if is_of_bench != ["report", "bench"].contains(&words[0]) && name != "run.json" {
                    continue;
                }
                let out = on_files(&words);
                let said = String::from_utf8_lossy(&out.stderr);
                assert_eq!(code(&out), 5, "{name} {kind} {words:?}: {said}");
                // without a head that is a file, `audit` takes the folder for one of inputs
                let is_folder = words[0] == "audit" && name == "run.json";
                let is_named = said.contains("not a regular file");
                assert!(is_named || is_folder, "{words:?}: {said}");
            }
        }
    }
}

#[test]
fn inputs_that_are_no_files_are_refused_and_those_that_are_too_large_too() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let ledger = store(&folder.path().join("ledger"), "tls-never-resumed/fires");
    let pipe = at("pipe.toml");
    make_pipe(Path::new(&pipe));
    let device = at("device.toml");
    symlink("/dev/zero", &device).unwrap();
    for odd in [&pipe, &device] {
        for (words, expected) in [
            (vec!["audit", odd], 5),
            (vec!["audit", "--keylog", odd, &ledger], 5),
            (vec!["model", odd], 5),
            (vec!["fleet", "plan", odd], 2),
            (vec!["lambda", "--event", odd, "--", "true"], 2),
            (vec!["bench", "--cacert", odd, "https://127.0.0.1:9/"], 2),
        ] {
            let out = on_files(&words);
            let said = String::from_utf8_lossy(&out.stderr);
            assert_eq!(code(&out), expected, "{words:?}: {said}");
            assert!(said.contains("not a regular file"), "{words:?}: {said}");
        }
    }
    // sparse: nothing is on the disk
    let sparse = |name: &str| {
        let path = at(name);
        let file = fs::File::create(&path).unwrap();
        file.set_len(8 << 30).unwrap();
        path
    };
    let path = folder.path().join("large");
    let large = store(&path, "tls-never-resumed/fires");
    fs::remove_file(path.join("run.json")).unwrap();
    sparse("large/run.json");
    let toml = sparse("large.toml");
    for words in [
        vec!["report", &large],
        vec!["audit", "--keylog", &toml, &ledger],
        vec!["model", &toml],
    ] {
        let out = limited(1024, &words, |_| {});
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!(code(&out), 5, "{words:?}: {said}");
        assert!(said.contains("larger than"), "{words:?}: {said}");
    }
}

#[test]
fn standard_input_and_the_pipe_of_a_shell_are_inputs() {
    let har = format!("{BEFORE}{}]}}}}", entry(0, "https://a.example/", ""));
    let out = limited(256, &["audit", "--json", "-"], |input| {
        input.write_all(har.as_bytes()).unwrap();
    });
    assert_eq!((code(&out), requests(&out)), (0, 1));
    let line = "exec \"$0\" audit --json <(printf %s \"$1\")";
    let out = Command::new("bash")
        .args(["-c", line, env!("CARGO_BIN_EXE_intact"), &har])
        .output()
        .unwrap();
    assert_eq!((code(&out), requests(&out)), (0, 1));
}

/// 729 MB were needed for as many lines.
#[test]
fn a_key_log_takes_little_more_memory_than_its_secrets() {
    const LINES: usize = 1_000_000;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys");
    let mut file = std::io::BufWriter::new(fs::File::create(&path).unwrap());
    let secret = "5a".repeat(48);
    for nth in 0..LINES {
        writeln!(file, "CLIENT_RANDOM {nth:064x} {secret}").unwrap();
    }
    drop(file);
    let capture = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../fixtures/captures/nginx-curl.pcap"
    );
    let out = limited(
        300,
        &[
            "audit",
            "--json",
            "--keylog",
            path.to_str().unwrap(),
            capture,
        ],
        |_| {},
    );
    assert_eq!(code(&out), 0, "{}", String::from_utf8_lossy(&out.stderr));
}
