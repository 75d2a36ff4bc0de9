//! `intact compare --commits`: patches of a repository, right and wrong ones, and what a checkout
//! needs. Each patch in `patches/` is a program of the base and one of the head, with its verdict.

use crate::peers::program;
use crate::program::{Schema, Server, wait_for};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

const PATCHES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/patches");
const INTACT: &str = env!("CARGO_BIN_EXE_intact");
/// The line between base and head of a patch, after the mark of a comment.
const HEAD: &str = " --- head";
/// Writes the program of a patch of nginx, which has one client.
const NGINX: &str = r#"cat > run.sh << 'END'
nginx=$(command -v nginx || echo /usr/sbin/nginx)
port=$(python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')
sed "s/UPSTREAM/$1:$2/; s/LISTEN/127.0.0.1:$port/" app.conf > nginx.conf
"$nginx" -p "$PWD" -e stderr -g 'daemon off; master_process off; pid nginx.pid;' -c nginx.conf &
until [ -s nginx.pid ]; do sleep 0.1; done
curl -s -o /dev/null "http://127.0.0.1:$port/[1-12]"
kill -QUIT $!
wait $!
END"#;
/// The test runs each part of the patches with the others.
const PARTS: usize = 3;

/// A repository, with a folder of its own for what `intact` makes.
struct Repository {
    folder: tempfile::TempDir,
}

impl Repository {
    fn new() -> Repository {
        let folder = tempfile::tempdir().unwrap();
        let repository = Repository { folder };
        for name in ["work", "scratch"] {
            fs::create_dir(repository.folder.path().join(name)).unwrap();
        }
        repository.git(&["init", "--quiet"]);
        repository
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join("work").join(name)
    }

    fn git(&self, words: &[&str]) -> String {
        let out = Command::new("git")
            .args(["-c", "user.name=test", "-c", "user.email=test@localhost"])
            .args(words)
            .current_dir(self.file(""))
            .output()
            .unwrap();
        assert!(out.status.success(), "{words:?}: {out:?}");
        String::from_utf8(out.stdout).unwrap().trim().to_owned()
    }

    /// Commits these files.
    fn commit(&self, files: &[(&str, &str)]) {
        for (name, text) in files {
            fs::write(self.file(name), text).unwrap();
        }
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", "change"]);
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(INTACT);
        command
            .arg("compare")
            .args(words)
            .current_dir(self.file(""))
            .env("TMPDIR", self.folder.path().join("scratch"))
            .env("NO_COLOR", "1")
            .env("COLUMNS", "200")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn compare(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    /// The exit code and what was printed, where nothing may be left.
    fn fails(&self, words: &[&str]) -> (Option<i32>, String) {
        let out = self.compare(words);
        assert!(self.is_clean(), "{words:?}");
        (out.status.code(), text(&out.stderr))
    }

    /// Whether no checkout is left.
    fn is_clean(&self) -> bool {
        let scratch = fs::read_dir(self.folder.path().join("scratch"));
        scratch.unwrap().next().is_none()
    }

    /// Everything that must be as before: tree, index, HEAD, settings, worktrees, objects.
    fn state(&self) -> Vec<String> {
        let git = |words: &[&str]| self.git(words);
        let index = fs::read(self.file(".git/index")).unwrap();
        let config = fs::read_to_string(self.file(".git/config")).unwrap();
        vec![
            git(&["--no-optional-locks", "status", "--porcelain", "--ignored"]),
            git(&["worktree", "list"]),
            git(&["rev-parse", "HEAD"]),
            git(&["count-objects", "--verbose"]),
            git(&["for-each-ref"]),
            format!("{index:?}"),
            config,
        ]
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// A patch as its file has it.
struct Patch {
    serve: Vec<String>,
    rounds: String,
    /// The begin of the sentence, and parts of it.
    verdict: Vec<String>,
    base: String,
    head: String,
    /// What it needs.
    programs: &'static [&'static str],
    file: &'static str,
    setup: Option<&'static str>,
    command: &'static [&'static str],
}

impl Patch {
    fn read(path: &Path) -> Patch {
        type Words = &'static [&'static str];
        let mut setup = None;
        let (mark, file, programs, command): (_, _, Words, Words) =
            match path.extension().unwrap().to_str() {
                Some("js") => ("//", "app.js", &["node"], &["node", "app.js"]),
                Some("go") => {
                    setup = Some("go build -o app app.go");
                    ("//", "app.go", &["go"], &["./app"])
                }
                Some("conf") => {
                    setup = Some(NGINX);
                    let command = &["sh", "run.sh"];
                    ("#", "app.conf", &["nginx", "curl"], command)
                }
                _ => ("#", "app.py", &["python3"], &["python3", "app.py"]),
            };
        let text = fs::read_to_string(path).unwrap();
        let (base, head) = text.split_once(&format!("{mark}{HEAD}\n")).unwrap();
        let mut patch = Patch {
            serve: Vec::new(),
            rounds: "3".to_owned(),
            verdict: Vec::new(),
            base: base.to_owned(),
            head: head.to_owned(),
            programs,
            file,
            setup,
            command,
        };
        for line in base.lines() {
            let Some(about) = line.strip_prefix(mark).map(str::trim) else {
                break;
            };
            let words = |words: &str| words.split_whitespace().map(str::to_owned).collect();
            match about.split_once(": ") {
                Some(("serve", options)) => patch.serve = words(options),
                // the public pull request that it is a miniature of
                Some(("request", _)) => {}
                Some(("rounds", rounds)) => patch.rounds = rounds.to_owned(),
                _ => patch.verdict = about.split("; ").map(str::to_owned).collect(),
            }
        }
        patch
    }
}

/// The files of patches, in order.
fn patches() -> Vec<PathBuf> {
    let entries = fs::read_dir(PATCHES).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let is_patch = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        name.starts_with(|first: char| first.is_ascii_digit())
    };
    let mut paths: Vec<PathBuf> = paths.filter(is_patch).collect();
    paths.sort();
    paths
}

fn each_patch_has_its_verdict(part: usize) {
    let name = "compare_commits: patches";
    if program("git", name).is_none() {
        return;
    }
    let service = fs::read_to_string(Path::new(PATCHES).join("service.py")).unwrap();
    let all = patches();
    assert!(all.len() >= 20, "{}", all.len());
    for path in all.iter().skip(part).step_by(PARTS) {
        let patch = Patch::read(path);
        if patch
            .programs
            .iter()
            .any(|one| program(one, name).is_none())
        {
            continue;
        }
        let options: Vec<&str> = patch.serve.iter().map(String::as_str).collect();
        let server = Server::start(&options);
        let repository = Repository::new();
        repository.commit(&[("service.py", &service), (patch.file, &patch.base)]);
        repository.commit(&[(patch.file, &patch.head)]);
        let json = repository.folder.path().join("c.json");
        let (written, port) = (format!("--json={}", json.display()), server.plain_port());
        let mut words = vec!["--commits", "HEAD~1..HEAD", "--warm-up", "0", &written];
        words.extend(["--rounds", &patch.rounds]);
        words.extend(patch.setup.iter().flat_map(|setup| ["--setup", setup]));
        words.push("--");
        words.extend(patch.command);
        let out = repository.compare(&[&words[..], &["127.0.0.1", &port]].concat());
        let path = path.display();
        assert_eq!(out.status.code(), Some(0), "{path}: {}", text(&out.stderr));
        let document = read(&json);
        Schema::named("compare").check(&document);
        let sentence = document["answers"][0]["sentence"].as_str().unwrap();
        assert!(
            sentence.starts_with(&patch.verdict[0]),
            "{path}: {sentence}"
        );
        for part in &patch.verdict {
            assert!(sentence.contains(&**part), "{path}: {part}: {sentence}");
        }
        // the first sentence of the page
        assert_eq!(document["verdict"][0], sentence, "{path}");
        // no cause is gone and stays
        let changes = document["changes"].as_array().unwrap();
        let of = |fate: &str| -> Vec<String> {
            let ours = changes.iter().filter(|one| one["fate"] == fate);
            let key = |one: &Value| format!("{} {}", one["rule"], one["subject"]);
            ours.map(key).collect()
        };
        let stays = [of("unchanged"), of("undecided"), of("new")].concat();
        for gone in of("gone") {
            assert!(!stays.contains(&gone), "{path}: {gone}");
        }
        assert!(repository.is_clean(), "{path}");
    }
}

#[test]
fn patches_have_their_verdicts_part_1() {
    each_patch_has_its_verdict(0);
}

#[test]
fn patches_have_their_verdicts_part_2() {
    each_patch_has_its_verdict(1);
}

#[test]
fn patches_have_their_verdicts_part_3() {
    each_patch_has_its_verdict(2);
}

/// A program that sends six requests, on one connection or on one each.
fn requests(keeps: bool, url: &str) -> String {
    let close = if keeps { "" } else { "\n    c.close()" };
    format!(
        "import http.client\nc = http.client.HTTPConnection('{url}')\nfor n in range(6):\n    \
         c.request('GET', '/')\n    c.getresponse().read(){close}\n"
    )
}

#[test]
fn the_users_repository_is_untouched_and_its_changes_are_compared() {
    let name = "compare_commits: untouched";
    if program("git", name).is_none() || program("python3", name).is_none() {
        return;
    }
    let server = Server::start(&[]);
    let repository = Repository::new();
    let url = format!("127.0.0.1:{}", server.plain_port());
    fs::create_dir(repository.file("sub")).unwrap();
    repository.commit(&[("sub/run", &requests(false, &url)), ("old", "old")]);
    // a change that is in no commit: a file, a new one, a link, and one that is gone
    fs::write(repository.file("sub/run"), requests(true, &url)).unwrap();
    fs::write(repository.file("sub/new"), "new").unwrap();
    symlink("new", repository.file("sub/link")).unwrap();
    fs::remove_file(repository.file("old")).unwrap();
    let before = repository.state();
    let json = repository.folder.path().join("c.json");
    let written = format!("--json={}", json.display());
    // the setup runs in a repository of its own, whose settings are its own
    let setup = "git config core.hooksPath elsewhere && git rev-parse --verify -q HEAD && pwd -P >> \"$SEEN\"";
    let seen = repository.folder.path().join("seen");
    let out = repository
        .command(&[
            "--commits",
            "HEAD",
            "--setup",
            setup,
            "--rounds",
            "2",
            &written,
        ])
        .args(["--require", "avoidable == 0", "--require", "brought == 0"])
        .args(["--", "python3", "run"])
        .current_dir(repository.file("sub"))
        .env("SEEN", &seen)
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let page = text(&out.stdout);
    assert!(page.contains("Yes: "), "{page}");
    assert!(
        page.contains("head is the working tree as it stands"),
        "{page}"
    );
    let document = read(&json);
    assert_eq!(document["run"]["variants"][1]["axes"]["uncommitted"], "4");
    let seen = fs::read_to_string(seen).unwrap();
    let seen: Vec<&str> = seen.lines().collect();
    assert!(seen.len() == 2 && seen[0].ends_with("base/sub"), "{seen:?}");
    assert!(repository.is_clean());
    assert_eq!(repository.state(), before);

    // as commits, without the change
    let (code, error) = repository.fails(&["--commits", "HEAD..HEAD", "--", "python3", "run"]);
    assert_eq!(code, Some(2), "{error}");
    assert!(error.contains("both sides are the commit"), "{error}");
    // a hook of git leads git to its repository
    let out = repository
        .command(&["--commits", "HEAD", "--rounds", "1", "--warm-up", "0"])
        .args([
            "--setup",
            "git config hook.is yes",
            "--",
            "python3",
            "sub/run",
        ])
        .env("GIT_DIR", repository.file(".git"))
        .env("GIT_INDEX_FILE", repository.file(".git/index"))
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    assert_eq!(repository.state(), before);
}

#[test]
fn what_a_checkout_lacks_is_named_with_its_remedy() {
    if program("git", "compare_commits: errors").is_none() {
        return;
    }
    let repository = Repository::new();
    repository.commit(&[("run", "true\n")]);
    repository.commit(&[("run", "true #\n"), ("tool", "#!/bin/sh\n")]);
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(repository.file("tool"), mode).unwrap();
    repository.git(&["commit", "--quiet", "--all", "--message", "mode"]);
    let both = ["--commits", "HEAD~2..HEAD"];
    let cases: [(&[&str], i32, &str); 8] = [
        (
            &["--commits", "nowhere..HEAD", "--", "true"],
            2,
            "no commit nowhere",
        ),
        (&["--commits=--all", "--", "true"], 2, "no commit --all"),
        (
            &["--commits", "HEAD", "--", "true"],
            2,
            "the working tree has no changes",
        ),
        (&[both[0], both[1]], 2, "after a single --"),
        (
            &[both[0], both[1], "--", "a", "--", "b"],
            2,
            "after a single --",
        ),
        (
            &[
                both[0],
                both[1],
                "--setup",
                "echo no compiler; exit 3",
                "--",
                "true",
            ],
            125,
            "no compiler",
        ),
        (
            &[both[0], both[1], "--", "./tool"],
            127,
            "not found in base",
        ),
        (
            &[both[0], both[1], "--", "./tool; exit $?"],
            127,
            "may not exist in this commit",
        ),
    ];
    for (words, code, reason) in cases {
        let (ended, error) = repository.fails(words);
        assert_eq!(ended, Some(code), "{words:?}: {error}");
        assert!(error.contains(reason), "{words:?}: {error}");
    }

    // a clone that ends before the base, and the branch of a remote
    let origin = repository.git(&["rev-parse", "HEAD~2"]);
    let clone = Repository::new();
    fs::remove_dir_all(clone.file("")).unwrap();
    let url = format!("file://{}", repository.file("").display());
    let cloned = Command::new("git")
        .args(["clone", "--quiet", "--depth", "1", &url])
        .arg(clone.file(""))
        .status();
    assert!(cloned.unwrap().success());
    let (code, error) = clone.fails(&["--commits", &format!("{origin}..HEAD"), "--", "true"]);
    assert_eq!(code, Some(2), "{error}");
    assert!(error.contains("the clone is shallow"), "{error}");
    let branch = clone.git(&["branch", "--show-current"]);
    clone.git(&["checkout", "--quiet", "-b", "topic"]);
    clone.git(&["branch", "--quiet", "-D", &branch]);
    let (_, error) = clone.fails(&["--commits", &branch, "--", "true"]);
    assert!(
        error.contains(&format!("did you mean origin/{branch}")),
        "{error}"
    );

    // submodules and files of LFS, which the setup can fetch
    let id = repository.git(&["rev-parse", "HEAD"]);
    let link = format!("160000,{id},vendor");
    repository.git(&["update-index", "--add", "--cacheinfo", &link]);
    repository.git(&["commit", "--quiet", "--message", "submodule"]);
    let words = ["--commits", "HEAD~1..HEAD", "--", "true"];
    let (code, error) = repository.fails(&words);
    assert_eq!(code, Some(125), "{error}");
    assert!(error.contains("submodule update --init"), "{error}");
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n";
    let attributes = "*.bin filter=lfs\n";
    repository.git(&["rm", "--quiet", "--cached", "vendor"]);
    repository.commit(&[("data.bin", pointer), (".gitattributes", attributes)]);
    let (code, error) = repository.fails(&["--commits", "HEAD~2..HEAD", "--", "true"]);
    assert_eq!(code, Some(125), "{error}");
    assert!(error.contains("data.bin is a pointer"), "{error}");

    // no repository at all
    let out = repository
        .command(&["--commits", "HEAD", "--", "true"])
        .current_dir(repository.folder.path().join("scratch"))
        .env("GIT_CEILING_DIRECTORIES", repository.folder.path())
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("repository of git"), "{out:?}");
    // no git
    let path = repository.folder.path().join("scratch");
    let out = repository
        .command(&["--commits", "HEAD~1..HEAD", "--", "true"])
        .env("PATH", path)
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(125));
    assert!(
        text(&out.stderr).contains("needs the program git"),
        "{out:?}"
    );
}

/// A comparison whose programs run until a signal, in its first round.
fn running(repository: &Repository, began: &Path) -> Child {
    let program = format!(
        "trap 'exit 0' TERM INT; : > {}; while :; do sleep 0.05; done",
        began.display()
    );
    let child = repository
        .command(&["--commits", "HEAD~1..HEAD", "--warm-up", "0"])
        .args(["--", "sh", "-c", &program])
        .spawn()
        .unwrap();
    wait_for(began);
    assert!(!repository.is_clean());
    child
}

#[test]
fn checkouts_end_with_the_comparison_however_it_ends() {
    if program("git", "compare_commits: kill").is_none() {
        return;
    }
    let repository = Repository::new();
    repository.commit(&[("file", "1")]);
    repository.commit(&[("file", "2")]);
    for signal in ["-TERM", "-KILL"] {
        let began = repository.folder.path().join(signal);
        let mut child = running(&repository, &began);
        let pid = child.id();
        let watched = children(pid);
        let send = |signal: &str, pid: u32| {
            let status = Command::new("kill")
                .args([signal, &pid.to_string()])
                .status();
            status.unwrap();
        };
        send(signal, pid);
        let ended = child.wait().unwrap();
        assert_eq!(ended.code().is_some(), signal == "-TERM", "{ended:?}");
        // what a comparison that was killed has started does not end with it
        if signal == "-KILL" {
            watched.into_iter().for_each(|pid| send("-TERM", pid));
        }
        // the guard is another process
        for _ in 0..1000 {
            if repository.is_clean() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(repository.is_clean(), "{signal}");
    }
}

/// The children of a process that are shells.
fn children(pid: u32) -> Vec<u32> {
    let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let list = list.unwrap_or_default();
    let ids = list.split_whitespace().filter_map(|id| id.parse().ok());
    let is_shell = |id: &u32| {
        let name = fs::read_to_string(format!("/proc/{id}/comm"));
        name.is_ok_and(|name| name.trim() == "sh")
    };
    ids.filter(is_shell).collect()
}

#[test]
fn the_page_names_places_that_are_gone_also_where_lines_move() {
    let needed = ["git", "python3"];
    let is_absent = |name: &&str| program(name, "compare_commits: places").is_none();
    if needed.iter().any(is_absent) {
        return;
    }
    let patch = Patch::read(&Path::new(PATCHES).join("21-one-of-two-callers.py"));
    let server = Server::start(&[]);
    let repository = Repository::new();
    // the opening is in the caller itself
    let inline = |source: &str| {
        let helper = "import http.client, sys\nHOST, PORT = sys.argv[1], int(sys.argv[2])\ndef send(c, path):\n    c.request('GET', path)\n    c.getresponse().read()\n";
        let opened = "connection = http.client.HTTPConnection(HOST, PORT); connection.connect()";
        let source = source.replace("from service import *", helper);
        source
            .replace("connection = client()", opened)
            .replace("client()", "http.client.HTTPConnection(HOST, PORT)")
    };
    repository.commit(&[("app.py", &inline(&patch.base))]);
    repository.commit(&[("app.py", &inline(&patch.head))]);
    let json = repository.folder.path().join("c.json");
    let port = server.plain_port();
    let written = format!("--json={}", json.display());
    let words = ["--rounds", "2", &written, "--"];
    let program = ["python3", "app.py", "127.0.0.1", &port];
    let commits = [&["--commits", "HEAD~1..HEAD"], &words[..], &program].concat();
    let out = repository.compare(&commits);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let places = |document: &Value| -> Vec<(String, String)> {
        let changes = document["changes"].as_array().unwrap().iter();
        let places = changes
            .filter_map(|one| one["place_changes"].as_array())
            .flatten();
        let word = |value: &Value| value.as_str().unwrap().to_owned();
        let pair = |place: &Value| (word(&place["function"]), word(&place["fate"]));
        let mut all: Vec<(String, String)> = places.map(pair).collect();
        all.sort();
        all.dedup();
        all
    };
    let expected = [("charge", "gone"), ("refund", "unchanged")]
        .map(|(function, fate)| (function.to_owned(), fate.to_owned()));
    assert_eq!(places(&read(&json)), expected, "{}", text(&out.stdout));
    assert!(text(&out.stdout).contains("Where in the code"));

    // programs without commits have it too
    fs::write(repository.file("old.py"), inline(&patch.base)).unwrap();
    let old = ["python3", "old.py", "127.0.0.1", &port, "--"];
    let out = repository.compare(&[&words[..], &old, &program].concat());
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let document = read(&json);
    let gone: Vec<String> = places(&document)
        .into_iter()
        .map(|(function, _)| function)
        .collect();
    assert!(gone.contains(&"charge".to_owned()), "{document:#}");
    assert_eq!(document.get("answers"), None);
}

#[test]
fn the_cards_of_both_commits_are_compared() {
    let name = "compare_commits: faults";
    if program("git", name).is_none() || program("python3", name).is_none() {
        return;
    }
    let server = Server::start(&[]);
    let repository = Repository::new();
    let url = format!("127.0.0.1:{}", server.plain_port());
    // a connection each loses none; a kept one fails when it dies
    repository.commit(&[("run", &requests(false, &url))]);
    repository.commit(&[("run", &requests(true, &url))]);
    let folder = repository.folder.path();
    let (json, ledger) = (folder.join("c.json"), folder.join("ledger"));
    let out = repository
        .command(&["--commits", "HEAD~1..HEAD", "--rounds", "2"])
        .args(["--fault", "stale", &format!("--json={}", json.display())])
        .args(["--ledger", ledger.to_str().unwrap()])
        .args(["--", "python3", "run"])
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let document = read(&json);
    Schema::named("compare").check(&document);
    assert_eq!(document["variants"].as_array().unwrap().len(), 2);
    let change = &document["fault_changes"][0];
    assert_eq!(change["kind"], "stale", "{document:#}");
    assert_eq!(change["result"], "worse", "{document:#}");
    let answer = &document["answers"][0];
    assert_eq!(answer["verdict"], "partly", "{answer:#}");
    let sentence = answer["sentence"].as_str().unwrap();
    assert!(sentence.contains("worse under faults: stale"), "{sentence}");
    // the stored ledger has the same page
    let page = Command::new(INTACT)
        .args(["report", ledger.to_str().unwrap()])
        .env("NO_COLOR", "1")
        .env("COLUMNS", "200")
        .output()
        .unwrap();
    assert_eq!(text(&page.stdout), text(&out.stdout));
}
