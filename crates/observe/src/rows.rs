//! The rows of one open connection: `wire`'s events become exchanges, and their facts update the
//! connection's row. The crate's documentation has the decisions.

use crate::client_turns::Acknowledged;
use crate::connection::Carried;
use crate::connection_row::ConnectionRow;
use crate::exchange_row::{self, Times};
use crate::judgement::{Circumstances, Judgement};
use crate::open_exchanges::{OpenExchange, OpenExchanges};
use crate::request_inference::InferredExchange;
use crate::run_context::RunContext;
use crate::segment_events::SegmentEvents;
use crate::{Ending, FirstEnd, SharingSign, ledger_side};
use intact_ledger::{
    Certainty, Close, CloseKind, ClosePoint, Closed, Connection, ConnectionBytes, DialFailure,
    Event, Exchange, Failure, Nanos, OtherEnd, Outcome, Probes, Protocol, Reuse, SetupPhase,
    SetupWait, Side, Span, UnansweredRequest,
};
use intact_wire::exchange::{Event as Observed, Exchange as Seen, Outcome as SeenOutcome};
use intact_wire::h2::Http2Facts;
use std::sync::Arc;

/// How long before its close, in nanoseconds, a client that reads has read what came.
const UNREAD: u64 = 100_000_000;

/// A connection, its exchanges, and the part of them that was recorded.
#[derive(Default)]
pub(crate) struct Rows {
    pub(crate) connection: ConnectionRow,
    /// Its start was not observed, so earlier exchanges may be missing.
    is_late: bool,
    /// It is recorded while it runs, and may go on after the recording.
    pub(crate) is_live: bool,
    /// Bytes of either side are missing.
    pub(crate) has_gap: bool,
    /// A side broke a rule, so that what followed was not read.
    pub(crate) is_broken_off: bool,
    /// Bytes of the client are missing after this number of requests, so the positions of later
    /// requests are unknown.
    request_gap: Option<u32>,
    /// The client's direction is observed.
    pub(crate) hears_client: bool,
    /// The client sent readable application data.
    pub(crate) client_spoke: bool,
    /// The application data can be read.
    pub(crate) is_readable: bool,
    /// Exchanges that have not ended.
    pub(crate) open: OpenExchanges,
    /// Number of recorded exchanges.
    pub(crate) done: u64,
    /// Those that the server refused to process.
    refused: u64,
    /// Number of exchanges whose end was not observed.
    pub(crate) unobserved: u64,
    wait: SetupWait,
    last_begin: Option<Nanos>,
    last_end: Option<Nanos>,
    /// The end of the connection cut an exchange.
    is_cut: bool,
    /// The server sent bytes after a response that belong to no response.
    has_excess: bool,
    /// An exchange failed as stale.
    is_stale: bool,
    /// The side that announced the end of the connection first.
    pub(crate) announced_by: Option<Side>,
    /// When the server announced the end without an error.
    server_announced_at: Option<Nanos>,
    pub(crate) segments: SegmentEvents,
    pub(crate) end: Option<FirstEnd>,
    /// The server sent a FIN: the data before it is complete.
    pub(crate) has_server_fin: bool,
    /// What the other side did after the first end.
    pub(crate) other_end: Option<OtherEnd>,
    /// The time at the end of the recording in which the server's TCP acknowledged nothing.
    pub(crate) unheard: Option<Span>,
    /// When the recording ended, if that was before the connection ended and no byte is missing.
    pub(crate) recorded_until: Option<Nanos>,
    /// The requests that the server had acknowledged at its end.
    pub(crate) acknowledged: Acknowledged,
    tunnel: Tunnel,
    /// What shows that several processes may use it, until the producer has looked.
    pub(crate) sharing_sign: Option<SharingSign>,
    /// Number of processes that have it open, once several used it at the same time.
    pub(crate) sharers: u32,
    /// The client has closed its direction.
    pub(crate) has_client_fin: bool,
    /// The client sent a RST: what came after its first end did not reach it.
    pub(crate) is_reset_by_client: bool,
    /// Exchanges that were complete after the client's FIN, until it is known whether it still
    /// read.
    held: Vec<HeldExchange>,
    /// Set when no more bytes follow.
    pub(crate) ending: Option<Ending>,
}

/// The state of the last CONNECT of HTTP/1, which is a part of the setup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Tunnel {
    #[default]
    None,
    /// The proxy granted it, so acknowledgements are those of the proxy.
    Granted,
    /// The proxy refused it with this status, or sent no response.
    Refused(Option<u16>),
}

/// An exchange whose outcome is not known yet.
struct HeldExchange {
    seen: Seen,
    open: OpenExchange,
    outcome: SeenOutcome,
    at: u64,
}

impl Rows {
    /// The rows of a connection; `is_late` if its start was not observed.
    pub(crate) fn new(connection: Connection, is_late: bool) -> Rows {
        Rows {
            connection: ConnectionRow::new(connection),
            is_late,
            is_live: false,
            ..Rows::default()
        }
    }

    /// Records that bytes of that side were not observed.
    pub(crate) fn lose(&mut self, from: crate::Side) {
        self.has_gap = true;
        if from == crate::Side::Client {
            self.request_gap.get_or_insert(self.open.begun);
            self.is_late |= self.open.begun == 0;
        }
    }

    /// Records that what that side sent cannot be read any further.
    pub(crate) fn break_off(&mut self, from: crate::Side) {
        self.is_broken_off = true;
        self.lose(from);
    }

    /// Leaves out the requests of a connection whose TLS handshake was refused afterwards.
    pub(crate) fn forget_requests(&mut self) {
        self.open = OpenExchanges::default();
        self.client_spoke = false;
    }

    /// Records an event of HTTP that was observed at `at`.
    pub(crate) fn take(&mut self, event: Observed<'_>, at: u64, run: &mut dyn RunContext) {
        match event {
            // a pushed response was not requested
            Observed::Opened(seen) if !seen.pushed => self.begin(seen, run),
            Observed::Body {
                from,
                stream,
                bytes,
            } => self.open.take_body(from, stream, bytes, at),
            Observed::Done(seen, outcome) if !seen.pushed => self.finish(seen, outcome, at, run),
            Observed::GoingAway {
                by: crate::Side::Server,
                graceful: true,
            } => {
                self.server_announced_at.get_or_insert(Nanos(at));
            }
            _ => {}
        }
    }

    fn begin(&mut self, seen: &Seen, run: &mut dyn RunContext) {
        let Some(request) = &seen.request else {
            return;
        };
        self.last_begin = Some(Nanos(request.started_at));
        self.open.begin(seen.stream, request, run.fingerprint_key());
        // a tunnel is setup
        if asks_for_tunnel(seen) {
            return;
        }
        // a client of HTTP/1 waits for the response before it sends the next request
        if seen.pipelined {
            self.note_sharing(SharingSign::Overlap);
        }
        self.wait.note_request(Nanos(request.started_at));
        self.connection.learn(request);
        self.connection.note_authority(request);
        self.connection.record(run);
    }

    /// Records a sign that several processes use the connection, unless that is known.
    pub(crate) fn note_sharing(&mut self, sign: SharingSign) {
        if self.sharers == 0 {
            self.sharing_sign.get_or_insert(sign);
        }
    }

    fn finish(&mut self, seen: &Seen, outcome: SeenOutcome, at: u64, run: &mut dyn RunContext) {
        run.note_exchange(seen);
        let (request, response) = (seen.request.as_ref(), seen.response.as_ref());
        let asked = request.is_some_and(|request| request.close);
        let granted = response.is_some_and(|response| response.close);
        // a tunnel outlives the headers of its CONNECT
        if self.is_setup(seen) {
            return self.set_up_tunnel(seen);
        }
        // a client asks for the end before the server grants it
        if asked || granted {
            self.announce(if asked { Side::Client } else { Side::Server });
            if let (false, Some(response)) = (asked, response) {
                self.server_announced_at
                    .get_or_insert(Nanos(response.head_at));
            }
        }
        // an unsolicited response (a 408 before the server closes) is no exchange
        if request.is_none() && self.hears_client {
            self.has_excess |= !granted && self.done > 0;
            return;
        }
        let open = self.open.close(seen);
        if let Some(response) = response {
            self.wait.note_response(Nanos(response.started_at));
            if let (None, Some(version)) = (request, response.version) {
                self.connection.note_version(version);
            }
            self.connection.note_terms(response);
        }
        self.connection.note_origin(None);
        if let Some(response) = response {
            self.connection.note_server(response, run);
        }
        self.done += 1;
        self.refused += u64::from(outcome == SeenOutcome::Refused);
        self.connection.record(run);
        let is_known = self.is_reset_by_client || self.ending.is_some();
        if self.has_client_fin && is_complete(outcome) && !is_known {
            self.held.push(HeldExchange {
                seen: seen.clone(),
                open,
                outcome,
                at,
            });
            return;
        }
        self.record_exchange(seen, open, (outcome, at), run);
    }

    /// Records the exchanges that were complete after the client's FIN. If a RST followed it, the
    /// client had closed both directions, and read none of them.
    pub(crate) fn release(&mut self, run: &mut dyn RunContext) {
        for held in std::mem::take(&mut self.held) {
            self.record_exchange(&held.seen, held.open, (held.outcome, held.at), run);
        }
    }

    /// The client's end, if it had closed both directions before this time: what came then did not
    /// reach it.
    fn client_gone(&self, at: Nanos) -> Option<FirstEnd> {
        let end = self.end.filter(|_| self.is_reset_by_client)?;
        (end.by == Some(Side::Client) && end.at < at).then_some(end)
    }

    fn record_exchange(
        &mut self,
        seen: &Seen,
        open: OpenExchange,
        (outcome, at): (SeenOutcome, u64),
        run: &mut dyn RunContext,
    ) {
        let last = Nanos(exchange_row::last_byte(seen));
        if let Some(end) = self.client_gone(last).filter(|_| is_complete(outcome)) {
            return self.record_unread(seen, open, end, run);
        }
        let begun_at = Nanos(open.begun_at);
        let mut judgement = self.judge(outcome, open.ordinal, begun_at);
        let mut end = self.end_of(seen, outcome, &open, at);
        let unheard = self.unheard.filter(|silence| silence.start <= begun_at);
        if let (Some(silence), SeenOutcome::Unanswered) = (unheard, outcome) {
            self.unobserved -= u64::from(judgement.is_unobserved());
            judgement = Judgement::unheard();
            end = end.max(silence.end.0);
        }
        self.record_judged(seen, open, (end, judgement), run);
    }

    /// Records an exchange whose response was complete after the client had closed: as one that
    /// ended then.
    fn record_unread(
        &mut self,
        seen: &Seen,
        mut open: OpenExchange,
        end: FirstEnd,
        run: &mut dyn RunContext,
    ) {
        let mut seen = seen.clone();
        let is_later = |at: u64| Nanos(at) >= end.at;
        seen.response = seen.response.filter(|one| !is_later(one.started_at));
        open.last_at = None;
        let outcome = match seen.response {
            Some(_) => SeenOutcome::Cut,
            None => SeenOutcome::Unanswered,
        };
        let judgement = self.judge(outcome, open.ordinal, Nanos(open.begun_at));
        let at = end.at.max(Nanos(open.begun_at));
        self.record_judged(&seen, open, (at.0, judgement), run);
    }

    fn record_judged(
        &mut self,
        seen: &Seen,
        open: OpenExchange,
        (end, judgement): (u64, Judgement),
        run: &mut dyn RunContext,
    ) {
        let announced_at = self.server_announced_at;
        let mut row = self.row(seen, open, end, judgement, run.next_exchange());
        // the response that announces the end, and is cut itself, was not sent after the
        // announcement
        let is_announcement = row.close_sent_by == Some(Side::Server);
        if row.outcome.failure().is_some() && !is_announcement {
            row.close_announced_at = announced_at;
        }
        self.last_end = self.last_end.max(Some(row.end));
        run.record(Event::Exchange(&row));
    }

    fn row(
        &mut self,
        seen: &Seen,
        open: OpenExchange,
        end: u64,
        judgement: Judgement,
        id: u64,
    ) -> Exchange {
        let mut row = self.place(id, open.begun_at, open.ordinal, open.stream.is_some());
        let times = Times {
            ready: self.connection.row.setup.ready(),
            has_waited: row.reuse == Some(Reuse::Fresh),
            end: Nanos(end),
        };
        exchange_row::fill(&mut row, seen, times);
        self.segments.fill(&mut row);
        row.stream = seen.stream.map(u64::from);
        row.identity = open.identity;
        row.outcome = judgement.outcome;
        row.certainty = judgement.certainty;
        row.detail = judgement.detail.map(Arc::from);
        if row.outcome == Outcome::Failed(Failure::ClientClosed) {
            row.body.left_after = open.heard_at.or(open.last_at).map(Nanos);
        }
        row.judge_grpc();
        if let (Some(request), Some(fingerprint)) = (&seen.request, open.fingerprint)
            && request.ended_at.is_some()
            && fingerprint.body_len() == request.body_len
        {
            row.fingerprint = Some(fingerprint.finish());
        }
        row
    }

    /// An exchange that began at `begun`, with its position on the connection and the setup that it
    /// waited for.
    fn place(&self, id: u64, begun: u64, ordinal: u32, is_stream: bool) -> Exchange {
        let mut row = Exchange::new(id, Nanos(begun));
        row.sharers = self.sharers;
        row.variant = self.connection.row.variant;
        row.round = self.connection.row.round;
        row.connection = Some(self.connection.row.id);
        let is_counted = self.request_gap.is_none_or(|before| ordinal <= before);
        row.ordinal = (!self.is_late && is_counted).then_some(ordinal);
        let setup = &self.connection.row.setup;
        let has_waited = self
            .wait
            .has_waited(setup, Nanos(begun), ordinal, is_stream);
        row.reuse = match has_waited || ordinal <= 1 {
            // exchanges before the observation are unknown
            true if self.is_late => None,
            _ => Reuse::of(has_waited, Some(ordinal)),
        };
        if row.reuse == Some(Reuse::Fresh) {
            row.at = self.connection.row.at.min(row.at);
            row.spans.wait_for_setup(setup, row.at);
        }
        row
    }

    /// When an exchange ended: with its last byte, or when its failure was observed.
    fn end_of(&self, seen: &Seen, outcome: SeenOutcome, open: &OpenExchange, at: u64) -> u64 {
        let last = exchange_row::last_byte(seen).max(open.last_at.unwrap_or_default());
        if let (SeenOutcome::Cut, Some(last)) = (outcome, self.left_unread(open)) {
            return last;
        }
        match outcome {
            SeenOutcome::Complete | SeenOutcome::UntilClose | SeenOutcome::Malformed => {
                exchange_row::last_byte(seen)
            }
            SeenOutcome::Unanswered | SeenOutcome::Cut
                if self.ending == Some(Ending::Unobserved) =>
            {
                let until = self.recorded_until.filter(|_| self.end.is_none());
                last.max(until.map_or(0, |until| until.0))
            }
            // the client gave it up then, and what came later is not known to have reached it
            SeenOutcome::Unanswered | SeenOutcome::Cut => match self.end {
                Some(end) if end.by == Some(Side::Client) => end.at.0.max(open.begun_at),
                end => end.map_or(at, |end| end.at.0).max(last),
            },
            SeenOutcome::Unseen => last,
            SeenOutcome::Reset { .. } | SeenOutcome::Refused => at.max(last),
        }
    }

    /// When the last bytes of a response came, if the client had stopped to read it: they had come
    /// long before it closed, and were in its socket, so the kernel sent a RST (RFC 2525 section
    /// 2.17).
    fn left_unread(&self, open: &OpenExchange) -> Option<u64> {
        let last = open.heard_at.or(open.last_at);
        let last = last.filter(|_| open.stream.is_none())?;
        let end = self.end.filter(|end| end.by == Some(Side::Client))?;
        let is_reset = end.how == CloseKind::Rst;
        (is_reset && end.at > Nanos(last).after(UNREAD)).then_some(last)
    }

    /// Derives the outcome of an exchange whose request began at `begun`.
    fn judge(&mut self, outcome: SeenOutcome, ordinal: u32, begun: Nanos) -> Judgement {
        let is_unobserved = self.ending == Some(Ending::Unobserved);
        let end = self.end.filter(|end| end.at >= begun);
        let setup = &self.connection.row.setup;
        let judgement = Circumstances {
            end: self.end,
            has_server_fin: self.has_server_fin,
            is_unobserved,
            is_pending: self.recorded_until.is_some() && !self.has_gap,
            is_partial: self.is_late || self.has_gap || is_unobserved,
            request: UnansweredRequest {
                is_reused: ordinal > 1 || self.is_late,
                by_reset: self.end.is_some_and(|end| end.how == CloseKind::Rst),
                end_after: end.map(|end| end.at.since(begun)),
                is_acknowledged: match self.tunnel {
                    Tunnel::Granted => None,
                    _ => self.acknowledged.covers(begun),
                },
                round_trip: setup.connect.map(Span::nanos),
            },
        }
        .judge(outcome);
        let is_cut = matches!(outcome, SeenOutcome::Unanswered | SeenOutcome::Cut);
        self.unobserved += u64::from(judgement.is_unobserved());
        self.is_cut |= is_cut && judgement.outcome.failure().is_some();
        self.is_stale |= judgement.outcome == Outcome::Failed(Failure::Stale);
        judgement
    }

    /// Records bursts of encrypted records that were inferred to be an exchange. `why`: the reason
    /// why it could not be read.
    pub(crate) fn take_inferred(
        &mut self,
        one: &InferredExchange,
        why: &str,
        run: &mut dyn RunContext,
    ) {
        self.open.begun += 1;
        let ordinal = self.open.begun;
        self.done += 1;
        self.last_begin = Some(Nanos(one.started));
        self.wait.note_request(Nanos(one.started));
        let is_read = |at: u64| self.client_gone(Nanos(at)).is_none();
        let is_answered = one.answered.is_some_and(is_read);
        // a response may be among bytes that are missing
        let seen = match self.is_late || self.has_gap {
            true => SeenOutcome::Unseen,
            false => SeenOutcome::Unanswered,
        };
        let unanswered = (!is_answered).then(|| self.judge(seen, ordinal, Nanos(one.started)));
        let mut row = self.place(run.next_exchange(), one.started, ordinal, false);
        row.end = match (is_answered, self.end) {
            (false, Some(end)) => end.at.max(Nanos(one.last)),
            _ => Nanos(one.last),
        };
        exchange_row::fill_inferred(&mut row, one, self.connection.row.setup.ready());
        self.segments.fill(&mut row);
        row.outcome = Outcome::Ok;
        if let Some(judgement) = unanswered {
            row.outcome = judgement.outcome;
            row.detail = judgement.detail.map(Arc::from);
        }
        row.certainty = Certainty::Inferred(
            format!("{why}: requests are inferred from the sizes and the order of records").into(),
        );
        self.last_end = self.last_end.max(Some(row.end));
        self.connection.record(run);
        run.record(Event::Exchange(&row));
    }

    /// Changes from HTTP/1 to HTTP/2: the request that asked for the upgrade is answered on stream
    /// 1.
    pub(crate) fn enter_upgrade(&mut self) {
        self.open.enter_upgrade();
        self.connection.row.protocol = Some(Protocol::Http2);
    }

    /// Whether it is a CONNECT that is part of the setup. One that is refused between exchanges
    /// with the proxy is an exchange.
    fn is_setup(&self, seen: &Seen) -> bool {
        asks_for_tunnel(seen) && (self.done == 0 || is_granted(seen))
    }

    /// Records a CONNECT as part of the setup. If the proxy granted it, later data is between the
    /// client and the target. Otherwise the client may ask again, with credentials.
    fn set_up_tunnel(&mut self, seen: &Seen) {
        self.open.close(seen);
        self.open.begun -= 1;
        self.client_spoke = false;
        self.wait = SetupWait::default();
        let target = seen.request.as_ref().map(|request| &request.target[..]);
        self.connection.lead_to(target);
        let response = seen.response.as_ref();
        self.tunnel = Tunnel::Refused(response.map(|response| response.status));
        if let Some(granted) = response.filter(|_| is_granted(seen)) {
            self.is_readable = false;
            self.tunnel = Tunnel::Granted;
            self.connection.enter_tunnel(Nanos(granted.head_at));
        }
    }

    /// Why there is no tunnel, if the connection was only set up for one.
    pub(crate) fn tunnel_failure(&self) -> Option<DialFailure> {
        let Tunnel::Refused(status) = self.tunnel else {
            return None;
        };
        let by = self.end.and_then(|end| end.by);
        let (kind, detail) = match (status, by) {
            _ if self.done > 0 => return None,
            (Some(status), _) => (Failure::Proxy, format!("with status {status}")),
            (None, Some(Side::Server)) => (
                Failure::Proxy,
                "it ended the connection without a response".to_owned(),
            ),
            (None, _) if self.ending == Some(Ending::Unobserved) => return None,
            (None, Some(Side::Client)) => {
                let detail = "the client closed before the proxy's response";
                (Failure::ClientClosed, detail.to_owned())
            }
            (None, None) => (
                Failure::Aborted,
                "the run was stopped in the setup".to_owned(),
            ),
        };
        Some(DialFailure::with_detail(SetupPhase::Connect, kind, detail))
    }

    /// Records that one side announced the close.
    fn announce(&mut self, by: Side) {
        self.announced_by = self.announced_by.or(Some(by));
    }

    /// Records the end of the connection at `at`, or when its end was first observed. `http2` has
    /// the facts of HTTP/2.
    pub(crate) fn close(
        &mut self,
        at: Nanos,
        carried: Carried,
        http2: Option<&Http2Facts>,
        run: &mut dyn RunContext,
    ) {
        if let Some(goaway) = http2.and_then(|facts| facts.go_away) {
            self.announce(ledger_side(goaway.by));
        }
        self.connection.record(run);
        let is_open = self.ending == Some(Ending::Unobserved) && self.end.is_none();
        let is_silent = carried.bytes == ConnectionBytes::default();
        // all of it is there, so nothing was missed on it: it was opened ahead
        let is_spare = is_open && is_silent && !self.is_late && self.recorded_until.is_some();
        if self.connection.row.failed.is_some() || is_open && !(is_spare && self.is_live) {
            return;
        }
        let is_counted = carried.is_inferred || is_silent || self.is_read();
        // a server's reaction to the client's end takes a round trip, and a recording may end
        // before
        let is_by_server = self.end.is_some_and(|end| end.by == Some(Side::Server));
        let closed = Closed {
            connection: self.connection.row.id,
            variant: self.connection.row.variant,
            round: self.connection.row.round,
            close: Close {
                at: self.end.map_or(at, |end| end.at),
                by: self.end.and_then(|end| end.by),
                how: self.end.map(|end| end.how),
                other_end: self.other_end.filter(|_| is_by_server),
                announced_by: self.announced_by,
                moment: match is_spare {
                    true => Some(ClosePoint::Gap),
                    false => self.moment(is_counted),
                },
                exchanges: is_counted.then_some(self.done - self.refused),
                bytes: ConnectionBytes {
                    // a close with unread bytes sends a RST (RFC 2525 section 2.17)
                    unread: carried.bytes.unread.filter(|_| self.is_reset_by_client),
                    ..carried.bytes
                },
                probes: Probes {
                    pings: http2.map(|facts| u32::try_from(facts.pings).unwrap_or(u32::MAX)),
                    ..carried.probes
                },
            },
        };
        run.record(Event::Closed(&closed));
    }

    /// Whether all content was read as HTTP. In HTTP/1, bytes of a client without a request are
    /// another protocol or an incomplete request. In HTTP/2, they may be its own frames.
    pub(crate) fn is_read(&self) -> bool {
        let is_h2 = self.connection.row.protocol == Some(Protocol::Http2);
        let is_quiet = self.request_gap.is_none() && (is_h2 || !self.client_spoke);
        self.is_readable && (self.open.begun > 0 || is_quiet)
    }

    /// Records bytes of the server that belong to no response, while no request waits for one.
    pub(crate) fn note_excess(&mut self) {
        self.has_excess |= self.hears_client && self.done > 0;
    }

    fn moment(&self, is_counted: bool) -> Option<ClosePoint> {
        if !is_counted {
            return None;
        }
        if self.open.begun == 0 {
            return (!self.is_late).then_some(ClosePoint::Unused);
        }
        if self.is_stale {
            return Some(ClosePoint::Stale);
        }
        let (end, last_end) = (self.end?, self.last_end?);
        let begun_after = self.last_begin.is_some_and(|begin| begin >= end.at);
        let is_reused = self.open.begun > 1 || self.is_late;
        Some(
            if begun_after && is_reused && end.by == Some(Side::Server) {
                ClosePoint::Stale
            } else if self.is_cut || last_end > end.at {
                ClosePoint::MidExchange
            } else if self.has_excess && end.by == Some(Side::Client) {
                ClosePoint::AfterExcess
            } else {
                ClosePoint::after(end.at.since(last_end), self.announced_by.is_some())
            },
        )
    }
}

/// Whether the response was complete.
fn is_complete(outcome: SeenOutcome) -> bool {
    matches!(outcome, SeenOutcome::Complete | SeenOutcome::UntilClose)
}

/// Whether it asks a proxy for a tunnel. In HTTP/2 a CONNECT concerns one stream, and is an
/// ordinary exchange.
pub(crate) fn asks_for_tunnel(seen: &Seen) -> bool {
    let request = seen.request.as_ref();
    seen.stream.is_none() && request.is_some_and(|request| request.method == b"CONNECT")
}

/// Whether the response is a success (2xx), which grants a CONNECT.
pub(crate) fn is_granted(seen: &Seen) -> bool {
    let response = seen.response.as_ref();
    response.is_some_and(|response| response.status / 100 == 2)
}
