//! The state of a connection against bytes of any kind: the same in every split, never a panic, each outcome by its kind.

use super::*;
use crate::RequestSpec;
use crate::ServerUrl;
use intact_ledger::{Event, Method, Outcome};
use intact_wire::h2::hpack::{Encoder, Indexing};
use intact_wire::h2::{ErrorCode, Setting, writer};
use proptest::prelude::*;

/// What one exchange came to, times left out.
#[derive(Debug, PartialEq)]
struct ExchangeSummary {
    outcome: Outcome,
    status: Option<u16>,
    body: Option<u64>,
    fields: Vec<(String, String)>,
    keeps: bool,
    over: bool,
    unsolicited: Option<u16>,
}

/// Keeps the first exchange that ended.
#[derive(Default)]
struct FirstExchange(Option<Exchange>);

impl Sink for FirstExchange {
    fn record(&mut self, event: Event<'_>) {
        if let Event::Exchange(exchange) = event {
            self.0.get_or_insert_with(|| exchange.clone());
        }
    }
}

fn request(method: Method, path: &str, body: &[u8]) -> Arc<Request> {
    let address = ServerUrl::parse("http://h/").unwrap();
    let mut spec = RequestSpec::new(&address, method, "intact/test", &[], |_| None).unwrap();
    spec.path = path.to_owned();
    spec.body = body.into();
    Arc::new(spec.format(Protocol::Http2))
}

fn get() -> Arc<Request> {
    request(Method::GET, "/", b"")
}

fn state(protocol: Protocol, detail: Detail, streams: usize, out: &mut Vec<u8>) -> HttpState {
    let blank = Exchange::new(0, Nanos(0));
    HttpState::new(protocol, detail, streams, blank, out)
}

/// Begins an exchange and hands it the bytes in pieces of these lengths, over and over; then the stream ends if nothing came of it.
fn converse(protocol: Protocol, bytes: &[u8], pieces: &[usize]) -> ExchangeSummary {
    let mut out = Vec::new();
    let mut http = state(protocol, Detail::Fields, 1, &mut out);
    let mut sink = FirstExchange::default();
    http.begin(&get(), 1, Nanos(0), false, None, &mut out);
    let mut rest = bytes;
    let mut lengths = pieces.iter().cycle();
    while let (Some(&length), false) = (lengths.next(), rest.is_empty()) {
        let (piece, later) = rest.split_at(length.clamp(1, rest.len()));
        rest = later;
        http.receive(piece, at(1), &mut sink, &mut out);
    }
    let over = match &http {
        HttpState::Http1(http1) => http1.state() == State::Over,
        HttpState::Http2(http2) => http2.state() == State::Over,
    };
    let unsolicited = match &http {
        HttpState::Http1(http1) => http1.unsolicited_status,
        HttpState::Http2(_) => None,
    };
    http.end(None, Nanos(2), &TransportEnd::default(), &mut sink);
    let response = http.response().cloned().unwrap();
    let exchange = sink.0.unwrap();
    ExchangeSummary {
        outcome: exchange.outcome,
        status: exchange.status,
        body: exchange.body.read,
        fields: response.fields().to_vec(),
        keeps: response.keeps,
        over,
        unsolicited,
    }
}

fn at(nanos: u64) -> Arrival {
    Arrival {
        at: Nanos(nanos),
        read: Nanos(nanos),
        stamped: true,
    }
}

const HTTP1: &[&[u8]] = &[
    b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nServer: s\r\n\r\nabc",
    b"HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 204 No\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    b"HTTP/1.0 200 OK\r\n\r\nuntil the end",
    b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\ncut",
    b"nonsense\r\n\r\n",
];

/// An HTTP/2 server's side: SETTINGS, HEADERS, DATA, and what else.
fn http2(more: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    writer::write_settings(&mut out, &[(Setting::MaxConcurrentStreams, 7)]);
    let mut block = Vec::new();
    let mut encoder = Encoder::default();
    encoder.begin(&mut block);
    encoder.encode(b":status", b"200", Indexing::Incremental, &mut block);
    encoder.encode(b"server", b"s", Indexing::Incremental, &mut block);
    writer::write_headers(&mut out, 1, &block, false, 16_384);
    writer::write_data(&mut out, 1, b"abc", true);
    out.extend_from_slice(more);
    out
}

proptest! {
    #[test]
    fn any_split_of_a_response_gives_the_same(
        nth in 0..HTTP1.len(),
        pieces in proptest::collection::vec(1usize..9, 1..6),
    ) {
        let whole = converse(Protocol::Http11, HTTP1[nth], &[usize::MAX]);
        prop_assert_eq!(converse(Protocol::Http11, HTTP1[nth], &pieces), whole);
        let bytes = http2(&[]);
        let whole = converse(Protocol::Http2, &bytes, &[usize::MAX]);
        prop_assert_eq!(converse(Protocol::Http2, &bytes, &pieces), whole);
    }

    #[test]
    fn no_bytes_make_a_conversation_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        pieces in proptest::collection::vec(1usize..40, 1..4),
    ) {
        converse(Protocol::Http11, &bytes, &pieces);
        converse(Protocol::Http2, &bytes, &pieces);
        let mut begun = http2(&[]);
        begun.extend_from_slice(&bytes);
        converse(Protocol::Http2, &begun, &pieces);
    }
}

#[test]
fn what_a_response_says_of_the_connection_is_kept() {
    let summary = |nth: usize| converse(Protocol::Http11, HTTP1[nth], &[usize::MAX]);
    assert!(summary(0).keeps && !summary(0).over);
    assert_eq!((summary(1).status, summary(1).keeps), (Some(204), true));
    assert_eq!((summary(2).body, summary(2).keeps), (Some(3), true));
    assert!(!summary(3).keeps, "a body until the end of the stream");
    assert_eq!(summary(3).outcome, Outcome::Ok);
    assert!(!summary(4).keeps && summary(4).over);
    assert_eq!(summary(5).outcome, Outcome::Failed(Failure::Truncated));
    assert_eq!(summary(6).outcome, Outcome::Failed(Failure::Malformed));
}

#[test]
fn a_response_without_a_request_spoils_the_connection() {
    let mut bytes = HTTP1[0].to_vec();
    bytes.extend_from_slice(b"HTTP/1.1 408 Request Timeout\r\n\r\n");
    let summary = converse(Protocol::Http11, &bytes, &[HTTP1[0].len(), usize::MAX]);
    assert_eq!(
        (summary.status, summary.unsolicited),
        (Some(200), Some(408))
    );
    assert!(summary.over);
}

#[test]
fn goaway_ends_the_use_of_a_connection_and_not_the_exchange() {
    let mut goaway = Vec::new();
    writer::write_go_away(&mut goaway, 1, ErrorCode(0), b"");
    let summary = converse(Protocol::Http2, &http2(&goaway), &[usize::MAX]);
    assert_eq!((summary.outcome, summary.body), (Outcome::Ok, Some(3)));
    assert!(summary.over);
    let mut refused = Vec::new();
    writer::write_settings(&mut refused, &[]);
    writer::write_go_away(&mut refused, 0, ErrorCode(0), b"");
    let summary = converse(Protocol::Http2, &refused, &[usize::MAX]);
    assert_eq!(summary.outcome, Outcome::Failed(Failure::Refusal));
}

#[test]
fn interim_responses_without_end_are_too_large() {
    let mut bytes = Vec::new();
    writer::write_settings(&mut bytes, &[]);
    let mut encoder = Encoder::default();
    for _ in 0..200 {
        let mut block = Vec::new();
        encoder.begin(&mut block);
        encoder.encode(b":status", b"103", Indexing::Never, &mut block);
        writer::write_headers(&mut bytes, 1, &block, false, 16_384);
    }
    let summary = converse(Protocol::Http2, &bytes, &[usize::MAX]);
    assert_eq!(summary.outcome, Outcome::Failed(Failure::TooLarge));
    let endless = b"HTTP/1.1 103 Early\r\n\r\n".repeat(200);
    let summary = converse(Protocol::Http11, &endless, &[usize::MAX]);
    assert_eq!(summary.outcome, Outcome::Failed(Failure::TooLarge));
}

/// The header blocks that a server reads from `out`, decoded in order.
fn requests(out: &[u8]) -> Vec<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut reader = intact_wire::h2::FrameReader::client(intact_wire::h2::Limits::default());
    let mut decoder = intact_wire::h2::hpack::Decoder::new(64 * 1024);
    let mut rest = out;
    let mut all = Vec::new();
    loop {
        let step = reader.read(rest).unwrap();
        rest = &rest[step.consumed..];
        let Some(frame) = step.event else { return all };
        if let intact_wire::h2::Frame::Headers(headers) = frame {
            let mut fields = Vec::new();
            decoder
                .decode(headers.block, |field| {
                    fields.push((field.name.to_vec(), field.value.to_vec()));
                })
                .unwrap();
            all.push(fields);
        }
    }
}

#[test]
fn requests_that_change_between_each_other_and_between_settings_stay_readable() {
    let mut out = Vec::new();
    let mut http = state(Protocol::Http2, Detail::Outcome, 100, &mut out);
    let mut sink = FirstExchange::default();
    let (a, b) = (get(), request(Method::GET, "/other", b""));
    let mut paths = Vec::new();
    for (nth, request) in [&a, &a, &a, &b, &b, &b, &a, &b, &a, &a, &a, &a]
        .iter()
        .enumerate()
    {
        if nth == 2 {
            // the table shrinks so far that it holds one field: each block changes it
            let mut settings = Vec::new();
            writer::write_settings(&mut settings, &[(Setting::HeaderTableSize, 50)]);
            http.receive(&settings, at(1), &mut sink, &mut out);
        }
        http.begin(request, nth as u64, Nanos(0), false, None, &mut out);
        paths.push(if Arc::ptr_eq(request, &a) {
            "/"
        } else {
            "/other"
        });
    }
    let read = requests(&out);
    let read: Vec<_> = read
        .iter()
        .map(|fields| fields.iter().find(|(name, _)| name == b":path").unwrap())
        .map(|(_, path)| std::str::from_utf8(path).unwrap())
        .collect();
    assert_eq!(read, paths);
}
