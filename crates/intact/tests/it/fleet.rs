//! `intact fleet` as a person meets it: whole campaigns against our own server, whatever happens to
//! workers, folders and messages.

mod parquet;

use crate::program::{Schema, Server, exchanges, intact};
use intact_fleet::FORMAT;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// Between two looks at what a running campaign has done so far.
#[cfg(unix)]
const LOOK: Duration = Duration::from_millis(5);

/// A campaign's folder with its plan.
struct Rig {
    folder: tempfile::TempDir,
}

impl Rig {
    /// A plan of keep-alive on and off.
    fn new(url: &str, repetitions: u32, duration: &str) -> Rig {
        let rig = Rig {
            folder: tempfile::tempdir().unwrap(),
        };
        let text = format!(
            "name = \"t\"\nrepetitions = {repetitions}\nduration = \"{duration}\"\n\
             [limits]\nrequests = 1000000\nrate = 400\nworkers = 3\ndeliveries = 20\n\
             [[target]]\nname = \"own\"\nurl = \"{url}\"\ni-own-this = \"127.0.0.1\"\n\
             [axes]\nkeepalive = [\"on\", \"off\"]\n"
        );
        std::fs::write(rig.path("plan.toml"), text).unwrap();
        rig
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    fn start(&self) -> Child {
        Command::new(env!("CARGO_BIN_EXE_intact"))
            .args(["fleet", "run", &self.path("plan.toml"), "--json"])
            .args(["--store", &self.path("store")])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// The results that the store has: message by file, with the file's content.
    fn results(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        collect(&self.folder.path().join("store/results"), &mut found);
        found
    }
}

/// Files under a folder; those still being written have other names.
fn collect(folder: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "json")
            && let Ok(bytes) = std::fs::read(&path)
        {
            found.insert(path, bytes);
        }
    }
}

fn words(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn document(out: &Output) -> Value {
    serde_json::from_slice(&out.stdout).unwrap_or_else(|error| panic!("{error}: {out:?}"))
}

/// The JSON and the end of a campaign that was started.
fn end(child: Child) -> (Value, Output) {
    let out = child.wait_with_output().unwrap();
    (document(&out), out)
}

#[test]
fn a_campaign_of_error_pages_exits_3_unless_the_plan_expects_them() {
    let server = Server::start(&["--status", "404"]);
    for (expect, code, verdict_is) in [
        ("", 3, "Every response was 404"),
        ("expect = \"404\"\n", 0, "At -c 1"),
    ] {
        let rig = Rig::new(&server.plain(), 2, "50ms");
        let plan = std::fs::read_to_string(rig.path("plan.toml")).unwrap();
        let plan = plan.replace("[axes]\n", &format!("{expect}[axes]\n"));
        std::fs::write(rig.path("plan.toml"), plan).unwrap();
        let (report, out) = end(rig.start());
        assert_eq!(out.status.code(), Some(code), "{out:?}");
        let verdict = report["groups"][0]["bench"]["verdict"][0].as_str().unwrap();
        assert!(verdict.starts_with(verdict_is), "{verdict}");
        let store = rig.path("store");
        let out = intact(&["fleet", "report", &store, "--require", "failed == 0"]);
        assert_eq!(out.status.code(), Some(code), "{out:?}");
        let met = words(&out.stderr).contains("NOT met: failed == 0");
        assert_eq!(met, code == 3, "{out:?}");
    }
}

/// The workers of a coordinator.
#[cfg(target_os = "linux")]
fn workers(coordinator: &Child) -> Vec<String> {
    let pid = coordinator.id();
    let path = format!("/proc/{pid}/task/{pid}/children");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

/// Kills workers of a coordinator, up to `most`, until it ends. Each kill waits for a result that
/// the last one did not stop: only so can a campaign get on.
#[cfg(target_os = "linux")]
fn kill_workers(rig: &Rig, coordinator: &mut Child, most: usize) -> usize {
    let mut killed = 0;
    let mut seen = rig.results().len();
    while killed < most && seen < 60 {
        let there = rig.results().len();
        let alive = workers(coordinator);
        if there > seen && !alive.is_empty() {
            seen = there;
            let one = &alive[killed % alive.len()];
            let sent = Command::new("kill").args(["-9", one]).output().unwrap();
            killed += usize::from(sent.status.success());
        }
        if coordinator.try_wait().unwrap().is_some() {
            break;
        }
        std::thread::sleep(LOOK);
    }
    killed
}

/// Asserts that all of 60 messages are in the report, by the first result of each, and nothing
/// else.
fn assert_each_counts_once(rig: &Rig, report: &Value) {
    let messages = &report["messages"];
    assert_eq!(
        (&messages["planned"], &messages["finished"]),
        (&60.into(), &60.into())
    );
    assert_eq!(messages["missing"], 0);
    assert_eq!(messages["dead"], Value::Array(Vec::new()));
    let mut first = BTreeMap::new();
    for (path, bytes) in rig.results() {
        let result: Value = serde_json::from_slice(&bytes).unwrap();
        let folder = path.parent().unwrap().to_owned();
        first.entry(folder).or_insert(result);
    }
    assert_eq!(first.len(), 60);
    let measured: u64 = first
        .values()
        .flat_map(|result| result["tally"]["cells"].as_array().unwrap())
        .filter(|cell| cell["round"] != 0)
        .flat_map(|cell| cell["groups"].as_array().unwrap())
        .filter(|group| group["warmup"] == false)
        .map(|group| group["latency"]["count"].as_u64().unwrap())
        .sum();
    assert_eq!(report["groups"][0]["bench"]["requests"]["total"], measured);
}

#[cfg(target_os = "linux")]
#[test]
fn every_message_counts_exactly_once_though_workers_are_killed() {
    let server = Server::start(&[]);
    let rig = Rig::new(&server.plain(), 30, "150ms");
    let mut child = rig.start();
    let killed = kill_workers(&rig, &mut child, 15);
    let (report, out) = end(child);
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    assert!(killed >= 5, "{killed} killed: {out:?}");
    assert!(
        words(&out.stderr).contains("SIGKILL)); comes back"),
        "{out:?}"
    );
    assert_each_counts_once(&rig, &report);
    Schema::named("fleet").check(&report);
    Schema::named("bench").check(&report["groups"][0]["bench"]);
}

#[cfg(unix)]
#[test]
fn a_second_coordinator_of_a_store_is_refused_and_one_after_a_killed_one_loses_nothing() {
    let server = Server::start(&[]);
    let rig = Rig::new(&server.plain(), 30, "20ms");
    let mut first = rig.start();
    while rig.results().is_empty() {
        assert!(first.try_wait().unwrap().is_none());
        std::thread::sleep(LOOK);
    }
    let second = rig.start().wait_with_output().unwrap();
    assert_eq!(second.status.code(), Some(70), "{second:?}");
    assert!(
        words(&second.stderr).contains("another `intact fleet run`"),
        "{second:?}"
    );
    first.kill().unwrap();
    first.wait().unwrap();
    let before = rig.results();
    let (report, out) = end(rig.start());
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    assert_each_counts_once(&rig, &report);
    let now = rig.results();
    assert!(
        before
            .iter()
            .all(|(path, bytes)| now.get(path) == Some(bytes))
    );
}

/// Measures a message, as a job of a scheduler; the exit code and what was said.
fn work(rig: &Rig, variable: (&str, &str)) -> (Option<i32>, String) {
    let out = Command::new(env!("CARGO_BIN_EXE_intact"))
        .args([
            "fleet",
            "work",
            "env:INTACT_PLAN",
            "--store",
            &rig.path("store"),
        ])
        .env(
            "INTACT_PLAN",
            std::fs::read_to_string(rig.path("plan.toml"))
                .unwrap()
                .trim_end(),
        )
        .env(variable.0, variable.1)
        .output()
        .unwrap();
    (out.status.code(), words(&out.stderr))
}

#[test]
fn the_jobs_of_a_scheduler_are_a_campaign_and_a_repeated_index_measures_nothing() {
    let server = Server::start(&[]);
    let rig = Rig::new(&server.plain(), 2, "20ms");
    for variable in [
        ("JOB_COMPLETION_INDEX", "0"),
        ("AWS_BATCH_JOB_ARRAY_INDEX", "1"),
        ("SLURM_ARRAY_TASK_ID", "2"),
        ("CI_NODE_INDEX", "4"),
    ] {
        let (code, said) = work(&rig, variable);
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains(": measured"), "{said}");
    }
    let results = rig.results();
    assert_eq!(results.len(), 4);
    let (code, said) = work(&rig, ("JOB_COMPLETION_INDEX", "2"));
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("was not measured again"), "{said}");
    assert_eq!(rig.results(), results);
    // the plan in the variable of a shell is the same campaign as the one in its file
    let (report, out) = end(rig.start());
    assert!(
        words(&out.stderr).contains("4 messages have ended before"),
        "{out:?}"
    );
    assert_eq!(report["messages"]["finished"], 4);
    assert_eq!(rig.results(), results);
    // what no retry can measure
    let (code, said) = work(&rig, ("JOB_COMPLETION_INDEX", "4"));
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("the plan has messages 0 to 3"), "{said}");
    let (code, said) = work(&rig, ("SLURM_ARRAY_TASK_ID", "x"));
    assert_eq!(code, Some(2), "{said}");
}

#[test]
fn a_message_that_no_retry_can_measure_exits_2_and_a_store_that_fails_does_not() {
    let server = Server::start(&[]);
    let rig = Rig::new(&server.plain(), 1, "20ms");
    let path = rig.path("plan.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    // which only the worker finds out: 900 requests are the first ones of 900 connections
    let many = text.replace("keepalive =", "c = [900]\nkeepalive =");
    std::fs::write(
        &path,
        many.replace("requests = 1000000", "requests = 36000"),
    )
    .unwrap();
    for _ in 0..2 {
        let (code, said) = work(&rig, ("JOB_COMPLETION_INDEX", "0"));
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("raise limits.requests"), "{said}");
    }
    std::fs::write(&path, text).unwrap();
    // a file where a folder has to be: not even root can write there
    std::fs::write(rig.path("store/results"), "in the way").unwrap();
    let (code, said) = work(&rig, ("JOB_COMPLETION_INDEX", "0"));
    assert_eq!(code, Some(70), "{said}");
    std::fs::remove_file(rig.path("store/results")).unwrap();
    assert_eq!(work(&rig, ("JOB_COMPLETION_INDEX", "0")).0, Some(0));
    assert!(rig.results().keys().all(|path| path.ends_with("001.json")));
}

#[test]
fn a_secret_that_is_named_by_reference_is_in_no_file_and_no_output() {
    let server = Server::start(&[]);
    let rig = Rig::new(&server.plain(), 1, "20ms");
    // TOML has escapes where a path of Windows has separators
    let secret = rig.path("token").replace('\\', "/");
    std::fs::write(&secret, "s3cret-of-the-file\n").unwrap();
    let path = rig.path("plan.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let url = server.plain();
    let text = text
        .replace(&url, &format!("{url}?token={{env:FLEET_TEST_TOKEN}}"))
        .replace(
            "i-own-this",
            &format!("headers = [\"Authorization: Bearer {{env:FLEET_TEST_TOKEN}}\", \"Cookie: file:{secret}\"]\ni-own-this"),
        );
    std::fs::write(&path, text).unwrap();
    let run = |token: Option<&str>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_intact"));
        command.args([
            "fleet",
            "run",
            &path,
            "--json",
            "--store",
            &rig.path("store"),
        ]);
        command.args(["--report", &rig.path("page.html")]);
        command.env_remove("FLEET_TEST_TOKEN");
        if let Some(token) = token {
            command.env("FLEET_TEST_TOKEN", token);
        }
        command.output().unwrap()
    };
    let out = run(None);
    assert_eq!(out.status.code(), Some(2), "{out:?}");
    assert!(
        words(&out.stderr).contains("env:FLEET_TEST_TOKEN: is not set here"),
        "{out:?}"
    );
    assert!(!Path::new(&rig.path("store")).exists());
    let out = run(Some("s3cret-of-the-environment"));
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    assert!(!words(&out.stderr).contains("write `"), "{out:?}");
    std::fs::remove_file(&secret).unwrap();
    let mut files = Vec::new();
    every_file(rig.folder.path(), &mut files);
    assert!(files.len() >= 8, "{files:?}");
    for file in files {
        let text = words(&std::fs::read(&file).unwrap());
        assert!(!text.contains("s3cret"), "{file:?}");
    }
    let printed = words(&[out.stdout, out.stderr].concat());
    assert!(!printed.contains("s3cret"), "{printed}");
}

fn every_file(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            every_file(&path, found);
        } else {
            found.push(path);
        }
    }
}

#[cfg(unix)]
#[test]
fn store_and_plan_copies_are_their_users_alone() {
    use std::os::unix::fs::MetadataExt;
    let server = Server::start(&[]);
    let rig = Rig::new(&server.plain(), 1, "20ms");
    let path = rig.path("plan.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let text = text.replace(
        "i-own-this",
        "headers = [\"Authorization: s3cret\"]\ni-own-this",
    );
    std::fs::write(&path, text).unwrap();
    let (_, out) = end(rig.start());
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    let said = words(&out.stderr);
    assert!(said.contains("write `Authorization: env:NAME`"), "{said}");
    assert!(!said.contains("s3cret"), "{said}");
    let mut files = Vec::new();
    every_file(Path::new(&rig.path("store")), &mut files);
    let mut folders: Vec<&Path> = files.iter().filter_map(|file| file.parent()).collect();
    folders.dedup();
    for file in &files {
        let mode = std::fs::metadata(file).unwrap().mode() & 0o777;
        assert_eq!(mode, 0o600, "{file:?}");
    }
    for folder in folders {
        let mode = std::fs::metadata(folder).unwrap().mode() & 0o777;
        assert_eq!(mode, 0o700, "{folder:?}");
    }
}

// a signal interrupts it
#[cfg(unix)]
#[test]
fn an_interrupted_campaign_keeps_its_results_and_the_same_command_goes_on() {
    let server = Server::start(&[]);
    let rig = Rig::new(&server.plain(), 60, "100ms");
    let mut child = rig.start();
    while rig.results().len() < 2 {
        assert!(child.try_wait().unwrap().is_none());
        std::thread::sleep(LOOK);
    }
    crate::program::signal(child.id(), "-INT");
    let (report, out) = end(child);
    assert_eq!(out.status.code(), Some(130), "{out:?}");
    assert!(words(&out.stderr).contains("goes on with it"), "{out:?}");
    let kept = rig.results();
    assert_eq!(report["messages"]["finished"], kept.len());
    assert_eq!(report["messages"]["missing"], 120 - kept.len());

    let status = ["fleet", "status", &rig.path("store")];
    let document = document(&intact(&[&status[..], &["--json"]].concat()));
    Schema::named("fleet").check(&document);
    assert_eq!(document["store"]["planned"], 120);
    assert_eq!(document["store"]["finished"], kept.len());
    assert_eq!(document["store"]["missing"], 120 - kept.len());
    let page = words(&intact(&status).stdout);
    assert!(
        page.contains(&format!("finished       {}\n", kept.len())),
        "{page}"
    );

    let (report, out) = end(rig.start());
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    let ended = format!("{} messages have ended before", kept.len());
    assert!(words(&out.stderr).contains(&ended), "{out:?}");
    assert_eq!(report["messages"]["finished"], 120);
    assert_eq!(report["messages"]["duplicates"], 0);
    let now = rig.results();
    assert!(
        kept.iter()
            .all(|(path, bytes)| now.get(path) == Some(bytes))
    );
}

#[test]
fn a_report_has_a_page_and_is_checked_by_requirements() {
    let server = Server::start(&[]);
    let rig = Rig::new(&server.plain(), 2, "20ms");
    let (_, out) = end(rig.start());
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    let (store, page) = (rig.path("store"), rig.path("page.html"));
    let out = intact(&["fleet", "report", &store, "--report", &page]);
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    assert!(words(&out.stdout).contains("4 of 4 messages have a result"));
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("keepalive=off") && page.contains("latency-chart\""));

    let held = |expression| intact(&["fleet", "report", &store, "--require", expression]);
    assert_eq!(held("requests > 1").status.code(), Some(0));
    assert_eq!(held("keepalive=off: reuse > 50%").status.code(), Some(1));
    assert_eq!(held("no-such-thing > 1").status.code(), Some(2));
    assert_eq!(held("help").status.code(), Some(0));
}

#[test]
fn checks_of_a_campaign_count_in_its_report_and_keep_to_cap_and_rate() {
    let server = Server::start(&["--idle-timeout", "1s", "--max-requests", "40"]);
    let rig = Rig::new(&server.plain(), 2, "20ms");
    let path = rig.path("plan.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let text = text
        .split_once("[axes]")
        .unwrap()
        .0
        .replace("rate = 400", "rate = 300");
    let text = format!("{text}measure = \"check\"\nidle-limit = \"3s\"\n");
    std::fs::write(&path, text).unwrap();
    let from = std::time::Instant::now();
    let (report, out) = end(rig.start());
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    Schema::named("fleet").check(&report);
    assert_eq!(report["messages"]["finished"], 2);
    assert_eq!(report["groups"], Value::Array(Vec::new()));
    let cards = &report["checks"][0]["cards"];
    assert_eq!(
        (&cards["cards"], &cards["answered"], &cards["kept"]),
        (&2.into(), &2.into(), &2.into())
    );
    assert_eq!(cards["max_requests"]["max"], 40.0);
    assert!(
        cards["idle_timeout_s"]["min"].as_f64().unwrap() >= 0.99,
        "{cards}"
    );
    assert!(cards["fresh_ms"]["cards"] == 2 && cards["reused_ms"]["cards"] == 2);

    // what was sent is what the results say, and neither more nor sooner than was allowed
    let sent: u64 = rig
        .results()
        .values()
        .map(|bytes| {
            let result: Value = serde_json::from_slice(bytes).unwrap();
            assert_eq!(result["variant"], Value::Null);
            result["checked"]["card"]["requests_sent"].as_u64().unwrap()
        })
        .sum();
    let tally = server.end();
    let served: u64 = tally["cells"]
        .as_array()
        .unwrap()
        .iter()
        .map(exchanges)
        .sum();
    assert_eq!(served, sent);
    assert_eq!(cards["requests"], sent);
    let plan = document(&intact(&["fleet", "plan", &path, "--json"]));
    assert!(sent <= plan["estimate"]["requests_per_target"].as_u64().unwrap());
    assert!(from.elapsed() >= Duration::from_secs_f64((sent - 2) as f64 / 300.0));

    let store = rig.path("store");
    let held = |expression| intact(&["fleet", "report", &store, "--require", expression]);
    assert_eq!(held("max-requests >= 40").status.code(), Some(0));
    let missed = held("idle-timeout >= 60s");
    assert_eq!(missed.status.code(), Some(1));
    assert!(
        words(&missed.stderr).contains("met by 0 of 2 checks"),
        "{missed:?}"
    );
    let unanswered = held("p99 < 1s");
    assert_eq!(unanswered.status.code(), Some(1));
    assert!(
        words(&unanswered.stderr).contains("the plan has no bench"),
        "{unanswered:?}"
    );
    let html = rig.path("cards.html");
    let page = words(&intact(&["fleet", "report", &store, "--report", &html]).stdout);
    assert!(page.contains("Connections are kept alive."), "{page}");
    let html = std::fs::read_to_string(html).unwrap();
    assert!(html.contains("waterfall-chart\""), "{html}");
    // what has no result meets no requirement
    let store = rig.path("store");
    let held = || intact(&["fleet", "report", &store, "--require", "findings >= 0"]);
    assert_eq!(held().status.code(), Some(0));
    let results = rig.results();
    std::fs::remove_file(results.keys().next().unwrap()).unwrap();
    let out = held();
    assert_eq!(out.status.code(), Some(1), "{out:?}");
    assert!(
        words(&out.stderr).contains("met by 1 of 1 checks; not met, 1 message without a result"),
        "{out:?}"
    );
}

#[test]
fn a_plan_prints_what_it_will_send_and_a_typo_has_its_line() {
    let rig = Rig::new("http://127.0.0.1:9/", 2, "20ms");
    let plan = rig.path("plan.toml");
    Schema::named("fleet").check(&document(&intact(&["fleet", "plan", &plan, "--json"])));

    let text = std::fs::read_to_string(&plan).unwrap();
    std::fs::write(&plan, text.replace("repetitions =", "repetition =")).unwrap();
    let out = intact(&["fleet", "run", &plan, "--store", &rig.path("store")]);
    assert_eq!(out.status.code(), Some(2), "{out:?}");
    let said = words(&out.stderr);
    assert!(
        said.contains("plan.toml:2: unknown key `repetition`: did you mean `repetitions`?"),
        "{said}"
    );
    assert!(!Path::new(&rig.path("store")).exists());
}

#[test]
fn a_folder_that_is_no_store_is_unreadable_and_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty");
    let foreign = folder.path().join("foreign");
    std::fs::create_dir_all(&empty).unwrap();
    std::fs::create_dir_all(foreign.join("plans")).unwrap();
    std::fs::write(foreign.join("plans/holiday.json"), "[\"sea\"]").unwrap();
    for (store, said) in [
        (empty.clone(), "the store has no campaign"),
        (foreign, "plans/holiday.json"),
        (folder.path().join("absent"), "no such folder"),
    ] {
        let out = intact(&["fleet", "report", store.to_str().unwrap()]);
        assert_eq!(out.status.code(), Some(5), "{out:?}");
        assert!(words(&out.stderr).contains(said), "{out:?}");
    }
    assert!(!folder.path().join("absent").exists());
    assert!(std::fs::read_dir(empty).unwrap().next().is_none());
}

#[test]
fn a_store_that_a_newer_version_began_asks_for_an_update() {
    let rig = Rig::new("http://127.0.0.1:9/", 1, "20ms");
    let plans = rig.folder.path().join("store/plans");
    std::fs::create_dir_all(&plans).unwrap();
    let begun = format!("{{\"format\": {}}}", FORMAT + 1);
    std::fs::write(plans.join("t-0.json"), begun).unwrap();
    let out = intact(&["fleet", "report", &rig.path("store")]);
    assert_eq!(out.status.code(), Some(5), "{out:?}");
    assert!(words(&out.stderr).contains("update intact"), "{out:?}");
}

/// Runs a campaign into a store without room, makes room, runs it again: in a mount namespace that
/// ends with the shell.
#[cfg(target_os = "linux")]
const FULL: &str = r#"
mkdir -p "$1/store"
mount -t tmpfs -o size=200k none "$1/store" || exit 99
"$2" fleet run "$1/plan.toml" --store "$1/store" --json > "$1/first.json"
echo "first $?" >&2
mount -o remount,size=64m "$1/store"
exec "$2" fleet run "$1/plan.toml" --store "$1/store" --json
"#;

#[cfg(target_os = "linux")]
#[test]
fn a_store_that_is_full_loses_nothing_and_the_same_command_goes_on_when_there_is_room() {
    let server = Server::start(&[]);
    let rig = Rig::new(&server.plain(), 20, "20ms");
    let out = Command::new("unshare")
        .args([
            "--user",
            "--map-root-user",
            "--mount",
            "sh",
            "-c",
            FULL,
            "sh",
        ])
        .args([&rig.path(""), env!("CARGO_BIN_EXE_intact")])
        .output()
        .unwrap();
    let errors = words(&out.stderr);
    if out.status.code() != Some(0) && !errors.contains("first ") {
        return crate::peers::skip("store-full", &errors);
    }
    assert!(
        errors.contains("full: ") && errors.contains("free some space"),
        "{errors}"
    );
    assert!(errors.contains("first 70"), "{errors}");
    assert_eq!(out.status.code(), Some(0), "{errors}");
    let messages = &document(&out)["messages"];
    assert_eq!(
        (&messages["finished"], &messages["missing"]),
        (&40.into(), &0.into())
    );
    assert_eq!(
        messages["dead"],
        Value::Array(Vec::new()),
        "no delivery was spent on it"
    );
}

#[test]
fn a_function_that_sqs_feeds_measures_its_messages_under_our_own_lambda() {
    use std::os::unix::fs::MetadataExt;
    let server = Server::start(&[]);
    let rig = Rig::new(&server.plain(), 2, "20ms");
    let path = rig.path("plan.toml");
    let plan =
        intact_fleet::parse(path.as_ref(), &std::fs::read_to_string(&path).unwrap()).unwrap();
    let mut records: Vec<Value> = Vec::new();
    for (nth, message) in plan.messages().enumerate() {
        records.push(serde_json::json!({
            "messageId": format!("m{nth}"),
            "body": serde_json::to_string(&message).unwrap(),
            "attributes": {"ApproximateReceiveCount": "1"},
        }));
    }
    records.push(serde_json::json!({"messageId": "m9", "body": "not ours"}));
    let event = rig.path("sqs.json");
    std::fs::write(
        &event,
        serde_json::json!({ "Records": records }).to_string(),
    )
    .unwrap();
    let store = rig.path("store");
    // one variant's results have a file in their way, so that its messages come back
    let folder = rig.path(&format!("store/results/plan={}", plan.id));
    std::fs::create_dir_all(&folder).unwrap();
    let in_the_way = format!("{folder}/variant=keepalive-off");
    std::fs::write(&in_the_way, "").unwrap();
    let invoke = || {
        let function = [
            env!("CARGO_BIN_EXE_intact"),
            "fleet",
            "lambda",
            "--store",
            &store,
        ];
        let mut words = vec!["lambda", "-n", "2", "--event", &event, "--json", "--"];
        words.extend(function);
        let out = intact(&words);
        assert_eq!(out.status.code(), Some(0), "{out:?}");
        let said = document(&out);
        let outcomes: Vec<&Value> = said["invocations"]
            .as_array()
            .unwrap()
            .iter()
            .map(|invocation| &invocation["outcome"])
            .collect();
        assert_eq!(outcomes, ["answered", "answered"], "{out:?}");
        words_of_function(&out)
    };
    assert_eq!(
        invoke(),
        [
            "5 messages: 2 measured, 2 in batchItemFailures",
            "5 messages: 0 measured, 2 in batchItemFailures"
        ]
    );
    std::fs::remove_file(in_the_way).unwrap();
    assert_eq!(
        invoke(),
        [
            "5 messages: 2 measured, 0 in batchItemFailures",
            "5 messages: 0 measured, 0 in batchItemFailures"
        ]
    );
    assert_eq!(rig.results().len(), 4);
    assert!(Path::new(&rig.path("store/dead")).is_dir());
    let mut files = Vec::new();
    every_file(Path::new(&rig.path("store")), &mut files);
    assert!(files.len() > 4, "{files:?}");
    for file in files {
        let mode = std::fs::metadata(&file).unwrap().mode();
        assert_eq!(mode & 0o077, 0, "{file:?}");
    }
}

/// What `fleet lambda` said at the end of each invocation.
fn words_of_function(out: &Output) -> Vec<String> {
    words(&out.stderr)
        .lines()
        .filter(|line| line.contains("batchItemFailures"))
        .map(str::to_owned)
        .collect()
}
