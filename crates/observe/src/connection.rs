//! One observed connection: bytes of both sides with their times in, rows of the ledger out.

use crate::app_protocol::{AppProtocol, HeldBytes};
use crate::client_turns::ClientTurns;
use crate::progress::Progress;
use crate::request_inference::RequestInference;
use crate::rows::Rows;
use crate::run_context::RunContext;
use crate::tls_connection::{Access, MAX_WAITING, Sealed, TlsConnection};
use crate::{Ending, FirstEnd, LowerBound, SharingSign, Side, TlsReading, ledger_side};
use intact_ledger::{
    CloseKind, Connection, ConnectionBytes, DialFailure, Nanos, OtherEnd, Probes, Protocol, Span,
};
use intact_wire::tcp::Acknowledgements;

/// A connection without exchanges is recorded after this time, in nanoseconds.
const PATIENCE: u64 = 1_000_000_000;

/// A response that arrived faster than this did not wait for a retransmission, in nanoseconds.
const LEAST_RETRANSMISSION: u64 = 5_000_000;

/// The longest record of an alert of TLS, in bytes.
const ALERT: u64 = 64;

/// One connection under observation.
pub struct ObservedConnection {
    rows: Rows,
    app: AppProtocol,
    tls: Option<Box<TlsConnection>>,
    reading: TlsReading,
    inference: RequestInference,
    /// Limit of encrypted bytes per direction that wait for secrets.
    max_waiting: usize,
    carried: Carried,
    /// Bytes of the server when a response was complete for the last time.
    responses_end: u64,
    turns: ClientTurns,
    /// When the server's direction ended.
    server_ended_at: Option<Nanos>,
    /// When the client sent its last bytes, if the server has sent nothing since.
    sent_at: Option<Nanos>,
    /// The kernel's last counts of segments.
    acknowledgements: Option<Acknowledgements>,
}

impl ObservedConnection {
    /// A connection whose start was observed, unless it `is_late`.
    pub fn new(connection: Connection, is_late: bool, reading: TlsReading) -> ObservedConnection {
        ObservedConnection {
            rows: Rows::new(connection, is_late),
            app: AppProtocol::new(is_late, false),
            tls: None,
            reading,
            inference: RequestInference::default(),
            max_waiting: MAX_WAITING,
            carried: Carried::default(),
            responses_end: 0,
            turns: ClientTurns::default(),
            server_ended_at: None,
            sent_at: None,
            acknowledgements: None,
        }
    }

    /// The facts so far.
    pub fn connection(&self) -> &Connection {
        &self.rows.connection.row
    }

    /// Sets the number of encrypted bytes per direction that wait for late secrets.
    pub fn wait_for_secrets(&mut self, max_waiting: usize) {
        self.max_waiting = max_waiting.max(MAX_WAITING);
    }

    /// Records the process in whose memory secrets may be searched, if none was known.
    pub fn note_process(&mut self, process: u32) {
        if self.reading.process.is_none() {
            self.reading.process = Some(process);
            if let Some(tls) = &mut self.tls {
                tls.note_process(process);
            }
        }
    }

    /// Records that the transport is established.
    pub fn establish(&mut self, connect: Span) {
        let row = &mut self.rows.connection.row;
        row.at = row.at.min(connect.start);
        row.setup.connect = Some(connect);
    }

    /// Records that the client's direction is observed, so a response without a request is
    /// unsolicited.
    pub fn hear_client(&mut self) {
        self.rows.hears_client = true;
    }

    /// Records that the client enabled TCP keep-alive probes, with this interval in seconds.
    pub fn note_probes(&mut self, interval_s: u32) {
        self.carried.probes.tcp_keepalive_s = Some(interval_s);
    }

    /// Records the client's limit for unacknowledged bytes, in milliseconds.
    pub fn note_user_timeout(&mut self, limit_ms: u32) {
        self.carried.probes.user_timeout_ms = Some(limit_ms);
    }

    /// Why to look for other processes that use it.
    pub fn sharing_sign(&self) -> Option<SharingSign> {
        self.rows.sharing_sign
    }

    /// Records how many processes use it, as a look for such a sign has shown.
    pub fn note_processes(&mut self, count: u32) {
        self.rows.sharing_sign = None;
        if count > 1 {
            self.rows.sharers = count;
        }
    }

    /// Records that every packet is observed: the caller reports each retransmission, and each
    /// segment that awaited a late acknowledgement.
    pub fn see_packets(&mut self) {
        self.rows.segments.sees_packets = true;
    }

    /// Records a retransmission.
    pub fn note_resent(&mut self, at: Nanos) {
        self.rows.segments.note_resent(1, at);
    }

    /// Records data that arrived at `at` and had waited for a late acknowledgement.
    pub fn note_late_ack(&mut self, at: Nanos) {
        self.rows.segments.note_late_ack(at);
    }

    /// Whether the server's bytes that arrive at `at` may have waited for a segment.
    pub fn may_have_waited_for_segments(&self, at: Nanos) -> bool {
        let is_late = |sent: Nanos| at.since(sent) >= LEAST_RETRANSMISSION;
        self.acknowledgements.is_none() || self.sent_at.is_some_and(is_late)
    }

    /// Records the kernel's counts of the client's end so far.
    pub fn note_acknowledgements(&mut self, counts: Acknowledgements, at: Nanos) {
        let before = self.acknowledgements.replace(counts);
        let segments = &mut self.rows.segments;
        let resent = before.map_or(0, |before| before.retransmissions);
        segments.note_resent(counts.retransmissions.saturating_sub(resent), at);
        if let Some(nanos) = before.and_then(|before| counts.since(before)) {
            segments.note_acknowledged(nanos, at);
        }
    }

    /// Records the number of the server's bytes that are in the client's socket, unread. It holds
    /// until more bytes are observed. What came after the last response is left out (such as the
    /// alert of TLS that announces its end).
    pub fn note_unread(&mut self, bytes: u64) {
        let later = match (&self.tls, self.rows.open.len()) {
            (Some(_), _) if !self.rows.is_readable => return,
            (_, 1..) => 0,
            (Some(_), _) => self.carried.bytes.received - self.responses_end + ALERT,
            (None, _) => self.carried.bytes.received - self.responses_end,
        };
        self.carried.bytes.unread = bytes.checked_sub(later).filter(|bytes| *bytes > 0);
    }

    /// Reads the next bytes of one side.
    pub fn read(&mut self, from: Side, bytes: &[u8], at: Nanos, run: &mut dyn RunContext) {
        let done = self.rows.done;
        self.carried.bytes.unread = None;
        self.read_bytes(from, bytes, at, run);
        if self.rows.done > done {
            self.responses_end = self.carried.bytes.received;
        }
    }

    fn read_bytes(&mut self, from: Side, bytes: &[u8], at: Nanos, run: &mut dyn RunContext) {
        self.count(from, bytes.len() as u64, at);
        self.sent_at = (from == Side::Client).then_some(at);
        if from == Side::Client {
            self.rows.hears_client = true;
        }
        if self.tls.is_some() {
            self.read_tls(from, bytes, at, run);
            return;
        }
        self.rows.client_spoke |= from == Side::Client;
        if let Some(held) = self.app.read(from, bytes, at.0, &mut self.rows, run) {
            self.begin_tls(held, run);
        }
    }

    fn count(&mut self, from: Side, len: u64, at: Nanos) {
        self.turns.note(from, self.carried.bytes.sent, at);
        let bytes = &mut self.carried.bytes;
        *from.pick(&mut bytes.sent, &mut bytes.received) += len;
    }

    fn begin_tls(&mut self, held: Vec<HeldBytes>, run: &mut dyn RunContext) {
        self.tls = Some(Box::new(TlsConnection::new(self.reading, self.max_waiting)));
        self.app = AppProtocol::new(false, true);
        self.rows.client_spoke = false;
        self.rows.connection.row.tls = Some(intact_ledger::Tls::default());
        for piece in held {
            self.read_tls(piece.from, &piece.bytes, Nanos(piece.at), run);
        }
    }

    fn read_tls(&mut self, from: Side, bytes: &[u8], at: Nanos, run: &mut dyn RunContext) {
        if let Some(tls) = &mut self.tls {
            run.note_tls(from, bytes, at);
            let is_next = tls.read(from, bytes, at.0, run);
            if !is_next && from == Side::Client {
                self.rows.note_sharing(SharingSign::ForeignRecord);
            }
        }
        self.take_tls(run);
    }

    /// Reads the bytes that TLS has decrypted.
    fn take_tls(&mut self, run: &mut dyn RunContext) {
        let Some(tls) = &mut self.tls else {
            return;
        };
        let (plain, bursts, access) = (tls.take_plain(), tls.take_bursts(), tls.access());
        if !self.rows.connection.is_recorded() || self.rows.connection.row.setup.ssl.is_none() {
            self.describe_tls();
        }
        for (from, at, bytes) in plain.iter() {
            self.rows.is_readable = true;
            self.rows.client_spoke |= from == Side::Client;
            self.app.read(from, bytes, at, &mut self.rows, run);
        }
        if let Some(tls) = &mut self.tls {
            tls.reuse(plain);
        }
        if let Access::Shut(why) = access {
            for burst in bursts {
                if let Some(one) = self.inference.take(burst) {
                    self.rows.take_inferred(&one, why, run);
                }
            }
        }
    }

    /// Copies the facts of TLS to the connection's row.
    fn describe_tls(&mut self) {
        let Some(tls) = &self.tls else {
            return;
        };
        let rows = &mut self.rows;
        if !tls.describe(&mut rows.connection.row) {
            return;
        }
        let described = rows.connection.row.tls.as_ref();
        let name = described.and_then(|tls| tls.server_name.clone());
        let alpn = described.and_then(|tls| tls.alpn_chosen.as_deref());
        if rows.connection.row.protocol.is_none() {
            rows.connection.row.protocol = match alpn {
                Some("h2") => Some(Protocol::Http2),
                Some("http/1.1") => Some(Protocol::Http11),
                _ => None,
            };
        }
        rows.connection.note_server_name(name.as_deref());
    }

    /// Records that bytes of one side were not observed; the next ones arrived at `at`.
    pub fn lose(&mut self, from: Side, len: u64, at: Nanos, run: &mut dyn RunContext) {
        self.count(from, len, at);
        self.rows.has_gap = true;
        let len = match &mut self.tls {
            Some(tls) => {
                tls.lose(from);
                // the length of the plain text is unknown
                u64::MAX
            }
            None => len,
        };
        self.app.lose(from, len, at.0, &mut self.rows, run);
        // after the rest of a message that the gap cuts off
        self.rows.lose(from);
    }

    /// Records that the server's TCP had acknowledged this number of the client's bytes when it
    /// ended the connection, including its FIN or RST. Call it before the end is recorded.
    pub fn note_acknowledged(&mut self, bytes: u64) {
        if self.rows.end.is_none() {
            self.rows.acknowledged = self.turns.acknowledged(bytes);
        }
    }

    /// The same for an end by RST, if the count does not include what the RST itself acknowledged.
    pub fn note_acknowledged_before_reset(&mut self, bytes: u64) {
        if self.rows.end.is_none() {
            self.rows.acknowledged = self.turns.acknowledged(bytes).at_least();
        }
    }

    /// Records the FIN or RST of one side. The first one decides who closed.
    pub fn end(&mut self, by: Side, how: CloseKind, at: Nanos, run: &mut dyn RunContext) {
        if let Some(tls) = &mut self.tls {
            tls.look_again(run);
        }
        self.take_tls(run);
        self.note_end(by, how, at);
        if self.rows.is_reset_by_client {
            self.rows.release(run);
        }
        if by == Side::Server {
            self.server_ended_at.get_or_insert(at);
            // secrets may still decrypt more
            let access = self.tls.as_ref().map(|tls| tls.access());
            if access != Some(Access::Hoped) && !self.is_refused() {
                self.app.end(at, true, &mut self.rows, run);
            }
        }
    }

    /// Whether a side refused the TLS handshake, so that nothing that the client sent was executed.
    fn is_refused(&self) -> bool {
        let tls = self.tls.as_ref();
        tls.is_some_and(|tls| tls.refused_by().is_some())
    }

    /// Records that the client has closed its direction, for a caller that records the end later.
    /// A response that is complete after that may not have reached it.
    pub fn note_client_fin(&mut self) {
        self.rows.open.note_client_fin();
        self.rows.has_client_fin = true;
    }

    /// Records the FIN or RST that ends the connection, if more of its bytes may follow.
    pub fn note_end(&mut self, by: Side, how: CloseKind, at: Nanos) {
        self.rows.has_server_fin |= by == Side::Server && how == CloseKind::Fin;
        if by == Side::Client && how == CloseKind::Fin {
            self.note_client_fin();
        }
        self.rows.is_reset_by_client |= by == Side::Client && how == CloseKind::Rst;
        let end = self.first_end(by, how, at);
        let first = *self.rows.end.get_or_insert(end);
        // a RST ends both directions
        if first.by != Some(ledger_side(by)) || how == CloseKind::Rst {
            let closed = OtherEnd::ClosedAt(at);
            self.rows.other_end.get_or_insert(closed);
        }
    }

    /// The side that closed first, and how. A FIN may be the reply to the other side's
    /// `close_notify`. It may even arrive before the FIN that follows this `close_notify`.
    fn first_end(&self, by: Side, how: CloseKind, at: Nanos) -> FirstEnd {
        let other = by.other();
        let notified = |side| {
            let tls = self.tls.as_ref()?;
            tls.close_notify_at(side).filter(|sent| *sent <= at.0)
        };
        let is_answer = |theirs| notified(by).is_none_or(|ours| theirs < ours);
        let (by, how, at) = match notified(other).filter(|theirs| is_answer(*theirs)) {
            Some(theirs) => (other, CloseKind::CloseNotify, Nanos(theirs)),
            None if how == CloseKind::Fin && notified(by).is_some() => {
                (by, CloseKind::CloseNotify, at)
            }
            None => (by, how, at),
        };
        let goaway = self.app.http2().and_then(|facts| facts.go_away);
        let is_goaway = how != CloseKind::Rst && goaway.is_some_and(|goaway| goaway.by == by);
        FirstEnd {
            at,
            by: Some(ledger_side(by)),
            how: if is_goaway { CloseKind::Goaway } else { how },
        }
    }

    /// Records that no packet of the server arrived in this time, up to the end of the recording,
    /// while the client sent retransmissions.
    pub fn note_unheard(&mut self, silence: Span) {
        self.rows.unheard = Some(silence);
    }

    /// Records that the recording ended at this time, before the connection did, and lacks none of
    /// its bytes: a request without a complete response still waited.
    pub fn note_recorded_until(&mut self, until: Nanos) {
        self.rows.recorded_until = Some(until);
    }

    /// Records that the other side may have closed first, unobserved.
    pub fn forget_closer(&mut self) {
        if let Some(end) = &mut self.rows.end {
            end.by = None;
        }
    }

    /// Call it about once per second: looks for late secrets, and records a silent connection.
    pub fn tick(&mut self, now: Nanos, run: &mut dyn RunContext) {
        if let Some(tls) = &mut self.tls {
            tls.look_again(run);
            if !tls.awaits_secrets(run) {
                tls.give_up(now.0, false);
            }
            self.take_tls(run);
        }
        if now.since(self.rows.connection.row.at) > PATIENCE && !self.rows.connection.is_recorded()
        {
            self.rows.connection.record(run);
        }
    }

    /// Looks for secrets that came late, and records the connection, however little it has shown.
    pub fn settle(&mut self, run: &mut dyn RunContext) {
        if let Some(tls) = &mut self.tls {
            tls.look_again(run);
        }
        self.take_tls(run);
        self.rows.connection.record(run);
    }

    /// Number of requests that began and are not recorded: without a complete response, or in TLS
    /// that was not read. 1 if their number is unknown.
    pub fn unrecorded_exchanges(&self) -> u64 {
        self.progress().map_or(1, |progress| {
            (progress.done + progress.open).saturating_sub(self.exchanges())
        })
    }

    /// Whether secrets may come soon, though the connection is over.
    pub fn awaits_secrets(&self, run: &dyn RunContext) -> bool {
        let tls = self.tls.as_ref();
        tls.is_some_and(|tls| tls.awaits_secrets(run))
    }

    /// Whether so much of that side waits for secrets of a running search that the sender must
    /// wait.
    pub fn is_crowded(&mut self, from: Side, run: &mut dyn RunContext) -> bool {
        let is_crowded = |tls: &TlsConnection, run: &dyn RunContext| tls.is_crowded(from, run);
        match &mut self.tls {
            Some(tls) if is_crowded(tls, run) => tls.look_again(run),
            _ => return false,
        }
        self.take_tls(run);
        let tls = self.tls.as_ref();
        tls.is_some_and(|tls| is_crowded(tls, run))
    }

    /// Records the rest, and the end of the connection. No more bytes follow.
    pub fn finish(&mut self, at: Nanos, ending: Ending, run: &mut dyn RunContext) {
        if let Some(tls) = &mut self.tls {
            tls.look_again(run);
            tls.give_up(at.0, true);
            self.take_tls(run);
        }
        self.rows.ending = Some(ending);
        if self.is_refused() {
            self.app = AppProtocol::new(false, true);
            self.inference = RequestInference::default();
            self.rows.forget_requests();
        }
        if is_closed(ending, &self.rows) {
            self.rows.other_end.get_or_insert(OtherEnd::Open);
        }
        let access = self.tls.as_ref().map(|tls| tls.access());
        let hides = self.tls.as_ref().is_some_and(|tls| tls.hides_requests());
        let infers = self.reading.infers_requests && !hides;
        if let (Some(Access::Shut(why)), true) = (access, infers) {
            self.carried.is_inferred = true;
            if let Some(one) = self.inference.end() {
                self.rows.take_inferred(&one, why, run);
            }
            if self.inference.is_lower_bound {
                run.note_lower_bound(LowerBound::Inferred);
            }
        }
        if (self.app.http2_observer()).is_some_and(|http2| http2.facts().has_too_many) {
            run.note_lower_bound(LowerBound::TooManyOpen);
        }
        let is_closed = is_closed(ending, &self.rows);
        let server_ended_at = self.server_ended_at.unwrap_or(at);
        self.app
            .end(server_ended_at, is_closed, &mut self.rows, run);
        self.rows.release(run);
        self.rows.connection.row.failed = self.rows.tunnel_failure();
        if let Some(tls) = &self.tls {
            self.rows.is_readable |= tls.is_decrypted();
            let hides_some = tls.hides_early_data();
            self.rows.client_spoke |= hides_some;
            if hides_some && self.rows.open.begun > 0 {
                run.note_lower_bound(LowerBound::EarlyData);
            }
            let failed = &mut self.rows.connection.row.failed;
            if ending == Ending::Observed && failed.is_none() {
                *failed = tls.failure(self.rows.end);
            }
        }
        self.describe_tls();
        self.rows.is_live = self.reading.infers_requests;
        let http2 = self.app.http2();
        self.rows.close(at, self.carried, http2, run);
    }

    /// Records that the connection was never established.
    pub fn fail(&mut self, failed: DialFailure, run: &mut dyn RunContext) {
        self.rows.connection.row.failed = Some(failed);
        self.rows.connection.record(run);
    }

    /// The bytes as the server would send them next, encrypted if TLS is used; `None` if that is
    /// impossible.
    pub fn seal_by_server(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        match &self.tls {
            Some(tls) => tls.seal_by_server(bytes),
            None => Some(bytes.to_vec()),
        }
    }

    /// The state of its exchanges; `None` if nothing is known of them.
    pub fn progress(&self) -> Option<Progress> {
        Progress::of(&self.rows, &self.app, self.tls.as_deref(), &self.inference)
    }

    /// Number of recorded exchanges.
    pub fn exchanges(&self) -> u64 {
        self.rows.done
    }

    /// Number of exchanges whose end was not observed.
    pub fn unobserved_exchanges(&self) -> u64 {
        self.rows.unobserved
    }

    /// Whether a side broke a rule of HTTP/2, so that what followed was not read.
    pub fn is_broken_off(&self) -> bool {
        self.rows.is_broken_off
    }

    /// Why its content is unknown; `None` if it was read, or if there was none.
    pub fn opaque(&self) -> Option<Opaque> {
        let is_silent = self.carried.bytes == ConnectionBytes::default();
        let protocol = self.rows.connection.row.protocol;
        let is_readable = self.rows.is_readable;
        let tls = self.tls.as_deref();
        let sealed = tls.filter(|tls| !is_readable || tls.hides_early_data());
        if is_silent || self.rows.is_read() {
            None
        } else if let Some(tls) = sealed {
            Some(Opaque::Encrypted(tls.sealed()))
        } else if self.app.holds_partial_request() {
            Some(Opaque::PartialRequest)
        } else if protocol.is_some() && !self.rows.is_readable {
            None
        } else {
            Some(Opaque::Unknown)
        }
    }
}

/// Whether one side ended the connection, and all of it was observed.
fn is_closed(ending: Ending, rows: &Rows) -> bool {
    ending == Ending::Observed && rows.end.is_some()
}

/// The content of a connection in addition to its exchanges.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Carried {
    pub(crate) bytes: ConnectionBytes,
    /// Whether its exchanges are inferred.
    pub(crate) is_inferred: bool,
    /// Without the PING frames, which its protocol counts.
    pub(crate) probes: Probes,
}

/// Why the content of a connection is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opaque {
    /// It is encrypted, and was not decrypted for this reason.
    Encrypted(Sealed),
    /// The header section of its first request does not end.
    PartialRequest,
    /// It belongs to no known protocol.
    Unknown,
}
