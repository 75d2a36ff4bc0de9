//! The state of HTTP/3 with arbitrary bytes on its streams: the same result for every split, no
//! panic, the right kind of each outcome.

use super::*;
use crate::connection::transport_end::TransportEnd;
use crate::{RequestSpec, ServerUrl, State};
use intact_ledger::{Event, Method, Outcome, Protocol};
use intact_wire::h3::{Setting, StreamKind, qpack, writer};
use proptest::prelude::*;

/// The stream of the first request, and the server's first two streams (RFC 9000 section 2.1).
const REQUEST: u64 = 0;
const CONTROL: u64 = 3;
const OTHER: u64 = 7;

/// Streams without a connection: every byte is taken.
#[derive(Default)]
struct AnyStreams {
    opened: u64,
    allowed: u64,
    finished: Vec<u64>,
    written: usize,
}

impl Streams for AnyStreams {
    fn open_request(&mut self) -> Option<u64> {
        (self.opened < self.allowed).then(|| {
            self.opened += 1;
            (self.opened - 1) * 4
        })
    }

    fn write(&mut self, _: u64, bytes: &[u8]) -> usize {
        self.written += bytes.len();
        bytes.len()
    }

    fn finish(&mut self, stream: u64) {
        self.finished.push(stream);
    }
}

#[derive(Default)]
struct Ended(Vec<Exchange>);

impl Sink for Ended {
    fn record(&mut self, event: Event<'_>) {
        if let Event::Exchange(exchange) = event {
            self.0.push(exchange.clone());
        }
    }
}

fn request() -> Arc<Request> {
    let address = ServerUrl::parse("https://h/").unwrap();
    let spec = RequestSpec::new(&address, Method::GET, "intact/test", &[], |_| None).unwrap();
    Arc::new(spec.format(Protocol::Http3))
}

fn at(nanos: u64) -> Arrival {
    Arrival::new(Some(Nanos(nanos)), Nanos(nanos))
}

fn begin(http: &mut Http3, id: u64, streams: &mut AnyStreams) {
    let new = NewExchange {
        request: &request(),
        id,
        due: Nanos(0).into(),
        warmup: false,
        setup: None,
        sent_before: 0,
    };
    http.begin(&new, streams);
}

/// A connection with a number of requests in flight.
fn begun(requests: u64) -> (Http3, AnyStreams) {
    let mut streams = AnyStreams {
        allowed: 100,
        ..AnyStreams::default()
    };
    let mut http = Http3::new(Exchange::new(0, Nanos(0)), Detail::Fields, 8);
    http.open_more(&mut streams);
    for id in 0..requests {
        begin(&mut http, id, &mut streams);
    }
    (http, streams)
}

/// Passes bytes of a stream in pieces of these lengths, then its end if there is one.
fn pass(
    http: &mut Http3,
    stream: u64,
    bytes: &[u8],
    pieces: &[usize],
    end: StreamEnd,
    sink: &mut Ended,
) -> Option<ErrorCode> {
    if stream == CONTROL || stream == OTHER {
        http.add_server_stream(stream);
    }
    let mut rest = bytes;
    let mut lengths = pieces.iter().cycle();
    let mut receive = |http: &mut Http3, chunks: &[Bytes], end| {
        let received = http.receive(stream, chunks, end, at(1), sink);
        received.err().map(|violation| {
            http.break_off(&violation, Nanos(1), sink);
            violation.h3
        })
    };
    while let (Some(&length), false) = (lengths.next(), rest.is_empty()) {
        let (piece, later) = rest.split_at(length.clamp(1, rest.len()));
        rest = later;
        let chunk = [Bytes::copy_from_slice(piece)];
        if let Some(code) = receive(http, &chunk, StreamEnd::Open) {
            return Some(code);
        }
    }
    receive(http, &[], end)
}

fn headers(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    qpack::begin(&mut block);
    for (name, value) in fields {
        qpack::encode(name.as_bytes(), value.as_bytes(), false, &mut block);
    }
    let mut out = Vec::new();
    writer::write_headers(&mut out, &block);
    out
}

fn data(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    writer::write_data_header(&mut out, bytes.len());
    out.extend_from_slice(bytes);
    out
}

fn response() -> Vec<u8> {
    let interim = headers(&[(":status", "103")]);
    let head = headers(&[(":status", "200"), ("content-length", "6"), ("server", "s")]);
    let trailers = headers(&[("x-after", "1")]);
    [interim, head, data(b"abc"), data(b"def"), trailers].concat()
}

/// The outcome of one response: its kind, status, body, and the code of a violation.
type Summary = (Outcome, Option<u16>, Option<u64>, Option<ErrorCode>);

fn converse(bytes: &[u8], pieces: &[usize], end: StreamEnd) -> Summary {
    let (mut http, _) = begun(1);
    let mut sink = Ended::default();
    let code = pass(&mut http, REQUEST, bytes, pieces, end, &mut sink);
    http.exchanges.end(&TransportEnd::default(), &mut sink);
    let exchange = sink.0.remove(0);
    assert!(sink.0.is_empty(), "one end for each exchange");
    (exchange.outcome, exchange.status, exchange.body.read, code)
}

proptest! {
    #[test]
    fn any_split_of_a_response_gives_the_same(pieces in proptest::collection::vec(1usize..9, 1..6)) {
        let whole = converse(&response(), &[usize::MAX], StreamEnd::Finished);
        prop_assert_eq!(whole, (Outcome::Ok, Some(200), Some(6), None));
        prop_assert_eq!(converse(&response(), &pieces, StreamEnd::Finished), whole);
    }

    #[test]
    fn no_bytes_make_a_conversation_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        pieces in proptest::collection::vec(1usize..40, 1..4),
        stream in prop::sample::select(vec![REQUEST, CONTROL, OTHER]),
        prefix in prop::sample::select(vec![&b""[..], b"\0\x04\0", b"\x02", b"\x03"]),
        end in prop::sample::select(vec![StreamEnd::Open, StreamEnd::Finished, StreamEnd::Reset(0x10b)]),
    ) {
        let (mut http, _) = begun(3);
        let mut sink = Ended::default();
        let bytes = [prefix, &bytes].concat();
        pass(&mut http, stream, &bytes, &pieces, end, &mut sink);
        let end = TransportEnd {
            failure: Some(Failure::Reset),
            ..TransportEnd::default()
        };
        http.exchanges.end(&end, &mut sink);
        prop_assert_eq!(sink.0.len(), 3, "one end for each exchange");
    }
}

#[test]
fn a_response_that_is_cut_or_malformed_is_counted_by_kind() {
    let head = headers(&[(":status", "200"), ("content-length", "6")]);
    let truncated = Outcome::Failed(Failure::Truncated);
    let malformed = Outcome::Failed(Failure::Malformed);
    let end = StreamEnd::Finished;
    let kind = |bytes: &[u8]| {
        let (outcome, .., code) = converse(bytes, &[usize::MAX], end);
        (outcome, code.unwrap())
    };
    assert_eq!(kind(&head), (truncated, ErrorCode::H3_MESSAGE_ERROR));
    let mut cut = [head.clone(), data(b"abcdef")].concat();
    cut.pop();
    assert_eq!(kind(&cut), (truncated, ErrorCode::H3_FRAME_ERROR));
    let long = [head.clone(), data(b"abcdefg")].concat();
    assert_eq!(kind(&long), (malformed, ErrorCode::H3_MESSAGE_ERROR));
    assert_eq!(kind(b""), (malformed, ErrorCode::H3_MESSAGE_ERROR));
    let early = data(b"abc");
    assert_eq!(kind(&early), (malformed, ErrorCode::H3_FRAME_UNEXPECTED));
    let unnamed = headers(&[("server", "s")]);
    assert_eq!(kind(&unnamed), (malformed, ErrorCode::H3_MESSAGE_ERROR));
    let mut settings = Vec::new();
    writer::write_settings(&mut settings, &[]);
    assert_eq!(kind(&settings), (malformed, ErrorCode::H3_FRAME_UNEXPECTED));
    // a reference to a dynamic table, which our settings forbid
    let dynamic = b"\x01\x03\x02\x00\x80";
    let failed = (malformed, ErrorCode::QPACK_DECOMPRESSION_FAILED);
    assert_eq!(kind(dynamic), failed);
    let flood = headers(&[(":status", "100")]).repeat(101);
    let too_large = Outcome::Failed(Failure::TooLarge);
    assert_eq!(kind(&flood), (too_large, ErrorCode::H3_EXCESSIVE_LOAD));
    let idle = b"\x21\x00".repeat(10_001);
    let no_progress = Outcome::Failed(Failure::NoProgress);
    assert_eq!(kind(&idle), (no_progress, ErrorCode::H3_EXCESSIVE_LOAD));
    let unfinished = converse(&head, &[usize::MAX], StreamEnd::Open);
    assert_eq!(unfinished.0, truncated);
    for (code, kind) in [(0x10b, Failure::Refusal), (0x102, Failure::StreamReset)] {
        let reset = converse(&head, &[usize::MAX], StreamEnd::Reset(code));
        assert_eq!((reset.0, reset.3), (Outcome::Failed(kind), None));
    }
}

fn control(frames: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    writer::write_stream_kind(&mut out, StreamKind::Control);
    frames(&mut out);
    out
}

#[test]
fn the_streams_of_a_server_are_checked_against_the_rules() {
    let settings = |out: &mut Vec<u8>| {
        writer::write_settings(out, &[(Setting::QpackMaxTableCapacity, 4096)]);
    };
    let code = |stream: &[u8], end| {
        let (mut http, _) = begun(1);
        pass(&mut http, CONTROL, stream, &[1], end, &mut Ended::default())
    };
    let good = control(settings);
    assert_eq!(code(&good, StreamEnd::Open), None);
    assert_eq!(code(b"\x21anything", StreamEnd::Finished), None);
    assert_eq!(code(b"\x02\x20", StreamEnd::Open), None);
    let wrong = [
        (
            good.clone(),
            StreamEnd::Finished,
            ErrorCode::H3_CLOSED_CRITICAL_STREAM,
        ),
        (
            control(|out| writer::write_go_away(out, 0)),
            StreamEnd::Open,
            ErrorCode::H3_MISSING_SETTINGS,
        ),
        (
            [good.clone(), good[1..].to_vec()].concat(),
            StreamEnd::Open,
            ErrorCode::H3_FRAME_UNEXPECTED,
        ),
        (
            b"\x01\x00".to_vec(),
            StreamEnd::Open,
            ErrorCode::H3_ID_ERROR,
        ),
        // the encoder inserts an entry, the decoder acknowledges a block
        (
            b"\x02\x41a\x01b".to_vec(),
            StreamEnd::Open,
            ErrorCode::QPACK_ENCODER_STREAM_ERROR,
        ),
        (
            b"\x03\x80".to_vec(),
            StreamEnd::Open,
            ErrorCode::QPACK_DECODER_STREAM_ERROR,
        ),
    ];
    for (bytes, end, expected) in wrong {
        assert_eq!(code(&bytes, end), Some(expected), "{bytes:x?}");
    }
    let (mut http, _) = begun(1);
    let mut sink = Ended::default();
    pass(&mut http, CONTROL, &good, &[9], StreamEnd::Open, &mut sink);
    let second = pass(&mut http, OTHER, &good, &[9], StreamEnd::Open, &mut sink);
    assert_eq!(second, Some(ErrorCode::H3_STREAM_CREATION_ERROR));
    assert_eq!(sink.0.len(), 1, "the exchange in flight has failed");
}

#[test]
fn goaway_refuses_the_requests_from_its_stream_on() {
    let (mut http, _) = begun(3);
    let mut sink = Ended::default();
    let goaway = control(|out| {
        writer::write_settings(out, &[]);
        writer::write_go_away(out, 4);
    });
    let code = pass(
        &mut http,
        CONTROL,
        &goaway,
        &[64],
        StreamEnd::Open,
        &mut sink,
    );
    assert_eq!(code, None);
    let refused: Vec<_> = sink.0.iter().map(|one| (one.stream, one.outcome)).collect();
    let refusal = Outcome::Failed(Failure::Refusal);
    assert_eq!(refused, [(Some(4), refusal), (Some(8), refusal)]);
    assert_eq!(http.state(), State::Busy);
    pass(
        &mut http,
        REQUEST,
        &response(),
        &[64],
        StreamEnd::Finished,
        &mut sink,
    );
    assert_eq!(sink.0[2].outcome, Outcome::Ok);
    assert_eq!(http.state(), State::Over);
    assert_eq!(http.life().announced_by, Some(Side::Server));
    assert_eq!(http.life().exchanges(), 1, "the server processed one");
}

#[test]
fn requests_wait_for_the_streams_that_the_server_allows() {
    let mut streams = AnyStreams::default();
    let mut http = Http3::new(Exchange::new(0, Nanos(0)), Detail::Outcome, 8);
    http.open_more(&mut streams);
    begin(&mut http, 1, &mut streams);
    assert_eq!((streams.written, http.state()), (0, State::Busy));
    streams.allowed = 1;
    http.open_more(&mut streams);
    assert!(streams.written > 0);
    assert_eq!(streams.finished, [REQUEST]);
    let mut sink = Ended::default();
    pass(
        &mut http,
        REQUEST,
        &response(),
        &[64],
        StreamEnd::Finished,
        &mut sink,
    );
    assert_eq!(sink.0[0].outcome, Outcome::Ok);
    // alone, the next exchange may begin and wait
    assert_eq!(http.state(), State::Ready);
}
