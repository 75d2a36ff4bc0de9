//! The comparisons on hand-written inputs, and on mutations of them.

use super::{Disagreement, Verdict, hpack, http1_heads, http1_messages, tls};
use crate::tls::tape::{Pair, Setup};
use intact_wire::Side;
use intact_wire::h2::hpack::{Encoder, Indexing};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use rustls::version;

const REQUESTS: [&str; 8] = [
    "GET /a?b=c HTTP/1.1\r\nHost: a.example\r\nX:\t v \r\n\r\nGET /next HTTP/1.1\r\nHost: a\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;x=\"y\"\r\nabc\r\n0\r\nT: v\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "PUT /p HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nxGET /q HTTP/1.0\r\n\r\n",
    "\r\nOPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close, x\r\nExpect: 100-continue\r\n\r\n",
    "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example\r\n\r\nbytes of a tunnel",
    "GET http://a.example/ HTTP/1.1\nHost: a\nContent-Length: 0\nContent-Length: 0\n\n",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
];

const RESPONSES: [&str; 8] = [
    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204\r\nConnection: close\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\nA \r\n0123456789\r\n00\r\n\r\n",
    "HTTP/1.0 200 OK\r\n\r\nuntil the end",
    "HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\nETag: \"x\"\r\n\r\n",
    "HTTP/1.1 503 \r\nContent-Length: 1, 1\r\nRetry-After: 1\r\n\r\nx",
    "HTTP/1.1 200 OK\nKeep-Alive: timeout=5\nTransfer-Encoding: gzip\n\nzipped",
    "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
];

/// Texts that mutations insert: readers of HTTP/1 are known to differ in them.
const TOKENS: [&str; 28] = [
    "\r\n",
    "\n",
    "\r",
    "\0",
    " ",
    "\t",
    "\x0b",
    "\x0c",
    "\x7f",
    "\u{e9}",
    ":",
    ";",
    ",",
    "\"",
    "+",
    "-",
    "0x",
    "Content-Length: 3\r\n",
    "Content-Length: 4\r\n",
    "Content-Length: 3, 3\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding: identity\r\n",
    "Connection: close\r\n",
    " folded\r\n",
    "HTTP/1.1",
    "HTTP/1.2",
    "HTTP/2.0",
    "ffffffffffffffff",
];

#[derive(Clone, Debug)]
enum Edit {
    Insert(usize, Vec<u8>),
    Remove(usize, usize),
    Replace(usize, u8),
}

fn edit() -> impl Strategy<Value = Edit> {
    let token = select(&TOKENS[..]).prop_map(|token| token.as_bytes().to_vec());
    prop_oneof![
        3 => (any::<usize>(), token).prop_map(|(at, token)| Edit::Insert(at, token)),
        1 => (any::<usize>(), 1..12_usize).prop_map(|(at, len)| Edit::Remove(at, len)),
        1 => (any::<usize>(), any::<u8>()).prop_map(|(at, byte)| Edit::Replace(at, byte)),
    ]
}

fn edited(base: &[u8], edits: &[Edit]) -> Vec<u8> {
    let mut bytes = base.to_vec();
    for edit in edits {
        match edit {
            Edit::Insert(at, token) => {
                let at = at % (bytes.len() + 1);
                bytes.splice(at..at, token.iter().copied());
            }
            Edit::Remove(at, len) => {
                let at = at % (bytes.len() + 1);
                bytes.drain(at..bytes.len().min(at + len));
            }
            Edit::Replace(at, byte) => {
                let at = at % bytes.len().max(1);
                if let Some(old) = bytes.get_mut(at) {
                    *old = *byte;
                }
            }
        }
    }
    bytes
}

type Comparison = fn(&[u8]) -> Result<Verdict, Disagreement>;

fn agree(verdict: Result<Verdict, Disagreement>, bytes: &[u8]) -> Verdict {
    verdict.unwrap_or_else(|Disagreement(text)| panic!("{}\n{text}", bytes.escape_ascii()))
}

#[test]
fn valid_messages_read_the_same() {
    for request in &REQUESTS[..7] {
        let bytes = request.as_bytes();
        assert_eq!(
            agree(http1_heads::compare_request(bytes), bytes),
            Verdict::Same
        );
        assert_eq!(
            agree(http1_messages::compare_requests(bytes), bytes),
            Verdict::Same
        );
    }
    for response in RESPONSES {
        let bytes = response.as_bytes();
        assert_eq!(
            agree(http1_heads::compare_response(bytes), bytes),
            Verdict::Same
        );
        assert_eq!(
            agree(http1_messages::compare_response(bytes), bytes),
            Verdict::Same,
            "{response:?}"
        );
    }
}

/// Inputs of the fuzzer that no rule of the comparison covered, and that are listed differences.
#[test]
fn differences_that_a_fuzzer_found_are_listed() {
    let requests: [&[u8]; 2] = [
        b"GET http://a.e#\xbb/ HTTP/1.0\nHost: a\n\n",
        b"PUT44444444444444444444444444444444444444444444444444444444444444444 /p HTTP/1.0\r\n\r\n",
    ];
    let long = [
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: ",
        &[b'a'; 20_000][..],
        b"\r\n\r\n",
    ];
    let responses: [&[u8]; 2] = [
        b"HTTP/1.2 304 Not ModifiePOST / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"HTTP/1.2 304 \xccHTTP/1.1 100 Continue\r\n\r\nETag: x\r\n\r\n",
    ];
    let is_listed = |verdict| matches!(verdict, Verdict::Listed(_));
    for bytes in requests.into_iter().chain([&long.concat()[..]]) {
        let verdict = agree(http1_messages::compare_requests(bytes), bytes);
        assert!(is_listed(verdict), "{}", bytes.escape_ascii());
    }
    for bytes in responses {
        let verdict = agree(http1_messages::compare_response(bytes), bytes);
        assert!(is_listed(verdict), "{}", bytes.escape_ascii());
    }
}

/// Inputs that a fuzzer finds first.
#[test]
fn one_token_anywhere_causes_no_unlisted_difference() {
    let mut wrong = Vec::new();
    let mut try_all = |bases: &[&str], compare: Comparison| {
        for base in bases {
            for (at, token) in (0..=base.len()).flat_map(|at| TOKENS.map(|token| (at, token))) {
                let bytes = edited(base.as_bytes(), &[Edit::Insert(at, token.into())]);
                if let Err(Disagreement(text)) = compare(&bytes) {
                    wrong.push(format!("{}\n{text}", bytes.escape_ascii()));
                }
            }
        }
    };
    try_all(&REQUESTS, http1_heads::compare_request);
    try_all(&REQUESTS, http1_messages::compare_requests);
    try_all(&RESPONSES, http1_heads::compare_response);
    try_all(&RESPONSES, http1_messages::compare_response);
    none(&wrong);
}

#[test]
fn the_hello_of_a_client_reads_the_same() {
    let mut wrong = Vec::new();
    for setup in [Setup::new(&version::TLS12), Setup::new(&version::TLS13)] {
        let tape = Pair::new(&setup).talk();
        let (_, hello) = tape
            .pieces
            .iter()
            .find(|(side, _)| *side == Side::Client)
            .unwrap();
        assert_eq!(agree(tls::compare(hello), hello), Verdict::Same);
        let cut = (0..hello.len()).map(|len| hello[..len].to_vec());
        let places = (0..hello.len()).flat_map(|at| [0, 1, 0x7f, 0xff].map(|byte| (at, byte)));
        let damaged = places.map(|(at, byte)| edited(hello, &[Edit::Replace(at, byte)]));
        for bytes in cut.chain(damaged) {
            if let Err(Disagreement(text)) = tls::compare(&bytes) {
                wrong.push(format!("{}\n{text}", bytes.escape_ascii()));
            }
        }
    }
    none(&wrong);
}

#[test]
fn a_session_id_of_more_than_32_bytes_is_no_hello() {
    let tape = Pair::new(&Setup::new(&version::TLS13)).talk();
    let mut pieces = tape.pieces.iter();
    let (_, hello) = pieces.find(|(side, _)| *side == Side::Client).unwrap();
    let mut longer = hello.clone();
    // a header of 5 bytes, one of 4, the version, 32 random bytes, then the length of the id
    assert_eq!(longer[43], 32);
    longer[43] += 1;
    longer.insert(44, 0);
    for low in [4, 8] {
        assert!(longer[low] < 255, "no carry");
        longer[low] += 1;
    }
    assert_eq!(agree(tls::compare(&longer), &longer), Verdict::Same);
}

fn none(wrong: &[String]) {
    let shown = &wrong[..wrong.len().min(5)];
    assert!(
        wrong.is_empty(),
        "{} of them: {}",
        wrong.len(),
        shown.join("\n\n")
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn requests_read_the_same(base in select(&REQUESTS[..]), edits in vec(edit(), 0..5)) {
        let bytes = edited(base.as_bytes(), &edits);
        agree(http1_heads::compare_request(&bytes), &bytes);
        agree(http1_messages::compare_requests(&bytes), &bytes);
    }

    #[test]
    fn responses_read_the_same(base in select(&RESPONSES[..]), edits in vec(edit(), 0..5)) {
        let bytes = edited(base.as_bytes(), &edits);
        agree(http1_heads::compare_response(&bytes), &bytes);
        agree(http1_messages::compare_response(&bytes), &bytes);
    }

    #[test]
    fn header_blocks_read_the_same(fields in vec(vec(field(), 0..5), 1..4), edits in vec(edit(), 0..2)) {
        let mut encoder = Encoder::default();
        let mut blocks: Vec<Vec<u8>> = Vec::new();
        for fields in &fields {
            let mut block = Vec::new();
            for (name, value, indexing) in fields {
                encoder.encode(name, value, *indexing, &mut block);
            }
            blocks.push(block);
        }
        if let Some(last) = blocks.last_mut() {
            *last = edited(last, &edits);
        }
        let blocks: Vec<&[u8]> = blocks.iter().map(Vec::as_slice).collect();
        agree(hpack::compare(&blocks), &blocks.concat());
    }
}

/// A field whose name and value repeat often, so both tables are used.
fn field() -> impl Strategy<Value = (&'static [u8], &'static [u8], Indexing)> {
    let names: [&[u8]; 5] = [b":status", b"content-length", b"x-one", b"set-cookie", b""];
    let values: [&[u8]; 5] = [
        b"200",
        b"",
        b"a value of some length",
        &[0xff; 9],
        &[b'x'; 2000],
    ];
    let indexing = [
        Indexing::Incremental,
        Indexing::Incremental,
        Indexing::Without,
        Indexing::Never,
    ];
    (
        select(names.to_vec()),
        select(values.to_vec()),
        select(indexing.to_vec()),
    )
}
