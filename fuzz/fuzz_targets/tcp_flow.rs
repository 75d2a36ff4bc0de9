//! Segments of both directions: no panic, bounded memory, and as many bytes handed on as the facts
//! say.

#![no_main]

use intact_wire::Side;
use intact_wire::tcp::{Flow, Limits, Run, Segment};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|segments: Vec<(u32, Option<u32>, u8, u16, Vec<u8>)>| {
    let mut flow = Flow::new(Limits {
        bytes: 256,
        pieces: 16,
        patience: 3,
    });
    let mut bytes_out = [0u64; 2];
    let mut lost = [0u64; 2];
    let mut count = |side: Side, run: Run<'_>| {
        let place = usize::from(side == Side::Server);
        match run {
            Run::Bytes { bytes, .. } => bytes_out[place] += bytes.len() as u64,
            Run::Gap { len, .. } => lost[place] += len,
        }
    };
    for (n, (seq, ack, flags, len, payload)) in segments.iter().enumerate() {
        let segment = Segment {
            seq: *seq,
            ack: *ack,
            syn: flags & 1 != 0,
            fin: flags & 2 != 0,
            rst: flags & 4 != 0,
            payload,
            len: u32::from(*len),
            at: n as u64,
        };
        let from = if flags & 8 != 0 {
            Side::Client
        } else {
            Side::Server
        };
        let _ = flow.is_reopened_by(from, &segment);
        flow.push(from, &segment, &mut count);
    }
    flow.finish(&mut count);
    for (place, side) in [Side::Client, Side::Server].into_iter().enumerate() {
        let facts = flow.stream(side).facts();
        assert_eq!((facts.bytes, facts.lost), (bytes_out[place], lost[place]));
    }
});
