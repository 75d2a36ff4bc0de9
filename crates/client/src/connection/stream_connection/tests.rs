//! The state of a connection with arbitrary bytes: the same result for every split, no panic, the
//! right kind of each outcome.

use super::super::Detail;
use super::super::http1::Http1;
use super::*;
use crate::RequestSpec;
use crate::ServerUrl;
use intact_ledger::{Event, Exchange, Method, Outcome, Protocol};
use intact_wire::h2::hpack::{Encoder, Indexing};
use intact_wire::h2::{ErrorCode, Setting, writer};
use proptest::prelude::*;

/// The result of one exchange, without times.
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

fn blank() -> Exchange {
    Exchange::new(0, Nanos(0))
}

fn http2_state(detail: Detail, streams: usize) -> (Http2, Vec<u8>) {
    Http2::new(blank(), (detail, None), streams)
}

fn begin(http: &mut impl HttpState, request: &Arc<Request>, id: u64, out: &mut Vec<u8>) {
    let new = NewExchange {
        request,
        id,
        due: Nanos(0).into(),
        warmup: false,
        setup: None,
        sent_before: 0,
    };
    http.begin(&new, out);
}

fn converse(protocol: Protocol, bytes: &[u8], pieces: &[usize]) -> ExchangeSummary {
    match protocol {
        Protocol::Http2 => converse_with(http2_state(Detail::Fields, 1), bytes, pieces),
        _ => {
            let http = Http1::new(blank(), Detail::Fields);
            converse_with((http, Vec::new()), bytes, pieces)
        }
    }
}

/// Begins an exchange and passes the bytes in pieces of these lengths, repeatedly. Then the stream
/// ends, if the exchange has not ended.
fn converse_with(
    (mut http, mut out): (impl HttpState, Vec<u8>),
    bytes: &[u8],
    pieces: &[usize],
) -> ExchangeSummary {
    let mut sink = FirstExchange::default();
    begin(&mut http, &get(), 1, &mut out);
    let mut rest = bytes;
    let mut lengths = pieces.iter().cycle();
    while let (Some(&length), false) = (lengths.next(), rest.is_empty()) {
        let (piece, later) = rest.split_at(length.clamp(1, rest.len()));
        rest = later;
        http.receive(piece, at(1), &mut sink, &mut out);
    }
    let over = http.state() == State::Over;
    let unsolicited = http.life().unsolicited_status;
    http.end(&TransportEnd::default(), &mut sink);
    let response = http.life().response.clone().unwrap();
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

/// The bytes of an HTTP/2 server: SETTINGS, HEADERS, DATA, and `more`.
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
fn what_a_response_announces_about_the_connection_is_kept() {
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
fn after_a_response_without_a_request_the_connection_is_over() {
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
fn requests_that_change_and_changed_settings_stay_readable() {
    let (mut http, mut out) = http2_state(Detail::Outcome, 100);
    let mut sink = FirstExchange::default();
    let (a, b) = (get(), request(Method::GET, "/other", b""));
    let mut paths = Vec::new();
    for (nth, request) in [&a, &a, &a, &b, &b, &b, &a, &b, &a, &a, &a, &a]
        .iter()
        .enumerate()
    {
        if nth == 2 {
            // the table shrinks to the size of one field, so each block changes it
            let mut settings = Vec::new();
            writer::write_settings(&mut settings, &[(Setting::HeaderTableSize, 50)]);
            http.receive(&settings, at(1), &mut sink, &mut out);
        }
        begin(&mut http, request, nth as u64, &mut out);
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

/// A header block of these fields, none of them indexed.
fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    let mut encoder = Encoder::default();
    encoder.begin(&mut block);
    for (name, value) in fields {
        encoder.encode(
            name.as_bytes(),
            value.as_bytes(),
            Indexing::Never,
            &mut block,
        );
    }
    block
}

/// SETTINGS, and these frames.
fn frames(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    writer::write_settings(&mut out, &[]);
    write(&mut out);
    out
}

const OK: (&str, &str) = (":status", "200");

#[test]
fn a_response_that_violates_rfc_9113_is_malformed_immediately() {
    let sections: &[&[(&str, &str)]] = &[
        &[],
        &[("server", "s")],
        &[OK, OK],
        &[OK, (":status", "404")],
        &[("server", "s"), OK],
        &[(":status", "20")],
        &[(":status", "101")],
        &[OK, (":path", "/")],
        &[OK, ("Server", "s")],
        &[OK, ("connection", "keep-alive")],
        &[OK, ("keep-alive", "timeout=5")],
        &[OK, ("proxy-connection", "close")],
        &[OK, ("transfer-encoding", "chunked")],
        &[OK, ("upgrade", "h2c")],
        &[OK, ("content-length", "1"), ("content-length", "2")],
        &[OK, ("x", "a\r\nb: c")],
    ];
    let cases = sections.iter().map(|fields| {
        let bytes = frames(|out| writer::write_headers(out, 1, &block(fields), false, 16_384));
        (format!("{fields:?}"), bytes)
    });
    for (what, bytes) in cases.chain(wrong_frames()) {
        let summary = converse(Protocol::Http2, &bytes, &[usize::MAX]);
        assert_eq!(
            summary.outcome,
            Outcome::Failed(Failure::Malformed),
            "{what}"
        );
        assert!(
            summary.over,
            "{what}: the connection must not be used again"
        );
        assert_eq!(converse(Protocol::Http2, &bytes, &[1]), summary, "{what}");
    }
}

/// Frames that are not allowed, each without the end of the stream: only the rule ends the
/// exchange.
fn wrong_frames() -> Vec<(String, Vec<u8>)> {
    let ok = block(&[OK]);
    let trailers = block(&[("x", "y")]);
    let headers = |out: &mut Vec<u8>, stream, block: &[u8], end| {
        writer::write_headers(out, stream, block, end, 16_384);
    };
    let named = |what: &str, bytes| (what.to_owned(), bytes);
    vec![
        named(
            "a response on an idle stream",
            frames(|out| headers(out, 3, &ok, true)),
        ),
        named(
            "a response on an even stream",
            frames(|out| headers(out, 2, &ok, true)),
        ),
        named(
            "DATA on an idle stream",
            frames(|out| writer::write_data(out, 3, b"a", true)),
        ),
        named(
            "DATA on an even stream",
            frames(|out| writer::write_data(out, 2, b"a", true)),
        ),
        named(
            "DATA before the header section",
            frames(|out| writer::write_data(out, 1, b"a", false)),
        ),
        named(
            "a reset of an idle stream",
            frames(|out| writer::write_reset(out, 3, ErrorCode::CANCEL)),
        ),
        named(
            "a window of an idle stream",
            frames(|out| writer::write_window_update(out, 3, 1)),
        ),
        named(
            "a window above 2^31 - 1",
            frames(|out| writer::write_window_update(out, 0, 0x7fff_ffff)),
        ),
        named(
            "a stream's window above 2^31 - 1",
            frames(|out| writer::write_window_update(out, 1, 0x7fff_ffff)),
        ),
        named(
            "a second header section without an end",
            frames(|out| {
                headers(out, 1, &ok, false);
                headers(out, 1, &trailers, false);
            }),
        ),
        named(
            ":status among trailers",
            frames(|out| {
                headers(out, 1, &ok, false);
                headers(out, 1, &ok, true);
            }),
        ),
        named(
            "an interim response that ends the stream",
            frames(|out| {
                headers(out, 1, &block(&[(":status", "103")]), true);
            }),
        ),
        named(
            "a body shorter than announced",
            frames(|out| {
                headers(out, 1, &block(&[OK, ("content-length", "5")]), false);
                writer::write_data(out, 1, b"abc", true);
            }),
        ),
        named(
            "a body longer than announced",
            frames(|out| {
                headers(out, 1, &block(&[OK, ("content-length", "1")]), false);
                writer::write_data(out, 1, b"abc", true);
            }),
        ),
    ]
}

#[test]
fn a_response_before_its_request_ends_the_connection() {
    let mut sink = FirstExchange::default();
    let (mut http, mut sent) = http2_state(Detail::Outcome, 1);
    let early = frames(|out| writer::write_headers(out, 1, &block(&[OK]), true, 16_384));
    http.receive(&early, at(1), &mut sink, &mut sent);
    assert_eq!(http.state(), State::Over);
    assert!(sink.0.is_none(), "no exchange had begun");
    // the server receives the reason
    let mut last = Vec::new();
    http.goodbye(&mut last);
    assert_eq!(last[13..17], ErrorCode::PROTOCOL_ERROR.0.to_be_bytes());
}

#[test]
fn an_announced_length_without_a_body_is_fine_where_none_may_come() {
    let fields = block(&[OK, ("content-length", "5")]);
    let bytes = frames(|out| writer::write_headers(out, 1, &fields, true, 16_384));
    let mut sink = FirstExchange::default();
    let (mut http, mut sent) = http2_state(Detail::Outcome, 1);
    let head = request(Method::HEAD, "/", b"");
    begin(&mut http, &head, 1, &mut sent);
    http.receive(&bytes, at(1), &mut sink, &mut sent);
    assert_eq!(sink.0.unwrap().outcome, Outcome::Ok);
    let unchanged = block(&[(":status", "304"), ("content-length", "5")]);
    let bytes = frames(|out| writer::write_headers(out, 1, &unchanged, true, 16_384));
    let summary = converse(Protocol::Http2, &bytes, &[usize::MAX]);
    assert_eq!(summary.outcome, Outcome::Ok);
}

#[test]
fn frames_without_a_response_fail_with_no_progress() {
    let floods: &[fn(&mut Vec<u8>)] = &[
        |out| writer::write_settings(out, &[]),
        writer::write_settings_ack,
        |out| writer::write_ping(out, false, [0; 8]),
        |out| writer::write_ping(out, true, [0; 8]),
        |out| writer::write_window_update(out, 0, 1),
        |out| writer::write_data(out, 1, b"", false),
        |out| writer::write_go_away(out, 1, ErrorCode::NO_ERROR, b""),
        |out| out.extend_from_slice(&[0, 0, 0, 0xbe, 0, 0, 0, 0, 1]),
    ];
    for (nth, flood) in floods.iter().enumerate() {
        let bytes = frames(|out| {
            writer::write_headers(out, 1, &block(&[OK]), false, 16_384);
            (0..10_001).for_each(|_| flood(out));
        });
        let summary = converse(Protocol::Http2, &bytes, &[usize::MAX]);
        assert_eq!(
            summary.outcome,
            Outcome::Failed(Failure::NoProgress),
            "flood {nth}"
        );
    }
    // a response in between is progress
    let bytes = frames(|out| {
        writer::write_headers(out, 1, &block(&[OK]), false, 16_384);
        for _ in 0..30 {
            (0..1_000).for_each(|_| writer::write_window_update(out, 0, 1));
            writer::write_data(out, 1, b"a", false);
        }
        writer::write_data(out, 1, b"", true);
    });
    let summary = converse(Protocol::Http2, &bytes, &[usize::MAX]);
    assert_eq!((summary.outcome, summary.body), (Outcome::Ok, Some(30)));
}

#[test]
fn replies_that_the_server_does_not_read_do_not_accumulate() {
    let mut sink = FirstExchange::default();
    let (mut http, mut sent) = http2_state(Detail::Outcome, 1);
    begin(&mut http, &get(), 1, &mut sent);
    let mut round = Vec::new();
    (0..1_000).for_each(|_| writer::write_ping(&mut round, false, [0; 8]));
    writer::write_data(&mut round, 1, b"a", false);
    let start = frames(|out| writer::write_headers(out, 1, &block(&[OK]), false, 16_384));
    http.receive(&start, at(1), &mut sink, &mut sent);
    for _ in 0..100 {
        http.receive(&round, at(1), &mut sink, &mut sent);
        http.sent(Nanos(1), true);
    }
    assert_eq!(
        sink.0.unwrap().outcome,
        Outcome::Failed(Failure::NoProgress)
    );
    assert!(sent.len() < 200_000, "{} bytes wait", sent.len());
}

#[test]
fn bytes_after_a_response_are_counted_in_any_pieces() {
    let excess = |bytes: &[u8], length: usize| {
        let (mut http, mut out) = (Http1::new(blank(), Detail::Outcome), Vec::new());
        begin(&mut http, &get(), 1, &mut out);
        for piece in bytes.chunks(length) {
            http.receive(piece, at(1), &mut FirstExchange::default(), &mut out);
        }
        let life = http.life();
        (life.excess, life.unsolicited_status, http.state())
    };
    let response = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhel".to_vec();
    let with = |more: &[u8]| [&response, more].concat();
    let unsolicited = b"HTTP/1.1 408 Late\r\nContent-Length: 0\r\n\r\n";
    for length in [1, 2, 7, 1_000] {
        assert_eq!(excess(&response, length), (0, None, State::Ready));
        assert_eq!(excess(&with(b"lo"), length), (2, None, State::Over));
        assert_eq!(excess(&with(b"\r\n"), length), (2, None, State::Over));
        let late = excess(&with(unsolicited), length);
        assert_eq!(late, (0, Some(408), State::Over));
    }
}

#[test]
fn without_a_header_table_each_header_section_has_all_its_fields() {
    for has_table in [true, false] {
        let (mut http, preface) = Http2::new(blank(), (Detail::Outcome, Some(has_table)), 2);
        let no_table = [0, 1, 0, 0, 0, 0];
        let refuses = preface.windows(6).any(|setting| setting == no_table);
        assert_eq!(refuses, !has_table);
        let [first, second] = [1, 2].map(|id| {
            let mut out = Vec::new();
            begin(&mut http, &get(), id, &mut out);
            out.len()
        });
        assert_eq!(second < first, has_table, "{second} after {first}");
        assert_eq!(second == first, !has_table, "{second} after {first}");
    }
}
