//! Connections inside encapsulations: each is read as without it, or named and counted. Where
//! tshark is installed, it reads the same packets.

use crate::packets::{Capture, ETHERNET, Tcp, ethernet, ip, udp};
use crate::reading;
use crate::skip::skip;
use intact_audit::KeyLog;
use std::process::Command;

/// A frame around an IP packet.
type Wrap = fn(&[u8]) -> Vec<u8>;

fn inner(packet: &[u8]) -> Vec<u8> {
    ethernet(0x0800, packet)
}

/// An Ethernet frame with UDP to this port.
fn in_udp(port: u16, head: &[u8], rest: &[u8]) -> Vec<u8> {
    ethernet(0x0800, &udp(port, port, &[head, rest].concat()))
}

fn in_ip(protocol: u8, head: &[u8], rest: &[u8]) -> Vec<u8> {
    ethernet(0x0800, &ip(protocol, 9, 10, &[head, rest].concat()))
}

/// An Ethernet frame with a length in place of an EtherType.
fn in_llc(head: &[u8], rest: &[u8]) -> Vec<u8> {
    ethernet((head.len() + rest.len()) as u16, &[head, rest].concat())
}

const READ: [(&str, Wrap); 22] = [
    ("L2TP", |packet| {
        let head = [0, 2, 0, 1, 0, 1, 0xff, 3, 0, 0x21];
        in_udp(1701, &head, packet)
    }),
    ("GRE in UDP", |packet| in_udp(4754, &[0, 0, 8, 0], packet)),
    ("VXLAN-GPE", |packet| {
        in_udp(4790, &[0x0c, 0, 0, 1, 0, 0, 1, 0], packet)
    }),
    ("VXLAN-GPE with NSH", |packet| {
        let head = [0x0c, 0, 0, 4, 0, 0, 1, 0, 0, 2, 2, 1, 0, 0, 1, 255];
        in_udp(4790, &head, packet)
    }),
    ("MPLS in UDP", |packet| {
        in_udp(6635, &[0, 0x10, 1, 64], packet)
    }),
    ("AYIYA", |packet| {
        let head = [&[0x40, 0x50, 0x21, 4, 0, 0, 0, 0][..], &[7; 16], &[8; 20]].concat();
        in_udp(5072, &head, packet)
    }),
    ("CAPWAP", |packet| {
        in_udp(5247, &[0, 0x10, 0x02, 0, 0, 0, 0, 0], &inner(packet))
    }),
    ("LISP", |packet| in_udp(4341, &[0; 8], packet)),
    ("TZSP", |packet| {
        in_udp(37_008, &[1, 0, 0, 1, 1], &inner(packet))
    }),
    ("LLC and SNAP", |packet| {
        in_llc(&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], packet)
    }),
    ("IP in LLC", |packet| in_llc(&[6, 6, 3], packet)),
    ("PPPoE with a short protocol", |packet| {
        let len = (packet.len() + 1) as u16;
        let head = [&[0x11, 0, 0, 1][..], &len.to_be_bytes(), &[0x21]].concat();
        ethernet(0x8864, &[&head[..], packet].concat())
    }),
    ("Cisco MetaData", |packet| {
        ethernet(0x8909, &[&[1, 1, 0, 1, 0, 9, 8, 0], packet].concat())
    }),
    ("VN-Tag", |packet| {
        ethernet(0x8926, &[&[0, 0, 0, 1, 8, 0], packet].concat())
    }),
    ("HSR", |packet| {
        ethernet(0x892f, &[&[0, 70, 0, 1, 8, 0], packet].concat())
    }),
    ("TRILL", |packet| {
        ethernet(0x22f3, &[&[0, 1, 0, 1, 0, 2], &inner(packet)[..]].concat())
    }),
    ("PBB", |packet| {
        ethernet(0x88e7, &[&[0, 0, 0, 1], &inner(packet)[..]].concat())
    }),
    ("NSH", |packet| {
        ethernet(0x894f, &[&[0, 2, 2, 1, 0, 0, 1, 255], packet].concat())
    }),
    ("MPLS pseudowire", |packet| {
        let head = [0, 0x10, 1, 64, 0, 0, 0, 0];
        ethernet(0x8847, &[&head, &inner(packet)[..]].concat())
    }),
    ("Ethernet in IP", |packet| {
        in_ip(97, &[0x30, 0], &inner(packet))
    }),
    ("authentication header", |packet| {
        // the IP packet within is the next header
        let head = [&[4, 4, 0, 0][..], &[0; 20]].concat();
        in_ip(51, &head, packet)
    }),
    ("PPTP", |packet| {
        let len = (packet.len() + 1) as u16;
        let key = [&[0x30, 0x01, 0x88, 0x0b][..], &len.to_be_bytes(), &[0, 1]].concat();
        in_ip(47, &[&key[..], &[0, 0, 0, 1, 0x21]].concat(), packet)
    }),
];

const NOT_READ: [(&str, &str, Wrap); 6] = [
    ("an EtherType", "EtherType 0x7777: ", |packet| {
        ethernet(0x7777, &[&[0; 4], packet].concat())
    }),
    ("a protocol of IP", "IP protocol 253: ", |packet| {
        in_ip(253, &[0; 4], packet)
    }),
    ("a UDP port", "UDP port 7777: ", |packet| {
        in_udp(7777, &[0; 12], packet)
    }),
    ("ESP in UDP", "IPsec ESP in UDP: ", |packet| {
        in_udp(4500, &[7; 8], packet)
    }),
    ("PPP", "PPP with protocol 0x0041: ", |packet| {
        in_udp(1701, &[0, 2, 0, 1, 0, 1, 0xff, 3, 0, 0x41], packet)
    }),
    ("encrypted MACsec", "encrypted MACsec: ", |packet| {
        ethernet(0x88e5, &[&[0x0c, 0, 0, 0, 0, 1], packet].concat())
    }),
];

/// A connection with two requests, and another one whose packets `wrap` encapsulates.
fn mixed(wrap: Wrap) -> Vec<u8> {
    let connection = |port| {
        Tcp::opened(port)
            .exchange("/a")
            .exchange("/b")
            .close()
            .all()
    };
    let mut capture = Capture::new(ETHERNET);
    for packet in connection(40_000) {
        capture.add(&ethernet(0x0800, &packet));
    }
    for packet in connection(40_001) {
        capture.add(&wrap(&packet));
    }
    capture.bytes()
}

#[test]
fn simple_encapsulations_are_read() {
    for (name, wrap) in READ {
        let outcome = reading::bytes(&mixed(wrap), KeyLog::default()).unwrap();
        assert_eq!(outcome.connections().len(), 2, "{name}");
        assert_eq!(outcome.exchanges().count(), 4, "{name}");
        assert!(
            !outcome.caveats().iter().any(|one| one.incomplete),
            "{name}"
        );
    }
}

#[test]
fn tshark_reads_the_same_packets() {
    if Command::new("tshark").arg("-v").output().is_err() {
        skip("tshark_reads_the_same_packets", "tshark is not installed");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (name, wrap) in READ {
        let path = folder.path().join("mixed.pcap");
        std::fs::write(&path, mixed(wrap)).unwrap();
        let path = path.to_str().unwrap();
        // mirrored frames, and AYIYA and LISP with ports of their own, need no option
        let out = Command::new("tshark")
            .args(["-r", path, "-Y", "http.request"])
            .output();
        let out = out.unwrap();
        let requests = String::from_utf8_lossy(&out.stdout).lines().count();
        assert_eq!(
            requests,
            4,
            "{name}: {}",
            String::from_utf8_lossy(&out.stderr)
        );
    }
}

#[test]
fn what_is_not_read_is_named_and_counted() {
    for (name, words, wrap) in NOT_READ {
        let outcome = reading::bytes(&mixed(wrap), KeyLog::default()).unwrap();
        assert_eq!(outcome.connections().len(), 1, "{name}");
        let caveat = outcome.caveat("packets-not-decoded");
        let caveat = caveat.unwrap_or_else(|| panic!("{name}: {:?}", outcome.caveats()));
        assert!(
            caveat.incomplete && caveat.message.contains(words),
            "{name}: {}",
            caveat.message
        );
        assert!(
            caveat.message.contains("12 of 24 packets"),
            "{}",
            caveat.message
        );
    }
}

#[test]
fn unknown_ports_are_named_and_services_are_not() {
    let with = |port: u16, payload: &[u8]| {
        let mut capture = Capture::new(ETHERNET);
        for packet in Tcp::opened(40_000).exchange("/a").close().all() {
            capture.add(&ethernet(0x0800, &packet));
        }
        for _ in 0..3 {
            capture.add(&in_udp(port, &[], payload));
        }
        reading::bytes(&capture.bytes(), KeyLog::default()).unwrap()
    };
    let outcome = with(7777, b"anything");
    let caveat = outcome.caveat("udp-not-read").unwrap();
    assert!(
        caveat.message.contains("UDP port 7777: 3"),
        "{}",
        caveat.message
    );
    assert!(!caveat.incomplete);
    for service in [123, 5353, 1900, 514, 6343] {
        assert!(with(service, b"anything").caveats().is_empty(), "{service}");
    }
}

#[test]
fn frames_of_other_links_are_opened() {
    let packets = Tcp::opened(40_000).exchange("/a").close().all();
    let pktap = |packet: &[u8]| {
        let mut head = [0; 108];
        for (at, word) in [(0, 108_u32), (4, 1), (8, 1)] {
            head[at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
        [&head[..], &inner(packet)].concat()
    };
    let ppi = |packet: &[u8]| [&[0, 0, 8, 0, 1, 0, 0, 0], &inner(packet)[..]].concat();
    let hdlc = |packet: &[u8]| [&[0x0f, 0, 8, 0], packet].concat();
    let fddi = |packet: &[u8]| {
        [
            &[0x50],
            &[2; 12][..],
            &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0],
            packet,
        ]
        .concat()
    };
    let links: [(u32, Wrap); 5] = [
        (258, pktap),
        (149, pktap),
        (192, ppi),
        (104, hdlc),
        (10, fddi),
    ];
    for (link, wrap) in links {
        let capture = Capture::of(link, &packets, wrap);
        let outcome = reading::bytes(&capture, KeyLog::default()).unwrap();
        assert_eq!(outcome.exchanges().count(), 1, "link type {link}");
    }
    // a link that cannot be read is refused, and not with the command that wrote it
    let error = reading::bytes(&Capture::of(220, &packets, pktap), KeyLog::default());
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("220 (USB)") && !error.contains("-i any"),
        "{error}"
    );
}
