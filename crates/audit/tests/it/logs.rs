//! Logs that real servers wrote, and captures of the same traffic.

use crate::reading::{self, Outcome};
use intact_audit::{Input, InputOptions, KeyLog, Pattern};
use intact_ledger::{Certainty, Connection, Failure, Outcome as Ended, Protocol, Reuse};
use std::collections::BTreeMap;
use std::path::Path;

fn audited(name: &str) -> Outcome {
    reading::file(&format!("logs/{name}"), KeyLog::default())
}

/// Requests on each connection, as lists of paths, in any order of connections.
fn paths(outcome: &Outcome) -> Vec<Vec<String>> {
    let mut all: Vec<Vec<String>> = outcome
        .connections()
        .iter()
        .map(|connection| {
            let mut paths: Vec<String> = outcome
                .exchanges_on(connection.id)
                .iter()
                .map(|one| one.target.as_ref().unwrap().to_string())
                .collect();
            paths.sort();
            paths
        })
        .collect();
    all.sort();
    all
}

fn reused(outcome: &Outcome) -> usize {
    outcome
        .exchanges()
        .filter(|one| one.reuse == Some(Reuse::Reused))
        .count()
}

fn protocols(outcome: &Outcome) -> BTreeMap<Option<Protocol>, usize> {
    let mut counts = BTreeMap::new();
    for connection in outcome.connections() {
        *counts.entry(connection.protocol).or_default() += 1;
    }
    counts
}

fn versions(outcome: &Outcome) -> Vec<Option<intact_ledger::TlsVersion>> {
    let version = |one: &Connection| one.tls.as_ref().map(|tls| tls.version);
    let mut all: Vec<_> = outcome
        .connections()
        .into_iter()
        .filter_map(version)
        .collect();
    all.sort();
    all
}

#[test]
fn a_capture_and_the_servers_log_of_the_same_traffic_agree() {
    let capture = reading::file("captures/nginx-curl.pcapng", KeyLog::default());
    let log = audited("nginx-intact.log");
    assert_eq!(capture.exchanges().count(), 15);
    assert_eq!(paths(&capture), paths(&log));
    assert_eq!(reused(&capture), 5);
    assert_eq!(reused(&log), 5);
    assert_eq!(protocols(&capture), protocols(&log));
    assert_eq!(versions(&capture), versions(&log));
    for outcome in [&capture, &log] {
        let all = outcome.connections();
        let named = all
            .iter()
            .filter(|one| one.agent.as_deref() == Some("curl/7.88.1"));
        assert_eq!(named.count(), all.len());
    }
    let json = audited("nginx-json.log");
    assert_eq!(paths(&json), paths(&log));
    assert_eq!(reused(&json), 5);
}

/// The smallest and the largest number of requests of this log that reused a connection.
fn reuse_range(outcome: &Outcome) -> (usize, usize) {
    let unknown = outcome.exchanges().filter(|one| one.reuse.is_none());
    let least = reused(outcome);
    (least, least + unknown.count())
}

#[test]
fn the_reuse_in_a_capture_is_in_the_range_of_a_log_without_positions() {
    let capture = reading::file("captures/nginx-curl.pcapng", KeyLog::default());
    let whole = std::fs::read_to_string(reading::fixture("logs/nginx-intact.log")).unwrap();
    let without: String = whole.replace(" reqs=", " other=");
    let log = reading::bytes(without.as_bytes(), KeyLog::default()).unwrap();
    assert_eq!(log.connections().len(), capture.connections().len());
    let (least, most) = reuse_range(&log);
    assert!((least..=most).contains(&reused(&capture)), "{least} {most}");
    assert!(least < most);
    assert!(log.caveat("log-without-positions").is_some());
}

#[test]
fn iis_logs_are_read_and_columns_may_change() {
    let fields = |port: &str| {
        format!(
            "#Software: Microsoft Internet Information Services 10.0\r\n#Version: 1.0\r\n#Date: 2026-11-21 08:00:00\r\n\
             #Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs(User-Agent) sc-status time-taken{port}\r\n"
        )
    };
    let line = |second: u32, port: &str| {
        format!(
            "2026-11-21 08:00:{second:02} 10.0.0.5 GET /{second} q=secret 443 - 192.0.2.1 python-requests/2.31.0 200 46{port}\r\n"
        )
    };
    let text =
        fields(" c-port") + &line(1, " 5000") + &line(2, " 5000") + &fields("") + &line(3, "");
    let outcome = reading::bytes(text.as_bytes(), KeyLog::default()).unwrap();
    assert_eq!(outcome.accounts[0].skipped, 0);
    assert_eq!(paths(&outcome), [vec!["/1", "/2"]]);
    assert_eq!(outcome.exchanges().count(), 3);
    let caveat = outcome.caveat("log-without-connections").unwrap();
    assert!(
        caveat.message.contains("1 of 3 requests"),
        "{}",
        caveat.message
    );
    assert!(caveat.message.contains("REMOTE_PORT"), "{}", caveat.message);
    assert!(outcome.caveat("log-coarse-times").is_some());
    let agent = outcome.connections()[0].agent.clone();
    assert_eq!(agent.as_deref(), Some("python-requests/2.31.0"));
}

#[test]
fn requests_that_envoy_could_not_parse_are_counted() {
    let line = |request: &str, rest: &str| {
        format!(
            "[2026-11-21T08:00:00.250Z] \"{request}\" {rest} 0 - \"-\" \"-\" \"-\" \"-\" \"-\"\n"
        )
    };
    let text = line("GET / HTTP/1.1", "200 - 0 5")
        + &line("- - HTTP/1.1", "400 DPE 0 11")
        + &line("- - HTTP/2", "400 DPE 0 0")
        // the connection of a TCP proxy carries no request
        + &line("- - -", "0 UF 0 0");
    let outcome = reading::bytes(text.as_bytes(), KeyLog::default()).unwrap();
    let status: Vec<_> = outcome.exchanges().map(|one| one.status).collect();
    assert_eq!(status, [Some(200), Some(400), Some(400)]);
    assert_eq!(outcome.accounts[0].skipped, 1);
}

#[test]
fn traefiks_connections_are_identified_by_the_clients_port() {
    let line = |nth: u32, port: u32| {
        format!(
            "{{\"ClientAddr\":\"192.0.2.1:{port}\",\"DownstreamStatus\":200,\"Duration\":1250000,\"RequestMethod\":\"GET\",\"RequestPath\":\"/{nth}\",\"RequestProtocol\":\"HTTP/1.1\",\"StartUTC\":\"2026-11-21T08:00:0{nth}.250000001Z\",\"level\":\"info\",\"time\":\"2026-11-21T08:00:0{nth}Z\"}}\n"
        )
    };
    let text = line(1, 5000) + &line(2, 5000) + &line(3, 5001);
    let outcome = reading::bytes(text.as_bytes(), KeyLog::default()).unwrap();
    assert_eq!(paths(&outcome), [vec!["/1", "/2"], vec!["/3"]]);
    assert!(outcome.caveat("log-coarse-times").is_none());
    let took: Vec<u64> = outcome.exchanges().map(|one| one.latency()).collect();
    assert_eq!(took, [1_250_000; 3]);
}

#[test]
fn a_log_without_connections_gives_the_configuration_that_logs_them() {
    let outcome = audited("nginx-combined.log");
    assert_eq!(outcome.exchanges().count(), 15);
    assert!(outcome.connections().is_empty());
    assert!(outcome.exchanges().all(|one| one.reuse.is_none()));
    let caveat = outcome.caveat("log-without-connections").unwrap();
    // no request is missing; each of them shows that its connection is unknown
    assert!(!caveat.incomplete);
    let words = &caveat.message;
    assert!(
        words.contains("no connection id in 15 of 15 requests"),
        "{words}"
    );
    assert!(
        words.contains("conn=$connection reqs=$connection_requests"),
        "{words}"
    );
    assert!(outcome.exchanges().all(|one| one.connection.is_none()));
    let advice = outcome.accounts[0].advice.join("\n");
    assert!(advice.contains("conn=$connection"), "{advice}");
    assert!(audited("nginx-intact.log").accounts[0].advice.is_empty());
}

/// A log in nginx's format with one line for each pair: seconds since its beginning, and the
/// `key=value` pairs.
fn log_of(lines: &[(u64, String)]) -> Outcome {
    let line = |(second, pairs): &(u64, String)| {
        let at = 1_795_248_000 + second;
        format!(
            "::1 - - [21/Nov/2026:08:00:00 +0000] \"GET / HTTP/1.1\" 200 5 \"-\" \"-\" msec={at}.250 {pairs}\n"
        )
    };
    let text: String = lines.iter().map(line).collect();
    reading::bytes(text.as_bytes(), KeyLog::default()).unwrap()
}

fn fresh(outcome: &Outcome) -> Vec<Option<bool>> {
    outcome
        .exchanges()
        .map(|one| one.reuse.map(|reuse| !reuse.is_reused()))
        .collect()
}

#[test]
fn without_positions_the_first_request_of_a_connection_is_unknown_at_the_logs_beginning() {
    // twenty connections with two requests each: consecutive, and in turn as from a pool
    let after = (0..40).map(|nth| (nth / 4, format!("conn={}", 101 + nth / 2)));
    let in_turn = (0..40).map(|nth| (nth / 4, format!("conn={}", 101 + nth % 20)));
    for lines in [after.collect::<Vec<_>>(), in_turn.collect()] {
        let outcome = log_of(&lines);
        assert_eq!(outcome.connections().len(), 20);
        let count = |wanted| fresh(&outcome).iter().filter(|one| **one == wanted).count();
        let counts = [None, Some(false), Some(true)].map(count);
        assert_eq!(counts, [20, 20, 0]);
        let caveat = outcome.caveat("log-without-positions").unwrap();
        assert!(!caveat.incomplete);
        assert!(
            caveat
                .message
                .contains(" 20 connections may have been open"),
            "{}",
            caveat.message
        );
        assert!(caveat.message.contains("$connection_requests"));
    }
}

#[test]
fn a_connection_that_is_first_seen_long_after_the_logs_beginning_is_new() {
    let line = |second, id: u32| (second, format!("conn={id}"));
    let outcome = log_of(&[
        line(0, 105),
        line(200, 106),
        // later than any connection may be silent, and larger than all before
        line(301, 107),
        line(302, 107),
        // smaller: it was open before
        line(303, 104),
        line(304, 108),
    ]);
    let (reused, new) = (Some(false), Some(true));
    assert_eq!(fresh(&outcome), [None, None, new, reused, None, new]);
    let inferred = outcome
        .exchanges()
        .filter(|one| one.certainty != Certainty::Exact);
    assert_eq!(inferred.count(), 2);
    // where only ports are logged, the time alone decides
    let line = |second, port: u32| (second, format!("port={port}"));
    let outcome = log_of(&[
        line(0, 5000),
        line(1, 5000),
        line(301, 4000),
        line(302, 4000),
    ]);
    assert_eq!(fresh(&outcome), [None, reused, new, reused]);
}

#[test]
fn with_positions_the_first_request_is_known() {
    let line = |id: u32, nth: u32| (0, format!("conn={id} reqs={nth}"));
    let outcome = log_of(&[line(1, 57), line(1, 58), line(2, 1), line(2, 2)]);
    let (reused, new) = (Some(false), Some(true));
    assert_eq!(fresh(&outcome), [reused, reused, new, reused]);
    assert!(outcome.caveat("log-without-positions").is_none());
}

#[test]
fn a_log_that_continues_another_one_knows_its_connections() {
    let log = |from: u64, ids: [u32; 2]| {
        let line = |(second, id): (u64, u32)| {
            format!("::1 - - [x] \"GET / HTTP/1.1\" 200 5 \"-\" \"-\" msec={second}.5 conn={id}\n")
        };
        let lines = [(from, ids[0]), (from + 290, ids[1])].map(line).concat();
        let reader = Box::new(std::io::Cursor::new(lines));
        Input::from_reader(Path::new("log"), reader, None, &InputOptions::default()).unwrap()
    };
    let begin = 1_795_248_000;
    let audited = |second: u64| {
        let inputs = vec![log(begin, [7, 8]), log(second, [9, 10])];
        fresh(&reading::inputs(inputs, KeyLog::default()).unwrap())
    };
    let new = Some(true);
    // ten seconds after the first log ended, and at the same time: a log of another server
    assert_eq!(audited(begin + 301), [None, None, new, new]);
    assert_eq!(audited(begin + 7200), [None, None, None, None]);
}

#[test]
fn a_port_at_the_beginning_of_a_log_may_belong_to_an_older_connection() {
    let outcome = audited("caddy.log");
    let count = |wanted| fresh(&outcome).iter().filter(|one| **one == wanted).count();
    assert_eq!([None, Some(false)].map(count), [3, 2]);
    // Caddy has no field for the position
    let words = &outcome.caveat("log-without-positions").unwrap().message;
    assert!(words.ends_with("of each is unknown"), "{words}");
}

#[test]
fn a_port_that_was_silent_for_a_minute_may_belong_to_another_connection() {
    let line = |second| (second, "port=5000".to_owned());
    // while a closed port is reserved; later; and after the longest silence of a connection
    let outcome = log_of(&[line(0), line(50), line(115), line(116), line(500)]);
    let (reused, new) = (Some(false), Some(true));
    assert_eq!(fresh(&outcome), [None, reused, None, reused, new]);
    assert_eq!(outcome.connections().len(), 3);
    let words = &outcome.caveat("log-port-silent").unwrap().message;
    assert!(words.contains("1 request on such a port"), "{words}");
}

#[test]
fn a_port_that_returns_after_many_others_of_its_client_may_belong_to_another_connection() {
    let again_after = |others: u32| {
        let lines = (0..others).map(|nth| (u64::from(nth / 100), format!("port={}", 6000 + nth)));
        let first = (0, "port=5000".to_owned());
        let again = (5, "port=5000".to_owned());
        let lines: Vec<_> = std::iter::once(first).chain(lines).chain([again]).collect();
        let outcome = log_of(&lines);
        (fresh(&outcome).pop().unwrap(), outcome.connections().len())
    };
    assert_eq!(again_after(255), (Some(false), 256));
    // a server that closes first leaves the client's port free: 257 connections at least, perhaps
    // 258
    assert_eq!(again_after(256), (None, 257));
    // no pool takes 8,192 connections in turn
    assert_eq!(again_after(8_192), (None, 8_194));
}

#[test]
fn a_large_pool_that_is_used_in_turn_is_not_opened_again() {
    let ports = (0..1_500).map(|nth| (nth / 500, format!("port={}", 5000 + nth % 500)));
    let outcome = log_of(&ports.collect::<Vec<_>>());
    assert_eq!(outcome.connections().len(), 500);
    // the client opened 256 others or more after 244 of them
    let unknown = fresh(&outcome).iter().filter(|one| one.is_none()).count();
    assert_eq!((unknown, reused(&outcome)), (744, 756));
    let words = &outcome.caveat("log-port-silent").unwrap().message;
    assert!(
        words.contains("244 requests") && words.contains("; 0 of them"),
        "{words}"
    );
}

#[test]
fn connections_that_carried_requests_before_the_log_are_not_opened_in_it() {
    let line = |id: u32, nth: u32| (0, format!("conn={id} reqs={nth}"));
    let outcome = log_of(&[line(1, 57), line(1, 58), line(2, 1), line(2, 2)]);
    let before: Vec<bool> = outcome
        .connections()
        .iter()
        .map(|one| one.open_before)
        .collect();
    assert_eq!(before, [true, false]);
    // a position that starts at 1 again is a new connection on the same port, opened in the log
    let line = |nth: u32| (0, format!("port=5000 reqs={nth}"));
    let outcome = log_of(&[line(7), line(8), line(1), line(3), line(2)]);
    let before: Vec<bool> = outcome
        .connections()
        .iter()
        .map(|one| one.open_before)
        .collect();
    assert_eq!(before, [true, false, false]);
}

#[test]
fn requests_without_a_connection_among_others_are_reported() {
    let outcome = log_of(&[
        (0, "conn=1 reqs=1".to_owned()),
        (1, "conn=1 reqs=2".to_owned()),
        (2, "other=1".to_owned()),
    ]);
    let caveat = outcome.caveat("log-without-connections").unwrap();
    // no request is missing; each of them shows that its connection is unknown
    assert!(!caveat.incomplete);
    assert!(
        caveat.message.contains("1 of 3 requests"),
        "{}",
        caveat.message
    );
}

#[test]
fn lines_that_look_like_requests_and_cannot_be_read_are_reported() {
    let line =
        "::1 - - [21/Nov/2026:08:00:00 +0000] \"GET / HTTP/1.1\" 200 5 \"-\" \"-\" conn=1 reqs=1\n";
    let read = |more: &str| {
        let text = line.to_owned() + line + line + more;
        reading::bytes(text.as_bytes(), KeyLog::default()).unwrap()
    };
    let outcome = read("other|GET / HTTP/1.1|200\n");
    let caveat = outcome.caveat("lines-not-read").unwrap();
    assert!(caveat.incomplete);
    assert!(
        caveat.message.contains("1 of 4 lines"),
        "{}",
        caveat.message
    );
    let outcome = read("the server was started\n");
    assert!(outcome.caveat("lines-not-read").is_none());
    assert_eq!(outcome.accounts[0].skipped, 1);
}

#[test]
fn a_client_port_stands_for_a_connection_and_a_caveat_says_so() {
    let outcome = audited("caddy.log");
    assert_eq!(paths(&outcome).len(), 3);
    assert_eq!(reused(&outcome), 2);
    let inferred = |one: &&Connection| matches!(one.certainty, Certainty::Inferred(_));
    assert_eq!(
        outcome
            .connections()
            .iter()
            .filter(|one| inferred(one))
            .count(),
        3
    );
    let secrets = outcome
        .exchanges()
        .filter(|one| one.target.as_ref().unwrap().as_str().contains("secret"));
    assert_eq!(secrets.count(), 0);
}

#[test]
fn a_given_format_is_read() {
    let pattern =
        Pattern::new("log_format x '$connection:$connection_requests $msec \"$request\" $status';");
    let hints = InputOptions {
        log_format: Some(pattern.unwrap()),
    };
    let text = "7:1 971211336.5 \"GET /a HTTP/1.1\" 200\n7:2 971211336.6 \"GET /b HTTP/1.1\" 499\n";
    let text = text.to_owned() + "no such line\n7:1 971211337.0 \"GET /c HTTP/1.1\" 200\n";
    let reader = Box::new(std::io::Cursor::new(text));
    let input = Input::from_reader(Path::new("log"), reader, None, &hints).unwrap();
    let outcome = reading::inputs(vec![input], KeyLog::default()).unwrap();
    // the counter started again: another connection with the same id
    assert_eq!(paths(&outcome), [vec!["/a", "/b"], vec!["/c"]]);
    assert_eq!(outcome.accounts[0].skipped, 1);
    let mut failed = outcome.exchanges().filter(|one| one.outcome != Ended::Ok);
    let client_closed = Ended::Failed(Failure::ClientClosed);
    assert_eq!(failed.next().unwrap().outcome, client_closed);
    assert_eq!(failed.count(), 0);
}

#[test]
fn positions_that_a_connection_has_passed_leave_its_log_without_a_verdict() {
    let line = |position: u32, second: u32| {
        format!(
            r#"{{"time_iso8601":"2024-01-01T00:00:{second:02}+00:00","remote_addr":"192.0.2.1","connection":"7","connection_requests":"{position}","request":"GET / HTTP/1.1","status":"200","request_time":"0.002"}}"#
        ) + "\n"
    };
    let read = |text: String| reading::bytes(text.as_bytes(), KeyLog::default()).unwrap();
    // two servers, each with a connection of this number
    let merged: String = (1..=5)
        .map(|nth| line(nth, nth) + &line(nth, nth))
        .collect();
    let outcome = read(merged);
    let caveat = outcome.caveat("log-positions-repeat").unwrap();
    assert!(caveat.incomplete);
    assert!(caveat.message.contains("4 requests"), "{}", caveat.message);
    // a server that was started again numbers its connections from the beginning
    let restarted: String = (1..=5).map(|nth| line(nth, nth)).collect::<String>()
        + &(1..=5).map(|nth| line(nth, 20 + nth)).collect::<String>();
    assert!(read(restarted).caveat("log-positions-repeat").is_none());
}

#[test]
fn zeeks_requests_are_read_as_columns_and_as_json() {
    let rows = [("C1", 1), ("C1", 2), ("C2", 1)];
    let head = "#separator \\x09\n#path\thttp\n#fields\tts\tuid\tid.orig_h\tid.orig_p\ttrans_depth\tmethod\thost\turi\tstatus_code\n";
    let column = |(uid, depth): &(&str, u32)| {
        format!("1389719059.3\t{uid}\t192.0.2.1\t5000\t{depth}\tGET\ta.example\t/{depth}\t200\n")
    };
    let object = |(uid, depth): &(&str, u32)| {
        format!(
            "{{\"ts\":1389719059.3,\"uid\":\"{uid}\",\"id.orig_h\":\"192.0.2.1\",\"id.orig_p\":5000,\"trans_depth\":{depth},\"method\":\"GET\",\"host\":\"a.example\",\"uri\":\"/{depth}\",\"status_code\":200}}\n"
        )
    };
    let columns = head.to_owned() + &rows.iter().map(column).collect::<String>() + "#close\n";
    let objects: String = rows.iter().map(object).collect();
    for text in [columns, objects] {
        let outcome = reading::bytes(text.as_bytes(), KeyLog::default()).unwrap();
        assert_eq!(paths(&outcome), [vec!["/1"], vec!["/1", "/2"]]);
        assert_eq!(reused(&outcome), 1);
    }
}

#[test]
fn concurrent_streams_end_in_any_order_on_one_connection() {
    let line = |nth: u32| {
        format!(
            "::1 - - [10/Oct/2000:13:55:36 -0700] \"GET /{nth} HTTP/2.0\" 200 5 \"-\" \"-\" conn=9 reqs={nth}\n"
        )
    };
    let text: String = [3, 1, 2, 1].map(line).concat();
    let outcome = reading::bytes(text.as_bytes(), KeyLog::default()).unwrap();
    assert_eq!(paths(&outcome), [vec!["/1"], vec!["/1", "/2", "/3"]]);
}

#[test]
fn compressed_logs_are_read() {
    use std::io::Write;
    let plain = std::fs::read(reading::fixture("logs/nginx-intact.log")).unwrap();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(&plain).unwrap();
    for packed in [
        gzip.finish().unwrap(),
        zstd::encode_all(&plain[..], 1).unwrap(),
    ] {
        let outcome = reading::bytes(&packed, KeyLog::default()).unwrap();
        assert_eq!(outcome.exchanges().count(), 15);
        // cut in the middle: a caveat, and the lines before the cut
        let cut = reading::bytes(&packed[..packed.len() - 9], KeyLog::default());
        if let Ok(outcome) = cut {
            assert!(outcome.caveat("input-damaged").is_some());
        }
    }
}

#[test]
fn requests_that_clients_gave_up_failed_in_the_logs_of_balancers() {
    let line = |second: u32, status: &str, state: &str| {
        format!(
            "10.0.1.2:40001 [06/Feb/2026:12:14:0{second}.655] http-in static/srv1 1/0/3/6/9 {status} 275 - - {state} 1/1/1/1/0 0/0 \"GET / HTTP/1.1\"\n"
        )
    };
    let text = line(1, "200", "----") + &line(2, "200", "SD--") + &line(3, "-1", "CH--");
    let outcome = reading::bytes(text.as_bytes(), KeyLog::default()).unwrap();
    let outcomes: Vec<_> = outcome.exchanges().map(|one| one.outcome).collect();
    let [truncated, closed] = [Failure::Truncated, Failure::ClientClosed].map(Ended::Failed);
    assert_eq!(outcomes, [Ended::Ok, truncated, closed]);
    let detail = outcome.exchanges().nth(1).unwrap().detail.clone().unwrap();
    assert!(detail.contains("SD--"), "{detail}");
}

#[test]
fn requests_between_positions_are_missing() {
    let missing = |positions: &[u32], version: &str| {
        let lines: String = positions
            .iter()
            .map(|nth| {
                format!(
                    "::1 - - [21/Nov/2026:08:00:{nth:02} +0000] \"GET /{nth} HTTP/{version}\" 200 5 \"-\" \"-\" conn=7 reqs={nth}\n"
                )
            })
            .collect();
        let outcome = reading::bytes(lines.as_bytes(), KeyLog::default()).unwrap();
        let caveat = outcome.caveat("log-positions-missing").cloned();
        caveat.map(|caveat| (caveat.message, caveat.incomplete && caveat.all_connections))
    };
    let (words, is_marked) = missing(&[1, 2, 9], "1.1").unwrap();
    assert!(
        words.starts_with("6 requests are missing") && is_marked,
        "{words}"
    );
    assert_eq!(missing(&[1, 2, 3], "1.1"), None);
    // the log began later, and streams end in any order
    assert_eq!(missing(&[5, 6, 7], "1.1"), None);
    assert_eq!(missing(&[3, 1, 2], "2.0"), None);
    assert!(missing(&[3, 1, 5], "2.0").is_some());
}

/// The outcome of a log with these lines.
fn lines(all: &[&str]) -> Outcome {
    reading::bytes(all.join("\n").as_bytes(), KeyLog::default()).unwrap()
}

#[test]
fn istio_logs_the_port_of_the_client() {
    let line = |second: u32, port: u32| {
        format!(
            r#"[2026-11-21T08:00:{second:02}.250Z] "GET /{second} HTTP/1.1" 200 - via_upstream - "-" 0 135 3 1 "-" "Mozilla/5.0 (X11; Linux) Gecko" "84961386-6d84-929d-98bd-c5aee93b5c88" "a.example" "10.44.1.27:80" inbound|80|| 127.0.0.1:41854 10.44.1.27:80 10.44.1.23:{port} outbound_.80_._.a.example default"#
        )
    };
    let outcome = lines(&[&line(1, 5000), &line(2, 5000), &line(3, 5001)]);
    assert_eq!(paths(&outcome), [vec!["/1", "/2"], vec!["/3"]]);
    let evidence = outcome.accounts[0].evidence.as_deref().unwrap();
    assert!(evidence.contains("Istio"), "{evidence}");
    // from a header field: the address of no connection
    let outcome = lines(&[&line(1, 0), &line(2, 0)]);
    assert_eq!(outcome.connections().len(), 0);
    // Envoy's own format has fewer values
    let envoy = r#"[2026-11-21T08:00:01.250Z] "GET /1 HTTP/1.1" 200 - 0 135 3 1 "-" "Mozilla/5.0 (X11; Linux) Gecko" "84961386" "a.example" "10.44.1.27:80""#;
    let outcome = lines(&[envoy]);
    let evidence = outcome.accounts[0].evidence.as_deref().unwrap();
    assert!(evidence.contains("in Envoy's format"), "{evidence}");
    assert_eq!(outcome.exchanges().count(), 1);
}

#[test]
fn numbers_without_names_are_not_guessed_and_the_option_that_names_them_is_printed() {
    let line = |end: &str| {
        format!(
            r#"192.0.2.1 - - [21/Nov/2026:08:00:01 +0000] "GET /1 HTTP/1.1" 200 5 "-" "curl/8"{end}"#
        )
    };
    let words = |end: &str| {
        let outcome = lines(&[&line(end), &line(end)]);
        assert_eq!(outcome.connections().len(), 0, "{end}");
        let caveat = outcome.caveat("log-without-connections").unwrap();
        caveat.message.clone()
    };
    let option = r#"--log-format '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent" $connection"#;
    assert!(words(" 17 2").contains(&format!("{option} $connection_requests' reads")));
    assert!(words(" 17").contains(&format!("{option}' reads")));
    assert!(!words("").contains("--log-format") && !words(" rt=1").contains("--log-format"));
}

#[test]
fn the_frontends_of_haproxy_are_destinations_of_their_own() {
    let line = |second: u32, frontend: &str| {
        format!(
            r#"10.0.1.2:{} [21/Nov/2026:08:00:{second:02}.655] {frontend} static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 "GET / HTTP/1.1""#,
            5000 + second
        )
    };
    let outcome = lines(&[&line(1, "web"), &line(2, "api"), &line(3, "web~")]);
    let origins: Vec<String> = outcome
        .connections()
        .iter()
        .map(|one| one.origin.as_ref().unwrap().to_string())
        .collect();
    assert_eq!(origins, ["http://web", "http://api", "https://web"]);
}

#[test]
fn traefiks_lines_have_a_duration_and_advice_of_their_own() {
    let line = r#"192.0.2.1 - - [21/Nov/2026:08:00:01 +0000] "GET /1 HTTP/1.1" 200 5 "-" "curl/8" 1 "web@docker" "http://10.0.0.5:80" 3ms"#;
    let outcome = lines(&[line, line]);
    assert!(outcome.exchanges().all(|one| one.latency() == 3_000_000));
    let advice = outcome.accounts[0].advice.join("\n");
    assert!(
        advice.contains("format: json") && !advice.contains("nginx"),
        "{advice}"
    );
    for caveat in outcome.caveats() {
        assert!(!caveat.message.clone().contains("nginx"), "{caveat:?}");
    }
}

#[test]
fn an_empty_request_line_and_a_request_that_was_not_completed_count() {
    let line = |number: u32, request: &str, status: u32, more: &str| {
        format!(
            r#"{{"time_iso8601":"2026-11-21T08:00:0{number}+00:00","remote_addr":"192.0.2.1","connection":"{number}","connection_requests":"1","request":"{request}","status":"{status}"{more}}}"#
        )
    };
    let incomplete = r#","request_completion":"""#;
    let outcome = lines(&[
        &line(1, "GET / HTTP/1.1", 200, r#","request_completion":"OK""#),
        &line(2, "", 400, ""),
        // the client closed
        &line(3, "", 400, r#","body_bytes_sent":"0""#),
        &line(4, "GET / HTTP/1.1", 200, incomplete),
        &line(5, "GET / HTTP/1.1", 499, incomplete),
    ]);
    assert_eq!(outcome.connections().len(), 5);
    let outcomes: Vec<_> = outcome.exchanges().map(|one| one.outcome).collect();
    let failed = Ended::Failed;
    assert_eq!(
        outcomes,
        [
            Ended::Ok,
            Ended::Ok,
            failed(Failure::UnknownKind),
            failed(Failure::ClientClosed)
        ]
    );
}
