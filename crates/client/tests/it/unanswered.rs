//! Requests without a response: what the server had received when it ended the connection decides
//! their outcome.

use crate::rig::{Driver, TlsStream, read_request, request, tls_server};
use intact_ledger::{ClosePoint, Exchange, Failure, Method, Outcome};
use std::io::Write;
use std::net::Shutdown;
use std::sync::mpsc::{Receiver, Sender, channel};

const HELLO: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/// Signals between the server's script and the client.
struct Signals {
    is_closed: Sender<()>,
    is_asked: Receiver<()>,
}

/// Sends two requests on one connection. The server responds to the first one and continues with
/// `script`. With `waits`, the second one is sent after the server's end. Returns the second
/// exchange and the connection's close point.
fn second_request(
    waits: bool,
    script: impl FnOnce(TlsStream, &Signals) + Send + 'static,
) -> (Exchange, Option<ClosePoint>) {
    let (is_closed, closed) = channel();
    let (asked, is_asked) = channel();
    let signals = Signals {
        is_closed,
        is_asked,
    };
    let address = tls_server(move |mut stream| {
        read_request(&mut stream, 0).unwrap();
        stream.write_all(HELLO).unwrap();
        script(stream, &signals);
        let _ = signals.is_closed.send(());
    });
    let mut driver = Driver::connect(address);
    let first = driver.ask(&request(Method::GET, b""));
    assert_eq!(first.outcome, Outcome::Ok);
    if waits {
        closed.recv().unwrap();
    }
    driver.begin(&request(Method::POST, b"once"));
    // the script may have ended
    let _ = asked.send(());
    let second = driver.answer();
    let end = driver.http.close(second.end).close;
    (second, end.moment)
}

#[test]
fn a_request_that_was_executed_before_the_close_is_closed() {
    let (exchange, moment) = second_request(false, |mut stream, _| {
        read_request(&mut stream, 4).unwrap();
    });
    assert_eq!(exchange.outcome, Outcome::Failed(Failure::Closed));
    assert_eq!(moment, Some(ClosePoint::MidExchange));
    let detail = exchange.detail.unwrap();
    assert!(detail.ends_with("it may have executed it"), "{detail}");
}

#[test]
fn a_request_onto_a_connection_that_was_closed_while_idle_is_stale() {
    let (exchange, moment) = second_request(true, |stream, _| drop(stream));
    assert_eq!(exchange.outcome, Outcome::Failed(Failure::Stale));
    assert_eq!(moment, Some(ClosePoint::Stale));
    assert_eq!(exchange.detail, None);
}

#[test]
fn a_request_after_the_fin_of_a_server_that_lingers_is_stale() {
    let (exchange, moment) = second_request(true, |mut stream, signals| {
        stream.sock.shutdown(Shutdown::Write).unwrap();
        signals.is_closed.send(()).unwrap();
        // its kernel acknowledges what it reads and drops
        let _ = std::io::copy(&mut stream.sock, &mut std::io::sink());
    });
    assert_eq!(exchange.outcome, Outcome::Failed(Failure::Stale));
    assert_eq!(moment, Some(ClosePoint::Stale));
}

#[cfg(target_os = "linux")]
#[test]
fn a_request_that_reached_the_server_before_its_reset_is_reset() {
    let (exchange, moment) = second_request(false, |stream, signals| {
        signals.is_asked.recv().unwrap();
        // close(2) with unread bytes sends a RST
        stream.sock.peek(&mut [0]).unwrap();
        drop(stream);
    });
    assert_eq!(exchange.outcome, Outcome::Failed(Failure::Reset));
    assert_eq!(moment, Some(ClosePoint::MidExchange));
    assert!(exchange.detail.is_some());
}
