//! Validators, freshness and gzip on the wire, in every HTTP version, by bytes that the tests
//! write.

use crate::http2::{Client, KIND_DATA, KIND_HEADERS};
use crate::http3;
use crate::rig::{Rig, answer, head};
use intact_serve::{CachingConfig, Config};
use std::io::Write;
use std::net::TcpStream;

const CACHING: CachingConfig = CachingConfig {
    etag: true,
    max_age_s: Some(60),
    compress: true,
};

fn config() -> Config {
    Config {
        caching: CACHING,
        ..Config::default()
    }
}

fn send(stream: &mut TcpStream, method: &str, fields: &str) {
    let request = format!("{method} / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
    stream.write_all(request.as_bytes()).unwrap();
}

#[test]
fn http1_sends_304_without_body_and_length_and_the_connection_goes_on() {
    let rig = Rig::start(config());
    let mut stream = rig.connect();
    send(&mut stream, "GET", "");
    let first = answer(&mut stream);
    assert_eq!(first.body, [b'x'; 100]);
    assert_eq!(first.field("etag"), Some("\"100\""));
    assert_eq!(first.field("cache-control"), Some("max-age=60"));
    assert_eq!(first.field("vary"), Some("accept-encoding"));
    assert_eq!(first.field("content-encoding"), None);
    for method in ["GET", "HEAD"] {
        send(&mut stream, method, "if-NONE-match: W/\"100\"\r\n");
        assert_eq!(
            head(&mut stream),
            "HTTP/1.1 304 Not Modified\r\netag: \"100\"\r\ncache-control: max-age=60\r\n\
             vary: accept-encoding\r\n\r\n"
        );
    }
    send(&mut stream, "GET", "If-None-Match: \"99\"\r\n");
    assert_eq!(answer(&mut stream).body.len(), 100);
    send(&mut stream, "DELETE", "If-None-Match: *\r\n");
    assert_eq!(answer(&mut stream).status(), "412");
    let totals = rig.end();
    assert_eq!(totals.requests.status[&304], 2);
    assert_eq!((totals.connections.opened, totals.requests.ok), (1, 5));
}

#[test]
fn http1_head_announces_the_length_of_the_compressed_body() {
    let rig = Rig::start(config());
    let mut stream = rig.connect();
    send(&mut stream, "HEAD", "Accept-Encoding: br, gzip\r\n");
    let only_head = head(&mut stream);
    assert!(
        only_head.contains("content-encoding: gzip\r\n"),
        "{only_head}"
    );
    send(&mut stream, "GET", "Accept-Encoding: br, gzip\r\n");
    let whole = answer(&mut stream);
    let length = format!("Content-Length: {}\r\n", whole.body.len());
    assert!(only_head.contains(&length), "{only_head}");
    // a member of gzip (RFC 1952 section 2.3.1), smaller than the 100 bytes
    assert_eq!(whole.body[..3], [0x1f, 0x8b, 8]);
    assert!(whole.body.len() < 100);
    send(&mut stream, "GET", "Accept-Encoding: gzip;q=0\r\n");
    assert_eq!(answer(&mut stream).body, [b'x'; 100]);
}

#[test]
fn a_server_without_the_options_sends_none_of_the_fields() {
    let rig = Rig::start(Config::default());
    let mut stream = rig.connect();
    let fields = "If-None-Match: *\r\nAccept-Encoding: gzip\r\n";
    send(&mut stream, "GET", fields);
    let whole = answer(&mut stream);
    assert_eq!((whole.status(), whole.body.len()), ("200", 100));
    for name in ["etag", "cache-control", "vary", "content-encoding"] {
        assert_eq!(whole.field(name), None, "{name}");
    }
}

/// A literal field of HPACK or QPACK that no table has, for names and values of up to 30 and 126
/// bytes.
fn literal(name: &str, value: &str) -> Vec<u8> {
    [
        &[0, name.len() as u8][..],
        name.as_bytes(),
        &[value.len() as u8],
        value.as_bytes(),
    ]
    .concat()
}

#[test]
fn http2_ends_the_stream_with_the_header_section_of_304() {
    let rig = Rig::start(config());
    let mut client = Client::start(rig.connect());
    // GET, http, and the path (RFC 7541 appendix A), then the field
    let mut block = b"\x82\x86\x84".to_vec();
    block.extend(literal(":authority", "a"));
    client.frame(KIND_HEADERS, 0x5, 1, &block);
    let first = client.until(KIND_HEADERS);
    assert!(!first.ends_stream());
    assert_eq!(client.until(KIND_DATA).payload.len(), 100);
    block.extend(literal("if-none-match", "\"100\""));
    client.frame(KIND_HEADERS, 0x5, 3, &block);
    let second = client.until(KIND_HEADERS);
    assert!(second.ends_stream());
    let mut fields = Vec::new();
    let mut decoder = intact_wire::h2::hpack::Decoder::new(1 << 16);
    for payload in [&first.payload, &second.payload] {
        fields.clear();
        let take = |field: intact_wire::h2::hpack::Field<'_>| {
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            fields.push(format!("{}={}", text(field.name), text(field.value)));
        };
        decoder.decode(payload, take).unwrap();
    }
    let wanted = [
        ":status=304",
        "etag=\"100\"",
        "cache-control=max-age=60",
        "vary=accept-encoding",
    ];
    assert_eq!(fields, wanted);
    assert_eq!(rig.end().requests.status[&304], 1);
}

#[test]
fn http3_sends_one_frame_for_304_and_gzip_to_who_accepts_it() {
    let (revalidated, compressed, totals) = http3::ask_twice(
        CACHING,
        [
            &[("if-none-match", "\"10\"")],
            &[("accept-encoding", "gzip")],
        ],
    );
    let count = |answer: &[u8]| {
        // type and length of HTTP/3 frames of fewer than 64 bytes take a byte each (RFC 9114
        // section 7.1)
        let (mut rest, mut kinds) = (answer, Vec::new());
        while let [kind, length, more @ ..] = rest {
            let (length, more) = match length >> 6 {
                0 => (usize::from(*length), more),
                _ => (
                    usize::from(length & 0x3f) << 8 | usize::from(more[0]),
                    &more[1..],
                ),
            };
            kinds.push((*kind, &more[..length]));
            rest = &more[length..];
        }
        kinds
            .iter()
            .map(|(kind, bytes)| (*kind, bytes.to_vec()))
            .collect::<Vec<_>>()
    };
    let frames = count(&revalidated);
    assert_eq!(frames.len(), 1, "{frames:?}");
    assert_eq!(frames[0].0, 1);
    let frames = count(&compressed);
    assert_eq!((frames[0].0, frames[1].0), (1, 0));
    assert_eq!(frames[1].1[..3], [0x1f, 0x8b, 8]);
    assert_eq!(totals.requests.status[&304], 1);
}
