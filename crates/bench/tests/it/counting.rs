//! Connections and exchanges are counted as the server counts them.

use crate::rig::{HELLO, Record, config, request, run, send, server};
use intact_bench::Length;
use intact_ledger::{EndedBy, Protocol, Reuse, Row};
use std::sync::atomic::Ordering;

fn keeps_alive() -> (std::net::SocketAddr, std::sync::Arc<crate::rig::Counts>) {
    server(Box::new(|mut stream, _, counts| {
        while let Some(head) = request(&mut stream, counts) {
            send(&mut stream, HELLO);
            if head.contains("Connection: close") {
                return;
            }
        }
    }))
}

fn assert_agrees(record: &Record, counts: &crate::rig::Counts) {
    let (ok, failed) = record.outcomes();
    assert_eq!(failed, []);
    assert_eq!(ok, counts.requests.load(Ordering::SeqCst));
    assert_eq!(record.opened(), counts.connections.load(Ordering::SeqCst));
}

#[test]
fn kept_connections_carry_a_round_each_and_their_first_exchange_is_warmup() {
    let (address, counts) = keeps_alive();
    let record = run(config(&format!("http://{address}/")));
    assert_agrees(&record, &counts);
    // preflight, then 10 measured and 1 warm-up in each of 2 rounds
    assert_eq!(counts.requests.load(Ordering::SeqCst), 1 + 2 * 11);
    assert_eq!(record.opened(), 3);
    assert_eq!(record.ended_by(EndedBy::Client), 3);
    for row in &record.rows {
        if let Row::Exchange(exchange) = row {
            assert_eq!(exchange.warmup, exchange.reuse == Some(Reuse::Fresh));
            assert_eq!(
                exchange.spans.setup_nanos() > 0,
                exchange.reuse == Some(Reuse::Fresh)
            );
        }
    }
}

#[test]
fn nothing_is_measured_before_the_last_warm_up_request_of_a_round_is_over() {
    for threads in [1, 3] {
        // one request at a time, so that warm-up and measured requests would share the server
        let one_by_one = std::sync::Mutex::new(());
        let (address, counts) = server(Box::new(move |mut stream, _, counts| {
            while request(&mut stream, counts).is_some() {
                let _turn = one_by_one.lock();
                std::thread::sleep(std::time::Duration::from_millis(1));
                send(&mut stream, HELLO);
            }
        }));
        let mut config = config(&format!("http://{address}/"));
        config.axes.concurrency = vec![12];
        config.threads = threads;
        config.length = Length::Exchanges(48);
        let record = run(config);
        assert_agrees(&record, &counts);
        for round in 1..=2 {
            let of_round = record.rows.iter().filter_map(|row| match row {
                Row::Exchange(one) if one.round == Some(round) => Some(one),
                _ => None,
            });
            let (warmup, measured): (Vec<_>, Vec<_>) = of_round.partition(|one| one.warmup);
            assert_eq!((warmup.len(), measured.len()), (12, 24));
            let warm = warmup.iter().map(|one| one.end).max();
            let first = measured.iter().map(|one| one.at).min();
            assert!(warm <= first, "{threads} threads: {warm:?} {first:?}");
            let cells = record.tally.cells.iter();
            let bounds = cells.filter(|cell| cell.round == Some(round));
            let bounds = bounds.filter_map(|cell| cell.bounds.as_ref()).next();
            assert!(bounds.map(|bounds| bounds.span.start) >= warm);
        }
    }
}

#[test]
fn a_failed_warm_up_request_ends_the_warm_up_of_its_connection() {
    // every second connection is closed without a response
    let (address, counts) = server(Box::new(|mut stream, number, counts| {
        while request(&mut stream, counts).is_some() && number.is_multiple_of(2) {
            send(&mut stream, HELLO);
        }
    }));
    let mut config = config(&format!("http://{address}/"));
    config.axes.concurrency = vec![4];
    config.length = Length::Exchanges(40);
    let record = run(config);
    let (ok, failed) = record.outcomes();
    let failures: u64 = failed.iter().map(|(_, count)| count).sum();
    assert!(failures >= 4, "{failed:?}");
    assert_eq!(ok + failures, counts.requests.load(Ordering::SeqCst));
    let cells = record.tally.cells.iter().flat_map(|cell| &cell.groups);
    let warmup = cells.filter(|group| group.key.warmup);
    // the preflight, and one request for each connection of each round
    assert_eq!(warmup.map(|group| group.count()).sum::<u64>(), 1 + 2 * 4);
}

#[test]
fn without_keep_alive_every_exchange_has_its_own_connection_and_the_server_closes_it() {
    let (address, counts) = keeps_alive();
    let mut config = config(&format!("http://{address}/"));
    config.axes.keepalive = vec![false];
    let record = run(config);
    assert_agrees(&record, &counts);
    assert_eq!(record.opened(), 21);
    assert_eq!(record.ended_by(EndedBy::Server), 21);
}

#[test]
fn http_1_0_is_kept_only_when_both_say_so() {
    for (answer, connections) in [
        (
            &b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nhi"[..],
            3,
        ),
        (&b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi"[..], 23),
    ] {
        let (address, counts) = server(Box::new(move |mut stream, _, counts| {
            while let Some(head) = request(&mut stream, counts) {
                assert!(head.contains("HTTP/1.0") && head.contains("Connection: keep-alive"));
                send(&mut stream, answer);
                if !answer.windows(10).any(|part| part == b"keep-alive") {
                    return;
                }
            }
        }));
        let mut config = config(&format!("http://{address}/"));
        config.axes.http = vec![Protocol::Http10];
        let record = run(config);
        assert_agrees(&record, &counts);
        assert_eq!(record.opened(), connections);
    }
}

#[test]
fn all_framings_are_read_to_their_end() {
    let answers: &[&[u8]] = &[
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: y\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\n\r\n",
        b"HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\nuntil the end",
    ];
    for (nth, answer) in answers.iter().enumerate() {
        let closes = nth == answers.len() - 1;
        let (address, counts) = server(Box::new(move |mut stream, _, counts| {
            while request(&mut stream, counts).is_some() {
                // byte by byte, so that no read holds a whole answer
                for byte in *answer {
                    send(&mut stream, &[*byte]);
                }
                if closes {
                    return;
                }
            }
        }));
        let record = run(config(&format!("http://{address}/")));
        assert_agrees(&record, &counts);
        assert_eq!(record.opened() == 3, !closes, "answer {nth}");
    }
}

#[test]
fn a_server_that_closes_after_k_requests_is_counted_and_its_cost_measured() {
    let (address, counts) = server(Box::new(|mut stream, _, counts| {
        for left in (0..4).rev() {
            if request(&mut stream, counts).is_none() {
                return;
            }
            let close = if left == 0 {
                "Connection: close\r\n"
            } else {
                ""
            };
            let answer = format!("HTTP/1.1 200 OK\r\n{close}Content-Length: 2\r\n\r\nhi");
            send(&mut stream, answer.as_bytes());
        }
    }));
    let mut config = config(&format!("http://{address}/"));
    config.length = Length::Exchanges(40);
    let record = run(config);
    assert_agrees(&record, &counts);
    // 21 in each round, 4 on a connection; the last of each round is closed by us
    assert_eq!(record.ended_by(EndedBy::ServerAnnounced), 2 * 5);
    let cell = record
        .tally
        .cells
        .iter()
        .find(|cell| cell.round == Some(1))
        .unwrap();
    let fresh = cell
        .merged(|key| key.reuse == Some(Reuse::Fresh) && !key.warmup)
        .unwrap();
    assert_eq!(fresh.count(), 5);
}

#[test]
fn many_connections_on_several_threads_agree_with_the_server() {
    let (address, counts) = keeps_alive();
    let mut config = config(&format!("http://{address}/"));
    config.axes.keepalive = vec![true, false];
    config.axes.concurrency = vec![1, 7];
    config.threads = 3;
    config.length = Length::Exchanges(100);
    let record = run(config);
    assert_agrees(&record, &counts);
    let rows = record
        .rows
        .iter()
        .filter(|row| matches!(row, Row::Exchange(_)))
        .count() as u64;
    assert_eq!(rows, counts.requests.load(Ordering::SeqCst));
}

#[test]
fn the_spans_of_an_exchange_are_disjoint_and_add_up_to_its_latency() {
    let (address, _) = keeps_alive();
    let mut config = config(&format!("http://{address}/"));
    config.axes.keepalive = vec![true, false];
    let record = run(config);
    for row in &record.rows {
        let Row::Exchange(exchange) = row else {
            continue;
        };
        let spans: Vec<_> = intact_ledger::Phase::ALL
            .iter()
            .filter_map(|&phase| exchange.spans.of(phase))
            .collect();
        for pair in spans.windows(2) {
            assert!(!pair[0].overlaps(pair[1]), "{exchange:?}");
        }
        let sum: u64 = spans.iter().map(|span| span.nanos()).sum();
        assert_eq!(sum, exchange.latency(), "{exchange:?}");
    }
}
