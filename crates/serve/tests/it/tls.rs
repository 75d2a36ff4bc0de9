//! TLS as the client sees it: versions, tickets, resumption, early data.

use crate::rig::{Rig, Secure, answer, get, rest, secure, secure_with};
use intact_ledger::{Handshake, TlsVersion};
use intact_serve::Config;
use rustls::{ClientConfig, HandshakeKind, ProtocolVersion};
use std::io::Write;
use std::sync::Arc;

/// A whole visit, so that its tickets have come; then the connection is closed.
fn visit(rig: &Rig, client: &Arc<ClientConfig>) -> Secure {
    let mut stream = rig.connect_tls(client);
    assert_eq!(get(&mut stream, "/").status(), "200");
    stream.conn.send_close_notify();
    stream.flush().unwrap();
    rest(&mut stream).1.unwrap();
    stream
}

fn handshakes(totals: &intact_serve::Totals) -> Vec<(TlsVersion, Handshake, u64)> {
    let all = totals.connections.handshakes.iter();
    all.map(|one| (one.tls.unwrap(), one.kind.unwrap(), one.count))
        .collect()
}

#[test]
fn a_second_visit_is_resumed_and_counted_so() {
    let (rig, client) = secure(Config::default(), b"http/1.1");
    assert_eq!(
        visit(&rig, &client).conn.handshake_kind(),
        Some(HandshakeKind::Full)
    );
    assert_eq!(
        visit(&rig, &client).conn.handshake_kind(),
        Some(HandshakeKind::Resumed)
    );
    assert_eq!(
        handshakes(&rig.end()),
        [
            (TlsVersion::Tls13, Handshake::Full, 1),
            (TlsVersion::Tls13, Handshake::Resumed, 1)
        ]
    );
}

#[test]
fn as_many_tickets_are_sent_as_configured_and_none_means_no_resumption() {
    for tickets in [0, 1, 4] {
        let (rig, client) = secure_with(Config::default(), b"http/1.1", |tls| {
            tls.tickets = tickets;
        });
        let first = visit(&rig, &client);
        assert_eq!(first.conn.tls13_tickets_received() as usize, tickets);
        let second = visit(&rig, &client);
        let resumed = second.conn.handshake_kind() == Some(HandshakeKind::Resumed);
        assert_eq!(resumed, tickets > 0);
    }
}

#[test]
fn only_the_configured_versions_are_spoken() {
    let (rig, client) = secure_with(Config::default(), b"http/1.1", |tls| {
        tls.versions = vec![TlsVersion::Tls12];
    });
    let stream = visit(&rig, &client);
    assert_eq!(
        stream.conn.protocol_version(),
        Some(ProtocolVersion::TLSv1_2)
    );
    visit(&rig, &client);
    assert_eq!(
        handshakes(&rig.end()),
        [
            (TlsVersion::Tls12, Handshake::Full, 1),
            (TlsVersion::Tls12, Handshake::Resumed, 1)
        ]
    );
}

#[test]
fn early_data_is_answered_and_counted_so() {
    let (rig, client) = secure_with(Config::default(), b"http/1.1", |tls| {
        tls.early_data = 16 * 1024;
    });
    visit(&rig, &client);
    let mut stream = rig.connect_tls(&client);
    let request = b"GET /bytes/7 HTTP/1.1\r\nHost: a\r\n\r\n";
    stream
        .conn
        .early_data()
        .expect("the ticket allows early data")
        .write_all(request)
        .unwrap();
    assert_eq!(answer(&mut stream).body.len(), 7);
    assert!(stream.conn.is_early_data_accepted());
    // the connection goes on behind it
    assert_eq!(get(&mut stream, "/").body.len(), 100);
    let totals = rig.end();
    assert_eq!(
        handshakes(&totals),
        [
            (TlsVersion::Tls13, Handshake::Full, 1),
            (TlsVersion::Tls13, Handshake::EarlyData, 1)
        ]
    );
    assert_eq!(totals.requests.ok, 3);
}

#[test]
fn a_client_that_speaks_no_tls_is_a_failed_handshake() {
    let (rig, client) = secure(Config::default(), b"http/1.1");
    let mut stream = rig.connect_tls(&client);
    stream
        .sock
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    // an alert, then the end
    let (bytes, _) = rest(&mut stream.sock);
    assert_eq!(bytes[0], 0x15);
    let totals = rig.end();
    assert_eq!(totals.connections.failed[&intact_ledger::Failure::Tls], 1);
    assert_eq!((totals.connections.open, totals.requests.total), (0, 0));
}
