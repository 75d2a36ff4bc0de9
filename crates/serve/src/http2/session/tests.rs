//! Whatever bytes come, in whatever pieces: the same calls, the same answers, bounded, no panic.

use super::*;
use crate::response::Body;
use proptest::prelude::*;

/// Writes down what it learns and answers every request at once.
#[derive(Debug, Default, PartialEq)]
struct Notes {
    calls: Vec<String>,
    bodies: BTreeMap<u32, Vec<u8>>,
    complete: Vec<u32>,
}

impl Listener for Notes {
    fn request(&mut self, stream: u32, head: RequestHead, _: u64) -> bool {
        let path = String::from_utf8_lossy(&head.path).into_owned();
        self.calls.push(format!("request {stream} {path}"));
        // the tenth is the last one
        stream < 19
    }

    fn body(&mut self, stream: u32, piece: &[u8]) {
        // the pieces do not matter
        self.bodies.entry(stream).or_default().extend(piece);
    }

    fn complete(&mut self, stream: u32) {
        self.calls.push(format!("complete {stream}"));
        self.complete.push(stream);
    }

    fn gone(&mut self, stream: u32, _by: Side) {
        self.calls.push(format!("gone {stream}"));
    }

    fn sent(&mut self, stream: u32) {
        self.calls.push(format!("sent {stream}"));
    }

    fn goodbye(&mut self) {
        self.calls.push("goodbye".to_owned());
    }
}

/// What a session says to bytes in these pieces, and what its listener learns.
fn conversation<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Notes, Vec<u8>) {
    let mut out = Vec::new();
    let mut session = Session::start(&mut out);
    let mut notes = Notes::default();
    for piece in pieces {
        if let Err(broken) = session.receive(piece, &mut out, &mut notes) {
            session.give_up(&broken, &mut out);
            break;
        }
    }
    for stream in std::mem::take(&mut notes.complete) {
        let status = |add: &mut AddField<'_>| add(b":status", b"200");
        session.head(stream, status, false, &mut out);
        session.give(stream, Body::Filler(10), 0, 10, true);
    }
    session.pump(&mut out, &mut notes);
    (notes, out)
}

/// A client's frames, mostly meant well.
fn frame() -> impl Strategy<Value = Vec<u8>> {
    let header = |kind: u8, flags: u8, stream: u32, payload: Vec<u8>| {
        let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
        frame.extend([kind, flags]);
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        frame
    };
    let stream = (0..12u32).prop_map(|number| 2 * number + 1);
    let get = b"\x82\x86\x84\x01\x01a".to_vec();
    let bytes = prop::collection::vec(any::<u8>(), 0..40);
    prop_oneof![
        4 => (stream.clone(), 0..2u8).prop_map(move |(stream, end)| header(1, 4 | end, stream, get.clone())),
        3 => (stream.clone(), 0..2u8, bytes.clone()).prop_map(move |(stream, end, bytes)| header(0, end, stream, bytes)),
        1 => stream.clone().prop_map(move |stream| header(3, 0, stream, vec![0, 0, 0, 8])),
        1 => (stream, 1..1000u32).prop_map(move |(stream, more)| header(8, 0, stream, more.to_be_bytes().to_vec())),
        1 => (0..7u8, 0..100u32).prop_map(move |(id, value)| {
            let mut entry = vec![0, id];
            entry.extend(value.to_be_bytes());
            header(4, 0, 0, entry)
        }),
        1 => Just(header(6, 0, 0, vec![1; 8])),
        1 => (any::<u8>(), any::<u8>(), 0..30u32, bytes).prop_map(move |(kind, flags, stream, bytes)| header(kind, flags, stream, bytes)),
    ]
}

fn stream() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(frame(), 0..30).prop_map(|frames| {
        let preface = &b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0"[..];
        [preface, &frames.concat()].concat()
    })
}

proptest! {
    #[test]
    fn any_split_of_the_bytes_makes_the_same_conversation(
        bytes in stream(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let whole = conversation([&bytes[..]]);
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
        at.extend([0, bytes.len()]);
        at.sort_unstable();
        let pieces = at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
        prop_assert_eq!(whole, conversation(pieces));
    }

    #[test]
    fn arbitrary_bytes_are_answered_in_bounds(bytes in prop::collection::vec(any::<u8>(), 0..500)) {
        let preface = &b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..];
        let (_, out) = conversation([preface, &bytes]);
        prop_assert!(out.len() < 10_000);
    }
}

#[test]
fn a_request_that_is_the_last_one_is_the_last_one_served() {
    let mut out = Vec::new();
    let mut session = Session::start(&mut out);
    let mut notes = Notes::default();
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
    for stream in [19u8, 21] {
        bytes.extend([0, 0, 6, 1, 5, 0, 0, 0, stream]);
        bytes.extend(b"\x82\x86\x84\x01\x01a");
    }
    session.receive(&bytes, &mut out, &mut notes).unwrap();
    assert_eq!(notes.calls, ["request 19 /", "complete 19"]);
    out.clear();
    session.close(true, &mut out);
    session.close(true, &mut out);
    // one GOAWAY, with the last stream that is served
    assert_eq!(out, b"\0\0\x08\x07\0\0\0\0\0\0\0\0\x13\0\0\0\0");
}
