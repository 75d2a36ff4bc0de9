//! TLS on a relayed connection: what its hellos tell, its plain text where the program logged its keys, and where it did
//! not, the marks that turns of talk are counted by.

use super::record_sizes::{HandshakePosition, RecordBurst, RecordSizes, Sizes};
use super::run_context::RunContext;
use intact_ledger::{
    CloseKind, Connection, DialFailure, Failure, Handshake, Nanos, SetupPhase, Span, Tls,
    TlsVersion,
};
use intact_wire::Side;
use intact_wire::tls::decrypt::{Decryptor, KeyLog, Plain, Status};
use intact_wire::tls::{ClientHello, Mode, TLS12, TLS13, suite_name};
use std::sync::Arc;

/// Encrypted bytes of each direction that wait for keys.
const MAX_WAITING: usize = 256 * 1024;
/// Keys that have not come this long after the handshake will not, in nanoseconds. Node writes them late.
const KEYS_LATE: u64 = 2_000_000_000;
/// The payload of an encrypted alert in TLS 1.3: two bytes, their type, the tag; and what the JDK adds.
const ALERT_LENS: [u64; 2] = [19, 35];

/// The TLS of one connection.
pub(super) struct TlsConnection {
    decryptor: Decryptor,
    keys: KeyLog,
    access: Access,
    /// The process in whose memory secrets may be looked for: as long as none were, and none were logged.
    searchable: Option<u32>,
    /// Both sides were read in plain: no more keys are looked for.
    settled: [bool; 2],
    waiting: Vec<Mark>,
    /// How often the program and the server have said something since the handshake.
    said: [u8; 2],
    /// The program began with the preface of HTTP/2, and nothing else.
    is_http2: bool,
    /// The first that the program said was that preface alone: its settings follow.
    is_preface_alone: bool,
    plain: Vec<Piece>,
    /// Who seems to have said `close_notify` first, told by the size of the record.
    farewell: Option<Side>,
}

/// Whether the plain text can be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Keys may still come.
    Hoped,
    /// It is being read.
    Open,
    /// Not; turns of talk are counted instead, for this reason.
    Shut(&'static str),
}

/// Application data that passed encrypted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    pub(super) from: Side,
    pub(super) at: u64,
    /// Encrypted bytes.
    pub(super) bytes: u64,
    pub(super) shape: RecordSizes,
}

/// Plain text, in the order of its arrival.
pub(super) struct Piece {
    pub(super) from: Side,
    pub(super) at: u64,
    pub(super) bytes: Vec<u8>,
}

impl TlsConnection {
    pub(super) fn new(keys_wanted: bool, process: Option<u32>) -> TlsConnection {
        TlsConnection {
            searchable: process.filter(|_| keys_wanted),
            decryptor: Decryptor::new(if keys_wanted { MAX_WAITING } else { 0 }),
            keys: KeyLog::default(),
            access: if keys_wanted {
                Access::Hoped
            } else {
                Access::Shut("TLS without keys (--keys off)")
            },
            settled: [false; 2],
            waiting: Vec::new(),
            said: [0; 2],
            is_http2: false,
            is_preface_alone: false,
            plain: Vec::new(),
            farewell: None,
        }
    }

    pub(super) fn access(&self) -> Access {
        self.access
    }

    /// Takes the next bytes of one side. What became readable is in [`TlsConnection::take_plain`] afterwards, what stays hidden
    /// in [`TlsConnection::take_marks`].
    pub(super) fn read(&mut self, from: Side, bytes: &[u8], at: u64, books: &mut RunContext<'_>) {
        let before = self.traffic(from);
        let alerts = self.decryptor.facts().encrypted_alerts;
        let finished = self.decryptor.facts().finished.is_some();
        self.fetch_keys(books);
        let plain = &mut self.plain;
        // a direction that is no TLS any more is not read on; its bytes are counted all the same
        let _ = self
            .decryptor
            .read(&self.keys, from, bytes, at, |piece| keep(plain, piece));
        // the keys may have come while the bytes were on their way
        if self.access == Access::Hoped && self.plain.is_empty() {
            self.look_again(books);
        }
        if self.access == Access::Hoped && self.plain.is_empty() {
            self.seek_keys(books);
        }
        if self.decryptor.facts().encrypted_alerts > alerts {
            self.farewell.get_or_insert(from);
        }
        if self.access != Access::Open {
            self.mark(from, before, finished, at);
        }
        self.judge();
    }

    /// Looks for keys that came late.
    pub(super) fn look_again(&mut self, books: &mut RunContext<'_>) {
        if self.fetch_keys(books) {
            let plain = &mut self.plain;
            self.decryptor.retry(&self.keys, |piece| keep(plain, piece));
            self.judge();
        }
    }

    /// Whether its secrets are being looked for.
    pub(super) fn awaits_keys(&self, books: &RunContext<'_>) -> bool {
        let hello = self.decryptor.facts().client_hello.as_ref();
        self.access == Access::Hoped && hello.is_some_and(|hello| books.seeks(&hello.random))
    }

    /// Gives up on keys that have not come in time, or when all is `over`.
    pub(super) fn give_up(&mut self, now: u64, over: bool) {
        let late = self
            .decryptor
            .facts()
            .finished
            .is_some_and(|finished| now.saturating_sub(finished.at) > KEYS_LATE);
        self.judge();
        if self.access == Access::Hoped && (late || over) {
            self.access =
                Access::Shut("TLS whose keys the program neither logged nor showed in its memory");
            self.decryptor.give_up();
        }
    }

    /// What was read in plain since the last time.
    pub(super) fn take_plain(&mut self) -> Vec<Piece> {
        let mut plain = std::mem::take(&mut self.plain);
        // what waited for keys comes side by side
        if plain.len() > 1 {
            plain.sort_by_key(|piece| piece.at);
        }
        plain
    }

    /// What passed unread; nothing while keys may still come.
    pub(super) fn take_marks(&mut self) -> Vec<Mark> {
        match self.access {
            Access::Hoped => Vec::new(),
            _ => std::mem::take(&mut self.waiting),
        }
    }

    /// Fetches new keys; whether there were any.
    fn fetch_keys(&mut self, books: &mut RunContext<'_>) -> bool {
        if matches!(self.access, Access::Shut(_)) || self.settled == [true; 2] {
            return false;
        }
        let Some(hello) = &self.decryptor.facts().client_hello else {
            return false;
        };
        let lines = books.keys_of(&hello.random);
        for line in &lines {
            // a line that is none is the program's affair
            let _ = self.keys.add_line(line);
        }
        let any = !lines.is_empty();
        if any {
            self.searchable = None;
        }
        any
    }

    /// Has keys that were not logged looked for, once there is something to try them on.
    fn seek_keys(&mut self, books: &mut RunContext<'_>) {
        if let Some(process) = self.searchable {
            let locks = self.decryptor.locks();
            if !locks.is_empty() {
                self.searchable = None;
                books.seek(process, locks);
            }
        }
    }

    fn traffic(&self, from: Side) -> (u64, u64) {
        let traffic = self.decryptor.facts().of(from);
        (traffic.records, traffic.bytes)
    }

    /// Notes encrypted application data that passed: not the handshake, not the farewell.
    fn mark(&mut self, from: Side, before: (u64, u64), finished: bool, at: u64) {
        let now = self.traffic(from);
        let facts = self.decryptor.facts();
        let is_13 = facts.version() == Some(TLS13);
        let (mut records, mut bytes) = (now.0 - before.0, now.1 - before.1);
        if is_13 && !finished {
            // the server's part is handshake until then; the client's begins with its Finished
            records = match from {
                Side::Server => 0,
                Side::Client if facts.finished.is_some() => records.saturating_sub(1),
                Side::Client => 0,
            };
            bytes -= facts.client_data.first_len.unwrap_or(0).min(bytes);
        }
        if records == 0 {
            return;
        }
        let said = &mut self.said[usize::from(from == Side::Server)];
        let place = match (from, *said) {
            (Side::Client, 1) if self.is_preface_alone => HandshakePosition::AfterPreface,
            // a server says its tickets first
            (Side::Client, 0) | (Side::Server, 0 | 1) => HandshakePosition::Opening,
            _ => HandshakePosition::Later,
        };
        *said = said.saturating_add(1);
        let speech = RecordBurst {
            from,
            records,
            bytes,
            last: facts.of(from).last_len.unwrap_or(0),
        };
        let sizes = Sizes::of(facts);
        let mut shape = sizes.map_or(RecordSizes::Data, |sizes| sizes.shape(speech, place));
        if place == HandshakePosition::Opening && from == Side::Client {
            self.is_preface_alone = sizes.is_some_and(|sizes| sizes.is_preface_alone(speech));
        }
        if place != HandshakePosition::Later && shape == RecordSizes::Control {
            self.is_http2 |= from == Side::Client;
        } else if self.is_http2 && from == Side::Server && *said == 1 && records == 1 {
            // tickets: settings come before answers
            shape = RecordSizes::Control;
        }
        if shape == RecordSizes::Farewell {
            self.farewell.get_or_insert(from);
        } else if self.waiting.len() < MAX_WAITING {
            // it was data after all
            self.farewell = self.farewell.filter(|side| *side != from);
            self.waiting.push(Mark {
                from,
                at,
                bytes,
                shape,
            });
        }
    }

    fn judge(&mut self) {
        for piece in &self.plain {
            self.settled[usize::from(piece.from == Side::Server)] = true;
        }
        if self.access != Access::Hoped {
            return;
        }
        self.access = match self.decryptor.status() {
            _ if !self.plain.is_empty() => Access::Open,
            Status::Waiting | Status::Reading => return,
            Status::UnsupportedSuite(_) => Access::Shut("TLS with a cipher that is not read here"),
            Status::UnsupportedVersion(_) => {
                Access::Shut("TLS older than 1.2, which is not read here")
            }
            Status::GaveUp => Access::Shut("TLS that carried much before its keys were found"),
        };
        if self.access == Access::Open {
            self.waiting.clear();
        }
    }

    /// Writes what is known into the connection; whether that changed it.
    pub(super) fn describe(&self, about: &mut Connection) -> bool {
        let facts = self.decryptor.facts();
        let inner = self.decryptor.inner();
        let server = facts.server_hello.as_ref();
        let hello = facts.client_hello.as_ref();
        let version = server.map(intact_wire::tls::ServerHello::version);
        let alpn_chosen = inner
            .alpn
            .as_ref()
            .or(server.and_then(|server| server.alpn.as_ref()));
        let tickets = match version {
            Some(TLS13) => (self.access == Access::Open).then_some(inner.tickets),
            Some(_) => Some(facts.tickets),
            None => None,
        };
        let tls = Tls {
            version: version.and_then(TlsVersion::numbered),
            cipher: server.map(|server| suite_name(server.cipher_suite).into()),
            server_name: hello.and_then(|hello| hello.server_name.as_deref().map(Arc::from)),
            alpn_offered: hello.map(|hello| hello.alpn.iter().map(|name| text(name)).collect()),
            alpn_chosen: alpn_chosen.map(|name| text(name)),
            handshake: facts.mode.map(|mode| match mode {
                Mode::Full => Handshake::Full,
                Mode::Resumed => Handshake::Resumed,
            }),
            resumption_offered: hello.map(offers_to_resume),
            tickets,
            client_hint: hello.map(hint),
        };
        let finished = inner.finished.or(facts.finished).filter(|_| self.is_up());
        let ssl = facts
            .started_at
            .zip(finished)
            .map(|(start, finished)| Span::new(Nanos(start), Nanos(finished.at)));
        let changed = about.tls.as_ref() != Some(&tls) || about.setup.ssl != ssl;
        about.tls = Some(tls);
        about.setup.ssl = ssl;
        changed
    }

    /// Whether the handshake is over.
    pub(super) fn is_up(&self) -> bool {
        let facts = self.decryptor.facts();
        // in TLS 1.3 a client that refuses the certificate says so encrypted, where its Finished would be
        let refused = facts.version() == Some(TLS13)
            && facts.client_data.records == 1
            && ALERT_LENS.contains(&facts.client_data.bytes);
        self.decryptor.inner().finished.is_some() || facts.finished.is_some() && !refused
    }

    /// Why there was no handshake, of a connection that is over.
    pub(super) fn failure(
        &self,
        ended: Option<(intact_ledger::Side, CloseKind)>,
    ) -> Option<DialFailure> {
        let facts = self.decryptor.facts();
        if self.is_up() {
            return None;
        }
        let fatal = facts.alerts.iter().find(|alert| alert.level == 2);
        let (kind, detail) = match (fatal, ended) {
            (Some(alert), _) => {
                let by = match alert.from {
                    Side::Client => "the program",
                    Side::Server => "the server",
                };
                let detail = format!("{by} sent alert {}", alert.description);
                (of_alert(alert.description), detail)
            }
            (None, Some((intact_ledger::Side::Client, _))) if facts.server_hello.is_some() => (
                Failure::TlsAlert,
                "the program ended the handshake; why is encrypted".to_owned(),
            ),
            (None, Some((intact_ledger::Side::Server, CloseKind::Rst))) => {
                (Failure::ConnectReset, "reset in the handshake".to_owned())
            }
            (None, Some((intact_ledger::Side::Server, _))) if facts.server_hello.is_none() => (
                Failure::NotTls,
                "the server ended without a ServerHello".to_owned(),
            ),
            (None, Some((intact_ledger::Side::Client, _))) => (
                Failure::Aborted,
                "the program gave up before the server's answer".to_owned(),
            ),
            (None, _) => (Failure::Tls, "cut off in the handshake".to_owned()),
        };
        Some(DialFailure {
            phase: SetupPhase::Ssl,
            kind,
            detail: Some(detail.into()),
        })
    }

    /// Who was the first to say under encryption that it closes.
    pub(super) fn first_goodbye(&self) -> Option<Side> {
        let inner = self.decryptor.inner();
        match (inner.client_close_notify_at, inner.server_close_notify_at) {
            (Some(client), Some(server)) if server < client => Some(Side::Server),
            (Some(_), _) => Some(Side::Client),
            (None, Some(_)) => Some(Side::Server),
            (None, None) => self.farewell,
        }
    }

    /// Whether the last that passed unread came from the program.
    pub(super) fn is_asking(&self) -> bool {
        self.waiting
            .last()
            .is_some_and(|mark| mark.from == Side::Client)
    }
}

/// The ledger's kind of an alert (RFC 8446 section 6).
fn of_alert(description: u8) -> Failure {
    match description {
        40 | 70 | 71 => Failure::TlsVersion,
        45 => Failure::CertificateExpired,
        48 => Failure::CertificateUnknown,
        42..=44 | 46 => Failure::Certificate,
        120 => Failure::TlsAlpn,
        _ => Failure::TlsAlert,
    }
}

fn keep(plain: &mut Vec<Piece>, piece: Plain<'_>) {
    plain.push(Piece {
        from: piece.from,
        at: piece.at,
        bytes: piece.bytes.to_vec(),
    });
}

fn text(name: &[u8]) -> Arc<str> {
    String::from_utf8_lossy(name).into()
}

/// In TLS 1.3 a pre-shared key, before it a ticket or a session id.
fn offers_to_resume(hello: &ClientHello) -> bool {
    let is_13 = hello.highest_version() >= TLS13;
    hello.psk_identities > 0
        || hello.ticket_len.is_some_and(|len| len > 0)
        || (!is_13 && !hello.session_id.is_empty())
}

/// The readable part of a JA4 fingerprint: transport, version, whether a name is asked for, how many suites and
/// extensions, the first protocol offered.
fn hint(hello: &ClientHello) -> Arc<str> {
    let is_real = |number: &&u16| **number & 0x0f0f != 0x0a0a;
    let count = |numbers: &[u16]| numbers.iter().filter(is_real).count().min(99);
    let version = match hello.highest_version() {
        TLS13 => "13",
        TLS12 => "12",
        0x0302 => "11",
        0x0301 => "10",
        _ => "00",
    };
    let named = if hello.server_name.is_some() {
        'd'
    } else {
        'i'
    };
    let alpn = hello.alpn.first().filter(|name| name.is_ascii());
    let ends = alpn
        .and_then(|name| Some((*name.first()?, *name.last()?)))
        .filter(|(first, last)| first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric())
        .map_or(('0', '0'), |(first, last)| {
            (char::from(first), char::from(last))
        });
    format!(
        "t{version}{named}{:02}{:02}{}{}",
        count(&hello.cipher_suites),
        count(&hello.extensions),
        ends.0,
        ends.1
    )
    .into()
}
