//! A client's connection over a socket pair: any bytes of a server in any pieces, requests begun
//! and given up at any time, HTTP/1 and HTTP/2. Every read moves bytes, every exchange that was
//! begun ends once and in time order, nothing begins on a connection that is over, and what waits
//! to be sent stays in proportion to what was received. The engine asserts that it has a place for
//! each stream in flight and no other.
//!
//! A mutation of bytes seldom leaves a frame whole, so a piece may be a frame of HTTP/2 or a
//! response of HTTP/1.
//!
//! `env --ignore-signal=PIPE` has to precede the program: libFuzzer's main does not ignore SIGPIPE
//! as Rust's does.
#![no_main]

use intact_client::clock::TimestampConverter;
use intact_client::{
    Clock, Detail, Established, HandshakeFacts, HttpConnection, Received, Request, RequestSpec,
    ServerUrl, State, Stream, Transport,
};
use intact_ledger::{
    Connection, ConnectionId, Event, Exchange, Failure, Method, Nanos, Protocol, Sink,
};
use libfuzzer_sys::fuzz_target;
use std::collections::HashSet;
use std::io::Write;
use std::net::Shutdown;
use std::sync::Arc;

/// Checks the exchanges as they end.
#[derive(Default)]
struct Ended(HashSet<u64>);

impl Sink for Ended {
    fn record(&mut self, event: Event<'_>) {
        if let Event::Exchange(exchange) = event {
            assert!(self.0.insert(exchange.id), "an exchange ended twice");
            assert!(exchange.at <= exchange.end);
            if exchange.outcome.is_ok() {
                assert!(exchange.status.is_some());
            }
        }
    }
}

/// HTTP/2, whether fields are kept, streams, and the method.
type Setting = (bool, bool, u8, u8);
/// What the server sends, and what happens after that: the form and the stream are those of
/// [`payload`].
type Piece = (u8, u8, Vec<u8>, u8);

/// What the server sends, of the bytes of a piece. The upper bits of `stream` choose the flags.
fn payload(http2: bool, form: u8, stream: u8, bytes: &[u8]) -> Vec<u8> {
    // a socket pair holds far more than this
    let bytes = &bytes[..bytes.len().min(16 * 1024)];
    let kind = form % 16;
    if !http2 || kind > 9 {
        let head: &[u8] = match form % 4 {
            1 => b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
            2 => b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            3 => b"HTTP/1.1 100 Continue\r\n\r\n",
            _ => b"",
        };
        return [head, bytes].concat();
    }
    // of the connection, or one of the first that a client opens
    let id = match (kind, stream % 32) {
        (4 | 6 | 7, _) | (_, 31) => 0,
        (_, nth) => 2 * nth + 1,
    };
    let bytes: &[u8] = match (kind, bytes) {
        // :status 200; an increment, an error code
        (1, []) => &[0x88],
        (3 | 8, []) => &[0, 0, 0, 1],
        (6 | 7, []) => &[0; 8],
        (_, bytes) => bytes,
    };
    let flags = match stream / 32 {
        0 | 1 => 5,
        2 => 4,
        3 => 1,
        4 => 0,
        more => 8 | more,
    };
    let [.., high, low] = bytes.len().to_be_bytes();
    [&[0, high, low, kind, flags, 0, 0, 0, id][..], bytes].concat()
}

fn request(http2: bool, method: u8) -> Arc<Request> {
    let url = ServerUrl::parse("http://h/").unwrap();
    let method = [Method::GET, Method::HEAD, Method::POST][usize::from(method % 3)].clone();
    let mut spec = RequestSpec::new(&url, method.clone(), "intact/fuzz", &[], |_| None).unwrap();
    if method == Method::POST {
        spec.body = [b'x'; 100].as_slice().into();
    }
    Arc::new(spec.format(if http2 {
        Protocol::Http2
    } else {
        Protocol::Http11
    }))
}

fuzz_target!(|data: (Setting, Vec<Piece>)| {
    let ((http2, keeps_fields, streams, method), pieces) = data;
    let (ours, theirs) = mio::net::UnixStream::pair().unwrap();
    let clock = Clock::start();
    let established = Established {
        transport: Transport::Stream {
            stream: Stream::Unix(ours),
            session: None,
        },
        connection: Connection::new(ConnectionId(1), Nanos(0)),
        stamped: false,
        handshake: HandshakeFacts::default(),
        is_tunnel: false,
        header_table: None,
        early: None,
    };
    let protocol = if http2 {
        Protocol::Http2
    } else {
        Protocol::Http11
    };
    let detail = if keeps_fields {
        Detail::Fields
    } else {
        Detail::Outcome
    };
    let most = usize::from(streams % 4) + 1;
    let blank = Exchange::new(0, Nanos(0));
    let mut http = HttpConnection::new(established, protocol, detail, most, blank);
    let request = request(http2, method);
    let (mut sink, mut begun, mut sent) = (Ended::default(), 0, 0);
    let mut buffer = vec![0; 4096];
    let begin = |http: &mut HttpConnection, begun: &mut u64| {
        while http.state() == State::Ready && *begun < 64 {
            *begun += 1;
            http.begin(&request, *begun, clock.now(), false);
            if !http2 {
                break;
            }
        }
        let _ = http.send(&clock);
    };
    begin(&mut http, &mut begun);
    for (form, stream, bytes, then) in pieces {
        let bytes = payload(http2, form, stream, &bytes);
        sent += bytes.len() as u64;
        if (&theirs).write_all(&bytes).is_err() {
            break;
        }
        let mut reads = 0;
        loop {
            let before = http.moved();
            let timestamps = TimestampConverter::read(&clock);
            match http.receive(&mut buffer, &clock, &timestamps, &mut sink) {
                Received::Bytes { count, .. } => {
                    assert!(count > 0 && http.moved() >= before + count as u64);
                }
                Received::Nothing | Received::Ended => break,
            }
            reads += 1;
            assert!(reads <= bytes.len(), "reads without bytes");
        }
        let _ = http.send(&clock);
        http.flush();
        assert_eq!(http.oldest().is_some(), (sink.0.len() as u64) < begun);
        match then {
            255 => http.give_up(Some(Failure::Timeout), clock.now(), &mut sink),
            254 => drop(theirs.shutdown(Shutdown::Write)),
            253 => http.give_up_idle_turns(1, clock.now(), &mut sink),
            _ => begin(&mut http, &mut begun),
        }
        // 17 bytes for a PING of 17, 9 for SETTINGS of 9; requests and their bodies
        assert!(http.moved() <= 3 * sent + 1_000 * (begun + 1));
    }
    http.give_up(None, clock.now(), &mut sink);
    assert_eq!(sink.0.len() as u64, begun, "an exchange did not end");
    assert!(http.oldest().is_none() && http.state() == State::Over);
    let closed = http.close(clock.now());
    assert_eq!(closed.close.exchanges, Some(begun));
});
