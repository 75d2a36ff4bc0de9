//! Which packets open a connection: a handshake that the client acknowledged (RFC 9293), whatever
//! other flags the packets have.

use crate::packets::{ACK, Capture, End, FIN, RAW, RST, SYN, Tcp, plain};
use crate::reading;
use intact_audit::KeyLog;
use intact_ledger::Failure;

/// Number of opened connections, and kinds of failed dials, of packets before a connection with an
/// exchange.
fn dials(packets: &[(End, u8, &[u8])]) -> (usize, Vec<Failure>) {
    let mut tcp = Tcp::joined(40_000);
    for (end, flags, payload) in packets {
        tcp.send(*end, *flags, payload);
    }
    let other = Tcp::opened(40_001).exchange("/a").close();
    let mut capture = Capture::new(RAW);
    tcp.all().iter().for_each(|packet| capture.add(packet));
    capture.pass(5_000_000);
    other.all().iter().for_each(|packet| capture.add(packet));
    let outcome = reading::bytes(&capture.bytes(), KeyLog::default()).unwrap();
    assert_eq!(outcome.exchanges().count(), 1, "{packets:?}");
    let connections = outcome.connections();
    let failed = connections
        .iter()
        .filter_map(|one| Some(one.failed.as_ref()?.kind));
    let opened = connections.iter().filter(|one| one.failed.is_none());
    (opened.count(), failed.collect())
}

use End::{Client, Server};

#[test]
fn a_syn_with_other_flags_opens_nothing_by_itself() {
    let get = b"GET / HTTP/1.1\r\n\r\n";
    for (packets, failed) in [
        // nothing is dialled by a packet that its receiver drops
        (&[(Client, SYN | RST, &b""[..])][..], None),
        (&[(Client, SYN | FIN | RST, b"")], None),
        (&[(Server, SYN | ACK, b""), (Client, RST, b"")], None),
        (&[(Client, SYN | FIN, b"")], Some(Failure::ConnectTimeout)),
        (
            &[(Client, SYN | FIN, b""), (Server, RST | ACK, b"")],
            Some(Failure::Refused),
        ),
        (&[(Client, SYN, get)], Some(Failure::ConnectTimeout)),
        (
            &[(Client, SYN, get), (Server, RST | ACK, b"")],
            Some(Failure::Refused),
        ),
        (
            &[(Client, SYN, b""), (Server, SYN | RST | ACK, b"")],
            Some(Failure::Refused),
        ),
        (
            &[(Client, SYN, b""), (Client, FIN, b"")],
            Some(Failure::ConnectTimeout),
        ),
        (
            &[
                (Client, SYN, b""),
                (Server, SYN | ACK, b""),
                (Client, RST, b""),
            ],
            Some(Failure::ClientClosed),
        ),
        (
            &[
                (Client, SYN, b""),
                (Server, SYN | ACK, b""),
                (Server, RST, b""),
            ],
            Some(Failure::ConnectReset),
        ),
    ] {
        let failed: Vec<Failure> = failed.into_iter().collect();
        assert_eq!(dials(packets), (1, failed), "{packets:?}");
    }
}

#[test]
fn a_handshake_that_the_client_acknowledges_opens_a_connection() {
    for packets in [
        [
            (Client, SYN, &b""[..]),
            (Server, SYN | ACK, b""),
            (Client, ACK, b""),
        ],
        [
            (Client, SYN | FIN, b""),
            (Server, SYN | ACK, b""),
            (Client, ACK, b""),
        ],
        [
            (Client, SYN, b""),
            (Server, SYN | FIN | ACK, b""),
            (Client, ACK, b""),
        ],
    ] {
        assert_eq!(dials(&packets), (2, Vec::new()), "{packets:?}");
    }
    // the capture has the handshake only
    let syn_filter = [(Client, SYN, &b""[..]), (Server, SYN | ACK, b"")];
    assert_eq!(dials(&syn_filter), (2, Vec::new()));
}

#[test]
fn a_syn_that_is_dropped_hides_no_connection() {
    let mut tcp = Tcp::joined(40_000);
    tcp.send(Client, SYN | RST, b"");
    let dropped = tcp.all();
    // the same first number
    let packets = [dropped, Tcp::opened(40_000).exchange("/a").close().all()].concat();
    let capture = Capture::of(RAW, &packets, plain);
    let outcome = reading::bytes(&capture, KeyLog::default()).unwrap();
    assert_eq!(outcome.exchanges().count(), 1);
    assert_eq!(outcome.connections().len(), 1);
}
