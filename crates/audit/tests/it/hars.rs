//! HAR files that browsers and proxies exported: each is read by the evidence that holds for it.

use crate::reading::{self, Outcome};
use intact_audit::KeyLog;
use intact_ledger::{Certainty, Failure, Outcome as Ended, SetupPhase};

fn audited(name: &str) -> Outcome {
    reading::file(&format!("har/{name}"), KeyLog::default())
}

/// Connections opened, exchanges, fresh ones, reused ones.
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
fn ids_tell_connections_apart_and_one_that_connects_again_is_another() {
    let outcome = audited("browsertime_h2_filamentgroup.com.har");
    // five ids, six times for connecting: the second page load begins to count anew
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
    // of one connection the file has the setup; the first request on the other one may be reused or opened ahead
    assert_eq!(totals(&outcome), (2, 4, 1, 2));
    assert!(outcome.caveat("har-without-ids").is_some());
    let outcome = audited("mitm-firefox.har");
    assert_eq!(totals(&outcome), (2, 5, 1, 3));
    assert_eq!(outcome.accounts[0].skipped, 9);
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
    // open before the file, or ahead; opened in the file
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
    // a tool that measures no connecting
    let none = har(&[entry(700, 1, -1), entry(700, 2, -1)]);
    assert_eq!(none, [(None, None), (reused, None)]);
}

#[test]
fn without_evidence_reuse_is_unknown_and_not_zero() {
    let outcome = audited("mitm-chrome.har");
    assert_eq!(totals(&outcome), (2, 3, 0, 0));
    // the fewest connections that are possible pass no gate
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
fn every_truncation_of_a_har_gives_what_came_before() {
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
    // the third entry is whole only a few bytes before the end
    assert_eq!(before, 2);
}

#[test]
fn what_is_no_har_is_refused_with_its_reason() {
    for text in ["{\"log\":{\"entries\":[{]}}", "{\"log\":{\"entries\":7}}"] {
        let error = reading::bytes(text.as_bytes(), KeyLog::default()).unwrap_err();
        assert!(error.to_string().contains("HAR"), "{error}");
    }
}
