//! HTTP/2 against a scripted server of plain frames: what is refused, reset, announced or nonsense
//! is an outcome by kind.

use crate::rig::{Counts, Record, config, run, send, server};
use intact_bench::{Config, Length};
use intact_ledger::{EndedBy, Protocol, Row};
use intact_wire::h2::{ErrorCode, Frame, FrameReader, Limits, Setting, writer};
use std::io::Read;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// `:status: 200` in the static table (RFC 7541 appendix A).
const STATUS_200: &[u8] = &[0x88];
const NO_ERROR: ErrorCode = ErrorCode(0);
const REFUSED_STREAM: ErrorCode = ErrorCode(7);
const CANCEL: ErrorCode = ErrorCode(8);

/// What reaches a script.
enum Asked {
    /// A request head on this stream; the n-th of the connection, from 1; whether it is the whole
    /// request.
    Head(u32, u32, bool),
    /// This number of bytes of a request body on this stream; whether it is the end.
    Body(u32, usize, bool),
}

/// Answers one thing with bytes to send; `false` closes the connection after them.
type Answer = dyn Fn(Asked, u64, &mut Vec<u8>) -> bool + Send + Sync;

/// A whole answer.
fn hello(stream: u32, out: &mut Vec<u8>) {
    writer::write_headers(out, stream, STATUS_200, false, 16_384);
    writer::write_data(out, stream, b"hello", true);
}

fn converse(
    mut stream: TcpStream,
    number: u64,
    counts: &Counts,
    settings: &[(Setting, u32)],
    answer: &Answer,
) {
    let mut reader = FrameReader::client(Limits::default());
    let mut out = Vec::new();
    writer::write_settings(&mut out, settings);
    let mut buffer = vec![0; 65_536];
    let mut heads = 0;
    loop {
        send(&mut stream, &out);
        out.clear();
        let count = match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(count) => count,
        };
        let heard = buffer[..count].to_vec();
        let mut bytes = heard.as_slice();
        while let Ok(step) = reader.read(bytes) {
            bytes = &bytes[step.consumed..];
            let Some(frame) = step.event else { break };
            let asked = match frame {
                Frame::Headers(headers) => {
                    heads += 1;
                    counts.requests.fetch_add(1, Ordering::SeqCst);
                    Asked::Head(headers.stream, heads, headers.end_stream)
                }
                Frame::Data(data) => Asked::Body(data.stream, data.bytes.len(), data.end_stream),
                Frame::Settings(_) => {
                    writer::write_settings_ack(&mut out);
                    continue;
                }
                _ => continue,
            };
            if !answer(asked, number, &mut out) {
                send(&mut stream, &out);
                // a close with bytes unread would be a reset
                let _ = stream.shutdown(std::net::Shutdown::Write);
                while stream.read(&mut buffer).is_ok_and(|count| count > 0) {}
                return;
            }
        }
    }
}

fn against(
    settings: &'static [(Setting, u32)],
    streams: u32,
    adjust: impl FnOnce(&mut Config),
    answer: Box<Answer>,
) -> (Record, Arc<Counts>) {
    let (address, counts) = server(Box::new(move |stream, number, counts| {
        converse(stream, number, counts, settings, &answer);
    }));
    let mut config = config(&format!("http://{address}/"));
    config.axes.http = vec![Protocol::Http2];
    config.axes.streams = vec![streams];
    config.timeout = Duration::from_millis(300);
    adjust(&mut config);
    (run(config), counts)
}

/// Every request is answered like this, from the preflight on.
fn always(answer: impl Fn(u32, &mut Vec<u8>) -> bool + Send + Sync + 'static) -> Vec<String> {
    let (record, _) = against(
        &[],
        1,
        |config| config.length = Length::Exchanges(6),
        Box::new(move |asked, _, out| match asked {
            Asked::Head(stream, ..) => answer(stream, out),
            Asked::Body(..) => true,
        }),
    );
    let (ok, failed) = record.outcomes();
    assert_eq!(ok, 0);
    failed.into_iter().map(|(kind, _)| kind).collect()
}

#[test]
fn a_stream_that_is_reset_or_refused_is_recorded_by_kind() {
    for (code, kind) in [(CANCEL, "stream-reset"), (REFUSED_STREAM, "refused-stream")] {
        let kinds = always(move |stream, out| {
            writer::write_reset(out, stream, code);
            true
        });
        assert_eq!(kinds, [kind]);
    }
}

#[test]
fn nonsense_for_frames_is_malformed() {
    let oversized = |_, out: &mut Vec<u8>| {
        out.extend_from_slice(&[0xff; 400]);
        true
    };
    assert_eq!(always(oversized), ["malformed"]);
    let bad_block = |stream, out: &mut Vec<u8>| {
        // index 126 is in no table
        writer::write_headers(out, stream, &[0xfe], true, 16_384);
        true
    };
    assert_eq!(always(bad_block), ["malformed"]);
    let without_status = |stream, out: &mut Vec<u8>| {
        writer::write_headers(out, stream, &[], true, 16_384);
        true
    };
    assert_eq!(always(without_status), ["malformed"]);
}

#[test]
fn an_http_1_answer_to_the_preface_is_malformed() {
    let (address, _) = server(Box::new(|mut stream, _, _| {
        let mut buffer = [0; 1024];
        let _ = stream.read(&mut buffer);
        send(
            &mut stream,
            b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
        );
    }));
    let mut config = config(&format!("http://{address}/"));
    config.axes.http = vec![Protocol::Http2];
    config.length = Length::Exchanges(4);
    let (ok, failed) = run(config).outcomes();
    assert_eq!(ok, 0);
    assert_eq!(failed.len(), 1);
    assert_eq!(failed[0].0, "malformed");
}

#[test]
fn a_head_without_its_body_runs_into_the_timeout() {
    let kinds = always(|stream, out| {
        writer::write_headers(out, stream, STATUS_200, false, 16_384);
        true
    });
    assert_eq!(kinds, ["timeout"]);
}

#[test]
fn a_close_in_the_middle_of_a_body_is_truncated_and_one_before_the_answer_is_closed() {
    let kinds = always(|stream, out| {
        writer::write_headers(out, stream, STATUS_200, false, 16_384);
        writer::write_data(out, stream, b"hel", false);
        false
    });
    assert_eq!(kinds, ["truncated"]);
    assert_eq!(always(|_, _| false), ["closed"]);
}

#[test]
fn goaway_after_each_third_answer_opens_the_next_connection_and_fails_nothing() {
    let (record, counts) = against(
        &[],
        1,
        |_| {},
        Box::new(|asked, _, out| {
            let Asked::Head(stream, nth, _) = asked else {
                return true;
            };
            if nth == 3 {
                writer::write_go_away(out, stream, NO_ERROR, b"");
            }
            hello(stream, out);
            nth < 3
        }),
    );
    let (ok, failed) = record.outcomes();
    assert_eq!(failed, []);
    assert_eq!(ok, counts.requests.load(Ordering::SeqCst));
    assert_eq!(record.opened(), counts.connections.load(Ordering::SeqCst));
    // 1 warm-up and 10 measured a round, three a connection: four connections, of which three are
    // used up
    assert_eq!(record.ended_by(EndedBy::ServerAnnounced), 6);
}

#[test]
fn streams_above_the_last_one_that_goaway_names_are_refused() {
    let (record, _) = against(
        &[],
        4,
        |config| config.length = Length::Exchanges(12),
        Box::new(|asked, number, out| {
            let Asked::Head(stream, nth, _) = asked else {
                return true;
            };
            // the preflight's connection is left alone
            if number > 0 && nth == 3 {
                writer::write_go_away(out, stream, NO_ERROR, b"");
                return true;
            }
            if number == 0 || nth < 3 {
                hello(stream, out);
            } else if nth == 4 {
                hello(stream - 2, out);
            }
            true
        }),
    );
    let (ok, failed) = record.outcomes();
    assert!(ok > 0);
    let kinds: Vec<&str> = failed.iter().map(|(kind, _)| kind.as_str()).collect();
    assert!(kinds.contains(&"refused-stream"), "{failed:?}");
}

#[test]
fn no_more_streams_than_the_server_allows_are_in_flight() {
    static IN_FLIGHT: AtomicU32 = AtomicU32::new(0);
    let (record, _) = against(
        &[(Setting::MaxConcurrentStreams, 2)],
        8,
        |config| config.length = Length::Exchanges(40),
        Box::new(|asked, _, out| {
            let Asked::Head(stream, nth, _) = asked else {
                return true;
            };
            if nth == 1 {
                hello(stream, out);
                return true;
            }
            // answers come in pairs, and a third in flight would be reset
            match IN_FLIGHT.fetch_add(1, Ordering::SeqCst) {
                0 => {}
                1 => {
                    hello(stream - 2, out);
                    hello(stream, out);
                    IN_FLIGHT.store(0, Ordering::SeqCst);
                }
                _ => writer::write_reset(out, stream, REFUSED_STREAM),
            }
            true
        }),
    );
    let (ok, failed) = record.outcomes();
    let refused = failed.iter().any(|(kind, _)| kind == "refused-stream");
    assert!(!refused, "{failed:?}");
    assert!(ok >= 40, "{ok} {failed:?}");
}

#[test]
fn answers_in_another_order_find_their_requests() {
    let held = std::sync::Mutex::new(Vec::new());
    let (record, counts) = against(
        &[],
        4,
        |config| config.length = Length::Exchanges(16),
        Box::new(move |asked, _, out| {
            let Asked::Head(stream, nth, _) = asked else {
                return true;
            };
            if nth == 1 {
                hello(stream, out);
                return true;
            }
            let mut held = held.lock().unwrap();
            held.push(stream);
            if held.len() == 4 {
                while let Some(stream) = held.pop() {
                    hello(stream, out);
                }
            }
            true
        }),
    );
    let (ok, failed) = record.outcomes();
    // what is left of a round that is no multiple of four waits for its timeout
    assert!(
        failed.iter().all(|(kind, _)| kind == "timeout"),
        "{failed:?}"
    );
    assert!(ok > 8);
    assert_eq!(record.opened(), counts.connections.load(Ordering::SeqCst));
    let mut streams: Vec<(u64, u64)> = record
        .rows
        .iter()
        .filter_map(|row| match row {
            Row::Exchange(exchange) => Some((exchange.connection?.0, exchange.stream?)),
            _ => None,
        })
        .collect();
    let received = streams.len();
    streams.sort_unstable();
    streams.dedup();
    assert_eq!(streams.len(), received, "a stream was received twice");
}

#[test]
fn a_request_body_keeps_to_the_windows() {
    let taken = std::sync::Mutex::new(0_usize);
    let (record, _) = against(
        &[(Setting::InitialWindowSize, 10)],
        1,
        |config| {
            config.method = "POST".to_owned();
            config.body = vec![b'x'; 25];
            config.length = Length::Exchanges(4);
        },
        Box::new(move |asked, _, out| {
            let mut taken = taken.lock().unwrap();
            match asked {
                Asked::Head(_, _, complete) => {
                    assert!(!complete);
                    *taken = 0;
                }
                Asked::Body(stream, bytes, end) => {
                    *taken += bytes;
                    if end {
                        assert_eq!(*taken, 25);
                        hello(stream, out);
                    } else {
                        assert!(bytes <= 10);
                        writer::write_window_update(out, stream, 10);
                    }
                }
            }
            true
        }),
    );
    let (ok, failed) = record.outcomes();
    // the first body of a connection is sent before the server's settings are known; the reset of
    // one too long is not tried here
    assert_eq!(failed, []);
    assert!(ok >= 4);
}

#[test]
fn pings_are_answered_and_unknown_frames_ignored() {
    let (record, counts) = against(
        &[],
        1,
        |_| {},
        Box::new(|asked, _, out| {
            let Asked::Head(stream, ..) = asked else {
                return true;
            };
            writer::write_ping(out, false, *b"intact!!");
            out.extend_from_slice(&[0, 0, 3, 0xbe, 0, 0, 0, 0, 0, 1, 2, 3]);
            hello(stream, out);
            true
        }),
    );
    let (ok, failed) = record.outcomes();
    assert_eq!(failed, []);
    assert_eq!(ok, counts.requests.load(Ordering::SeqCst));
}
