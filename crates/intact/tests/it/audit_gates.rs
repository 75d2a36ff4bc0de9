//! Requirements of `audit` are met only by what the file shows: what it lacks may be otherwise.

use crate::audit::packets::{Capture, End, RAW, Tcp, plain};
use crate::program::intact;
use serde_json::Value;
use std::path::PathBuf;

/// A file in a folder of its own.
struct Given {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl Given {
    fn new(content: &[u8]) -> Given {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("input");
        std::fs::write(&path, content).unwrap();
        Given {
            _folder: folder,
            path,
        }
    }

    fn capture(packets: &[Vec<u8>]) -> Given {
        Given::new(&Capture::of(RAW, packets, plain))
    }

    /// Whether the requirement is met.
    fn meets(&self, requirement: &str) -> bool {
        let out = intact(&[
            "audit",
            self.path.to_str().unwrap(),
            "--require",
            requirement,
        ]);
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        let line = said.lines().find(|line| line.contains("met: "));
        line.unwrap_or_else(|| panic!("{requirement}: {said}"))
            .starts_with("met: ")
    }

    fn document(&self) -> Value {
        let out = intact(&["audit", self.path.to_str().unwrap(), "--json"]);
        serde_json::from_slice(&out.stdout).unwrap()
    }
}

const REQUEST: &[u8] = b"GET /hang HTTP/1.1\r\nHost: a.example\r\n\r\n";

/// A request that the server received and did not answer, then another connection later.
fn hung() -> Vec<Vec<u8>> {
    let hung = Tcp::opened(40_000).exchange("/a").say(End::Client, REQUEST);
    let hung = hung.say(End::Server, b"");
    let later = Tcp::opened(40_001).exchange("/b").close();
    [hung.all(), later.all()].concat()
}

#[test]
fn a_request_without_a_response_is_neither_ok_nor_failed() {
    let hung = Given::capture(&hung());
    let requests = &hung.document()["requests"];
    assert_eq!(
        (&requests["total"], &requests["ok"]),
        (&3.into(), &2.into())
    );
    assert!(requests["failures"].is_null(), "{requests}");
    assert_eq!(requests["bounds"]["failures"]["high"], 1);
    for (requirement, is_met) in [
        ("ok >= 2", true),
        ("ok >= 3", false),
        ("requests == 3", true),
        ("failed == 0", false),
        ("failed <= 1", true),
        ("failed-share < 1%", false),
        ("failed-share < 50%", true),
        ("failed.reset == 0", false),
        ("status.5xx == 0", false),
        ("status.200 >= 2", true),
    ] {
        assert_eq!(hung.meets(requirement), is_met, "{requirement}");
    }
    let answered = Given::capture(&Tcp::opened(40_000).exchange("/a").close().all());
    for requirement in ["ok == 1", "failed == 0", "status.5xx == 0"] {
        assert!(answered.meets(requirement), "{requirement}");
    }
}

#[test]
fn without_the_packets_of_servers_no_outcome_is_known() {
    let packets = Tcp::opened(40_000).exchange("/a").exchange("/b");
    let requests = Given::capture(&packets.close().only(End::Client));
    for requirement in ["ok >= 1", "failed == 0", "status.5xx == 0", "failed >= 1"] {
        assert!(!requests.meets(requirement), "{requirement}");
    }
    // and nothing is known to have failed
    let out = intact(&["audit", requests.path.to_str().unwrap()]);
    assert_eq!(out.status.code(), Some(0));
}

#[test]
fn a_status_that_has_begun_is_no_other_one() {
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\npart";
    let download = Tcp::opened(40_000).exchange("/a").say(End::Client, REQUEST);
    let download = Given::capture(&download.say(End::Server, head).all());
    assert!(!download.meets("failed == 0"));
    assert!(!download.meets("status.2xx == 1"));
    assert!(download.meets("status.5xx == 0"));
}

#[test]
fn a_line_without_a_status_decides_nothing() {
    let line = |second: u32, status: u32| {
        format!(
            "{{\"level\":\"info\",\"ts\":179524800{second}.5,\"msg\":\"handled request\",\"request\":{{\"remote_ip\":\"192.0.2.1\",\"remote_port\":\"4711\",\"proto\":\"HTTP/1.1\",\"method\":\"GET\",\"host\":\"a\",\"uri\":\"/\"}},\"duration\":0.1,\"size\":0,\"status\":{status}}}\n"
        )
    };
    let log = Given::new([line(0, 200), line(1, 0)].concat().as_bytes());
    let requests = &log.document()["requests"];
    assert_eq!(requests["total"], 2);
    for requirement in ["ok >= 2", "ok <= 1", "failed == 0", "failed >= 1"] {
        assert!(!log.meets(requirement), "{requirement}");
    }
}
