//! What the rows say of the end of a connection.

use crate::peers::program;
use crate::program::{Server, intact};
use intact_ledger::store::Reader;
use intact_ledger::{Close, CloseKind, Row, Side};

/// Reads the begin of a response, and resets the connection while the rest is on its way.
const RESETS: &str = "
import socket, struct, sys
s = socket.create_connection(('127.0.0.1', int(sys.argv[1])))
s.sendall(b'GET / HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n')
s.recv(1000)
s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
s.close()
";

fn closes(client: &str, body: &str) -> Option<Vec<Close>> {
    program("python3", "watch the end of connections")?;
    let server = Server::start(&["--body", body]);
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("ledger");
    let port = server.plain_port();
    let words = ["watch", "--quiet", "--ledger", ledger.to_str().unwrap()];
    let out = intact(&[&words[..], &["--", "python3", "-c", client, &*port]].concat());
    assert!(out.status.success(), "{out:?}");
    let rows = Reader::open(&ledger).unwrap().events().unwrap();
    let closes = rows.filter_map(|row| match row {
        Row::Closed(closed) => Some(closed.close),
        _ => None,
    });
    Some(closes.collect())
}

#[test]
fn a_reset_that_a_write_of_the_relay_meets_first_is_a_reset_of_the_program() {
    let Some(closes) = closes(RESETS, "20000000") else {
        return;
    };
    let ends: Vec<_> = closes.iter().map(|close| (close.by, close.how)).collect();
    assert_eq!(ends, [(Some(Side::Client), Some(CloseKind::Rst))]);
}
