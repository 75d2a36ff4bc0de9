//! Places in programs of each version of CPython that is installed.

use super::{hold, seen};
use crate::peers::{program, skip};
use std::path::{Path, PathBuf};
use std::process::Command;

const PLANTED: &str = include_str!("planted.py");
/// A library that opens in tasks of its own, and a program that waits for it.
const SOCKETS: &str = include_str!("planted_sockets.py");
const TASKS: &str = include_str!("planted_tasks.py");
const CASES: [&str; 19] = [
    "sync",
    "lines",
    "decorated",
    "same",
    "property",
    "generator",
    "comprehension",
    "deep",
    "handler",
    "long",
    "socket",
    "lambda",
    "awaited",
    "gathered",
    "executor",
    "thread",
    "pool",
    "fork",
    "generated",
];

/// The interpreters of this machine: those on the path, and those of pyenv.
fn interpreters() -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").unwrap_or_default();
    let versions = std::fs::read_dir(Path::new(&home).join(".pyenv/versions"));
    let own = versions.into_iter().flatten().flatten();
    let own = own.map(|one| one.path().join("bin/python3"));
    let system = ["/usr/bin/python3".into(), "/usr/local/bin/python3".into()];
    let all = own.chain(system).filter(|path: &PathBuf| path.is_file());
    let is_read = |path: &PathBuf| {
        let version = Command::new(path)
            .args(["-c", "import sys; print(sys.version_info[1])"])
            .output();
        let minor = version
            .ok()
            .and_then(|out| String::from_utf8(out.stdout).ok());
        let minor = minor.and_then(|text| text.trim().parse::<u32>().ok());
        minor.is_some_and(|minor| (8..=14).contains(&minor))
    };
    all.filter(is_read).collect()
}

#[test]
fn a_python_program_is_named_at_the_line_that_opened() {
    if program("python3", "places of Python").is_none() {
        return;
    }
    let all = interpreters();
    if all.is_empty() {
        return skip(
            "places of Python",
            "no version from 3.8 to 3.14 is installed",
        );
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("planted.py"), PLANTED).unwrap();
    let script = folder.path().join("planted.py").display().to_string();
    for interpreter in all {
        let python = interpreter.to_str().unwrap();
        for case in CASES {
            let seen = seen(
                folder.path(),
                "planted.py",
                &[python, &script, "{port}", case],
            );
            hold(python, PLANTED, case, &seen);
        }
        let seen = seen(
            folder.path(),
            "planted.py",
            &[python, &script, "{port}", "unknown"],
        );
        assert_eq!((seen.lines.len(), seen.not_known), (0, 4), "{python}");
        named_as_a_page(folder.path(), python);
    }
}

#[test]
fn the_line_that_waits_for_a_task_of_a_library_is_named() {
    if program("python3", "places of tasks").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let library = path("site-packages/anyio/_core");
    std::fs::create_dir_all(&library).unwrap();
    std::fs::write(library.join("_sockets.py"), SOCKETS).unwrap();
    std::fs::write(path("tasks.py"), TASKS).unwrap();
    let script = path("tasks.py").display().to_string();
    for interpreter in interpreters() {
        let python = interpreter.to_str().unwrap();
        let seen = |case| {
            let words = [python, &script, "{port}", case];
            seen(folder.path(), "tasks.py", &words)
        };
        for case in ["awaited", "gathered", "items"] {
            hold(python, TASKS, case, &seen(case));
        }
        for (case, not_known) in [("library", 3), ("left", 1)] {
            let seen = seen(case);
            let counts = (seen.lines.len(), seen.not_known);
            assert_eq!(counts, (0, not_known), "{python} {case}");
        }
    }
}

/// A template engine runs other code by the name and the lines of its page.
const TEMPLATE: &str = "import http.client, sys
code = '''
def root():
    one = http.client.HTTPConnection('127.0.0.1', sys.argv[1])
    one.request('GET', '/')
    one.getresponse().read()
root()
'''
exec(compile(code, sys.path[0] + '/page.html', 'exec'))
";

fn named_as_a_page(folder: &Path, python: &str) {
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    write("template.py", TEMPLATE);
    write("page.html", &"<p>a page</p>\n".repeat(9));
    let script = folder.join("template.py").display().to_string();
    let seen = seen(folder, "template.py", &[python, &script, "{port}"]);
    assert_eq!((seen.lines.len(), seen.not_known), (0, 1), "{python}");
}
