//! Both directions of a TLS connection, whole and in pieces: the same facts and errors, and no
//! panic. The first byte chooses the length of the pieces.

#![no_main]

use intact_wire::Side;
use intact_wire::tls::{Error, TlsFacts, Watcher};
use libfuzzer_sys::fuzz_target;

fn watch(client: &[u8], server: &[u8], piece: usize) -> (TlsFacts, [Option<Error>; 2]) {
    let mut watcher = Watcher::default();
    let mut errors = [None; 2];
    for (side, bytes, error) in [(Side::Client, client, 0), (Side::Server, server, 1)] {
        for piece in bytes.chunks(piece) {
            errors[error] = errors[error].or(watcher.read(side, piece, 0, |_, _| {}).err());
        }
    }
    (watcher.facts().clone(), errors)
}

fuzz_target!(|data: (u8, Vec<u8>, Vec<u8>)| {
    let (how, client, server) = data;
    let whole = watch(&client, &server, usize::MAX);
    assert_eq!(watch(&client, &server, usize::from(how) + 1), whole);
});
