//! The facts about one TLS connection that both directions show without keys.
//!
//! The caller supplies the time of the bytes, in nanoseconds on its own clock.

use super::cursor::Cursor;
use super::error::Error;
use super::hello::{ClientHello, ServerHello};
use super::messages::{Messages, kind};
use super::record::{ContentType, Record, RecordReader};
use super::{TLS12, TLS13};
use crate::Side;

/// Whether the handshake created new secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Certificates and a key exchange.
    Full,
    /// Secrets of an earlier connection's session.
    Resumed,
}

/// An alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Alert {
    /// The side that sent it.
    pub from: Side,
    /// Warning is 1, fatal is 2.
    pub level: u8,
    /// The description (RFC 8446 section 6); 0 is `close_notify`.
    pub description: u8,
    /// The time in nanoseconds.
    pub at: u64,
}

/// The application data of one side. In TLS 1.3 it includes the encrypted handshake, tickets and
/// alerts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Number of records.
    pub records: u64,
    /// Encrypted payload in bytes.
    pub bytes: u64,
    /// Payload of the first record in bytes.
    pub first_len: Option<u64>,
    /// Payload of the last record in bytes.
    pub last_len: Option<u64>,
    /// Time of the first record in nanoseconds.
    pub first_at: Option<u64>,
    /// Time of the last record in nanoseconds.
    pub last_at: Option<u64>,
}

impl Traffic {
    /// Adds a record.
    fn add(&mut self, len: usize, at: u64) {
        let len = len as u64;
        self.records += 1;
        self.bytes += len;
        self.first_len = self.first_len.or(Some(len));
        self.last_len = Some(len);
        self.first_at = self.first_at.or(Some(at));
        self.last_at = Some(at);
    }
}

/// The facts so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TlsFacts {
    /// The client's offer (after a retry: the second one), and when the first offer arrived.
    pub client_hello: Option<ClientHello>,
    /// When the first ClientHello was complete, in nanoseconds.
    pub started_at: Option<u64>,
    /// What the server chose.
    pub server_hello: Option<ServerHello>,
    /// Full or resumed; `None` while it is unknown.
    pub mode: Option<Mode>,
    /// Number of unencrypted session tickets of the server (TLS 1.2).
    pub tickets: u32,
    /// The time of the bytes that completed the last Finished, in nanoseconds. In TLS 1.3 it is
    /// inferred from the order of encrypted records.
    pub finished_at: Option<u64>,
    /// The first unencrypted alerts, at most 8.
    pub alerts: Vec<Alert>,
    /// Number of encrypted records of type alert (TLS 1.2): usually `close_notify`.
    pub encrypted_alerts: u32,
    /// The client's application data.
    pub client_data: Traffic,
    /// The part of it up to its Finished, which is the last record. It has the early data.
    pub client_handshake: Traffic,
    /// Payload of the client's first record after its Finished in bytes.
    pub client_first_len: Option<u64>,
    /// The client ended its early data (0-RTT) with a message, because the server took them.
    pub has_early_data: bool,
    /// The server's application data.
    pub server_data: Traffic,
    /// The part of it that came after the end of the handshake.
    pub server_data_after: Traffic,
}

impl TlsFacts {
    /// A side's application data.
    pub fn of(&self, side: Side) -> &Traffic {
        side.pick(&self.client_data, &self.server_data)
    }

    /// The chosen version.
    pub fn version(&self) -> Option<u16> {
        self.server_hello.as_ref().map(ServerHello::version)
    }
}

/// Reads both directions of one connection.
#[derive(Debug, Default)]
pub struct Watcher {
    client: TlsFlow,
    server: TlsFlow,
    facts: TlsFacts,
}

#[derive(Debug, Default)]
struct TlsFlow {
    records: RecordReader,
    messages: Messages,
    failed: Option<Error>,
    /// A ChangeCipherSpec was sent: in TLS 1.2 later records are encrypted.
    changed_cipher: bool,
    /// In TLS 1.2, when the Finished was sent.
    finished_at: Option<u64>,
}

const MAX_ALERTS: usize = 8;

impl Watcher {
    /// The facts so far.
    pub fn facts(&self) -> &TlsFacts {
        &self.facts
    }

    /// Whether the last byte of that side ended a record.
    pub(super) fn is_between_records(&self, side: Side) -> bool {
        let flow = side.pick(&self.client, &self.server);
        flow.records.is_between_records()
    }

    /// Whether that side has sent a ChangeCipherSpec.
    pub(super) fn has_changed_cipher(&self, side: Side) -> bool {
        side.pick(self.client.changed_cipher, self.server.changed_cipher)
    }

    /// Reads the next bytes of one direction. Every complete record updates the facts and is then
    /// passed to `visit`. After an error that direction is not read any further.
    pub fn read(
        &mut self,
        from: Side,
        bytes: &[u8],
        at: u64,
        mut visit: impl FnMut(&TlsFacts, Record<'_>),
    ) -> Result<(), Error> {
        let facts = &mut self.facts;
        let (this, other) = from.order(&mut self.client, &mut self.server);
        if let Some(error) = this.failed {
            return Err(error);
        }
        let mut input = bytes;
        loop {
            let step = this
                .records
                .read(input)
                .inspect_err(|&error| this.failed = Some(error))?;
            let Some(record) = step.event else {
                return Ok(());
            };
            input = &input[step.consumed..];
            let taken = match record.content {
                ContentType::Handshake => {
                    if this.changed_cipher && !looks_plain(record.payload, &this.messages) {
                        if this.finished_at.is_none() {
                            this.finished_at = Some(at);
                            if other.finished_at.is_some() {
                                facts.finished_at = Some(at);
                            }
                        }
                        Ok(())
                    } else {
                        this.messages.read(record.payload, |kind, body| {
                            facts.take_message(from, kind, body, at)
                        })
                    }
                }
                ContentType::ChangeCipherSpec => {
                    this.changed_cipher = true;
                    facts.take_change_cipher(from);
                    Ok(())
                }
                ContentType::Alert => {
                    facts.take_alert(from, record.payload, at);
                    Ok(())
                }
                ContentType::ApplicationData => {
                    facts.take_data(from, record.payload.len(), at);
                    Ok(())
                }
                ContentType::Heartbeat => Ok(()),
            };
            taken.inspect_err(|&error| this.failed = Some(error))?;
            visit(facts, record);
        }
    }
}

/// Whether a record is a plain hello. After a retry, TLS 1.3 sends hellos after a ChangeCipherSpec
/// without effect. An encrypted Finished looks like that once in 2^31 times.
fn looks_plain(payload: &[u8], messages: &Messages) -> bool {
    if !messages.is_empty() {
        return true;
    }
    match payload {
        [kind::CLIENT_HELLO | kind::SERVER_HELLO, length @ ..] => {
            let mut body = Cursor(length);
            body.vec24()
                .is_some_and(|hello| hello.0.starts_with(&TLS12.to_be_bytes()))
                && body.is_empty()
        }
        _ => false,
    }
}

impl TlsFacts {
    fn take_message(&mut self, from: Side, message: u8, body: &[u8], at: u64) -> Result<(), Error> {
        match (from, message) {
            (Side::Client, kind::CLIENT_HELLO) => {
                self.client_hello = Some(ClientHello::parse(body)?);
                self.started_at = self.started_at.or(Some(at));
            }
            (Side::Server, kind::SERVER_HELLO) => {
                let hello = ServerHello::parse(body)?;
                if hello.retry {
                    return Ok(());
                }
                if hello.version() >= TLS13 {
                    self.mode = Some(if hello.psk.is_some() {
                        Mode::Resumed
                    } else {
                        Mode::Full
                    });
                }
                self.server_hello = Some(hello);
            }
            (
                Side::Server,
                kind::CERTIFICATE | kind::SERVER_KEY_EXCHANGE | kind::SERVER_HELLO_DONE,
            ) => self.mode = Some(Mode::Full),
            (Side::Server, kind::NEW_SESSION_TICKET) => self.tickets += 1,
            _ => {}
        }
        Ok(())
    }

    /// In TLS 1.2 a server that changes ciphers without a certificate or a ServerHelloDone resumes
    /// a session.
    fn take_change_cipher(&mut self, from: Side) {
        if from == Side::Server
            && self.mode.is_none()
            && self.version().is_some_and(|version| version <= TLS12)
        {
            self.mode = Some(Mode::Resumed);
        }
    }

    fn take_alert(&mut self, from: Side, payload: &[u8], at: u64) {
        match *payload {
            [level @ 1..=2, description] if self.alerts.len() < MAX_ALERTS => {
                self.alerts.push(Alert {
                    from,
                    level,
                    description,
                    at,
                });
            }
            [1..=2, _] => {}
            _ => self.encrypted_alerts += 1,
        }
    }

    fn take_data(&mut self, from: Side, len: usize, at: u64) {
        let before = self.client_data.last_len;
        from.pick(&mut self.client_data, &mut self.server_data)
            .add(len, at);
        match from {
            Side::Server if self.finished_at.is_some() => self.server_data_after.add(len, at),
            Side::Client if self.finished_at.is_some() => {
                self.client_first_len = self.client_first_len.or(Some(len as u64));
            }
            Side::Client if self.is_finished(len as u64) => {
                self.finished_at = Some(at);
                self.client_handshake = self.client_data;
                self.has_early_data = self.offers_early_data() && before == Some(END_OF_EARLY_DATA);
            }
            _ => {}
        }
    }

    /// Whether the client offers early data (0-RTT) in TLS 1.3.
    pub fn offers_early_data(&self) -> bool {
        let hello = self.client_hello.as_ref();
        hello.is_some_and(|hello| hello.early_data)
    }

    /// Whether an encrypted record of a client of TLS 1.3 is its Finished. The first one after the
    /// ServerHello is, or with client certificates it is the start of the flight with the Finished.
    /// After early data the size shows it.
    fn is_finished(&self, len: u64) -> bool {
        let Some(hello) = self.server_hello.as_ref() else {
            return false;
        };
        hello.version() == TLS13 && (!self.offers_early_data() || len == finished_len(hello))
    }
}

/// What a record of TLS 1.3 adds to its content, in bytes: a type and a tag (RFC 8446 section 5.2).
pub const OVERHEAD_13: u64 = 17;

/// The header of a handshake message, in bytes.
const HANDSHAKE_HEAD: u64 = 4;

/// Encrypted payload of an EndOfEarlyData, which is a header, in bytes.
const END_OF_EARLY_DATA: u64 = HANDSHAKE_HEAD + OVERHEAD_13;

/// Encrypted payload of a Finished of TLS 1.3 without padding, in bytes.
pub fn finished_len(hello: &ServerHello) -> u64 {
    const AES_256_GCM_SHA384: u16 = 0x1302;
    let hash = match hello.cipher_suite {
        AES_256_GCM_SHA384 => 48,
        _ => 32,
    };
    HANDSHAKE_HEAD + hash + OVERHEAD_13
}
