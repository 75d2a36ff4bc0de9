//! HAR files that browsers and proxies exported: each is read by the evidence that its program
//! provides.

use crate::reading::{self, Outcome};
use intact_audit::KeyLog;
use intact_ledger::{Certainty, Failure, Outcome as Ended, Protocol, Row, SetupPhase};
use std::collections::BTreeSet;

fn audited(name: &str) -> Outcome {
    reading::file(&format!("har/{name}"), KeyLog::default())
}

/// Numbers of opened connections, exchanges, fresh and reused exchanges.
fn totals(outcome: &Outcome) -> (usize, usize, usize, usize) {
    let with = |wanted: bool| {
        let exchanges = outcome.exchanges();
        exchanges
            .filter(|one| one.reuse.map(|reuse| !reuse.is_reused()) == Some(wanted))
            .count()
    };
    let opened = outcome.connections().into_iter();
    (
        opened.filter(|one| one.is_opened()).count(),
        outcome.exchanges().count(),
        with(true),
        with(false),
    )
}

#[test]
fn ids_identify_connections_and_an_id_that_connects_again_is_a_new_one() {
    let outcome = audited("browsertime_h2_filamentgroup.com.har");
    // five ids, six times for connecting: the second page load counts from 1 again
    assert_eq!(totals(&outcome), (6, 44, 6, 38));
    let evidence = outcome.accounts[0].evidence.as_deref().unwrap();
    assert!(evidence.contains("44 of 44"), "{evidence}");
    assert!(
        outcome
            .connections()
            .iter()
            .all(|one| one.certainty == Certainty::Exact)
    );
}

#[test]
fn a_port_is_not_taken_for_an_id() {
    let outcome = audited("humanssuck.har");
    // the file has the setup of one connection; the first request on the other one may be reused or
    // preconnected
    assert_eq!(totals(&outcome), (2, 4, 1, 2));
    assert!(outcome.caveat("har-without-ids").is_some());
    let outcome = audited("mitm-firefox.har");
    // the file has no setup of the second one, whose time for connecting is 0 ms
    assert_eq!(totals(&outcome), (2, 5, 1, 0));
    assert_eq!(outcome.accounts[0].skipped, 9);
}

#[test]
fn a_dns_time_is_a_lookup_which_requests_at_the_same_time_share() {
    let entry = |host: &str, second: u32, dns: i32| {
        format!(
            r#"{{"startedDateTime":"2026-11-21T08:00:{second:02}Z","time":5,"request":{{"method":"GET","url":"http://{host}/"}},
               "response":{{"status":200}},"timings":{{"dns":{dns},"connect":3,"send":0,"wait":1,"receive":1}}}}"#
        )
    };
    let lookups = |entries: &[String]| {
        let har = format!(r#"{{"log":{{"entries":[{}]}}}}"#, entries.join(","));
        let outcome = reading::bytes(har.as_bytes(), KeyLog::default()).unwrap();
        let lookups = outcome.rows.iter().filter_map(|row| match row {
            Row::Lookup(one) => Some((one.name.as_deref()?.to_owned(), one.span.nanos())),
            _ => None,
        });
        lookups.collect::<Vec<_>>()
    };
    let found = lookups(&[
        entry("a.example", 1, 40),
        // both wait for the same response
        entry("a.example", 1, 35),
        entry("b.example", 1, 20),
        // the browser had the name in its cache, and an IP address needs no lookup
        entry("a.example", 2, 0),
        entry("192.0.2.1", 3, 1),
        entry("[2001:db8::1]", 3, 1),
        entry("a.example", 9, 10),
    ]);
    let ms = |host: &str, ms: u64| (host.to_owned(), ms * 1_000_000);
    assert_eq!(
        found,
        [
            ms("b.example", 20),
            ms("a.example", 40),
            ms("a.example", 10)
        ]
    );
    assert!(lookups(&[entry("a.example", 1, -1)]).is_empty());
}

#[test]
fn a_connection_has_the_product_of_its_server_or_of_the_proxy_in_front() {
    let servers = |name: &str| {
        let outcome = audited(name);
        let all = outcome.connections().into_iter();
        let named: BTreeSet<String> = all
            .filter_map(|one| one.server.as_deref().map(str::to_owned))
            .collect();
        named.into_iter().collect::<Vec<_>>()
    };
    assert_eq!(servers("humanssuck.har"), ["nginx"]);
    // `Via: 1.1 NUMBER.cloudfront.net (CloudFront)`, and `Server: AmazonS3` behind it
    assert!(servers("mitm-firefox.har").contains(&"CloudFront".to_owned()));
    assert!(servers("chrome-devtools.har").is_empty());
}

#[test]
fn the_first_request_that_is_seen_of_an_id_is_unknown_without_its_connecting() {
    let entry = |id: u32, second: u32, connect: i32| {
        format!(
            r#"{{"startedDateTime":"2026-11-21T08:00:{second:02}Z","time":5,"connection":"{id}",
            "request":{{"method":"GET","url":"http://a.example/","httpVersion":"HTTP/1.1"}},
            "response":{{"status":200,"httpVersion":"HTTP/1.1"}},
            "timings":{{"blocked":-1,"dns":-1,"connect":{connect},"send":1,"wait":2,"receive":2}}}}"#
        )
    };
    let har = |entries: &[String]| {
        let text = format!(r#"{{"log":{{"entries":[{}]}}}}"#, entries.join(","));
        let outcome = reading::bytes(text.as_bytes(), KeyLog::default()).unwrap();
        let all = outcome
            .exchanges()
            .map(|one| (one.reuse.map(|reuse| !reuse.is_reused()), one.ordinal));
        all.collect::<Vec<_>>()
    };
    // open before the file or opened ahead; opened in the file
    let both = har(&[
        entry(700, 1, -1),
        entry(700, 2, -1),
        entry(701, 3, 4),
        entry(701, 4, -1),
    ]);
    let (fresh, reused) = (Some(true), Some(false));
    assert_eq!(
        both,
        [
            (None, None),
            (reused, None),
            (fresh, Some(1)),
            (reused, Some(2))
        ]
    );
    // a tool that does not measure connecting
    let none = har(&[entry(700, 1, -1), entry(700, 2, -1)]);
    assert_eq!(none, [(None, None), (reused, None)]);
}

/// An entry of a HAR on an HTTP/2 connection, with additional members at the end.
fn entry_with(second: &str, timings: &str, response: &str, members: &str) -> String {
    format!(
        r#"{{"startedDateTime":"2026-11-21T08:00:{second}Z","time":50,
        "request":{{"method":"GET","url":"https://a.example/"}},
        "response":{{"status":200{response}}},"timings":{{"send":1,"wait":2,"receive":2,{timings}}}{members}}}"#
    )
}

fn har(entries: &[String]) -> Outcome {
    let text = format!(r#"{{"log":{{"entries":[{}]}}}}"#, entries.join(","));
    reading::bytes(text.as_bytes(), KeyLog::default()).unwrap()
}

const SETUP: &str = r#""dns":1,"connect":20,"ssl":10"#;
const NO_SETUP: &str = r#""dns":-1,"connect":-1,"ssl":-1"#;

#[test]
fn the_browser_of_a_tool_is_named() {
    let entry = entry_with("00", SETUP, "", "");
    let text = format!(
        r#"{{"log":{{"creator":{{"name":"Playwright"}},"browser":{{"name":"chromium"}},"entries":[{entry}]}}}}"#
    );
    let outcome = reading::bytes(text.as_bytes(), KeyLog::default()).unwrap();
    assert_eq!(outcome.connections()[0].agent.as_deref(), Some("Chromium"));
}

#[test]
fn what_a_cache_or_a_service_worker_answered_uses_no_connection() {
    let outcome = audited("chrome-devtools.har");
    // the server counted nine requests on six connections, four of them from before the recording
    let (opened, requests, fresh, reused) = totals(&outcome);
    assert_eq!((opened, requests, fresh, reused), (2, 9, 2, 7));
    let open_before = outcome.connections();
    let open_before = open_before.iter().filter(|one| one.open_before);
    assert_eq!(open_before.count(), 4);
    assert_eq!(outcome.accounts[0].skipped, 8);
    let evidence = outcome.accounts[0].evidence.as_deref().unwrap();
    assert!(evidence.contains("9 of 9"), "{evidence}");
}

#[test]
fn the_cache_mark_of_each_browser_is_known() {
    let sent = entry_with("01", SETUP, "", r#","connection":"1""#);
    for (response, members) in [
        ("", r#","connection":"2","_fetchType":"Memory Cache""#),
        ("", r#","connection":"2","_fetchType":"Disk Cache""#),
        ("", r#","_fetchType":"Service Worker""#),
        ("", r#","_fromCache":"disk","connection":"443""#),
        (r#","_fetchedViaServiceWorker":true"#, ""),
    ] {
        let local = entry_with("02", NO_SETUP, response, members);
        let outcome = har(&[sent.clone(), local]);
        assert_eq!(totals(&outcome), (1, 1, 1, 0), "{response}{members}");
    }
    // stored in the cache after a request was sent
    let stored = r#","connection":"1","_fetchType":"Network Load","cache":{"afterRequest":{}}"#;
    let outcome = har(&[sent, entry_with("02", NO_SETUP, "", stored)]);
    assert_eq!(totals(&outcome), (1, 2, 1, 1));
}

#[test]
fn streams_that_wait_for_one_setup_are_on_one_connection() {
    let on_seven = r#","connection":"7","_protocol":"HTTP/2""#;
    let later = r#""dns":-1,"connect":12,"ssl":10"#;
    let outcome = har(&[
        entry_with("01.000", SETUP, "", on_seven),
        entry_with("01.008", later, "", on_seven),
        entry_with("02.000", NO_SETUP, "", on_seven),
        // another run counts from 1 again
        entry_with("30.000", SETUP, "", on_seven),
    ]);
    assert_eq!(totals(&outcome), (2, 4, 3, 1));
}

#[test]
fn webpagetests_setup_lies_before_the_first_start() {
    let entry = entry_with("00.500", SETUP, "", r#","_socket":7"#);
    let text = format!(r#"{{"log":{{"creator":{{"name":"WebPagetest"}},"entries":[{entry}]}}}}"#);
    let outcome = reading::bytes(text.as_bytes(), KeyLog::default()).unwrap();
    assert!(outcome.caveat("input-out-of-order").is_none());
    // the lookup and the dial, which includes TLS
    let setup = outcome.connections()[0].setup;
    let (dns, ssl) = (setup.dns.unwrap(), setup.ssl.unwrap());
    assert_eq!((dns.start.0, ssl.end.0), (0, 21_000_000));
}

#[test]
fn webpagetests_protocol_is_read() {
    let socket = |second, timings| {
        let members = r#","_socket":91,"_protocol":"HTTP/2""#;
        entry_with(second, timings, r#","httpVersion":"""#, members)
    };
    let outcome = har(&[socket("01", SETUP), socket("02", NO_SETUP)]);
    assert_eq!(totals(&outcome), (1, 2, 1, 1));
    let protocol = outcome.connections()[0].protocol;
    assert_eq!(protocol, Some(Protocol::Http2));
}

#[test]
fn a_connection_without_a_setup_in_the_file_is_of_unknown_age() {
    let on = |id: u32| format!(r#","connection":"{id}""#);
    let outcome = har(&[
        entry_with("01", SETUP, "", &on(1)),
        entry_with("02", NO_SETUP, "", &on(2)),
        entry_with("03", NO_SETUP, "", &on(2)),
    ]);
    assert_eq!(totals(&outcome), (2, 3, 1, 1));
    let caveat = outcome.caveat("har-unknown-age").unwrap();
    assert!(!caveat.incomplete);
    assert!(
        caveat.message.contains("1 connection "),
        "{}",
        caveat.message
    );
}

#[test]
fn without_evidence_reuse_is_unknown_and_not_zero() {
    let outcome = audited("mitm-chrome.har");
    // the request of the failed dial waited for it
    assert_eq!(totals(&outcome), (2, 3, 1, 0));
    // a minimum of connections satisfies no gate
    assert!(outcome.caveat("har-without-evidence").unwrap().incomplete);
    let failed = outcome
        .connections()
        .into_iter()
        .find_map(|one| one.failed.as_ref());
    assert_eq!(failed.unwrap().phase, SetupPhase::Connect);
    let ended: Vec<_> = outcome.exchanges().map(|one| one.outcome).collect();
    assert!(
        ended.contains(&Ended::Failed(Failure::Unreachable)),
        "{ended:?}"
    );
}

#[test]
fn spans_add_up_to_the_latency() {
    for name in [
        "browsertime_h2_filamentgroup.com.har",
        "mitm-firefox.har",
        "humanssuck.har",
    ] {
        for one in audited(name).exchanges() {
            let sum: u64 = intact_ledger::Phase::ALL
                .iter()
                .filter_map(|&phase| one.spans.of(phase))
                .map(|span| span.nanos())
                .sum();
            assert_eq!(sum, one.latency(), "{name} {one:#?}");
        }
    }
}

#[test]
fn every_truncation_of_a_har_gives_the_entries_before_it() {
    let whole = std::fs::read(reading::fixture("har/mitm-chrome.har")).unwrap();
    let mut before = 0;
    for len in (0..whole.len()).step_by(97) {
        match reading::bytes(&whole[..len], KeyLog::default()) {
            Ok(outcome) => {
                let read = outcome.accounts[0].read;
                assert!(read >= before, "{len}");
                assert!(outcome.caveat("input-damaged").unwrap().incomplete, "{len}");
                before = read;
            }
            Err(error) => assert_eq!(before, 0, "{len}: {error}"),
        }
    }
    // the third entry is complete only a few bytes before the end
    assert_eq!(before, 2);
    let cut = reading::bytes(&whole[..whole.len() - 200], KeyLog::default()).unwrap();
    let words = cut.caveat("input-damaged").unwrap().message.clone();
    assert!(
        words.contains("2 entries were read. Then the file ends within entry 3"),
        "{words}"
    );
    // the names in front of the entries are not lost
    let evidence = cut.accounts[0].evidence.as_deref().unwrap_or_default();
    assert!(evidence.contains("WebInspector"), "{evidence}");
}

#[test]
fn a_file_that_is_no_har_is_refused_with_the_reason() {
    for text in ["{\"log\":{\"entries\":[{]}}", "{\"log\":{\"entries\":7}}"] {
        let error = reading::bytes(text.as_bytes(), KeyLog::default()).unwrap_err();
        assert!(error.to_string().contains("HAR"), "{error}");
    }
}
