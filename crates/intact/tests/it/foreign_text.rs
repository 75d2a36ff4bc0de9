//! Text of servers, files and command lines reaches no terminal, log or file as anything but text.
//! Every string of stored ledgers is replaced by one with escape sequences, and every output of
//! every reader is looked at.

use crate::observed::golden;
use crate::program::Server;
use intact_ledger::store::{Reader, Writer};
use intact_ledger::{Producer, Row, Run};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Colours, C1, bidi overrides and isolates, letters without width, separators of lines, commands
/// of CIs, markup.
pub(crate) const HOSTILE: &str = "\x1b[8m\u{9b}31m\u{202e}\u{2066}\u{200b}\u{feff}\u{2028}\x07\r\n::add-mask::x\n::stop-commands::x\n##vso[task.x]y ##[error]<hostile>`|";

/// Whether a terminal or an editor would act on the letter.
pub(crate) fn is_hostile(letter: char) -> bool {
    (letter.is_control() && letter != '\n' && letter != '\t')
        || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Fails if a text is more than text.
pub(crate) fn assert_harmless(name: &str, text: &str) {
    for line in text.lines() {
        assert!(!line.contains(is_hostile), "{name}: {line:?}");
        let start = line.trim_start();
        let is_ours = [
            "::error title=intact",
            "::warning title=intact",
            "##vso[task.logissue type=",
        ];
        let rest = match is_ours.iter().find(|ours| start.starts_with(**ours)) {
            Some(ours) => &start[ours.len()..],
            None => {
                assert!(!start.starts_with("::"), "{name}: {line:?}");
                line
            }
        };
        assert!(
            !rest.contains("##vso[") && !rest.contains("##["),
            "{name}: {line:?}"
        );
    }
}

/// The value with every string replaced that its type lets be replaced, keys of maps included, and
/// how many were.
fn poisoned<T: Serialize + DeserializeOwned>(value: &T, is_left: fn(&str) -> bool) -> (T, usize) {
    let mut json = serde_json::to_value(value).unwrap();
    let mut replaced = 0;
    for pointer in pointers(&json, String::new()) {
        if is_left(&pointer) {
            continue;
        }
        let before = json.clone();
        let place = json.pointer_mut(&pointer).unwrap();
        match place {
            Value::String(text) => text.push_str(HOSTILE),
            Value::Object(map) => {
                let entries = std::mem::take(map).into_iter();
                *map = entries.map(|(key, value)| (key + HOSTILE, value)).collect();
            }
            _ => continue,
        }
        // a field with another name is left out, so that only the keys of maps stay
        let read = serde_json::from_value::<T>(json.clone());
        let written = read.map(|read| serde_json::to_value(read).unwrap());
        if written.is_ok_and(|written| written.pointer(&pointer) == json.pointer(&pointer)) {
            replaced += 1;
        } else {
            json = before;
        }
    }
    (serde_json::from_value(json).unwrap(), replaced)
}

/// Where strings and maps are, the innermost first.
fn pointers(value: &Value, at: String) -> Vec<String> {
    let escaped = |key: &str| key.replace('~', "~0").replace('/', "~1");
    let mut all = match value {
        Value::Object(map) => map
            .iter()
            .flat_map(|(key, value)| pointers(value, format!("{at}/{}", escaped(key))))
            .collect(),
        Value::Array(list) => list
            .iter()
            .enumerate()
            .flat_map(|(nth, value)| pointers(value, format!("{at}/{nth}")))
            .collect(),
        _ => Vec::new(),
    };
    if value.is_string() || value.is_object() {
        all.push(at);
    }
    all
}

/// Copies a ledger with poisoned strings; `producer` replaces the one that recorded it.
fn poison(from: &Path, to: &Path, producer: Option<Producer>, is_left: fn(&str) -> bool) {
    let reader = Reader::open(from).unwrap();
    let (mut run, of_run): (Run, usize) = poisoned(reader.run(), is_left);
    assert!(of_run > 3, "{run:?}");
    let mut of_rows = 0;
    run.producer = producer.unwrap_or_else(|| reader.run().producer.clone());
    let mut writer = Writer::create(to, &run).unwrap();
    for row in reader.events().unwrap() {
        let (row, replaced): (Row, usize) = poisoned(&row, |pointer| pointer.is_empty());
        of_rows += replaced;
        writer.append(row.as_event()).unwrap();
    }
    assert!(of_rows > 5, "{of_rows}");
    if let Some(tally) = reader.tally().unwrap() {
        writer
            .replace_tally(&poisoned(&tally, |_| false).0)
            .unwrap();
    }
    if let Some(profile) = reader.card().unwrap() {
        writer
            .replace_profile(&poisoned(&profile, |_| false).0)
            .unwrap();
    }
    let ended = "2026-01-01T00:00:00Z".parse().unwrap();
    writer.finish(ended).unwrap();
}

/// Runs the binary in a CI.
fn run(words: &[&OsStr], ci: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_intact"))
        .args(words)
        .env_remove("GITHUB_STEP_SUMMARY")
        .env(ci, "true")
        .env("COLUMNS", "100")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// Runs the binary, and looks at what it prints. Returns the exit code.
pub(crate) fn harmless(words: &[&OsStr], ci: &str) -> i32 {
    let out = run(words, ci);
    let name = format!("{words:?}");
    for stream in [&out.stdout, &out.stderr] {
        let text = String::from_utf8(stream.clone()).unwrap();
        assert_harmless(&name, &text);
    }
    let code = out.status.code().unwrap();
    assert_ne!(code, 101, "{name}: {out:?}");
    code
}

/// Runs a command that concludes with all of its outputs, and looks at each.
pub(crate) fn conclude(command: &[&OsStr], requirement: &str, folder: &Path) {
    let ends = ["html", "md", "xml", "json"];
    let files = ends.map(|end| folder.join(format!("out.{end}")));
    let [html, markdown, junit, json] = files.each_ref().map(|file| file.as_os_str());
    let mut all = command.to_vec();
    all.extend(["--fail-on", "warning", "--require", requirement].map(OsStr::new));
    for (option, file) in [
        ("--report", html),
        ("--report", markdown),
        ("--junit", junit),
    ] {
        all.extend([OsStr::new(option), file]);
    }
    for ci in ["GITHUB_ACTIONS", "TF_BUILD"] {
        let _ = fs::remove_file(markdown);
        let code = harmless(&all, ci);
        // nothing in the ledger of `compare` succeeded
        let codes: &[i32] = if command[0] == "compare" {
            &[3]
        } else {
            &[0, 1]
        };
        assert!(codes.contains(&code), "{code}: {all:?} {:?}", run(&all, ci));
    }
    let out = run(&[command, &[OsStr::new("--json")]].concat(), "NO_CI");
    // some commands have JSON in a file only
    if out.status.code() != Some(2) {
        fs::write(json, &out.stdout).unwrap();
        let _: Value = serde_json::from_slice(&out.stdout).unwrap();
        assert_harmless("json", &fs::read_to_string(json).unwrap());
    }
    for file in [html, markdown, junit] {
        let text = fs::read_to_string(file).unwrap();
        let name = format!("{command:?} {}", file.display());
        // between backticks markup is text
        let is_code = |line: &str| line.replace("\\`", "").matches('`').count() % 2 == 1;
        let mut lines = text.lines().filter_map(|line| line.split_once("<hostile>"));
        assert!(
            lines.all(|(before, _)| file == markdown && is_code(before)),
            "{name}"
        );
        assert!(!text.contains(is_hostile), "{name}");
        assert!(
            text.contains("u{202e}") || !text.contains("hostile"),
            "{name}"
        );
    }
}

pub(crate) fn os(word: &str) -> &OsStr {
    OsStr::new(word)
}

/// A requirement that most traffic misses.
pub(crate) const FEW: &str = "connections < 1";

/// One golden ledger for each rule.
fn rules() -> Vec<String> {
    let mut all: Vec<String> = fs::read_dir(golden(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    all.sort();
    all
}

#[test]
fn no_string_of_a_ledger_of_traffic_is_more_than_text() {
    let folder = tempfile::tempdir().unwrap();
    for (nth, rule) in rules().iter().enumerate() {
        let at = |name: &str| folder.path().join(format!("{rule}-{name}"));
        crate::observed::store(&at("clean"), &format!("{rule}/fires"));
        // each producer in turn: the document is made by its name
        let producer = [
            Producer::Watch,
            Producer::Audit,
            Producer::Serve,
            Producer::Other(format!("other{HOSTILE}")),
        ][nth % 4]
            .clone();
        poison(&at("clean"), &at("ledger"), Some(producer), |pointer| {
            ["", "/schema"].contains(&pointer)
        });
        let ledger = at("ledger");
        conclude(&[os("report"), ledger.as_os_str()], FEW, folder.path());
        // one in which nothing succeeded
        if rule == "body-not-drained" {
            conclude(&[os("audit"), ledger.as_os_str()], FEW, folder.path());
            let clean = at("clean");
            let both = [os("compare"), clean.as_os_str(), ledger.as_os_str()];
            conclude(&both, FEW, folder.path());
        }
    }
}

#[test]
fn no_string_of_a_ledger_of_a_bench_or_a_check_is_more_than_text() {
    let server = Server::start(&["--idle-timeout", "300ms", "--announce"]);
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (bench, check) = (at("bench"), at("check"));
    let url = server.plain();
    let words = [
        "bench",
        "-n",
        "40",
        "--rounds",
        "8",
        "--keepalive",
        "on,off",
        &url,
        "--ledger",
    ];
    let words: Vec<&OsStr> = words.iter().map(os_of).chain([bench.as_os_str()]).collect();
    assert_eq!(harmless(&words, "NO_CI"), 0);
    let words = [os("check"), os(&url), os("--ledger"), check.as_os_str()];
    assert_eq!(harmless(&words, "NO_CI"), 0);
    for (kind, ledger, requirement) in [
        ("bench", &bench, FEW),
        ("check", &check, "idle-timeout >= 1s"),
    ] {
        let poisoned = at(&format!("{kind}-poisoned"));
        // an axis that cannot be read is an error
        poison(ledger, &poisoned, None, |pointer| {
            let is_read = ["/schema", "/axes", "/varied"].map(|part| pointer.contains(part));
            pointer.is_empty() || is_read.contains(&true)
        });
        conclude(
            &[os("report"), poisoned.as_os_str()],
            requirement,
            folder.path(),
        );
    }
    let baseline = at("bench-poisoned");
    let words = ["bench", "-n", "40", "--rounds", "8", &url, "--baseline"];
    let words: Vec<&OsStr> = words
        .iter()
        .map(os_of)
        .chain([baseline.as_os_str()])
        .collect();
    harmless(&words, "GITHUB_ACTIONS");
}

pub(crate) fn os_of<'a>(word: &&'a str) -> &'a OsStr {
    OsStr::new(*word)
}

#[test]
fn no_word_of_a_command_line_or_a_file_is_more_than_text() {
    let folder = tempfile::tempdir().unwrap();
    let named = folder.path().join(format!("x{}", HOSTILE.replace('/', "")));
    let har = named.with_extension("har");
    let creator = serde_json::to_string(&format!("Tool{HOSTILE}")).unwrap();
    let url = serde_json::to_string(&format!("https://a.example/p{HOSTILE}")).unwrap();
    fs::write(
        &har,
        format!(
            r#"{{"log":{{"creator":{{"name":{creator}}},"entries":[{{"startedDateTime":"2024-01-01T00:00:00Z","time":5,"request":{{"method":"GET","url":{url},"headers":[{{"name":"User-Agent","value":{creator}}}]}},"response":{{"status":200}},"timings":{{"connect":1,"send":1,"wait":1,"receive":1}}}}]}}}}"#
        ),
    )
    .unwrap();
    conclude(&[os("audit"), har.as_os_str()], FEW, folder.path());
    let (clean, ledger) = (folder.path().join("clean"), folder.path().join("ledger"));
    let words = [
        os("audit"),
        har.as_os_str(),
        os("--ledger"),
        clean.as_os_str(),
    ];
    assert_eq!(harmless(&words, "GITHUB_ACTIONS"), 0);
    poison(&clean, &ledger, None, |pointer| {
        ["", "/schema"].contains(&pointer)
    });
    let diagram = folder.path().join("out.mmd");
    for input in [&clean, &ledger] {
        let model = [
            os("model"),
            input.as_os_str(),
            os("--mermaid"),
            diagram.as_os_str(),
        ];
        let code = harmless(&model, "GITHUB_ACTIONS");
        assert_eq!(code, 0, "{:?}", run(&model, "NO_CI"));
        assert_harmless("mermaid", &fs::read_to_string(&diagram).unwrap());
    }
    let key = serde_json::to_string(&format!("k{HOSTILE}")).unwrap();
    let model = named.with_extension("toml");
    fs::write(&model, format!("[client]\n{key} = 1\n")).unwrap();
    assert_eq!(
        harmless(&[os("model"), model.as_os_str()], "GITHUB_ACTIONS"),
        2
    );
    fs::write(
        &model,
        format!("[client]\ncalls = [{{ to = {key}, rtt = \"30ms\" }}]\n[service.{key}]\nwork = \"1ms\"\n"),
    )
    .unwrap();
    let words = [
        os("model"),
        model.as_os_str(),
        os("--mermaid"),
        diagram.as_os_str(),
    ];
    assert_eq!(harmless(&words, "GITHUB_ACTIONS"), 0);
    assert_harmless("mermaid", &fs::read_to_string(&diagram).unwrap());
    let hostile = os(HOSTILE);
    let missing = folder.path().join(HOSTILE.replace('/', ""));
    let missing = missing.as_os_str();
    let not_text = OsStr::from_bytes(b"\xff\x1b[8m");
    for words in [
        &[hostile][..],
        &[os("bench"), hostile],
        &[os("bench"), os("--http"), hostile],
        &[os("bench"), os(concat!("--\x1b", "[8m"))],
        &[
            os("bench"),
            os("http://127.0.0.1:9/"),
            os("-n"),
            os("1"),
            os("--ledger"),
            os("/proc/\x1b[8m"),
        ],
        &[os("bench"), os("--require"), hostile],
        &[os("check"), hostile],
        &[os("check"), os("--try"), hostile, os("http://127.0.0.1:9/")],
        &[os("audit"), missing],
        &[os("audit"), not_text],
        &[os("report"), missing],
        &[os("compare"), missing, missing],
        &[os("compare"), os("--env"), hostile, os("--"), os("true")],
        &[os("model"), missing],
        &[os("fix"), hostile],
        &[os("man"), hostile],
        &[os("serve"), os("--listen"), hostile],
        &[os("link"), hostile, os("--"), os("true")],
        &[os("watch"), os("--"), missing],
        &[os("lambda"), os("--event"), hostile, os("--"), os("true")],
        &[os("fleet"), os("plan"), missing],
    ] {
        assert_ne!(harmless(words, "GITHUB_ACTIONS"), 0, "{words:?}");
    }
}
