//! Files of clients' own tools, from runs against servers that counted too: NetLogs of Chromium,
//! rows of load generators.

use crate::reading::{self, Outcome};
use intact_audit::{AuditError, KeyLog};
use intact_ledger::export::csv;
use intact_ledger::{Certainty, EndedBy, Failure, Protocol, Reuse, Row};

fn audited(name: &str) -> Outcome {
    reading::file(name, KeyLog::default())
}

/// Paths on each connection that carried requests, in any order of connections.
fn paths(outcome: &Outcome) -> Vec<Vec<String>> {
    let paths = |connection: &intact_ledger::Connection| {
        let all = outcome.exchanges_on(connection.id);
        let all = all.iter().filter(|one| one.outcome.is_ok());
        let mut paths: Vec<String> = all
            .map(|one| one.target.as_ref().unwrap().to_string())
            .collect();
        paths.sort();
        paths
    };
    let mut all: Vec<_> = outcome.connections().into_iter().map(paths).collect();
    all.retain(|paths| !paths.is_empty());
    all.sort();
    all
}

fn fresh(outcome: &Outcome, wanted: bool) -> usize {
    let all = outcome
        .exchanges()
        .filter(|one| one.reuse.map(|reuse| !reuse.is_reused()) == Some(wanted));
    all.count()
}

#[test]
fn a_netlog_and_the_servers_log_of_the_same_page_agree() {
    for (name, connections, reused) in [("plain", 4, 7), ("http2", 1, 10), ("tls13", 6, 5)] {
        let browser = audited(&format!("netlog/{name}.json.gz"));
        let server = audited(&format!("netlog/{name}.log"));
        assert_eq!(paths(&browser), paths(&server), "{name}");
        assert_eq!(paths(&browser).len(), connections, "{name}");
        assert_eq!(fresh(&server, false), reused, "{name}");
        assert_eq!(fresh(&browser, false), reused, "{name}");
        assert!(browser.caveat("netlog-cut").is_none(), "{name}");
    }
}

#[test]
fn a_netlog_shows_tls_and_who_closed() {
    let browser = audited("netlog/http2.json.gz");
    let carrying = browser
        .exchanges()
        .find_map(|one| one.connection.filter(|_| one.outcome.is_ok()));
    let all = browser.connections();
    let connection = all.iter().find(|one| Some(one.id) == carrying).unwrap();
    let tls = connection.tls.as_ref().unwrap();
    assert_eq!(tls.version, Some(intact_ledger::TlsVersion::Tls12));
    assert_eq!(
        tls.cipher.as_deref(),
        Some("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256")
    );
    assert_eq!(connection.protocol, Some(Protocol::Http2));
    assert_eq!(connection.terms.max_streams, Some(128));
    assert!(connection.setup.ssl.is_some());
    assert_eq!(
        connection.agent.as_deref(),
        Some("HeadlessChrome/156.0.0.0")
    );
    assert_eq!(connection.server.as_deref(), Some("nginx/1.22.1"));
    let plain = audited("netlog/plain.json.gz");
    let by_client = plain
        .rows
        .iter()
        .filter(|row| matches!(row, Row::Closed(end) if end.close.ended_by() == EndedBy::Client));
    assert_eq!(by_client.count(), 5);
    // the browser's own requests failed, because there was no network
    let lookups = plain
        .exchanges()
        .filter(|one| one.outcome.failure() == Some(Failure::Lookup));
    let reuse: Vec<_> = lookups.map(|one| one.reuse).collect();
    assert!(!reuse.is_empty());
    assert!(reuse.iter().all(|one| *one == Some(Reuse::Fresh)));
}

#[test]
fn requests_that_a_browser_cancels_in_a_shutdown_follow_its_announcement() {
    let browser = audited("netlog/goaway.json.gz");
    let cut: Vec<_> = browser
        .exchanges()
        .filter(|one| one.outcome.failure() == Some(Failure::ClientClosed))
        .collect();
    assert_eq!(cut.len(), 3);
    for one in cut {
        let announced_at = one.close_announced_at.unwrap();
        assert!(one.at < announced_at && announced_at < one.end, "{one:?}");
    }
    let mut others = browser.exchanges().filter(|one| one.outcome.is_ok());
    assert!(others.all(|one| one.close_announced_at.is_none()));
}

#[test]
fn a_netlog_that_was_cut_anywhere_is_read_up_to_the_cut() {
    let whole = reading::unpacked("netlog/plain.json.gz");
    let constants = whole.iter().position(|&byte| byte == b'\n').unwrap();
    let mut most = 0;
    for end in (constants + 400..whole.len()).step_by(9973) {
        let Ok(outcome) = reading::bytes(&whole[..end], KeyLog::default()) else {
            continue;
        };
        let count = outcome.exchanges().count();
        assert!(count >= most || most == 0, "{count} after {most}");
        most = count;
        assert!(outcome.caveat("netlog-cut").unwrap().incomplete);
    }
    assert!(most >= 11);
}

/// A NetLog of these events: milliseconds, phase (1 begins, 2 ends), source, its kind, the event's
/// kind, parameters.
fn netlog(events: &[(u64, u64, u64, &str, &str, &str)]) -> Outcome {
    let mut names: Vec<&str> = events.iter().flat_map(|one| [one.3, one.4]).collect();
    names.sort_unstable();
    names.dedup();
    let number = |name: &str| names.iter().position(|other| *other == name).unwrap();
    let numbers: Vec<String> = names
        .iter()
        .map(|name| format!("\"{name}\":{}", number(name)))
        .collect();
    let numbers = numbers.join(",");
    let lines: Vec<String> = events
        .iter()
        .map(|(at, phase, id, source, kind, params)| {
            format!(
                "{{\"params\":{{{params}}},\"phase\":{phase},\"source\":{{\"id\":{id},\"type\":{}}},\"time\":\"{at}\",\"type\":{}}}",
                number(source),
                number(kind)
            )
        })
        .collect();
    let text = format!(
        "{{\"constants\":{{\"logEventTypes\":{{{numbers}}},\"logSourceType\":{{{numbers}}},\"timeTickOffset\":\"1795248000000\",\"netError\":{{}}}},\n\"events\": [\n{}]\n}}\n",
        lines.join(",\n")
    );
    reading::bytes(text.as_bytes(), KeyLog::default()).unwrap()
}

#[test]
fn a_socket_that_sent_other_data_than_requests_is_not_unused() {
    let sockets = |sent: &str| {
        netlog(&[
            (
                0,
                1,
                1,
                "CONNECT_JOB",
                "CONNECT_JOB",
                "\"group_id\":\"http://a.example:5228 <a>\"",
            ),
            (
                1,
                1,
                2,
                "SOCKET",
                "SOCKET_ALIVE",
                "\"source_dependency\":{\"id\":1,\"type\":0}",
            ),
            (1, 1, 2, "SOCKET", "TCP_CONNECT", ""),
            (2, 2, 2, "SOCKET", "TCP_CONNECT", ""),
            (3, 0, 2, "SOCKET", "SOCKET_BYTES_SENT", sent),
            (9, 2, 2, "SOCKET", "SOCKET_ALIVE", ""),
        ])
    };
    let close = |outcome: &Outcome| {
        let id = outcome.connections()[0].id;
        let close = &outcome.end_of(id).unwrap().close;
        (close.moment, close.exchanges)
    };
    let (used, silent) = (sockets("\"byte_count\":7"), sockets(""));
    assert_eq!(close(&used), (None, None));
    assert_eq!(
        close(&silent),
        (Some(intact_ledger::ClosePoint::Unused), Some(0))
    );
}

#[test]
fn requests_on_sockets_from_before_a_netlog_are_reported() {
    let kinds = [
        "REQUEST_ALIVE",
        "HTTP_STREAM_REQUEST",
        "HTTP_TRANSACTION_SEND_REQUEST_HEADERS",
    ];
    let ask = |at, id, kind| {
        (
            at,
            1,
            id,
            "URL_REQUEST",
            kind,
            "\"url\":\"http://a.example/\",\"method\":\"GET\"",
        )
    };
    let answer = "\"headers\":[\"HTTP/1.1 200 OK\"]";
    let outcome = netlog(&[
        ask(0, 1, kinds[0]),
        ask(1, 1, kinds[1]),
        ask(2, 1, kinds[2]),
        (
            3,
            0,
            1,
            "URL_REQUEST",
            "HTTP_TRANSACTION_READ_RESPONSE_HEADERS",
            answer,
        ),
        (4, 2, 1, "URL_REQUEST", "REQUEST_ALIVE", ""),
        ask(5, 2, kinds[0]),
        ask(6, 2, kinds[1]),
        ask(7, 2, kinds[2]),
    ]);
    let all: Vec<_> = outcome.exchanges().collect();
    assert_eq!(all.len(), 1);
    assert_eq!((all[0].connection, all[0].reuse), (None, None));
    assert!(outcome.caveat("netlog-strays").unwrap().incomplete);
    assert!(!outcome.caveat("end-not-captured").unwrap().incomplete);
}

#[test]
fn a_socket_from_before_a_netlog_was_not_opened_in_it() {
    // two consecutive requests on socket 9, which the log did not open
    let request = |from: u64, id: u64, job: u64| {
        let url = "\"url\":\"http://a.example/\",\"method\":\"GET\"";
        let to = |id: u64| format!("\"source_dependency\":{{\"id\":{id},\"type\":0}}");
        let source = "URL_REQUEST";
        let job_source = "HTTP_STREAM_JOB";
        vec![
            (from, 1, id, source, "REQUEST_ALIVE", url.to_owned()),
            (
                from + 1,
                1,
                id,
                source,
                "HTTP_STREAM_REQUEST",
                url.to_owned(),
            ),
            (
                from + 1,
                0,
                job,
                job_source,
                "SOCKET_POOL_BOUND_TO_SOCKET",
                to(9),
            ),
            (
                from + 2,
                0,
                id,
                source,
                "HTTP_STREAM_REQUEST_BOUND_TO_JOB",
                to(job),
            ),
            (
                from + 2,
                1,
                id,
                source,
                "HTTP_TRANSACTION_SEND_REQUEST_HEADERS",
                String::new(),
            ),
            (
                from + 5,
                0,
                id,
                source,
                "HTTP_TRANSACTION_READ_RESPONSE_HEADERS",
                "\"headers\":[\"HTTP/1.1 200 OK\"]".to_owned(),
            ),
            (from + 6, 2, id, source, "REQUEST_ALIVE", String::new()),
        ]
    };
    let events = [request(0, 1, 2), request(10, 3, 4)].concat();
    let events: Vec<_> = events
        .iter()
        .map(|one| (one.0, one.1, one.2, one.3, one.4, one.5.as_str()))
        .collect();
    let outcome = netlog(&events);
    let connections = outcome.connections();
    assert_eq!(connections.len(), 1);
    assert!(connections[0].open_before && !connections[0].is_opened());
    let reuse: Vec<_> = outcome.exchanges().map(|one| one.reuse).collect();
    assert_eq!(reuse, [None, Some(Reuse::Reused)]);
    assert!(outcome.exchanges().all(|one| one.ordinal.is_none()));
    assert!(outcome.caveat("netlog-strays").is_none());
}

/// The server closed each connection after seven requests: 40 requests of two clients need six or
/// seven.
#[test]
fn connections_without_ids_are_inferred_from_the_time_for_connecting() {
    for (name, opened) in [("oha.csv", 6), ("k6.json.gz", 7), ("k6.csv.gz", 7)] {
        let outcome = audited(&format!("tools/{name}"));
        assert_eq!(outcome.exchanges().count(), 40, "{name}");
        assert_eq!(outcome.connections().len(), opened, "{name}");
        assert_eq!(fresh(&outcome, true), opened, "{name}");
        assert_eq!(fresh(&outcome, false), 40 - opened, "{name}");
        assert!(outcome.caveat("tool-without-ids").is_some(), "{name}");
        let inferred =
            |one: &&intact_ledger::Connection| matches!(one.certainty, Certainty::Inferred(_));
        assert!(outcome.connections().iter().all(inferred), "{name}");
    }
    // hey's 0.1 ms is as long as a connection on one machine takes to open, so it misses some
    let hey = audited("tools/hey.csv");
    // a request to an IP address has no lookup
    let is_lookup = |row: &&Row| matches!(row, Row::Lookup(_));
    assert_eq!(hey.rows.iter().filter(is_lookup).count(), 0);
    let head = "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset";
    let named = format!("{head}\n0.0042,0.0036,0.0010,0.0001,0.0003,0.0001,200,0.0001\n");
    let named = reading::bytes(named.as_bytes(), KeyLog::default()).unwrap();
    assert_eq!(named.rows.iter().filter(is_lookup).count(), 1);
    assert_eq!(hey.exchanges().count(), 40);
    assert!(fresh(&hey, true) <= 7);
    assert!(hey.caveat("tool-without-failures").unwrap().incomplete);
    assert!(
        audited("tools/k6.csv.gz")
            .caveat("tool-coarse-times")
            .is_some()
    );
}

#[test]
fn ohas_time_for_connecting_names_the_connection_in_http_2() {
    let outcome = audited("tools/oha-http2.csv");
    assert_eq!(outcome.connections().len(), 3);
    assert_eq!((fresh(&outcome, true), fresh(&outcome, false)), (3, 17 - 3));
}

#[test]
fn where_a_tool_measures_no_connecting_reuse_is_unknown() {
    let row = |at: u64| {
        format!(
            "17952592271234567{at:02},200,1500000,0,100,,aGk=,,{at},GET,http://a.example:81/x?y=1,Q29u\n"
        )
    };
    let text: String = (0..20).map(row).collect();
    let outcome = reading::bytes(text.as_bytes(), KeyLog::default()).unwrap();
    assert_eq!(outcome.exchanges().count(), 20);
    assert!(outcome.exchanges().all(|one| one.reuse.is_none()));
    // these are the connections that the overlap needs, not those that were opened: no gate passes
    // on them
    assert!(outcome.caveat("tool-without-evidence").unwrap().incomplete);
    let text = text + "no such row\n";
    let outcome = reading::bytes(text.as_bytes(), KeyLog::default()).unwrap();
    assert!(outcome.caveat("lines-not-read").unwrap().incomplete);
}

#[test]
fn a_summary_is_refused_with_the_command_that_writes_requests() {
    let bytes = std::fs::read(reading::fixture("tools/oha-summary.json")).unwrap();
    let error = reading::bytes(&bytes, KeyLog::default()).unwrap_err();
    assert!(error.to_string().contains("--output-format csv"), "{error}");
}

#[test]
fn the_csv_of_intact_is_refused_with_what_to_read_instead() {
    let text = format!("{}0.1,0.0,0.0,0.0,0.1,0.0,200,0.1\n", csv::HEAD);
    let error = reading::bytes(text.as_bytes(), KeyLog::default()).unwrap_err();
    assert!(matches!(error, AuditError::OwnCsv(_)), "{error}");
    assert!(error.to_string().contains("--ledger"), "{error}");
}

#[test]
fn a_row_of_jmeter_may_have_line_breaks_in_quotes() {
    let head = "timeStamp,elapsed,responseCode,success,failureMessage,URL,Latency,Connect\n";
    let row = |at: u32, message: &str| {
        format!("17952480000{at:02},9,200,true,{message},http://a.example/{at},8,0\n")
    };
    let broken = row(2, "\"expected \"\"a\"\"\nbut\n\ngot \"\"b\"\"\"");
    let text = [head, &row(1, ""), &broken, &row(3, "")].concat();
    let outcome = reading::bytes(text.as_bytes(), KeyLog::default()).unwrap();
    assert_eq!(outcome.exchanges().count(), 3);
    assert!(outcome.caveat("lines-not-read").is_none());
    // a quote that nothing closes costs its own row only
    let open = row(2, "\"expected");
    let text = [head, &row(1, ""), &open, &row(3, ""), &row(4, "")].concat();
    let outcome = reading::bytes(text.as_bytes(), KeyLog::default()).unwrap();
    assert_eq!(outcome.exchanges().count(), 3);
    assert!(outcome.caveat("lines-not-read").is_some());
    let cut = &text[..text.find("expected").unwrap() + 3];
    let outcome = reading::bytes(cut.as_bytes(), KeyLog::default()).unwrap();
    assert_eq!(outcome.exchanges().count(), 1);
    assert!(outcome.caveat("lines-not-read").is_some());
}

#[test]
fn a_quick_connection_of_a_coarse_tool_is_unknown_and_a_distant_one_is_not() {
    let reuse = |connect: u32| {
        let row = |at: u32, connect: u32| {
            format!("17952480000{at:02},99,200,true,http://a.example/{at},80,{connect}\n")
        };
        let head = "timeStamp,elapsed,responseCode,success,URL,Latency,Connect\n";
        // a second apart from the first one
        let text = [
            head,
            &row(0, connect),
            "1795248001000,9,200,true,http://a.example/1,8,0\n",
        ];
        let outcome = reading::bytes(text.concat().as_bytes(), KeyLog::default()).unwrap();
        let is_coarse = outcome.caveat("tool-coarse-connects").is_some();
        (outcome.exchanges().last().unwrap().reuse, is_coarse)
    };
    assert_eq!(reuse(1), (None, true));
    assert_eq!(reuse(40), (Some(Reuse::Reused), false));
}
