//! Frames across any split, written and read back, and frames that must be refused.

use std::fmt::Write as _;

use intact_wire::h2::writer::{
    write_data, write_go_away, write_headers, write_ping, write_reset, write_settings,
    write_settings_ack, write_window_update,
};
use intact_wire::h2::{Error, ErrorCode, Frame, FrameReader, Limits, PREFACE, Setting, Settings};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::pieces::cut;

/// The frames that the reader returned, one per line; adjacent parts of one DATA frame are joined.
fn transcript(mut reader: FrameReader, pieces: &[&[u8]]) -> String {
    let mut lines = String::new();
    let (mut bytes, mut flow) = (Vec::new(), 0);
    for piece in pieces {
        let mut input = *piece;
        loop {
            match reader.read(input) {
                Err(error) => {
                    assert_eq!(reader.read(b"").unwrap_err(), error, "an error is final");
                    writeln!(lines, "error {error}").unwrap();
                    return lines;
                }
                Ok(step) => {
                    input = &input[step.consumed..];
                    match step.event {
                        None => {
                            assert!(input.is_empty(), "what needs more has used everything");
                            break;
                        }
                        Some(Frame::Data(data)) => {
                            bytes.extend_from_slice(data.bytes);
                            flow += data.flow;
                            assert!(data.complete || !data.end_stream);
                            if data.complete {
                                let text = std::mem::take(&mut bytes);
                                writeln!(
                                    lines,
                                    "data {} {} flow {flow} end {}",
                                    data.stream,
                                    text.escape_ascii(),
                                    data.end_stream
                                )
                                .unwrap();
                                flow = 0;
                            }
                        }
                        Some(Frame::Settings(payload)) => {
                            writeln!(lines, "settings {:?}", payload.collect::<Vec<_>>()).unwrap();
                        }
                        Some(frame) => writeln!(lines, "{frame:?}").unwrap(),
                    }
                }
            }
        }
    }
    if !reader.is_between_frames() {
        writeln!(lines, "cut").unwrap();
    }
    lines
}

fn raw(length: u32, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = length.to_be_bytes()[1..].to_vec();
    out.extend([kind, flags]);
    out.extend(stream.to_be_bytes());
    out.extend_from_slice(payload);
    out
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    raw(payload.len() as u32, kind, flags, stream, payload)
}

fn mid_stream(bytes: &[u8]) -> String {
    transcript(FrameReader::mid_stream(Limits::default()), &[bytes])
}

fn refused(bytes: &[u8]) -> Error {
    let mut reader = FrameReader::mid_stream(Limits::default());
    let mut input = bytes;
    loop {
        match reader.read(input) {
            Err(error) => return error,
            Ok(step) => {
                assert!(step.event.is_some(), "not refused: {bytes:?}");
                input = &input[step.consumed..];
            }
        }
    }
}

#[test]
fn everything_that_is_written_reads_back() {
    let mut out = PREFACE.to_vec();
    write_settings(
        &mut out,
        &[
            (Setting::HeaderTableSize, 0),
            (Setting::EnablePush, 0),
            (Setting::InitialWindowSize, 0x7fff_ffff),
        ],
    );
    write_settings_ack(&mut out);
    write_headers(&mut out, 1, b"block", true, 16_384);
    write_headers(&mut out, 3, b"block in pieces", false, 4);
    write_data(&mut out, 3, b"payload", false);
    write_data(&mut out, 3, b"", true);
    write_window_update(&mut out, 0, 1 << 30);
    write_ping(&mut out, true, *b"12345678");
    write_reset(&mut out, 5, ErrorCode::CANCEL);
    write_go_away(&mut out, 3, ErrorCode::NO_ERROR, b"bye");
    let got = transcript(FrameReader::client(Limits::default()), &[&out]);
    let expected = format!(
        "Preface\nsettings [(1, 0), (2, 0), (4, 2147483647)]\nSettingsAck\n\
         Headers(Headers {{ stream: 1, block: {:?}, end_stream: true, dependency: None, frames: 1 }})\n\
         Headers(Headers {{ stream: 3, block: {:?}, end_stream: false, dependency: None, frames: 4 }})\n\
         data 3 payload flow 7 end false\ndata 3  flow 0 end true\n\
         WindowUpdate {{ stream: 0, increment: 1073741824 }}\n\
         Ping {{ ack: true, payload: {:?} }}\n\
         Reset {{ stream: 5, code: CANCEL }}\n\
         GoAway {{ last_stream: 3, code: NO_ERROR, debug: {:?} }}\n",
        b"block", b"block in pieces", b"12345678", b"bye"
    );
    assert_eq!(got, expected);
}

#[test]
fn padding_and_priority_are_removed() {
    let headers = frame(1, 0x04 | 0x08 | 0x20, 1, b"\x02\x80\0\0\x03\x0fblock\0\0");
    assert!(mid_stream(&headers).contains(&format!("block: {:?}", b"block")));
    assert!(mid_stream(&headers).contains("dependency: Some(3)"));
    assert_eq!(
        mid_stream(&frame(0, 0x08 | 0x01, 1, b"\x03abc\0\0\0")),
        "data 1 abc flow 7 end true\n"
    );
    assert_eq!(
        mid_stream(&frame(0, 0x08, 1, b"\0")),
        "data 1  flow 1 end false\n"
    );
    let promise = frame(5, 0x04, 1, b"\0\0\0\x02block");
    assert!(mid_stream(&promise).contains("promised: 2"));
}

#[test]
fn unknown_frames_are_passed_on() {
    assert!(
        mid_stream(&frame(0xc, 0x55, 0, b"origin"))
            .starts_with("Unknown { kind: 12, flags: 85, stream: 0")
    );
}

#[test]
fn a_frame_in_one_piece_is_borrowed_from_the_input() {
    let input = frame(1, 0x04, 1, b"block");
    let mut reader = FrameReader::mid_stream(Limits::default());
    let Some(Frame::Headers(headers)) = reader.read(&input).unwrap().event else {
        panic!("no headers")
    };
    assert!(input.as_ptr_range().contains(&headers.block.as_ptr()));
}

#[test]
fn another_protocol_is_detected_immediately() {
    let mut server = FrameReader::server(Limits::default());
    assert_eq!(
        server.read(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
        Err(Error::Preface)
    );
    let mut client = FrameReader::client(Limits::default());
    assert_eq!(client.read(b"GET"), Err(Error::Preface));
}

#[test]
fn frames_of_a_forbidden_size_or_place_are_refused() {
    let size = |bytes: &[u8]| matches!(refused(bytes), Error::FrameSize { .. });
    for (kind, stream) in [(2, 1), (3, 1), (4, 0), (6, 0), (7, 0), (8, 0)] {
        assert!(size(&frame(kind, 0, stream, b"xyz")), "type {kind}");
    }
    assert!(
        size(&frame(4, 1, 0, &[0; 6])),
        "SETTINGS ACK with a payload"
    );
    assert!(size(&frame(1, 0x24, 1, b"xyz")), "no room for the priority");
    let misplaced = |bytes: &[u8]| matches!(refused(bytes), Error::Protocol(_));
    for kind in [0, 1, 5, 9] {
        assert!(
            misplaced(&frame(kind, 4, 0, b"abcd")),
            "type {kind} on stream 0"
        );
    }
    for (kind, payload) in [(4, &[][..]), (6, &[0; 8]), (7, &[0; 8])] {
        assert!(
            misplaced(&frame(kind, 0, 1, payload)),
            "type {kind} on a stream"
        );
    }
    assert!(
        misplaced(&frame(8, 0, 1, &[0x80, 0, 0, 0])),
        "WINDOW_UPDATE by 0"
    );
    assert!(misplaced(&frame(9, 4, 1, b"")), "CONTINUATION of nothing");
    assert!(
        misplaced(&frame(0, 8, 1, b"\x05abcd")),
        "padding longer than the payload"
    );
    assert!(misplaced(&frame(0, 8, 1, b"")), "no pad length");
    assert!(
        misplaced(&frame(1, 0x0c, 1, b"\x05abcd")),
        "padding longer than the block"
    );
    let interrupted = [frame(1, 0, 1, b"a"), frame(6, 0, 0, &[0; 8])].concat();
    assert!(misplaced(&interrupted));
    assert!(
        misplaced(&[frame(1, 0, 1, b"a"), frame(9, 4, 3, b"b")].concat()),
        "CONTINUATION of another stream"
    );
}

#[test]
fn long_frames_and_endless_header_blocks_are_refused_before_they_are_stored() {
    assert_eq!(
        refused(&raw(16_385, 0, 0, 1, b"")),
        Error::FrameTooLong {
            length: 16_385,
            limit: 16_384
        }
    );
    let mut flood = frame(1, 0, 1, b"");
    for _ in 0..=Limits::default().continuations {
        flood.extend(frame(9, 0, 1, b""));
    }
    assert_eq!(refused(&flood).code(), ErrorCode::ENHANCE_YOUR_CALM);
    let mut long = frame(1, 0, 1, &[0; 16_384]);
    for _ in 0..4 {
        long.extend(frame(9, 0, 1, &[0; 16_384]));
    }
    assert_eq!(refused(&long), Error::BlockTooLong { limit: 64 * 1024 });
}

#[test]
fn settings_are_applied_and_checked() {
    let apply = |entries: &[(u16, u32)]| {
        let payload: Vec<u8> = entries
            .iter()
            .flat_map(|(id, value)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat())
            .collect();
        let bytes = frame(4, 0, 0, &payload);
        let mut reader = FrameReader::server(Limits::default());
        let Some(Frame::Settings(payload)) = reader.read(&bytes).unwrap().event else {
            panic!("no settings")
        };
        let mut settings = Settings::default();
        settings.apply(payload).map(|()| settings)
    };
    let settings = apply(&[
        (1, 0),
        (3, 100),
        (4, 1),
        (5, 16_384),
        (6, 9),
        (0xfafa, 7),
        (3, 250),
    ])
    .unwrap();
    assert_eq!(
        (settings.header_table_size, settings.max_concurrent_streams),
        (0, Some(250))
    );
    assert_eq!(settings.initial_window_size, 1);
    for bad in [(2, 2), (5, 16_383), (5, 1 << 24), (8, 2)] {
        assert!(matches!(apply(&[bad]), Err(Error::Protocol(_))), "{bad:?}");
    }
    // the one value whose code is another (RFC 9113 section 6.5.2)
    assert!(matches!(apply(&[(4, 1 << 31)]), Err(Error::FlowControl(_))));
}

/// Mostly well-formed frames, some broken.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let kind = prop_oneof![4 => 0..10u8, 1 => any::<u8>()];
    let flags = prop_oneof![
        Just(0),
        Just(1),
        Just(4),
        Just(5),
        Just(8),
        Just(0x2c),
        any::<u8>()
    ];
    let payload = prop_oneof![
        Just(vec![]),
        Just(b"\0\0\0\x01".to_vec()),
        Just(b"\x01abc\0".to_vec()),
        Just(vec![0, 0, 0, 5, 0, 0]),
        Just(vec![7; 8]),
        vec(any::<u8>(), 0..40),
    ];
    let one = (kind, flags, 0..4u32, payload).prop_map(|(kind, flags, stream, payload)| {
        let stream = if matches!(kind, 4 | 6 | 7) { 0 } else { stream };
        frame(kind, flags, stream, &payload)
    });
    vec(one, 0..10).prop_map(|frames| frames.concat())
}

proptest! {
    #[test]
    fn frames_do_not_depend_on_the_split(bytes in stream(), places in vec(any::<usize>(), 0..8)) {
        let read = |pieces: &[&[u8]]| transcript(FrameReader::mid_stream(Limits::default()), pieces);
        let whole = read(&[&bytes]);
        prop_assert_eq!(&read(&cut(&bytes, &places)), &whole);
        prop_assert_eq!(&read(&bytes.chunks(1).collect::<Vec<_>>()), &whole);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in vec(any::<u8>(), 0..200), places in vec(any::<usize>(), 0..4)) {
        transcript(FrameReader::mid_stream(Limits { frame: 300, ..Limits::default() }), &cut(&bytes, &places));
    }
}
