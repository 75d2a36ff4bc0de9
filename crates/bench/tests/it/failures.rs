//! A peer that refuses, stalls, resets, lies or sends garbage is an outcome by kind; nothing hangs,
//! the run goes on.

use crate::rig::{HELLO, Record, Script, config, request, run, send, server};
use intact_bench::Length;
use intact_ledger::ExpectedStatus;
use std::time::Duration;

fn against(script: Box<Script>) -> Record {
    let (address, _) = server(script);
    let mut config = config(&format!("http://{address}/"));
    config.length = Length::Exchanges(6);
    config.timeout = Duration::from_millis(200);
    run(config)
}

fn kinds(record: &Record) -> Vec<String> {
    record
        .outcomes()
        .1
        .into_iter()
        .map(|(kind, _)| kind)
        .collect()
}

/// Every answer fails in this way, from the preflight on.
fn always(answer: &'static [u8]) -> Vec<String> {
    kinds(&against(Box::new(move |mut stream, _, counts| {
        if request(&mut stream, counts).is_some() {
            send(&mut stream, answer);
        }
    })))
}

#[test]
fn garbage_is_malformed() {
    assert_eq!(
        always(b"\x16\x03\x01 this is not HTTP at all\r\n\r\n"),
        ["malformed"]
    );
}

#[test]
fn a_response_that_shows_a_tls_port_is_not_plain() {
    let alert = b"\x15\x03\x03\x00\x02\x02\x32";
    assert_eq!(always(alert), ["not-plain"]);
    let nginx = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 53\r\n\r\n<b>The plain HTTP request was sent to HTTPS port</b>\r\n";
    assert_eq!(always(nginx), ["not-plain"]);
    let (address, _) = server(Box::new(move |mut stream, _, counts| {
        if request(&mut stream, counts).is_some() {
            send(&mut stream, nginx);
        }
    }));
    let mut named = config(&format!("http://{address}/"));
    named.expect = Some(ExpectedStatus::Status(400));
    assert_eq!(run(named).outcomes().1, [], "the user named it");
}

#[test]
fn a_bad_chunk_is_malformed() {
    assert_eq!(
        always(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n"),
        ["malformed"]
    );
}

#[test]
fn a_body_cut_short_is_truncated() {
    assert_eq!(
        always(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello"),
        ["truncated"]
    );
}

#[test]
fn a_close_before_the_answer_is_closed() {
    assert_eq!(always(b""), ["closed"]);
}

#[test]
fn endless_heads_and_endless_interim_answers_are_cut_off() {
    for line in [
        "X-Padding: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n",
        "HTTP/1.1 100 Continue\r\n\r\n",
    ] {
        let record = against(Box::new(move |mut stream, _, counts| {
            if request(&mut stream, counts).is_some() {
                if line.starts_with('X') {
                    send(&mut stream, b"HTTP/1.1 200 OK\r\n");
                }
                let block = line.repeat(100);
                // ends when the client has had enough and closes
                while std::io::Write::write_all(&mut stream, block.as_bytes()).is_ok() {}
            }
        }));
        assert_eq!(kinds(&record), ["too-large"]);
    }
}

#[test]
fn a_stall_ends_at_the_timeout() {
    let record = against(Box::new(|mut stream, _, counts| {
        if request(&mut stream, counts).is_some() {
            send(&mut stream, b"HTTP/1.1 200 OK\r\n");
            // holds the connection until the client gives up
            request(&mut stream, counts);
        }
    }));
    assert_eq!(kinds(&record), ["timeout"]);
}

#[test]
fn a_closed_port_is_refused_and_an_unknown_name_is_a_look_up_failure() {
    assert_eq!(kinds(&run(config("http://127.0.0.1:9/"))), ["refused"]);
    assert_eq!(
        kinds(&run(config("http://no-such-host.invalid/"))),
        ["lookup"]
    );
}

#[test]
fn a_request_that_was_executed_before_the_close_is_not_stale_and_the_run_goes_on() {
    let record = against(Box::new(|mut stream, _, counts| {
        if request(&mut stream, counts).is_some() {
            send(&mut stream, HELLO);
            // executes the next request, and closes at once
            request(&mut stream, counts);
        }
    }));
    let (ok, failed) = record.outcomes();
    assert_eq!(
        failed
            .iter()
            .map(|(kind, _)| kind.as_str())
            .collect::<Vec<_>>(),
        ["closed"]
    );
    assert!(ok >= 3, "preflight and warm-ups were answered: {ok}");
}

#[test]
fn what_follows_a_complete_answer_ends_the_connection_not_the_exchange() {
    let record = against(Box::new(|mut stream, _, counts| {
        while request(&mut stream, counts).is_some() {
            send(&mut stream, &[HELLO, HELLO].concat());
        }
    }));
    let (ok, failed) = record.outcomes();
    assert_eq!(failed, []);
    // every exchange needed a connection of its own: preflight, 2 x (1 warm-up + 3 measured)
    assert_eq!((ok, record.opened()), (9, 9));
}

#[test]
fn a_status_that_was_not_expected_is_counted_apart() {
    let (address, _) = server(Box::new(|mut stream, number, counts| {
        while request(&mut stream, counts).is_some() {
            // the preflight is answered well
            if number == 0 {
                send(&mut stream, HELLO);
            } else {
                send(
                    &mut stream,
                    b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n",
                );
            }
        }
    }));
    let mut config = config(&format!("http://{address}/"));
    config.expect = Some(ExpectedStatus::Class(2));
    let (ok, failed) = run(config).outcomes();
    assert_eq!(ok, 1);
    assert_eq!(failed, [("unexpected-status".to_owned(), 22)]);
}

#[test]
fn tls_to_a_plain_port_is_named() {
    let (address, _) = server(Box::new(|mut stream, _, _| {
        send(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n");
    }));
    let mut config = config(&format!("https://{address}/"));
    config.axes.tls = vec![intact_experiment::TlsChoice::Any];
    config.credentials.verify = intact_client::tls::Verify::Insecure;
    assert_eq!(kinds(&run(config)), ["not-tls"]);
}

#[cfg(unix)]
#[test]
fn a_dial_that_fails_at_once_is_not_repeated_at_once() {
    let mut config = config("http://localhost/");
    config.unix_socket = Some("/nonexistent/intact.sock".into());
    config.length = Length::Time(Duration::from_millis(600));
    config.rounds = Some(1);
    let record = run(config);
    // three first requests; nothing is measured after them
    assert_eq!(record.opened(), 0);
    let (ok, failed) = record.outcomes();
    let failures: u64 = failed.iter().map(|(_, count)| count).sum();
    assert_eq!((ok, failures), (0, 3));
    // a socket that goes away during the run: the wait doubles from 2 ms
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("server.sock");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let gone = path.clone();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        std::fs::remove_file(gone).unwrap();
        let mut buffer = [0; 1024];
        let _ = std::io::Read::read(&mut stream, &mut buffer);
        let _ = std::io::Write::write_all(&mut stream, HELLO);
    });
    let mut config = self::config("http://localhost/");
    config.unix_socket = Some(path);
    config.length = Length::Time(Duration::from_millis(600));
    config.rounds = Some(1);
    let (ok, failed) = run(config).outcomes();
    let failures: u64 = failed.iter().map(|(_, count)| count).sum();
    assert_eq!(ok, 1);
    assert!((2..20).contains(&failures), "{failed:?}");
}
