//! The content of a TLS connection, with the keys that one of its ends logged (`SSLKEYLOGFILE`).
//!
//! [`Decryptor`] reads both directions: TLS 1.0 to 1.3 with AES-GCM, AES-CCM, ChaCha20-Poly1305 or
//! AES-CBC, including key updates and early data. Records wait, up to a limit, for late lines of
//! the key log. Renegotiation is not supported.

mod ccm;
mod direction;
mod keylog;
mod record_decryptor;
mod schedule;
mod secret_check;
mod suite;

pub use keylog::{KeyLog, MalformedLine};
pub(crate) use schedule::{expand_label, nonce};
pub use secret_check::SecretCheck;

use direction::{DirectionDecryptor, KeyUpdates};
use record_decryptor::Handshake12;
use suite::Suite;

use super::record::{ContentType, Record};
use super::watcher::{Alert, TlsFacts, Watcher};
use super::{Error, TLS10, TLS12, TLS13};
use crate::Side;

/// Application data of one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plain<'a> {
    /// The sender.
    pub from: Side,
    /// The bytes, never empty.
    pub bytes: &'a [u8],
    /// The time of the bytes that completed the record, in nanoseconds.
    pub at: u64,
}

/// Facts from encrypted messages of the handshake and after it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inner {
    /// The server's protocol, if it was encrypted (TLS 1.3).
    pub alpn: Option<Vec<u8>>,
    /// Number of session tickets that the server sent encrypted.
    pub tickets: u32,
    /// The time of the bytes that completed the last Finished, in nanoseconds.
    pub finished_at: Option<u64>,
    /// When the client sent `close_notify`, in nanoseconds.
    pub client_close_notify_at: Option<u64>,
    /// When the server sent `close_notify`, in nanoseconds.
    pub server_close_notify_at: Option<u64>,
    /// The first fatal alert that was encrypted.
    pub fatal_alert: Option<Alert>,
    /// Number of records that no key decrypted: refused early data, or damage.
    pub undecryptable: u64,
    first_finished: Option<Side>,
}

/// Whether the connection can be decrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// No encrypted record arrived yet, or the key log has no line for the connection yet.
    Waiting,
    /// At least one direction is decrypted.
    Reading,
    /// The suite is not supported.
    UnsupportedSuite(u16),
    /// The version is older than TLS 1.0.
    UnsupportedVersion(u16),
    /// The records are compressed (RFC 3749).
    Compressed,
    /// Without keys, a direction exceeded its limit, or its handshake messages were malformed.
    GaveUp,
}

/// Reads both directions of one connection.
pub struct Decryptor {
    watcher: Watcher,
    client: DirectionDecryptor,
    server: DirectionDecryptor,
    inner: Inner,
    max_waiting: usize,
}

impl Decryptor {
    /// A decryptor that keeps at most `max_waiting` bytes of records per direction while keys are
    /// missing.
    pub fn new(max_waiting: usize) -> Self {
        Self {
            watcher: Watcher::default(),
            client: DirectionDecryptor::new(Side::Client),
            server: DirectionDecryptor::new(Side::Server),
            inner: Inner::default(),
            max_waiting,
        }
    }

    /// The facts that are known without keys.
    pub fn facts(&self) -> &TlsFacts {
        self.watcher.facts()
    }

    /// The facts from encrypted messages.
    pub fn inner(&self) -> &Inner {
        &self.inner
    }

    /// Whether the connection can be decrypted.
    pub fn status(&self) -> Status {
        if self.client.is_reading() || self.server.is_reading() {
            return Status::Reading;
        }
        if self.client.is_lost() || self.server.is_lost() {
            return Status::GaveUp;
        }
        self.unsupported().unwrap_or(Status::Waiting)
    }

    /// Number of bytes of that side's records that wait for keys.
    pub fn waiting(&self, from: Side) -> usize {
        from.pick(&self.client, &self.server).waiting()
    }

    /// Whether the last byte of that side ended a record.
    pub fn is_between_records(&self, side: Side) -> bool {
        self.watcher.is_between_records(side)
    }

    /// Encrypts application data as the next record of the server. The server does not know this
    /// record, so its own later records are unusable. `None` before TLS 1.3, within a record, or if
    /// the direction is not decrypted.
    pub fn seal_by_server(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let is_whole = self.watcher.is_between_records(Side::Server);
        self.server.seal(bytes).filter(|_| is_whole)
    }

    /// The unsupported version or suite, for which no secret can help.
    pub fn unsupported(&self) -> Option<Status> {
        let hello = self.watcher.facts().server_hello.as_ref()?;
        if hello.version() < TLS10 {
            return Some(Status::UnsupportedVersion(hello.version()));
        }
        if hello.compression != 0 {
            return Some(Status::Compressed);
        }
        let suite = hello.cipher_suite;
        Suite::find(suite)
            .is_none()
            .then_some(Status::UnsupportedSuite(suite))
    }

    /// Reads the next bytes of one direction, and passes decrypted data to `visit`. A direction
    /// keeps its order. Data that waited for keys has the time of its arrival.
    pub fn read(
        &mut self,
        keys: &KeyLog,
        from: Side,
        bytes: &[u8],
        at: u64,
        visit: impl FnMut(Plain<'_>),
    ) -> Result<(), Error> {
        let half = from.pick(&mut self.client, &mut self.server);
        let mut changed_cipher = self.watcher.has_changed_cipher(from);
        let read = self.watcher.read(from, bytes, at, |facts, record| {
            let encrypted = changed_cipher;
            changed_cipher |= record.content == ContentType::ChangeCipherSpec;
            if is_encrypted(facts, &record, encrypted) {
                half.push(&record, at, self.max_waiting);
            }
        });
        self.retry(keys, visit);
        read
    }

    /// Drops the records that wait; no record waits from now on.
    pub fn give_up(&mut self) {
        self.client.lose();
        self.server.lose();
    }

    /// Tries the waiting records again, after the key log got new lines.
    pub fn retry(&mut self, keys: &KeyLog, mut visit: impl FnMut(Plain<'_>)) {
        let facts = self.watcher.facts();
        let Some((client_hello, server_hello)) =
            facts.client_hello.as_ref().zip(facts.server_hello.as_ref())
        else {
            return;
        };
        let Some((secrets, suite)) = keys
            .find(&client_hello.random)
            .zip(Suite::find(server_hello.cipher_suite))
        else {
            return;
        };
        for half in [&mut self.client, &mut self.server] {
            let (handshake, secrets) = match server_hello.version() {
                TLS13 => (None, secrets.tls13(half.side())),
                TLS10..=TLS12 => {
                    let handshake = Handshake12::of(suite, client_hello, server_hello);
                    (Some(handshake), secrets.tls12())
                }
                _ => return,
            };
            let ladder = KeyUpdates {
                suite,
                handshake,
                secrets,
            };
            half.drain(&ladder, &mut self.inner, &mut visit);
        }
    }
}

/// Whether a record is encrypted. In TLS 1.3 its type is application data, even before the version
/// is known (early data). Up to TLS 1.2 every record after the side's ChangeCipherSpec is
/// encrypted.
fn is_encrypted(facts: &TlsFacts, record: &Record<'_>, changed_cipher: bool) -> bool {
    match record.content {
        ContentType::ApplicationData => true,
        _ => changed_cipher && facts.version().is_some_and(|version| version < TLS13),
    }
}
