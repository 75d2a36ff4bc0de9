//! Incomplete captures: packets cut off, out of order, with other addresses, without responses, and
//! malformed messages. The captured part counts, and the rest is unknown.

use crate::packets::{
    ACK, Capture, End, RAW, SYN, Tcp, cut_file, filter_pcapng, ip, plain, readdressed, udp,
};
use crate::reading::{self, Outcome};
use intact_audit::KeyLog;
use intact_ledger::{Outcome as Ended, Reuse, Row, Scheme};

fn audited(capture: &[u8]) -> Outcome {
    reading::bytes(capture, KeyLog::default()).unwrap()
}

fn of(packets: &[Vec<u8>]) -> Outcome {
    audited(&Capture::of(RAW, packets, plain))
}

fn incomplete(outcome: &Outcome) -> Vec<&str> {
    let missing = outcome.rows.iter().filter_map(|row| match row {
        Row::Caveat(caveat) if caveat.incomplete => Some(caveat.id.as_str()),
        _ => None,
    });
    missing.collect()
}

/// Unencrypted requests: the client's port, the reuse, the status.
fn in_the_clear(outcome: &Outcome) -> Vec<(u16, Option<Reuse>, Option<u16>)> {
    let of = |one: &intact_ledger::Exchange| {
        let all = outcome.connections();
        let connection = all
            .into_iter()
            .find(|other| Some(other.id) == one.connection);
        let connection = connection.unwrap();
        let is_clear = connection.origin.as_ref().unwrap().scheme == Scheme::Http;
        let port = connection.local.unwrap().port();
        is_clear.then_some((port, one.reuse, one.status))
    };
    outcome.exchanges().filter_map(of).collect()
}

fn targets(outcome: &Outcome) -> Vec<String> {
    let target = |one: &intact_ledger::Exchange| {
        let target = one.target.as_ref();
        target.map_or("?".to_owned(), |target| target.as_str().to_owned())
    };
    outcome.exchanges().map(target).collect()
}

#[test]
fn packets_that_were_cut_off_show_the_requests_that_begin_in_them() {
    let file = std::fs::read(reading::fixture("captures/nginx-curl.pcap")).unwrap();
    let whole = audited(&file);
    let expected = in_the_clear(&whole);
    assert_eq!(expected.len(), 8);
    for kept in [400, 128, 96] {
        let outcome = audited(&cut_file(&file, kept));
        assert_eq!(in_the_clear(&outcome), expected, "{kept}");
        assert_eq!(incomplete(&outcome), ["packets-cut"], "{kept}");
        let caveat = outcome.caveat("packets-cut").unwrap();
        assert!(caveat.all_connections);
        let named = format!("cut off at {kept} bytes (snap length)");
        assert!(caveat.message.contains(&named), "{}", caveat.message);
        assert!(caveat.message.contains("`tcpdump -s 0`"));
        assert!(outcome.caveat("end-not-captured").is_none());
        assert_eq!(outcome.connections().len(), whole.connections().len());
        // the flags show who closed
        for connection in outcome.connections() {
            let by = |outcome: &Outcome| outcome.end_of(connection.id).map(|end| end.close.by);
            assert_eq!(by(&outcome), by(&whole), "{kept} {connection:?}");
        }
    }
}

#[test]
fn a_response_that_was_cut_off_ends_before_the_next_request() {
    let body = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "a".repeat(900));
    let tcp = Tcp::opened(40_000)
        .say(End::Client, b"GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n")
        .say(End::Server, body.as_bytes())
        .say(End::Server, &[b'x'; 900])
        .say(End::Client, b"GET /b HTTP/1.1\r\nHost: a.example\r\n\r\n")
        .say(End::Server, body.as_bytes())
        .close();
    let outcome = audited(&Capture::cut(&tcp.all(), 96));
    let all: Vec<_> = outcome.exchanges().collect();
    assert_eq!(all.len(), 2);
    // a millisecond between packets: the request is packet 4, the response packets 5 and 6
    assert_eq!(all[0].end.since(all[0].spans.send.unwrap().end), 2_000_000);
    assert!(all.iter().all(|one| one.outcome == Ended::Unknown));
    assert!(all.iter().all(|one| one.status == Some(200)));
}

#[test]
fn a_request_line_that_was_cut_off_is_a_request_by_its_method() {
    // 40 bytes of headers, 56 bytes of the request
    let long = format!("/{}", "a".repeat(60));
    let tcp = Tcp::opened(40_000).exchange(&long).exchange("/b").close();
    let outcome = audited(&Capture::cut(&tcp.all(), 96));
    assert_eq!(targets(&outcome), ["?", "/b"]);
    let all: Vec<_> = outcome.exchanges().collect();
    assert_eq!(all[0].method.as_ref().unwrap().as_str(), "GET");
    assert_eq!(
        (all[0].reuse, all[0].ordinal),
        (Some(Reuse::Fresh), Some(1))
    );
    // another request may follow in the part that was cut off
    assert_eq!((all[1].reuse, all[1].ordinal), (Some(Reuse::Reused), None));
    assert!(
        all.iter()
            .all(|one| one.fingerprint.is_none() || one.ordinal.is_none())
    );
    assert_eq!(incomplete(&outcome), ["packets-cut"]);
    assert!(outcome.caveat("not-http").is_none());
    // without any byte of a request there is no request
    let nothing = audited(&Capture::cut(&tcp.all(), 40));
    assert_eq!(nothing.exchanges().count(), 0);
    assert_eq!(nothing.connections().len(), 1);
    assert_eq!(incomplete(&nothing), ["packets-cut"]);
}

#[test]
fn a_header_section_that_spans_packets_is_read_after_a_late_start() {
    let request = format!(
        "GET /{} HTTP/1.1\r\nHost: a.example\r\n\r\n",
        "a".repeat(90)
    );
    let (first, second) = request.as_bytes().split_at(50);
    let ok = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    for before in [&b""[..], b"ABC", b"\0", b"rest of a body"] {
        let mut tcp = Tcp::joined(40_000);
        if !before.is_empty() {
            tcp = tcp.say(End::Client, before);
        }
        let tcp = tcp
            .say(End::Client, first)
            .say(End::Client, second)
            .say(End::Server, ok)
            .exchange("/b");
        let outcome = of(&tcp.all());
        let statuses: Vec<_> = outcome.exchanges().map(|one| one.status).collect();
        assert_eq!(statuses, [Some(200), Some(200)], "{before:?}");
        assert_eq!(targets(&outcome)[1], "/b", "{before:?}");
    }
}

#[test]
fn a_refused_request_is_a_request() {
    for (request, target) in [
        ("GET /a HTTP/1.0.8\r\nHost: a.example\r\n\r\n", "/a"),
        ("GET /a b HTTP/1.1\r\nHost: a.example\r\n\r\n", "/a b"),
        (
            "GET /a HTTP/1.1\r\nHost: a.example\r\nContent-Length: 0x0\r\n\r\n",
            "/a",
        ),
        (
            "GET /a HTTP/1.1\r\nHost: a.example\r\nno colon\r\n\r\n",
            "/a",
        ),
    ] {
        for late in [false, true] {
            let tcp = match late {
                false => Tcp::opened(40_000),
                true => Tcp::joined(40_000),
            };
            let tcp = tcp
                .say(End::Client, request.as_bytes())
                .say(
                    End::Server,
                    b"HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\nno",
                )
                .exchange("/next")
                .close();
            let outcome = of(&tcp.all());
            assert_eq!(targets(&outcome), [target, "/next"], "{request:?} {late}");
            let statuses: Vec<_> = outcome.exchanges().map(|one| one.status).collect();
            assert_eq!(statuses, [Some(400), Some(200)], "{request:?}");
            assert!(outcome.exchanges().all(|one| one.outcome == Ended::Ok));
            let connection = outcome.connections()[0];
            let origin = connection.origin.as_ref().unwrap().to_string();
            assert_eq!(origin, "http://a.example", "{request:?}");
        }
    }
}

#[test]
fn a_response_with_an_odd_length_keeps_its_status() {
    let tcp = Tcp::opened(40_000)
        .say(End::Client, b"GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n")
        .say(
            End::Server,
            b"HTTP/1.1 200 OK\r\nContent-Length: two\r\n\r\nok",
        )
        .exchange("/b")
        .close();
    let outcome = of(&tcp.all());
    assert_eq!(targets(&outcome), ["/a", "/b"]);
    assert!(outcome.exchanges().all(|one| one.status == Some(200)));
    let first = outcome.exchanges().next().unwrap();
    assert!(!first.outcome.is_ok() && !first.certainty.is_exact());
}

#[test]
fn after_a_lost_packet_responses_belong_to_their_requests() {
    let mut tcp = Tcp::opened(40_000);
    for status in 200..206 {
        let request = format!("GET /{status} HTTP/1.1\r\nHost: a.example\r\n\r\n");
        let response = format!("HTTP/1.1 {status} OK\r\nContent-Length: 2\r\n\r\nok");
        tcp = tcp
            .say(End::Client, request.as_bytes())
            .say(End::Server, response.as_bytes());
    }
    let tcp = tcp.say(End::Client, b"").close();
    let outcome = of(&tcp.without("GET /201"));
    let found: Vec<_> = outcome.exchanges().map(|one| one.status).collect();
    assert_eq!(found, [200, 202, 203, 204, 205].map(Some));
    assert_eq!(targets(&outcome), ["/200", "/202", "/203", "/204", "/205"]);
    assert!(outcome.exchanges().all(|one| one.certainty.is_exact()));
    assert_eq!(incomplete(&outcome), ["packets-missing"]);
}

#[test]
fn a_syn_after_its_answer_is_the_same_connection() {
    let mut packets = Tcp::opened(40_000).exchange("/a").close().all();
    packets.swap(0, 1);
    let outcome = of(&packets);
    assert_eq!(outcome.connections().len(), 1);
    assert!(outcome.connections()[0].setup.connect.is_some());
    let all: Vec<_> = outcome.exchanges().map(|one| one.reuse).collect();
    assert_eq!(all, [Some(Reuse::Fresh)]);
    assert_eq!(incomplete(&outcome), [""; 0]);
    // the same ports in a new connection
    let again = Tcp::opened(40_000).exchange("/a");
    let mut second = Tcp::joined(40_000);
    second.skip_to(9_000_000);
    second.send(End::Client, SYN, b"");
    second.send(End::Server, SYN | ACK, b"");
    let both: Vec<_> = again.all().into_iter().chain(second.all()).collect();
    assert_eq!(of(&both).connections().len(), 2);
}

#[test]
fn halves_under_other_addresses_are_one_connection() {
    let tcp = Tcp::opened(40_000).exchange("/a").exchange("/b").close();
    // the server's packets have the address behind a load balancer
    let half = tcp.packets.iter().map(|(end, packet)| match end {
        End::Client => packet.clone(),
        End::Server => readdressed(packet, 2, [10, 0, 0, 7]),
    });
    let halves = of(&half.collect::<Vec<_>>());
    // each packet on both sides of a NAT
    let copies = tcp.all().into_iter().flat_map(|packet| {
        let inside = readdressed(&packet, 2, [10, 0, 0, 7]);
        [packet, inside]
    });
    let copies = of(&copies.collect::<Vec<_>>());
    for outcome in [halves, copies] {
        assert_eq!(outcome.connections().len(), 1);
        let peer = outcome.connections()[0].peer.unwrap().to_string();
        assert_eq!(peer, "192.0.2.2:80");
        let statuses: Vec<_> = outcome.exchanges().map(|one| one.status).collect();
        assert_eq!(statuses, [Some(200), Some(200)]);
        assert_eq!(incomplete(&outcome), [""; 0]);
        let caveat = &outcome.caveat("address-translated").unwrap().message;
        assert!(caveat.starts_with("1 connection "), "{caveat}");
    }
}

#[test]
fn a_capture_on_both_sides_of_a_nat_counts_each_connection_once() {
    let outcome = reading::file("captures/nat.pcap", KeyLog::default());
    assert_eq!(outcome.connections().len(), 6);
    let statuses: Vec<_> = outcome.exchanges().map(|one| one.status).collect();
    assert_eq!(statuses, [Some(200); 6]);
    let caveat = &outcome.caveat("address-translated").unwrap().message;
    assert!(caveat.starts_with("6 connections"), "{caveat}");
    assert_eq!(incomplete(&outcome), [""; 0]);
}

/// A question for the A record of a name, or its answer with one address.
fn dns(id: u8, name: &str, is_answer: bool) -> Vec<u8> {
    let flags = if is_answer { 0x81 } else { 0x01 };
    let mut message = vec![0, id, flags, 0, 0, 1, 0, u8::from(is_answer), 0, 0, 0, 0];
    message.push(name.len() as u8);
    message.extend(name.as_bytes());
    message.extend(b"\x07example\0\0\x01\0\x01");
    if is_answer {
        message.extend(b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04\xc0\0\x02\x09");
    }
    message
}

/// The lookups: `true` if it failed, `None` if that is unknown.
fn lookups(outcome: &Outcome) -> Vec<Option<bool>> {
    let lookups = outcome.rows.iter().filter_map(|row| match row {
        Row::Lookup(lookup) => Some(lookup.answer.as_ref().map(Result::is_err)),
        _ => None,
    });
    lookups.collect()
}

#[test]
fn lookups_without_a_response_failed_only_where_responses_are_captured() {
    let names: Vec<String> = (0..17).map(|number| format!("name{number}")).collect();
    let asked = |ids: std::ops::Range<u8>| {
        ids.map(|id| {
            udp(
                50_000 + u16::from(id),
                53,
                &dns(id, &names[usize::from(id)], false),
            )
        })
    };
    // eleven seconds of other traffic follow: longer than any resolver waits
    let silence = || (0..11_000).map(|_| udp(7, 9, b""));
    let questions: Vec<_> = asked(0..17).chain(silence()).collect();
    let outcome = of(&questions);
    assert_eq!(lookups(&outcome), [None; 17]);
    let caveat = &outcome.caveat("dns-without-responses").unwrap().message;
    assert!(caveat.starts_with("17 lookups"), "{caveat}");
    // one response shows that responses are captured
    let answer = ip(17, 2, 1, &udp(53, 50_000, &dns(0, "name0", true))[20..]);
    let heard: Vec<_> = asked(0..3).chain([answer]).chain(silence()).collect();
    let outcome = of(&heard);
    let mut failed = lookups(&outcome);
    failed.sort_unstable();
    assert_eq!(failed, [Some(false), Some(true), Some(true)]);
    assert!(outcome.caveat("dns-without-responses").is_none());
}

#[test]
fn a_truncated_dns_response_has_no_addresses() {
    let question = udp(50_000, 53, &dns(1, "name", false));
    let answer = ip(17, 2, 1, &udp(53, 50_000, &dns(1, "name", true))[20..]);
    let kept = answer.len() - 1;
    let outcome = audited(&Capture::cut(&[question, answer], kept));
    assert_eq!(lookups(&outcome), [None]);
    assert!(outcome.caveat("dns-cut").is_some());
}

#[test]
fn a_dial_without_an_answer_failed_only_where_packets_of_servers_are_captured() {
    let mut dial = Tcp::joined(40_000);
    dial.send(End::Client, SYN, b"");
    let syn = dial.all();
    // two seconds of other traffic follow
    let silence = || (0..2_000).map(|_| udp(7, 9, b""));
    let failed = |outcome: &Outcome| {
        let all = outcome.connections();
        all.iter().filter(|one| one.failed.is_some()).count()
    };
    let alone: Vec<_> = syn.iter().cloned().chain(silence()).collect();
    let outcome = of(&alone);
    assert_eq!(failed(&outcome), 0);
    let caveat = &outcome.caveat("dials-without-answers").unwrap().message;
    assert!(caveat.starts_with("1 dial "), "{caveat}");
    // a second SYN shows that there was no answer, as does an answered connection
    let again: Vec<_> = syn.iter().chain(&syn).cloned().chain(silence()).collect();
    let other = Tcp::opened(40_001).exchange("/a").all();
    let other: Vec<_> = syn.iter().cloned().chain(other).chain(silence()).collect();
    for packets in [again, other] {
        let outcome = of(&packets);
        assert_eq!(failed(&outcome), 1);
        assert!(outcome.caveat("dials-without-answers").is_none());
    }
}

#[test]
fn quic_with_one_captured_direction_did_not_fail() {
    let whole = std::fs::read(reading::fixture("captures/quic.pcapng")).unwrap();
    // after Ethernet and IPv4 or IPv6
    let source = |frame: &[u8]| {
        let at = if frame[14] >> 4 == 4 { 34 } else { 54 };
        u16::from_be_bytes([frame[at], frame[at + 1]])
    };
    // a version negotiation of the server alone shows no connection
    for (is_client, expected) in [(true, 2), (false, 2)] {
        let one_way = filter_pcapng(&whole, |frame| (source(frame) != 19443) == is_client);
        let outcome = audited(&one_way);
        let all = outcome.connections();
        assert_eq!(all.len(), expected, "{is_client}");
        assert!(all.iter().all(|one| one.failed.is_none()), "{is_client}");
        assert_eq!(incomplete(&outcome), ["one-direction"], "{is_client}");
    }
}

#[test]
fn a_header_section_that_does_not_end_is_a_part_of_a_request() {
    let whole = "GET /index.html HTTP/1.1\r\nHost: a.example\r\n\r\n";
    for kept in [8, 20, 30, whole.len() - 2] {
        let tcp = Tcp::opened(40_000).say(End::Client, &whole.as_bytes()[..kept]);
        let outcome = audited(&Capture::of(RAW, &tcp.all(), plain));
        assert!(outcome.caveat("request-cut").is_some(), "{kept}");
        assert!(outcome.caveat("not-http").is_none(), "{kept}");
    }
}
