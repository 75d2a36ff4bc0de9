//! What a person gets of a check while it runs, and of one that a hostile server spoils.

use crate::program::{Server, intact};
use serve::Running;
use serve::hostile::Hostile;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;

#[test]
fn the_card_is_printed_before_the_wait_and_an_interrupt_prints_the_rest() {
    let server = Server::start(&[]);
    let mut child = Command::new(env!("CARGO_BIN_EXE_intact"))
        .args(["check", &server.plain()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut notes = BufReader::new(child.stderr.take().unwrap());
    let mut budget = String::new();
    notes.read_line(&mut budget).unwrap();
    assert!(budget.starts_with("at most 182 requests:"), "{budget}");
    let mut next = String::new();
    while !next.starts_with("next: ") {
        next.clear();
        assert_ne!(
            notes.read_line(&mut next).unwrap(),
            0,
            "no word of what follows"
        );
    }
    assert!(next.contains("watched for 90 s at most"), "{next}");
    // what is said of the wait comes after the card, which a pipe has taken by then
    let sent = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
    let mut page = String::new();
    out.read_to_string(&mut page).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let at = |title: &str| {
        page.find(title)
            .unwrap_or_else(|| panic!("{title}: {page}"))
    };
    assert_eq!(page.matches("intact check http").count(), 1, "{page}");
    assert!(at("One request, phase by phase") < at("not probed: "));
}

/// A check of one hostile server; what is wrong, if anything.
fn against(hostile: &Hostile) -> Option<String> {
    let server = Running::start(hostile.config.clone()).unwrap();
    let url = format!("http://{}/", server.addresses().plain.unwrap());
    let out = intact(&["check", &url, "--timeout", "500ms", "--no-idle"]);
    let page = String::from_utf8(out.stdout).unwrap();
    let answered = page.contains(", answered with ");
    let wanted = if answered { 0 } else { 3 };
    let told = answered != page.contains("Nothing could be measured: ");
    (out.status.code() != Some(wanted) || !told)
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
