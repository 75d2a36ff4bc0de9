//! `--report`: what it writes, and what it refuses before anything is sent.

use crate::program::{Server, intact};

#[test]
fn a_bench_leaves_a_page_and_so_do_its_ledgers() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for run in ["a", "b"] {
        let out = intact(&[
            "bench",
            "-n",
            "40",
            "--rounds",
            "8",
            "--ledger",
            &at(run),
            "--report",
            &at(&format!("{run}.html")),
        ]);
        assert!(out.status.success(), "{out:?}");
    }
    let live = std::fs::read_to_string(at("a.html")).unwrap();
    for picture in ["latency", "waterfall", "first-calls", "rounds", "timeline"] {
        assert!(
            live.contains(&format!("<figure id=\"{picture}-chart\"")),
            "{picture}"
        );
    }

    let out = intact(&["report", &at("a"), "--report", &at("again.html")]);
    assert!(out.status.success(), "{out:?}");
    let stored = std::fs::read_to_string(at("again.html")).unwrap();
    let verdict = |page: &str| {
        let from = page.find("<h1").unwrap();
        page[from..][..page[from..].find("</h1>").unwrap()].to_owned()
    };
    assert_eq!(verdict(&live), verdict(&stored));

    let out = intact(&["report", &at("a"), &at("b"), "--report", &at("both.md")]);
    assert!(out.status.success(), "{out:?}");
    let both = std::fs::read_to_string(at("both.md")).unwrap();
    assert!(
        both.contains("## Run 1: intact bench") && both.contains("## Run 2: "),
        "{both}"
    );
}

#[test]
fn a_check_has_a_page_and_so_does_its_ledger() {
    let server = Server::start(&["--idle-timeout", "300ms", "--announce"]);
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let words = ["--ledger", &at("ledger"), "--report", &at("live.html")];
    let out = intact(&[&["check", &server.plain()], &words[..]].concat());
    assert!(out.status.success(), "{out:?}");
    let live = std::fs::read_to_string(at("live.html")).unwrap();
    for part in [
        "<figure id=\"waterfall-chart\"",
        "Limits of a connection",
        "Client settings for this idle limit",
    ] {
        assert!(live.contains(part), "{part}");
    }
    let out = intact(&["report", &at("ledger"), "--report", &at("stored.html")]);
    assert!(out.status.success(), "{out:?}");
    // both carry everything as JSON
    assert_eq!(live, std::fs::read_to_string(at("stored.html")).unwrap());
    let out = intact(&["report", &at("ledger"), "--report", &at("stored.md")]);
    assert!(out.status.success(), "{out:?}");
    let text = std::fs::read_to_string(at("stored.md")).unwrap();
    assert!(text.contains("#### Limits of a connection"), "{text}");
}

#[test]
fn a_page_that_cannot_be_written_is_refused_before_anything_is_sent() {
    for file in ["page.pdf", "page", "/no/such/folder/page.html"] {
        let out = intact(&["bench", "http://127.0.0.1:9/", "--report", file]);
        assert_eq!(out.status.code(), Some(2), "{file}: {out:?}");
    }
}

#[test]
fn what_was_audited_has_a_page_and_so_does_its_ledger() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let entries: Vec<serde_json::Value> = (0..8)
        .map(|nth| {
            serde_json::json!({
                "startedDateTime": format!("2026-01-01T00:00:0{nth}.000Z"),
                "time": 40,
                "connection": nth.to_string(),
                "request": {"method": "GET", "url": "https://api.example/v1", "httpVersion": "HTTP/1.1", "headers": []},
                "response": {"status": 200, "httpVersion": "HTTP/1.1", "headers": [], "content": {"size": 2}},
                "timings": {"blocked": 0, "dns": 2, "connect": 20, "ssl": 10, "send": 1, "wait": 16, "receive": 1}
            })
        })
        .collect();
    let har = serde_json::json!({"log": {"version": "1.2", "creator": {"name": "made up"}, "entries": entries}});
    std::fs::write(at("eight.har"), har.to_string()).unwrap();
    let out = intact(&[
        "audit",
        &at("eight.har"),
        "--ledger",
        &at("ledger"),
        "--report",
        &at("audit.html"),
    ]);
    assert!(out.status.success(), "{out:?}");
    let out = intact(&["report", &at("ledger"), "--report", &at("ledger.html")]);
    assert!(out.status.success(), "{out:?}");
    for page in ["audit.html", "ledger.html"] {
        let html = std::fs::read_to_string(at(page)).unwrap();
        for picture in ["waste", "latency", "timeline"] {
            assert!(
                html.contains(&format!("<figure id=\"{picture}-chart\"")),
                "{page} {picture}"
            );
        }
        assert!(html.contains(">https://api.example</th>"), "{page}");
    }
    let html = std::fs::read_to_string(at("audit.html")).unwrap();
    assert!(html.contains("eight.har (HAR): 8 entries"), "{html}");
}
