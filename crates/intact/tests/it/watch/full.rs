//! Places that are full, cannot be written or are limited: the program is not disturbed, and what
//! is lost is reported.

use super::refused::page;
use super::semantics::{PYTHON, Stage, run, text};
use crate::peers::{program, skip};
use crate::program::Server;
use std::process::{Command, Output};

/// Asks a few times over TLS, on a connection each, after it has filled the places that the words
/// name.
const CLIENT: &str = "
import http.client, os, ssl, sys
port, authority, *full = sys.argv[1:]
for place in full:
    with open(f'{place}/filler', 'wb', buffering=0) as filler:
        try:
            while True: filler.write(b'x' * 4096)
        except OSError as error: print(error.strerror)
context = ssl.create_default_context(cafile=authority)
for _ in range(5):
    one = http.client.HTTPSConnection('localhost', int(port), context=context)
    one.request('GET', '/')
    response = one.getresponse()
    response.read()
    print(response.status)
";
const ANSWERS: &str = "200\n200\n200\n200\n200\n";
const NO_PLACE: &str = "There is no place where programs could log the keys of TLS connections";
/// Makes the stage reachable at a place that is not covered, and covers all that a key log can be
/// in.
const COVER: &str = "mount --bind $0 /mnt; for place in /dev/shm /run /tmp; do mount -t tmpfs -o $1 none $place; done; shift; echo covered >&2; exec \"$@\"";

struct Place {
    stage: Stage,
    server: Server,
}

impl Place {
    fn build(test: &str) -> Option<Place> {
        program("python3", test)?;
        let place = Place {
            stage: Stage::set(),
            server: Server::start(&[]),
        };
        place.stage.write("client.py", CLIENT);
        place.server.write_ca(&place.stage.path("ca.pem"));
        Some(place)
    }

    /// Watches the client where /dev/shm, /run and /tmp are mounted with these options; `None`:
    /// nothing can be mounted here.
    fn covered(&self, test: &str, options: &str, full: &[&str]) -> Option<Output> {
        let folder = self.stage.path("");
        let port = self.server.tls_port();
        let words = [
            "/mnt/intact",
            "watch",
            "--",
            PYTHON,
            "/mnt/client.py",
            &port,
            "/mnt/ca.pem",
        ];
        let out = run(Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount", "sh", "-ec", COVER])
            .arg(text(&folder))
            .arg(options)
            .args(words)
            .args(full)
            .env("NO_COLOR", "1"));
        let words = page(&out);
        if !words.contains("covered") {
            skip(test, &words);
            return None;
        }
        Some(out)
    }
}

#[test]
fn without_any_place_to_write_a_program_is_watched_and_the_page_says_so() {
    let test = "watch where nothing can be written";
    let Some(place) = Place::build(test) else {
        return;
    };
    let Some(out) = place.covered(test, "ro", &[]) else {
        return;
    };
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    assert_eq!(String::from_utf8_lossy(&out.stdout), ANSWERS, "{out:?}");
    let page = page(&out);
    assert!(page.contains(NO_PLACE), "{page}");
    assert!(page.contains("/dev/shm: Read-only file system"), "{page}");
}

#[test]
fn a_program_does_not_fail_when_the_place_of_its_key_log_is_full() {
    let test = "watch where places are full";
    let Some(place) = Place::build(test) else {
        return;
    };
    // one that is full before and one that the program fills
    for (size, full) in [("size=32k", &[][..]), ("size=256k", &["/dev/shm"])] {
        let Some(out) = place.covered(test, size, full) else {
            return;
        };
        assert_eq!(out.status.code(), Some(0), "{size}: {out:?}");
        let printed = "No space left on device\n".repeat(full.len()) + ANSWERS;
        assert_eq!(
            String::from_utf8_lossy(&out.stdout),
            printed,
            "{size}: {out:?}"
        );
        let page = page(&out);
        assert_eq!(page.contains(NO_PLACE), full.is_empty(), "{size}: {page}");
        // what the program logs still fits into the room that was reserved
        let is_exact = page.contains(" 5 requests") && !page.contains("~5 requests");
        assert!(is_exact || full.is_empty(), "{size}: {page}");
    }
}

#[test]
fn a_limit_of_the_size_of_files_does_not_end_a_program() {
    let test = "watch with ulimit -f";
    let Some(place) = Place::build(test) else {
        return;
    };
    let stage = &place.stage;
    let port = place.server.tls_port();
    let [intact, client, authority] =
        ["intact", "client.py", "ca.pem"].map(|name| stage.path(name));
    let out = run(Command::new("sh")
        .args([
            "-c",
            "ulimit -f 0; exec \"$@\"",
            "sh",
            text(&intact),
            "watch",
            "--",
        ])
        .args([PYTHON, text(&client), &port, text(&authority)])
        .env("NO_COLOR", "1"));
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    assert_eq!(String::from_utf8_lossy(&out.stdout), ANSWERS, "{out:?}");
    let page = page(&out);
    assert!(
        page.contains(NO_PLACE) && page.contains("ulimit -f"),
        "{page}"
    );
}
