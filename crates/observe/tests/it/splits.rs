//! Any split of the bytes gives the same rows, and no bytes cause a panic.

use super::{Finished, GET, OK, Observed};
use intact_ledger::{CloseKind, Row};
use intact_observe::Ending;
use intact_observe::Side::{self, Client, Server};
use intact_wire::h2::hpack::{Encoder, Indexing};
use intact_wire::h2::writer::{write_data, write_headers, write_settings, write_settings_ack};
use intact_wire::h2::{PREFACE, Setting};
use proptest::prelude::*;
use std::collections::HashSet;

/// The bytes that one side sends in one piece.
type Message = (Side, Vec<u8>);

fn h2_headers(encoder: &mut Encoder, fields: &[(&str, &str)], end_stream: bool) -> Vec<u8> {
    let (mut block, mut out) = (Vec::new(), Vec::new());
    encoder.begin(&mut block);
    for (name, value) in fields {
        encoder.encode(
            name.as_bytes(),
            value.as_bytes(),
            Indexing::Without,
            &mut block,
        );
    }
    write_headers(&mut out, 1, &block, end_stream, 16_384);
    out
}

/// The request and the response on stream 1 of HTTP/2, each with its SETTINGS.
fn h2() -> [Vec<u8>; 2] {
    let mut client = PREFACE.to_vec();
    write_settings(&mut client, &[]);
    let request = [
        (":method", "GET"),
        (":scheme", "http"),
        (":path", "/a"),
        (":authority", "a.example"),
    ];
    client.extend(h2_headers(&mut Encoder::default(), &request, true));
    let mut server = Vec::new();
    write_settings(&mut server, &[(Setting::MaxConcurrentStreams, 7)]);
    write_settings_ack(&mut server);
    server.extend(h2_headers(
        &mut Encoder::default(),
        &[(":status", "200")],
        false,
    ));
    write_data(&mut server, 1, b"hello", true);
    [client, server]
}

/// Transcripts of whole connections, by protocol.
fn transcripts() -> Vec<Vec<Message>> {
    let client = |bytes: &[u8]| (Client, bytes.to_vec());
    let server = |bytes: &[u8]| (Server, bytes.to_vec());
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    let post =
        b"POST /b HTTP/1.1\r\nHost: a.example\r\nContent-Length: 4\r\nUser-Agent: x/1\r\n\r\nbody";
    let tunnel = b"HTTP/1.1 200 OK\r\n\r\n";
    let switch = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n";
    let [h2_client, h2_server] = h2();
    vec![
        vec![client(GET), server(OK), client(post), server(chunked)],
        vec![client(&h2_client), server(&h2_server)],
        vec![client(b"GET /a\r\n"), server(b"hello")],
        vec![
            client(b"CONNECT b.example:80 HTTP/1.1\r\nHost: b.example:80\r\n\r\n"),
            server(tunnel),
            client(GET),
            server(OK),
        ],
        vec![
            client(
                b"GET / HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
            ),
            server(&[&switch[..], b"unread\r\n\r\nbytes"].concat()),
            client(b"more"),
        ],
        vec![
            client(
                b"GET /a HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: \r\n\r\n",
            ),
            server(&[&switch[..], &h2_server].concat()),
        ],
        vec![client(b"EHLO a.example\r\n"), server(b"250 a\r\n")],
    ]
}

/// The rows of a transcript. Each message is cut at these places and has one time.
fn rows(transcript: &[Message], places: &[usize]) -> Finished {
    let mut one = Observed::new();
    let mut at = 3;
    for (side, bytes) in transcript {
        let mut places: Vec<usize> = places.iter().map(|place| place % bytes.len()).collect();
        places.extend([0, bytes.len()]);
        places.sort_unstable();
        places.dedup();
        for range in places.windows(2) {
            let piece = &bytes[range[0]..range[1]];
            one = match side {
                Client => one.client(at, piece),
                Server => one.server(at, piece),
            };
        }
        at += 1;
    }
    one.end(Server, CloseKind::Fin, at)
        .finish(at, Ending::Observed)
}

#[test]
fn the_transcripts_are_read() {
    let counts: Vec<usize> = transcripts()
        .iter()
        .map(|transcript| rows(transcript, &[]).exchanges.len())
        .collect();
    assert_eq!(counts, [2, 1, 1, 1, 1, 1, 0]);
}

#[test]
fn each_byte_may_arrive_alone() {
    for transcript in transcripts() {
        let whole = rows(&transcript, &[]);
        let places: Vec<usize> = (0..1024).collect();
        assert_eq!(rows(&transcript, &places), whole);
    }
}

/// The words of hostile streams.
const WORDS: [&[u8]; 12] = [
    GET,
    OK,
    b"GET / HTTP/1.1\r\n",
    b"CONNECT a:1 HTTP/1.1\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n\r\n",
    b"HTTP/1.1 101 x\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"Connection: close\r\n",
    b"\r\n",
    PREFACE,
    b"\x16\x03\x01\0\x04\x01\0\0\0",
    b"\0\0\0\x04\0\0\0\0\0",
];

proptest! {
    #[test]
    fn any_split_gives_the_same_rows(
        which in 0..7_usize,
        places in prop::collection::vec(any::<usize>(), 0..12),
    ) {
        let transcript = &transcripts()[which];
        prop_assert_eq!(rows(transcript, &places), rows(transcript, &[]));
    }

    #[test]
    fn no_bytes_are_trouble_and_ids_are_unique(
        is_late: bool,
        pieces in prop::collection::vec((any::<bool>(), 0..14_usize, any::<u8>(), 0..40_u64), 0..40),
        ending in prop::sample::select(vec![Ending::Observed, Ending::Unobserved]),
    ) {
        let mut one = Observed::begun(is_late);
        let mut at = 3;
        for (is_client, word, byte, later) in pieces {
            at += later;
            let bytes = WORDS.get(word).map_or_else(|| vec![byte; 3], |word| word.to_vec());
            one = if is_client { one.client(at, &bytes) } else { one.server(at, &bytes) };
        }
        let rows = one.finish_rows(at, ending);
        let mut ids = HashSet::new();
        let mut is_opened = false;
        for row in &rows {
            match row {
                Row::Opened(_) => prop_assert!(!std::mem::replace(&mut is_opened, true)),
                Row::Exchange(exchange) => prop_assert!(is_opened && ids.insert(exchange.id)),
                _ => {}
            }
        }
    }
}
