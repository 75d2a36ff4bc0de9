//! TLS: its end, and data larger than its buffers.

use crate::rig::{Driver, TlsStream, read_request, request, tls_server};
use intact_client::State;
use intact_ledger::{CloseKind, ClosePoint, Method, Outcome, Side};
use std::io::{Read, Write};
use std::net::Shutdown;

const HELLO: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/// Sends a response and close_notify, then `rest` as it is, all in one write.
fn respond_and_close(stream: &mut TlsStream, rest: &[u8]) {
    stream.conn.writer().write_all(HELLO).unwrap();
    stream.conn.send_close_notify();
    let mut wire = Vec::new();
    while stream.conn.wants_write() {
        stream.conn.write_tls(&mut wire).unwrap();
    }
    wire.extend_from_slice(rest);
    stream.sock.write_all(&wire).unwrap();
}

#[test]
fn bytes_after_close_notify_are_dropped() {
    let address = tls_server(|mut stream| {
        read_request(&mut stream, 0).unwrap();
        respond_and_close(&mut stream, &[0x17; 40]);
        // more of it in a separate read; the stream stays open until the client closes
        stream.sock.write_all(&[0x17; 40]).unwrap();
        let _ = stream.sock.read(&mut [0]);
    });
    let mut driver = Driver::connect(address);
    let exchange = driver.ask(&request(Method::GET, b""));
    assert_eq!(exchange.outcome, Outcome::Ok);
    driver.drive(|driver| driver.http.ended().is_some());
    let ended = driver.http.ended().unwrap();
    assert_eq!(
        (ended.by, ended.how),
        (Side::Server, CloseKind::CloseNotify)
    );
    assert_eq!(driver.http.state(), State::Over);
    assert!(driver.http.awaits_server());
}

#[test]
fn a_close_notify_and_a_fin_are_one_end_of_an_idle_connection() {
    let address = tls_server(|mut stream| {
        read_request(&mut stream, 0).unwrap();
        respond_and_close(&mut stream, b"");
        stream.sock.shutdown(Shutdown::Write).unwrap();
        let _ = stream.sock.read(&mut [0]);
    });
    let mut driver = Driver::connect(address);
    let exchange = driver.ask(&request(Method::GET, b""));
    driver.drive(|driver| driver.http.ended().is_some() && !driver.http.awaits_server());
    let at = driver.http.ended().unwrap().at;
    let close = driver.http.close(at.after(1)).close;
    assert_eq!(
        (close.by, close.how),
        (Some(Side::Server), Some(CloseKind::CloseNotify))
    );
    assert_eq!((close.at, close.moment), (at, Some(ClosePoint::Idle)));
    assert_eq!(close.exchanges, Some(1));
    // the handshake counts too
    let bytes = exchange.bytes;
    assert!(close.bytes.sent > bytes.request_head + 200, "{close:?}");
    assert!(
        close.bytes.received > bytes.head + bytes.body + 500,
        "{close:?}"
    );
}

#[test]
fn a_request_body_larger_than_the_buffers_of_tls_is_sent() {
    const LARGE: usize = 1 << 20;
    let address = tls_server(|mut stream| {
        read_request(&mut stream, LARGE).unwrap();
        stream.write_all(HELLO).unwrap();
        read_request(&mut stream, 0);
    });
    let mut driver = Driver::connect(address);
    let exchange = driver.ask(&request(Method::POST, &vec![b'x'; LARGE]));
    assert_eq!(exchange.outcome, Outcome::Ok);
    assert_eq!(exchange.bytes.request_body, LARGE as u64);
}
