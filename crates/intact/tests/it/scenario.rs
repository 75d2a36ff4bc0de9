//! `intact bench --scenario`: the plan that it prints, the counts that it shares with the server,
//! and what it refuses.

#[cfg(target_os = "linux")]
use crate::link::on_link;
use crate::program::{Schema, Server, intact};
use intact_ledger::Row;
use intact_ledger::store::Reader;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Output;
use tempfile::TempDir;

const DEFINITION: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../fixtures/load-tests/keep-alive.js"
);

/// The same two sessions with short waits, for a target that nothing leads to.
const SHORT: &str = "
definition.setTarget('testapp.example');
definition.session('keep-alive', 50, function (session) {
  context.get('/keep-alive/first', { tag: 'keep-alive-first' });
  session.times(26, function (context) {
    context.get('/keep-alive', { tag: 'keep-alive' });
    context.waitExp(0.002);
  });
});
definition.session('connection-close', 50, function (session) {
  session.times(25, function (context) {
    context.get('/connection-close', { tag: 'connection-close', headers: { Connection: 'close' } });
    context.waitExp(0.002);
  });
});
";

/// A file in a folder of its own.
fn file(name: &str, text: &str) -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (folder, path)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn json(out: &Output) -> Value {
    serde_json::from_slice(&out.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", text(&out.stderr)))
}

/// A server with a ledger.
struct Serve {
    server: Server,
    port: String,
    ledger: PathBuf,
    _folder: TempDir,
}

impl Serve {
    fn start() -> Serve {
        let folder = tempfile::tempdir().unwrap();
        let ledger = folder.path().join("server");
        let server = Server::start(&["--ledger", ledger.to_str().unwrap()]);
        Serve {
            port: server.plain_port(),
            server,
            ledger,
            _folder: folder,
        }
    }

    /// Ends it: exchanges by path, and connections.
    fn end(self) -> (BTreeMap<String, u64>, u64) {
        self.server.end();
        let mut paths = BTreeMap::new();
        let mut connections = 0;
        for row in Reader::open(Path::new(&self.ledger))
            .unwrap()
            .events()
            .unwrap()
        {
            match row {
                Row::Exchange(one) => {
                    let path = one.target.as_ref().map(|target| target.to_string());
                    *paths.entry(path.unwrap()).or_default() += 1;
                }
                Row::Opened(_) => connections += 1,
                _ => {}
            }
        }
        (paths, connections)
    }
}

/// Requests by tag.
fn tags(document: &Value) -> BTreeMap<String, u64> {
    let sessions = document["sessions"].as_array().unwrap();
    let tags = sessions
        .iter()
        .flat_map(|one| one["tags"].as_array().unwrap());
    let counts = tags.map(|tag| {
        let name = tag["tag"].as_str().unwrap().to_owned();
        (name, tag["requests"]["ok"].as_u64().unwrap())
    });
    counts.collect()
}

#[test]
fn the_counts_by_tag_are_those_of_the_servers_own_ledger() {
    let (_folder, definition) = file("clients.js", SHORT);
    let server = Serve::start();
    // the definition is not edited
    let route = format!("testapp.example:80:127.0.0.1:{}", server.port);
    let words = [
        "bench",
        "--scenario",
        &definition,
        "--connect-to",
        &route,
        "-n",
        "30",
    ];
    let out = intact(
        &[
            &words[..],
            &[
                "-c",
                "8",
                "--json",
                "--require",
                "tag=keep-alive: reuse == 100%",
            ],
        ]
        .concat(),
    );
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let document = json(&out);
    Schema::named("scenario").check(&document);
    let (paths, connections) = server.end();
    let by_tag = tags(&document);
    let expected = [
        ("connection-close", "/connection-close"),
        ("keep-alive", "/keep-alive"),
        ("keep-alive-first", "/keep-alive/first"),
    ];
    for (tag, path) in expected {
        assert_eq!(by_tag[tag], paths[path], "{tag}");
    }
    assert_eq!((by_tag.len(), paths.len()), (3, 3));
    let clients = document["clients"]["finished"].as_u64();
    assert_eq!(clients, Some(30));
    assert_eq!(by_tag["keep-alive"], 26 * by_tag["keep-alive-first"]);
    assert_eq!(
        document["connections"]["opened"].as_u64(),
        Some(connections)
    );
    let expected = by_tag["keep-alive-first"] + by_tag["connection-close"];
    assert_eq!(connections, expected);
}

// a link is made of namespaces
#[cfg(target_os = "linux")]
#[test]
fn over_a_link_the_latency_has_two_modes_that_are_named_with_their_shares() {
    let definition = SHORT.replace("definition.setTarget('testapp.example');", "");
    let (_folder, definition) = file("clients.js", &definition);
    let words = [
        "bench",
        "--scenario",
        &definition,
        "--link",
        "rtt=30ms",
        "-n",
        "20",
        "--json",
        "--seed",
        "7",
    ];
    let Some(out) = on_link(&words, "a scenario on a link") else {
        return;
    };
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let document = json(&out);
    assert_eq!(document["is_bimodal"], Value::Bool(true));
    let modes = document["modes"].as_array().unwrap();
    let names: Vec<&str> = modes
        .iter()
        .map(|mode| mode["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["fresh", "reused"]);
    let by_tag = tags(&document);
    let share = modes[1]["share"].as_f64().unwrap();
    let reused = by_tag["keep-alive"] as f64 / document["requests"]["ok"].as_f64().unwrap();
    assert!((share - reused).abs() < 1e-9, "{share} {reused}");
    let mean = |nth: usize| modes[nth]["mean_ms"].as_f64().unwrap();
    // a round trip for the connection, one for the request
    assert!(mean(0) >= 60.0 && mean(1) >= 30.0 && mean(0) - mean(1) >= 25.0);
    let verdict = document["verdict"][0].as_str().unwrap();
    assert!(
        verdict.starts_with("The latency has two modes:"),
        "{verdict}"
    );
}

#[test]
fn connections_are_kept_and_closed_alike_in_every_version_and_under_tls() {
    let definition = SHORT.replace("definition.setTarget('testapp.example');", "");
    let (_folder, definition) = file("clients.js", &definition);
    let server = Server::start(&[]);
    let tls = format!("https://127.0.0.1:{}/", server.tls_port());
    for (url, http) in [(server.plain(), "2"), (tls.clone(), "1.1"), (tls, "2")] {
        let words = [
            "bench",
            "--scenario",
            &definition,
            &url,
            "-k",
            "--http",
            http,
        ];
        let out = intact(&[&words[..], &["-n", "8", "-c", "4", "--json"]].concat());
        assert_eq!(
            out.status.code(),
            Some(0),
            "{url} {http}: {}",
            text(&out.stderr)
        );
        let document = json(&out);
        let by_tag = tags(&document);
        let first = by_tag.get("keep-alive-first").copied().unwrap_or(0);
        let closed = by_tag.get("connection-close").copied().unwrap_or(0);
        assert_eq!(first + closed / 25, 8, "{url} {http}");
        let opened = document["connections"]["opened"].as_u64();
        assert_eq!(opened, Some(first + closed), "{url} {http}");
        let reused = document["reused"].as_u64();
        assert_eq!(reused, Some(26 * first), "{url} {http}");
    }
}

#[test]
fn a_dry_run_sends_nothing_and_prints_a_plan_that_is_a_definition_again() {
    let out = intact(&["bench", "--scenario", DEFINITION, "--dry-run"]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let printed = text(&out.stdout);
    assert!(
        printed.contains("# \"keep-alive\": 50.0 % of the clients; each sends 27 requests"),
        "{printed}"
    );
    let (_folder, again) = file("again.toml", &printed);
    let plan = |path: &str| {
        let out = intact(&["bench", "--scenario", path, "--dry-run", "--json"]);
        assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
        json(&out)
    };
    let (first, second) = (plan(DEFINITION), plan(&again));
    assert_eq!(first["schema"], "intact.scenario-plan/1");
    let shape = |plan: &Value| {
        let sessions = plan["sessions"].as_array().unwrap().iter();
        let names = sessions.map(|one| (one["name"].clone(), one["weight"].clone()));
        (
            names.collect::<Vec<_>>(),
            plan["phases"].as_array().unwrap().len(),
        )
    };
    assert_eq!(shape(&first), shape(&second));
}

#[test]
fn the_page_of_the_ledger_is_that_of_the_run() {
    let (folder, definition) = file(
        "clients.js",
        &SHORT.replace("testapp.example", "localhost:1"),
    );
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let server = Serve::start();
    let route = format!("localhost:1:127.0.0.1:{}", server.port);
    let words = [
        "bench",
        "--scenario",
        &definition,
        "--connect-to",
        &route,
        "-n",
        "6",
        // clients of both kinds
        "--seed",
        "1",
    ];
    let out = intact(
        &[
            &words[..],
            &["--ledger", &at("run"), "--report", &at("page.html")],
        ]
        .concat(),
    );
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let stored = intact(&["report", &at("run")]);
    assert_eq!(stored.status.code(), Some(0), "{}", text(&stored.stderr));
    assert_eq!(text(&out.stdout), text(&stored.stdout));
    assert!(
        text(&out.stdout).contains("connection-close"),
        "{}",
        text(&out.stdout)
    );
    let html = std::fs::read_to_string(at("page.html")).unwrap();
    for part in [
        "<figure id=\"latency-chart\"",
        "keep-alive-first",
        "scenario.json",
    ] {
        assert!(html.contains(part), "{part}");
    }
    let out = intact(&["bench", "-n", "1", "--baseline", &at("run")]);
    assert_eq!(out.status.code(), Some(5), "{}", text(&out.stderr));
    assert!(
        text(&out.stderr).contains("bench --scenario"),
        "{}",
        text(&out.stderr)
    );
    let out = intact(&["compare", &at("run"), &at("run")]);
    assert!(
        text(&out.stderr).contains("shows a scenario"),
        "{}",
        text(&out.stderr)
    );
}

#[test]
fn mistakes_of_a_definition_are_usage_errors_that_name_file_and_line() {
    for (name, definition, line, words) in [
        ("x.js", "\nfor (;;) Math.abs(1);", 2, "endless loop"),
        (
            "x.js",
            "definition.session('a', (s) => {\n  s.times(1e9, (c) => c.get('/'));\n});",
            2,
            "more than 1,000,000",
        ),
        (
            "x.js",
            "definition.session('a', (s) => {\n  s.get('/'); s.wait(-1);\n});",
            2,
            "-1 is no time",
        ),
        (
            "x.js",
            "definition.session('a', (s) => {\n  s.fetch('/');\n});",
            2,
            "fetch is not supported",
        ),
        (
            "x.js",
            "definition.setTarget('a.example');\ndefinition.session('a', (s) => {\n  s.get('http://b.example/');\n});",
            3,
            "outside of the plan",
        ),
        (
            "x.js",
            "definition.session('a', (s) => s.get('/'));\ndefinition.setArrivalPhases([{ duration: 1, rate: 0 }]);",
            2,
            "a rate of 0",
        ),
        (
            "x.js",
            "definition.session('a', (s) => s.get('/'));\ndefinition.setArrivalPhases([{ duration: 1, rate: NaN }]);",
            2,
            "NaN",
        ),
        (
            "x.js",
            "definition.setTarget('ftp://a.example');\ndefinition.session('a', (s) => s.get('/'));",
            1,
            "http or https",
        ),
        (
            "x.toml",
            "[[session]]\nname = \"a\"\nsteps = [\n  { fetch = \"/\" },\n]",
            4,
            "fetch",
        ),
        (
            "x.toml",
            "[[session]]\nname = \"a\"\nsteps = [\n  { get = \"/\" }, { wait = -1 },\n]",
            4,
            "-1 is no time",
        ),
    ] {
        let (_folder, path) = file(name, definition);
        for further in [&["--dry-run"][..], &["http://127.0.0.1:9/", "-n", "1"]] {
            if further.len() > 1 && definition.contains("setTarget") {
                continue;
            }
            let out = intact(&[&["bench", "--scenario", &path], further].concat());
            let said = text(&out.stderr);
            assert_eq!(out.status.code(), Some(2), "{definition}: {said}");
            let place = format!("{path}:{line}: ");
            assert!(
                said.contains(&place) && said.contains(words),
                "{definition}: {said}"
            );
        }
    }
}

#[test]
fn options_that_contradict_a_scenario_are_refused() {
    let (_folder, path) = file("x.js", "definition.session('a', (s) => s.get('/'));");
    for (further, words) in [
        (&["--rate", "5/s"][..], "--rate"),
        (&["--keepalive", "off"], "--keepalive"),
        (&["-X", "POST"], "--method"),
        (&["--rounds", "2"], "--rounds"),
        (&["-c", "1,2"], "one value"),
        (&["--http", "1.1,2"], "one value"),
        (&["-n", "1", "-z", "1s"], "-z"),
    ] {
        let out = intact(&[&["bench", "--scenario", &path][..], further].concat());
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{further:?}: {said}");
        assert!(said.contains(words), "{further:?}: {said}");
    }
    let out = intact(&["bench", "--dry-run"]);
    assert_eq!(out.status.code(), Some(2), "{}", text(&out.stderr));
    let (_folder, named) = file("x.js", SHORT);
    // without links, `--link` is refused before the definition is read
    let link = cfg!(target_os = "linux").then_some(&["--link", "rtt=1ms"][..]);
    for further in [&["http://127.0.0.1/"][..]].into_iter().chain(link) {
        let out = intact(&[&["bench", "--scenario", &named][..], further].concat());
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{said}");
        assert!(
            said.contains("x.js:2: ") && said.contains("--connect-to"),
            "{said}"
        );
    }
    let (_folder, other) = file("x.yaml", "");
    let out = intact(&["bench", "--scenario", &other]);
    assert!(text(&out.stderr).contains(".toml"), "{}", text(&out.stderr));
}

#[test]
fn a_remote_target_gets_no_more_than_the_polite_amount_by_default() {
    let (_folder, path) = file(
        "x.js",
        "definition.setTarget('192.0.2.1');\ndefinition.setArrivalPhases([{ duration: 600, rate: 50 }]);\n\
         definition.session('a', (s) => s.times(10, (c) => c.get('/')));",
    );
    let words = ["bench", "--scenario", &path, "--dry-run"];
    let polite = text(&intact(&words).stdout);
    assert!(
        polite.contains("about 200 requests of 20 clients"),
        "{polite}"
    );
    assert!(
        polite.contains("10 new connections a second at most"),
        "{polite}"
    );
    let asked = text(&intact(&[&words[..], &["-z", "60s"]].concat()).stdout);
    assert!(
        asked.contains("about 30,000 requests of 3,000 clients"),
        "{asked}"
    );
}

#[test]
fn a_server_that_is_not_there_is_no_success() {
    let (_folder, path) = file("x.js", "definition.session('a', (s) => s.get('/'));");
    let out = intact(&[
        "bench",
        "--scenario",
        &path,
        crate::peers::CLOSED,
        "-n",
        "3",
        "--require",
        "failed == 0",
    ]);
    assert_eq!(out.status.code(), Some(3), "{}", text(&out.stderr));
    assert!(
        text(&out.stdout).contains("refused"),
        "{}",
        text(&out.stdout)
    );
}

#[cfg(unix)]
#[test]
fn an_interrupted_scenario_lasted_until_then() {
    let server = Server::start(&[]);
    let url = server.plain();
    let (folder, path) = file(
        "short.js",
        &format!(
            "definition.setTarget('{url}');
definition.setArrivalPhases([{{ duration: 600, rate: 20 }}]);
definition.session('one', 100, function (session) {{ context.get('/', {{ tag: 'one' }}); }});
"
        ),
    );
    let ledger = folder.path().join("ledger");
    let started = std::time::Instant::now();
    let child = std::process::Command::new(env!("CARGO_BIN_EXE_intact"))
        .args(["bench", "--scenario", &path, "--json", "--ledger"])
        .arg(&ledger)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    crate::program::wait_for(&ledger.join("run.json"));
    std::thread::sleep(std::time::Duration::from_millis(500));
    crate::program::signal(child.id(), "-INT");
    let out = child.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(130), "{}", text(&out.stderr));
    let facts = json(&out);
    let seconds = facts["seconds"].as_f64().unwrap();
    assert!(seconds <= started.elapsed().as_secs_f64(), "{facts}");
}
