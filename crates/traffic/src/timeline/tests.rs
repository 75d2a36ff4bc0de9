//! Timelines of connections made by hand.

use super::*;
use intact_ledger::{
    Close, CloseKind, ClosePoint, ConnectionBytes, Evidence, Origin, Probes, Producer, Scheme,
    Span, Vantage, Variant,
};

const MS: u64 = 1_000_000;

fn run() -> Run {
    let started = "2026-01-01T00:00:00Z".parse().unwrap();
    let mut run = Run::new(Producer::Bench, "0", Vantage::Client, started, 1, &[])
        .with_evidence(Evidence::ALL);
    run.variants.push(Variant {
        name: "keepalive=on".to_owned(),
        axes: Default::default(),
    });
    run
}

fn connection(id: u64, at: u64, host: &str) -> Connection {
    let mut one = Connection::new(ConnectionId(id), Nanos(at * MS));
    one.variant = Some(0);
    one.round = Some(1);
    one.origin = Some(Origin {
        scheme: Scheme::Https,
        host: host.into(),
        port: 443,
    });
    one.setup.connect = Some(Span::new(Nanos(at * MS), Nanos((at + 30) * MS)));
    one
}

fn exchange(connection: u64, at: u64) -> Exchange {
    let mut one = Exchange::new(at, Nanos(at * MS));
    one.connection = Some(ConnectionId(connection));
    one.end = Nanos((at + 5) * MS);
    one
}

fn close(connection: u64, at: u64) -> Closed {
    Closed {
        connection: ConnectionId(connection),
        variant: Some(0),
        round: Some(1),
        close: Close {
            at: Nanos(at * MS),
            by: Some(Side::Server),
            how: Some(CloseKind::Fin),
            other_end: None,
            announced_by: None,
            moment: Some(ClosePoint::Idle),
            exchanges: Some(1),
            bytes: ConnectionBytes::default(),
            probes: Probes::default(),
        },
    }
}

#[test]
fn a_life_has_its_setup_its_exchanges_and_its_end() {
    let mut timeline = Timeline::of_variants();
    timeline.record(Event::Opened(&connection(1, 1000, "a")));
    timeline.record(Event::Exchange(&exchange(1, 1030)));
    timeline.record(Event::Closed(&close(1, 1035)));
    let lanes = timeline.lanes(&run(), DestinationKey::name);
    let life = &lanes[0].connections[0];
    assert_eq!(lanes[0].name, "keepalive=on");
    assert_eq!((life.from_ms, life.ready_ms), (0.0, Some(30.0)));
    assert_eq!((life.to_ms, life.ended_by), (Some(35.0), Some("server")));
    assert_eq!(life.exchanges, [(30.0, 35.0, true)]);
    assert_eq!(life.ended_by_side(), Some(Side::Server));
}

#[test]
fn where_ends_are_not_seen_a_life_is_drawn_to_its_last_exchange() {
    let mut timeline = Timeline::of_destinations(Vantage::Server);
    timeline.record(Event::Opened(&connection(1, 1000, "a")));
    timeline.record(Event::Exchange(&exchange(1, 1030)));
    timeline.record(Event::Opened(&connection(2, 9000, "a")));
    let mut run = run();
    let to_ms = |run: &Run| timeline.lanes(run, DestinationKey::name)[0].connections[0].to_ms;
    assert_eq!(to_ms(&run), None);
    run.evidence = run.evidence.without(Evidence::Ends);
    assert_eq!(to_ms(&run), Some(1035.0));
}

#[test]
fn a_connection_moves_to_where_it_turns_out_to_lead() {
    let mut timeline = Timeline::of_destinations(Vantage::OnPath);
    for nth in 0..1_000u64 {
        let mut one = connection(nth, nth, "api");
        let origin = one.origin.take();
        // at an address of its own, or at one that all share
        let port = if nth % 2 == 0 { 443 } else { 1000 + nth };
        one.peer = Some(format!("192.0.2.1:{port}").parse().unwrap());
        timeline.record(Event::Opened(&one));
        one.origin = origin;
        timeline.record(Event::Revised(&one));
        timeline.record(Event::Exchange(&exchange(nth, nth)));
    }
    let lanes = timeline.lanes(&run(), DestinationKey::name);
    assert_eq!(lanes.len(), 1);
    assert_eq!(lanes[0].name, "https://api");
    assert_eq!((lanes[0].connections.len(), lanes[0].more), (20, 980));
    assert_eq!(lanes[0].connections[0].exchanges.len(), 1);
    assert!(timeline.groups.len() <= GROUPS && timeline.places.len() == CONNECTIONS);
}

#[test]
fn what_is_over_the_bounds_is_counted_and_not_kept() {
    let mut timeline = Timeline::of_destinations(Vantage::Client);
    for nth in 0..10_000u64 {
        let host = format!("host-{}", nth % 100);
        timeline.record(Event::Opened(&connection(nth, nth, &host)));
        timeline.record(Event::Exchange(&exchange(nth, nth)));
    }
    let lanes = timeline.lanes(&run(), DestinationKey::name);
    assert_eq!(lanes.len(), GROUPS);
    assert!(
        lanes
            .iter()
            .all(|lane| lane.connections.len() == CONNECTIONS && lane.more == 80)
    );
    assert_eq!(timeline.elsewhere(), 8_800);
    assert_eq!(timeline.places.len(), GROUPS * CONNECTIONS);
}
