//! TLS versions and cipher suites of OpenSSL: which are decrypted, and how the page names the
//! others.

use crate::packets::cut_file;
use crate::reading::{self, Outcome};
use intact_audit::KeyLog;
use intact_ledger::TlsVersion::{self, Tls10, Tls11, Tls12, Tls13};
use std::net::SocketAddr;

const FILE: &str = "captures/tls-suites.pcapng";

/// The server's port, the version, the suite, and the number of requests that tshark counts. tshark
/// decrypts Camellia, too.
const SUITES: [(u16, TlsVersion, &str, usize); 17] = [
    (19100, Tls12, "TLS_RSA_WITH_AES_128_CCM", 2),
    (19101, Tls12, "TLS_RSA_WITH_AES_256_CCM_8", 2),
    (19102, Tls12, "TLS_ECDHE_ECDSA_WITH_AES_128_CCM_8", 2),
    (19103, Tls12, "TLS_ECDHE_ECDSA_WITH_AES_256_CCM", 2),
    (19104, Tls12, "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384", 2),
    (19105, Tls12, "TLS_RSA_WITH_AES_256_CBC_SHA256", 2),
    (19106, Tls11, "TLS_RSA_WITH_AES_128_CBC_SHA", 2),
    (19107, Tls11, "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA", 2),
    (19108, Tls10, "TLS_RSA_WITH_AES_256_CBC_SHA", 2),
    (19109, Tls10, "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", 2),
    (19110, Tls12, "TLS_RSA_WITH_CAMELLIA_128_CBC_SHA256", 0),
    (19111, Tls12, "TLS_ECDHE_ECDSA_WITH_ARIA_128_GCM_SHA256", 0),
    (19120, Tls13, "TLS_AES_128_CCM_SHA256", 1),
    (19121, Tls13, "TLS_AES_128_CCM_8_SHA256", 1),
    (19130, Tls10, "TLS_RSA_WITH_AES_128_CBC_SHA", 1),
    (19131, Tls11, "TLS_RSA_WITH_AES_256_CBC_SHA", 1),
    (19132, Tls12, "TLS_RSA_WITH_AES_128_CBC_SHA256", 1),
];

/// The messages of the caveats about TLS.
fn about_tls(outcome: &Outcome) -> Vec<String> {
    let all = outcome.caveats().into_iter();
    let of_tls = all.filter(|caveat| caveat.id.starts_with("tls-"));
    of_tls.map(|caveat| caveat.message.clone()).collect()
}

#[test]
fn suites_are_decrypted_or_named() {
    let outcome = reading::file(FILE, KeyLog::default());
    let found: Vec<_> = outcome
        .connections()
        .into_iter()
        .map(|connection| {
            let tls = connection.tls.as_ref().unwrap();
            let port = connection.peer.as_ref().map_or(0, SocketAddr::port);
            let suite = tls.cipher.as_deref().unwrap();
            let exchanges = outcome.exchanges_on(connection.id);
            assert!(
                exchanges.iter().all(|one| one.status == Some(200)),
                "{suite}"
            );
            (port, tls.version.unwrap(), suite, exchanges.len())
        })
        .collect();
    assert_eq!(found, SUITES);
    let said = about_tls(&outcome);
    // one caveat names all, by their numbers
    let [message] = &said[..] else {
        panic!("{said:?}")
    };
    assert!(
        message.starts_with("2 connections use cipher suites ")
            && message.ends_with(", which are not decrypted here"),
        "{message}"
    );
    for suite in [SUITES[10].2, SUITES[11].2] {
        assert!(message.contains(suite), "{message}");
    }
}

#[test]
fn a_key_log_is_requested_only_where_there_is_none() {
    let file = "captures/tls-1.2-stream-keylog.pcap";
    let without = about_tls(&reading::file(file, KeyLog::default()));
    assert!(without[0].contains("pass --keylog FILE"), "{without:?}");
    // secrets of other connections
    let mut keys = KeyLog::default();
    let line = format!("CLIENT_RANDOM {} {}", "07".repeat(32), "08".repeat(48));
    keys.add_line(&line).unwrap();
    let foreign = about_tls(&reading::file(file, keys));
    assert!(
        foreign[0].contains("the key log lacks the secrets"),
        "{foreign:?}"
    );
    // secrets that do not match
    let path = reading::fixture("captures/tls-1.2-stream-keylog.keys");
    let text = std::fs::read_to_string(path).unwrap();
    let mut wrong = KeyLog::default();
    for line in text
        .lines()
        .filter(|line| line.starts_with("CLIENT_RANDOM"))
    {
        let (front, _) = line.rsplit_once(' ').unwrap();
        wrong
            .add_line(&format!("{front} {}", "08".repeat(48)))
            .unwrap();
    }
    let wrong = about_tls(&reading::file(file, wrong));
    assert!(wrong[0].contains("do not decrypt the data"), "{wrong:?}");
    // a snap length
    let bytes = std::fs::read(reading::fixture(file)).unwrap();
    let keys = reading::keys("captures/tls-1.2-stream-keylog.keys");
    let cut = about_tls(&reading::bytes(&cut_file(&bytes, 96), keys).unwrap());
    assert!(cut[0].contains("missing or cut off"), "{cut:?}");
    for said in [foreign, wrong, cut] {
        assert!(!said[0].contains("--keylog"), "{said:?}");
    }
}
