//! One direction of a connection: its encrypted records in order, waiting for keys or decrypted.

use std::collections::VecDeque;

use super::keylog::Secret;
use super::record_decryptor::{Handshake12, RecordDecryptor, next_secret};
use super::suite::Suite;
use super::{Inner, Plain};
use crate::Side;
use crate::tls::cursor::Cursor;
use crate::tls::hello;
use crate::tls::messages::{Messages, kind};
use crate::tls::record::{ContentType, Record};
use crate::tls::watcher::Alert;

/// The encrypted records of one side.
pub(super) struct DirectionDecryptor {
    side: Side,
    waiting: VecDeque<Waiting>,
    waiting_bytes: usize,
    /// The current keys, and the number of epochs of the key updates that are over.
    opener: Option<RecordDecryptor>,
    epoch: usize,
    /// The secret of `opener`, from which a KeyUpdate derives the next one.
    secret: Vec<u8>,
    /// Post-handshake messages end at record boundaries, so one buffer serves all epochs.
    messages: Messages,
    plain: Vec<u8>,
    lost: bool,
}

struct Waiting {
    header: [u8; 5],
    payload: Vec<u8>,
    at: u64,
}

/// The keys of a direction.
pub(super) struct KeyUpdates<'a> {
    pub(super) suite: Suite,
    /// What the master secret is expanded with up to TLS 1.2.
    pub(super) handshake: Option<Handshake12>,
    /// The secrets in order: the master secret, or early (client only), handshake and traffic
    /// secrets; `None` if the key log has no line for one yet.
    pub(super) secrets: &'a [Option<Secret>],
}

impl DirectionDecryptor {
    pub(super) fn new(side: Side) -> Self {
        Self {
            side,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            opener: None,
            epoch: 0,
            secret: Vec::new(),
            messages: Messages::default(),
            plain: Vec::new(),
            lost: false,
        }
    }

    pub(super) fn side(&self) -> Side {
        self.side
    }

    pub(super) fn is_reading(&self) -> bool {
        self.opener.is_some()
    }

    pub(super) fn is_lost(&self) -> bool {
        self.lost
    }

    /// Number of bytes of records that wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting_bytes
    }

    /// A record with this application data that would be the next one of this direction.
    pub(super) fn seal(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let is_read = !self.lost && self.waiting.is_empty();
        self.opener.as_ref().filter(|_| is_read)?.seal(bytes)
    }

    /// Drops the records that wait, and accepts no more.
    pub(super) fn lose(&mut self) {
        self.lost = true;
        self.waiting.clear();
    }

    /// The records that wait, in order: header and payload.
    pub(super) fn sealed(&self) -> impl Iterator<Item = ([u8; 5], &[u8])> {
        let records = self.waiting.iter();
        records.map(|record| (record.header, record.payload.as_slice()))
    }

    /// Number of waiting records that had arrived at this time, in nanoseconds.
    pub(super) fn sealed_until(&self, at: u64) -> usize {
        self.waiting.partition_point(|record| record.at <= at)
    }

    /// Queues an encrypted record. Gives up above `max_waiting` bytes.
    pub(super) fn push(&mut self, record: &Record<'_>, at: u64, max_waiting: usize) {
        self.waiting_bytes += record.payload.len();
        if self.lost || self.waiting_bytes > max_waiting {
            self.lose();
            return;
        }
        self.waiting.push_back(Waiting {
            header: record.header,
            payload: record.payload.to_vec(),
            at,
        });
    }

    /// Decrypts the records that can be decrypted, in order.
    pub(super) fn drain(
        &mut self,
        ladder: &KeyUpdates<'_>,
        inner: &mut Inner,
        visit: &mut impl FnMut(Plain<'_>),
    ) {
        while let Some(record) = self.waiting.pop_front() {
            let Some((content, len)) = self.open(ladder, &record) else {
                if ladder.is_complete() {
                    // every key was tried: refused early data, or damage
                    self.waiting_bytes -= record.payload.len();
                    inner.undecryptable += 1;
                    continue;
                }
                self.waiting.push_front(record);
                return;
            };
            self.waiting_bytes -= record.payload.len();
            let plain = std::mem::take(&mut self.plain);
            self.take(content, &plain[..len], record.at, ladder, inner, visit);
            self.plain = plain;
        }
    }

    /// Decrypts a record with the current keys, or with the first later keys that fit: a key change
    /// is detected by trial.
    fn open(&mut self, ladder: &KeyUpdates<'_>, record: &Waiting) -> Option<(u8, usize)> {
        if let Some(opener) = &mut self.opener
            && let Some(opened) = opener.open(record.header, &record.payload, &mut self.plain)
        {
            return Some(opened);
        }
        for (epoch, secret) in ladder.secrets.iter().enumerate().skip(self.epoch) {
            let Some(secret) = secret else { continue };
            let opener = match &ladder.handshake {
                Some(handshake) => handshake.opener(secret, self.side),
                None => RecordDecryptor::tls13(ladder.suite, secret),
            };
            let Some(mut opener) = opener else { continue };
            if let Some(opened) = opener.open(record.header, &record.payload, &mut self.plain) {
                self.opener = Some(opener);
                self.epoch = epoch + 1;
                self.secret = secret.clone();
                return Some(opened);
            }
        }
        None
    }

    fn take(
        &mut self,
        content: u8,
        plain: &[u8],
        at: u64,
        ladder: &KeyUpdates<'_>,
        inner: &mut Inner,
        visit: &mut impl FnMut(Plain<'_>),
    ) {
        match ContentType::parse(content) {
            Some(ContentType::ApplicationData) if !plain.is_empty() => visit(Plain {
                from: self.side,
                bytes: plain,
                at,
            }),
            Some(ContentType::Handshake) => self.take_handshake(plain, at, ladder, inner),
            Some(ContentType::Alert) if plain == [1, 0] || plain == [2, 0] => {
                let client = &mut inner.client_close_notify_at;
                let own = self.side.pick(client, &mut inner.server_close_notify_at);
                own.get_or_insert(at);
            }
            Some(ContentType::Alert) => {
                if let [2, description] = *plain {
                    inner.fatal_alert.get_or_insert(Alert {
                        from: self.side,
                        level: 2,
                        description,
                        at,
                    });
                }
            }
            _ => {}
        }
    }

    fn take_handshake(
        &mut self,
        plain: &[u8],
        at: u64,
        ladder: &KeyUpdates<'_>,
        inner: &mut Inner,
    ) {
        let side = self.side;
        let mut updates = 0;
        let read = self.messages.read(plain, |message, body| {
            match (side, message) {
                (Side::Server, kind::ENCRYPTED_EXTENSIONS) => inner.alpn = read_alpn(body),
                (Side::Server, kind::NEW_SESSION_TICKET) => inner.tickets += 1,
                (_, kind::FINISHED) => {
                    // the second Finished ends the handshake, from either side
                    if inner.first_finished.is_some_and(|first| first != side) {
                        inner.finished_at.get_or_insert(at);
                    }
                    inner.first_finished = inner.first_finished.or(Some(side));
                }
                (_, kind::KEY_UPDATE) => updates += 1,
                _ => {}
            }
            Ok(())
        });
        if read.is_err() {
            self.lose();
            return;
        }
        for _ in 0..updates {
            if ladder.handshake.is_none() {
                self.secret = next_secret(ladder.suite.hash, &self.secret);
                self.opener = RecordDecryptor::tls13(ladder.suite, &self.secret);
            }
        }
    }
}

impl KeyUpdates<'_> {
    /// Whether the last keys are known. Then later lines of the key log are not needed, because
    /// programs log keys in order of use.
    fn is_complete(&self) -> bool {
        self.secrets.last().is_some_and(Option::is_some)
    }
}

/// ALPN in the EncryptedExtensions (RFC 8446 section 4.3.1).
fn read_alpn(body: &[u8]) -> Option<Vec<u8>> {
    let mut extensions = Cursor(body).vec16()?;
    while !extensions.is_empty() {
        let extension = extensions.u16()?;
        let data = extensions.vec16()?;
        if extension == hello::ALPN {
            return hello::read_protocols(data)?.into_iter().next();
        }
    }
    None
}
