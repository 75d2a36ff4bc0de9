//! What is in a page, without a browser.

use crate::made;
use intact_findings::Parts;
use intact_report::documents::page;

#[test]
fn a_hundred_thousand_exchanges_make_a_page_of_less_than_two_megabytes() {
    let made = made::bench(834, "");
    let Parts::Bench(bench) = &made.parts else {
        unreachable!("a bench")
    };
    assert!(bench.facts.counted.requests.total > 90_000);
    let html = made::html(&made);
    assert!(html.len() < 2_000_000, "{} bytes", html.len());
}

#[test]
fn a_page_of_several_runs_keeps_their_ids_apart() {
    let (a, b) = (made::bench(50, ""), made::bench(60, ""));
    let html = intact_report::html::write(&[page(&a), page(&b)]).unwrap();
    for id in ["run1-latency", "run2-latency", "run1-method", "run2-method"] {
        let times = html.matches(&format!("id=\"{id}\"")).count();
        assert_eq!(times, 1, "{id}");
    }
}

#[test]
fn a_page_as_markdown() {
    insta::assert_snapshot!(intact_report::markdown::write(&[page(&made::bench(
        60, ""
    ))]));
}

#[test]
fn hostile_text_stays_text_in_markdown() {
    let hostile = "|</details><script>[x](javascript:1)`@you";
    let text = intact_report::markdown::write(&[page(&made::bench(50, hostile))]);
    assert!(!text.contains("<script") && !text.contains("@you") && !text.contains("[x]("));
    let columns: Vec<usize> = text
        .lines()
        .filter(|line| line.starts_with("| Kernel") || line.starts_with("| Command"))
        .map(|line| line.replace("\\|", "").matches('|').count())
        .collect();
    assert_eq!(columns, [3, 3]);
}

#[test]
fn nothing_is_loaded_from_anywhere() {
    let html = made::html(&made::bench(50, ""));
    for way in [" src=", "url(", "@import", "<link", "<iframe"] {
        assert!(!html.contains(way), "{way}");
    }
    assert!(html.contains("default-src 'none'"));
}
