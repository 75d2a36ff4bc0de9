//! Reassembly: order, times, loss, and its reports.

use intact_wire::Side;
use intact_wire::tcp::{Close, Flow, Limits, Run, Segment, Stream, TcpCloseKind};
use proptest::collection::vec;
use proptest::prelude::*;

/// Everything that was passed on: bytes, with `?` for each lost one (at most 9), and the times of
/// the runs.
#[derive(Debug, Default, PartialEq)]
struct Out {
    bytes: Vec<u8>,
    times: Vec<u64>,
}

impl Out {
    fn take(&mut self, run: Run<'_>) {
        match run {
            Run::Bytes { bytes, at } => {
                assert!(!bytes.is_empty());
                self.bytes.extend_from_slice(bytes);
                self.times.push(at);
            }
            Run::Gap { len, at } => {
                assert!(len > 0);
                self.bytes
                    .extend(std::iter::repeat_n(b'?', len.min(9) as usize));
                self.times.push(at);
            }
        }
    }
}

fn data(seq: u32, payload: &[u8], at: u64) -> Segment<'_> {
    Segment {
        seq,
        payload,
        len: payload.len() as u32,
        at,
        ..Segment::default()
    }
}

fn syn(seq: u32) -> Segment<'static> {
    Segment {
        seq,
        syn: true,
        ..Segment::default()
    }
}

fn run(segments: &[Segment<'_>]) -> (Out, Stream) {
    let mut stream = Stream::new(Limits::default());
    let mut out = Out::default();
    for segment in segments {
        stream.push(segment, |run| out.take(run));
    }
    (out, stream)
}

#[test]
fn bytes_in_order_keep_the_times_of_their_packets() {
    let (out, stream) = run(&[syn(9), data(10, b"ab", 1), data(12, b"cd", 2)]);
    assert_eq!(
        out,
        Out {
            bytes: b"abcd".to_vec(),
            times: vec![1, 2]
        }
    );
    assert_eq!(
        (
            stream.facts().syn_at,
            stream.facts().bytes,
            stream.facts().segments
        ),
        (Some(0), 4, 3)
    );
}

#[test]
fn bytes_after_a_gap_have_the_time_of_the_packet_that_filled_it() {
    let (out, stream) = run(&[
        syn(9),
        data(14, b"ef", 1),
        data(12, b"cd", 2),
        data(10, b"ab", 3),
    ]);
    assert_eq!(
        out,
        Out {
            bytes: b"abcdef".to_vec(),
            times: vec![3, 3, 3]
        }
    );
    assert_eq!((stream.facts().lost, stream.facts().repeated), (0, 0));
}

#[test]
fn repetitions_and_overlaps_give_each_byte_once_and_the_first_wins() {
    let (out, stream) = run(&[
        syn(9),
        data(10, b"abc", 1),
        data(10, b"abc", 2),
        data(11, b"XXde", 3),
        data(17, b"hi", 4),
        data(16, b"gXX", 5),
        data(15, b"f", 6),
    ]);
    assert_eq!(
        out.bytes,
        b"abcdefghi"
            .iter()
            .copied()
            .filter(|b| *b != b'X')
            .collect::<Vec<_>>()
    );
    assert_eq!(stream.facts().repeated, 1);
}

#[test]
fn sequence_numbers_wrap_around() {
    let start = u32::MAX - 2;
    let (out, _) = run(&[
        syn(start),
        data(start.wrapping_add(5), b"efg", 2),
        data(start.wrapping_add(1), b"abcd", 3),
        data(5, b"h", 4),
    ]);
    assert_eq!(out.bytes, b"abcdefgh");
}

#[test]
fn a_stream_can_wrap_more_than_once() {
    let chunk = vec![7; 1 << 20];
    let mut stream = Stream::new(Limits::default());
    let (mut seq, mut total) = (0u32, 0u64);
    for _ in 0..(9 << 10) {
        stream.push(&data(seq, &chunk, 0), |run| match run {
            Run::Bytes { bytes, .. } => total += bytes.len() as u64,
            Run::Gap { .. } => panic!("nothing is lost"),
        });
        seq = seq.wrapping_add(1 << 20);
    }
    assert_eq!(total, 9 << 30);
}

#[test]
fn a_stream_joined_late_starts_at_its_first_byte() {
    let (out, stream) = run(&[
        data(1000, b"abc", 1),
        data(990, b"earlier", 2),
        data(1003, b"d", 3),
    ]);
    assert_eq!(out.bytes, b"abcd");
    assert_eq!(stream.facts().syn_at, None);
}

#[test]
fn a_loss_is_reported_when_too_much_waits_behind_it() {
    let mut stream = Stream::new(Limits {
        bytes: 10,
        ..Limits::default()
    });
    let mut out = Out::default();
    for segment in [
        syn(9),
        data(10, b"ab", 1),
        data(15, b"fghij", 2),
        data(20, b"klmnop", 3),
        data(26, b"q", 4),
    ] {
        stream.push(&segment, |run| out.take(run));
    }
    assert_eq!(
        out,
        Out {
            bytes: b"ab???fghijklmnopq".to_vec(),
            times: vec![1, 2, 2, 3, 4]
        }
    );
    assert_eq!(stream.facts().lost, 3);
}

#[test]
fn a_loss_of_the_capture_alone_is_given_up_after_a_while() {
    let mut stream = Stream::new(Limits {
        patience: 100,
        ..Limits::default()
    });
    let mut out = Out::default();
    for segment in [syn(9), data(12, b"cd", 10)] {
        stream.push(&segment, |run| out.take(run));
    }
    stream.acknowledge(14, 50, |run| out.take(run));
    assert_eq!(out.bytes, b"", "the packet may still turn up");
    stream.acknowledge(14, 110, |run| out.take(run));
    assert_eq!(
        out,
        Out {
            bytes: b"??cd".to_vec(),
            times: vec![10, 10]
        }
    );
}

#[test]
fn finish_passes_on_waiting_data_with_its_own_times() {
    let (mut out, mut stream) = run(&[syn(9), data(12, b"cd", 5), data(16, b"gh", 6)]);
    stream.finish(|run| out.take(run));
    assert_eq!(
        out,
        Out {
            bytes: b"??cd??gh".to_vec(),
            times: vec![5, 5, 6, 6]
        }
    );
}

#[test]
fn packets_that_the_capture_cut_leave_a_gap() {
    let cut = Segment {
        len: 5,
        ..data(10, b"ab", 1)
    };
    let (out, stream) = run(&[syn(9), cut, data(15, b"fg", 2)]);
    assert_eq!(out.bytes, b"ab???fg");
    assert_eq!(stream.facts().lost, 3);
}

#[test]
fn keep_alive_probes_are_not_data() {
    let (out, stream) = run(&[syn(9), data(10, b"ab", 1), data(11, b"\0", 2)]);
    assert_eq!(out.bytes, b"ab");
    assert_eq!(stream.facts().repeated, 0);
}

#[test]
fn a_segment_from_far_away_is_left_out() {
    let (out, _) = run(&[syn(9), data(10 + (1 << 31), b"x", 1), data(10, b"ab", 2)]);
    assert_eq!(out.bytes, b"ab");
}

#[test]
fn a_flow_shows_how_it_opened_and_who_closed_first() {
    let mut flow = Flow::new(Limits::default());
    let mut said = Vec::new();
    let mut push = |flow: &mut Flow, from, segment: Segment<'_>| {
        flow.push(from, &segment, |side, run| {
            said.push((side, format!("{run:?}")));
        });
    };
    push(&mut flow, Side::Client, Segment { at: 1, ..syn(100) });
    push(
        &mut flow,
        Side::Server,
        Segment {
            at: 2,
            ack: Some(101),
            ..syn(500)
        },
    );
    push(
        &mut flow,
        Side::Client,
        Segment {
            ack: Some(501),
            ..data(101, b"", 3)
        },
    );
    assert_eq!(flow.close(), None);
    push(
        &mut flow,
        Side::Client,
        Segment {
            ack: Some(501),
            ..data(101, b"hi", 4)
        },
    );
    push(
        &mut flow,
        Side::Server,
        Segment {
            fin: true,
            ack: Some(103),
            ..data(501, b"", 5)
        },
    );
    push(
        &mut flow,
        Side::Client,
        Segment {
            rst: true,
            ..data(103, b"", 6)
        },
    );
    assert_eq!(
        flow.close(),
        Some(Close {
            by: Side::Server,
            how: TcpCloseKind::Fin,
            at: 5,
            acknowledged: 2,
        })
    );
    assert_eq!(flow.stream(Side::Client).facts().rst_at, Some(6));
    assert_eq!(said.len(), 1);
    assert!(
        !flow.is_reopened_by(Side::Client, &syn(100)),
        "a repeated SYN"
    );
    assert!(flow.is_reopened_by(Side::Client, &syn(7000)));
}

#[test]
fn data_that_arrives_while_the_other_side_waits_for_a_gap_stays_in_order() {
    let mut flow = Flow::new(Limits::default());
    let mut said = Vec::new();
    let mut take = |from: Side, run: Run<'_>| {
        said.push(match run {
            Run::Bytes { bytes, at } => (from, String::from_utf8_lossy(bytes).into_owned(), at),
            Run::Gap { len, at } => (from, format!("-{len}"), at),
        });
    };
    let from_server = |seq, ack, bytes, at| Segment {
        ack: Some(ack),
        ..data(seq, bytes, at)
    };
    flow.push(Side::Client, &data(1, b"a", 1), &mut take);
    flow.push(Side::Server, &from_server(1, 2, b"A", 2), &mut take);
    // the client's second byte is lost
    flow.push(Side::Server, &from_server(2, 3, b"B", 4), &mut take);
    flow.push(Side::Client, &data(3, b"c", 5), &mut take);
    flow.push(Side::Server, &from_server(3, 4, b"C", 6), &mut take);
    flow.push(Side::Client, &data(4, b"d", 7), &mut take);
    assert!(flow.waiting() > 0);
    flow.push(Side::Server, &from_server(4, 5, b"D", 8), &mut take);
    flow.finish(&mut take);
    assert_eq!(flow.waiting(), 0);
    let (client, server) = (Side::Client, Side::Server);
    let expected = [
        (client, "a", 1),
        (server, "A", 2),
        (server, "B", 4),
        (client, "-1", 5),
        (client, "c", 5),
        (server, "C", 6),
        (client, "d", 7),
        (server, "D", 8),
    ];
    assert_eq!(
        said,
        expected.map(|(from, text, at)| (from, text.to_owned(), at))
    );
}

/// A stream cut into segments, some repeated, then shuffled within a window.
fn disorder() -> impl Strategy<Value = (Vec<u8>, Vec<(usize, usize)>, u32)> {
    (vec(any::<u8>(), 1..400), any::<u32>()).prop_flat_map(|(bytes, start)| {
        let len = bytes.len();
        let segment =
            (0..len, 1..60usize).prop_map(move |(from, size)| (from, (from + size).min(len)));
        vec(segment, 0..60).prop_map(move |mut segments| {
            // bytes that the random segments miss are sent in order at the end
            segments.extend(
                (0..len)
                    .step_by(10)
                    .map(|from| (from, (from + 10).min(len))),
            );
            (bytes.clone(), segments, start)
        })
    })
}

proptest! {
    #[test]
    fn any_order_and_any_repetition_gives_the_same_bytes((bytes, segments, start) in disorder()) {
        let mut stream = Stream::new(Limits::default());
        let mut out = Out::default();
        stream.push(&syn(start), |run| out.take(run));
        for (n, &(from, to)) in segments.iter().enumerate() {
            let seq = start.wrapping_add(1 + from as u32);
            stream.push(&data(seq, &bytes[from..to], n as u64), |run| out.take(run));
        }
        prop_assert_eq!(&out.bytes, &bytes);
        prop_assert!(out.times.is_sorted(), "what is in order has times in order");
    }

    #[test]
    fn memory_is_bounded_and_nothing_panics(segments in vec((any::<u32>(), 0..50u32, 0..60u32, any::<bool>(), any::<bool>()), 0..80)) {
        let mut flow = Flow::new(Limits { bytes: 100, pieces: 8, patience: 5 });
        let payload = [1; 50];
        let mut handed_on = 0u64;
        for (n, &(seq, len, wire_len, client, near)) in segments.iter().enumerate() {
            let seq = if near { seq % 1000 } else { seq };
            let segment = Segment { seq, ack: Some(seq / 2), payload: &payload[..len as usize], len: wire_len, syn: n % 9 == 0, at: n as u64, ..Segment::default() };
            let from = if client { Side::Client } else { Side::Server };
            flow.push(from, &segment, |_, run| if let Run::Bytes { bytes, .. } = run { handed_on += bytes.len() as u64 });
        }
        flow.finish(|_, run| if let Run::Bytes { bytes, .. } = run { handed_on += bytes.len() as u64 });
        prop_assert_eq!(handed_on, flow.stream(Side::Client).facts().bytes + flow.stream(Side::Server).facts().bytes);
    }
}
