//! The TLS layer of an overheard connection: its facts for the ledger, and its plain text where there are keys.

use intact_ledger::{DialFailure, Failure, Handshake, SetupPhase, TlsVersion};
use intact_wire::Side;
use intact_wire::tls::decrypt::{Decryptor, Inner, KeyLog, Status};
use intact_wire::tls::{Finished, Mode, TLS12, TLS13, TlsFacts, suite_name};
use std::sync::Arc;

/// Records that wait for keys which come late in a capture, per direction, in bytes.
const MAX_WAITING: usize = 256 << 10;

/// Both directions of a connection inside TLS.
pub(super) struct TlsLayer {
    decryptor: Decryptor,
    /// Directions of which bytes are missing: records cannot be found again.
    lost: [bool; 2],
    /// Plain text of the read under way; reused.
    plain: Vec<u8>,
}

/// A piece of plain text within the buffer of the layer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) from: Side,
    pub(super) at: u64,
    start: usize,
    end: usize,
}

impl TlsLayer {
    pub(super) fn new() -> TlsLayer {
        TlsLayer {
            decryptor: Decryptor::new(MAX_WAITING),
            lost: [false; 2],
            plain: Vec::new(),
        }
    }

    /// Takes the next bytes of one side; the plain text that they disclose is listed in `pieces`.
    pub(super) fn read(
        &mut self,
        keys: &KeyLog,
        from: Side,
        bytes: &[u8],
        at: u64,
        pieces: &mut Vec<Piece>,
    ) {
        if self.lost[from as usize] {
            return;
        }
        let plain = &mut self.plain;
        plain.clear();
        let read = self.decryptor.read(keys, from, bytes, at, |text| {
            let start = plain.len();
            plain.extend_from_slice(text.bytes);
            pieces.push(Piece {
                from: text.from,
                at: text.at,
                start,
                end: plain.len(),
            });
        });
        if read.is_err() {
            self.lost[from as usize] = true;
        }
    }

    /// The bytes of a piece of the last read.
    pub(super) fn text(&self, piece: Piece) -> &[u8] {
        &self.plain[piece.start..piece.end]
    }

    /// Takes note of missing bytes.
    pub(super) fn lose(&mut self, from: Side) {
        self.lost[from as usize] = true;
    }

    /// Whether its plain text is being read.
    pub(super) fn is_readable(&self) -> bool {
        self.decryptor.status() == Status::Reading
    }

    fn facts(&self) -> &TlsFacts {
        self.decryptor.facts()
    }

    fn inner(&self) -> &Inner {
        self.decryptor.inner()
    }

    /// When the handshake was over.
    pub(super) fn finished(&self) -> Option<Finished> {
        self.inner().finished.or(self.facts().finished)
    }

    /// When the client said hello, in nanoseconds since 1970.
    pub(super) fn started_at(&self) -> Option<u64> {
        self.facts().started_at
    }

    /// The name asked for.
    pub(super) fn server_name(&self) -> Option<&str> {
        self.facts().client_hello.as_ref()?.server_name.as_deref()
    }

    /// When that side said that it closes, in nanoseconds since 1970.
    pub(super) fn goodbye_at(&self, side: Side) -> Option<u64> {
        let inner = self.inner();
        let told = match side {
            Side::Client => inner.client_close_notify_at,
            Side::Server => inner.server_close_notify_at,
        };
        let is_goodbye =
            |alert: &&intact_wire::tls::Alert| alert.from == side && alert.description == 0;
        let plain = self.facts().alerts.iter().find(is_goodbye);
        told.or(plain.map(|alert| alert.at))
    }

    /// What the ledger keeps of it.
    pub(super) fn describe(&self) -> intact_ledger::Tls {
        let facts = self.facts();
        let mut tls = intact_ledger::Tls::default();
        if let Some(hello) = &facts.client_hello {
            tls.server_name = hello.server_name.as_deref().map(Into::into);
            tls.alpn_offered = Some(hello.alpn.iter().map(|name| word(name)).collect());
            let session = !hello.session_id.is_empty() && hello.highest_version() < TLS13;
            let ticket = hello.ticket_len.is_some_and(|len| len > 0);
            tls.resumption_offered = Some(session || ticket || hello.psk_identities > 0);
        }
        if let Some(hello) = &facts.server_hello {
            tls.version = TlsVersion::numbered(hello.version());
            tls.cipher = Some(suite_name(hello.cipher_suite).into());
            tls.alpn_chosen = hello.alpn.as_deref().map(word);
        }
        if let Some(alpn) = &self.inner().alpn {
            tls.alpn_chosen = Some(word(alpn));
        }
        tls.handshake = facts.mode.map(|mode| match mode {
            Mode::Full => Handshake::Full,
            Mode::Resumed => Handshake::Resumed,
        });
        // in TLS 1.3 tickets are encrypted: without keys their number is not known
        if self.is_readable() || facts.version() == Some(TLS12) {
            tls.tickets = Some(facts.tickets.max(self.inner().tickets));
        }
        tls
    }

    /// Why the handshake failed, if the connection ended before it was over.
    pub(super) fn failure(&self) -> Option<DialFailure> {
        if self.finished().is_some() || self.facts().client_hello.is_none() {
            return None;
        }
        let fatal = self.facts().alerts.iter().find(|alert| alert.level == 2);
        // alerts by their numbers in RFC 8446 section 6
        let kind = match fatal.map(|alert| alert.description) {
            Some(40 | 70 | 71) => Failure::TlsVersion,
            Some(42..=44) => Failure::Certificate,
            Some(45) => Failure::CertificateExpired,
            Some(46 | 48) => Failure::CertificateUnknown,
            Some(112) => Failure::CertificateName,
            Some(120) => Failure::TlsAlpn,
            Some(_) => Failure::TlsAlert,
            None if self.lost[Side::Server as usize] && self.facts().server_hello.is_none() => {
                Failure::NotTls
            }
            None => Failure::ConnectReset,
        };
        Some(DialFailure {
            phase: SetupPhase::Ssl,
            kind,
            detail: fatal.map(|alert| {
                let by = match alert.from {
                    Side::Client => "client",
                    Side::Server => "server",
                };
                format!("alert {} by the {by}", alert.description).into()
            }),
        })
    }
}

fn word(name: &[u8]) -> Arc<str> {
    String::from_utf8_lossy(name).into()
}
