//! `--live`: on a terminal of its own the program's keys, its end and its last words pass through,
//! and the terminal is given back.

use crate::peers::program;
use crate::program::Server;
use std::io::{Read, Write};
use std::process::{Command, Stdio};

/// What ends the view: the screen that was there before.
const LEAVE: &str = "\x1b[?1049l";

/// Runs a shell command under `watch --live` on a terminal that `script` makes; types these keys
/// once `ready` is on the screen. Exit code, and everything that the terminal was sent. None where
/// there is no `script`.
fn on_a_terminal(command: &str, keys: &str) -> Option<(i32, String)> {
    view(&format!("--live -- {command}"), "ready", keys)
}

/// Runs `watch` with these words on a terminal that `script` makes; types keys once `shown`
/// is on the screen.
fn view(words: &str, shown: &str, keys: &str) -> Option<(i32, String)> {
    program("script", "watch --live")?;
    let line = format!("{} watch {words}", env!("CARGO_BIN_EXE_intact"));
    let mut script = Command::new("timeout")
        .args(["60", "script", "-qec", &line, "/dev/null"])
        .env("TERM", "xterm-256color")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut sent = Vec::new();
    let mut out = script.stdout.take().unwrap();
    let mut keyboard = script.stdin.take().unwrap();
    let mut chunk = [0; 4096];
    let mut typed = false;
    while let Ok(count @ 1..) = out.read(&mut chunk) {
        sent.extend_from_slice(&chunk[..count]);
        if !typed && String::from_utf8_lossy(&sent).contains(shown) {
            typed = true;
            keyboard.write_all(keys.as_bytes()).unwrap();
        }
    }
    let code = script.wait().unwrap().code().unwrap();
    Some((code, String::from_utf8_lossy(&sent).into_owned()))
}

#[test]
fn the_program_s_words_and_exit_code_outlive_the_view() {
    let Some((code, sent)) = on_a_terminal(
        "sh -c 'echo ready; read word; echo got $word; exit 9'",
        "milk\r",
    ) else {
        return;
    };
    assert_eq!(code, 9, "{sent}");
    let (_, after) = sent.rsplit_once(LEAVE).unwrap();
    let at = |words: &str| {
        after
            .find(words)
            .unwrap_or_else(|| panic!("{words}: {after}"))
    };
    assert!(at("ready") < at("got milk") && at("got milk") < at("No connection was opened"));
}

#[test]
fn the_page_begins_on_a_line_of_its_own() {
    let Some((code, sent)) = view("-- printf unended", "unended", "") else {
        return;
    };
    assert_eq!(code, 0, "{sent}");
    assert!(sent.contains("unended\r\n"), "{sent}");
}

#[test]
fn ctrl_c_reaches_the_program_and_not_us() {
    let command =
        "sh -c 'trap \"echo caught; exit 5\" INT; echo ready; while :; do sleep 0.05; done'";
    let Some((code, sent)) = on_a_terminal(command, "\x03") else {
        return;
    };
    assert_eq!(code, 5, "{sent}");
    assert!(
        sent.rsplit_once(LEAVE).unwrap().1.contains("caught"),
        "{sent}"
    );
}

#[test]
fn a_program_that_is_not_there_leaves_the_terminal_as_it_was() {
    let Some((code, sent)) = on_a_terminal("/no/such/program", "") else {
        return;
    };
    assert_eq!(code, 127, "{sent}");
    assert!(
        sent.rsplit_once(LEAVE).unwrap().1.contains("not found"),
        "{sent}"
    );
}

#[test]
fn a_program_that_runs_has_the_whole_terminal_until_a_key_ends_the_view() {
    let mut program = Command::new("sleep").arg("60").spawn().unwrap();
    let words = format!("--live --pid {}", program.id());
    for (key, code) in [("q", 0), ("\x03", 130)] {
        let ended = view(&words, "requests/s", key);
        let Some((ended_with, sent)) = ended else {
            break;
        };
        assert_eq!(ended_with, code, "{key:?}: {sent}");
        let (_, after) = sent.rsplit_once(LEAVE).unwrap();
        assert!(after.contains("No connection was opened"), "{after}");
    }
    program.kill().unwrap();
    program.wait().unwrap();
}

#[test]
fn without_a_terminal_there_is_no_view() {
    let this = std::process::id().to_string();
    for words in [&["--", "true"][..], &["--pid", &this]] {
        let out = crate::program::intact(&[&["watch", "--live"], words].concat());
        assert_eq!(out.status.code(), Some(2), "{out:?}");
        assert!(String::from_utf8_lossy(&out.stderr).contains("needs a terminal"));
    }
}

/// Opens a connection for each request until a key is typed.
const CALLER: &str = "import http.client, select, sys
def charge():
    one = http.client.HTTPConnection('127.0.0.1', int(sys.argv[1]))
    one.request('GET', '/')
    one.getresponse().read()
    one.close()
while not select.select([sys.stdin], [], [], 0.05)[0]: charge()
";

#[test]
fn a_finding_has_the_line_that_opened() {
    if program("python3", "watch --live: places").is_none() {
        return;
    }
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("app.py");
    std::fs::write(&script, CALLER).unwrap();
    let (folder, port) = (folder.path().display(), server.plain_port());
    let options = format!("--live --code-root {folder} -- python3 {folder}/app.py {port}");
    // the view has the place, or this ends without a key
    let seen = view(&options, "app.py:4", "\r");
    let Some((code, sent)) = seen else { return };
    assert_eq!(code, 0, "{sent}");
}
