//! Carries a fault out, once the program has what was passed on before.
//!
//! A silent connection is silent for the program's kernel too: it hears no acknowledgement, so that
//! it sends again, and its probes are not answered. What follows a strike is in
//! [`struck`](super::struck).

use super::target::Due;
use crate::platform::relay::direction::{Passed, ReadResult, Stop};
use crate::platform::relay::{Relay, RelayedPair, await_room, observe};
use crate::platform::relay_command::{Successor, near_token};
use intact_ledger::{
    CloseKind, ConnectionId, FaultEnding, FaultKind, FaultMoment, FaultObstacle, FaultPoint,
    FaultRow, HeldBytes, Nanos, Protocol, StallEnd,
};
use intact_observe::{Progress, Side};
use intact_sys::socket;
use intact_wire::h2;
use mio::Registry;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// From a request on a closed connection to the RST that it provokes: so that all of the request is
/// seen.
pub(super) const CROSSING: Duration = Duration::from_millis(20);

/// A connection that was struck.
pub(in crate::platform::relay) struct Strike {
    pub(super) kind: FaultKind,
    pub(super) due: Due,
    pub(super) reached: u64,
    pub(super) withheld: u64,
    /// When the program first sent onto the dead connection.
    pub(super) used: Option<(Nanos, Instant)>,
    pub(super) mode: Mode,
    /// The most bytes that the program's kernel kept at once, and since when it kept some.
    unsent: u64,
    kept_since: Option<Instant>,
    /// Those that it kept after the program had used the connection, or without any use that was
    /// seen.
    pub(super) held: Option<HeldBytes>,
    /// The program's FIN came, and its socket is still open.
    pub(super) half_closed: Option<Nanos>,
    pub(super) ended: Option<(StallEnd, Nanos)>,
}

/// What a struck connection does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// The server's direction has ended. A request is responded to with a RST where the server
    /// `resets`, at the latest then.
    HalfClosed { resets: bool, at: Option<Instant> },
    /// The program hears nothing.
    Silent,
    /// It was reset.
    Reset,
}

impl Strike {
    /// Looks for bytes that the program's kernel does not send, as nothing before them was
    /// acknowledged. Over HTTP/2, or TLS that is not read, they may be requests.
    pub(super) fn look_at_held(&mut self, program: &OwnedFd, at: Nanos) {
        let before = &self.due.progress;
        if before.protocol != Some(Protocol::Http2) && !before.is_inferred {
            return;
        }
        let unsent = socket::unsent(program).map_or(0, u64::from);
        if unsent <= self.unsent {
            return;
        }
        self.kept_since.get_or_insert_with(Instant::now);
        if self.used.is_none() && unsent > HeldBytes::MOST_CONTROL {
            self.note_used(at);
        } else {
            let bytes = unsent - self.unsent;
            let held = self.held.get_or_insert(HeldBytes { at, bytes: 0 });
            held.bytes += bytes;
        }
        self.unsent = unsent;
    }

    /// A request was sent on the dead connection: the stall begins. What the kernel kept before was
    /// sent before it, or is it.
    pub(super) fn note_used(&mut self, at: Nanos) {
        if self.used.is_none() {
            self.used = Some((at, Instant::now()));
            self.held = None;
        }
    }

    /// When a stall began that has to end.
    pub(super) fn stalls_since(&self) -> Option<Instant> {
        self.used.map(|(_, since)| since).or(self.kept_since)
    }

    /// Whether what the program has just sent is a part of a request: a `close_notify` and a PING
    /// are none.
    pub(super) fn begins_request(&self, now: Option<Progress>) -> bool {
        let before = &self.due.progress;
        let is_http1 = !before.is_tls && before.protocol != Some(Protocol::Http2);
        is_http1 || now.is_none_or(|now| now.open > 0)
    }
}

impl Relay<'_> {
    /// Carries out the strike that is decided for a connection, once the program has what was
    /// passed on before.
    pub(in crate::platform::relay) fn strike(&mut self, id: ConnectionId) {
        let (Some(link), Some(faults)) = (self.links.get_mut(&id), self.faults.as_deref_mut())
        else {
            return;
        };
        let Some(target) = link.fault.as_deref_mut() else {
            return;
        };
        let Some(due) = target.due else { return };
        let (kind, strikes_pools) = (faults.config.kind, faults.strikes_pools());
        let fault = kind.row();
        let program = target.place.as_ref().and_then(|place| place.copy());
        if fault.moment == FaultMoment::Idle
            && fault.ending == FaultEnding::Reset
            && program
                .as_ref()
                .and_then(socket::unread)
                .is_some_and(|count| count > 0)
        {
            // the program has not read the response yet: it is not idle
            let later = target.put_off();
            self.arrivals.insert((later, id));
            return;
        }
        let goaway = announcement(fault, &due).filter(|_| !link.is_announced);
        if let Some(bytes) = goaway {
            let observed = link.observed.as_ref();
            let Some(bytes) = observed.and_then(|seen| seen.seal_by_server(&bytes)) else {
                link.refuse_strike(FaultObstacle::Encrypted, faults);
                self.again.push(id);
                return;
            };
            link.is_announced = true;
            let at = self.clock.now();
            observe(&mut link.observed, &mut self.run, |seen, run| {
                seen.read(Side::Server, &bytes, at, run);
            });
            link.back.append(&bytes);
        }
        link.out.cut();
        link.back.cut();
        if !is_delivered(fault, link, self.poll.registry(), id) {
            self.arrivals
                .insert((Instant::now() + Duration::from_millis(1), id));
            return;
        }
        let deafened = |program: &OwnedFd| socket::deafen(program, &link.near).is_ok();
        if fault.is_silent() && !program.as_ref().is_some_and(deafened) {
            link.refuse_strike(FaultObstacle::SocketNotReached, faults);
            self.again.push(id);
            return;
        }
        if let Some(target) = link.fault.as_deref() {
            target.note_strike(faults);
        }
        if fault.is_of_address
            && let Some(peer) = link
                .observed
                .as_ref()
                .and_then(|seen| seen.connection().peer)
        {
            let other = faults.other_server(due.progress.is_tls);
            let successor = other.map_or(Successor::Nothing, Successor::Server);
            self.orders.moved().note(peer, self.clock.now(), successor);
        }
        let in_flight = due.progress.open > 0;
        let before = link
            .fault
            .as_ref()
            .map_or(0, |target| target.before_request);
        let passed = link.out.passed_on();
        let mode = mode(fault);
        let mut strike = Strike {
            kind,
            due,
            reached: if in_flight {
                passed.saturating_sub(before)
            } else {
                0
            },
            withheld: due.withheld,
            used: (due.point != FaultPoint::Idle).then(|| (due.at, Instant::now())),
            mode,
            unsent: 0,
            kept_since: None,
            held: None,
            half_closed: None,
            ended: None,
        };
        let at = self.clock.now();
        match mode {
            Mode::HalfClosed { .. } => {
                end_by_server(link, &mut self.run, CloseKind::Fin, at, passed);
                let _ = link.near.shutdown(Shutdown::Write);
            }
            Mode::Reset => {
                end_by_server(link, &mut self.run, CloseKind::Rst, at, passed);
                socket::reset_on_close(&link.near);
                strike.ended = Some((StallEnd::Fault, at));
            }
            Mode::Silent => {}
        }
        let _ = self.poll.registry().deregister(&mut link.far);
        if mode != Mode::Silent {
            let _ = link.far.shutdown(Shutdown::Both);
        }
        link.strike = Some(Box::new(strike));
        match mode {
            Mode::Reset => self.close(id),
            _ => self.again.push(id),
        }
        if strikes_pools {
            // the other connections of the pool end with it
            self.again.extend(self.links.keys().copied());
        }
    }

    /// Decides whether a connection on which nothing comes is struck.
    pub(in crate::platform::relay) fn look_at_idle(&mut self, id: ConnectionId) {
        let (Some(link), Some(faults)) = (self.links.get_mut(&id), self.faults.as_deref_mut())
        else {
            return;
        };
        let Some(target) = link.fault.as_deref_mut() else {
            return;
        };
        if target.has_late_burst() {
            link.refuse_strike(FaultObstacle::NoResponse, faults);
            self.again.push(id);
            return;
        }
        let shown = super::Shown {
            observed: &mut link.observed,
            run: &mut self.run,
            clock: self.clock,
            holds: &link.holds,
        };
        if let Some(next) = target.look_at_idle(faults, &shown) {
            self.arrivals.insert((next, id));
        }
        if target.is_due() {
            self.strike(id);
        }
    }
}

/// What a fault makes of a connection.
fn mode(fault: FaultRow) -> Mode {
    let half_closed = |resets, at| Mode::HalfClosed { resets, at };
    match fault.ending {
        FaultEnding::Fin => half_closed(true, None),
        FaultEnding::LateFin => half_closed(true, Some(Instant::now() + CROSSING)),
        FaultEnding::HalfClose => half_closed(false, None),
        FaultEnding::Silence => Mode::Silent,
        FaultEnding::Reset => Mode::Reset,
    }
}

impl RelayedPair {
    /// Passes on again after a strike that could not be carried out.
    fn refuse_strike(&mut self, why: FaultObstacle, faults: &mut super::Faults) {
        if let Some(target) = self.fault.as_deref_mut() {
            target.give_up(why, faults);
            if let Some(withheld) = target.take_withheld() {
                self.out.pass_late(&withheld);
            }
        }
        self.out.resume();
        self.back.resume();
    }
}

/// The bytes that announce the end of a connection of HTTP/2, where a fault needs them.
fn announcement(fault: FaultRow, due: &Due) -> Option<Vec<u8>> {
    if due.progress.protocol != Some(Protocol::Http2) || !fault.is_announced {
        return None;
    }
    const ALL_STREAMS: u32 = 0x7fff_ffff;
    // a stream that is open was begun by the request that is not passed on: the server never
    // processed it
    let last = due
        .progress
        .first_stream
        .map_or(ALL_STREAMS, |first| first.saturating_sub(2));
    let mut bytes = Vec::new();
    h2::writer::write_go_away(&mut bytes, last, h2::ErrorCode::NO_ERROR, &[]);
    Some(bytes)
}

/// Writes what is left for the program. Whether its kernel has all of it.
fn is_delivered(
    fault: FaultRow,
    link: &mut RelayedPair,
    registry: &Registry,
    id: ConnectionId,
) -> bool {
    let [_, hold] = &link.holds;
    let passed = |_: ReadResult<'_>| Passed::All;
    let ends = (&mut link.far, &mut link.near);
    let stop = link.back.pass(ends, &mut [], true, hold, passed);
    if matches!(stop, Stop::SinkReset | Stop::SinkClosed) {
        // the program has left, and takes nothing any more
        return true;
    }
    await_room(registry, &mut link.near, near_token(id), &mut link.back);
    // a FIN comes behind what the kernel still has; silence and a RST would swallow that
    let is_ordered = matches!(mode(fault), Mode::HalfClosed { .. });
    let is_sent = || socket::unsent(&link.near).is_none_or(|count| count == 0);
    link.back.is_flushed() && (is_ordered || is_sent())
}

/// Shows the end by the server to the observation.
fn end_by_server(
    link: &mut RelayedPair,
    run: &mut crate::platform::run_context::RunContext<'_>,
    how: CloseKind,
    at: Nanos,
    acknowledged: u64,
) {
    observe(&mut link.observed, run, |seen, run| {
        seen.note_acknowledged(acknowledged);
        seen.end(Side::Server, how, at, run);
    });
}
