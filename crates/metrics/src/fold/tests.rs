//! Tests of `fold`.

use super::*;
use crate::attributes::Value;
use crate::connections::MAX_OPEN;
use intact_ledger::{
    Close, ConnectionBytes, ConnectionId, DialFailure, EvidenceSet, Method, Origin, Probes,
    Producer, Protocol, Scheme, SetupPhase, Span, Vantage, Variant,
};
use std::collections::BTreeMap;

fn run(vantage: Vantage) -> Run {
    Run::new(
        Producer::Watch,
        "0",
        vantage,
        jiff::Timestamp::UNIX_EPOCH,
        1,
        &[],
    )
    .with_evidence([Evidence::Durations, Evidence::Ends])
}

fn connection(id: u64) -> Connection {
    let mut one = Connection::new(ConnectionId(id), Nanos(0));
    one.origin = Some(Origin {
        scheme: Scheme::Http,
        host: "a.example".into(),
        port: 80,
    });
    one
}

fn exchange(connection: u64, end: u64) -> Exchange {
    let mut one = Exchange::new(1, Nanos(0));
    one.connection = Some(ConnectionId(connection));
    one.end = Nanos(end);
    one.spans.wait = Some(Span::new(Nanos(0), Nanos(end)));
    one.status = Some(200);
    one
}

fn closed(id: u64, at: u64) -> Closed {
    Closed {
        connection: ConnectionId(id),
        variant: None,
        round: None,
        close: Close {
            at: Nanos(at),
            by: None,
            how: None,
            other_end: None,
            announced_by: None,
            moment: None,
            exchanges: None,
            bytes: ConnectionBytes::default(),
            probes: Probes::default(),
        },
    }
}

/// Series of a metric as text, with their sums.
fn series(fold: Fold, name: &str) -> Vec<(String, i64)> {
    let measured = fold.finish();
    let family = measured
        .families
        .iter()
        .find(|family| family.definition.name == name);
    let text = |attributes: &Attributes| {
        let one = |(name, value): &(&str, Value)| match value {
            Value::Text(text) => format!("{name}={text}"),
            Value::Number(number) => format!("{name}={number}"),
            Value::Flag(flag) => format!("{name}={flag}"),
        };
        attributes.iter().map(one).collect::<Vec<_>>().join(" ")
    };
    family.map_or_else(Vec::new, |family| {
        family
            .series
            .iter()
            .map(|(attributes, one)| (text(attributes), one.total.sum))
            .collect()
    })
}

fn names(fold: Fold) -> Vec<&'static str> {
    let families = fold.finish().families;
    families
        .iter()
        .map(|family| family.definition.name)
        .collect()
}

const ORIGIN: &str = "server.address=a.example server.port=80 url.scheme=http";

#[test]
fn a_connection_is_counted_for_its_final_destination() {
    let mut fold = Fold::new(&run(Vantage::Client));
    let mut early = connection(1);
    early.origin = None;
    early.peer = Some("192.0.2.1:80".parse().unwrap());
    fold.record(Event::Opened(&early));
    fold.record(Event::Revised(&connection(1)));
    fold.record(Event::Closed(&closed(1, 7)));
    let opened = series(fold, "intact.connections.opened");
    assert_eq!(opened, [(ORIGIN.to_owned(), 1)]);
}

#[test]
fn a_request_recorded_after_its_connection_ended_has_its_attributes() {
    let mut fold = Fold::new(&run(Vantage::Client));
    fold.record(Event::Opened(&connection(1)));
    fold.record(Event::Closed(&closed(1, 7)));
    fold.record(Event::Exchange(&exchange(1, 5)));
    let requests = series(fold, "http.client.request.duration");
    let expected = format!("{ORIGIN} http.response.status_code=200");
    assert_eq!(requests, [(expected, 5)]);
}

#[test]
fn an_invented_method_opens_no_series_and_an_error_has_its_type() {
    let mut fold = Fold::new(&run(Vantage::Client));
    for method in ["BREW", "PROPFIND"] {
        let mut one = exchange(1, 5);
        one.method = Some(Method::new(method));
        one.status = Some(418);
        fold.record(Event::Exchange(&one));
    }
    let requests = series(fold, "intact.requests");
    let expected =
        "http.request.method=_OTHER http.response.status_code=418 error.type=418".to_owned();
    assert_eq!(requests, [(expected, 2)]);
}

#[test]
fn a_log_without_times_has_requests_and_no_durations() {
    let mut fold = Fold::new(&run(Vantage::Server));
    let mut one = exchange(1, 0);
    one.spans = Spans::default();
    fold.record(Event::Exchange(&one));
    assert_eq!(names(fold), ["intact.requests"]);
}

#[test]
fn what_is_not_http_is_not_counted_as_such() {
    let mut fold = Fold::new(&run(Vantage::Client));
    let mut redis = connection(1);
    redis.protocol = Some(Protocol::Redis);
    fold.record(Event::Opened(&redis));
    fold.record(Event::Closed(&closed(1, 7)));
    assert_eq!(names(fold), ["intact.connections.opened"]);
}

#[test]
fn a_dial_that_failed_in_tls_is_counted_as_failed_and_is_never_open() {
    let mut fold = Fold::new(&run(Vantage::Client));
    let mut failed = connection(1);
    failed.failed = Some(DialFailure {
        phase: SetupPhase::Ssl,
        kind: Failure::TlsAlert,
        detail: None,
    });
    fold.record(Event::Opened(&failed));
    // recorded later
    fold.record(Event::Opened(&connection(2)));
    failed.id = ConnectionId(2);
    fold.record(Event::Revised(&failed));
    fold.record(Event::Closed(&closed(2, 7)));
    let families = fold.finish().families;
    let sums: Vec<(&str, i64)> = families
        .iter()
        .map(|family| {
            let sums = family.series.values().map(|series| series.total.sum);
            (family.definition.name, sums.sum())
        })
        .collect();
    assert_eq!(
        sums,
        [
            ("intact.connections.opened", 2),
            ("intact.connections.failed", 2)
        ]
    );
}

#[test]
fn open_connections_rise_and_fall_with_time() {
    let mut fold = Fold::new(&run(Vantage::Client));
    fold.record(Event::Opened(&connection(1)));
    let mut late = connection(2);
    late.at = Nanos(2_500_000_000);
    fold.record(Event::Opened(&late));
    fold.record(Event::Closed(&closed(1, 4_500_000_000)));
    let measured = fold.finish();
    let mut families = measured.families.iter();
    let open = families
        .find(|family| family.definition.name == "http.client.open_connections")
        .unwrap();
    let series = open.series.values().next().unwrap();
    assert_eq!(series.total.sum, 1);
    {
        let points = measured.families.through_time(series);
        let levels = points.iter().map(|(at, point)| (at.0, point.sum));
        assert_eq!(
            levels.collect::<Vec<_>>(),
            [(1_000_000_000, 1), (3_000_000_000, 2), (4_500_000_000, 1)]
        );
    }
}

#[test]
fn where_ends_cannot_be_seen_connections_have_neither_durations_nor_levels() {
    let mut run = run(Vantage::Client);
    for (ends_seen, expected) in [
        (
            true,
            &[
                "http.client.connection.duration",
                "http.client.open_connections",
                "intact.connections.opened",
            ][..],
        ),
        (false, &["intact.connections.opened"]),
    ] {
        run.evidence = match ends_seen {
            true => [Evidence::Ends].into(),
            false => EvidenceSet::default(),
        };
        let mut fold = Fold::new(&run);
        fold.record(Event::Opened(&connection(1)));
        fold.record(Event::Closed(&closed(1, 7)));
        assert_eq!(names(fold), expected);
    }
}

#[test]
fn above_the_limit_the_oldest_connection_is_no_longer_followed() {
    let mut fold = Fold::new(&run(Vantage::Client));
    let last = MAX_OPEN as u64 + 1;
    for id in 1..=last {
        fold.record(Event::Opened(&connection(id)));
    }
    assert_eq!(fold.connections.len(), MAX_OPEN);
    fold.record(Event::Closed(&closed(1, 5)));
    fold.record(Event::Closed(&closed(last, 7)));
    let families = fold.finish().families;
    let sum = |metric: &str| {
        let mut families = families.iter();
        let family = families.find(|family| family.definition.name == metric);
        let series = family.unwrap().series.values().next().unwrap();
        series.total.sum
    };
    assert_eq!(sum("intact.connections.opened"), last as i64);
    assert_eq!(sum("http.client.connection.duration"), 7);
    assert_eq!(sum("http.client.open_connections"), last as i64 - 2);
}

#[test]
fn a_body_is_counted_only_if_the_number_of_read_bytes_is_known() {
    let mut fold = Fold::new(&run(Vantage::Server));
    let mut logged = exchange(1, 5);
    logged.bytes.body = 300;
    fold.record(Event::Exchange(&logged));
    assert_eq!(
        names(fold),
        ["http.server.request.duration", "intact.requests"]
    );
    let mut fold = Fold::new(&run(Vantage::Client));
    logged.body.read = Some(300);
    fold.record(Event::Exchange(&logged));
    let bodies = series(fold, "http.client.response.body.size");
    assert_eq!(bodies, [("http.response.status_code=200".to_owned(), 300)]);
}

#[test]
fn rounds_that_are_not_counted_are_in_no_metric_and_programs_are_separate() {
    let mut run = run(Vantage::OnPath);
    run.variants = vec![Variant {
        name: "old".to_owned(),
        axes: BTreeMap::new(),
    }];
    let mut fold = Fold::new(&run);
    for (id, round) in [(1, 0), (2, 1)] {
        let mut one = connection(id);
        (one.variant, one.round) = (Some(0), Some(round));
        fold.record(Event::Opened(&one));
    }
    let opened = series(fold, "intact.connections.opened");
    assert_eq!(opened, [(format!("intact.variant=old {ORIGIN}"), 1)]);
}
