//! What can be told of one TLS connection from outside, both directions, without keys.
//!
//! What is seen is told as seen, what is concluded as [`Evidence::Inferred`]. The caller supplies the time of the
//! bytes, in nanoseconds on a clock of its own.

use super::cursor::Cursor;
use super::error::Error;
use super::hello::{ClientHello, ServerHello};
use super::messages::{Messages, kind};
use super::record::{ContentType, Record, RecordReader};
use super::{TLS12, TLS13};
use crate::Side;

/// How a fact is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Evidence {
    /// It stood in the clear.
    Seen,
    /// It follows from the order of encrypted records.
    Inferred,
}

/// Whether the handshake made new secrets from scratch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Certificates and a key exchange.
    Full,
    /// From an earlier connection's session.
    Resumed,
}

/// When the handshake was over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Finished {
    /// The time of the bytes that completed the last Finished, in nanoseconds.
    pub at: u64,
    /// Who sent that last Finished: in TLS 1.2 the server in a full handshake, the client in a resumed one.
    pub by: Side,
    /// TLS 1.3 encrypts the Finished messages, so there it is inferred.
    pub evidence: Evidence,
}

/// An alert in the clear.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Alert {
    /// Who sent it.
    pub from: Side,
    /// Warning is 1, fatal is 2.
    pub level: u8,
    /// The description (RFC 8446 section 6), 0 being `close_notify`.
    pub description: u8,
    /// When, in nanoseconds.
    pub at: u64,
}

/// What one side sent as application data; in TLS 1.3 this includes the encrypted handshake, tickets and alerts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Records.
    pub records: u64,
    /// Their payload, still encrypted, in bytes.
    pub bytes: u64,
    /// The payload of the first, in bytes.
    pub first_len: Option<u64>,
    /// The payload of the second, in bytes.
    pub second_len: Option<u64>,
    /// The payload of the last, in bytes.
    pub last_len: Option<u64>,
    /// The time of the first, in nanoseconds.
    pub first_at: Option<u64>,
    /// The time of the last, in nanoseconds.
    pub last_at: Option<u64>,
}

/// Everything known so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TlsFacts {
    /// What the client offered (after a retry: the second time), and when the first offer came.
    pub client_hello: Option<ClientHello>,
    /// When the first ClientHello was complete, in nanoseconds.
    pub started_at: Option<u64>,
    /// What the server chose.
    pub server_hello: Option<ServerHello>,
    /// When the final ServerHello was complete, in nanoseconds.
    pub answered_at: Option<u64>,
    /// The server asked for another key share first: one more round trip.
    pub retried: bool,
    /// Full or resumed; `None` until it shows.
    pub mode: Option<Mode>,
    /// The size of the server's Certificate message in bytes, where it stands in the clear (TLS 1.2).
    pub certificate_len: Option<usize>,
    /// How many session tickets the server sent in the clear (TLS 1.2).
    pub tickets: u32,
    /// The end of the handshake.
    pub finished: Option<Finished>,
    /// The first alerts in the clear, at most 8.
    pub alerts: Vec<Alert>,
    /// Encrypted records of type alert (TLS 1.2): usually `close_notify`.
    pub encrypted_alerts: u32,
    /// What the client sent as application data.
    pub client_data: Traffic,
    /// What the server sent as application data.
    pub server_data: Traffic,
}

impl TlsFacts {
    /// What a side sent as application data.
    pub fn of(&self, side: Side) -> &Traffic {
        match side {
            Side::Client => &self.client_data,
            Side::Server => &self.server_data,
        }
    }

    /// The version chosen.
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
    /// A ChangeCipherSpec was sent: in TLS 1.2 what follows is encrypted.
    changed_cipher: bool,
    /// In TLS 1.2, the Finished was sent and at this time.
    finished_at: Option<u64>,
}

const MAX_ALERTS: usize = 8;

impl Watcher {
    /// What is known so far.
    pub fn facts(&self) -> &TlsFacts {
        &self.facts
    }

    /// Whether the last byte of that side was the last of a record.
    pub(super) fn is_between_records(&self, side: Side) -> bool {
        match side {
            Side::Client => self.client.records.is_between_records(),
            Side::Server => self.server.records.is_between_records(),
        }
    }

    /// Whether that side has sent a ChangeCipherSpec.
    pub(super) fn has_changed_cipher(&self, side: Side) -> bool {
        match side {
            Side::Client => self.client.changed_cipher,
            Side::Server => self.server.changed_cipher,
        }
    }

    /// Takes the next bytes of one direction and hands every record that they complete to `visit`, after the facts
    /// have taken it in. After an error that direction is not read any further.
    pub fn read(
        &mut self,
        from: Side,
        bytes: &[u8],
        at: u64,
        mut visit: impl FnMut(&TlsFacts, Record<'_>),
    ) -> Result<(), Error> {
        let Self {
            client,
            server,
            facts,
        } = self;
        let (this, other) = match from {
            Side::Client => (client, server),
            Side::Server => (server, client),
        };
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
                                facts.finished = Some(Finished {
                                    at,
                                    by: from,
                                    evidence: Evidence::Seen,
                                });
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

/// After a retry TLS 1.3 sends hellos in the clear behind a ChangeCipherSpec that changes nothing. An encrypted
/// Finished looks like that once in 2^31 times.
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
                    self.retried = true;
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
                self.answered_at = Some(at);
            }
            (Side::Server, kind::CERTIFICATE) => {
                self.certificate_len = Some(body.len());
                self.mode = Some(Mode::Full);
            }
            (Side::Server, kind::SERVER_KEY_EXCHANGE | kind::SERVER_HELLO_DONE) => {
                self.mode = Some(Mode::Full);
            }
            (Side::Server, kind::NEW_SESSION_TICKET) => self.tickets += 1,
            _ => {}
        }
        Ok(())
    }

    /// In TLS 1.2 a server that changes ciphers without having sent a certificate or a ServerHelloDone resumes.
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
        let offers_early_data = self
            .client_hello
            .as_ref()
            .is_some_and(|hello| hello.early_data);
        // The client's first encrypted record after the server's answer is its Finished (or, with client certificates,
        // starts the flight that ends in it). With early data under way it can be either, so nothing is concluded.
        if self.version() == Some(TLS13)
            && from == Side::Client
            && self.finished.is_none()
            && !offers_early_data
        {
            self.finished = Some(Finished {
                at,
                by: Side::Client,
                evidence: Evidence::Inferred,
            });
        }
        let traffic = match from {
            Side::Client => &mut self.client_data,
            Side::Server => &mut self.server_data,
        };
        traffic.records += 1;
        traffic.bytes += len as u64;
        match traffic.records {
            1 => traffic.first_len = Some(len as u64),
            2 => traffic.second_len = Some(len as u64),
            _ => {}
        }
        traffic.last_len = Some(len as u64);
        traffic.first_at = traffic.first_at.or(Some(at));
        traffic.last_at = Some(at);
    }
}
