//! What a command on a side sees, and how its end is reported.

use crate::stage::{link as start, words};
use intact_link::LinkEnd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

/// Runs a shell command on a side.
fn shell(link: &intact_link::Link, side: LinkEnd, script: &str) -> std::process::Output {
    let mut command = Command::new("sh");
    command.args(["-c", script]).stdin(Stdio::null());
    link.enter(side, &mut command);
    command.output().unwrap()
}

#[test]
fn the_server_has_a_name_and_unknown_names_fail() {
    let Some(link) = start("rtt=0", "names") else {
        return;
    };
    if !link.has_names() {
        return;
    }
    assert_eq!(
        words(
            &link,
            LinkEnd::Client,
            &["resolve", intact_link::SERVER_NAME]
        ),
        "198.18.0.2"
    );
    assert_eq!(
        words(&link, LinkEnd::Client, &["resolve", "intact.invalid"]),
        "unknown"
    );
    let hosts = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
    assert!(
        !hosts.contains(intact_link::SERVER_NAME),
        "the host keeps its own"
    );
}

#[test]
fn a_command_ends_as_it_would_without_a_link() {
    let Some(link) = start("rtt=0", "ends") else {
        return;
    };
    assert_eq!(
        shell(&link, LinkEnd::Client, "exit 7").status.code(),
        Some(7)
    );
    let killed = shell(&link, LinkEnd::Client, "kill -KILL $$").status;
    assert_eq!(killed.signal(), Some(9));
    let mut missing = Command::new("/nonexistent/program");
    link.enter(LinkEnd::Client, &mut missing);
    let error = missing.spawn().unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
}

#[test]
fn a_signal_to_the_proxy_reaches_the_command() {
    let Some(link) = start("rtt=0", "signals") else {
        return;
    };
    let mut command = Command::new("sh");
    command
        .args([
            "-c",
            "trap 'exit 9' TERM; echo ready; while :; do read -r line; done",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    link.enter(LinkEnd::Client, &mut command);
    let mut child = command.spawn().unwrap();
    let mut ready = [0; 6];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut ready).unwrap();
    let behind = intact_sys::process::children(child.id());
    assert!(behind.first().is_some_and(|pid| *pid != child.id()));
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&child),
        rustix::process::Signal::TERM,
    )
    .unwrap();
    // a shell's trap runs when its read returns
    drop(child.stdin.take());
    assert_eq!(child.wait().unwrap().code(), Some(9));
}

#[test]
fn a_command_keeps_user_folder_and_files() {
    let Some(link) = start("rtt=0", "same user") else {
        return;
    };
    let mine = Command::new("sh")
        .args(["-c", "id -u; id -g; pwd; ls /"])
        .output()
        .unwrap();
    let there = shell(&link, LinkEnd::Client, "id -u; id -g; pwd; ls /");
    assert_eq!(
        String::from_utf8_lossy(&there.stdout),
        String::from_utf8_lossy(&mine.stdout)
    );
}

#[test]
fn other_addresses_fail_at_once() {
    let Some(link) = start("rtt=30ms", "outside") else {
        return;
    };
    assert_eq!(
        words(&link, LinkEnd::Client, &["connect", "192.0.2.1:80", "1"]),
        "NetworkUnreachable"
    );
}

#[test]
fn the_certificate_can_be_read_on_both_sides() {
    let Some(link) = start("rtt=0", "certificate") else {
        return;
    };
    let path = link
        .share_certificate("-----BEGIN\n")
        .unwrap()
        .display()
        .to_string();
    for side in [LinkEnd::Client, LinkEnd::Server] {
        let out = shell(&link, side, &format!("cat {path}"));
        assert_eq!(out.stdout, b"-----BEGIN\n", "{side:?}");
    }
}

#[test]
fn a_listening_port_is_known() {
    let Some(link) = start("rtt=200ms", "listening") else {
        return;
    };
    assert!(!link.is_listening(80).unwrap());
    let _server = crate::stage::Program::server(&link);
    assert!(link.is_listening(80).unwrap());
}
