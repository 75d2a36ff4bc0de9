//! Any split of the bytes gives the same events; arbitrary bytes never panic.

use intact_wire::http1::Kind;
use proptest::collection::vec;
use proptest::prelude::*;

use super::transcript::{requests, responses};
use crate::pieces::cut;

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![4 => Just(Kind::Plain), 1 => Just(Kind::Head), 1 => Just(Kind::Connect)]
}

/// Streams that are mostly HTTP: complete messages and fragments of messages, in any order.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        Just("HTTP/1.1 200 OK\r\n"),
        Just("HTTP/1.0 404 Not Found\n"),
        Just("HTTP/1.1 100 Continue\r\n\r\n"),
        Just("HTTP/1.1 101 Switching\r\n\r\n"),
        Just("HTTP/1.1 204 No Content\r\nKeep-Alive: timeout=5\r\n\r\n"),
        Just("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"),
        Just("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
        Just("GET / HTTP/1.1\r\n"),
        Just("CONNECT a:1 HTTP/1.1\r\n\r\n"),
        Just("POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"),
        Just("PUT /y HTTP/1.0\r\nContent-Length: 2\r\n\r\nhi"),
        Just("Content-Length: 4\r\n"),
        Just("Transfer-Encoding: gzip, chunked\r\n"),
        Just("Connection: close\r\n"),
        Just("X: y\n"),
        Just(" folded\r\n"),
        Just("\r\n"),
        Just("5\r\nhello\r\n"),
        Just("2;ext=1\r\nhi\r\n"),
        Just("0\r\n\r\n"),
        Just("0\r\nTrailer: x\r\n\r\n"),
        Just("abcd"),
        Just("\r"),
        Just("\0"),
    ];
    vec(part, 0..12).prop_map(|parts| parts.concat().into_bytes())
}

proptest! {
    #[test]
    fn responses_do_not_depend_on_the_split(bytes in stream(), places in vec(any::<usize>(), 0..8), kinds in vec(kind(), 0..4)) {
        let whole = responses(&kinds, &[&bytes]);
        prop_assert_eq!(&responses(&kinds, &cut(&bytes, &places)), &whole);
        prop_assert_eq!(&responses(&kinds, &bytes.chunks(1).collect::<Vec<_>>()), &whole);
    }

    #[test]
    fn requests_do_not_depend_on_the_split(bytes in stream(), places in vec(any::<usize>(), 0..8)) {
        let whole = requests(&[&bytes]);
        prop_assert_eq!(&requests(&cut(&bytes, &places)), &whole);
        prop_assert_eq!(&requests(&bytes.chunks(1).collect::<Vec<_>>()), &whole);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in vec(any::<u8>(), 0..300), places in vec(any::<usize>(), 0..4)) {
        responses(&[Kind::Plain], &cut(&bytes, &places));
        requests(&cut(&bytes, &places));
    }

    #[test]
    fn arbitrary_bytes_after_a_head_never_panic(bytes in vec(any::<u8>(), 0..300), places in vec(any::<usize>(), 0..4)) {
        let mut stream = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
        stream.extend_from_slice(&bytes);
        responses(&[Kind::Plain], &cut(&stream, &places));
    }
}
