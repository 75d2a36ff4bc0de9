//! Each output has the line of the code: one real program, and what is written of it.

use crate::peers::program;
use crate::program::{Server, intact};
use intact_ledger::Row;
use std::path::Path;
use std::process::Command;

/// Both functions open a connection for each request.
const PROGRAM: &str = "import http.client, sys

def ask():
    one = http.client.HTTPConnection('127.0.0.1', int(sys.argv[1]))
    one.request('GET', '/')
    one.getresponse().read()
    one.close()

def charge(): ask()
for _ in range(5): charge()
";
/// What opened: `request` of `ask`.
const PLACE: &str = "app.py:5";

/// Runs the program under `watch` with these options. What it prints.
fn watched(folder: &Path, options: &[&str]) -> String {
    let server = Server::start(&[]);
    let port = server.plain_port();
    std::fs::write(folder.join("app.py"), PROGRAM).unwrap();
    let root = folder.to_str().unwrap();
    let script = folder.join("app.py").display().to_string();
    let all = [
        &["watch", "--code-root", root][..],
        options,
        &["--", "python3", &script, &port],
    ];
    let out = Command::new(env!("CARGO_BIN_EXE_intact"))
        .args(all.concat())
        .env("GITHUB_ACTIONS", "true")
        .output()
        .unwrap();
    assert!(out.status.success(), "{out:?}");
    String::from_utf8([out.stdout, out.stderr].concat()).unwrap()
}

#[test]
fn each_output_has_the_line_that_opened() {
    if program("python3", "places in outputs").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let json = format!("--json={}", path("page.json"));
    let options = ["page.html", "page.md"].map(|name| ["--report".to_owned(), path(name)]);
    let mut options: Vec<&str> = options.iter().flatten().map(String::as_str).collect();
    let junit = path("page.xml");
    options.extend(["--full", &json, "--junit", &junit]);
    let page = watched(folder.path(), &options);
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();

    let document: serde_json::Value = serde_json::from_str(&read("page.json")).unwrap();
    let findings = document["findings"].as_array().unwrap();
    let place = findings
        .iter()
        .find_map(|finding| finding["places"].get(0))
        .unwrap_or_else(|| panic!("{document}"));
    assert_eq!(
        (&place["file"], &place["line"]),
        (&"app.py".into(), &5.into())
    );
    assert_eq!(
        (&place["function"], &place["connections"]),
        (&"ask".into(), &4.into())
    );
    let calls = place["stack"].as_array().unwrap();
    let functions: Vec<&str> = calls
        .iter()
        .filter_map(|one| one["function"].as_str())
        .collect();
    assert!(
        functions.ends_with(&["ask", "charge", "<module>"]),
        "{functions:?}"
    );

    assert!(
        page.contains(&format!("{PLACE}  ask  4 connections")),
        "{page}"
    );
    // the whole stack, innermost first
    let at = |part: &str| page.find(part).unwrap_or_else(|| panic!("{part}: {page}"));
    let inner = at("socket.py:");
    assert!(inner < at("\n      ask  app.py:5\n"), "{page}");
    assert!(
        at("\n      ask  app.py:5\n") < at("\n      charge  app.py:9\n"),
        "{page}"
    );
    assert!(
        page.contains("::warning file=app.py,line=5,title=intact: "),
        "{page}"
    );

    let html = read("page.html");
    assert!(html.contains(&format!(
        "<code>{PLACE}</code> <code>ask</code> · 4 connections"
    )));
    assert!(html.contains("<code>charge</code> · app.py:9"));
    assert!(read("page.md").contains(&format!("- {PLACE} ask: 4 connections")));
    let junit = read("page.xml");
    assert!(junit.contains("file=\"app.py\" line=\"5\""), "{junit}");
    assert!(
        junit.contains(&format!("at {PLACE} ask: 4 connections")),
        "{junit}"
    );
}

#[test]
fn a_short_page_has_the_line_and_no_stack() {
    if program("python3", "places on a short page").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let page = watched(folder.path(), &[]);
    assert!(
        page.contains(&format!("{PLACE}  ask  4 connections")),
        "{page}"
    );
    assert!(!page.contains("socket.py:"), "{page}");
    let page = watched(folder.path(), &["--full", "--places", "off"]);
    assert!(!page.contains(PLACE), "{page}");
}

/// A task of the library's own opens, and what opened it is not on its stack.
const TASK: &str = "import sys, urllib.request, concurrent.futures
urls = ['http://127.0.0.1:%s/' % sys.argv[1]] * 5
with concurrent.futures.ThreadPoolExecutor(1) as pool:
    list(pool.map(urllib.request.urlopen, urls))
";

#[test]
fn where_only_the_library_s_thread_is_visible_the_page_says_so_once() {
    if program("python3", "places of a library's thread").is_none() {
        return;
    }
    let server = Server::start(&[]);
    let port = server.plain_port();
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("task.py").display().to_string();
    std::fs::write(&script, TASK).unwrap();
    let root = folder.path().to_str().unwrap();
    let out = intact(&[
        "watch",
        "--full",
        "--code-root",
        root,
        "--",
        "python3",
        &script,
        &port,
    ]);
    let page = String::from_utf8_lossy(&out.stderr).into_owned();
    let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
    let said = "opened by a thread or task of a library's own: its caller is not visible";
    assert_eq!(words.matches(said).count(), 1, "{page}");
    assert!(!words.contains("task.py:"), "{page}");
}

/// What must not be recorded: the value of an argument, a variable, the text of a line.
const PRIVATE: [&str; 3] = ["VALUE-1", "LOCAL-1", "TEXT-1"];
const SECRETS: &str = "import http.client, sys

def charge(card):
    token = 'LOCAL-' + str(len(card) - 6)
    one = http.client.HTTPConnection('127.0.0.1', int(sys.argv[1]))
    one.request('GET', '/')  # TEXT-1
    one.getresponse().read()
    one.close()
    return token

for _ in range(5): charge('VALUE-' + sys.argv[2])
";
const SECRETS_OF_NODE: &str = "const net = require('net');
function charge(card) {
  const token = 'LOCAL-' + (card.length - 6);
  const one = net.connect(process.argv[2], '127.0.0.1'); // TEXT-1
  one.end('GET / HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n').resume();
  return token;
}
for (let nth = 0; nth < 5; nth++) charge('VALUE-' + process.argv[3]);
";

#[test]
fn no_value_no_text_and_no_folder_of_the_machine_is_recorded() {
    let programs = [
        ("python3", "secrets.py", SECRETS),
        ("node", "secrets.js", SECRETS_OF_NODE),
    ];
    for (interpreter, file, text) in programs {
        if program(interpreter, "places and secrets").is_none() {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        std::fs::write(path(file), text).unwrap();
        let server = Server::start(&[]);
        let port = server.plain_port();
        let json = format!("--json={}", path("page.json"));
        let (ledger, html, junit, script) = (
            path("ledger"),
            path("page.html"),
            path("page.xml"),
            path(file),
        );
        let out = Command::new(env!("CARGO_BIN_EXE_intact"))
            .args(["watch", "--full", "--code-root", &path(""), &json])
            .args(["--ledger", &ledger, "--report", &html, "--junit", &junit])
            .args(["--", interpreter, &script, &port, "1"])
            .output()
            .unwrap();
        assert!(out.status.success(), "{out:?}");
        let reader = intact_ledger::store::Reader::open(Path::new(&ledger)).unwrap();
        let rows: Vec<Row> = reader.events().unwrap().collect();
        let stacks: Vec<String> = rows
            .iter()
            .filter(|row| matches!(row, Row::Stack(_)))
            .map(|row| format!("{row:?}"))
            .collect();
        assert!(stacks[0].contains("charge"), "{stacks:?}");
        for stack in &stacks {
            assert!(!stack.contains(&path("")), "{stack}");
        }
        let files = ["page.json", "page.html", "page.xml"]
            .map(|name| std::fs::read_to_string(path(name)).unwrap());
        let page = String::from_utf8([out.stdout, out.stderr].concat()).unwrap();
        let rows = rows.iter().map(|row| format!("{row:?}"));
        for written in rows.chain(files).chain([page]) {
            for private in PRIVATE {
                assert!(!written.contains(private), "{private}: {written}");
            }
        }
    }
}
