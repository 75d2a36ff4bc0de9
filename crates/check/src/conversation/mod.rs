//! What is spoken on one connection, without I/O: bytes and their times in, answers and bytes to send out. One exchange at a time.

mod flight;
mod http1;
mod http2;

#[cfg(test)]
pub(crate) use flight::ResponseInfo;
pub(crate) use flight::{Answered, InFlight};
pub(crate) use http2::Settings;

use crate::request::Request;
use http1::Http1;
use http2::Http2;
use intact_client::Arrival;
use intact_ledger::{Failure, Nanos, Protocol, Side};

/// HTTP/1 or HTTP/2.
pub(crate) enum HttpConnection {
    Http1(Box<Http1>),
    Http2(Box<Http2>),
}

impl HttpConnection {
    /// A conversation; what has to be said first goes to `out`.
    pub(crate) fn new(protocol: Protocol, out: &mut Vec<u8>) -> HttpConnection {
        match protocol {
            Protocol::Http2 => HttpConnection::Http2(Box::new(Http2::new(out))),
            version => HttpConnection::Http1(Box::new(Http1::new(version))),
        }
    }

    /// Begins an exchange; what has to be sent goes to `out`.
    pub(crate) fn begin(&mut self, request: &Request, flight: InFlight, out: &mut Vec<u8>) {
        match self {
            HttpConnection::Http1(one) => one.begin(request, flight, out),
            HttpConnection::Http2(two) => two.begin(request, flight, out),
        }
    }

    /// Notes that the request is with the kernel.
    pub(crate) fn sent(&mut self, at: Nanos) {
        let flight = match self {
            HttpConnection::Http1(one) => &mut one.flight,
            HttpConnection::Http2(two) => &mut two.flight,
        };
        if let Some(flight) = flight {
            flight.sent(at);
        }
    }

    /// Takes bytes that arrived; the answer, if they completed one.
    pub(crate) fn receive(
        &mut self,
        bytes: &[u8],
        arrival: Arrival,
        out: &mut Vec<u8>,
    ) -> Option<Answered> {
        match self {
            HttpConnection::Http1(one) => one.receive(bytes, arrival),
            HttpConnection::Http2(two) => two.receive(bytes, arrival, out),
        }
    }

    /// The stream ended, with or without an error; what became of the exchange in flight.
    pub(crate) fn end(&mut self, failure: Option<Failure>, at: Nanos) -> Option<Answered> {
        match self {
            HttpConnection::Http1(one) => one.end(failure, at),
            HttpConnection::Http2(two) => two.end(failure, at),
        }
    }

    /// Whether an exchange is in flight.
    pub(crate) fn is_busy(&self) -> bool {
        match self {
            HttpConnection::Http1(one) => one.flight.is_some(),
            HttpConnection::Http2(two) => two.flight.is_some(),
        }
    }

    /// Whether it is over: nothing more may begin.
    pub(crate) fn is_over(&self) -> bool {
        match self {
            HttpConnection::Http1(one) => one.over,
            HttpConnection::Http2(two) => two.over,
        }
    }

    /// Who announced the end.
    pub(crate) fn announced_by(&self) -> Option<Side> {
        match self {
            HttpConnection::Http1(one) => one.announced_by,
            HttpConnection::Http2(two) => two.goaway_at.map(|_| Side::Server),
        }
    }

    /// When GOAWAY came.
    pub(crate) fn goaway_at(&self) -> Option<Nanos> {
        match self {
            HttpConnection::Http1(_) => None,
            HttpConnection::Http2(two) => two.goaway_at,
        }
    }

    /// The status of an answer that nobody had asked for.
    pub(crate) fn unasked(&self) -> Option<u16> {
        match self {
            HttpConnection::Http1(one) => one.unsolicited_status,
            HttpConnection::Http2(_) => None,
        }
    }

    /// The server's SETTINGS as sent, if it is HTTP/2.
    pub(crate) fn settings(&self) -> Option<&Settings> {
        match self {
            HttpConnection::Http1(_) => None,
            HttpConnection::Http2(two) => Some(&two.told),
        }
    }

    /// The last words before we close.
    pub(crate) fn goodbye(&self, out: &mut Vec<u8>) {
        if let HttpConnection::Http2(_) = self {
            http2::goodbye(out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use intact_ledger::{Exchange, Outcome};
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
        unasked: Option<u16>,
    }

    /// Begins an exchange and hands it the bytes in pieces of these lengths, over and over; then the stream ends if nothing came of it.
    fn converse(protocol: Protocol, bytes: &[u8], pieces: &[usize]) -> ExchangeSummary {
        let mut out = Vec::new();
        let mut talk = HttpConnection::new(protocol, &mut out);
        let request = Request::new(&Config::new("http://h/").unwrap()).unwrap();
        let flight = InFlight::new(Exchange::new(1, Nanos(0)), None);
        talk.begin(&request, flight, &mut out);
        let mut told = None;
        let mut rest = bytes;
        let mut lengths = pieces.iter().cycle();
        while let (Some(&length), false) = (lengths.next(), rest.is_empty()) {
            let (piece, later) = rest.split_at(length.clamp(1, rest.len()));
            rest = later;
            let answered = talk.receive(piece, at(1), &mut out);
            told = told.or(answered);
        }
        let answered = told.or_else(|| talk.end(None, Nanos(2))).unwrap();
        ExchangeSummary {
            outcome: answered.exchange.outcome,
            status: answered.exchange.status,
            body: answered.exchange.body.read,
            fields: answered.reply.fields().to_vec(),
            keeps: answered.reply.keeps,
            over: talk.is_over(),
            unasked: talk.unasked(),
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
        fn any_split_of_an_answer_tells_the_same(
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
    fn what_an_answer_says_of_the_connection_is_kept() {
        let told = |nth: usize| converse(Protocol::Http11, HTTP1[nth], &[usize::MAX]);
        assert!(told(0).keeps && !told(0).over);
        assert_eq!((told(1).status, told(1).keeps), (Some(204), true));
        assert_eq!((told(2).body, told(2).keeps), (Some(3), true));
        assert!(!told(3).keeps, "a body until the end of the stream");
        assert_eq!(told(3).outcome, Outcome::Ok);
        assert!(!told(4).keeps && told(4).over);
        assert_eq!(told(5).outcome, Outcome::Failed(Failure::Truncated));
        assert_eq!(told(6).outcome, Outcome::Failed(Failure::Malformed));
    }

    #[test]
    fn an_answer_that_nobody_asked_for_spoils_the_connection() {
        let mut bytes = HTTP1[0].to_vec();
        bytes.extend_from_slice(b"HTTP/1.1 408 Request Timeout\r\n\r\n");
        let told = converse(Protocol::Http11, &bytes, &[HTTP1[0].len(), usize::MAX]);
        assert_eq!((told.status, told.unasked), (Some(200), Some(408)));
        assert!(told.over);
    }

    #[test]
    fn goaway_ends_the_use_of_a_connection_and_not_the_answer() {
        let mut goaway = Vec::new();
        writer::write_go_away(&mut goaway, 1, ErrorCode(0), b"");
        let told = converse(Protocol::Http2, &http2(&goaway), &[usize::MAX]);
        assert_eq!((told.outcome, told.body), (Outcome::Ok, Some(3)));
        assert!(told.over);
        let mut refused = Vec::new();
        writer::write_settings(&mut refused, &[]);
        writer::write_go_away(&mut refused, 0, ErrorCode(0), b"");
        let told = converse(Protocol::Http2, &refused, &[usize::MAX]);
        assert_eq!(told.outcome, Outcome::Failed(Failure::Refusal));
    }

    #[test]
    fn interim_answers_without_end_are_too_large() {
        let mut bytes = Vec::new();
        writer::write_settings(&mut bytes, &[]);
        let mut encoder = Encoder::default();
        for _ in 0..200 {
            let mut block = Vec::new();
            encoder.begin(&mut block);
            encoder.encode(b":status", b"103", Indexing::Never, &mut block);
            writer::write_headers(&mut bytes, 1, &block, false, 16_384);
        }
        let told = converse(Protocol::Http2, &bytes, &[usize::MAX]);
        assert_eq!(told.outcome, Outcome::Failed(Failure::TooLarge));
        let endless = b"HTTP/1.1 103 Early\r\n\r\n".repeat(200);
        let told = converse(Protocol::Http11, &endless, &[usize::MAX]);
        assert_eq!(told.outcome, Outcome::Failed(Failure::TooLarge));
    }
}
