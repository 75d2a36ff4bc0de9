//! HTTP/2 by hand: frames as bytes, so that the server is not compared with the code it is made of.

use crate::rig::{Rig, secure};
use intact_serve::Config;
use std::io::{Read, Write};
use std::time::Duration;

pub(crate) const KIND_DATA: u8 = 0x0;
pub(crate) const KIND_HEADERS: u8 = 0x1;
pub(crate) const RST_STREAM: u8 = 0x3;
pub(crate) const SETTINGS: u8 = 0x4;
pub(crate) const GOAWAY: u8 = 0x7;
pub(crate) const WINDOW_UPDATE: u8 = 0x8;
const END_STREAM: u8 = 0x1;
const END_HEADERS: u8 = 0x4;

/// A frame from the server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

impl Frame {
    pub(crate) fn ends_stream(&self) -> bool {
        self.flags & END_STREAM != 0
    }
}

/// A client that writes what the test gives it.
pub(crate) struct Client<S> {
    pub(crate) stream: S,
}

impl<S: Read + Write> Client<S> {
    /// Sends preface and empty SETTINGS.
    pub(crate) fn start(stream: S) -> Client<S> {
        let mut client = Client { stream };
        client.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        client.frame(SETTINGS, 0, 0, &[]);
        client
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
        self.stream.flush().unwrap();
    }

    pub(crate) fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
        frame.extend([kind, flags]);
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        self.write(&frame);
    }

    /// Sends a GET.
    pub(crate) fn get(&mut self, stream: u32, path: &str) {
        let block = block(0x82, path);
        self.frame(KIND_HEADERS, END_STREAM | END_HEADERS, stream, &block);
    }

    /// Sends a POST with a body in one frame.
    pub(crate) fn post(&mut self, stream: u32, path: &str, body: &[u8]) {
        let block = block(0x83, path);
        self.frame(KIND_HEADERS, END_HEADERS, stream, &block);
        self.frame(KIND_DATA, END_STREAM, stream, body);
    }

    /// The next frame; `None` at the end of the stream, however it comes.
    pub(crate) fn next(&mut self) -> Option<Frame> {
        let mut head = [0; 9];
        self.stream.read_exact(&mut head).ok()?;
        let [a, b, c, kind, flags, stream @ ..] = head;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        self.stream.read_exact(&mut payload).ok()?;
        Some(Frame {
            kind,
            flags,
            stream: u32::from_be_bytes(stream),
            payload,
        })
    }

    /// The next frame of a kind; those before it are skipped.
    pub(crate) fn until(&mut self, kind: u8) -> Frame {
        loop {
            let frame = self.next().expect("the connection ended");
            if frame.kind == kind {
                return frame;
            }
        }
    }

    /// All frames up to the end of the connection.
    pub(crate) fn rest(&mut self) -> Vec<Frame> {
        std::iter::from_fn(|| self.next()).collect()
    }

    /// The header block and body on a stream.
    pub(crate) fn answer(&mut self, stream: u32) -> (Vec<u8>, Vec<u8>) {
        let [answer] = self.answers([stream]);
        answer
    }

    /// The header block and body on each of several streams, in whichever order they come.
    pub(crate) fn answers<const N: usize>(&mut self, streams: [u32; N]) -> [(Vec<u8>, Vec<u8>); N] {
        let mut answers = std::array::from_fn(|_| (Vec::<u8>::new(), Vec::<u8>::new()));
        let mut open = N;
        while open > 0 {
            let frame = self.next().expect("the connection ended");
            let begun = answers.iter().any(|(head, _)| !head.is_empty());
            let Some(at) = streams.iter().position(|stream| *stream == frame.stream) else {
                // those of earlier requests may come first
                assert!(!begun || frame.kind != KIND_DATA, "{frame:?}");
                continue;
            };
            let ended = frame.ends_stream();
            let (head, body) = &mut answers[at];
            match frame.kind {
                KIND_HEADERS => *head = frame.payload,
                KIND_DATA => {
                    assert!(!head.is_empty(), "DATA before HEADERS");
                    body.extend(frame.payload);
                }
                _ => continue,
            }
            open -= usize::from(ended);
        }
        answers
    }
}

/// A request's header block: method by static index, `:scheme http`, literal path and authority
/// (RFC 7541 section 6).
fn block(method: u8, path: &str) -> Vec<u8> {
    let mut block = vec![method, 0x86, 0x04, path.len() as u8];
    block.extend(path.as_bytes());
    block.extend(b"\x01\x01a");
    block
}

/// The header block of a call: the name of `content-type` from the static table, the value as it
/// is.
fn grpc_block(path: &str) -> Vec<u8> {
    let mut block = block(0x83, path);
    block.extend([0x0f, 0x10, 16]);
    block.extend(b"application/grpc");
    block
}

fn rig() -> Rig {
    Rig::start(Config::default())
}

#[test]
fn prior_knowledge_is_taken_on_the_plain_port() {
    let rig = rig();
    let mut client = Client::start(rig.connect());
    client.get(1, "/");
    let (head, body) = client.answer(1);
    // :status 200 by its static index
    assert_eq!((head[0], body.len()), (0x88, 100));
    client.get(3, "/status/404");
    assert_eq!(client.answer(3).0[0], 0x8d);
    drop(client);
    let totals = rig.end();
    assert_eq!((totals.requests.ok, totals.connections.opened), (2, 1));
    assert_eq!(totals.versions[0].http, intact_ledger::Protocol::Http2);
}

#[test]
fn alpn_chooses_it_under_tls() {
    let (rig, tls) = secure(Config::default(), b"h2");
    let mut client = Client::start(rig.connect_tls(&tls));
    client.post(1, "/echo", b"hello");
    assert_eq!(client.answer(1).1, b"hello");
}

/// As grpcurl asks: its request has no end before it has the response.
#[test]
fn a_query_of_reflection_is_answered_before_the_request_ends() {
    let rig = rig();
    let mut client = Client::start(rig.connect());
    let head = grpc_block("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo");
    client.frame(KIND_HEADERS, END_HEADERS, 1, &head);
    // list_services, in two parts
    client.frame(KIND_DATA, 0, 1, &[0, 0, 0, 0, 2]);
    client.frame(KIND_DATA, 0, 1, &[0x3a, 0]);
    let body = client.until(KIND_DATA);
    let listed = String::from_utf8_lossy(&body.payload);
    assert!(listed.contains("grpc.health.v1.Health"), "{listed}");
    assert!(!body.ends_stream());
    assert!(client.until(KIND_HEADERS).ends_stream());
    let stop = client.until(RST_STREAM);
    assert_eq!((stop.stream, &*stop.payload), (1, &[0; 4][..]), "NO_ERROR");
    // what was under way is no error
    client.frame(KIND_DATA, END_STREAM, 1, &[0, 0, 0, 0, 2, 0x3a, 0]);
    client.get(3, "/");
    assert!(!client.answer(3).1.is_empty());
}

#[test]
fn an_unknown_method_of_grpc_is_refused_before_the_request_ends() {
    let rig = rig();
    let mut client = Client::start(rig.connect());
    client.frame(KIND_HEADERS, END_HEADERS, 1, &grpc_block("/a.B/Stream"));
    let refusal = client.until(KIND_HEADERS);
    assert!(refusal.ends_stream(), "{refusal:?}");
    assert_eq!(client.until(RST_STREAM).stream, 1);
    client.frame(KIND_DATA, END_STREAM, 1, &[0; 5]);
    client.post(3, "/echo", b"kept");
    assert_eq!(client.answer(3).1, b"kept");
}

#[test]
fn a_slow_stream_does_not_hold_up_others() {
    let rig = rig();
    let mut client = Client::start(rig.connect());
    client.get(1, "/delay/200");
    client.get(3, "/");
    assert_eq!(client.until(KIND_HEADERS).stream, 3);
    assert_eq!(client.until(KIND_HEADERS).stream, 1);
}

#[test]
fn a_body_waits_for_the_clients_window() {
    let rig = rig();
    let mut client = Client::start(rig.connect());
    client.get(1, "/bytes/70000");
    let mut received = 0;
    while received < 65_535 {
        let data = client.until(KIND_DATA);
        assert!(!data.ends_stream());
        received += data.payload.len();
    }
    assert_eq!(received, 65_535, "not a byte more than the window");
    // the connection's window alone does not help
    client.frame(WINDOW_UPDATE, 0, 0, &10_000u32.to_be_bytes());
    client.frame(WINDOW_UPDATE, 0, 1, &4_000u32.to_be_bytes());
    let more = client.until(KIND_DATA);
    assert_eq!((more.payload.len(), more.ends_stream()), (4_000, false));
    client.frame(WINDOW_UPDATE, 0, 1, &4_000u32.to_be_bytes());
    let last = client.until(KIND_DATA);
    assert_eq!((last.payload.len(), last.ends_stream()), (465, true));
}

#[test]
fn large_bodies_share_the_connection_frame_by_frame() {
    let rig = rig();
    let mut client = Client::start(rig.connect());
    client.frame(WINDOW_UPDATE, 0, 0, &1_000_000u32.to_be_bytes());
    client.get(1, "/bytes/60000");
    client.get(3, "/bytes/60000");
    let mut ended = Vec::new();
    let mut sum = [0; 2];
    while ended.len() < 2 {
        let data = client.until(KIND_DATA);
        sum[usize::from(data.stream == 3)] += data.payload.len();
        if data.ends_stream() {
            ended.push(data.stream);
        }
    }
    assert_eq!(sum, [60_000, 60_000]);
}

#[test]
fn head_and_body_travel_separately_on_request() {
    // so far apart that the body does not come within this test
    let rig = Rig::start(Config {
        split: Some(Duration::from_secs(3600)),
        ..Config::default()
    });
    let mut client = Client::start(rig.connect());
    client.get(1, "/");
    let head = client.until(KIND_HEADERS);
    assert!(!head.ends_stream());
    // what comes next is not the body
    client.frame(0x6, 0, 0, &[7; 8]);
    assert_eq!(client.next().unwrap().kind, 0x6);

    let rig = Rig::start(Config {
        split: Some(Duration::from_millis(1)),
        ..Config::default()
    });
    let mut client = Client::start(rig.connect());
    client.get(1, "/");
    assert_eq!(client.answer(1).1.len(), 100);
}

#[test]
fn a_client_that_takes_its_request_back_is_counted_and_the_rest_goes_on() {
    let rig = rig();
    let mut client = Client::start(rig.connect());
    client.get(1, "/delay/3600000");
    client.frame(RST_STREAM, 0, 1, &8u32.to_be_bytes());
    client.get(3, "/");
    assert_eq!(client.answer(3).1.len(), 100);
    let totals = rig.end();
    assert_eq!(
        totals.requests.failed[&intact_ledger::Failure::ClientClosed],
        1
    );
    assert_eq!(totals.requests.ok, 1);
}

#[test]
fn more_streams_than_allowed_are_refused() {
    let rig = rig();
    let mut client = Client::start(rig.connect());
    for number in 0..257 {
        client.get(2 * number + 1, "/delay/3600000");
    }
    let refused = client.until(RST_STREAM);
    assert_eq!(refused.stream, 2 * 256 + 1);
    assert_eq!(refused.payload, 7u32.to_be_bytes());
}

#[test]
fn further_fields_are_sent_in_lower_case() {
    let rig = Rig::start(Config {
        headers: vec![("X-Upper".into(), "Kept".into())],
        ..Config::default()
    });
    let mut client = Client::start(rig.connect());
    client.get(1, "/");
    let (head, _) = client.answer(1);
    let mut fields = Vec::new();
    intact_wire::h2::hpack::Decoder::new(1 << 16)
        .decode(&head, |field| {
            fields.push((field.name.to_vec(), field.value.to_vec()));
        })
        .unwrap();
    assert!(fields.contains(&(b"x-upper".to_vec(), b"Kept".to_vec())));
}

#[test]
fn a_flood_of_resets_leaves_nothing_behind() {
    let rig = rig();
    let mut client = Client::start(rig.connect());
    for number in 0..2_000u32 {
        client.get(2 * number + 1, "/delay/3600000");
        client.frame(RST_STREAM, 0, 2 * number + 1, &8u32.to_be_bytes());
    }
    client.get(4_001, "/");
    assert_eq!(client.answer(4_001).1.len(), 100);
    let totals = rig.end();
    assert_eq!(
        totals.requests.failed[&intact_ledger::Failure::ClientClosed],
        2_000
    );
}
