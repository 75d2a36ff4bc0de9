//! Incomplete captures: `audit` reports packets that it cannot decode, that were lost or cut off,
//! or that took another path. It draws no conclusion from them.

use crate::packets::{Capture, ETHERNET, End, RAW, Tcp, ethernet, ip, plain, udp};
use crate::reading::{self, Outcome};
use intact_audit::{AuditError, KeyLog};
use intact_ledger::{ClosePoint, Outcome as Ended, Row};

fn audited(capture: &[u8]) -> Outcome {
    reading::bytes(capture, KeyLog::default()).unwrap()
}

/// The outcome of a capture with all packets of a connection.
fn of(tcp: &Tcp) -> Outcome {
    audited(&Capture::of(RAW, &tcp.all(), plain))
}

/// The ids of the caveats that report missing traffic.
fn incomplete(outcome: &Outcome) -> Vec<&str> {
    let missing = outcome.rows.iter().filter_map(|row| match row {
        Row::Caveat(caveat) if caveat.incomplete => Some(caveat.id.as_str()),
        _ => None,
    });
    missing.collect()
}

fn fresh(outcome: &Outcome) -> Vec<Option<bool>> {
    outcome
        .exchanges()
        .map(|one| one.reuse.map(|reuse| !reuse.is_reused()))
        .collect()
}

fn two_requests() -> Tcp {
    Tcp::opened(40_000).exchange("/a").exchange("/b").close()
}

#[test]
fn packets_within_tunnels_are_read() {
    let frame = |packet: &[u8]| ethernet(0x0800, packet);
    let with = |head: &[u8], inner: Vec<u8>| [head, &inner].concat();
    let gre = |head: &[u8], packet: &[u8]| ip(47, 1, 2, &with(head, frame(packet)));
    type Wrap<'a> = &'a dyn Fn(&[u8]) -> Vec<u8>;
    let wraps: [(&str, Wrap<'_>); 6] = [
        ("VXLAN", &|packet| {
            udp(
                50_000,
                8472,
                &with(&[8, 0, 0, 0, 0, 0, 1, 0], frame(packet)),
            )
        }),
        ("GENEVE", &|packet| {
            let head = [1, 0, 0x65, 0x58, 0, 0, 1, 0, 0, 0, 0, 0];
            udp(50_000, 6081, &with(&head, frame(packet)))
        }),
        ("GTP-U", &|packet| {
            let head = [0x30, 255, 0, 0, 0, 0, 0, 1];
            udp(2152, 2152, &with(&head, packet.to_vec()))
        }),
        ("ERSPAN 1", &|packet| gre(&[0, 0, 0x88, 0xbe], packet)),
        ("ERSPAN 2", &|packet| {
            gre(
                &[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 0, 0, 1, 0, 0, 0, 0],
                packet,
            )
        }),
        ("ERSPAN 3", &|packet| {
            let head = [0x10, 0, 0x22, 0xeb, 0, 0, 0, 1];
            let own = [0x20, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
            gre(&[&head[..], &own].concat(), packet)
        }),
    ];
    for (name, wrap) in wraps {
        let outcome = audited(&Capture::of(RAW, &two_requests().all(), wrap));
        assert_eq!(outcome.connections().len(), 1, "{name}");
        assert_eq!(fresh(&outcome), [Some(true), Some(false)], "{name}");
        assert_eq!(incomplete(&outcome), [""; 0], "{name}");
    }
}

#[test]
fn a_capture_without_a_packet_that_can_be_decoded_is_refused_with_the_reason() {
    let http = two_requests().all();
    let esp = |packet: &[u8]| ip(50, 1, 2, packet);
    let macsec = |packet: &[u8]| ethernet(0x88e5, packet);
    let pptp = |packet: &[u8]| {
        ip(
            47,
            1,
            2,
            &[
                &[0x30, 1, 0x88, 0x0b, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0xfd],
                packet,
            ]
            .concat(),
        )
    };
    for (name, capture) in [
        ("unknown link type 147", Capture::of(147, &http, plain)),
        (
            "unknown link type 220 (USB)",
            Capture::of(220, &http, plain),
        ),
        ("IPsec ESP", Capture::of(RAW, &http, esp)),
        ("MACsec", Capture::of(ETHERNET, &http, macsec)),
        ("compressed or encrypted PPP", Capture::of(RAW, &http, pptp)),
        ("cut off within their headers", Capture::cut(&http, 34)),
    ] {
        let error = reading::bytes(&capture, KeyLog::default()).unwrap_err();
        let AuditError::Undecoded { packets, why, .. } = &error else {
            panic!("{name}: {error}");
        };
        assert_eq!(*packets, http.len() as u64, "{name}");
        assert!(why.contains(name), "{name}: {why}");
        assert!(why.contains(&format!(": {packets}")), "{name}: {why}");
    }
}

#[test]
fn packets_that_cannot_be_decoded_among_others_are_counted_as_missing() {
    let mut capture = Capture::new(RAW);
    for packet in two_requests().all() {
        capture.add(&packet);
    }
    for _ in 0..3 {
        capture.add(&ip(50, 1, 2, &[0; 40]));
    }
    let outcome = audited(&capture.bytes());
    assert_eq!(outcome.exchanges().count(), 2);
    assert_eq!(incomplete(&outcome), ["packets-not-decoded"]);
    let words = &outcome.caveat("packets-not-decoded").unwrap().message;
    assert!(words.contains("3 of 15 packets"), "{words}");
    assert!(words.contains("IPsec ESP: 3"), "{words}");
}

#[test]
fn a_capture_without_tcp_is_read_and_reports_that_there_is_none() {
    let arp = ethernet(0x0806, &[0; 28]);
    let query = [
        &[0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0][..],
        b"\x01a\x07example\0\0\x01\0\x01",
    ]
    .concat();
    let dns = ethernet(0x0800, &udp(40_000, 53, &query));
    let outcome = audited(&Capture::of(ETHERNET, &[arp, dns], plain));
    let caveat = outcome.caveat("no-connections").unwrap();
    assert_eq!(caveat.message, "no TCP or QUIC connection in 2 packets");
    // the traffic may have taken another path
    assert!(caveat.incomplete);
    let nothing = audited(&Capture::new(ETHERNET).bytes());
    let words = &nothing.caveat("no-connections").unwrap().message;
    assert_eq!(words, "no TCP or QUIC connection in 0 packets");
    // opened before the capture, and silent in it
    let silent = of(&Tcp::joined(40_000)
        .say(End::Client, b"")
        .say(End::Server, b""));
    let words = &silent.caveat("no-connections").unwrap().message;
    assert_eq!(
        words,
        "no TCP or QUIC connection that can be counted in 2 packets"
    );
    assert!(of(&two_requests()).caveat("no-connections").is_none());
    // a dial that is open at the end of the capture is no connection
    let dialled = &two_requests().all()[..1];
    let words = audited(&Capture::of(RAW, dialled, plain));
    let words = &words.caveat("no-connections").unwrap().message;
    assert_eq!(
        words,
        "no TCP or QUIC connection that can be counted in 1 packet"
    );
}

#[test]
fn a_connection_that_carried_another_protocol_is_not_unused() {
    let socks = Tcp::opened(40_000)
        .say(End::Client, b"\x05\x01\x00")
        .say(End::Server, b"\x05\x00")
        .close();
    let mail = Tcp::opened(40_001)
        .to(25)
        .say(End::Server, b"220 mail.example\r\n")
        .say(End::Client, b"EHLO a.example\r\n")
        .say(End::Server, b"250 mail.example\r\n")
        .close();
    // the content of the tunnel is unknown, too
    let tunnel = Tcp::opened(40_002)
        .say(End::Client, b"CONNECT a.example:22 HTTP/1.1\r\n\r\n")
        .say(End::Server, b"HTTP/1.1 200 OK\r\n\r\n")
        .say(End::Client, b"SSH-2.0-a\r\n")
        .say(End::Server, b"SSH-2.0-b\r\n")
        .close();
    let partial = Tcp::opened(40_003)
        .say(End::Client, b"POST /a HTTP/1.1\r\nHost: a.ex")
        .close();
    for (name, tcp) in [
        ("SOCKS", socks),
        ("SMTP", mail),
        ("CONNECT", tunnel),
        ("a part of a request", partial),
    ] {
        let outcome = of(&tcp);
        let id = outcome.connections()[0].id;
        let close = &outcome.end_of(id).unwrap().close;
        assert_eq!((close.moment, close.exchanges), (None, None), "{name}");
        assert!(close.bytes.sent > 0, "{name}");
        let caveat = match name {
            "a part of a request" => "request-cut",
            _ => "not-http",
        };
        assert!(outcome.caveat(caveat).is_some(), "{name}");
    }
}

#[test]
fn a_connection_that_carried_no_request_is_unused() {
    let silent = of(&Tcp::opened(40_000).close());
    let id = silent.connections()[0].id;
    let close = &silent.end_of(id).unwrap().close;
    assert_eq!(close.moment, Some(ClosePoint::Unused));
    // a server sends 408 before it closes an unused connection
    let given_up = of(&Tcp::opened(40_000)
        .say(
            End::Server,
            b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n",
        )
        .say(End::Client, b"")
        .close());
    let id = given_up.connections()[0].id;
    let close = &given_up.end_of(id).unwrap().close;
    assert_eq!(
        (close.moment, close.exchanges),
        (Some(ClosePoint::Unused), Some(0))
    );
    assert_eq!(given_up.exchanges().count(), 0);
    for outcome in [silent, given_up] {
        assert_eq!(incomplete(&outcome), [""; 0]);
        assert!(outcome.caveat("not-http").is_none());
    }
}

#[test]
fn packets_that_the_capture_lost_are_reported() {
    let whole = Tcp::opened(40_000)
        .exchange("/a")
        .exchange("/b")
        .exchange("/c")
        .close();
    assert_eq!(fresh(&of(&whole)).len(), 3);
    assert_eq!(incomplete(&of(&whole)), [""; 0]);
    let without = |text| audited(&Capture::of(RAW, &whole.without(text), plain));
    let first = without("GET /a");
    assert_eq!(incomplete(&first), ["packets-missing"]);
    // the first captured request may have been the first or the second
    assert_eq!(fresh(&first)[0], None);
    assert!(fresh(&first)[1..].iter().all(|fresh| *fresh == Some(false)));
    assert!(first.exchanges().all(|one| one.ordinal.is_none()));
    // the responses were captured while the requests waited for the lost one
    assert!(first.exchanges().all(|one| one.outcome.is_ok()));
    let last = without("GET /c");
    assert_eq!(incomplete(&last), ["packets-missing"]);
    assert_eq!(fresh(&last)[..2], [Some(true), Some(false)]);
}

#[test]
fn the_outcome_of_a_lost_response_at_the_end_is_unknown() {
    let response = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let tcp = Tcp::opened(40_000).exchange("/a").close();
    let outcome = audited(&Capture::of(RAW, &tcp.without(response), plain));
    assert_eq!(incomplete(&outcome), ["packets-missing"]);
    let one = outcome.exchanges().next().unwrap();
    assert_eq!((one.outcome, one.status), (Ended::Unknown, None));
    assert!(outcome.caveat("end-not-captured").is_some());
}

#[test]
fn one_direction_is_reported_and_what_it_lacks_did_not_fail() {
    let tcp = two_requests();
    for end in [End::Client, End::Server] {
        let outcome = audited(&Capture::of(RAW, &tcp.only(end), plain));
        let lacks_requests = end == End::Client;
        let expected = &["one-direction"][..usize::from(lacks_requests)];
        assert_eq!(incomplete(&outcome), expected, "{end:?}");
        // what the server received, and when, shows that each request has its response
        let has_responses = outcome.caveat("responses-only").is_some();
        assert_eq!(has_responses, !lacks_requests, "{end:?}");
        assert_eq!(outcome.connections().len(), 1, "{end:?}");
        assert!(outcome.connections()[0].failed.is_none(), "{end:?}");
        assert_eq!(fresh(&outcome), [Some(true), Some(false)], "{end:?}");
        assert!(
            outcome.exchanges().all(|one| one.outcome.may_be_ok()),
            "{end:?}"
        );
    }
    // the side that closed first is unknown
    for end in [End::Client, End::Server] {
        let outcome = audited(&Capture::of(RAW, &tcp.only(end), plain));
        let close = &outcome.end_of(outcome.connections()[0].id).unwrap().close;
        assert_eq!(close.by, None, "{end:?}");
    }
    // without a handshake, the reuse of the first request is unknown
    let late = Tcp::joined(40_000).exchange("/a").exchange("/b").close();
    for end in [End::Client, End::Server] {
        let outcome = audited(&Capture::of(RAW, &late.only(end), plain));
        let lacks_requests = end == End::Client;
        let expected = &["one-direction"][..usize::from(lacks_requests)];
        assert_eq!(incomplete(&outcome), expected, "{end:?}");
        assert_eq!(fresh(&outcome), [None, Some(false)], "{end:?}");
    }
    // a dial did not fail if the client shows that it was answered
    let unused = Tcp::opened(40_000);
    let outcome = audited(&Capture::of(RAW, &unused.only(End::Client), plain));
    assert!(outcome.connections()[0].failed.is_none());
    assert_eq!(incomplete(&outcome), ["one-direction"]);
}

#[test]
fn a_request_that_only_an_acknowledgement_shows_is_missing() {
    let unanswered = b"GET /c HTTP/1.1\r\nHost: a.example\r\n\r\n";
    let tcp = Tcp::opened(40_000).exchange("/a").exchange("/b");
    let tcp = tcp.say(End::Client, unanswered);
    let tcp = tcp.say(End::Server, b"");
    let outcome = audited(&Capture::of(RAW, &tcp.only(End::Server), plain));
    assert_eq!(incomplete(&outcome), ["one-direction"]);
}

#[test]
fn a_handshake_with_one_captured_direction_did_not_fail() {
    let name = "captures/tls-1.2-stream-keylog.pcap";
    let whole = reading::file(name, KeyLog::default());
    let client = whole.connections()[0].local.unwrap().port();
    let file = std::fs::read(reading::fixture(name)).unwrap();
    let (head, mut rest) = file.split_at(24);
    let mut one_way = head.to_vec();
    while let Some(len) = rest.get(8..12) {
        let len = 16 + u32::from_le_bytes(len.try_into().unwrap()) as usize;
        let (record, behind) = rest.split_at(len);
        // after Ethernet and IPv4
        let source = u16::from_be_bytes([record[16 + 34], record[16 + 35]]);
        if source == client {
            one_way.extend(record);
        }
        rest = behind;
    }
    let outcome = audited(&one_way);
    assert_eq!(incomplete(&outcome), ["one-direction"]);
    assert_eq!(outcome.connections().len(), 1);
    assert!(outcome.connections()[0].failed.is_none());
}

#[test]
fn a_request_that_was_open_at_the_end_is_not_missing() {
    let pending = Tcp::opened(40_000).say(End::Client, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let late = Tcp::joined(40_000).say(End::Client, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    for tcp in [pending, late] {
        let outcome = of(&tcp);
        assert_eq!(outcome.exchanges().count(), 1);
        assert_eq!(incomplete(&outcome), [""; 0]);
    }
}

#[test]
fn quic_whose_start_is_not_in_the_capture_is_reported() {
    // a short header: the packets of an open connection look like this
    let packets = [udp(50_000, 443, &[0x41; 60]), udp(443, 50_000, &[0x42; 60])];
    let outcome = audited(&Capture::of(RAW, &packets, plain));
    assert_eq!(incomplete(&outcome), ["quic-joined-late", "no-connections"]);
    let words = &outcome.caveat("no-connections").unwrap().message;
    assert!(words.contains("that can be counted"), "{words}");
    let other = audited(&Capture::of(RAW, &[udp(50_000, 5353, &[0x41; 60])], plain));
    assert_eq!(incomplete(&other), ["no-connections"]);
}

#[test]
fn packets_that_were_dropped_while_capturing_are_reported() {
    let mut capture = std::fs::read(reading::fixture("captures/nginx-curl.pcapng")).unwrap();
    assert_eq!(incomplete(&audited(&capture)), [""; 0]);
    // the statistics of interface 0: received 90, dropped by the interface 4, by the system 3
    let mut block = Vec::new();
    for word in [5_u32, 64 + 8, 0, 0, 0] {
        block.extend(word.to_le_bytes());
    }
    for (code, count) in [(4_u16, 90_u64), (5, 4), (7, 3)] {
        block.extend(code.to_le_bytes());
        block.extend(8_u16.to_le_bytes());
        block.extend(count.to_le_bytes());
    }
    block.extend([0; 12]);
    block.extend((64_u32 + 8).to_le_bytes());
    assert_eq!(block.len(), 72);
    capture.extend(block);
    let outcome = audited(&capture);
    assert_eq!(incomplete(&outcome), ["packets-dropped"]);
    let words = &outcome.caveat("packets-dropped").unwrap().message;
    assert!(
        words.contains("packets dropped while capturing, as the file says: 7."),
        "{words}"
    );
}

#[test]
fn complete_captures_lack_nothing() {
    for name in [
        "100-continue.pcap",
        "get_nosyn.pcap",
        "http_09.pcap",
        "nginx-curl.pcap",
        "nginx-curl.pcapng",
        "one_http_stream_rst.pcap",
        "pipelined-requests.pcap",
        "quic.pcapng",
        "tls-1.2-stream-keylog.pcap",
        "websocket.pcap",
    ] {
        let outcome = reading::file(&format!("captures/{name}"), KeyLog::default());
        assert_eq!(incomplete(&outcome), [""; 0], "{name}");
    }
    // 7240 bytes of a response are missing in this capture
    let outcome = reading::file("captures/bro.org.pcap", KeyLog::default());
    assert_eq!(incomplete(&outcome), ["packets-missing"]);
    let words = &outcome.caveat("packets-missing").unwrap().message;
    assert!(words.starts_with("1 connection "), "{words}");
}

#[test]
fn segments_that_were_sent_again_and_late_acknowledgements_belong_to_their_exchange() {
    let mut tcp = Tcp::opened(40_000)
        .exchange("/a")
        .say(End::Client, b"GET /b HTTP/1.1\r\nHost: a.example\r\n\r\n");
    let again = tcp.packets.last().unwrap().1.clone();
    tcp.packets.push((End::Client, again));
    // the body follows after the header section was acknowledged
    let tcp = tcp
        .say(End::Server, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
        .say(End::Client, b"")
        .say(End::Server, b"ok")
        .exchange("/c")
        .close();
    let late = [7, 9];
    let mut capture = Capture::new(RAW);
    for (nth, packet) in tcp.all().iter().enumerate() {
        let is_late = late.contains(&nth);
        capture.pass(if is_late { 40_000 } else { 0 });
        capture.add(&plain(packet));
    }
    let outcome = audited(&capture.bytes());
    let seen: Vec<_> = outcome
        .exchanges()
        .map(|one| (one.retransmissions, one.delayed_acks))
        .collect();
    let [none, one] = [Some(0), Some(1)];
    assert_eq!(seen, [(none, none), (one, one), (none, none)]);
}

#[test]
fn a_capture_with_a_clock_that_goes_back_far_has_lower_bounds() {
    let parts = [40_000, 40_001].map(|port| Tcp::opened(port).exchange("/a").close().all());
    let captured = |steps_back: usize| {
        let mut capture = Capture::new(RAW);
        for part in &parts {
            part.iter().for_each(|packet| capture.add(packet));
            capture.rewind(steps_back);
        }
        audited(&capture.bytes())
    };
    // of several processors
    assert_eq!(incomplete(&captured(900)), [""; 0]);
    let joined = captured(1_700);
    assert_eq!(incomplete(&joined), ["input-out-of-order"]);
    let words = &joined.caveat("input-out-of-order").unwrap().message;
    assert!(words.contains("goes back 1 time, by up to 1.7"), "{words}");
}
