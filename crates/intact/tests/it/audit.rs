//! `intact audit` as a person runs it: pages, JSON, files, exit codes.

use crate::program::{Schema, intact};
use packets::{Capture, ETHERNET, End, RAW, Tcp, ethernet, ip, plain, udp};
use serde_json::Value;
use std::path::Path;
use std::process::Output;

#[path = "../../../audit/tests/it/packets.rs"]
#[allow(dead_code, reason = "the tests of the library use the rest")]
pub(crate) mod packets;

fn fixture(name: &str) -> String {
    format!("{}/../../fixtures/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn code(out: &Output) -> i32 {
    out.status.code().unwrap()
}

fn page(out: &Output) -> String {
    String::from_utf8_lossy(&out.stdout).into_owned()
}

fn said(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

fn document(words: &[&str]) -> Value {
    let mut all = vec!["audit", "--json"];
    all.extend_from_slice(words);
    let out = intact(&all);
    serde_json::from_slice(&out.stdout).unwrap_or_else(|error| panic!("{error}: {}", said(&out)))
}

#[test]
fn without_durations_there_is_no_latency_and_not_one_of_0() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    let line = |nth: u32, timed: &str| {
        format!(
            "::1 - - [10/Oct/2000:13:55:3{nth} +0000] \"GET /{nth} HTTP/1.1\" 200 5 \"-\" \"-\" conn=1 reqs={nth}{timed}\n"
        )
    };
    let mut means = Vec::new();
    for timed in ["", " rt=0.250"] {
        std::fs::write(&log, [1, 2, 3].map(|nth| line(nth, timed)).concat()).unwrap();
        let document = document(&[log.to_str().unwrap()]);
        assert_eq!(document["reused"], 2);
        let totals = &document["totals"];
        means.push((
            totals["outbound_ms"].as_f64(),
            totals["latency_ms"]["mean"].as_f64(),
        ));
    }
    assert_eq!(means, [(None, None), (Some(750.0), Some(250.0))]);
    let zeek = document(&[&fixture("logs/zeek")]);
    assert!(zeek["totals"]["outbound_ms"].is_null(), "{zeek:#}");
    assert_eq!(
        zeek["connections"]["ended_by"],
        serde_json::json!({"client": 16, "server": 1})
    );
}

/// The ends of a figure; `None` where it has none.
type Ends = (Option<f64>, Option<f64>);

const UNKNOWN: Ends = (None, None);

fn exactly(value: u32) -> Ends {
    (Some(value.into()), Some(value.into()))
}

fn at_least(value: u32) -> Ends {
    (Some(value.into()), None)
}

/// The ends of a figure in JSON. One that is not known is null, and has a reason.
fn ends(object: &Value, key: &str) -> Ends {
    let Some(bounds) = object["bounds"].get(key) else {
        let value = object[key].as_f64();
        assert!(value.is_some(), "{key} in {object:#}");
        return (value, value);
    };
    assert_eq!(object[key], Value::Null, "{key} in {object:#}");
    assert_ne!(bounds["why"].as_str().unwrap_or(""), "", "{bounds}");
    (bounds["low"].as_f64(), bounds["high"].as_f64())
}

#[test]
fn every_kind_of_input_gives_a_document_of_the_schema() {
    let schema = Schema::named("traffic");
    for (name, requests, opened) in [
        ("captures/nginx-curl.pcapng", exactly(15), exactly(10)),
        ("captures/nginx-curl.pcap", at_least(8), exactly(10)),
        (
            "har/browsertime_h2_filamentgroup.com.har",
            exactly(44),
            exactly(6),
        ),
        ("har/mitm-chrome.har", exactly(3), at_least(2)),
        ("logs/nginx-intact.log", exactly(15), exactly(10)),
        ("logs/nginx-combined.log", exactly(15), UNKNOWN),
        ("logs/caddy.log", exactly(5), exactly(3)),
        ("tools/oha-http2.csv", at_least(17), at_least(3)),
        ("tools/k6.json.gz", exactly(40), exactly(7)),
        ("netlog/plain.log", exactly(11), exactly(4)),
        ("logs/zeek", at_least(17), exactly(17)),
    ] {
        let document = document(&[&fixture(name)]);
        schema.check(&document);
        assert_eq!(document["schema"], "intact.audit/1");
        let (seen, total) = (&document["connections"], &document["requests"]);
        assert_eq!(ends(total, "total"), requests, "{name}");
        assert_eq!(ends(seen, "opened"), opened, "{name}");
        assert!(!document["inputs"][0]["read"].is_null());
    }
}

#[test]
fn what_cannot_be_seen_is_not_zero() {
    let blind = fixture("captures/tls-1.2-stream-keylog.pcap");
    assert_eq!(document(&[&blind])["reuse"], Value::Null);
    let out = intact(&["audit", &blind, "--require", "reuse >= 0%"]);
    assert_eq!(code(&out), 1, "{}", said(&out));
    let keys = fixture("captures/tls-1.2-stream-keylog.keys");
    let seen = document(&[&blind, "--keylog", &keys]);
    assert_eq!(
        (&seen["requests"]["total"], &seen["reused"]),
        (&16.into(), &15.into())
    );
    let log = document(&[&fixture("logs/nginx-combined.log")]);
    assert_eq!(log["reuse"], Value::Null);
}

/// A log of four connections, one request each, with `client` as a further field of each line.
fn log_of_four(client: impl Fn(u8) -> String) -> String {
    let line = |nth: u8| {
        format!(
            r#"{{"time":"2026-11-27T10:00:0{nth}.250Z","request":"GET / HTTP/1.1","status":200,"request_time":"0.002","connection":{nth},"connection_requests":1{}}}"#,
            client(nth)
        )
    };
    (1..=4).map(|nth| line(nth) + "\n").collect()
}

#[test]
fn connections_of_unknown_clients_may_all_be_needed() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("access.log");
    let path = log.to_str().unwrap();
    let verdict = |client: &dyn Fn(u8) -> String| {
        std::fs::write(&log, log_of_four(client)).unwrap();
        let out = intact(&["audit", path, "--require", "avoidable == 0"]);
        let document = document(&[path]);
        let first = document["verdict"][0].as_str().unwrap().to_owned();
        (
            code(&out),
            first,
            document["findings"].as_array().unwrap().len(),
        )
    };
    let (code, first, findings) = verdict(&|_| String::new());
    assert_eq!((code, findings), (1, 0), "{first}");
    assert!(
        first.contains("1 to 4 would do: the input does not show which client"),
        "{first}"
    );
    let (code, first, findings) = verdict(&|nth| format!(r#","remote":"10.0.0.{nth}:4000""#));
    assert_eq!((code, findings), (0, 0), "{first}");
    let (code, first, _) = verdict(&|nth| format!(r#","remote":"10.0.0.1:400{nth}""#));
    assert_eq!(code, 1);
    assert!(
        first.contains("4 connections were opened where 1 would do"),
        "{first}"
    );
}

#[test]
fn a_log_without_the_fields_prints_the_directive_unbroken() {
    let out = intact(&["audit", &fixture("logs/nginx-combined.log")]);
    let page = page(&out);
    let directive = "log_format intact '$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent '\n";
    assert!(page.contains(directive), "{page}");
}

#[test]
fn the_ladder_draws_packets_and_counts_answers() {
    let out = intact(&[
        "audit",
        &fixture("captures/nginx-curl.pcapng"),
        "--ladder=9",
    ]);
    let page = page(&out);
    assert!(page.contains("ClientHello"), "{page}");
    assert!(page.contains("HEADERS[1] end GET /a"), "{page}");
    assert!(
        page.contains("HTTP/2: 4 with header section and body together, 1 with the body in a"),
        "{page}"
    );
    let out = intact(&["audit", &fixture("logs/caddy.log"), "--ladder"]);
    assert!(said(&out).contains("no such connection"), "{}", said(&out));
}

#[test]
fn a_kept_ledger_gives_the_same_facts_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (ledger, csv, har) = (path("ledger"), path("a.csv"), path("a.har"));
    let words = [
        &fixture("captures/bro.org.pcap"),
        "--ledger",
        &ledger,
        "--csv",
        &csv,
        "--har",
        &har,
    ];
    let mut first = document(&words);
    let out = intact(&["report", &ledger, "--json"]);
    let second: Value = serde_json::from_slice(&out.stdout).unwrap();
    for key in ["inputs", "answers", "changes"] {
        first.as_object_mut().unwrap().remove(key);
    }
    // who a request was from is never written
    let evidence = first["run"]["evidence"].as_array_mut().unwrap();
    evidence.retain(|one| one != "identities");
    assert!(
        first == second,
        "a ledger gives other facts than its recording"
    );
    // a ledger is an input, too; two of them are read as one
    let replayed = document(&[&ledger]);
    for key in ["requests", "connections", "reused", "findings", "totals"] {
        assert_eq!(replayed[key], first[key], "{key}");
    }
    let twice = document(&[&ledger, &ledger]);
    assert_eq!(ends(&twice["requests"], "total"), at_least(62));
    assert_eq!(ends(&twice["connections"], "opened"), at_least(26));
    assert_eq!(std::fs::read_to_string(&csv).unwrap().lines().count(), 32);
    // our own export is one of the inputs
    let again = document(&[&har]);
    assert_eq!(again["requests"]["total"], 31);
}

#[test]
fn exit_codes_name_what_happened() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &[u8]| {
        let path = dir.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let capture = fixture("captures/get_nosyn.pcap");
    let har = fixture("har/humanssuck.har");
    let empty = file("empty", b"");
    let text = file("text", b"hello\nworld\n");
    let bomb = file("not-gzip", b"\x1f\x8b\x08\0broken");
    let folder = dir.path().to_str().unwrap();
    let missing = file("there", b"x") + "-not";
    for (words, expected, wanted) in [
        (&[capture.as_str()][..], 0, ""),
        (&[&empty], 5, "is empty"),
        (&[&text], 5, "no format that audit reads"),
        (&[&bomb], 5, "compressed"),
        (&[folder], 5, "is empty"),
        (&[&missing], 5, "(os error 2)"),
        (&[&capture, &missing], 0, ""),
        (&[&capture, &har], 2, "one at a time"),
        (&[&capture, "--require", "requests == 1"], 0, "met"),
        (&[&capture, "--require", "requests == 2"], 1, ""),
        // one that was open before: it was not opened, but may be avoidable
        (&[&capture, "--require", "connections == 1"], 1, "is 0"),
        (&[&capture, "--require", "connections == 0"], 0, "met"),
        (&[&capture, "--require", "connections <= 1"], 0, "met"),
        (
            &[&capture, "--require", "avoidable == 0"],
            1,
            "is 0 to 1, which does not decide",
        ),
        (&[&capture, "--require", "help"], 0, ""),
        (&[&capture, "--log-format", "nothing"], 2, "names no values"),
        (&[&capture, "--keylog", &missing], 5, "--keylog"),
        (&[], 2, "FILE"),
    ] {
        let mut all = vec!["audit"];
        all.extend_from_slice(words);
        let out = intact(&all);
        assert_eq!(code(&out), expected, "{words:?} {}", said(&out));
        assert!(said(&out).contains(wanted), "{words:?} {}", said(&out));
    }
}

#[test]
fn an_input_that_cannot_be_read_next_to_one_that_can_is_a_caveat() {
    let capture = fixture("captures/get_nosyn.pcap");
    let document = document(&[&capture, Path::new("/no/such/file").to_str().unwrap()]);
    assert_eq!(caveat(&document, "input-not-read")["incomplete"], true);
}

/// Writes captures into a folder.
fn captures<const N: usize>(all: [(&str, Vec<u8>); N]) -> (tempfile::TempDir, [String; N]) {
    let folder = tempfile::tempdir().unwrap();
    let paths = all.map(|(name, bytes)| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    });
    (folder, paths)
}

fn caveat<'a>(document: &'a Value, id: &str) -> &'a Value {
    let mut all = document["caveats"].as_array().unwrap().iter();
    all.find(|one| one["id"] == id)
        .unwrap_or_else(|| panic!("no {id} in {:#}", document["caveats"]))
}

#[test]
fn a_capture_that_cannot_be_decoded_is_unreadable_and_not_without_connections() {
    let http = Tcp::opened(40_000).exchange("/a").exchange("/b").close();
    let esp = |packet: &[u8]| ip(50, 1, 2, packet);
    let gtp = |packet: &[u8]| {
        udp(
            2152,
            2152,
            &[&[0x30, 255, 0, 0, 0, 0, 0, 1], packet].concat(),
        )
    };
    let (_folder, [hidden, unknown, tunnel]) = captures([
        ("esp.pcap", Capture::of(RAW, &http.all(), esp)),
        ("link.pcap", Capture::of(220, &http.all(), plain)),
        ("gtp.pcap", Capture::of(RAW, &http.all(), gtp)),
    ]);
    for (path, name) in [
        (&hidden, "IPsec ESP: 12"),
        (&unknown, "unknown link type 220 (USB): 12"),
    ] {
        for words in [
            &["audit", path][..],
            &["audit", path, "--require", "avoidable == 0"],
        ] {
            let out = intact(words);
            assert_eq!(code(&out), 5, "{}", said(&out));
            assert!(said(&out).contains(name), "{}", said(&out));
            assert_eq!(page(&out), "");
        }
    }
    // with one that can be read it is what is missing
    let both = document(&[&tunnel, &hidden]);
    assert_eq!(ends(&both["requests"], "total"), at_least(2));
    assert_eq!(ends(&both["connections"], "opened"), at_least(1));
    let missing = caveat(&both, "input-not-read");
    assert_eq!(missing["incomplete"], true);
    assert!(missing["message"].as_str().unwrap().contains("IPsec ESP"));
}

#[test]
fn a_capture_without_connections_is_not_praised() {
    let arp = ethernet(0x0806, &[0; 28]);
    let (_folder, [path]) = captures([(
        "arp.pcap",
        Capture::of(ETHERNET, &[arp.clone(), arp], plain),
    )]);
    let out = intact(&["audit", &path]);
    assert_eq!(code(&out), 0, "{}", said(&out));
    let page = page(&out);
    assert!(
        page.contains("Nothing was observed: no TCP or QUIC connection in 2 packets"),
        "{page}"
    );
    assert!(!page.contains("nothing was measured"), "{page}");
    let document = document(&[&path]);
    assert_eq!(document["verdict"].as_array().unwrap().len(), 1);
    assert_eq!(caveat(&document, "no-connections")["incomplete"], true);
}

#[test]
fn connections_of_another_protocol_are_not_called_unused() {
    let socks = |port| {
        let tcp = Tcp::opened(port).to(1080).say(End::Client, b"\x05\x01\x00");
        tcp.say(End::Server, b"\x05\x00").close().all()
    };
    let packets: Vec<Vec<u8>> = (40_000..40_004).flat_map(socks).collect();
    let (_folder, [path]) = captures([("socks.pcap", Capture::of(RAW, &packets, plain))]);
    let document = document(&[&path]);
    assert_eq!(document["totals"]["opaque"], 4);
    assert_eq!(caveat(&document, "not-http")["id"], "not-http");
    let findings = document["findings"].to_string();
    assert!(!findings.contains("never used"), "{findings}");
    // nothing shows that one of them can be used again
    assert!(findings.contains("\"severity\":\"info\""), "{findings}");
    assert!(!findings.contains("\"severity\":\"warning\""), "{findings}");
}

#[test]
fn connections_that_were_not_seen_into_leave_something_to_gain() {
    let socks = |port| {
        let tcp = Tcp::opened(port).to(1080).say(End::Client, b"\x05\x01\x00");
        tcp.say(End::Server, b"\x05\x00").all()
    };
    let http = Tcp::opened(39_999).exchange("/a").exchange("/b").all();
    let packets: Vec<Vec<u8>> = (40_000..40_007).flat_map(socks).chain(http).collect();
    let (_folder, [path]) = captures([("both.pcap", Capture::of(RAW, &packets, plain))]);
    let page = page(&intact(&["audit", &path]));
    assert!(!page.contains("No connection was avoidable"), "{page}");
    assert!(
        page.contains("requests on 7 connections cannot be"),
        "{page}"
    );
}

#[test]
fn a_gate_on_what_was_cut_off_fails_and_one_on_what_was_not_holds() {
    let http = Tcp::opened(40_000).exchange("/a").exchange("/b").close();
    let (_folder, [cut]) = captures([("cut.pcap", Capture::cut(&http.all(), 60))]);
    for requirement in [
        "reuse >= 50%",
        "requests == 2",
        "avoidable == 0",
        "findings == 0",
    ] {
        let (exit, words) = gate(&cut, requirement);
        assert_eq!(exit, 1, "{requirement}: {words}");
        assert!(
            words.contains("cut off at 60 bytes (snap length)"),
            "{words}"
        );
        assert!(words.contains("`tcpdump -s 0`"), "{words}");
    }
    assert_eq!(gate(&cut, "connections == 1").0, 0);
    let page = page(&intact(&["audit", &cut]));
    assert!(page.contains("at least 2 requests"), "{page}");
}

#[test]
fn what_a_capture_or_a_log_lacks_is_marked() {
    let long = format!("/{}", "a".repeat(80));
    let http = Tcp::opened(40_000).exchange("/a").exchange(&long).close();
    let (_folder, [cut, lost, one_way]) = captures([
        ("cut.pcap", Capture::cut(&http.all(), 96)),
        (
            "lost.pcap",
            Capture::of(RAW, &http.without("GET /a "), plain),
        ),
        ("one.pcap", Capture::of(RAW, &http.only(End::Client), plain)),
    ]);
    for (path, id) in [
        (cut, "packets-cut"),
        (lost, "packets-missing"),
        (one_way, "one-direction"),
    ] {
        let document = document(&[&path]);
        assert_eq!(caveat(&document, id)["incomplete"], true, "{id}");
        // none failed that was seen, and others may have
        let failed = &document["requests"]["failed"];
        assert_eq!(ends(failed, "other"), UNKNOWN, "{id}");
        let mut keys: Vec<&String> = failed.as_object().unwrap().keys().collect();
        keys.sort();
        assert_eq!(keys, ["bounds", "other"], "{id}");
    }
}

#[test]
fn logs_of_before_and_after_show_when_it_changed() {
    let dir = tempfile::tempdir().unwrap();
    let log = |name: &str, from: u64, line: &dyn Fn(u64) -> String| {
        let folder = dir.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        let lines = (0..400).map(|nth| {
            let at = 1_795_248_000 + from + nth;
            format!(
                "::1 - - [21/Nov/2026:08:00:00 +0000] \"GET / HTTP/1.1\" 200 5 \"-\" \"-\" msec={at}.5 {}\n",
                line(nth)
            )
        });
        std::fs::write(folder.join("access.log"), lines.collect::<String>()).unwrap();
        folder.to_str().unwrap().to_owned()
    };
    let before = log("before", 0, &|nth| {
        format!("rt=0.12{} conn={nth} reqs=1", nth % 10)
    });
    let after = log("after", 400, &|nth| {
        format!("rt=0.03{} conn=999 reqs={}", nth % 10, nth + 1)
    });
    let facts = document(&[&after, &before]);
    let change = &facts["changes"][0];
    // the second request on the kept connection is the first that reuses it; times count from the
    // start of the first request
    let at_s = change["at_s"].as_f64().unwrap();
    assert!((at_s - 401.12).abs() < 1e-6, "{change}");
    assert_eq!(change["within_s"], 1.0, "{change}");
    assert!(
        change["before"]["reuse"].as_f64().unwrap() < 0.1,
        "{change}"
    );
    assert!(change["after"]["reuse"].as_f64().unwrap() > 0.9, "{change}");
    let out = intact(&["audit", &before, &after]);
    assert!(
        page(&out).contains("\nOver time\n") && page(&out).contains("compare` gives one"),
        "{}",
        page(&out)
    );
    // the first sentence, with a date
    let headline = page(&out).lines().nth(3).unwrap_or_default().to_owned();
    assert!(
        headline.contains("Since 21 November 2026 08:06:41 UTC"),
        "{headline}"
    );
    assert!(headline.contains("-89.8 ms per request ("), "{headline}");
    // the first request of the kept connection is fresh
    assert!(headline.ends_with("reuse 0 % -> 100 %."), "{headline}");
}

/// Two files of a second each, one right after the other, and three weeks later.
#[test]
fn a_change_between_files_that_follow_closely_is_found() {
    for pause in [0, 21 * 86_400] {
        let dir = tempfile::tempdir().unwrap();
        let log = |name: &str, from: u64, line: &dyn Fn(u64) -> String| {
            let path = dir.path().join(name);
            let lines = (0..100).map(|nth| {
                let at = 1_795_248_000 + from;
                format!(
                    "::1 - - [x] \"GET / HTTP/1.1\" 200 5 \"-\" \"-\" msec={at}.{:03} {}\n",
                    nth * 10,
                    line(nth)
                )
            });
            std::fs::write(&path, lines.collect::<String>()).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let before = log("before", 0, &|nth| format!("rt=0.500 conn={nth} reqs=1"));
        let after = log("after", 1 + pause, &|nth| {
            format!("rt=0.010 conn=999 reqs={}", nth + 1)
        });
        let change = &document(&[&before, &after])["changes"][0];
        assert_eq!(change["shifted"], "reuse", "{change}");
        let difference = change["difference_ms"]["value"].as_f64().unwrap();
        assert!((difference + 490.0).abs() < 6.0, "{change}");
        let at_s = change["at_s"].as_f64().unwrap();
        // nanosecond 0 is the start of the first request, half a second before its end
        assert!((at_s - (1.5 + pause as f64)).abs() < 0.05, "{change}");
    }
}

#[test]
fn the_logs_of_zeek_do_not_show_an_announced_end() {
    for rule in ["lost-in-drain", "connection-close-sent"] {
        let gate = format!("findings.{rule} == 0");
        let out = intact(&["audit", &fixture("logs/zeek"), "--require", &gate]);
        assert_eq!(out.status.code(), Some(1), "{rule}: {out:?}");
        let text = String::from_utf8_lossy(&out.stderr) + String::from_utf8_lossy(&out.stdout);
        assert!(text.contains("what is announced on connections"), "{text}");
    }
}

#[test]
fn a_folder_of_zeek_is_read_and_the_logs_that_say_nothing_are_named_together() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["conn.log", "http.log"] {
        let from = fixture(&format!("logs/zeek/{name}"));
        std::fs::copy(from, folder.path().join(name)).unwrap();
    }
    for name in ["dns", "files", "weird"] {
        let head = format!("#separator \\x09\n#path\t{name}\n#fields\tts\tuid\n");
        std::fs::write(folder.path().join(format!("{name}.log")), head).unwrap();
    }
    let document = document(&[folder.path().to_str().unwrap()]);
    assert_eq!(ends(&document["requests"], "total"), at_least(17));
    let unread = document["caveats"].as_array().unwrap().iter();
    let unread: Vec<_> = unread.filter(|one| one["id"] == "input-not-read").collect();
    assert_eq!(unread.len(), 1, "{unread:?}");
    // they say nothing of connections: nothing is missing without them
    assert!(unread[0].get("incomplete").is_none());
    let words = unread[0]["message"].as_str().unwrap();
    assert!(words.contains("dns.log, files.log, weird.log"), "{words}");
}

/// A log of 20 connections with 2 requests each, in the format of nginx with `$connection` and
/// without `$connection_requests`.
fn log_without_positions(folder: &Path) -> String {
    let log = folder.join("access.log");
    // the ids repeat from the first line on, so that which request was the first on its connection
    // is unknown
    let line = |nth: u32| {
        format!(
            "::1 - - [10/Oct/2000:13:55:{:02} +0000] \"GET /{nth} HTTP/1.1\" 200 5 \"-\" \"-\" conn={}\n",
            nth,
            100 - nth % 20
        )
    };
    std::fs::write(&log, (0..40).map(line).collect::<String>()).unwrap();
    log.to_str().unwrap().to_owned()
}

fn gate(log: &str, requirement: &str) -> (i32, String) {
    let out = intact(&["audit", "--require", requirement, log]);
    (code(&out), said(&out))
}

#[test]
fn unknown_reuse_is_a_range_and_a_gate_takes_its_unfavourable_end() {
    let folder = tempfile::tempdir().unwrap();
    let log = log_without_positions(folder.path());
    let document = document(&[&log]);
    assert_eq!(ends(&document["totals"], "reuse"), (Some(0.5), Some(1.0)));
    let (exit, words) = gate(&log, "reuse > 80%");
    assert_eq!(exit, 1, "{words}");
    assert!(
        words.contains("is 50 % to 100 %, which does not decide"),
        "{words}"
    );
    assert_eq!(gate(&log, "reuse >= 50%").0, 0);
    let page = page(&intact(&["audit", &log]));
    assert!(page.contains("50 % to 100 %"), "{page}");
}

/// Twenty connections with one request each, in one second, one after another or all at once: the
/// log is the same.
#[test]
fn times_to_the_second_leave_needed_connections_and_idle_times_open() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    let line = |nth: u32| {
        format!(
            "::1 - - [10/Oct/2000:13:55:{:02} +0000] \"GET /{nth} HTTP/1.1\" 200 5 \"-\" \"-\" conn={} reqs={}\n",
            30 + nth / 20,
            100 + nth % 20,
            1 + nth / 20
        )
    };
    std::fs::write(&log, (0..40).map(line).collect::<String>()).unwrap();
    let log = log.to_str().unwrap();
    let page = page(&intact(&["audit", log]));
    let flat = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("opened where 1 to 20 would do"), "{page}");
    assert!(!page.contains("Idle time"), "{page}");
    let (exit, words) = gate(log, "avoidable == 0");
    assert_eq!(exit, 1, "{words}");
    assert!(
        words.contains("is 0 to 19, which does not decide"),
        "{words}"
    );
    assert_eq!(gate(log, "needed >= 20").0, 1);
    assert_eq!(gate(log, "connections == 20").0, 0);
    assert_eq!(gate(log, "warnings == 0").0, 1);
    let out = intact(&["audit", "--fail-on", "warning", log]);
    assert_eq!(code(&out), 1, "{}", said(&out));
    assert!(
        said(&out).contains("up to 19 connections more may have been avoidable"),
        "{}",
        said(&out)
    );
}

/// A log does not show which side ends connections. Of a client that keeps them, and whose server
/// allows it 20 requests on each, nothing is known to be wrong.
#[test]
fn what_a_log_does_not_show_of_ends_is_left_open() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    let of_five = |each: u32| {
        let line = |nth: u32| {
            format!(
                "::1 - - [10/Oct/2000:13:55:30 +0000] \"GET /{nth} HTTP/1.1\" 200 5 \"-\" \"-\" msec={}.{:03} rt=0.001 conn={} reqs={}\n",
                971_186_130 + nth / 100,
                nth % 100 * 10,
                1 + nth / each,
                1 + nth % each
            )
        };
        std::fs::write(&log, (0..5 * each).map(line).collect::<String>()).unwrap();
        log.to_str().unwrap()
    };
    let log = of_five(20);
    let kept = document(&[log]);
    let bounds = ends(&kept["totals"], "avoidable");
    assert_eq!(bounds, (Some(0.0), Some(4.0)), "{kept:#}");
    let needed = ends(&kept["totals"]["connections"], "needed");
    assert_eq!(needed, (Some(1.0), Some(5.0)), "{kept:#}");
    assert_eq!(kept["findings"], serde_json::json!([]));
    assert_eq!(gate(log, "avoidable == 0").0, 1);
    assert_eq!(gate(log, "warnings == 0").0, 0);
    let log = of_five(2);
    let page = page(&intact(&["audit", log]));
    let flat = page.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "5 connections were opened where 1 would do if the server ended none",
        "The server may have ended the others",
        "[new-connection-per-request]",
    ] {
        assert!(flat.contains(words), "{words}: {page}");
    }
    assert_eq!(gate(log, "warnings == 0").0, 1);
}

#[test]
fn without_connection_data_no_gate_on_connections_passes() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    let line = |nth: u32| {
        format!(
            "192.0.2.{nth} - - [10/Oct/2000:13:55:{nth:02} +0000] \"GET /{nth} HTTP/1.1\" 200 5 \"-\" \"-\"\n"
        )
    };
    std::fs::write(&log, (0..50).map(line).collect::<String>()).unwrap();
    let log = log.to_str().unwrap();
    for requirement in [
        "avoidable == 0",
        "connections <= 4",
        "needed <= 4",
        "reuse >= 0%",
        "requests-per-connection >= 0",
    ] {
        let (exit, words) = gate(log, requirement);
        assert_eq!(exit, 1, "{requirement}: {words}");
        assert!(words.contains("is unknown ("), "{words}");
    }
    for requirement in ["requests == 50", "failed == 0"] {
        assert_eq!(gate(log, requirement).0, 0, "{requirement}");
    }
    let out = intact(&["audit", "--fail-on", "warning", log]);
    assert_eq!(code(&out), 1, "{}", said(&out));
    assert!(said(&out).contains("which connection carried a request"));
}

#[test]
fn connections_that_cannot_be_read_pass_no_gate_on_what_they_carry() {
    let capture = fixture("captures/quic.pcapng");
    for requirement in [
        "avoidable == 0",
        "reuse >= 1%",
        "failed == 0",
        "findings == 0",
    ] {
        let (exit, words) = gate(&capture, requirement);
        assert_eq!(exit, 1, "{requirement}: {words}");
    }
    assert_eq!(gate(&capture, "connections == 3").0, 0);
    let out = intact(&["audit", "--fail-on", "warning", &capture]);
    assert_eq!(code(&out), 1, "{}", said(&out));
}
