//! Responses, whole and in pieces: the same statuses, body lengths and errors, and no panic.
//! The first byte chooses the length of the pieces and the kind of the first request.

#![no_main]

use intact_wire::http1::{Eof, Kind, ResponseEvent, ResponseParser};
use libfuzzer_sys::fuzz_target;

#[derive(Debug, Default, PartialEq)]
struct Seen {
    statuses: Vec<u16>,
    body: usize,
    ends: usize,
    failed: bool,
    eof: Option<Eof>,
}

fn read(kind: Kind, stream: &[u8], piece: usize) -> Seen {
    let mut seen = Seen::default();
    let mut parser = ResponseParser::default();
    parser.expect(kind);
    for mut input in stream.chunks(piece) {
        loop {
            let Ok(step) = parser.parse(input) else {
                seen.failed = true;
                return seen;
            };
            input = &input[step.consumed..];
            match step.event {
                None => break,
                Some(ResponseEvent::Interim(head) | ResponseEvent::Head(head)) => {
                    assert!(head.headers().all(|(name, _)| !name.is_empty()));
                    assert!(head.reason().len() < head.as_bytes().len());
                    seen.statuses.push(head.status());
                }
                Some(ResponseEvent::Body(bytes)) => seen.body += bytes.len(),
                Some(ResponseEvent::Trailers(fields)) => assert!(fields.count() > 0),
                Some(ResponseEvent::End(_)) => seen.ends += 1,
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
    let kind = [Kind::Plain, Kind::Head, Kind::Connect, Kind::Plain][usize::from(how & 3)];
    let whole = read(kind, stream, stream.len().max(1));
    assert_eq!(read(kind, stream, usize::from(how >> 2) + 1), whole);
});
