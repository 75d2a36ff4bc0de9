//! What a person gets of a check while it runs, of one that a hostile server spoils, and of
//! packets.

use crate::peers::{is_root, program};
use crate::program::{Server, intact};
use intact_test_servers::{Hostile, TestServer};
#[cfg(unix)]
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::Command;
#[cfg(unix)]
use std::process::Stdio;
use std::sync::Mutex;
use std::thread;
#[cfg(unix)]
use std::time::Duration;

// a signal interrupts it
#[cfg(unix)]
#[test]
fn the_card_is_printed_before_the_wait_and_an_interrupt_prints_the_rest() {
    let server = Server::start(&[]);
    let mut child = Command::new(env!("CARGO_BIN_EXE_intact"))
        .args(["check", "--full", &server.plain()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut notes = BufReader::new(child.stderr.take().unwrap());
    let mut budget = String::new();
    notes.read_line(&mut budget).unwrap();
    assert!(
        budget.starts_with("sending at most 198 requests:"),
        "{budget}"
    );
    let mut next = String::new();
    while !next.starts_with("next: ") {
        next.clear();
        assert_ne!(
            notes.read_line(&mut next).unwrap(),
            0,
            "no line of what follows"
        );
    }
    assert!(next.contains("up to 90 s idle"), "{next}");
    // what is said of the wait comes after the card, which a pipe has taken by then; a second later
    // the first probe of the limits has begun, and the wait takes 90
    thread::sleep(Duration::from_secs(1));
    crate::program::signal(child.id(), "-INT");
    let mut page = String::new();
    out.read_to_string(&mut page).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let at = |title: &str| {
        page.find(title)
            .unwrap_or_else(|| panic!("{title}: {page}"))
    };
    for once in ["intact check http", "Keeps connections"] {
        assert_eq!(page.matches(once).count(), 1, "{once}: {page}");
    }
    assert!(at("Versions: does a second request") < at("Limits of a connection"));
}

/// A check of one hostile server; what is wrong, if anything.
fn against(hostile: &Hostile) -> Option<String> {
    let server = TestServer::start(hostile.config.clone()).unwrap();
    let url = format!("http://{}/", server.addresses().plain.unwrap());
    let out = intact(&["check", &url, "--timeout", "500ms", "--no-idle"]);
    let page = String::from_utf8(out.stdout).unwrap();
    let answered =
        page.contains(" in the first response") && !page.contains("The response was not complete");
    let errors_only = page.contains("Every response was 503: ");
    let wanted = if answered && !errors_only { 0 } else { 3 };
    let has_figures = answered != page.contains("Nothing could be measured: ");
    (out.status.code() != Some(wanted) || !has_figures)
        .then(|| format!("{}: {:?} {page}", hostile.name, out.status))
}

#[test]
fn a_hostile_server_gets_a_page_and_the_exit_code_that_fits() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/hostile");
    let all = Hostile::read_all(Path::new(folder)).unwrap();
    assert!(all.len() >= 24, "files are missing");
    let queue = Mutex::new(all.iter());
    let next = || queue.lock().unwrap().next();
    let wrong: Vec<String> = thread::scope(|scope| {
        let work = || std::iter::from_fn(&next).filter_map(against).collect();
        let workers: Vec<_> = (0..8).map(|_| scope.spawn(work)).collect();
        let each = |worker: thread::ScopedJoinHandle<'_, Vec<String>>| worker.join().unwrap();
        workers.into_iter().flat_map(each).collect()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

// elsewhere `check` captures nothing
#[cfg(target_os = "linux")]
#[test]
fn packets_of_each_version_are_shown_and_kept_with_the_keys_inside() {
    let server = Server::start(&["--split-h2"]);
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    server.write_ca(&ca);
    let file = folder.path().join("packets.pcapng");
    let file = file.to_str().unwrap();
    let url = format!("https://127.0.0.1:{}/", server.tls_port());
    let words = ["check", &url, "--cacert", ca.to_str().unwrap(), "--no-idle"];
    let out = intact(&[&words[..], &["--ladder", "--pcapng", file]].concat());
    let notes = String::from_utf8(out.stderr).unwrap();
    if out.status.code() == Some(4) {
        // without the right to capture the remedy is printed, and nothing was sent
        assert!(notes.contains("cap_net_raw"), "{notes}");
        assert!(out.stdout.is_empty());
        return;
    }
    assert_eq!(out.status.code(), Some(0), "{notes}");
    let page = String::from_utf8(out.stdout).unwrap();
    for spoken in [
        "1.1 over TLS 1.2",
        "1.0 over TLS 1.3",
        "1.1 over TLS 1.3",
        "2 over TLS 1.3",
    ] {
        let title = format!("Packets of HTTP/{spoken}\n");
        let (_, ladder) = page
            .split_once(&title)
            .unwrap_or_else(|| panic!("{spoken}: {page}"));
        let (ladder, _) = ladder.split_once("\n\n").unwrap();
        for part in ["SYN, ACK", "ClientHello", "200"] {
            assert!(ladder.contains(part), "{spoken}: {part} in {ladder}");
        }
        if spoken.starts_with('2') {
            assert!(
                ladder.contains("HEADERS[1] 200 ") && ladder.contains("DATA[1] end"),
                "{ladder}"
            );
        }
    }

    let audit = intact(&["audit", file, "--ladder=4"]);
    let page = String::from_utf8(audit.stdout).unwrap();
    assert!(page.contains("HEADERS[1] 200 "), "{page}");
    assert!(page.contains("4 connections were opened"), "{page}");

    let test = "packets_of_each_version_are_shown_and_kept_with_the_keys_inside";
    if program("tshark", test).is_some() {
        let out = Command::new("tshark")
            .args([
                "-r",
                file,
                "-Y",
                "http2.headers.status or http.response.code",
            ])
            .output()
            .unwrap();
        let frames = String::from_utf8(out.stdout).unwrap();
        assert_eq!(frames.lines().count(), 4, "{frames}");
    }
}

#[test]
fn packets_need_a_page_and_an_answer() {
    let out = intact(&["check", "http://127.0.0.1:9/", "--json", "--ladder"]);
    assert_eq!(out.status.code(), Some(2), "{out:?}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("packets.pcapng");
    let out = intact(&[
        "check",
        "http://127.0.0.1:9/",
        "--pcapng",
        file.to_str().unwrap(),
    ]);
    // 4 where the right to capture is missing
    if out.status.code() == Some(3) {
        let page = String::from_utf8(out.stdout).unwrap();
        assert!(page.contains("no packets were captured"), "{page}");
    } else {
        assert_eq!(out.status.code(), Some(4), "{out:?}");
    }
}

#[test]
fn without_the_right_to_capture_the_remedy_is_printed_and_nothing_sent() {
    let test = "without_the_right_to_capture_the_remedy_is_printed_and_nothing_sent";
    if program("setpriv", test).is_none() {
        return;
    }
    let server = Server::start(&[]);
    let without = ["--bounding-set", "-net_raw", "--inh-caps", "-net_raw"];
    // who is not root has no such right to begin with
    let out = Command::new("setpriv")
        .args(if is_root() { &without[..] } else { &[] })
        .args([
            env!("CARGO_BIN_EXE_intact"),
            "check",
            &server.plain(),
            "--ladder",
        ])
        .output()
        .unwrap();
    let notes = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(4), "{notes}");
    assert!(notes.contains("setcap cap_net_raw"), "{notes}");
    assert_eq!(server.end()["cells"][0]["connections"]["opened"], 0);
}
