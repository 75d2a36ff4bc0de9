//! What went through a TLS connection, with the keys that one of its ends logged (`SSLKEYLOGFILE`).
//!
//! [`Decryptor`] reads both directions: TLS 1.0 to 1.3 with AES-GCM, AES-CCM, ChaCha20-Poly1305 or AES-CBC, key updates and
//! early data included. Records wait, up to a limit, for lines that the key log gets late. Renegotiation is not followed.

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
use keylog::Secrets;
use record_decryptor::Handshake12;
use suite::Suite;

use super::record::{ContentType, Record};
use super::watcher::{Finished, TlsFacts, Watcher};
use super::{Error, TLS10, TLS12, TLS13};
use crate::Side;

/// Application data of one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plain<'a> {
    /// Who sent it.
    pub from: Side,
    /// The bytes, never empty.
    pub bytes: &'a [u8],
    /// The time of the bytes that completed the record, in nanoseconds.
    pub at: u64,
}

/// What stood behind the encryption of the handshake and after it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inner {
    /// The protocol that the server chose, where that was encrypted (TLS 1.3).
    pub alpn: Option<Vec<u8>>,
    /// The size of the server's Certificate message in bytes, where that was encrypted (TLS 1.3).
    pub certificate_len: Option<usize>,
    /// How many session tickets the server sent encrypted.
    pub tickets: u32,
    /// The end of the handshake.
    pub finished: Option<Finished>,
    /// How often either side changed its keys.
    pub key_updates: u32,
    /// When the client said that it closes, in nanoseconds.
    pub client_close_notify_at: Option<u64>,
    /// When the server said that it closes, in nanoseconds.
    pub server_close_notify_at: Option<u64>,
    /// Records that no key opened: refused early data, or damage.
    pub undecryptable: u64,
    first_finished: Option<Side>,
}

/// Whether the plain text can be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// Nothing encrypted came yet, or the key log has no line for it yet.
    Waiting,
    /// At least one direction is being read.
    Reading,
    /// The suite is not one that is read here.
    UnsupportedSuite(u16),
    /// The version is older than TLS 1.0.
    UnsupportedVersion(u16),
    /// A direction outgrew its limit without keys, or its handshake messages were malformed.
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
    /// Keeps at most `max_waiting` bytes of records in each direction while keys are missing.
    pub fn new(max_waiting: usize) -> Self {
        Self {
            watcher: Watcher::default(),
            client: DirectionDecryptor::new(Side::Client),
            server: DirectionDecryptor::new(Side::Server),
            inner: Inner::default(),
            max_waiting,
        }
    }

    /// What is known without keys.
    pub fn facts(&self) -> &TlsFacts {
        self.watcher.facts()
    }

    /// What is known by the keys.
    pub fn inner(&self) -> &Inner {
        &self.inner
    }

    /// Whether the plain text can be had.
    pub fn status(&self) -> Status {
        if self.client.is_reading() || self.server.is_reading() {
            return Status::Reading;
        }
        if self.client.is_lost() || self.server.is_lost() {
            return Status::GaveUp;
        }
        self.unsupported().unwrap_or(Status::Waiting)
    }

    /// How many bytes of records of that side wait for keys.
    pub fn waiting(&self, from: Side) -> usize {
        match from {
            Side::Client => self.client.waiting(),
            Side::Server => self.server.waiting(),
        }
    }

    /// A record with this application data that fits behind what the server has sent; `None` where that ends within a record or is
    /// not read, and except in TLS 1.3. The server knows nothing of it, so nothing that it sends later fits.
    pub fn seal_by_server(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let is_whole = self.watcher.is_between_records(Side::Server);
        self.server.seal(bytes).filter(|_| is_whole)
    }

    /// Why no secret can help, where the version or the suite is not read here.
    pub fn unsupported(&self) -> Option<Status> {
        let hello = self.watcher.facts().server_hello.as_ref()?;
        if hello.version() < TLS10 {
            return Some(Status::UnsupportedVersion(hello.version()));
        }
        let suite = hello.cipher_suite;
        Suite::find(suite)
            .is_none()
            .then_some(Status::UnsupportedSuite(suite))
    }

    /// Takes the next bytes of one direction and hands what they and the keys disclose to `visit`. A direction keeps
    /// its order; what waited for keys comes with the time at which it had arrived.
    pub fn read(
        &mut self,
        keys: &KeyLog,
        from: Side,
        bytes: &[u8],
        at: u64,
        visit: impl FnMut(Plain<'_>),
    ) -> Result<(), Error> {
        let Self {
            watcher,
            client,
            server,
            max_waiting,
            ..
        } = self;
        let half = match from {
            Side::Client => client,
            Side::Server => server,
        };
        let mut changed_cipher = watcher.has_changed_cipher(from);
        let read = watcher.read(from, bytes, at, |facts, record| {
            let encrypted = changed_cipher;
            changed_cipher |= record.content == ContentType::ChangeCipherSpec;
            if is_encrypted(facts, &record, encrypted) {
                half.push(&record, at, *max_waiting);
            }
        });
        self.retry(keys, visit);
        read
    }

    /// Expects no keys any more: what waits is dropped, and nothing waits from now on.
    pub fn give_up(&mut self) {
        self.client.lose();
        self.server.lose();
    }

    /// Tries what waits again: for when the key log got new lines.
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
            let ladder = match server_hello.version() {
                TLS13 => KeyUpdates::Tls13(suite, secrets.ladder(half.side())),
                TLS10..=TLS12 => {
                    let Some(master) = &secrets.master else {
                        continue;
                    };
                    let side = half.side();
                    let handshake = Handshake12::of(suite, client_hello, server_hello);
                    KeyUpdates::Tls12(Box::new(move || handshake.opener(master, side)))
                }
                _ => return,
            };
            half.drain(&ladder, &mut self.inner, &mut visit);
        }
    }
}

impl Secrets {
    fn ladder(&self, side: Side) -> Vec<Option<&[u8]>> {
        match side {
            Side::Client => vec![
                self.client_early.as_deref(),
                self.client_handshake.as_deref(),
                self.client_traffic.as_deref(),
            ],
            Side::Server => vec![
                self.server_handshake.as_deref(),
                self.server_traffic.as_deref(),
            ],
        }
    }
}

/// In TLS 1.3 what is encrypted says that it is application data, even before the version is known (early data). Up to
/// TLS 1.2 everything after the side's ChangeCipherSpec is.
fn is_encrypted(facts: &TlsFacts, record: &Record<'_>, changed_cipher: bool) -> bool {
    match record.content {
        ContentType::ApplicationData => true,
        _ => changed_cipher && facts.version().is_some_and(|version| version < TLS13),
    }
}
