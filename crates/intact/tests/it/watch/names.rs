//! Lookups: names, times, answers and TTLs of programs that resolve in different ways, against a
//! name server of the test's own; the program sees what it would see unwatched.

use crate::peers::program;
use intact_ledger::{Lookup, Row};
use std::path::Path;
use std::process::{Command, Output};

/// How long the name server takes to answer, in nanoseconds.
const TAKES: u64 = 10_000_000;

pub(crate) struct Stage {
    folder: tempfile::TempDir,
}

impl Stage {
    /// `None` where a namespace cannot be made or Python is missing.
    pub(crate) fn set(what: &str) -> Option<Stage> {
        program("python3", what)?;
        program("unshare", what)?;
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("names.py"), include_str!("names.py")).unwrap();
        Some(Stage { folder })
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// Runs a command next to the servers.
    pub(crate) fn run(&self, resolver: &str, command: &[&str]) -> Output {
        Command::new("unshare")
            .args(["--user", "--map-root-user", "--net", "--mount", "python3"])
            .arg(self.path("names.py"))
            .arg(self.folder.path())
            .args(command)
            .env("RESOLVER", resolver)
            .output()
            .unwrap()
    }

    /// Runs a command unwatched and watched: both must give the same; the lookups.
    fn lookups_through(&self, resolver: &str, command: &[&str]) -> Vec<Lookup> {
        self.lookups_started_by(&[], resolver, command)
    }

    /// The same, where the words of `start` start `intact`.
    fn lookups_started_by(&self, start: &[&str], resolver: &str, command: &[&str]) -> Vec<Lookup> {
        let unwatched = self.run(resolver, command);
        let folder = tempfile::tempdir_in(self.folder.path()).unwrap();
        let ledger = folder.path().join("ledger");
        let intact = env!("CARGO_BIN_EXE_intact");
        let words = [intact, "watch", "-q", "--ledger", text(&ledger), "--"];
        let words = [start, &words, command].concat();
        let watched = self.run(resolver, &words);
        assert_eq!(
            (&watched.stdout, watched.status),
            (&unwatched.stdout, unwatched.status),
            "{watched:?}"
        );
        let reader = intact_ledger::store::Reader::open(&ledger).unwrap();
        reader
            .events()
            .unwrap()
            .filter_map(|row| match row {
                Row::Lookup(lookup) => Some(lookup),
                _ => None,
            })
            .collect()
    }

    fn lookups(&self, command: &[&str]) -> Vec<Lookup> {
        self.lookups_through("127.0.0.53", command)
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Holds lookups to what the name server says of `api.example`.
fn hold(lookups: &[Lookup], count: usize) {
    assert_eq!(lookups.len(), count, "{lookups:?}");
    for lookup in lookups {
        assert_eq!(lookup.name.as_deref(), Some("api.example"));
        assert_eq!(lookup.answer, Some(Ok(vec![[127, 0, 0, 1].into()])));
        assert_eq!(lookup.ttl_s, Some(60));
        assert_eq!(lookup.resolver.as_deref(), Some("127.0.0.53:53"));
        assert!(lookup.span.nanos() >= TAKES, "{lookup:?}");
    }
}

#[test]
fn a_look_up_of_the_c_library_has_its_name_its_time_its_answer_and_its_ttl() {
    let Some(stage) = Stage::set("watch lookups") else {
        return;
    };
    hold(&stage.lookups(&["getent", "ahosts", "api.example"]), 1);
    let script = "import urllib.request
for _ in range(3): urllib.request.urlopen('http://api.example/').read()";
    hold(&stage.lookups(&["python3", "-c", script]), 3);
    if program("curl", "watch lookups of curl").is_some() {
        let url = "http://api.example/";
        hold(&stage.lookups(&["curl", "-s", url, url]), 1);
    }
}

#[test]
fn so_has_one_where_sockets_are_made_for_the_program() {
    let Some(stage) = Stage::set("watch lookups in a container") else {
        return;
    };
    let filter = stage.path("confine.py");
    std::fs::write(&filter, include_str!("confine.py")).unwrap();
    let start = ["python3", &filter, "EPERM", "pidfd_getfd,process_vm_readv"];
    let script = "import urllib.request
for _ in range(3): urllib.request.urlopen('http://api.example/').read()";
    let command = ["python3", "-c", script];
    hold(&stage.lookups_started_by(&start, "127.0.0.53", &command), 3);
}

#[test]
fn so_has_one_of_node_by_the_c_library_and_by_its_own_resolver() {
    let Some(stage) = Stage::set("watch lookups of Node") else {
        return;
    };
    if program("node", "watch lookups of Node").is_none() {
        return;
    }
    let script = "require('http').get('http://api.example/', answer => {
        answer.resume();
        answer.on('end', () => require('dns').resolve4('api.example', console.log));
    })";
    hold(&stage.lookups(&["node", "-e", script]), 2);
}

#[test]
fn so_has_one_of_go_which_makes_its_own_system_calls() {
    let Some(stage) = Stage::set("watch lookups of Go") else {
        return;
    };
    if program("go", "watch lookups of Go").is_none() {
        return;
    }
    std::fs::write(
        stage.path("main.go"),
        "package main\nimport (\"fmt\"; \"net\")\n
func main() { for i := 0; i < 5; i++ { fmt.Println(net.LookupHost(\"api.example\")) } }",
    )
    .unwrap();
    let built = Command::new("go")
        .args(["build", "-o", &stage.path("main"), &stage.path("main.go")])
        .env("CGO_ENABLED", "0")
        .status()
        .unwrap();
    assert!(built.success());
    hold(&stage.lookups(&[&stage.path("main")]), 5);
}

#[test]
fn a_look_up_that_fails_says_why() {
    let Some(stage) = Stage::set("watch failing lookups") else {
        return;
    };
    for (resolver, name, why) in [
        ("127.0.0.53", "missing.example", "NXDOMAIN"),
        ("127.0.0.53", "silent.example", "no answer"),
        ("127.0.0.99", "api.example", "unreachable"),
    ] {
        let lookups = stage.lookups_through(resolver, &["getent", "ahosts", name]);
        assert_eq!(lookups.len(), 1, "{lookups:?}");
        assert_eq!(lookups[0].name.as_deref(), Some(name));
        assert_eq!(lookups[0].answer, Some(Err(why.into())));
    }
}
