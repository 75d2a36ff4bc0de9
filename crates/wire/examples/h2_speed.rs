//! Measures the cost of reading one HTTP/2 response: `cargo run --release -p intact-wire --example
//! h2_speed`.
//!
//! Prints the best of several rounds, in nanoseconds per response. `stateless`: identical blocks of
//! a server that received SETTINGS_HEADER_TABLE_SIZE 0. `dynamic`: the same fields by index, as
//! servers with a table send them.

#![allow(clippy::print_stdout, reason = "an example talks to a person")]

use std::hint::black_box;
use std::time::Instant;

use intact_wire::h2::hpack::{BlockCache, Decoder, Encoder, Field, Indexing};
use intact_wire::h2::writer::{write_data, write_headers};
use intact_wire::h2::{Frame, FrameReader, Limits};

const RESPONSES: u32 = 10_000;
const ROUNDS: usize = 50;

const FIELDS: [(&[u8], &[u8]); 8] = [
    (b":status", b"200"),
    (b"server", b"nginx/1.22.1"),
    (b"date", b"Fri, 20 Nov 2026 10:00:00 GMT"),
    (b"content-type", b"application/octet-stream"),
    (b"content-length", b"100"),
    (b"last-modified", b"Fri, 20 Nov 2026 09:00:00 GMT"),
    (b"etag", b"\"674dcb9c-64\""),
    (b"accept-ranges", b"bytes"),
];

fn main() {
    let frames_only = |_: &mut Decoder, _: &[u8]| 200;
    report("frames only", Indexing::Without, frames_only);
    report("stateless, decoded", Indexing::Without, decode);
    let mut memo = BlockCache::default();
    report(
        "stateless, memo",
        Indexing::Without,
        move |decoder, block| {
            memo.read(decoder, block, 0, |status, field| {
                *status = read_status(field).unwrap_or(*status);
            })
            .expect("a good block")
        },
    );
    report("dynamic, decoded", Indexing::Incremental, decode);
}

fn decode(decoder: &mut Decoder, block: &[u8]) -> u32 {
    let mut status = 0;
    decoder
        .decode(block, |field| status = read_status(field).unwrap_or(status))
        .expect("a good block");
    status
}

fn read_status(field: Field<'_>) -> Option<u32> {
    let digits = if field.name == b":status" {
        field.value
    } else {
        return None;
    };
    Some(
        digits
            .iter()
            .fold(0, |n, digit| n * 10 + u32::from(digit - b'0')),
    )
}

fn report(name: &str, indexing: Indexing, mut read: impl FnMut(&mut Decoder, &[u8]) -> u32) {
    let mut best = f64::MAX;
    let mut encoder = Encoder::default();
    let mut decoder = Decoder::default();
    for _ in 0..ROUNDS {
        let mut stream = Vec::new();
        for n in 0..RESPONSES {
            let mut block = Vec::new();
            for (name, value) in FIELDS {
                encoder.encode(name, value, indexing, &mut block);
            }
            write_headers(&mut stream, n * 2 + 1, &block, false, 16_384);
            write_data(&mut stream, n * 2 + 1, &[0; 100], true);
        }
        let mut frames = FrameReader::mid_stream(Limits::default());
        let mut input = stream.as_slice();
        let mut ended = 0;
        let start = Instant::now();
        while let Some(frame) = {
            let step = frames.read(input).expect("good frames");
            input = &input[step.consumed..];
            step.event
        } {
            match frame {
                Frame::Headers(headers) => {
                    assert_eq!(read(&mut decoder, black_box(headers.block)), 200);
                }
                Frame::Data(data) => ended += u32::from(data.end_stream),
                _ => {}
            }
        }
        best = best.min(start.elapsed().as_nanos() as f64 / f64::from(RESPONSES));
        assert_eq!(ended, RESPONSES);
    }
    println!("{name:20} {best:6.1} ns");
}
