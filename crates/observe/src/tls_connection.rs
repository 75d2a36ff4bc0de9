//! TLS on an observed connection: the handshake, and the decrypted data if secrets are known.
//! Without secrets, the bursts of records, from which requests are inferred.

use crate::record_sizes::{HandshakePosition, RecordBurst, RecordSizes, Sizes};
use crate::request_inference::SealedBurst;
use crate::run_context::RunContext;
use crate::{Side, TlsReading, tls_facts};
use intact_ledger::{Connection, DialFailure, Nanos, Span};
use intact_wire::tls::decrypt::{Decryptor, KeyLog, Status};
use intact_wire::tls::{TLS13, Traffic};

/// Default limit of encrypted bytes per direction that wait for secrets.
pub(crate) const MAX_WAITING: usize = 256 * 1024;
/// Limit of bursts that wait until it is known whether there are secrets.
const MAX_BURSTS: usize = 256 * 1024;
/// Secrets that are missing this long after the handshake will not arrive, in nanoseconds. Node
/// writes them late.
const SECRETS_LATE: u64 = 2_000_000_000;
/// Payload lengths of an encrypted alert in TLS 1.3: two bytes, the content type and the tag;
/// without and with the JDK's padding.
const ALERT_LENS: [u64; 2] = [19, 35];

/// Time after the client's Finished within which a server that refuses it sends its alert, in
/// nanoseconds. An alert that comes later is the `close_notify` of an idle connection.
const REFUSED_SOON: u64 = 1_000_000_000;

/// The TLS of one connection.
pub(crate) struct TlsConnection {
    reading: TlsReading,
    decryptor: Decryptor,
    /// Limit of encrypted bytes per direction that wait for secrets.
    max_waiting: usize,
    keys: KeyLog,
    access: Access,
    /// The process whose memory may be searched for secrets, until a search has begun or secrets
    /// were logged.
    searchable: Option<u32>,
    /// Both directions were decrypted: no more secrets are needed.
    is_read: [bool; 2],
    /// Directions that cannot be read any further: bytes are missing, or they are not TLS.
    is_lost: [bool; 2],
    /// Bursts that wait until it is known whether there are secrets.
    pub(crate) waiting: Vec<SealedBurst>,
    /// Number of bursts of the client and the server since the handshake.
    bursts: [u8; 2],
    /// The client's first bytes were the preface of HTTP/2, or the server chose HTTP/2.
    is_http2: bool,
    /// A burst had the size of a frame of HTTP/2 without a request and a response.
    has_frames: bool,
    /// The client's first burst was only that preface: its SETTINGS follow.
    is_preface_alone: bool,
    plain: PlainText,
    /// The side that apparently sent `close_notify` first, by the size of the record, and when.
    inferred_close: Option<(Side, u64)>,
}

/// Whether the plain text is available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Secrets may still arrive.
    Hoped,
    /// It is being decrypted.
    Open,
    /// It is not available, for this reason.
    Shut(&'static str),
}

/// Why the TLS of an ended connection was not decrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sealed {
    /// There are no secrets for it.
    NoSecrets,
    /// Its secrets do not decrypt its records.
    WrongSecrets,
    /// The suite is not supported.
    Suite(u16),
    /// The version is not supported.
    Version(u16),
    /// Its records are compressed.
    Compressed,
    /// Its handshake was not observed.
    NoHandshake,
    /// Bytes are missing, and no record can be found after them.
    BytesMissing,
}

/// Plain text and its pieces, in order of arrival.
#[derive(Default)]
pub(crate) struct PlainText {
    bytes: Vec<u8>,
    pieces: Vec<Piece>,
}

/// A piece of plain text within its buffer.
#[derive(Clone, Copy, Debug)]
struct Piece {
    from: Side,
    at: u64,
    start: usize,
    end: usize,
}

impl PlainText {
    /// The pieces: the sender, the time, and the bytes.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Side, u64, &[u8])> {
        let pieces = self.pieces.iter();
        pieces.map(|piece| (piece.from, piece.at, &self.bytes[piece.start..piece.end]))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    fn keep(&mut self, from: Side, bytes: &[u8], at: u64) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.pieces.push(Piece {
            from,
            at,
            start,
            end: self.bytes.len(),
        });
    }
}

impl TlsConnection {
    /// `max_waiting`: limit of encrypted bytes per direction that wait for secrets.
    pub(crate) fn new(reading: TlsReading, max_waiting: usize) -> TlsConnection {
        let expects = reading.expects_secrets;
        TlsConnection {
            reading,
            decryptor: Decryptor::new(if expects { max_waiting } else { 0 }),
            max_waiting,
            keys: KeyLog::default(),
            access: if expects {
                Access::Hoped
            } else {
                Access::Shut("TLS without keys (--keys off)")
            },
            searchable: reading.process.filter(|_| expects),
            is_read: [false; 2],
            is_lost: [false; 2],
            waiting: Vec::new(),
            bursts: [0; 2],
            is_http2: false,
            has_frames: false,
            is_preface_alone: false,
            plain: PlainText::default(),
            inferred_close: None,
        }
    }

    pub(crate) fn access(&self) -> Access {
        self.access
    }

    /// Reads the next bytes of one side. Afterwards [`TlsConnection::take_plain`] has the decrypted
    /// data, and [`TlsConnection::take_bursts`] the rest. Returns whether the records follow those
    /// before them: where others were decrypted, these can be, too.
    pub(crate) fn read(
        &mut self,
        from: Side,
        bytes: &[u8],
        at: u64,
        run: &mut dyn RunContext,
    ) -> bool {
        if self.is_lost[from as usize] {
            return true;
        }
        let was_read = self.is_read[from as usize];
        let undecryptable = self.decryptor.inner().undecryptable;
        let before = self.traffic(from);
        let alerts = self.decryptor.facts().encrypted_alerts;
        let was_finished = self.decryptor.facts().finished_at.is_some();
        self.fetch_secrets(run);
        let plain = &mut self.plain;
        let read = self.decryptor.read(&self.keys, from, bytes, at, |text| {
            plain.keep(text.from, text.bytes, text.at);
        });
        self.is_lost[from as usize] = read.is_err();
        // secrets may have arrived while the bytes were on their way
        if self.access == Access::Hoped && self.plain.is_empty() {
            self.look_again(run);
        }
        if self.access == Access::Hoped && self.plain.is_empty() {
            self.search_secrets(run);
        }
        if self.decryptor.facts().encrypted_alerts > alerts {
            self.inferred_close.get_or_insert((from, at));
        }
        if self.access != Access::Open && self.reading.infers_requests {
            self.note_burst(from, before, was_finished, at);
        }
        self.decide();
        !was_read || self.decryptor.inner().undecryptable == undecryptable
    }

    /// The process has become known whose memory may be searched for secrets.
    pub(crate) fn note_process(&mut self, process: u32) {
        if self.reading.expects_secrets && self.keys.is_empty() {
            self.searchable = Some(process);
        }
    }

    /// Records missing bytes: records cannot be found after them.
    pub(crate) fn lose(&mut self, from: Side) {
        self.is_lost[from as usize] = true;
    }

    /// Looks for late secrets.
    pub(crate) fn look_again(&mut self, run: &mut dyn RunContext) {
        // its process may have become known after its last record
        if self.access == Access::Hoped && self.plain.is_empty() {
            self.search_secrets(run);
        }
        if self.fetch_secrets(run) {
            let plain = &mut self.plain;
            self.decryptor.retry(&self.keys, |text| {
                plain.keep(text.from, text.bytes, text.at);
            });
            self.decide();
        }
    }

    /// Whether a search for its secrets is running.
    pub(crate) fn awaits_secrets(&self, run: &dyn RunContext) -> bool {
        let hello = self.decryptor.facts().client_hello.as_ref();
        self.access == Access::Hoped && hello.is_some_and(|hello| run.is_searching(&hello.random))
    }

    /// Whether the sender must pause: the bytes of that side that wait for a running search for
    /// secrets have reached half of their limit.
    pub(crate) fn is_crowded(&self, from: Side, run: &dyn RunContext) -> bool {
        self.decryptor.waiting(from) >= self.max_waiting / 2 && self.awaits_secrets(run)
    }

    /// Stops waiting for secrets if their time is over, or if the connection `is_over`.
    pub(crate) fn give_up(&mut self, now: u64, is_over: bool) {
        let is_late = self
            .decryptor
            .facts()
            .finished_at
            .is_some_and(|finished| now.saturating_sub(finished) > SECRETS_LATE);
        self.decide();
        if self.access == Access::Hoped && (is_late || is_over) {
            self.access =
                Access::Shut("TLS whose keys the program neither logged nor showed in its memory");
            self.decryptor.give_up();
        }
    }

    /// The data that was decrypted since the last call.
    pub(crate) fn take_plain(&mut self) -> PlainText {
        let mut plain = std::mem::take(&mut self.plain);
        // data that waited for secrets is decrypted one direction after the other
        plain.pieces.sort_by_key(|piece| piece.at);
        plain
    }

    /// Returns a buffer for the next plain text.
    pub(crate) fn reuse(&mut self, mut plain: PlainText) {
        plain.bytes.clear();
        plain.pieces.clear();
        if self.plain.is_empty() {
            self.plain = plain;
        }
    }

    /// Bursts that were not decrypted; none while secrets may still arrive.
    pub(crate) fn take_bursts(&mut self) -> Vec<SealedBurst> {
        match self.access {
            Access::Hoped => Vec::new(),
            _ => std::mem::take(&mut self.waiting),
        }
    }

    /// The bytes as a record that follows those of the server; `None` if that is impossible.
    pub(crate) fn seal_by_server(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        self.decryptor.seal_by_server(bytes)
    }

    /// Whether the last byte of that side ended a record.
    pub(crate) fn is_between_records(&self, side: Side) -> bool {
        self.decryptor.is_between_records(side)
    }

    /// Fetches new secrets. Returns whether there were any.
    fn fetch_secrets(&mut self, run: &mut dyn RunContext) -> bool {
        if matches!(self.access, Access::Shut(_)) || self.is_read == [true; 2] {
            return false;
        }
        let Some(hello) = &self.decryptor.facts().client_hello else {
            return false;
        };
        let has_new = run.add_secrets(&hello.random, &mut self.keys);
        if has_new {
            self.searchable = None;
        }
        has_new
    }

    /// Starts a search for secrets that were not logged, as soon as a record can test them.
    fn search_secrets(&mut self, run: &mut dyn RunContext) {
        if let Some(process) = self.searchable {
            let checks = self.decryptor.locks();
            if !checks.is_empty() {
                self.searchable = None;
                run.search_secrets(process, checks);
            }
        }
    }

    fn traffic(&self, from: Side) -> (u64, u64) {
        let traffic = self.decryptor.facts().of(from);
        (traffic.records, traffic.bytes)
    }

    /// Records a burst of encrypted application data that is neither part of the handshake nor the
    /// `close_notify`.
    fn note_burst(&mut self, from: Side, before: (u64, u64), was_finished: bool, at: u64) {
        let now = self.traffic(from);
        let facts = self.decryptor.facts();
        let (mut records, mut bytes) = (now.0 - before.0, now.1 - before.1);
        if facts.version() == Some(TLS13) && !was_finished {
            // the server's data is handshake until then; the client's begins with its Finished
            let handshake = &facts.client_handshake;
            (records, bytes) = match from {
                Side::Client if facts.finished_at.is_some() => {
                    (now.0 - handshake.records, now.1 - handshake.bytes)
                }
                _ => (0, 0),
            };
        }
        // before the ServerHello it is not known whether the server takes early data. If it does,
        // the first responses come within the handshake
        let is_early = facts.client_hello.is_some() && facts.server_hello.is_none();
        if records == 0 || is_early || facts.has_early_data {
            return;
        }
        let count = &mut self.bursts[from as usize];
        let position = match (from, *count) {
            (Side::Client, 1) if self.is_preface_alone => HandshakePosition::AfterPreface,
            // a server sends its tickets first
            (Side::Client, 0) | (Side::Server, 0 | 1) => HandshakePosition::Opening,
            _ => HandshakePosition::Later,
        };
        *count = count.saturating_add(1);
        let burst = RecordBurst {
            from,
            records,
            bytes,
            last: facts.of(from).last_len.unwrap_or(0),
        };
        let known = Sizes::of(facts);
        self.is_http2 |= known.is_some_and(|known| known.shows_http2(facts));
        let mut sizes = known.map_or(RecordSizes::Data, |known| known.shape(burst, position));
        if position == HandshakePosition::Opening && from == Side::Client {
            self.is_preface_alone = known.is_some_and(|known| known.is_preface_alone(burst));
        }
        if position != HandshakePosition::Later && sizes == RecordSizes::Control {
            self.is_http2 |= from == Side::Client;
        } else if self.is_http2 && from == Side::Server && *count == 1 && records == 1 {
            // tickets: SETTINGS precede responses
            sizes = RecordSizes::Control;
        }
        self.has_frames |= sizes == RecordSizes::Control;
        let is_http2 = self.is_http2 || self.has_frames;
        if sizes == RecordSizes::Updates && !is_http2 {
            sizes = RecordSizes::Data;
        }
        if sizes == RecordSizes::Close {
            self.inferred_close.get_or_insert((from, at));
        } else if self.waiting.len() < MAX_BURSTS {
            // it was data, because more follows
            self.inferred_close = self.inferred_close.filter(|(side, _)| *side != from);
            self.waiting.push(SealedBurst {
                from,
                at,
                bytes,
                sizes,
                is_http2,
                // SETTINGS may precede the first
                is_single: records == 1 || position != HandshakePosition::Later,
            });
        }
    }

    fn decide(&mut self) {
        for piece in &self.plain.pieces {
            self.is_read[piece.from as usize] = true;
        }
        if self.access != Access::Hoped {
            return;
        }
        self.access = match self.decryptor.status() {
            _ if !self.plain.is_empty() => Access::Open,
            Status::Waiting | Status::Reading => return,
            Status::UnsupportedSuite(_) => Access::Shut("TLS with a cipher that is not read here"),
            Status::UnsupportedVersion(_) => {
                Access::Shut("TLS older than 1.0, which is not read here")
            }
            Status::Compressed => Access::Shut("TLS with compression, which is not read here"),
            Status::GaveUp => Access::Shut("TLS that carried much before its keys were found"),
        };
        if self.access == Access::Open {
            self.waiting.clear();
        }
    }

    /// Why no record was decrypted.
    pub(crate) fn sealed(&self) -> Sealed {
        let facts = self.decryptor.facts();
        let is_lost = self.is_lost.contains(&true);
        match self.decryptor.unsupported() {
            Some(Status::UnsupportedSuite(suite)) => Sealed::Suite(suite),
            Some(Status::UnsupportedVersion(version)) => Sealed::Version(version),
            Some(Status::Compressed) => Sealed::Compressed,
            _ if facts.client_hello.is_none() && !is_lost => Sealed::NoHandshake,
            _ if (self.keys.is_empty() || self.hides_early_data()) && !is_lost => Sealed::NoSecrets,
            _ if is_lost => Sealed::BytesMissing,
            _ if facts.server_hello.is_none() => Sealed::NoHandshake,
            _ => Sealed::WrongSecrets,
        }
    }

    /// Whether secrets decrypt at least one direction.
    pub(crate) fn is_decrypted(&self) -> bool {
        self.decryptor.status() == Status::Reading
    }

    /// Copies the facts to the connection. Returns whether that changed it. The handshake begins
    /// when the transport is established.
    pub(crate) fn describe(&self, connection: &mut Connection) -> bool {
        let facts = self.decryptor.facts();
        let tls = tls_facts::describe(facts, self.decryptor.inner(), self.is_decrypted());
        let finished = self.finished().filter(|_| self.is_up());
        let ssl = facts.started_at.zip(finished).map(|(hello, finished)| {
            let connected = connection.setup.connect.map(|connect| connect.end);
            Span::new(connected.unwrap_or(Nanos(hello)), Nanos(finished))
        });
        let has_changed = connection.tls.as_ref() != Some(&tls) || connection.setup.ssl != ssl;
        connection.tls = Some(tls);
        connection.setup.ssl = ssl;
        has_changed
    }

    /// Whether records do not show the requests: a server that takes early data responds within the
    /// handshake.
    pub(crate) fn hides_requests(&self) -> bool {
        let facts = self.decryptor.facts();
        facts.offers_early_data() && (facts.has_early_data || facts.finished_at.is_none())
    }

    /// Whether no key decrypted early data that the server took: their requests are not known.
    pub(crate) fn hides_early_data(&self) -> bool {
        self.decryptor.facts().has_early_data && self.decryptor.inner().undecryptable > 0
    }

    fn finished(&self) -> Option<u64> {
        let facts = self.decryptor.facts();
        self.decryptor.inner().finished_at.or(facts.finished_at)
    }

    /// Whether the handshake succeeded.
    fn is_up(&self) -> bool {
        let has_finished = self.finished().is_some();
        has_finished && self.refused_by().is_none()
    }

    /// The side that ended the handshake although both Finished may have been sent: by an alert,
    /// before the server sent anything else. A server of TLS 1.3 checks the client's Finished and
    /// certificate when the client may have sent requests already. None of them was executed.
    pub(crate) fn refused_by(&self) -> Option<Side> {
        let (facts, inner) = (self.decryptor.facts(), self.decryptor.inner());
        if self.is_read[Side::Server as usize] || inner.tickets > 0 {
            return None;
        }
        let alert = inner.fatal_alert;
        if let Some(alert) = alert.filter(|alert| !self.is_read[alert.from as usize]) {
            return Some(alert.from);
        }
        let is_alert = |data: &Traffic| data.records == 1 && ALERT_LENS.contains(&data.bytes);
        let finished = facts
            .finished_at
            .filter(|_| facts.version() == Some(TLS13))?;
        if inner.finished_at.is_none() && is_alert(&facts.client_data) {
            // where its Finished would be: it refuses the certificate
            return Some(Side::Client);
        }
        let after = &facts.server_data_after;
        let is_soon = after.last_at.is_some_and(|at| is_refusal(at, finished));
        // a server that took early data has closed, and one that refused them has gone on
        let is_sealed = inner.server_close_notify_at.is_none() && !facts.offers_early_data();
        (is_sealed && is_soon && is_alert(after)).then_some(Side::Server)
    }

    /// Why an ended connection has no TLS; `None` if the handshake succeeded, or its start was not
    /// observed.
    pub(crate) fn failure(&self, end: Option<crate::FirstEnd>) -> Option<DialFailure> {
        let facts = self.decryptor.facts();
        let is_foreign = self.is_lost[Side::Server as usize] && facts.server_hello.is_none();
        if self.is_up() || facts.client_hello.is_none() {
            return None;
        }
        let inner = self.decryptor.inner();
        let plain = facts.alerts.iter().find(|alert| alert.level == 2);
        let last = facts.client_data.last_len;
        let is_alert = plain.is_some() || last.is_some_and(|len| ALERT_LENS.contains(&len));
        if facts.offers_early_data() && facts.server_hello.is_some() && !is_alert {
            // the Finished of a client with a certificate is not found among its early data
            return None;
        }
        let ended = tls_facts::HandshakeEnd {
            alert: plain.copied().or(inner.fatal_alert),
            refused_by: self.refused_by(),
            is_foreign,
            end,
        };
        Some(tls_facts::failure(facts, ended))
    }

    /// When that side sent `close_notify`, or apparently did, in nanoseconds.
    pub(crate) fn close_notify_at(&self, side: Side) -> Option<u64> {
        let inner = self.decryptor.inner();
        let decrypted = side.pick(inner.client_close_notify_at, inner.server_close_notify_at);
        let mut alerts = self.decryptor.facts().alerts.iter();
        let plain = alerts.find(|alert| alert.from == side && alert.description == 0);
        let inferred = self.inferred_close.filter(|(from, _)| *from == side);
        decrypted
            .or(plain.map(|alert| alert.at))
            .or(inferred.map(|(_, at)| at))
    }
}

/// Whether a record of the server at this time may refuse the handshake that finished at another
/// one: one that came before the client's Finished does not.
fn is_refusal(at: u64, finished: u64) -> bool {
    let later = at.checked_sub(finished);
    later.is_some_and(|later| later <= REFUSED_SOON)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_before_the_clients_finished_refuses_nothing() {
        assert!(is_refusal(7, 7) && is_refusal(7 + REFUSED_SOON, 7));
        assert!(!is_refusal(6, 7) && !is_refusal(8 + REFUSED_SOON, 7));
    }
}
