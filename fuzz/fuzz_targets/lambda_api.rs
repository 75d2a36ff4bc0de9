//! Any bytes as what a runtime client sends to the Runtime API, whole and in pieces: the same
//! responses, each of them HTTP, and no more accepted results than events. The first byte chooses
//! the length of the pieces.
#![no_main]

use intact_fuzz::mutate_text;
use intact_wire::http1::{Kind, ResponseEvent, ResponseParser};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

fuzz_mutator!(|data: &mut [u8], size: usize, room: usize, seed: u32| {
    mutate_text(data, size, room, seed)
});

fuzz_target!(|data: &[u8]| {
    let Some((&how, requests)) = data.split_first() else {
        return;
    };
    let whole = intact_lambda::fuzz::converse(requests, requests.len().max(1));
    let pieces = intact_lambda::fuzz::converse(requests, usize::from(how) + 1);
    assert_eq!(whole.output, pieces.output);
    assert_eq!(whole.results, pieces.results);
    assert!(whole.results <= whole.events, "{whole:?}");
    assert_eq!(events(&whole.output), whole.events);
});

/// Reads responses; returns how many of them carry an event.
fn events(mut bytes: &[u8]) -> usize {
    let mut events = 0;
    let mut parser = ResponseParser::default();
    parser.expect(Kind::Plain);
    while !bytes.is_empty() {
        let step = parser.parse(bytes).expect("a response is HTTP");
        bytes = &bytes[step.consumed..];
        match step.event {
            Some(ResponseEvent::Head(head)) => events += usize::from(head.status() == 200),
            Some(ResponseEvent::End(_)) => parser.expect(Kind::Plain),
            Some(_) => {}
            None => assert!(bytes.is_empty(), "a response is complete"),
        }
    }
    events
}
