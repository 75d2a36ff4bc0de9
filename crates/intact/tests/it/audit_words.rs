//! What pages of `audit` say about files: no cause, advice or comparison that the file does not
//! show.

use crate::audit::packets::{Capture, End, RAW, Tcp, plain};
use crate::program::intact;

/// The whole page of a file with this content.
fn page(content: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("input");
    std::fs::write(&path, content).unwrap();
    let out = intact(&["audit", path.to_str().unwrap(), "--full"]);
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A HAR of Chrome with these entries: second, target, timings, socket.
fn har(entries: &[(u32, &str, &str, u32)]) -> String {
    let entry = |(second, target, timings, socket): &(u32, &str, &str, u32)| {
        format!(
            r#"{{"startedDateTime":"2026-11-21T08:00:{second:02}Z","time":70,"request":{{"method":"GET","url":"https://a.example{target}","headers":[{{"name":"User-Agent","value":"Mozilla/5.0 (X11) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36"}}]}},"response":{{"status":200}},"timings":{{{timings}}},"connection":"{socket}","serverIPAddress":"192.0.2.1"}}"#
        )
    };
    let entries: Vec<String> = entries.iter().map(entry).collect();
    format!(
        r#"{{"log":{{"creator":{{"name":"WebInspector"}},"entries":[{}]}}}}"#,
        entries.join(",")
    )
}

#[test]
fn the_advice_to_a_page_is_not_that_to_a_program() {
    let timings = r#""connect":50,"ssl":30,"send":0,"wait":15,"receive":5"#;
    let entries: Vec<_> = (0..8).map(|at| (at, "/x", timings, 100 + at)).collect();
    let page = page(har(&entries).as_bytes());
    assert!(
        page.contains("crossorigin") && page.contains("HTTP/2"),
        "{page}"
    );
    assert!(!page.contains("for the life of the program"), "{page}");
}

#[test]
fn different_targets_are_not_compared() {
    let fresh = r#""connect":50,"ssl":30,"send":0,"wait":25,"receive":5"#;
    let reused = r#""connect":-1,"send":0,"wait":65,"receive":5"#;
    let with = |later: &'static str| {
        let entries: Vec<_> = (0..10)
            .flat_map(|at| {
                let [first, second] = [2 * at, 2 * at + 1];
                [
                    (first, "/tag.js", fresh, 100 + at),
                    (second, later, reused, 100 + at),
                ]
            })
            .collect();
        page(har(&entries).as_bytes())
    };
    assert!(with("/tag.js").contains("[slower-when-reused]"));
    assert!(!with("/beacon").contains("[slower-when-reused]"));
}

#[test]
fn a_missing_direction_broke_no_connection() {
    let mut packets = Vec::new();
    for port in 0..12 {
        let tcp = Tcp::opened(40_000 + port).exchange("/a").close();
        packets.extend(tcp.only(End::Server));
    }
    let page = page(&Capture::of(RAW, &packets, plain));
    assert!(page.contains("in one direction only"), "{page}");
    assert!(
        !page.contains("had broken") && !page.contains("connections break"),
        "{page}"
    );
}
