//! Requests, whole and in pieces: the same heads, body lengths and errors, and no panic.
//! The first byte chooses the length of the pieces.

#![no_main]

use intact_wire::http1::{Eof, Persistence, RequestEvent, RequestParser};
use libfuzzer_sys::fuzz_target;

#[derive(Debug, Default, PartialEq)]
struct Seen {
    heads: Vec<(Vec<u8>, Vec<u8>)>,
    body: usize,
    ends: usize,
    failed: bool,
    eof: Option<Eof>,
}

fn read(stream: &[u8], piece: usize) -> Seen {
    let mut seen = Seen::default();
    let mut parser = RequestParser::default();
    for mut input in stream.chunks(piece) {
        loop {
            let Ok(step) = parser.parse(input) else {
                seen.failed = true;
                return seen;
            };
            input = &input[step.consumed..];
            let tunnel = step.event == Some(RequestEvent::End(Persistence::Tunnel));
            match step.event {
                None => break,
                Some(RequestEvent::Head(head)) => {
                    assert!(head.headers().all(|(name, _)| !name.is_empty()));
                    seen.heads
                        .push((head.method().to_vec(), head.target().to_vec()));
                }
                Some(RequestEvent::Body(bytes)) => seen.body += bytes.len(),
                Some(RequestEvent::Trailers(fields)) => assert!(fields.count() > 0),
                Some(RequestEvent::End(_)) => seen.ends += 1,
            }
            if tunnel {
                parser.parse(&[]).expect("a tunnel has no errors");
                parser.resume();
            }
        }
    }
    seen.eof = Some(parser.finish());
    seen
}

fuzz_target!(|data: &[u8]| {
    let Some((&how, stream)) = data.split_first() else {
        return;
    };
    let whole = read(stream, stream.len().max(1));
    assert_eq!(read(stream, usize::from(how) + 1), whole);
});
