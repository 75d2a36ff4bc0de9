//! The script of the GitHub Action, with the files and variables that GitHub gives it and a `gh`
//! that writes down what it is asked.

use crate::program::Server;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/ci/action.sh");

/// A repository with two commits: a program that opens a connection per request, then one that
/// reuses it.
struct Repository {
    folder: tempfile::TempDir,
    base: String,
}

impl Repository {
    fn new(server: &Server) -> Repository {
        let folder = tempfile::tempdir().unwrap();
        let repository = Repository {
            folder,
            base: String::new(),
        };
        std::fs::create_dir(repository.file("work")).unwrap();
        std::fs::create_dir(repository.file("bin")).unwrap();
        repository.git(&["init", "--quiet"]);
        let commit = |keepalive: &str| {
            let line = format!(
                "{} bench {} -n 5 --rounds 1 --keepalive {keepalive}\n",
                env!("CARGO_BIN_EXE_intact"),
                server.plain()
            );
            std::fs::write(repository.file("work/run"), line).unwrap();
            repository.git(&["add", "run"]);
            repository.git(&["commit", "--quiet", "--message", keepalive]);
            repository.git(&["rev-parse", "HEAD"])
        };
        let base = commit("off");
        commit("on");
        let gh = "#!/bin/sh\nfor last; do :; done\necho \"$@\" > \"$GH_LOG\"\ncat \"$last\" >> \"$GH_LOG\"\n";
        let path = repository.file("bin/gh");
        std::fs::write(&path, gh).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&path, mode).unwrap();
        Repository { base, ..repository }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(name)).unwrap_or_default()
    }

    fn git(&self, words: &[&str]) -> String {
        let out = Command::new("git")
            .args(["-c", "user.name=test", "-c", "user.email=test@localhost"])
            .args(words)
            .current_dir(self.file("work"))
            .output()
            .unwrap();
        assert!(out.status.success(), "{words:?}: {out:?}");
        String::from_utf8(out.stdout).unwrap().trim().to_owned()
    }

    /// Runs the script as a step of a job.
    fn step(&self, inputs: &[(&str, &str)]) -> Output {
        let path = std::env::var("PATH").unwrap();
        Command::new("bash")
            .arg(SCRIPT)
            .current_dir(self.file("work"))
            .env("PATH", format!("{}:{path}", self.file("bin").display()))
            .env("GITHUB_ACTIONS", "true")
            .env("GITHUB_STEP_SUMMARY", self.file("summary.md"))
            .env("GITHUB_OUTPUT", self.file("output"))
            .env("GH_LOG", self.file("comment"))
            .env("INTACT", env!("CARGO_BIN_EXE_intact"))
            .env("INTACT_REPORT", self.file("page.html"))
            .env("INTACT_RUN", "sh run")
            .envs(inputs.iter().copied())
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }
}

fn stderr(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

#[test]
fn a_step_writes_summary_page_annotation_and_exit_code() {
    let server = Server::start(&[]);
    let repository = Repository::new(&server);
    // the preflight of a bench has a connection of its own
    let passed = repository.step(&[("INTACT_REQUIRE", "avoidable <= 1\n\nrequests > 3\n")]);
    assert_eq!(passed.status.code(), Some(0), "{}", stderr(&passed));
    assert_eq!(repository.text("output"), "exit-code=0\n");
    let summary = repository.text("summary.md");
    assert!(summary.contains("met: avoidable"), "{summary}");
    assert!(summary.contains("met: requests &gt; 3"), "{summary}");
    assert!(repository.text("page.html").contains("</html>"));
    assert!(!repository.file("comment").exists());

    repository.git(&["checkout", "--quiet", &repository.base]);
    let failed = repository.step(&[("INTACT_REQUIRE", "avoidable <= 1")]);
    assert_eq!(failed.status.code(), Some(1), "{}", stderr(&failed));
    assert!(stderr(&failed).contains("::error"), "{}", stderr(&failed));
    assert!(repository.text("output").ends_with("exit-code=1\n"));
    // both steps are in the summary
    assert!(repository.text("summary.md").len() > summary.len());
}

#[test]
fn a_step_compares_the_base_with_the_head_and_comments_the_verdict() {
    let server = Server::start(&[]);
    let repository = Repository::new(&server);
    let built = repository.file("built");
    let build = format!("cat run >> '{}'", built.display());
    let out = repository.step(&[
        ("INTACT_COMPARE_TO", "base"),
        ("INTACT_BASE", &repository.base),
        ("INTACT_BUILD", &build),
        ("INTACT_ROUNDS", "2"),
        ("INTACT_REQUIRE", "avoidable <= 2"),
        ("INTACT_PULL_REQUEST", "7"),
    ]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    let comment = repository.text("comment");
    assert!(comment.starts_with("pr comment 7 "), "{comment}");
    // the fix is in the head, and both have their names
    assert!(
        comment.contains("## intact compare base with head"),
        "{comment}"
    );
    assert!(repository.text("summary.md").contains("head"));
    // each checkout was built once
    let built = std::fs::read_to_string(built).unwrap();
    assert_eq!(built.lines().count(), 2, "{built}");
    assert!(built.contains("--keepalive off") && built.contains("--keepalive on"));
    // the worktree of the base is gone
    assert_eq!(repository.git(&["worktree", "list"]).lines().count(), 1);

    let gated = repository.step(&[
        ("INTACT_COMPARE_TO", "HEAD~1"),
        ("INTACT_ROUNDS", "2"),
        ("INTACT_REQUIRE", "avoidable == 0"),
    ]);
    assert_eq!(gated.status.code(), Some(1), "{}", stderr(&gated));
}

/// The inputs of a step, the reason why it fails, and its exit code.
type Case<'a> = (&'a [(&'a str, &'a str)], &'a str, i32);

#[test]
fn a_step_without_what_it_needs_fails_with_the_reason() {
    let server = Server::start(&[]);
    let repository = Repository::new(&server);
    let cases: &[Case<'_>] = &[
        (&[("INTACT_RUN", "")], "run is empty", 2),
        (&[("INTACT_COMPARE_TO", "base")], "has no base commit", 2),
        (
            &[("INTACT_COMPARE_TO", "nowhere")],
            "there is no commit nowhere",
            2,
        ),
        (&[("INTACT", "/nowhere/intact")], "there is no program", 2),
        (
            &[("INTACT_COMPARE_TO", "HEAD~1"), ("INTACT_BUILD", "exit 3")],
            "--setup failed in base",
            125,
        ),
    ];
    for (inputs, reason, code) in cases {
        let out = repository.step(inputs);
        assert_eq!(
            out.status.code(),
            Some(*code),
            "{inputs:?}: {}",
            stderr(&out)
        );
        assert!(
            stderr(&out).contains(reason),
            "{inputs:?}: {}",
            stderr(&out)
        );
    }
    assert_eq!(repository.git(&["worktree", "list"]).lines().count(), 1);
    assert!(Path::new(SCRIPT).is_file());
}

#[test]
fn a_step_without_a_page_names_the_log_in_the_summary() {
    let server = Server::start(&[]);
    let repository = Repository::new(&server);
    let out = repository.step(&[("INTACT_REQUIRE", "avoidable = nothing")]);
    assert_eq!(out.status.code(), Some(2), "{}", stderr(&out));
    assert!(stderr(&out).contains("::error"), "{}", stderr(&out));
    let summary = repository.text("summary.md");
    assert!(summary.contains("the log of this step"), "{summary}");
}
