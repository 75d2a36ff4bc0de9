//! One TCP connection of a capture: segments in, rows of the ledger out.
//!
//! It owns the reassembly and detects what only packets show: setup, end, a failed dial. `observe`
//! reads the bytes.

use super::coverage::{Coverage, Lacks};
use super::ladder::{Ladder, LadderBuilder};
use super::selection::Chosen;
use crate::event_writer::EventWriter;
use intact_ledger::{
    CloseKind, Connection, ConnectionId, DialFailure, Event, Failure, FingerprintKey, Nanos,
    Origin, Protocol, SetupPhase, Span,
};
use intact_observe::{Ending, LowerBound, ObservedConnection, Opaque, RunContext};
use intact_wire::Side;
use intact_wire::exchange::Exchange as Seen;
use intact_wire::tcp::{
    Close, Flow, Limits, Run, Segment, SegmentDelay, SegmentDelays, TcpCloseKind,
};
use intact_wire::tls::decrypt::{KeyLog, SecretCheck};
use std::net::SocketAddr;
use std::sync::Arc;

/// Limits of the data that waits for missing packets, per direction.
const LIMITS: Limits = Limits {
    bytes: 1 << 20,
    pieces: 1024,
    patience: 200_000_000,
};
/// A SYN without an answer for this long has timed out. Nanoseconds.
const UNANSWERED: u64 = 1_000_000_000;
/// Number of the client's retransmissions without an acknowledgement that show that the server did
/// not receive the request. A single one may be a probe for a late acknowledgement (RFC 8985
/// section 7).
const UNHEARD: u32 = 2;

/// One TCP connection.
pub(super) struct TcpConnection {
    flow: Flow,
    delays: SegmentDelays,
    coverage: Coverage,
    observed: ObservedConnection,
    /// Its packets, if they are selected.
    ladder: Option<Box<LadderBuilder>>,
    client: SocketAddr,
    is_late: bool,
    begun_at: u64,
    established_at: Option<u64>,
    seen_at: u64,
    /// When the server's last packet was captured.
    heard_at: u64,
    /// Number of segments that the client sent again after that packet.
    unheard_resent: u32,
    /// The side that reset the connection before the client acknowledged the server's SYN.
    reset_in_setup: Option<Side>,
    /// The server sent its SYN again.
    repeats_syn: bool,
    /// A RST that the other side should have ignored, unless its sender goes on.
    doubtful_reset: Option<(Side, Segment<'static>)>,
}

/// The result of a finished connection.
pub(super) enum ConnectionState {
    /// A connection.
    Connection(EndedConnection),
    /// A SYN-ACK for no SYN in the capture, which its receiver reset: it had opened nothing.
    Stray,
    /// A first SYN near the end of the capture, whose SYN-ACK may come after the end.
    TooLate,
    /// A single SYN in a capture without a packet from a server.
    Unheard,
}

/// An ended connection.
pub(super) struct EndedConnection {
    /// Number of exchanges whose end is not in the capture.
    pub(super) unseen: u64,
    /// Why its content could not be read; `None` if it was.
    pub(super) blind: Option<Opaque>,
    /// Number of its exchanges.
    pub(super) carried: u64,
    /// What the capture lacks of it.
    pub(super) lacks: Lacks,
    /// The responses in the capture show all requests of HTTP/1, whose packets it lacks.
    pub(super) shows_requests: bool,
    /// A side broke a rule of HTTP/2, so that what followed was not read.
    pub(super) is_broken_off: bool,
    /// Its packets, if they were selected.
    pub(super) ladder: Option<Box<Ladder>>,
}

/// The parts of the capture's state that a connection needs.
struct CaptureContext<'a, 'b> {
    writer: &'a mut EventWriter<'b>,
    ladder: Option<&'a mut LadderBuilder>,
}

impl RunContext for CaptureContext<'_, '_> {
    fn record(&mut self, event: Event<'_>) {
        self.writer.record(event);
    }

    fn next_exchange(&mut self) -> u64 {
        self.writer.next_exchange()
    }

    fn fingerprint_key(&self) -> &FingerprintKey {
        &self.writer.run.key
    }

    fn add_secrets(&mut self, client_random: &[u8; 32], into: &mut KeyLog) -> bool {
        let lines = match &mut self.writer.run.secrets {
            Some(secrets) => secrets.take(client_random),
            None => return into.copy_from(&self.writer.run.keys, client_random),
        };
        for line in &lines {
            // a malformed line is the program's affair
            let _ = into.add_line(line);
        }
        !lines.is_empty()
    }

    fn search_secrets(&mut self, process: u32, checks: Vec<SecretCheck>) {
        if let Some(secrets) = &mut self.writer.run.secrets {
            secrets.search(process, checks);
        }
    }

    fn is_searching(&self, client_random: &[u8; 32]) -> bool {
        let secrets = self.writer.run.secrets.as_ref();
        secrets.is_some_and(|secrets| secrets.is_searching(client_random))
    }

    fn note_lower_bound(&mut self, why: LowerBound) {
        self.writer.run.lower_bounds.add(why);
    }

    fn is_new_server(&mut self, origin: Option<&Origin>, product: &Arc<str>) -> bool {
        self.writer.run.servers.is_new(origin, product)
    }

    fn note_tls(&mut self, from: Side, bytes: &[u8], at: Nanos) {
        if let Some(ladder) = &mut self.ladder {
            ladder.read_tls(from, bytes, at);
        }
    }

    fn note_h2(&mut self, from: Side, bytes: &[u8], at: Nanos) {
        if let Some(ladder) = &mut self.ladder {
            ladder.read_h2(from, bytes, at);
        }
    }

    fn note_exchange(&mut self, seen: &Seen) {
        if let Some(ladder) = &mut self.ladder {
            ladder.read_exchange(seen);
        }
    }
}

impl TcpConnection {
    /// A connection whose first packet was captured at `at`. `is_late`: that packet was no SYN.
    pub(super) fn new(
        (client, server): (SocketAddr, SocketAddr),
        at: u64,
        late: bool,
        chosen: Chosen,
        writer: &mut EventWriter<'_>,
    ) -> TcpConnection {
        let mut connection = Connection::new(writer.next_connection(), writer.nanos(at));
        connection.local = Some(client);
        connection.peer = Some(server);
        connection.open_before = late;
        connection.owner = chosen.owner;
        let mut observed = ObservedConnection::new(connection, late, chosen.tls);
        observed.see_packets();
        TcpConnection {
            flow: Flow::new(LIMITS),
            delays: SegmentDelays::default(),
            coverage: Coverage::default(),
            observed,
            ladder: None,
            client,
            is_late: late,
            begun_at: at,
            established_at: None,
            seen_at: at,
            heard_at: at,
            unheard_resent: 0,
            reset_in_setup: None,
            repeats_syn: false,
            doubtful_reset: None,
        }
    }

    /// The side with this address.
    pub(super) fn side_of(&self, source: SocketAddr) -> Side {
        if source == self.client {
            Side::Client
        } else {
            Side::Server
        }
    }

    /// Its number.
    pub(super) fn id(&self) -> ConnectionId {
        self.observed.connection().id
    }

    /// Lets time pass without a packet.
    pub(super) fn tick(&mut self, now: Nanos, writer: &mut EventWriter<'_>) {
        let mut context = CaptureContext {
            writer,
            ladder: self.ladder.as_deref_mut(),
        };
        self.observed.tick(now, &mut context);
    }

    /// Whether secrets may come soon, though the connection is over.
    pub(super) fn awaits_secrets(&self, writer: &mut EventWriter<'_>) -> bool {
        let context = CaptureContext {
            writer,
            ladder: None,
        };
        self.observed.awaits_secrets(&context)
    }

    /// The process has become known in whose memory secrets may be searched.
    pub(super) fn note_process(&mut self, process: u32) {
        self.observed.note_process(process);
    }

    /// When the last packet came, in nanoseconds since 1970.
    pub(super) fn seen_at(&self) -> u64 {
        self.seen_at
    }

    /// Bytes that wait for a hole to be filled.
    pub(super) fn waiting(&self) -> usize {
        self.flow.waiting()
    }

    /// Whether a segment opens another connection between the same addresses.
    pub(super) fn is_reopened_by(&self, from: Side, segment: &Segment<'_>) -> bool {
        self.flow.is_reopened_by(from, segment)
    }

    /// The client's first sequence number after its SYN, or of its first captured segment.
    pub(super) fn client_start(&self) -> Option<u32> {
        self.flow.client_start()
    }

    /// Whether both directions have ended.
    pub(super) fn is_over(&self) -> bool {
        let [client, server] =
            [Side::Client, Side::Server].map(|side| self.flow.stream(side).facts());
        client.rst_at.is_some()
            || server.rst_at.is_some()
            || (client.fin_at.is_some() && server.fin_at.is_some())
    }

    /// Takes a segment.
    pub(super) fn take(&mut self, from: Side, segment: &Segment<'_>, writer: &mut EventWriter<'_>) {
        if segment.rst && self.is_ignored(from, segment) {
            self.seen_at = self.seen_at.max(segment.at);
            self.doubtful_reset = Some((from, segment.without_payload()));
            return;
        }
        // a side that goes on has reset nothing
        if self.doubtful_reset.is_some_and(|(by, _)| by == from) && !segment.rst {
            self.doubtful_reset = None;
        }
        if segment.rst && self.resets_setup(from, segment) {
            self.reset_in_setup.get_or_insert(from);
        }
        let Self {
            flow,
            delays,
            observed,
            ladder,
            ..
        } = self;
        self.seen_at = self.seen_at.max(segment.at);
        if from == Side::Server {
            self.heard_at = self.heard_at.max(segment.at);
            self.unheard_resent = 0;
        }
        self.coverage.take(from, segment);
        if let Some(ladder) = ladder {
            ladder.packet(from, segment);
        }
        // before the payload is read, which may end the exchange
        match delays.take(from, segment) {
            Some(SegmentDelay::Resent) => {
                observed.note_resent(writer.nanos(segment.at));
                self.unheard_resent += u32::from(from == Side::Client);
                self.repeats_syn |= from == Side::Server && segment.syn;
            }
            Some(SegmentDelay::AwaitedAck) => observed.note_late_ack(writer.nanos(segment.at)),
            None => {}
        }
        let repeated = flow.stream(from).facts().repeated;
        // after a late start, packets without data do not show the client's direction: a request
        // from before the capture may still get its response
        if from == Side::Client && (segment.len > 0 || !self.is_late) {
            observed.hear_client();
        }
        // before the payload is read: the last packet of a handshake may carry the first request
        let syns = [Side::Client, Side::Server].map(|side| flow.stream(side).facts().syn_at);
        if let (Some(syn), Some(_), None) = (syns[0], syns[1], self.established_at)
            && from == Side::Client
            && segment.ack.is_some()
            && !segment.rst
        {
            self.established_at = Some(segment.at);
            observed.establish(Span::new(writer.nanos(syn), writer.nanos(segment.at)));
        }
        let mut context = CaptureContext {
            writer,
            ladder: ladder.as_deref_mut(),
        };
        flow.push(from, segment, |side, run| {
            show(observed, side, run, &mut context);
        });
        if from == Side::Client && segment.fin {
            observed.note_client_fin();
        }
        if let Some(ladder) = ladder
            && flow.stream(from).facts().repeated > repeated
        {
            ladder.was_again();
        }
    }

    /// Whether the other side ignores this RST (RFC 9293 sections 3.5.3 and 3.10.7): before the
    /// connection is established, one that does not acknowledge the SYN; later, one whose number is
    /// before what the other side has acknowledged.
    fn is_ignored(&self, from: Side, segment: &Segment<'_>) -> bool {
        let syns = [Side::Client, Side::Server].map(|side| self.flow.stream(side).facts().syn_at);
        match (from, syns) {
            (Side::Server, [Some(_), None]) => segment.ack != self.flow.client_start(),
            _ => self.coverage.is_before_acked(from, segment.seq),
        }
    }

    /// Whether this RST comes before the client acknowledged the server's SYN, and before any data.
    fn resets_setup(&self, from: Side, segment: &Segment<'_>) -> bool {
        let server = self.flow.stream(Side::Server);
        let start = match from {
            Side::Client => self.flow.client_start(),
            Side::Server => server.start(),
        };
        let is_setup = server.facts().syn_at.is_some() && !self.coverage.acknowledges(Side::Client);
        is_setup && start == Some(segment.seq)
    }

    /// Starts to keep its packets. Call it before the first packet.
    pub(super) fn climb(&mut self, client: SocketAddr, server: SocketAddr, base: u64) {
        self.ladder = Some(Box::new(LadderBuilder::new(
            self.id(),
            client,
            server,
            base,
        )));
    }

    /// Whether a packet from the server was captured.
    pub(super) fn hears_server(&self) -> bool {
        self.flow.stream(Side::Server).facts().segments > 0
    }

    /// Records the end. `complete`: the capture continues long enough, so missing packets were
    /// never sent. `hears_servers`: the capture holds packets from servers.
    pub(super) fn finish(
        mut self,
        complete: bool,
        hears_servers: bool,
        now: u64,
        writer: &mut EventWriter<'_>,
    ) -> ConnectionState {
        let (begun_at, seen_at) = (self.begun_at, self.seen_at);
        let heard_at = (self.unheard_resent >= UNHEARD).then_some(self.heard_at);
        let Self {
            flow,
            coverage,
            observed,
            ladder,
            doubtful_reset,
            reset_in_setup,
            repeats_syn,
            ..
        } = &mut self;
        let mut context = CaptureContext {
            writer,
            ladder: ladder.as_deref_mut(),
        };
        // nothing followed it: the connection ended by it all the same
        if let Some((by, reset)) = doubtful_reset {
            flow.push(*by, reset, |side, run| {
                show(observed, side, run, &mut context);
            });
        }
        let end = flow.close();
        if let Some(Close {
            at,
            by,
            how,
            acknowledged,
        }) = end
        {
            let how = match how {
                TcpCloseKind::Rst => CloseKind::Rst,
                TcpCloseKind::Fin => CloseKind::Fin,
            };
            if by == Side::Server {
                observed.note_acknowledged(acknowledged);
            }
            observed.note_end(by, how, context.writer.nanos(at));
            // a RST after a FIN of the same side ends both directions
            let [own, other] = [by, by.other()].map(|side| flow.stream(side).facts());
            let resets = other.rst_at.into_iter().chain(own.rst_at).min();
            let ends = [(other.fin_at, CloseKind::Fin), (resets, CloseKind::Rst)];
            let ends = ends.into_iter().filter_map(|(at, how)| Some((at?, how)));
            if let Some((at, how)) = ends.min_by_key(|(at, _)| *at) {
                observed.note_end(by.other(), how, context.writer.nanos(at));
            }
            if let Some(at) = flow.stream(Side::Client).facts().rst_at {
                observed.note_end(Side::Client, CloseKind::Rst, context.writer.nanos(at));
            }
        }
        flow.finish(|side, run| show(observed, side, run, &mut context));
        let lacks = coverage.lacks(flow);
        let waited = now.saturating_sub(begun_at);
        let is_over = complete || waited >= UNANSWERED;
        match dial(flow, coverage, *reset_in_setup, *repeats_syn, is_over) {
            Dial::Stray => return ConnectionState::Stray,
            Dial::TooLate => return ConnectionState::TooLate,
            // a refused or an answered client also sends only one SYN
            Dial::Failed(_)
                if !hears_servers && flow.stream(Side::Client).facts().segments == 1 =>
            {
                return ConnectionState::Unheard;
            }
            Dial::Failed(failed) => observed.fail(failed, &mut context),
            Dial::Opened => {
                let is_whole = end.is_some() && lacks.is_nothing();
                let by = end.map(|end| end.by);
                if by.is_some_and(|by| coverage.lacks_end_of(by.other(), flow)) {
                    observed.forget_closer();
                }
                if let (Some(heard_at), None, false) = (heard_at, end, lacks.direction) {
                    let [since, until] = [heard_at, seen_at].map(|at| context.writer.nanos(at));
                    observed.note_unheard(Span::new(since, until));
                }
                if end.is_none() && lacks.is_nothing() && hears_servers {
                    let until = context.writer.nanos(now.max(seen_at));
                    observed.note_recorded_until(until);
                }
                // a response that is not in the capture may have failed or not
                let ending = match is_whole {
                    true => Ending::Observed,
                    false => Ending::Unobserved,
                };
                let server_ended = flow.stream(Side::Server).facts().fin_at;
                let at = server_ended.or(end.map(|end| end.at));
                let at = context.writer.nanos(at.unwrap_or(seen_at));
                observed.finish(at, ending, &mut context);
            }
        }
        ConnectionState::Connection(EndedConnection {
            unseen: observed.unobserved_exchanges(),
            blind: observed.opaque().filter(|why| {
                let is_whole = lacks.is_nothing() && !observed.is_broken_off();
                !matches!(why, Opaque::Unknown | Opaque::PartialRequest) || is_whole
            }),
            carried: observed.exchanges(),
            shows_requests: coverage.responses_show_requests()
                && !lacks.packets
                && lacks.cut_packets == 0
                && observed.exchanges() > 0
                && observed.unobserved_exchanges() == 0
                && !observed
                    .connection()
                    .protocol
                    .is_some_and(Protocol::has_streams),
            is_broken_off: observed.is_broken_off(),
            lacks,
            ladder: ladder.take().map(|ladder| Box::new(ladder.finish())),
        })
    }
}

/// How a dial ended, if the packets show it.
enum Dial {
    /// The connection was established, or nothing shows that it was not.
    Opened,
    Failed(DialFailure),
    /// The capture ends before an answer would have come.
    TooLate,
    /// There was none: a SYN-ACK for no SYN was reset.
    Stray,
}

/// How the dial ended. A connection is established when the client acknowledges the server's SYN
/// (RFC 9293 section 3.5); the data of a SYN shows nothing before that. `reset_by`: the side that
/// reset it before. `is_over`: an answer would have arrived by now.
fn dial(
    flow: &Flow,
    coverage: &Coverage,
    reset_by: Option<Side>,
    repeats_syn: bool,
    is_over: bool,
) -> Dial {
    let [client, server] = [Side::Client, Side::Server].map(|side| flow.stream(side).facts());
    if server.bytes > 0 || coverage.acknowledges(Side::Client) {
        return Dial::Opened;
    }
    let failed = |kind, detail: &str| {
        Dial::Failed(DialFailure::with_detail(SetupPhase::Connect, kind, detail))
    };
    match (client.syn_at, server.syn_at, reset_by) {
        (None, Some(_), Some(Side::Client)) => Dial::Stray,
        (None, ..) => Dial::Opened,
        (_, Some(_), Some(Side::Client)) => failed(
            Failure::ClientClosed,
            "the client reset it before it acknowledged the server's SYN",
        ),
        (_, Some(_), Some(Side::Server)) => failed(
            Failure::ConnectReset,
            "reset before the client acknowledged the server's SYN",
        ),
        (_, Some(_), None) if repeats_syn => failed(
            Failure::ConnectTimeout,
            "the client did not acknowledge the server's SYN",
        ),
        (_, Some(_), None) => Dial::Opened,
        (_, None, _) if server.rst_at.is_some() => {
            Dial::Failed(DialFailure::new(SetupPhase::Connect, Failure::Refused))
        }
        (_, None, _) if is_over || client.repeated > 0 => Dial::Failed(DialFailure::new(
            SetupPhase::Connect,
            Failure::ConnectTimeout,
        )),
        (_, None, _) => Dial::TooLate,
    }
}

/// Passes captured bytes, or a gap, to the reader.
fn show(
    observed: &mut ObservedConnection,
    side: Side,
    run: Run<'_>,
    context: &mut CaptureContext<'_, '_>,
) {
    match run {
        Run::Bytes { bytes, at } => {
            let at = context.writer.nanos(at);
            observed.read(side, bytes, at, context);
        }
        Run::Gap { len, at } => {
            let at = context.writer.nanos(at);
            observed.lose(side, len, at, context);
        }
    }
}
