//! Checks whether bytes are the secret of a connection, by decrypting one of its records.
//!
//! For secrets that are missing in the key log and are found elsewhere, such as in the memory of a
//! program.

use super::direction::DirectionDecryptor;
use super::record_decryptor::{Handshake12, RecordDecryptor};
use super::suite::{Hash, Suite};
use super::{Decryptor, TlsFacts};
use crate::Side;
use crate::tls::{TLS10, TLS12, TLS13};
use std::fmt::Write;

/// The length of a master secret in bytes (RFC 5246 section 8.1).
const MASTER_LEN: usize = 48;
/// Padding that the JDK adds to short records, in bytes.
const PADDING: usize = 16;

/// A record that a secret must decrypt: the first one of one direction (TLS 1.3) or of the client
/// (TLS 1.2).
pub struct SecretCheck {
    label: &'static str,
    client_random: [u8; 32],
    suite: Suite,
    /// What the secret is expanded with up to TLS 1.2.
    handshake: Option<Handshake12>,
    sealed: Sealed,
}

/// A record: its header and its payload.
type Sealed = ([u8; 5], Vec<u8>);

impl SecretCheck {
    /// Length of the secret in bytes.
    pub fn secret_len(&self) -> usize {
        match self.handshake {
            None => self.suite.hash.len(),
            Some(_) => MASTER_LEN,
        }
    }

    /// The connection of the secret, by its client random.
    pub fn client_random(&self) -> [u8; 32] {
        self.client_random
    }

    /// Finds the check that the secret at the start of `bytes` passes. Takes microseconds.
    pub fn find(locks: &[SecretCheck], bytes: &[u8]) -> Option<usize> {
        let mut scratch = Vec::new();
        // the keys of TLS 1.3 are the same for all connections
        let mut keys: Option<(Suite, RecordDecryptor)> = None;
        locks.iter().position(|lock| {
            let Some(secret) = bytes.get(..lock.secret_len()) else {
                return false;
            };
            match &lock.handshake {
                Some(handshake) => {
                    let opener = handshake.opener(secret, Side::Client);
                    opener.is_some_and(|mut opener| lock.yields_to(&mut opener, &mut scratch))
                }
                None => {
                    if keys.as_ref().is_none_or(|(suite, _)| *suite != lock.suite) {
                        keys = RecordDecryptor::tls13(lock.suite, secret)
                            .map(|opener| (lock.suite, opener));
                    }
                    let opener = keys.as_mut().map(|(_, opener)| opener);
                    opener.is_some_and(|opener| lock.yields_to(opener, &mut scratch))
                }
            }
        })
    }

    fn yields_to(&self, opener: &mut RecordDecryptor, scratch: &mut Vec<u8>) -> bool {
        let (header, payload) = &self.sealed;
        opener.open(*header, payload, scratch).is_some()
    }

    /// The secret at the start of `bytes` as a line of a key log.
    pub fn key_log_line(&self, bytes: &[u8]) -> String {
        let mut line = format!("{} ", self.label);
        for byte in self.client_random {
            let _ = write!(line, "{byte:02x}");
        }
        line.push(' ');
        for byte in bytes.iter().take(self.secret_len()) {
            let _ = write!(line, "{byte:02x}");
        }
        line
    }
}

impl Decryptor {
    /// The checks for all secrets that are needed to read this connection. Empty until both
    /// directions have sent data after the handshake, and if the version or the suite is not
    /// supported.
    pub fn locks(&self) -> Vec<SecretCheck> {
        self.find_locks().unwrap_or_default()
    }

    fn find_locks(&self) -> Option<Vec<SecretCheck>> {
        let facts = self.facts();
        let (client, server) = (facts.client_hello.as_ref()?, facts.server_hello.as_ref()?);
        let suite = Suite::find(server.cipher_suite)?;
        let lock = |label, handshake, sealed| SecretCheck {
            label,
            client_random: client.random,
            suite,
            handshake,
            sealed,
        };
        match server.version() {
            TLS13 => {
                let first = |half| first_of(half, suite.hash, facts);
                Some(vec![
                    lock("CLIENT_TRAFFIC_SECRET_0", None, first(&self.client)?),
                    lock("SERVER_TRAFFIC_SECRET_0", None, first(&self.server)?),
                ])
            }
            TLS10..=TLS12 => {
                let handshake = Handshake12::of(suite, client, server);
                facts.finished_at?;
                let finished = owned(self.client.sealed().next()?);
                Some(vec![lock("CLIENT_RANDOM", Some(handshake), finished)])
            }
            _ => None,
        }
    }
}

/// The first record of a side after its handshake in TLS 1.3: the one after its Finished, whose
/// length is known. The Finished may share a record with other messages. Then it is the server's
/// first record after the client's Finished, or the client's second record.
fn first_of(half: &DirectionDecryptor, hash: Hash, facts: &TlsFacts) -> Option<Sealed> {
    // a Finished is a header of 4 bytes and a hash; the record adds a byte for the type and a tag
    let len = 4 + hash.len() + 1 + 16;
    let ends = |payload: &[u8]| payload.len() == len || payload.len() == len + PADDING;
    let (said, until) = match half.side() {
        // a certificate and its proof may precede it
        Side::Client => (1, 4),
        Side::Server => {
            let said = half.sealed_until(facts.finished_at?);
            (said, said)
        }
    };
    let mut handshake = half.sealed().take(until);
    let finished = handshake.position(|(_, payload)| ends(payload));
    let place = finished.map_or(said, |place| place + 1);
    half.sealed().nth(place).map(owned)
}

fn owned((header, payload): ([u8; 5], &[u8])) -> Sealed {
    (header, payload.to_vec())
}
