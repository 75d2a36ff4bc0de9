//! The middle with time as an argument: what comes out when, and what never does.

use super::packet::samples::{ACK, SYN, tcp};
use super::*;

const MS: u64 = 1_000_000;

fn middle(spec: &str) -> Emulator {
    Emulator::new(spec.parse().unwrap(), 7)
}

/// Everything that comes out of one direction, as (time due, length of the frame).
fn out(middle: &mut Emulator, direction: FlowDirection) -> Vec<(u64, usize)> {
    let mut all = Vec::new();
    while let Some(packet) = middle.release(direction, u64::MAX) {
        all.push((packet.due, packet.bytes.len()));
        let due = packet.due;
        middle.sent(direction, packet, due, true);
    }
    all
}

#[test]
fn each_direction_has_its_own_delay() {
    let mut middle = middle("up=10ms,down=20ms");
    let frame = tcp(FlowDirection::Up, 5000, SYN, 0);
    middle.arrive(FlowDirection::Up, &frame, 5 * MS);
    middle.arrive(FlowDirection::Down, &frame, 5 * MS);
    assert_eq!(middle.next(), Some(15 * MS));
    assert!(middle.release(FlowDirection::Up, 15 * MS - 1).is_none());
    assert_eq!(
        out(&mut middle, FlowDirection::Up),
        [(15 * MS, frame.len())]
    );
    assert_eq!(
        out(&mut middle, FlowDirection::Down),
        [(25 * MS, frame.len())]
    );
}

#[test]
fn what_is_dropped_never_comes_out_and_is_counted() {
    let mut middle = middle("rtt=2ms,drop=up");
    let frame = tcp(FlowDirection::Up, 5000, SYN, 0);
    middle.arrive(FlowDirection::Up, &frame, 0);
    middle.arrive(FlowDirection::Down, &frame, 0);
    assert_eq!(out(&mut middle, FlowDirection::Up), []);
    assert_eq!(out(&mut middle, FlowDirection::Down).len(), 1);
    assert_eq!(middle.counts[0].dropped, 1);
    middle.change(&"drop=none".parse().unwrap());
    middle.arrive(FlowDirection::Up, &frame, 0);
    assert_eq!(out(&mut middle, FlowDirection::Up).len(), 1);
}

#[test]
fn a_freeze_also_takes_what_is_on_its_way() {
    let mut middle = middle("rtt=30ms");
    let frame = tcp(FlowDirection::Up, 5000, SYN, 0);
    middle.arrive(FlowDirection::Up, &frame, 0);
    middle.change(&LinkChange::freeze(Blocked::Both));
    middle.arrive(FlowDirection::Up, &frame, 1);
    assert_eq!(middle.next(), None);
    assert_eq!(middle.counts[0].dropped, 2);
}

#[test]
fn the_share_that_is_lost_is_the_one_asked_for() {
    let mut middle = middle("rtt=0,loss=1%");
    let frame = tcp(FlowDirection::Up, 5000, ACK, 0);
    for at in 0..100_000 {
        middle.arrive(FlowDirection::Up, &frame, at);
        out(&mut middle, FlowDirection::Up);
    }
    // five standard deviations around 1,000
    assert!(
        middle.counts[0].lost.abs_diff(1000) < 160,
        "{:?}",
        middle.counts
    );
    assert_eq!(middle.counts[0].lost + middle.counts[0].delivered, 100_000);
}

#[test]
fn a_rate_spaces_packets_and_a_full_queue_drops_at_its_tail() {
    let mut middle = middle("rtt=0,rate=12mbit");
    // 1,500 bytes and the wire's overhead at 12 Mbit/s: 1 ms each
    let frame = tcp(FlowDirection::Up, 5000, ACK, 1500 - 24 - 14 - 40);
    for _ in 0..100 {
        middle.arrive(FlowDirection::Up, &frame, 0);
    }
    let times: Vec<u64> = out(&mut middle, FlowDirection::Up)
        .iter()
        .map(|(due, _)| *due)
        .collect();
    assert_eq!(times[..3], [MS, 2 * MS, 3 * MS]);
    // 20 ms of queue and 30 kB on top, which take 20 ms too
    assert_eq!((times.len(), middle.counts[0].tail_dropped), (41, 59));
}

/// Two flows of 500 packets each through a link, as (time due, flow's port, length); lengths grow
/// within a flow.
fn two_flows(spec: &str) -> Vec<(u64, u8, usize)> {
    let mut middle = middle(spec);
    for at in 0..1000 {
        let port = 5000 + (at % 2) as u16;
        let frame = tcp(FlowDirection::Up, port, ACK, (at / 2) as usize);
        middle.arrive(FlowDirection::Up, &frame, at);
    }
    let mut all = Vec::new();
    while let Some(packet) = middle.release(FlowDirection::Up, u64::MAX) {
        let low_byte_of_port = packet.bytes[packet::VNET + 14 + 20 + 1];
        all.push((packet.due, low_byte_of_port, packet.bytes.len()));
    }
    all
}

/// Whether each flow's packets came in the order in which they were sent.
fn in_order(packets: &[(u64, u8, usize)]) -> bool {
    let flow = |port| {
        packets
            .iter()
            .filter(move |(_, own, _)| *own == port)
            .map(|(.., length)| *length)
    };
    packets.iter().all(|(_, port, _)| flow(*port).is_sorted())
}

#[test]
fn jitter_stays_within_bounds_and_keeps_each_flow_in_order() {
    let all = two_flows("rtt=30ms,jitter=5ms");
    let (first, last) = (all[0].0, all[all.len() - 1].0);
    assert!(first >= 10 * MS && last <= 20 * MS + 1000);
    assert!(last - first > MS, "it varies");
    assert!(in_order(&all));
    assert!(!in_order(&two_flows("rtt=30ms,jitter=5ms,reorder=yes")));
}

#[test]
fn a_forgotten_flow_is_answered_by_a_reset_from_the_middle_or_by_nothing() {
    for (spec, resets) in [
        ("rtt=30ms,nat-idle=5s", 1),
        ("rtt=30ms,nat-idle=5s:silent", 0),
    ] {
        let mut middle = middle(spec);
        middle.arrive(FlowDirection::Up, &tcp(FlowDirection::Up, 5000, SYN, 0), 0);
        assert_eq!(out(&mut middle, FlowDirection::Up).len(), 1);
        let late = 6_000 * MS;
        middle.arrive(
            FlowDirection::Up,
            &tcp(FlowDirection::Up, 5000, ACK, 10),
            late,
        );
        assert_eq!(out(&mut middle, FlowDirection::Up), []);
        let back = out(&mut middle, FlowDirection::Down);
        assert_eq!(back.len(), resets, "{spec}");
        assert!(
            back.iter().all(|(due, _)| *due == late + 15 * MS),
            "one half there, one half back"
        );
        assert_eq!(middle.counts[0].forgotten, 1);
    }
}

#[test]
fn a_shorter_delay_does_not_let_packets_overtake() {
    let mut middle = middle("rtt=80ms");
    let frame = tcp(FlowDirection::Up, 5000, ACK, 0);
    middle.arrive(FlowDirection::Up, &frame, 0);
    middle.change(&"rtt=20ms".parse().unwrap());
    middle.arrive(FlowDirection::Up, &frame, MS);
    middle.arrive(FlowDirection::Up, &frame, 100 * MS);
    let times: Vec<u64> = out(&mut middle, FlowDirection::Up)
        .iter()
        .map(|(due, _)| *due)
        .collect();
    assert_eq!(times, [40 * MS, 40 * MS, 110 * MS]);
}

#[test]
fn lateness_is_the_time_between_due_and_sent() {
    let mut middle = middle("rtt=2ms");
    middle.arrive(FlowDirection::Up, &tcp(FlowDirection::Up, 5000, ACK, 0), 0);
    let packet = middle.release(FlowDirection::Up, 2 * MS).unwrap();
    middle.sent(FlowDirection::Up, packet, MS + 250, true);
    assert_eq!(middle.lateness.max(), Some(250));
    assert_eq!(middle.counts[0].delivered, 1);
}

#[test]
fn a_link_tolerates_five_percent_within_bounds() {
    let micros = |round_trip| tolerance(Duration::from_micros(round_trip)).as_micros();
    assert_eq!([micros(0), micros(5_000), micros(90_000)], [100, 250, 1000]);
}
