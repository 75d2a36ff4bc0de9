//! Captures on several interfaces, whose writer wrote the packets of one interface after those of
//! the other: copies come late, and with earlier times.

use crate::packets::{ACK, Capture, End, RAW, SYN, Tcp, ip, udp};
use crate::reading::{self, Outcome};
use intact_audit::KeyLog;
use intact_ledger::Row;

/// A capture of these packets. The packets of each batch have the times of the first one.
fn in_batches(batches: &[Vec<Vec<u8>>]) -> Outcome {
    let mut capture = Capture::new(RAW);
    for batch in batches {
        for packet in batch {
            capture.add(packet);
        }
        capture.rewind(batch.len());
    }
    reading::bytes(&capture.bytes(), KeyLog::default()).unwrap()
}

#[test]
fn packets_of_two_interfaces_are_read_in_the_order_of_their_times() {
    let tcp = Tcp::opened(40_000).exchange("/a").exchange("/b").close();
    let mut capture = Capture::new(RAW);
    // the packets of the server first, with their own times
    for wanted in [End::Server, End::Client] {
        for (place, (end, packet)) in tcp.packets.iter().enumerate() {
            if *end == wanted {
                capture.seek(place as u64 + 1);
                capture.add(packet);
            }
        }
    }
    let stored = reading::bytes(&capture.bytes(), KeyLog::default()).unwrap();
    let in_order = in_batches(&[tcp.all()]);
    let rows = |outcome: &Outcome| -> Vec<String> {
        outcome.rows.iter().map(|row| format!("{row:?}")).collect()
    };
    assert_eq!(rows(&stored), rows(&in_order));
}

/// Two connections with two requests each, one after the other.
fn two_connections() -> Vec<Vec<u8>> {
    let [one, other] = [40_000, 40_001].map(|port| {
        let tcp = Tcp::opened(port).exchange("/a").exchange("/b");
        tcp.close().all()
    });
    [one, other].concat()
}

#[test]
fn copies_of_an_interface_that_was_written_later_are_not_counted() {
    let packets = two_connections();
    let once = in_batches(std::slice::from_ref(&packets));
    let (half, rest) = packets.split_at(packets.len() / 2 + 5);
    let (half, rest) = (half.to_vec(), rest.to_vec());
    let twice = in_batches(&[packets.clone(), packets]);
    // the first connection ends in a batch, and the second one begins
    let mut capture = Capture::new(RAW);
    for batch in [&half, &rest] {
        for packet in batch {
            capture.add(packet);
        }
        capture.rewind(batch.len());
        for packet in batch {
            capture.add(packet);
        }
    }
    let by_half = reading::bytes(&capture.bytes(), KeyLog::default()).unwrap();
    for outcome in [once, twice, by_half] {
        assert_eq!(outcome.connections().len(), 2);
        let ordinals: Vec<_> = outcome.exchanges().filter_map(|one| one.ordinal).collect();
        assert_eq!(ordinals, [1, 2, 1, 2]);
        assert!(
            outcome
                .exchanges()
                .all(|one| one.retransmissions == Some(0))
        );
        assert!(outcome.exchanges().all(|one| one.outcome.is_ok()));
        assert!(outcome.caveats().iter().all(|caveat| !caveat.incomplete));
    }
}

#[test]
fn the_same_ports_with_another_sequence_number_are_another_connection() {
    let first = Tcp::opened(40_000).exchange("/a").close().all();
    let mut again = Tcp::joined(40_000);
    again.skip_to(9_000_000);
    again.send(End::Client, SYN, b"");
    again.send(End::Server, SYN | ACK, b"");
    again.send(End::Client, ACK, b"");
    let again = again.exchange("/b").close().all();
    let outcome = in_batches(&[[first, again].concat()]);
    assert_eq!(outcome.connections().len(), 2);
    assert_eq!(outcome.exchanges().count(), 2);
}

#[test]
fn copies_of_a_lookup_are_not_counted_and_a_repeated_lookup_is() {
    let message = |flags: u8, answers: u8| {
        let mut message = vec![0, 7, flags, 0, 0, 1, 0, answers, 0, 0, 0, 0];
        message.extend(b"\x04name\x07example\0\0\x01\0\x01");
        message
    };
    let question = udp(50_000, 53, &message(0x01, 0));
    let mut answer = message(0x81, 1);
    answer.extend(b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04\xc0\0\x02\x09");
    let answer = ip(17, 2, 1, &udp(53, 50_000, &answer)[20..]);
    let lookup = vec![question, answer];
    let count = |outcome: Outcome| {
        let rows = outcome.rows.iter();
        rows.filter(|row| matches!(row, Row::Lookup(_))).count()
    };
    assert_eq!(count(in_batches(&[lookup.clone(), lookup.clone()])), 1);
    assert_eq!(count(in_batches(&[[lookup.clone(), lookup].concat()])), 2);
}
