//! Damaged and hostile inputs: for any bytes, an audit ends, and its events are consistent.

use crate::reading::{self, Outcome};
use intact_audit::KeyLog;
use intact_ledger::Row;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::HashSet;
use std::io::Write;

/// One damaged input per format.
const SEEDS: [&str; 13] = [
    "captures/one_http_stream_rst.pcap",
    "captures/websocket.pcap",
    "captures/nginx-curl.pcapng",
    "har/humanssuck.har",
    "logs/nginx-intact.log",
    "logs/nginx-json.log",
    "logs/caddy.log",
    "netlog/plain.json.gz",
    "netlog/http2.json.gz",
    "tools/hey.csv",
    "tools/oha-http2.csv",
    "tools/k6.csv.gz",
    "tools/k6.json.gz",
];

/// Asserts the invariants of every stream of events.
pub(crate) fn holds_together(outcome: &Outcome) {
    let mut opened = HashSet::new();
    let mut closed = HashSet::new();
    for row in &outcome.rows {
        match row {
            Row::Opened(connection) => assert!(opened.insert(connection.id)),
            Row::Revised(connection) => assert!(opened.contains(&connection.id)),
            Row::Closed(end) => {
                assert!(opened.contains(&end.connection));
                assert!(closed.insert(end.connection), "closed twice");
            }
            Row::Exchange(exchange) => {
                assert!(exchange.end >= exchange.at);
                let known = |id| opened.contains(&id) && !closed.contains(&id);
                assert!(exchange.connection.is_none_or(known));
                let in_order = intact_ledger::Phase::ALL
                    .iter()
                    .filter_map(|&phase| exchange.spans.of(phase));
                for span in in_order {
                    assert!(
                        span.start >= exchange.at && span.end <= exchange.end,
                        "{exchange:?}"
                    );
                }
            }
            Row::Lookup(_)
            | Row::Stack(_)
            | Row::Round(_)
            | Row::Sockets(_)
            | Row::Invocation(_)
            | Row::Fault(_)
            | Row::Caveat(_) => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn damaged_inputs_are_read_up_to_the_damage(
        seed in 0..SEEDS.len(),
        places in vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = reading::unpacked(SEEDS[seed]);
        for (place, byte) in places {
            let at = place.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(cut.index(bytes.len()) + 1);
        if let Ok(outcome) = reading::bytes(&bytes, KeyLog::default()) {
            holds_together(&outcome);
        }
    }

    #[test]
    fn any_bytes_behind_a_magic_are_answered(kind in 0..4usize, bytes in vec(any::<u8>(), 0..600)) {
        let start: &[u8] = [
            &[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0][..],
            &[10, 13, 13, 10, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255, 28, 0, 0, 0],
            b"{\"log\":{\"entries\":[",
            b"",
        ][kind];
        if let Ok(outcome) = reading::bytes(&[start, &bytes].concat(), KeyLog::default()) {
            holds_together(&outcome);
        }
    }
}

#[test]
fn a_compression_bomb_is_read_piece_by_piece() {
    // 64 MB of blanks after the start of a HAR, compressed to less than one
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packed.write_all(b"{\"log\":{\"entries\":[").unwrap();
    let blanks = vec![b' '; 1 << 20];
    for _ in 0..64 {
        packed.write_all(&blanks).unwrap();
    }
    let packed = packed.finish().unwrap();
    assert!(packed.len() < 1 << 20);
    let error = reading::bytes(&packed, KeyLog::default()).unwrap_err();
    assert!(error.to_string().contains("HAR"), "{error}");
}

#[test]
fn times_at_the_end_of_the_range_do_not_stop_the_audit() {
    let mut bytes = std::fs::read(reading::fixture("captures/nginx-curl.pcapng")).unwrap();
    let word =
        |bytes: &[u8], at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().unwrap()) as usize;
    let mut at = 0;
    while at < bytes.len() {
        let (kind, len) = (word(&bytes, at), word(&bytes, at + 4));
        if kind == 6 {
            bytes[at + 12..at + 20].fill(0xff);
        }
        at += len;
    }
    let outcome = reading::bytes(&bytes, KeyLog::default()).unwrap();
    holds_together(&outcome);
    assert_eq!(outcome.exchanges().count(), 15);
}
