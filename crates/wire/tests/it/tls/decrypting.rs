//! Decryption, compared with what the ends of a rustls connection sent.

use intact_wire::Side;
use intact_wire::tls::Mode;
use intact_wire::tls::decrypt::{Decryptor, Inner, KeyLog, SecretCheck, Status};
use proptest::prelude::*;
use rustls::crypto::aws_lc_rs::cipher_suite::*;
use rustls::crypto::aws_lc_rs::kx_group;
use rustls::version;

use super::tape::{Pair, Setup, Tape};

const MAX_WAITING: usize = 1 << 20;

/// The decrypted data of one connection.
struct Heard {
    client: Vec<u8>,
    server: Vec<u8>,
    /// The times of the data, in the order in which it was passed on.
    times: Vec<(Side, u64)>,
    inner: Inner,
    status: Status,
}

/// Passes the tape in chunks of this size; piece n has the time n. The key log arrives after `late`
/// pieces.
fn listen(tape: &Tape, keys: &KeyLog, chunk: usize, late: usize) -> Heard {
    let mut decryptor = Decryptor::new(MAX_WAITING);
    let (mut client, mut server, mut times) = (Vec::new(), Vec::new(), Vec::new());
    let none = KeyLog::default();
    for (n, (side, bytes)) in tape.pieces.iter().enumerate() {
        for chunk in bytes.chunks(chunk) {
            let keys = if n < late { &none } else { keys };
            decryptor
                .read(keys, *side, chunk, n as u64, |plain| {
                    match plain.from {
                        Side::Client => client.extend_from_slice(plain.bytes),
                        Side::Server => server.extend_from_slice(plain.bytes),
                    }
                    times.push((plain.from, plain.at));
                })
                .unwrap();
        }
    }
    decryptor.retry(keys, |plain| {
        match plain.from {
            Side::Client => client.extend_from_slice(plain.bytes),
            Side::Server => server.extend_from_slice(plain.bytes),
        }
        times.push((plain.from, plain.at));
    });
    Heard {
        client,
        server,
        times,
        inner: decryptor.inner().clone(),
        status: decryptor.status(),
    }
}

fn keys(pair: &Pair) -> KeyLog {
    let mut keys = KeyLog::default();
    assert_eq!(keys.add_text(&pair.keys.0.lock().unwrap()), 0);
    keys
}

fn check(tape: &Tape, keys: &KeyLog) -> Heard {
    for (chunk, late) in [(1, 0), (100, 2), (usize::MAX, usize::MAX)] {
        let heard = listen(tape, keys, chunk, late);
        assert!(
            heard.client == tape.client_said,
            "client, in chunks of {chunk}, keys after {late}"
        );
        assert!(
            heard.server == tape.server_said,
            "server, in chunks of {chunk}, keys after {late}"
        );
    }
    let heard = listen(tape, keys, usize::MAX, 0);
    assert_eq!(heard.status, Status::Reading);
    assert_eq!(heard.inner.undecryptable, 0);
    assert!(heard.inner.client_close_notify_at.is_some());
    heard
}

/// A pair for each suite of TLS 1.3.
fn pairs_of_tls_1_3() -> [Pair; 3] {
    [
        TLS13_AES_128_GCM_SHA256,
        TLS13_AES_256_GCM_SHA384,
        TLS13_CHACHA20_POLY1305_SHA256,
    ]
    .map(|suite| {
        Pair::new(&Setup {
            suite: Some(suite),
            ..Setup::new(&version::TLS13)
        })
    })
}

#[test]
fn every_suite_of_tls_1_3_reads_as_it_was_said_across_key_updates() {
    for pair in pairs_of_tls_1_3() {
        let heard = check(&pair.talk(), &keys(&pair));
        assert_eq!(heard.inner.alpn.as_deref(), Some(b"http/1.1".as_slice()));
        assert!(heard.inner.tickets > 0);
        assert_eq!(heard.inner.finished_at, Some(2));
    }
}

#[test]
fn a_record_is_sealed_that_fits_behind_those_of_the_server() {
    for pair in pairs_of_tls_1_3() {
        let (tape, keys) = (pair.talk(), keys(&pair));
        let mut decryptor = Decryptor::new(MAX_WAITING);
        assert_eq!(decryptor.seal_by_server(b"more"), None);
        for (side, bytes) in &tape.pieces {
            decryptor.read(&keys, *side, bytes, 0, |_| {}).unwrap();
        }
        let record = decryptor.seal_by_server(b"more").unwrap();
        let mut read = |bytes: &[u8]| {
            let mut said = Vec::new();
            let take = |plain: intact_wire::tls::decrypt::Plain<'_>| {
                assert_eq!(plain.from, Side::Server);
                said.extend_from_slice(plain.bytes);
            };
            decryptor.read(&keys, Side::Server, bytes, 1, take).unwrap();
            (said, decryptor.seal_by_server(b"x").is_some())
        };
        // only between two records, and only once
        let (begin, rest) = record.split_at(9);
        assert_eq!(read(begin), (Vec::new(), false));
        assert_eq!(read(rest), (b"more".to_vec(), true));
        assert_eq!(read(&record).0, b"");
    }
}

#[test]
fn aead_suites_of_tls_1_2_are_decrypted() {
    let suites = [
        TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
        TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    ];
    for suite in suites {
        let pair = Pair::new(&Setup {
            suite: Some(suite),
            ..Setup::new(&version::TLS12)
        });
        let heard = check(&pair.talk(), &keys(&pair));
        assert!(heard.inner.finished_at.is_some());
    }
}

#[test]
fn resumed_and_retried_connections_are_decrypted() {
    for version in [&version::TLS12, &version::TLS13] {
        let pair = Pair::new(&Setup::new(version));
        pair.talk();
        let again = pair.talk();
        check(&again, &keys(&pair));
        let mut decryptor = Decryptor::new(MAX_WAITING);
        for (side, bytes) in &again.pieces {
            decryptor
                .read(&keys(&pair), *side, bytes, 0, |_| {})
                .unwrap();
        }
        assert_eq!(decryptor.facts().mode, Some(Mode::Resumed));
    }
    let pair = Pair::new(&Setup {
        server_groups: Some(vec![kx_group::SECP384R1]),
        ..Setup::new(&version::TLS13)
    });
    check(&pair.talk(), &keys(&pair));
}

#[test]
fn early_data_comes_first() {
    let pair = Pair::new(&Setup {
        early_data: true,
        ..Setup::new(&version::TLS13)
    });
    pair.talk();
    let tape = pair.talk();
    assert!(tape.client_said.starts_with(b"early"));
    let heard = check(&tape, &keys(&pair));
    assert_eq!(
        heard.times[0],
        (Side::Client, 0),
        "sent before the server said a word"
    );
    assert!(heard.inner.finished_at.is_some());
    assert_eq!(heard.inner.undecryptable, 0);
}

/// What a search in memory finds while the handshake ends: the early secret is gone already.
#[test]
fn early_data_without_their_key_are_counted_and_hide_nothing_else() {
    let pair = Pair::new(&Setup {
        early_data: true,
        ..Setup::new(&version::TLS13)
    });
    pair.talk();
    let tape = pair.talk();
    let logged = pair.keys.0.lock().unwrap().clone();
    let others = logged.lines().filter(|line| !line.contains("EARLY"));
    let mut keys = KeyLog::default();
    let others: Vec<&str> = others.collect();
    assert_eq!(keys.add_text(&others.join("\n")), 0);
    let heard = listen(&tape, &keys, usize::MAX, 0);
    assert_eq!(heard.client, &tape.client_said[5..]);
    assert_eq!(heard.server, tape.server_said);
    assert!(heard.inner.undecryptable > 0);
}

#[test]
fn plain_text_keeps_its_times_when_keys_arrive_late() {
    let pair = Pair::new(&Setup::new(&version::TLS13));
    let tape = pair.talk();
    let mut early = listen(&tape, &keys(&pair), usize::MAX, 0).times;
    let mut late = listen(&tape, &keys(&pair), usize::MAX, usize::MAX).times;
    early.sort_by_key(|&(side, at)| (side == Side::Server, at));
    late.sort_by_key(|&(side, at)| (side == Side::Server, at));
    assert_eq!(early, late);
}

#[test]
fn without_its_keys_a_connection_waits_and_then_gives_up() {
    let tape = Pair::new(&Setup::new(&version::TLS13)).talk();
    let other = Pair::new(&Setup::new(&version::TLS13));
    other.talk();
    let heard = listen(&tape, &keys(&other), usize::MAX, 0);
    assert_eq!((heard.status, heard.times.len()), (Status::Waiting, 0));

    let mut decryptor = Decryptor::new(10_000);
    for (side, bytes) in &tape.pieces {
        decryptor
            .read(&KeyLog::default(), *side, bytes, 0, |_| panic!("no keys"))
            .unwrap();
    }
    assert_eq!(decryptor.status(), Status::GaveUp);
}

#[test]
fn a_damaged_record_is_counted_and_nothing_after_it_is_invented() {
    let pair = Pair::new(&Setup::new(&version::TLS12));
    let mut tape = pair.talk();
    let answer = tape
        .pieces
        .iter_mut()
        .find(|(side, bytes)| *side == Side::Server && bytes.len() > 40_000)
        .unwrap();
    answer.1[100] ^= 1;
    let heard = listen(&tape, &keys(&pair), usize::MAX, 0);
    assert!(heard.inner.undecryptable > 0);
    assert_eq!(
        (heard.server.len(), heard.client.as_slice()),
        (0, tape.client_said.as_slice())
    );
}

#[test]
fn a_secret_is_recognised_by_what_it_decrypts_and_suffices_to_read_all() {
    let suites = [
        (TLS13_AES_128_GCM_SHA256, &version::TLS13, 2),
        (TLS13_AES_256_GCM_SHA384, &version::TLS13, 2),
        (TLS13_CHACHA20_POLY1305_SHA256, &version::TLS13, 2),
        (TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, &version::TLS12, 1),
    ];
    for (suite, version, secrets_needed) in suites {
        let pair = Pair::new(&Setup {
            suite: Some(suite),
            ..Setup::new(version)
        });
        let tape = pair.talk();
        let mut decryptor = Decryptor::new(MAX_WAITING);
        for (n, (side, bytes)) in tape.pieces.iter().enumerate() {
            decryptor
                .read(&KeyLog::default(), *side, bytes, n as u64, |_| {})
                .unwrap();
        }
        let mut locks = decryptor.locks();
        assert_eq!(locks.len(), secrets_needed);
        assert_eq!(SecretCheck::find(&locks, &[7; 64]), None);
        assert_eq!(SecretCheck::find(&locks, &[]), None);
        let logged = pair.keys.0.lock().unwrap().clone();
        let mut found = KeyLog::default();
        for line in logged.lines() {
            let mut bytes = unhex(line.rsplit(' ').next().unwrap());
            bytes.extend_from_slice(b"what stands behind it");
            if let Some(place) = SecretCheck::find(&locks, &bytes) {
                assert_eq!(locks.remove(place).key_log_line(&bytes), line);
                found.add_line(line).unwrap();
            }
        }
        assert!(locks.is_empty());
        let (mut client, mut server) = (Vec::new(), Vec::new());
        decryptor.retry(&found, |plain| match plain.from {
            Side::Client => client.extend_from_slice(plain.bytes),
            Side::Server => server.extend_from_slice(plain.bytes),
        });
        assert!(client == tape.client_said && server == tape.server_said);
    }
}

#[test]
fn there_is_no_check_before_both_sides_have_sent_data() {
    let tape = Pair::new(&Setup::new(&version::TLS13)).talk();
    let mut decryptor = Decryptor::new(MAX_WAITING);
    let mut counts = Vec::new();
    for (n, (side, bytes)) in tape.pieces.iter().enumerate() {
        decryptor
            .read(&KeyLog::default(), *side, bytes, n as u64, |_| {})
            .unwrap();
        counts.push(decryptor.locks().len());
    }
    let first = counts.iter().position(|count| *count > 0).unwrap();
    assert!(first > 1 && counts[first..].iter().all(|count| *count == 2));
}

fn unhex(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn no_damage_makes_it_panic(piece in 0..8usize, at in 0..500usize, bit in 0..8u8, tls12 in any::<bool>()) {
        let pair = Pair::new(&Setup::new(if tls12 { &version::TLS12 } else { &version::TLS13 }));
        let mut tape = pair.talk();
        let pieces = tape.pieces.len();
        let bytes = &mut tape.pieces[piece % pieces].1;
        if !bytes.is_empty() {
            let len = bytes.len();
            bytes[at % len] ^= 1 << bit;
        }
        let keys = keys(&pair);
        let mut decryptor = Decryptor::new(MAX_WAITING);
        let (mut client, mut server) = (Vec::new(), Vec::new());
        for (side, bytes) in &tape.pieces {
            let _ = decryptor.read(&keys, *side, bytes, 0, |plain| match plain.from {
                Side::Client => client.extend_from_slice(plain.bytes),
                Side::Server => server.extend_from_slice(plain.bytes),
            });
        }
        prop_assert!(tape.client_said.starts_with(&client));
        prop_assert!(tape.server_said.starts_with(&server));
    }
}

/// A connection that OpenSSL recorded: `cbc/record.py` makes these files.
fn recorded(text: &str) -> (Tape, KeyLog) {
    let unhex = |hex: &str| -> Vec<u8> {
        (0..hex.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
            .collect()
    };
    let (mut tape, mut keys) = (Tape::default(), KeyLog::default());
    for line in text.lines() {
        match line.rsplit_once(' ').unwrap() {
            ("C", hex) => tape.pieces.push((Side::Client, unhex(hex))),
            ("S", hex) => tape.pieces.push((Side::Server, unhex(hex))),
            ("client said", hex) => tape.client_said = unhex(hex),
            ("server said", hex) => tape.server_said = unhex(hex),
            _ => keys.add_line(line).unwrap(),
        }
    }
    (tape, keys)
}

#[test]
fn cbc_suites_are_decrypted_with_the_mac_inside_and_outside() {
    let files = [
        (include_str!("cbc/aes128-sha-mac-first.txt"), 0x002f, false),
        (
            include_str!("cbc/aes128-sha-encrypt-first.txt"),
            0x002f,
            true,
        ),
        (
            include_str!("cbc/aes256-sha256-encrypt-first.txt"),
            0x003d,
            true,
        ),
        (
            include_str!("cbc/ecdhe-aes256-sha384-mac-first.txt"),
            0xc028,
            false,
        ),
    ];
    for (file, suite, encrypt_then_mac) in files {
        let (tape, keys) = recorded(file);
        assert!(!tape.client_said.is_empty() && !tape.server_said.is_empty());
        let heard = listen(&tape, &keys, usize::MAX, 0);
        assert_eq!(
            (&heard.client, &heard.server),
            (&tape.client_said, &tape.server_said),
            "{suite:04x}"
        );
        let mut decryptor = Decryptor::new(MAX_WAITING);
        for (side, bytes) in &tape.pieces {
            decryptor.read(&keys, *side, bytes, 0, |_| {}).unwrap();
        }
        let hello = decryptor.facts().server_hello.clone().unwrap();
        assert_eq!(
            (hello.cipher_suite, hello.encrypt_then_mac),
            (suite, encrypt_then_mac)
        );
    }
}
