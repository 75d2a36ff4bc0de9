//! Real handshakes, observed without keys.

use intact_wire::tls::{Mode, TLS12, TLS13, TlsFacts, Watcher};
use rustls::crypto::aws_lc_rs::kx_group;
use rustls::version;

use super::tape::{Pair, Setup, Tape};

/// The facts if every piece arrives in chunks of this size; piece n has the time n.
fn watch(tape: &Tape, chunk: usize) -> TlsFacts {
    let mut watcher = Watcher::default();
    for (at, (side, bytes)) in tape.pieces.iter().enumerate() {
        for chunk in bytes.chunks(chunk) {
            watcher.read(*side, chunk, at as u64, |_, _| {}).unwrap();
        }
    }
    watcher.facts().clone()
}

fn facts(tape: &Tape) -> TlsFacts {
    let whole = watch(tape, usize::MAX);
    for chunk in [1, 7, 1000] {
        assert_eq!(watch(tape, chunk), whole, "in chunks of {chunk}");
    }
    whole
}

#[test]
fn hellos_show_what_was_offered_and_chosen() {
    let facts = facts(&Pair::new(&Setup::new(&version::TLS13)).talk());
    let client = facts.client_hello.as_ref().unwrap();
    assert_eq!(client.server_name.as_deref(), Some("test.example"));
    assert_eq!(client.alpn, [b"h2".to_vec(), b"http/1.1".to_vec()]);
    assert_eq!(
        (
            client.highest_version(),
            client.supported_versions.as_slice()
        ),
        (TLS13, [TLS13].as_slice())
    );
    assert!(client.cipher_suites.contains(&0x1301));
    assert_eq!((client.psk_identities, client.early_data), (0, false));
    assert_eq!(
        (facts.version(), facts.mode),
        (Some(TLS13), Some(Mode::Full))
    );
    assert_eq!(facts.started_at, Some(0));
}

#[test]
fn a_full_tls_1_2_handshake_ends_with_the_servers_finished() {
    let facts = facts(&Pair::new(&Setup::new(&version::TLS12)).talk());
    assert_eq!(
        (facts.version(), facts.mode),
        (Some(TLS12), Some(Mode::Full))
    );
    assert_eq!(facts.finished_at, Some(3));
    assert_eq!(facts.server_hello.unwrap().alpn, Some(b"http/1.1".to_vec()));
    assert_eq!(
        (facts.encrypted_alerts, facts.alerts.len()),
        (1, 0),
        "close_notify"
    );
    assert_eq!(
        (facts.client_data.records, facts.server_data.records),
        (2, 6)
    );
}

#[test]
fn a_resumed_tls_1_2_handshake_ends_with_the_clients_finished() {
    let pair = Pair::new(&Setup::new(&version::TLS12));
    pair.talk();
    let facts = facts(&pair.talk());
    assert_eq!(
        (facts.mode, facts.finished_at),
        (Some(Mode::Resumed), Some(2))
    );
}

#[test]
fn the_end_of_a_tls_1_3_handshake_is_inferred() {
    let facts = facts(&Pair::new(&Setup::new(&version::TLS13)).talk());
    assert_eq!(facts.finished_at, Some(2));
    assert!(facts.server_data.bytes > 80_000 && facts.client_data.bytes > 14);
}

#[test]
fn a_tls_1_3_resumption_shows_in_the_hellos() {
    let pair = Pair::new(&Setup::new(&version::TLS13));
    pair.talk();
    let facts = facts(&pair.talk());
    assert_eq!(
        (facts.mode, facts.client_hello.unwrap().psk_identities),
        (Some(Mode::Resumed), 1)
    );
}

#[test]
fn the_end_of_a_handshake_with_early_data_is_inferred_too() {
    let pair = Pair::new(&Setup {
        early_data: true,
        ..Setup::new(&version::TLS13)
    });
    pair.talk();
    let facts = facts(&pair.talk());
    assert!(facts.client_hello.unwrap().early_data);
    let end = (facts.mode, facts.finished_at);
    assert_eq!(end, (Some(Mode::Resumed), Some(2)));
}

#[test]
fn a_retry_differs_from_an_answer() {
    let setup = Setup {
        server_groups: Some(vec![kx_group::SECP384R1]),
        ..Setup::new(&version::TLS13)
    };
    let facts = facts(&Pair::new(&setup).talk());
    let answer = facts.server_hello.unwrap();
    assert!(!answer.retry);
    assert_eq!(facts.finished_at, Some(4));
}

#[test]
fn the_client_random_identifies_the_connection_in_key_logs() {
    let pair = Pair::new(&Setup::new(&version::TLS12));
    let facts = facts(&pair.talk());
    let random: String = facts
        .client_hello
        .unwrap()
        .random
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert!(
        pair.keys
            .0
            .lock()
            .unwrap()
            .starts_with(&format!("CLIENT_RANDOM {random} "))
    );
}
