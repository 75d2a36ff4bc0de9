//! The cases of `semantics.py`: what a program can observe of its own connections, watched and not.

use crate::peers::program;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// Debian's own, since one in a home folder may not be readable for an unprivileged user.
pub(super) const PYTHON: &str = "/usr/bin/python3";
const SCRIPT: &str = include_str!("semantics.py");
/// The id of the user that owns nothing.
pub(super) const NOBODY: &str = "65534";

/// A place that everybody can read, with the script and the binary in it.
pub(super) struct Stage {
    folder: tempfile::TempDir,
}

impl Stage {
    pub(super) fn set() -> Stage {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(folder.path(), open).unwrap();
        std::fs::write(folder.path().join("semantics.py"), SCRIPT).unwrap();
        let (from, to) = (env!("CARGO_BIN_EXE_intact"), folder.path().join("intact"));
        std::fs::hard_link(from, &to)
            .or_else(|_| std::fs::copy(from, &to).map(drop))
            .unwrap();
        Stage { folder }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) fn write(&self, name: &str, content: &str) {
        std::fs::write(self.path(name), content).unwrap();
    }

    fn cases(&self) -> Vec<String> {
        let listed = run(Command::new(PYTHON)
            .arg(self.path("semantics.py"))
            .arg("list"));
        let text = String::from_utf8(listed.stdout).unwrap();
        text.split_whitespace().map(str::to_owned).collect()
    }

    /// Runs all cases both ways; those that differ.
    fn differences(&self, start: &[&str], options: &[&str]) -> Vec<String> {
        let cases = self.cases();
        assert!(cases.len() >= 25, "{cases:?}");
        let next = std::sync::Mutex::new(cases.iter());
        let different = std::sync::Mutex::new(Vec::new());
        // most of the time of a case is waiting
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while let Some(case) = { next.lock().unwrap().next() } {
                        let plain = run(&mut self.command(start, &[], case));
                        let watched = run(&mut self.command(start, options, case));
                        if facts(&plain) != facts(&watched) {
                            let difference = format!("{case}: {plain:?}, watched {watched:?}");
                            different.lock().unwrap().push(difference);
                        }
                    }
                });
            }
        });
        different.into_inner().unwrap()
    }

    fn command(&self, start: &[&str], options: &[&str], case: &str) -> Command {
        let intact = self.path("intact");
        let script = self.path("semantics.py");
        let mut words: Vec<&str> = start.to_vec();
        if !options.is_empty() {
            words.push(text(&intact));
            words.extend_from_slice(options);
            words.push("--");
        }
        words.extend_from_slice(&[PYTHON, text(&script), case]);
        let mut command = Command::new(words[0]);
        command.args(&words[1..]);
        command
    }
}

pub(super) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

pub(super) fn run(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).output().unwrap()
}

/// What must be equal: what was printed, and the exit code as a shell shows it.
fn facts(out: &Output) -> (&[u8], &[u8], Option<i32>) {
    use std::os::unix::process::ExitStatusExt;
    let code = out.status.code().or(out.status.signal().map(|n| 128 + n));
    (&out.stdout, &out.stderr, code)
}

pub(super) fn is_root() -> bool {
    run(Command::new("id").arg("-u")).stdout == b"0\n"
}

#[test]
fn a_watched_program_sees_what_an_unwatched_one_sees() {
    if program("python3", "watch semantics").is_none() {
        return;
    }
    let stage = Stage::set();
    let different = stage.differences(&[], &["watch", "--quiet"]);
    assert!(different.is_empty(), "{different:#?}");
}

#[test]
fn so_does_one_of_a_user_without_privileges() {
    if !is_root() || program("python3", "watch semantics as nobody").is_none() {
        return;
    }
    let (user, group) = (format!("--reuid={NOBODY}"), format!("--regid={NOBODY}"));
    let start = ["setpriv", &user, &group, "--clear-groups"];
    let stage = Stage::set();
    let different = stage.differences(&start, &["watch", "--quiet"]);
    assert!(different.is_empty(), "{different:#?}");
}

/// Every connect is under way for a while: each goes through the SYN trap.
#[test]
fn so_does_one_behind_an_emulated_distance() {
    if program("python3", "watch --rtt semantics").is_none() {
        return;
    }
    let stage = Stage::set();
    let different = stage.differences(&[], &["watch", "--quiet", "--rtt", "20ms"]);
    assert!(different.is_empty(), "{different:#?}");
}

/// A container's default profile, and one that leaves no way to read memory.
#[test]
fn so_does_one_whose_sockets_we_make() {
    if program("python3", "watch semantics in a container").is_none() {
        return;
    }
    let stage = Stage::set();
    stage.write("confine.py", include_str!("confine.py"));
    let filter = stage.path("confine.py");
    for calls in ["pidfd_getfd", "pidfd_getfd,process_vm_readv,proc_mem"] {
        let start = [PYTHON, text(&filter), "EPERM", calls];
        let different = stage.differences(&start, &["watch", "--quiet"]);
        assert!(different.is_empty(), "{calls}: {different:#?}");
    }
}

#[test]
fn a_relay_that_runs_out_of_descriptors_leaves_the_rest_to_the_kernel() {
    if program("python3", "watch of many connections").is_none() {
        return;
    }
    let stage = Stage::set();
    let (binary, script) = (stage.path("intact"), stage.path("semantics.py"));
    let json = stage.path("watch.json");
    let line = format!(
        "ulimit -n 300; exec {} watch -q --json={} -- {PYTHON} {} as_many_as_may_be",
        text(&binary),
        text(&json),
        text(&script)
    );
    let out = run(Command::new("sh").args(["-c", &line]));
    assert_eq!(out.stdout, b"True\nTrue\n", "{out:?}");
    let facts: serde_json::Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    assert_eq!(facts["connections"]["opened"], 120, "{facts}");
    assert!(
        facts["caveats"].to_string().contains("from outside"),
        "{facts}"
    );
}

#[test]
fn a_run_without_descriptors_ends_with_all_that_it_started() {
    for limit in [14, 15, 16, 17, 18] {
        let line = format!(
            "ulimit -n {limit}; exec {} watch -q -- true 2>&1",
            env!("CARGO_BIN_EXE_intact")
        );
        let mut shell = Command::new("sh");
        let shell = shell.args(["-c", &line]).stdout(Stdio::piped());
        let child = shell.spawn().unwrap();
        let (ended, end) = std::sync::mpsc::channel();
        // the output ends when no process has it open
        std::thread::spawn(move || ended.send(child.wait_with_output().unwrap()));
        let out = end.recv_timeout(Duration::from_secs(60));
        assert!(out.is_ok(), "{limit}: a process still runs");
    }
}

#[test]
fn so_does_one_that_is_followed_from_outside() {
    if program("python3", "watch --mode passthrough semantics").is_none() {
        return;
    }
    let stage = Stage::set();
    let different = stage.differences(&[], &["watch", "--quiet", "--mode", "passthrough"]);
    assert!(different.is_empty(), "{different:#?}");
}

#[test]
fn connections_that_cannot_be_followed_are_counted_and_left_alone() {
    if program("python3", "watch of an undumpable program").is_none() {
        return;
    }
    let (user, group) = (format!("--reuid={NOBODY}"), format!("--regid={NOBODY}"));
    // root may look at every process
    let start: &[&str] = if is_root() {
        &["setpriv", &user, &group, "--clear-groups"]
    } else {
        &[]
    };
    let stage = Stage::set();
    let out = run(&mut stage.command(start, &["watch"], "not_dumpable"));
    assert_eq!(out.stdout, b"b'x'\n");
    let page = String::from_utf8(out.stderr).unwrap();
    assert!(page.contains("not watched"), "{page}");
}
