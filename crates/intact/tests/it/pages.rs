//! `--report`: what it writes, and what it refuses before anything is sent.

use crate::program::intact;

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
            live.contains(&format!("<figure id=\"{picture}\"")),
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
        both.contains("### Run 1") && both.contains("### Run 2"),
        "{both}"
    );
}

#[test]
fn a_page_that_cannot_be_written_is_refused_before_anything_is_sent() {
    for file in ["page.pdf", "page", "/no/such/folder/page.html"] {
        let out = intact(&["bench", "http://127.0.0.1:9/", "--report", file]);
        assert_eq!(out.status.code(), Some(2), "{file}: {out:?}");
    }
}
