//! Measures the cost of reading one HTTP/1 response: `cargo run --release -p intact-wire --example
//! http1_speed`.
//!
//! Prints the best of several rounds, in nanoseconds per response, so that other load shows less.
//! `hit`: every header section repeats the one before. `miss`: a field changes each time, so every
//! header section is parsed.

#![allow(clippy::print_stdout, reason = "an example talks to a person")]

use std::hint::black_box;
use std::time::Instant;

use intact_wire::http1::{Kind, ResponseEvent, ResponseParser};

const RESPONSES: usize = 10_000;
const ROUNDS: usize = 50;

fn main() {
    let nginx = |n: usize| {
        format!(
            "HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Fri, 20 Nov 2026 10:00:{:02} GMT\r\nContent-Type: application/octet-stream\r\n\
             Content-Length: 100\r\nLast-Modified: Fri, 20 Nov 2026 09:00:00 GMT\r\nConnection: keep-alive\r\nETag: \"674dcb9c-64\"\r\nAccept-Ranges: bytes\r\n\r\n{}",
            n % 60,
            "x".repeat(100)
        )
    };
    let chunked = |n: usize| {
        format!(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-N: {:02}\r\n\r\n64\r\n{}\r\n0\r\n\r\n",
            n % 60,
            "x".repeat(100)
        )
    };
    report("length, hit", |_| nginx(0));
    report("length, miss", nginx);
    report("chunked, hit", |_| chunked(0));
    report("chunked, miss", chunked);
}

fn report(name: &str, response: impl Fn(usize) -> String) {
    let stream: Vec<Vec<u8>> = (0..RESPONSES).map(|n| response(n).into_bytes()).collect();
    let mut parser = ResponseParser::default();
    let mut best = f64::MAX;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        for bytes in &stream {
            parser.expect(Kind::Plain);
            black_box(read(&mut parser, black_box(bytes)));
        }
        best = best.min(start.elapsed().as_nanos() as f64 / RESPONSES as f64);
    }
    println!(
        "{name:14} {best:6.1} ns  ({} bytes of head and body)",
        stream[0].len()
    );
}

/// Reads one response to its end, as a client's loop does.
fn read(parser: &mut ResponseParser, mut input: &[u8]) -> (u16, usize) {
    let (mut status, mut body) = (0, 0);
    loop {
        let step = parser.parse(input).expect("a good response");
        input = &input[step.consumed..];
        match step.event {
            Some(ResponseEvent::Head(head)) => status = head.status(),
            Some(ResponseEvent::Body(bytes)) => body += bytes.len(),
            Some(ResponseEvent::End(_)) => return (status, body),
            Some(ResponseEvent::Interim(_) | ResponseEvent::Trailers(_)) => {}
            None => panic!("the response is whole"),
        }
    }
}
