//! Entries of HAR files as their programs write them: which of them are requests, how they ended,
//! and which run they belong to.

use crate::reading::{self, Outcome};
use intact_audit::KeyLog;
use intact_ledger::{Failure, Outcome as Ended, Reuse};

/// An entry at this second, with this response and these timings, and more members.
fn entry(second: u32, status: u32, response: &str, timings: &str, more: &str) -> String {
    format!(
        r#"{{"startedDateTime":"2026-11-21T08:00:{second:02}Z","time":20,"request":{{"method":"GET","url":"https://a.example/{second}"}},"response":{{"status":{status}{response}}},"timings":{{{timings}}}{more}}}"#
    )
}

fn audited(creator: &str, entries: &[String]) -> Outcome {
    let har = format!(
        r#"{{"log":{{"creator":{{"name":"{creator}"}},"entries":[{}]}}}}"#,
        entries.join(",")
    );
    reading::bytes(har.as_bytes(), KeyLog::default()).unwrap()
}

/// The outcome of an entry that follows a request with a response; `None` if it is no request.
fn outcome(status: u32, response: &str, timings: &str, more: &str) -> Option<Ended> {
    let first = entry(0, 200, "", SENT, r#","connection":"7""#);
    let second = entry(1, status, response, timings, more);
    let outcome = audited("any", &[first, second]);
    let all: Vec<Ended> = outcome.exchanges().map(|one| one.outcome).collect();
    assert!(all.len() <= 2 && all[0] == Ended::Ok, "{all:?}");
    all.get(1).copied()
}

/// Timings of a request that was sent, and whose response came.
const SENT: &str = r#""connect":5,"send":0,"wait":12,"receive":3"#;
/// Timings of an entry without any step.
const NOTHING: &str = r#""blocked":3,"dns":-1,"connect":-1,"send":0,"wait":0,"receive":0"#;

#[test]
fn an_error_in_any_words_is_a_failure() {
    let error = |text: &str| outcome(0, &format!(r#","_error":"{text}""#), NOTHING, "");
    let failed = |kind| Some(Ended::Failed(kind));
    assert_eq!(error("net::ERR_CONNECTION_RESET"), failed(Failure::Reset));
    for text in [
        "net::ERR_QUIC_HANDSHAKE_FAILED",
        "net::ERR_OF_A_LATER_VERSION",
        "Unable to connect to host",
        "[Errno 60] Connect call failed ('10.0.0.7', 80)",
        "x",
    ] {
        assert_eq!(error(text), failed(Failure::UnknownKind), "{text}");
    }
    // Playwright's name for it
    let text = r#","_failureText":"net::ERR_FAILED""#;
    assert_eq!(outcome(0, text, NOTHING, ""), failed(Failure::UnknownKind));
    // an error of the entry, which is one of the page where there is a response
    let text = r#","_error":"NSURLErrorDomain -1001""#;
    let unknown = failed(Failure::UnknownKind);
    assert_eq!(outcome(0, "", NOTHING, text), unknown);
    assert_eq!(outcome(200, "", SENT, text), Some(Ended::Ok));
    // the browser did not send it
    assert_eq!(error("net::ERR_BLOCKED_BY_CLIENT"), None);
    // the browser shows no response with this status, but the server sent one
    let text = r#","_error":"net::ERR_HTTP_RESPONSE_CODE_FAILURE""#;
    assert_eq!(outcome(405, text, SENT, ""), Some(Ended::Ok));
}

#[test]
fn an_entry_without_a_status_that_took_time_has_failed() {
    let connecting = r#""blocked":1,"dns":-1,"connect":109,"send":0,"wait":0,"receive":0"#;
    let failed = Some(Ended::Failed(Failure::UnknownKind));
    assert_eq!(outcome(0, "", connecting, ""), failed);
    // blocked, or cancelled while it waited for its turn
    assert_eq!(outcome(0, "", NOTHING, ""), None);
}

#[test]
fn a_failure_without_a_sign_of_a_connection_opened_none() {
    let second = |more: &str| {
        let first = entry(0, 200, "", SENT, r#","connection":"7""#);
        let failed = entry(1, 0, r#","_error":"no route""#, NOTHING, more);
        let outcome = audited("any", &[first, failed]);
        let all = outcome.connections().into_iter();
        all.map(|one| one.is_opened()).collect::<Vec<_>>()
    };
    assert_eq!(second(""), [true, false]);
    assert_eq!(second(r#","connection":"7""#), [true]);
}

#[test]
fn only_a_mark_of_the_cache_makes_an_entry_cached() {
    let here = |cache: &str, timings: &str| {
        outcome(200, "", timings, &format!(r#","cache":{cache}"#)).is_some()
    };
    let waited = r#""send":0,"wait":12,"receive":3"#;
    let only_read = r#""send":0,"wait":0,"receive":3"#;
    for timings in [waited, only_read] {
        let both_null = r#"{"beforeRequest":null,"afterRequest":null}"#;
        assert!(here(both_null, timings), "{timings}");
        assert!(here("{}", timings), "{timings}");
        assert!(here("null", timings), "{timings}");
    }
    // Firefox and Firebug; a response that was validated came over the network
    for cache in [
        r#"{"afterRequest":null}"#,
        r#"{"afterRequest":{"eTag":""}}"#,
    ] {
        assert!(!here(cache, only_read), "{cache}");
        assert!(here(cache, waited), "{cache}");
    }
    // Chrome before it had a mark
    let empty = r#","_transferSize":0"#;
    assert_eq!(outcome(200, empty, only_read, ""), None);
    assert!(outcome(200, empty, SENT, "").is_some());
    assert!(outcome(101, empty, only_read, "").is_some());
    assert!(outcome(200, r#","_transferSize":17"#, only_read, "").is_some());
}

#[test]
fn a_redirect_inside_the_browser_is_no_request() {
    let by_text = r#","statusText":"Internal Redirect""#;
    let by_field = r#","headers":[{"name":"Non-Authoritative-Reason","value":"HSTS"}]"#;
    for response in [by_text, by_field] {
        assert_eq!(outcome(307, response, SENT, ""), None, "{response}");
    }
    assert_eq!(outcome(307, "", SENT, ""), Some(Ended::Ok));
}

/// Two runs of a page with two requests on one socket each, where the second socket was opened
/// ahead.
fn two_runs(pages: [&str; 2]) -> Outcome {
    let one = |second: u32, timings: &str, page: &str| {
        let more = format!(r#","connection":"27","pageref":"{page}""#);
        entry(second, 200, "", timings, &more)
    };
    let reused = r#""connect":-1,"send":0,"wait":12,"receive":3"#;
    let entries = [
        one(0, SENT, pages[0]),
        one(1, reused, pages[0]),
        one(20, reused, pages[1]),
        one(21, reused, pages[1]),
    ];
    audited("Browsertime", &entries)
}

#[test]
fn each_run_of_a_page_is_a_browser_of_its_own() {
    let reuse = |outcome: &Outcome| {
        let all = outcome.exchanges().map(|one| one.reuse);
        all.collect::<Vec<_>>()
    };
    let (fresh, again) = (Some(Reuse::Fresh), Some(Reuse::Reused));
    for pages in [["page_1", "page_1-1"], ["page_1_0_1", "page_2_0_1"]] {
        let outcome = two_runs(pages);
        let connections = outcome.connections();
        let owners = connections
            .iter()
            .map(|one| one.owner.as_ref().unwrap().pid);
        assert_eq!(owners.collect::<Vec<_>>(), [1, 2], "{pages:?}");
        // a new browser has opened its first connection itself
        let ahead = Some(Reuse::Preconnected);
        assert_eq!(reuse(&outcome), [fresh, again, ahead, again], "{pages:?}");
    }
    // two pages of one browser
    let outcome = two_runs(["page_1", "page_2"]);
    assert_eq!(outcome.connections().len(), 1);
    assert_eq!(reuse(&outcome), [fresh, again, again, again]);
}

#[test]
fn webpagetest_starts_an_entry_after_the_setup() {
    let between = |creator: &str, first: &str| {
        let page = entry(0, 200, "", first, r#","connection":"7""#);
        let later = entry(9, 200, "", SENT, r#","connection":"8""#);
        let outcome = audited(creator, &[page, later]);
        let [first, second] = [0, 1].map(|place| outcome.connections()[place].at.0);
        assert!(outcome.exchanges().count() == 2);
        second - first
    };
    let without_setup = r#""connect":-1,"send":0,"wait":12,"receive":3"#;
    assert_eq!(between("any", without_setup), 9_000_000_000);
    assert_eq!(between("WebPagetest", without_setup), 8_995_000_000);
    // the file begins with the first setup
    assert_eq!(between("WebPagetest", SENT), 9_000_000_000);
}

#[test]
fn a_request_that_the_recording_cut_off_has_no_known_outcome() {
    let outcomes = |timings: &str, more: &str| {
        let text = entry(0, 0, "", timings, more);
        let text = text.replace(r#""status":0"#, r#""status":-2"#);
        let outcome = audited("WebPagetest", &[text]);
        let ends = outcome.exchanges().map(|one| one.outcome);
        ends.collect::<Vec<Ended>>()
    };
    assert_eq!(outcomes(SENT, r#","_was_pushed":"0""#), [Ended::Unknown]);
    assert_eq!(outcomes(NOTHING, ""), []);
    // pushed, and no page asked for it
    assert_eq!(outcomes(SENT, r#","_was_pushed":1"#), []);
}

#[test]
fn an_entry_without_a_time_or_a_url_is_counted_as_unread() {
    let first = entry(0, 200, "", SENT, r#","connection":"7""#);
    let second = entry(1, 200, "", SENT, "");
    let unread = |text: String| {
        let outcome = audited("any", &[first.clone(), text]);
        assert_eq!(outcome.exchanges().count(), 1);
        let caveat = outcome.caveat("entries-not-read");
        caveat.is_some_and(|caveat| caveat.incomplete)
    };
    for (part, other) in [
        ("2026-11-21T08", "yesterday T08"),
        ("https://a.example", ""),
        ("https://a.example", "https://a.example:99999"),
        ("\"request\"", "\"response_of\""),
    ] {
        assert!(unread(second.replace(part, other)), "{other}");
    }
    for other in ["data:text/plain,", "chrome-extension://a"] {
        assert!(
            !unread(second.replace("https://a.example", other)),
            "{other}"
        );
    }
}

/// The reuse of requests after one whose setup took `connect` ms. Their own time for connecting and
/// that of waiting are these.
fn reuse_after(connect: &str, later: &str, wait: &str, more: &str) -> Outcome {
    let timings = |connect: &str, wait: &str| {
        format!(r#""connect":{connect},"ssl":0,"send":0,"wait":{wait},"receive":0"#)
    };
    let mut entries = vec![entry(0, 200, "", &timings(connect, "5"), more)];
    entries.extend((1..4).map(|second| entry(second, 200, "", &timings(later, wait), more)));
    audited("Firefox", &entries)
}

#[test]
fn a_setup_shorter_than_the_step_of_the_times_does_not_show() {
    let port = r#","connection":"443""#;
    let later = |outcome: &Outcome| {
        let all: Vec<_> = outcome.exchanges().map(|one| one.reuse).collect();
        assert_eq!(all[0], Some(Reuse::Fresh));
        assert!(all[1..].iter().all(|one| *one == all[1]), "{all:?}");
        all[1]
    };
    let hidden = reuse_after("1", "0", "4", port);
    assert_eq!(later(&hidden), None);
    let caveat = hidden.caveat("har-coarse-connects").unwrap();
    assert!(caveat.incomplete, "{caveat:?}");
    for shown in [
        // the browser says that it did not connect
        reuse_after("1", "-1", "4", port),
        // 40 ms away, no setup takes less than 1 ms
        reuse_after("40", "0", "4", port),
        // the times are finer
        reuse_after("1", "0", "4.25", port),
        // the file names the connection
        reuse_after("1", "0", "4", r#","connection":"7""#),
    ] {
        assert_eq!(later(&shown), Some(Reuse::Reused));
        assert!(shown.caveat("har-coarse-connects").is_none());
    }
}

#[test]
fn a_response_of_the_cache_has_the_address_but_no_connection() {
    let marked = r#","cache":{"afterRequest":{"eTag":""}},"serverIPAddress":"192.0.2.1""#;
    let nothing = r#""connect":0,"send":0,"wait":0,"receive":0"#;
    assert_eq!(outcome(200, "", nothing, marked), None);
    let on_connection = format!(r#"{marked},"connection":"7""#);
    assert!(outcome(200, "", nothing, &on_connection).is_some());
}

#[test]
fn a_request_without_a_connection_reuses_none_and_leaves_the_others_exact() {
    let after_two = |error: &str| {
        let reused = r#""connect":-1,"send":0,"wait":12,"receive":3"#;
        let id = r#","connection":"7""#;
        let failed = format!(r#","_error":"net::{error}""#);
        let entries = [
            entry(0, 200, "", SENT, id),
            entry(1, 200, "", reused, id),
            entry(2, 0, &failed, NOTHING, ""),
        ];
        let outcome = audited("WebInspector", &entries);
        let dials = outcome.connections().into_iter();
        let failed = dials.filter(|one| !one.is_opened()).count();
        let reuse: Vec<_> = outcome.exchanges().map(|one| one.reuse).collect();
        let last = outcome.exchanges().last().unwrap();
        (failed, reuse, last.outcome, last.connection.is_some())
    };
    let (fresh, reused) = (Some(Reuse::Fresh), Some(Reuse::Reused));
    assert_eq!(
        after_two("ERR_CONNECTION_REFUSED"),
        (
            1,
            vec![fresh, reused, fresh],
            Ended::Failed(Failure::Refused),
            true
        )
    );
    // cancelled before its response: whether it was sent is unknown
    assert_eq!(
        after_two("ERR_ABORTED"),
        (0, vec![fresh, reused, None], Ended::Unknown, false)
    );
}
