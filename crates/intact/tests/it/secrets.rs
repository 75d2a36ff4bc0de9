//! No secret of a command line, of an environment or of a URL reaches what is printed or kept, and
//! what holds traffic is its owner's alone: one run per command with a marked secret in every
//! place, then every output is searched.

use crate::peers::program;
use crate::program::Server;
use crate::skip::skip;
use intact_ledger::Row;
use intact_ledger::store::Reader;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The secret.
const MARK: &str = "s3cretMARK";

fn intact(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_intact"))
        .args(words)
        .env("GITHUB_ACTIONS", "true")
        .env_remove("GITHUB_STEP_SUMMARY")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| {
            if path.is_dir() {
                files(&path)
            } else {
                vec![path]
            }
        })
        .collect()
}

/// The text of a file, or of the events of a ledger.
fn text(path: &Path) -> String {
    if path.extension().is_none_or(|end| end != "zst") {
        return String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
    }
    let reader = Reader::open(path.parent().unwrap()).unwrap();
    let rows: Vec<Row> = reader.events().unwrap().collect();
    serde_json::to_string(&rows).unwrap()
}

/// Fails if an output has the secret, or if others may read what holds traffic.
fn assert_hidden(out: &Output, folder: &Path) {
    let printed = [&out.stdout, &out.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    for text in &printed {
        assert!(!text.contains(MARK), "{text}");
    }
    let files = files(folder);
    assert!(!files.is_empty(), "{printed:?}");
    for file in files {
        let content = text(&file);
        assert!(!content.contains(MARK), "{}: {content}", file.display());
        let mode = fs::metadata(&file).unwrap().permissions().mode() & 0o777;
        let name = file.to_str().unwrap();
        if PRIVATE.iter().any(|part| name.contains(part)) {
            assert_eq!(mode, 0o600, "{name}");
        }
    }
}

/// The options of all outputs of a command in a folder.
fn outputs(folder: &Path, options: &[&str]) -> Vec<String> {
    let named = options.iter().map(|option| {
        let (option, end) = option.split_once('.').unwrap_or((option, "out"));
        let file = folder.join(format!("{}.{end}", option.trim_start_matches('-')));
        format!("{option}={}", file.display())
    });
    named.collect()
}

/// Parts of the names of files that hold traffic.
const PRIVATE: [&str; 8] = [
    "/ledger.",
    ".csv",
    ".har",
    "flamegraph",
    ".json",
    ".html",
    ".md",
    ".xml",
];

/// Runs a command with all of its outputs, then reports its ledger.
fn search(command: &[&str], options: &[&str], rest: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let outputs = outputs(folder.path(), options);
    let mut words = command.to_vec();
    words.extend(outputs.iter().map(String::as_str));
    words.extend(rest);
    let out = intact(&words);
    assert!(
        matches!(out.status.code(), Some(0 | 1 | 3)),
        "{words:?}: {out:?}"
    );
    assert_hidden(&out, folder.path());
    let ledger = folder.path().join("ledger.out");
    let folder = tempfile::tempdir().unwrap();
    let outputs = self::outputs(
        folder.path(),
        &["--report.html", "--report.md", "--junit.xml"],
    );
    let mut words = vec!["report", ledger.to_str().unwrap(), "--fail-on", "warning"];
    words.extend(outputs.iter().map(String::as_str));
    assert_hidden(&intact(&words), folder.path());
    words.push("--json");
    assert_hidden(&intact(&words), folder.path());
}

#[test]
fn a_bench_and_a_check_hide_the_secrets_of_their_requests() {
    let server = Server::start(&["--idle-timeout", "200ms"]);
    let port = server.plain_port();
    let url = format!("http://127.0.0.1:{port}/p?token={MARK}#{MARK}");
    let authorization = format!("Authorization: Bearer {MARK}");
    let cookie = format!("--header=Cookie: id={MARK}");
    search(
        &[
            "bench",
            "-n",
            "20",
            "--rounds",
            "1",
            "-H",
            &authorization,
            &cookie,
            "-d",
            MARK,
        ],
        &[
            "--ledger",
            "--csv.csv",
            "--json.json",
            "--report.html",
            "--report.md",
            "--junit.xml",
        ],
        &["--require", "connections < 1", &url],
    );
    let path = format!("/p?token={MARK}");
    search(
        &["check", "--no-idle", "-H", &authorization, "--try", &path],
        &[
            "--ledger",
            "--json.json",
            "--report.html",
            "--report.md",
            "--junit.xml",
        ],
        &["--require", "idle-timeout >= 1s", &url],
    );
    // a URL in place of a command prints the next one, and userinfo is refused
    let with_user = format!("http://me:{MARK}@127.0.0.1:{port}/");
    for words in [&[&*url][..], &["bench", &with_user], &["check", &with_user]] {
        let out = intact(words);
        for text in [&out.stdout, &out.stderr] {
            let text = String::from_utf8_lossy(text);
            assert!(!text.contains(MARK), "{text}");
        }
    }
}

#[test]
fn watched_and_compared_programs_hide_the_secrets_of_their_command_lines() {
    let probe = intact(&["watch", "--", "true"]);
    if probe.status.code() != Some(0) {
        return skip("secrets of watch", &String::from_utf8_lossy(&probe.stderr));
    }
    let server = Server::start(&[]);
    let port = server.plain_port();
    let line = format!(
        "exec 3<>/dev/tcp/127.0.0.1/{port}; printf 'GET /p?token={MARK} HTTP/1.0\\r\\nCookie: {MARK}\\r\\n\\r\\n' >&3; cat <&3 > /dev/null"
    );
    let url = format!("http://me:{MARK}@a.example/?q={MARK}");
    let token = format!("--token={MARK}");
    let all = [
        "--ledger",
        "--csv.csv",
        "--har.har",
        "--json.json",
        "--report.html",
        "--report.md",
        "--junit.xml",
    ];
    let header = format!("Authorization: {MARK}");
    search(
        &["watch", "--fail-on", "warning"],
        &all,
        &[
            "--",
            "bash",
            "-c",
            &line,
            &url,
            &token,
            "--password",
            MARK,
            "-H",
            &header,
        ],
    );
    let script = format!(
        "bash -c \"exec 3<>/dev/tcp/127.0.0.1/{port}; printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3\" x --token {MARK}"
    );
    let variable = format!("API_TOKEN={MARK},{MARK}2");
    let prepare = format!("true --token={MARK}");
    search(
        &[
            "compare",
            "--rounds",
            "1",
            "--warm-up",
            "0",
            "--env",
            &variable,
            "--prepare",
            &prepare,
        ],
        &all,
        &["--", &script],
    );
}

#[test]
fn a_function_hides_the_secrets_of_its_event_and_its_variables() {
    let folder = tempfile::tempdir().unwrap();
    let bootstrap = folder.path().join("bootstrap");
    fs::write(
        &bootstrap,
        "#!/bin/bash\napi=http://$AWS_LAMBDA_RUNTIME_API/2018-06-01/runtime/invocation\nwhile id=$(curl -sfD - -o /dev/null $api/next | sed -n 's/^lambda-runtime-aws-request-id: *//Ip' | tr -d '\\r'); do curl -sf -d '{}' $api/$id/response > /dev/null; done\n",
    )
    .unwrap();
    fs::set_permissions(&bootstrap, fs::Permissions::from_mode(0o755)).unwrap();
    let program = bootstrap.to_str().unwrap();
    if Command::new("curl").arg("--version").output().is_err() {
        return skip("secrets of lambda", "curl is not installed");
    }
    let probe = intact(&["lambda", "-n", "1", "--", program]);
    if probe.status.code() != Some(0) {
        return skip("secrets of lambda", &String::from_utf8_lossy(&probe.stderr));
    }
    let event = format!("{{\"password\": \"{MARK}\"}}");
    let (one, two) = (format!("KEY={MARK}"), format!("KEY={MARK}2 MODE=x"));
    search(
        &[
            "lambda",
            "-n",
            "2",
            "--event",
            &event,
            "--variants",
            &one,
            &two,
        ],
        &[
            "--ledger",
            "--csv.csv",
            "--json.json",
            "--report.html",
            "--report.md",
            "--junit.xml",
        ],
        &["--", program, "--token", MARK],
    );
}

#[test]
fn no_error_about_an_argument_repeats_its_secret() {
    let field = format!("Authorization {MARK}");
    for words in [
        &["bench", "-H", &field, "http://127.0.0.1:9"][..],
        &["check", "-H", &field, "http://127.0.0.1:9"],
        &["check", "-H", MARK, "http://127.0.0.1:9"],
        &["lambda", "--event", MARK, "--", "true"],
        &["lambda", "--variants", MARK, "--", "true"],
        &["compare", "--env", MARK, "--", "true"],
        &[
            "bench",
            "http://127.0.0.1:9",
            &format!("Authorization: {MARK}"),
        ],
        &["bench", "http://127.0.0.1:9", MARK],
        &["bench", &format!("--password={MARK}"), "http://127.0.0.1:9"],
    ] {
        let out = intact(words);
        let printed = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(
            !printed.is_empty() && !out.status.success(),
            "{words:?}: {out:?}"
        );
        assert!(!printed.contains(MARK), "{words:?}: {printed}");
    }
    let out = intact(&["bench", "--vrbose", "http://127.0.0.1:9"]);
    let printed = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(printed.contains("--vrbose"), "{printed}");
}

#[test]
fn ids_of_sessions_in_paths_are_recorded_nowhere() {
    if program("curl", "record a path with the id of a session").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&[]);
    let port = server.plain_port();
    let url = format!("http://127.0.0.1:{port}/shop;jsessionid={MARK}/list");
    let har = folder.path().join("out.har");
    let har_option = format!("--har={}", har.display());
    let out = intact(&[
        "watch",
        &har_option,
        "--",
        "curl",
        "-s",
        "-o",
        "/dev/null",
        &url,
    ]);
    let printed = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(!printed.contains(MARK), "{printed}");
    assert!(out.status.success(), "{out:?}");
    let served = server.end().to_string();
    let exported = fs::read_to_string(&har).unwrap();
    for text in [&served, &exported] {
        assert!(!text.contains(MARK), "{text}");
    }
    assert!(exported.contains("/shop;"), "{exported}");
}

#[test]
fn command_lines_are_recorded_whole_where_the_user_asks_for_it() {
    for (option, is_shown) in [(None, false), (Some("--record-argv"), true)] {
        let folder = tempfile::tempdir().unwrap();
        let ledger = folder.path().join("ledger");
        let mut words = vec!["watch", "-q", "--ledger", ledger.to_str().unwrap()];
        words.extend(option);
        words.extend(["--", "true", "--password", MARK]);
        let out = intact(&words);
        assert!(out.status.success(), "{out:?}");
        let shown = intact(&["report", "--json", ledger.to_str().unwrap()]);
        let text = String::from_utf8_lossy(&shown.stdout).into_owned();
        assert_eq!(text.contains(MARK), is_shown, "{text}");
    }
}
