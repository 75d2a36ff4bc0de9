//! The axes about the life of connections: limits, pauses and heartbeats have the effect that the
//! server's ledger shows.

use crate::http3::{against, assert_same_counts, connections};
use crate::rig::config;
use intact_bench::{Bench, Config, Length};
use intact_experiment::{Period, RequestLimit};
use intact_ledger::{Nanos, Protocol, Row};
use intact_serve::Close;
use std::collections::HashMap;
use std::num::NonZeroU32;
use std::time::Duration;

fn limit(requests: u32) -> RequestLimit {
    RequestLimit::After(NonZeroU32::new(requests).unwrap())
}

fn every(millis: u64) -> Period {
    Period::Every(Duration::from_millis(millis))
}

#[test]
fn a_connection_is_closed_after_the_requests_that_the_limit_allows() {
    for (http, streams) in [
        (Protocol::Http11, 1),
        (Protocol::Http2, 1),
        (Protocol::Http2, 4),
    ] {
        let (record, totals) = against(
            "/",
            |_| {},
            |config| {
                config.axes.http = vec![http];
                config.axes.streams = vec![streams];
                config.axes.connection.reuse = vec![limit(5)];
                config.length = Length::Exchanges(40);
                config.rounds = Some(1);
            },
        );
        assert_same_counts(&record, &totals);
        let mut carried: HashMap<_, u64> = HashMap::new();
        for row in &record.rows {
            if let Row::Exchange(exchange) = row {
                *carried.entry(exchange.connection).or_default() += 1;
            }
        }
        // the preflight's, and 1 + 40 requests by fives
        assert_eq!(record.opened(), 1 + 9, "{http:?} x {streams}");
        assert!(carried.values().all(|&count| count <= 5), "{carried:?}");
    }
}

#[test]
fn without_keep_alive_there_is_a_connection_for_each_stream() {
    for keepalive in [true, false] {
        let (record, totals) = against(
            "/delay/20",
            |_| {},
            |config| {
                config.axes.http = vec![Protocol::Http2];
                config.axes.keepalive = vec![keepalive];
                config.axes.streams = vec![4];
                config.length = Length::Exchanges(16);
                config.rounds = Some(1);
            },
        );
        assert_same_counts(&record, &totals);
        let of_round = record.rows.iter().filter_map(|row| match row {
            Row::Exchange(one) if one.round == Some(1) && !one.warmup => Some(one),
            _ => None,
        });
        let spans: Vec<(Nanos, Nanos)> = of_round.map(|one| (one.at, one.end)).collect();
        let at_once = spans.iter().map(|&(at, _)| {
            let under_way = spans
                .iter()
                .filter(|&&(start, end)| start <= at && at < end);
            under_way.count()
        });
        assert_eq!(at_once.max(), Some(4), "keepalive={keepalive}");
    }
}

#[test]
fn a_connection_that_is_too_old_is_replaced() {
    let (record, totals) = against(
        "/",
        |_| {},
        |config| {
            config.axes.http = vec![Protocol::Http11];
            config.axes.connection.max_age = vec![every(60)];
            config.axes.connection.idle = vec![Duration::from_millis(25)];
            config.length = Length::Exchanges(12);
            config.rounds = Some(1);
        },
    );
    assert_same_counts(&record, &totals);
    // 12 pauses of 25 ms are 5 ages of 60 ms
    assert!(record.opened() >= 5, "{}", record.opened());
    let mut begun: HashMap<_, Nanos> = HashMap::new();
    for connection in connections(&record) {
        begun.insert(Some(connection.id), connection.at);
    }
    for row in &record.rows {
        if let Row::Exchange(exchange) = row
            && exchange.ordinal > Some(1)
        {
            let age = exchange.at.since(begun[&exchange.connection]);
            assert!(age < 60_000_000, "a request at the age of {age} ns");
        }
    }
}

#[test]
fn requests_on_a_connection_are_as_far_apart_as_the_pause() {
    for keepalive in [true, false] {
        let (record, totals) = against(
            "/",
            |_| {},
            |given| {
                given.axes.http = vec![Protocol::Http11];
                given.axes.keepalive = vec![keepalive];
                given.axes.connection.idle = vec![Duration::from_millis(40)];
                given.length = Length::Exchanges(5);
                given.rounds = Some(1);
            },
        );
        assert_same_counts(&record, &totals);
        let mut exchanges: Vec<(Nanos, Nanos)> = record
            .rows
            .iter()
            .filter_map(|row| match row {
                Row::Exchange(exchange) if exchange.round == Some(1) => {
                    Some((exchange.at, exchange.end))
                }
                _ => None,
            })
            .collect();
        exchanges.sort();
        assert_eq!(exchanges.len(), 5 + usize::from(keepalive));
        for pair in exchanges.windows(2) {
            let pause = pair[1].0.since(pair[0].1);
            assert!(pause >= 40_000_000, "{pause} ns");
        }
    }
}

/// A server that forgets idle connections without a word, and a client that pauses for longer.
fn against_forgetful(ping: Period) -> (u64, Vec<(String, u64)>) {
    let (record, _) = against(
        "/",
        |serve| {
            serve.idle_timeout = Some(Duration::from_millis(150));
            serve.close = Close::Silent;
        },
        |config| {
            config.axes.http = vec![Protocol::Http2];
            config.axes.connection.idle = vec![Duration::from_millis(600)];
            config.axes.connection.ping = vec![ping];
            config.length = Length::Exchanges(3);
            config.rounds = Some(1);
            config.timeout = Duration::from_millis(400);
        },
    );
    record.outcomes()
}

#[test]
fn pings_find_a_forgotten_connection_before_a_request_does() {
    let (_, without) = against_forgetful(Period::Off);
    assert!(
        !without.is_empty(),
        "each request met a forgotten connection"
    );
    let (ok, with) = against_forgetful(every(100));
    assert_eq!((ok, with), (1 + 1 + 3, vec![]));
}

/// An option, a word of the reason, and the configuration that is refused.
type Case<'a> = (&'a str, &'a str, &'a dyn Fn(&mut Config));

/// In the reason why a congestion control cannot be used: Linux lists those that it has.
const NO_SUCH_CONTROL: &str = if cfg!(target_os = "linux") {
    "only"
} else {
    "needs Linux"
};

#[test]
fn settings_without_effect_are_refused_with_the_reason() {
    let refused = |adjust: &dyn Fn(&mut Config)| {
        let mut config = config("http://127.0.0.1:1/");
        adjust(&mut config);
        Bench::new(config).err().unwrap().to_string()
    };
    let cases: [Case<'_>; 10] = [
        ("--reuse", "keep-alive", &|config| {
            config.axes.keepalive = vec![false];
            config.axes.connection.reuse = vec![limit(2)];
        }),
        ("--reuse", "at most 11 requests", &|config| {
            config.axes.connection.reuse = vec![limit(11)];
        }),
        ("--max-age", "lasts 500ms", &|config| {
            config.length = Length::Time(Duration::from_secs(1));
            config.axes.connection.max_age = vec![every(500)];
        }),
        ("--idle", "schedule", &|config| {
            config.axes.load.rate = vec!["10/s".parse().unwrap()];
            config.axes.connection.idle = vec![Duration::from_secs(1)];
        }),
        ("--idle", "streams", &|config| {
            config.axes.http = vec![Protocol::Http2];
            config.axes.streams = vec![4];
            config.axes.connection.idle = vec![Duration::from_secs(1)];
        }),
        ("--ping", "HTTP/2", &|config| {
            config.axes.connection.ping = vec![every(100)];
        }),
        ("--ping", "--idle 300ms", &|config| {
            config.axes.http = vec![Protocol::Http2];
            config.axes.connection.ping = vec![every(100)];
        }),
        ("--tcp-keepalive", "whole seconds", &|config| {
            config.axes.connection.tcp_keepalive = vec![every(1500)];
            config.axes.connection.idle = vec![Duration::from_secs(3)];
        }),
        ("--congestion", NO_SUCH_CONTROL, &|config| {
            config.axes.connection.congestion = vec!["nonesuch".into()];
        }),
        ("--congestion", "Unix socket", &|config| {
            config.unix_socket = Some("/nowhere".into());
            config.axes.connection.congestion = vec!["reno".into()];
        }),
    ];
    for (option, reason, adjust) in cases {
        let words = refused(adjust);
        assert!(
            words.starts_with(option) && words.contains(reason),
            "{option}, {reason}: {words}"
        );
    }
}

#[test]
fn socket_options_do_not_disturb_requests() {
    let (record, totals) = against(
        "/",
        |_| {},
        |config| {
            config.axes.http = vec![Protocol::Http11];
            // other systems do not let a program choose
            if cfg!(target_os = "linux") {
                config.axes.connection.congestion = vec!["reno".into()];
            }
            config.axes.connection.tcp_keepalive = vec![Period::Off, every(1000)];
            config.axes.connection.idle = vec![Duration::from_millis(1100)];
            config.length = Length::Exchanges(1);
            config.rounds = Some(1);
        },
    );
    assert_same_counts(&record, &totals);
}
