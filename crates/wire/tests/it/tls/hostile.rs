//! Bytes that are not TLS, or nearly.

use intact_wire::Side;
use intact_wire::tls::{ClientHello, Error, RecordReader, ServerHello, TlsFacts, Watcher};
use proptest::collection::vec;
use proptest::prelude::*;
use rustls::version;

use super::tape::{Pair, Setup};
use crate::pieces::cut;

fn watch(from: Side, pieces: &[&[u8]]) -> (TlsFacts, Option<Error>) {
    let mut watcher = Watcher::default();
    let mut failed = None;
    for piece in pieces {
        let read = watcher.read(from, piece, 0, |_, _| {});
        assert!(
            failed.is_none() || read.err() == failed,
            "an error is final"
        );
        failed = read.err();
    }
    (watcher.facts().clone(), failed)
}

#[test]
fn plain_text_is_refused_at_its_first_bytes() {
    assert!(matches!(
        RecordReader::default().read(b"GET / HTTP/1.1\r\n"),
        Err(Error::NotTls(_))
    ));
    assert!(matches!(
        RecordReader::default().read(b"\x16G"),
        Err(Error::NotTls(_))
    ));
    assert_eq!(
        RecordReader::default().read(b"\x17\x03\x03\x50\x00"),
        Err(Error::RecordTooLong(0x5000))
    );
}

#[test]
fn an_endless_handshake_message_is_refused_before_it_is_stored() {
    let (_, failed) = watch(Side::Server, &[b"\x16\x03\x03\x00\x04\x0b\xff\xff\xff"]);
    assert!(matches!(
        failed,
        Some(Error::MessageTooLong {
            length: 0xff_ffff,
            ..
        })
    ));
}

#[test]
fn a_hello_cut_anywhere_is_malformed_and_never_panics() {
    let tape = Pair::new(&Setup::new(&version::TLS13)).talk();
    // record header 5, message header 4
    let client = &tape.pieces[0].1[9..];
    assert!(ClientHello::parse(client).is_ok());
    // nothing follows the extensions: found by a comparison with rustls
    assert!(ClientHello::parse(&[client, &[0]].concat()).is_err());
    let base = 2 + 32 + 1 + usize::from(client[34]);
    for len in 0..client.len() {
        let suites_end =
            base + 2 + usize::from(u16::from_be_bytes([client[base], client[base + 1]])) + 2;
        assert_eq!(
            ClientHello::parse(&client[..len]).is_ok(),
            len == suites_end,
            "no extensions at all is fine, at {len}"
        );
    }
    let server = &tape.pieces[1].1[9..][..118];
    for len in 0..server.len() {
        let _ = ServerHello::parse(&server[..len]);
    }
}

/// Streams that are mostly records.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let payload = prop_oneof![
        Just(vec![1]),
        Just(vec![2, 0]),
        Just(vec![14, 0, 0, 0]),
        Just(vec![4, 0, 0, 2, 1]),
        vec(any::<u8>(), 0..30),
    ];
    let record = (20..25u8, payload).prop_map(|(content, payload)| {
        let mut record = vec![content, 3, 3, 0, payload.len() as u8];
        record.extend(payload);
        record
    });
    vec(record, 0..8).prop_map(|records| records.concat())
}

proptest! {
    #[test]
    fn facts_do_not_depend_on_the_split(bytes in stream(), places in vec(any::<usize>(), 0..6)) {
        for from in [Side::Client, Side::Server] {
            let whole = watch(from, &[&bytes]);
            prop_assert_eq!(&watch(from, &cut(&bytes, &places)), &whole);
            prop_assert_eq!(&watch(from, &bytes.chunks(1).collect::<Vec<_>>()), &whole);
        }
    }

    #[test]
    fn arbitrary_hellos_never_panic(bytes in vec(any::<u8>(), 0..200)) {
        let _ = ClientHello::parse(&bytes);
        let _ = ServerHello::parse(&bytes);
    }
}
