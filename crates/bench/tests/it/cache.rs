//! Revalidation: what the client counts as 304 is what the server's ledger has.

use crate::http3::{against, assert_same_counts};
use crate::rig::{Record, config};
use intact_bench::{Bench, Config, IoChoice};
use intact_experiment::CacheUse;
use intact_ledger::{Exchange, Protocol, Row};
use intact_serve::CachingConfig;
use std::collections::BTreeMap;

fn exchanges(record: &Record) -> impl Iterator<Item = &Exchange> {
    record.rows.iter().filter_map(|row| match row {
        Row::Exchange(exchange) => Some(&**exchange),
        _ => None,
    })
}

fn statuses(record: &Record) -> BTreeMap<u16, u64> {
    let mut statuses = BTreeMap::new();
    for exchange in exchanges(record) {
        *statuses.entry(exchange.status.unwrap()).or_default() += 1;
    }
    statuses
}

fn caveats(record: &Record) -> Vec<&str> {
    let caveats = record.rows.iter().filter_map(|row| match row {
        Row::Caveat(caveat) => Some(&*caveat.id),
        _ => None,
    });
    caveats.collect()
}

#[test]
fn both_ledgers_count_the_same_revalidations() {
    for http in [Protocol::Http11, Protocol::Http2, Protocol::Http3] {
        for keepalive in [true, false] {
            let (record, totals) = against(
                "/bytes/5000",
                |serve| {
                    serve.caching = CachingConfig {
                        etag: true,
                        max_age_s: Some(60),
                        compress: false,
                    };
                },
                |config| {
                    config.axes.http = vec![http];
                    config.axes.keepalive = vec![keepalive];
                    config.axes.connection.cache = vec![CacheUse::Off, CacheUse::Revalidate];
                    config.axes.concurrency = vec![2];
                    if http == Protocol::Http3 {
                        config.io = IoChoice::Epoll;
                    }
                },
            );
            assert_same_counts(&record, &totals);
            assert_eq!(statuses(&record), totals.requests.status, "{http:?}");
            for exchange in exchanges(&record) {
                // variant 0 asks each time; the preflight of variant 1 fills its cache
                let is_revalidated = exchange.variant == Some(1) && exchange.round != Some(0);
                let expected = match is_revalidated {
                    true => (Some(304), Some(0)),
                    false => (Some(200), Some(5000)),
                };
                let seen = (exchange.status, exchange.body.read);
                assert_eq!(seen, expected, "{http:?} {exchange:?}");
            }
            assert!(caveats(&record).contains(&"cache-fresh"));
        }
    }
}

#[test]
fn a_server_without_a_validator_is_named_and_asked_for_the_whole_response() {
    let (record, totals) = against(
        "/",
        |_| {},
        |config| {
            config.axes.http = vec![Protocol::Http11];
            config.axes.connection.cache = vec![CacheUse::Revalidate];
        },
    );
    assert_same_counts(&record, &totals);
    assert_eq!(statuses(&record).into_keys().collect::<Vec<_>>(), [200]);
    assert!(caveats(&record).contains(&"cache-unused"));
}

#[test]
fn what_no_cache_revalidates_is_refused_with_the_reason() {
    let refused = |adjust: fn(&mut Config)| {
        let mut config = config("http://127.0.0.1:9/");
        config.axes.connection.cache = vec![CacheUse::Off, CacheUse::Revalidate];
        adjust(&mut config);
        Bench::new(config).err().unwrap().to_string()
    };
    let post = refused(|config| config.method = "POST".to_owned());
    assert!(post.contains("GET and HEAD, not POST"), "{post}");
    let given = refused(|config| config.headers = vec!["if-none-match: *".to_owned()]);
    assert!(given.contains("-H if-none-match"), "{given}");
    let expect = refused(|config| config.expect = Some("2xx".parse().unwrap()));
    assert!(expect.contains("--expect 2xx"), "{expect}");
}
