//! Captures that others recorded, compared with what tshark counts per stream.

use crate::reading::{self, Outcome};
use intact_audit::KeyLog;
use intact_ledger::{CloseKind, ClosePoint, Connection, Outcome as Ended, Protocol, Reuse, Side};
use std::collections::BTreeMap;

/// One stream according to tshark.
#[derive(Debug, Default)]
struct Stream {
    client: u16,
    server: u16,
    requests: usize,
    closed_first: String,
}

/// Streams and totals by file.
fn truth() -> BTreeMap<String, (Vec<Stream>, BTreeMap<String, String>)> {
    let text = std::fs::read_to_string(reading::fixture("captures/truth.tsv")).unwrap();
    let mut files: BTreeMap<String, (Vec<Stream>, BTreeMap<String, String>)> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split('\t').collect();
        let file = files.entry(words[1].to_owned()).or_default();
        match words[0] {
            "stream" => file.0.push(Stream {
                client: words[3].parse().unwrap(),
                server: words[4].parse().unwrap(),
                requests: words[7].parse().unwrap(),
                closed_first: words[9].to_owned(),
            }),
            _ => file.1.extend(
                words[2..]
                    .iter()
                    .filter_map(|word| word.split_once('='))
                    .map(|(key, value)| (key.to_owned(), value.to_owned())),
            ),
        }
    }
    files
}

fn audited(name: &str) -> Outcome {
    let keys = if name.contains("keylog") {
        reading::keys("captures/tls-1.2-stream-keylog.keys")
    } else {
        KeyLog::default()
    };
    reading::file(&format!("captures/{name}"), keys)
}

fn ports(connection: &Connection) -> (u16, u16) {
    let port = |end: Option<std::net::SocketAddr>| end.unwrap().port();
    (port(connection.local), port(connection.peer))
}

#[test]
fn streams_requests_and_closers_are_those_that_tshark_sees() {
    let truth = truth();
    assert_eq!(truth.len(), 8);
    for (name, (streams, totals)) in truth {
        // tshark does not read HTTP/0.9
        if name == "http_09.pcap" {
            continue;
        }
        let outcome = audited(&name);
        let connections = outcome.connections();
        assert_eq!(connections.len(), streams.len(), "{name}");
        for (connection, stream) in connections.iter().zip(&streams) {
            assert_eq!(ports(connection), (stream.client, stream.server), "{name}");
            let exchanges = outcome.exchanges_on(connection.id);
            assert_eq!(exchanges.len(), stream.requests, "{name} {stream:?}");
            let closed = outcome.end_of(connection.id).map(|closed| &closed.close);
            let first = match closed.map(|close| (close.by, close.how)) {
                None => "none",
                Some((Some(Side::Client), Some(CloseKind::Rst))) => "client-RST",
                Some((Some(Side::Client), _)) => "client-FIN",
                Some((Some(Side::Server), Some(CloseKind::Rst))) => "server-RST",
                Some((Some(Side::Server), _)) => "server-FIN",
                Some((None, _)) => "unknown",
            };
            assert_eq!(first, stream.closed_first, "{name} {stream:?}");
        }
        let reused = outcome
            .exchanges()
            .filter(|exchange| exchange.reuse == Some(Reuse::Reused));
        assert_eq!(
            reused.count().to_string(),
            totals["reused_requests"],
            "{name}"
        );
        assert_eq!(
            outcome.exchanges().count().to_string(),
            totals["requests"],
            "{name}"
        );
    }
}

#[test]
fn the_first_connection_to_an_origin_has_the_product_of_its_server() {
    let outcome = audited("nginx-curl.pcap");
    let mut named = BTreeMap::new();
    for connection in outcome.connections() {
        if let Some(server) = connection.server.as_deref() {
            assert_eq!(server, "nginx/1.22.1");
            let origin = connection.origin.as_ref().unwrap().to_string();
            *named.entry(origin).or_insert(0) += 1;
        }
    }
    assert!(
        !named.is_empty() && named.values().all(|count| *count == 1),
        "{named:?}"
    );
}

#[test]
fn an_old_request_of_one_line_is_an_exchange_too() {
    let outcome = audited("http_09.pcap");
    assert_eq!(outcome.connections().len(), 5);
    let old: Vec<_> = outcome.exchanges().collect();
    assert_eq!(old.len(), 1, "{old:#?}");
    assert_eq!(old[0].target.as_ref().unwrap().as_str(), "/zeek.html");
    let connection = outcome.connections()[0];
    assert_eq!(connection.protocol, Some(Protocol::Http09));
}

#[test]
fn an_interim_response_is_not_the_response() {
    let outcome = audited("100-continue.pcap");
    let one = outcome.exchanges().next().unwrap();
    assert_eq!(one.status, Some(200));
    assert_eq!(one.outcome, Ended::Ok);
}

#[test]
fn a_connection_that_leaves_http_carried_one_exchange() {
    let outcome = audited("websocket.pcap");
    let connection = outcome.connections()[0];
    assert_eq!(connection.protocol, Some(Protocol::Tunnel));
    assert_eq!(outcome.exchanges().next().unwrap().status, Some(101));
}

#[test]
fn the_first_exchange_of_a_connection_joined_late_is_neither_fresh_nor_reused() {
    let outcome = audited("get_nosyn.pcap");
    let one = outcome.exchanges().next().unwrap();
    assert_eq!((one.reuse, one.ordinal), (None, None));
    assert!(outcome.caveat("joined-late").is_some());
}

#[test]
fn pipelined_requests_are_separate() {
    let outcome = audited("pipelined-requests.pcap");
    let reuse: Vec<_> = outcome.exchanges().map(|one| one.reuse.unwrap()).collect();
    let reused = Reuse::Reused;
    assert_eq!(reuse, [Reuse::Fresh, reused, reused, reused, reused]);
    let ordinals: Vec<_> = outcome
        .exchanges()
        .map(|one| one.ordinal.unwrap())
        .collect();
    assert_eq!(ordinals, [1, 2, 3, 4, 5]);
}

#[test]
fn unused_connections_are_recorded_as_unused() {
    let outcome = audited("bro.org.pcap");
    let unused = outcome
        .connections()
        .iter()
        .filter_map(|connection| outcome.end_of(connection.id))
        .filter(|closed| closed.close.moment == Some(ClosePoint::Unused))
        .count();
    assert_eq!(unused, 5);
}

#[test]
fn without_keys_a_tls_connection_is_opaque_and_not_unused() {
    let outcome = reading::file("captures/tls-1.2-stream-keylog.pcap", KeyLog::default());
    let connection = outcome.connections()[0];
    let close = &outcome.end_of(connection.id).unwrap().close;
    assert_eq!((close.exchanges, close.moment), (None, None));
    assert_eq!(outcome.exchanges().count(), 0);
    assert!(
        outcome
            .caveat("tls-without-keys")
            .unwrap()
            .message
            .contains("--keylog")
    );
    assert!(connection.setup.ssl.is_some());
}

#[test]
fn spans_of_an_exchange_are_disjoint_and_within_it() {
    for name in truth().into_keys() {
        for exchange in audited(&name).exchanges() {
            let mut at = exchange.at;
            for phase in intact_ledger::Phase::ALL {
                if let Some(span) = exchange.spans.of(phase) {
                    assert!(span.start >= at, "{name} {phase:?} {exchange:#?}");
                    at = span.end;
                }
            }
            assert!(at <= exchange.end, "{name} {exchange:#?}");
        }
    }
}

/// The contents of the packets of the capture's first connection with a request; `>` marks packets
/// of the client.
fn ladder(name: &str) -> Vec<String> {
    let ladder = audited(name).ladder.unwrap();
    let steps = ladder.steps.iter().map(|step| {
        let way = if step.by_client { '>' } else { '<' };
        let flags = step.flags.join("+");
        format!("{way}{flags} {}", step.names.join(", "))
    });
    steps.map(|step| step.trim().to_owned()).collect()
}

#[test]
fn the_packets_of_a_connection_are_named() {
    assert_eq!(
        ladder("nginx-curl.pcapng"),
        [
            ">SYN", "<SYN+ACK", ">ACK", "> GET /a", "<ACK", "< 200", ">ACK", "> GET /b", "< 200",
            "> GET /c", "< 200", ">FIN", "<FIN"
        ]
    );
    let tls = audited("tls-1.2-stream-keylog.pcap").ladder.unwrap();
    let names: Vec<&str> = tls
        .steps
        .iter()
        .flat_map(|step| &step.names)
        .map(String::as_str)
        .collect();
    for wanted in [
        "ClientHello",
        "ServerHello",
        "Certificate",
        "ServerHelloDone",
    ] {
        assert!(names.contains(&wanted), "{wanted} is not among {names:?}");
    }
}

#[test]
fn every_truncation_ends_cleanly() {
    for name in truth().into_keys().chain(["quic.pcapng".to_owned()]) {
        let whole = std::fs::read(reading::fixture(&format!("captures/{name}"))).unwrap();
        let requests = audited(&name).exchanges().count();
        // every byte of the small captures, a prime stride through the others
        let step = if whole.len() < 8_000 {
            1
        } else {
            whole.len() / 199
        };
        for len in (1..whole.len()).step_by(step) {
            match reading::bytes(&whole[..len], KeyLog::default()) {
                Ok(outcome) => assert!(outcome.exchanges().count() <= requests, "{name} {len}"),
                Err(error) => assert!(len < 24, "{name} {len}: {error}"),
            }
        }
    }
}

#[test]
fn quic_connections_are_named_by_the_hello_that_their_first_packets_hold() {
    let outcome = audited("quic.pcapng");
    let all = outcome.connections();
    // aioquic with version 1, and with version 2, which the server refused; Chromium, whose hello
    // spans two packets
    assert_eq!(all.len(), 3);
    for one in &all {
        assert_eq!(one.transport, intact_ledger::Transport::Quic);
        assert_eq!(
            one.origin.as_ref().unwrap().to_string(),
            "https://localhost:19443"
        );
        let tls = one.tls.as_ref().unwrap();
        assert_eq!(tls.alpn_offered.as_deref(), Some(&["h3".into()][..]));
        assert_eq!(tls.server_name.as_deref(), Some("localhost"));
    }
    assert!(outcome.caveat("quic").is_some());
    assert_eq!(outcome.exchanges().count(), 0);
}

#[test]
fn packets_of_quic_have_their_types() {
    let steps = ladder("quic.pcapng");
    assert_eq!(steps[..1], ["> Initial"], "{steps:?}");
    let has = |side: char, name: &str| {
        let mut all = steps.iter().filter(|step| step.starts_with(side));
        all.any(|step| step.contains(name))
    };
    for name in ["Initial", "Handshake", "1-RTT"] {
        assert!(has('>', name) && has('<', name), "{name}: {steps:?}");
    }
}

/// The packets of a little-endian pcap file with microseconds, as a file of Solaris' `snoop` (RFC
/// 1761).
fn as_snoop(pcap: &[u8]) -> Vec<u8> {
    let word = |at: usize| u32::from_le_bytes(pcap[at..at + 4].try_into().unwrap());
    assert_eq!((word(0), word(20)), (0xa1b2_c3d4, 1));
    let mut snoop = b"snoop\0\0\0".to_vec();
    let put = |snoop: &mut Vec<u8>, words: &[u32]| {
        snoop.extend(words.iter().flat_map(|word| word.to_be_bytes()));
    };
    put(&mut snoop, &[2, 4]);
    let mut at = 24;
    while at < pcap.len() {
        let [seconds, micros, captured, original] = [0, 4, 8, 12].map(|field| word(at + field));
        let padded = captured.next_multiple_of(4);
        put(
            &mut snoop,
            &[original, captured, padded + 24, 0, seconds, micros],
        );
        snoop.extend(&pcap[at + 16..][..captured as usize]);
        snoop.extend(vec![0; (padded - captured) as usize]);
        at += 16 + captured as usize;
    }
    snoop
}

#[test]
fn a_capture_of_snoop_gives_the_same_rows_as_one_of_tcpdump() {
    let pcap = std::fs::read(reading::fixture("captures/pipelined-requests.pcap")).unwrap();
    let rows = |content: &[u8]| {
        let outcome = reading::bytes(content, KeyLog::default()).unwrap();
        format!("{:?}", outcome.rows)
    };
    let snoop = as_snoop(&pcap);
    assert_eq!(rows(&snoop), rows(&pcap));
    let outcome = reading::bytes(&snoop, KeyLog::default()).unwrap();
    assert_eq!(outcome.accounts[0].format, intact_audit::Format::Snoop);
    let cut = reading::bytes(&snoop[..snoop.len() - 3], KeyLog::default()).unwrap();
    assert!(cut.caveat("input-cut").unwrap().incomplete);
    // a link type that is not Ethernet, and a false length
    let mut other = snoop.clone();
    other[15] = 5;
    let error = reading::bytes(&other, KeyLog::default()).unwrap_err();
    assert!(error.to_string().contains("link type 5"), "{error}");
    let mut damaged = snoop;
    damaged[27] = 1;
    let error = reading::bytes(&damaged, KeyLog::default()).unwrap_err();
    assert!(error.to_string().contains("a record of"), "{error}");
}

#[test]
fn a_capture_whose_packets_name_their_interface_gives_the_same_rows() {
    let pcap = std::fs::read(reading::fixture("captures/pipelined-requests.pcap")).unwrap();
    let mut long = [&[0x34, 0xcd, 0xb2, 0xa1], &pcap[4..24]].concat();
    let mut at = 24;
    while at < pcap.len() {
        let captured = u32::from_le_bytes(pcap[at + 8..at + 12].try_into().unwrap());
        let (head, rest) = pcap[at..].split_at(16);
        long.extend([head, &[0; 8], &rest[..captured as usize]].concat());
        at += 16 + captured as usize;
    }
    let rows = |content: &[u8]| {
        let outcome = reading::bytes(content, KeyLog::default()).unwrap();
        format!("{:?}", outcome.rows)
    };
    assert_eq!(rows(&long), rows(&pcap));
}

#[test]
fn a_connection_from_before_the_capture_does_not_count_as_opened() {
    let outcome = reading::file("captures/get_nosyn.pcap", KeyLog::default());
    let connections = outcome.connections();
    assert!(
        connections
            .iter()
            .all(|one| one.open_before && !one.is_opened())
    );
    assert_eq!(connections.len(), 1);
}
