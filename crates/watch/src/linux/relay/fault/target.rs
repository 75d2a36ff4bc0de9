//! A connection that a fault may strike: when it strikes, and what of the passing bytes is passed
//! on.
//!
//! Bytes come here before they are shown to the observation, so that it sees what the program sees.
//! Whether an exchange is under way is the observation's knowledge; on TLS that is not read, the
//! order of records decides, and the row says so.

use super::burst::Burst;
use super::turn::is_idle;
use super::{DestinationKey, Faults, Shown};
use crate::FaultConfig;
use crate::platform::relay::direction::Passed;
use intact_ledger::FaultEnding::Reset;
use intact_ledger::FaultMoment::{Age, Idle, IdleTime, Kept, Request, Shutdown};
use intact_ledger::{
    Connection, ConnectionId, Dialled, FaultMoment, FaultObstacle, FaultPoint, FaultRow, Nanos,
    Protocol,
};
use intact_observe::{Progress, Side};
use intact_sys::process::SocketLocation;
use std::time::{Duration, Instant};

/// How long a connection carries nothing before it counts as idle, where the end of a response
/// cannot be read.
const IDLE_UNREAD: Duration = Duration::from_millis(100);

/// A connection that a fault may strike.
pub(in crate::platform::relay) struct FaultTarget {
    pub(super) id: ConnectionId,
    /// When the relay took it.
    since: Instant,
    /// Where the program's socket is found.
    pub(super) place: Option<SocketLocation>,
    /// The process that opened it.
    pub(super) process: Option<u32>,
    /// Its destination and its turn, once it was kept.
    pub(super) turn: Option<Turn>,
    /// When the last bytes passed.
    last_bytes: Instant,
    /// Bytes of the client up to the end of the last exchange.
    pub(super) before_request: u64,
    /// It was due, and its next request came before it was idle.
    was_never_idle: bool,
    /// A response announces the end.
    pub(super) is_announced: bool,
    /// It cannot be struck.
    is_given_up: bool,
    /// It leads to the server that a fault put at its address.
    pub(in crate::platform::relay) is_elsewhere: bool,
    /// A burst whose later requests are withheld.
    pub(super) burst: Option<Burst>,
    /// Bytes of the client that were passed on.
    pub(super) sent: u64,
    /// What strikes it, from the moment of the decision.
    pub(super) due: Option<Due>,
}

/// The turn of a kept connection.
pub(super) struct Turn {
    pub(super) destination: DestinationKey,
    /// It is struck after this number of exchanges.
    after: Option<u64>,
}

/// A decided strike.
#[derive(Clone, Copy, Debug)]
pub(in crate::platform::relay) struct Due {
    pub(super) point: FaultPoint,
    pub(super) at: Nanos,
    /// The exchanges by then.
    pub(super) progress: Progress,
    /// Bytes of a request that came and are not passed on.
    pub(super) withheld: u64,
}

impl FaultTarget {
    pub(in crate::platform::relay) fn new(
        about: &Connection,
        place: Option<&SocketLocation>,
        is_elsewhere: bool,
    ) -> FaultTarget {
        let now = Instant::now();
        FaultTarget {
            id: about.id,
            since: now,
            place: place.cloned(),
            process: about.owner.as_ref().map(|owner| owner.pid),
            turn: None,
            last_bytes: now,
            before_request: 0,
            was_never_idle: false,
            is_announced: false,
            // that server does what it likes
            is_given_up: is_elsewhere,
            is_elsewhere,
            burst: None,
            sent: 0,
            due: None,
        }
    }

    /// Its destination, once it was kept.
    pub(super) fn destination(&self) -> Option<&DestinationKey> {
        self.turn.as_ref().map(|turn| &turn.destination)
    }

    /// Whether it was to be struck, and ended before the exchange that the seed chose.
    pub(super) fn ended_too_early(&self, fault: FaultRow, exchanges: u64) -> bool {
        let after = self.turn.as_ref().and_then(|turn| turn.after);
        let needed = after.map(|after| after + u64::from(!is_idle(fault)));
        exchanges > 1 && needed.is_some_and(|needed| exchanges < needed)
    }

    /// Whether a strike is decided.
    pub(in crate::platform::relay) fn is_due(&self) -> bool {
        self.due.is_some()
    }

    /// Takes bytes that came from one side, and shows to the observation what is passed on.
    pub(in crate::platform::relay) fn take(
        &mut self,
        (from, bytes): (Side, &[u8]),
        faults: &mut Faults,
        seen: &mut Shown<'_, '_>,
    ) -> Passed {
        let fault = faults.config.kind.row();
        let before = seen.progress();
        let is_turn = before.is_some_and(|before| self.is_turn(&before, faults));
        self.last_bytes = Instant::now();
        if let (Side::Client, Some(before)) = (from, before)
            && before.open == 0
        {
            self.before_request = self.sent;
        }
        let passed = match (from, before) {
            (Side::Client, Some(before)) if is_turn && fault.moment == FaultMoment::Burst => {
                self.take_burst(bytes, &before, faults, seen)
            }
            (Side::Client, Some(before)) if is_turn => {
                self.take_request(fault, bytes, &before, faults, seen)
            }
            (Side::Server, Some(before)) if is_turn && before.open > 0 => {
                self.take_response(bytes, faults, seen)
            }
            _ => {
                seen.show(from, bytes);
                Passed::All
            }
        };
        if from == Side::Client && self.due.is_none() {
            self.sent += bytes.len() as u64;
        }
        if from == Side::Server && self.due.is_none() {
            return self.look_at_end(fault, bytes.len(), passed, before, faults, seen);
        }
        passed
    }

    /// Whether it is this connection's turn, by its exchanges.
    fn is_turn(&self, progress: &Progress, faults: &Faults) -> bool {
        let Some(turn) = &self.turn else { return false };
        if self.is_given_up || self.is_announced {
            return false;
        }
        if faults.is_of_struck_pool(&turn.destination, self.id) {
            return true;
        }
        let is_old = !faults.has_age() || self.since.elapsed() >= faults.config.after;
        let has_enough = turn.after.is_some_and(|after| progress.done >= after);
        is_old && has_enough && faults.may_strike_pool(&turn.destination)
    }

    /// Takes bytes of the program, which may begin a request.
    fn take_request(
        &mut self,
        fault: FaultRow,
        bytes: &[u8],
        before: &Progress,
        faults: &mut Faults,
        seen: &mut Shown<'_, '_>,
    ) -> Passed {
        let at = seen.now();
        seen.show(Side::Client, bytes);
        let Some(after) = seen.progress() else {
            return Passed::All;
        };
        let is_http1 = !before.is_tls && before.protocol != Some(Protocol::Http2);
        let begins = before.is_kept() && (after.open > 0 || is_http1);
        if !begins {
            return Passed::All;
        }
        match fault.moment {
            Request if fault.is_announced => {
                if let Some(why) = cannot_announce(&after, fault) {
                    self.note(why, faults);
                    return Passed::All;
                }
            }
            Request if self.can_move(fault, faults, seen) => {}
            Idle | IdleTime => {
                self.was_never_idle = faults.config.idle == FaultConfig::IDLE;
                self.note(FaultObstacle::NeverIdle, faults);
                return Passed::All;
            }
            _ => return Passed::All,
        }
        self.decide(FaultPoint::Request, at, &after, bytes.len() as u64);
        Passed::First(0)
    }

    /// Looks whether a response ended with these bytes: then the connection is kept, and may be
    /// struck at once.
    fn look_at_end(
        &mut self,
        fault: FaultRow,
        len: usize,
        passed: Passed,
        before: Option<Progress>,
        faults: &mut Faults,
        seen: &mut Shown<'_, '_>,
    ) -> Passed {
        let Some(now) = seen.progress() else {
            return passed;
        };
        self.note_kept(&now, faults, seen);
        if self.is_burst_over(&now) {
            self.decide(FaultPoint::Request, seen.now(), &now, self.withheld());
            return Passed::First(len);
        }
        if before.is_none_or(|before| before.done >= now.done) || now.is_inferred {
            return passed;
        }
        if self.is_announced && now.open == 0 {
            self.decide(FaultPoint::Idle, seen.now(), &now, 0);
            return match passed {
                Passed::Instead(bytes) => Passed::Instead(bytes),
                _ => Passed::Last(len),
            };
        }
        let is_turn = self.is_turn(&now, faults) && self.can_move(fault, faults, seen);
        match fault.moment {
            Kept if is_turn => {
                self.decide(FaultPoint::Idle, seen.now(), &now, 0);
                Passed::First(len)
            }
            // a program that is never idle sees the end together with the response
            Idle if fault.ending != Reset && is_turn && now.is_kept() && self.was_never_idle => {
                self.decide(FaultPoint::Idle, seen.now(), &now, 0);
                Passed::Last(len)
            }
            _ => passed,
        }
    }

    /// Whether the destination has a name whose lookup was seen, where a kind needs one. A
    /// program that dials an address never looks it up again.
    fn can_move(&self, fault: FaultRow, faults: &mut Faults, seen: &Shown<'_, '_>) -> bool {
        let dialled = seen.connection().and_then(|about| about.dialled.as_ref());
        let why = match dialled {
            _ if !fault.is_of_address => return true,
            Some(Dialled::Name(_)) => return true,
            Some(Dialled::Address) => FaultObstacle::NoName,
            None => FaultObstacle::NoLookup,
        };
        self.note(why, faults);
        false
    }

    /// Gives the connection its turn once it is kept.
    fn note_kept(&mut self, now: &Progress, faults: &mut Faults, seen: &Shown<'_, '_>) {
        if self.turn.is_none()
            && now.is_kept()
            && let Some(about) = seen.connection()
            && let Some((destination, after)) = faults.turn_of(about)
        {
            self.turn = Some(Turn { destination, after });
        }
    }

    /// Looks at a connection on which nothing comes. When to look again.
    pub(in crate::platform::relay) fn look_at_idle(
        &mut self,
        faults: &mut Faults,
        seen: &Shown<'_, '_>,
    ) -> Option<Instant> {
        let now = seen.progress()?;
        self.note_kept(&now, faults, seen);
        if let Some(until) = self.awaits_burst() {
            return Some(until);
        }
        let config = &faults.config;
        let (fault, after, short) = (config.kind.row(), config.after, config.idle);
        let turn = self.turn.as_ref()?;
        let is_of_struck_pool = faults.is_of_struck_pool(&turn.destination, self.id);
        let idle = match fault.moment {
            Idle => short,
            IdleTime => after,
            Kept if now.is_inferred => short,
            // the others of a pool end with the one that was struck first
            Kept | Shutdown if is_of_struck_pool => Duration::ZERO,
            Age | Shutdown if now.protocol == Some(Protocol::Http2) => short,
            _ => return None,
        };
        let can_move = self.can_move(fault, faults, seen);
        if !now.is_kept() || !self.is_turn(&now, faults) || !can_move {
            return None;
        }
        let idle = match now.is_inferred {
            true => idle.max(IDLE_UNREAD),
            false => idle,
        };
        let due = self.last_bytes + idle;
        if Instant::now() < due {
            return Some(due);
        }
        if fault.is_announced
            && now.protocol == Some(Protocol::Http2)
            && let Some(why) = cannot_announce(&now, fault)
        {
            self.give_up(why, faults);
            return None;
        }
        self.decide(FaultPoint::Idle, seen.now(), &now, 0);
        None
    }

    /// Puts a strike off.
    pub(super) fn put_off(&mut self) -> Instant {
        self.due = None;
        self.last_bytes = Instant::now();
        self.last_bytes + FaultConfig::IDLE
    }

    /// Gives a strike up.
    pub(super) fn give_up(&mut self, why: FaultObstacle, faults: &mut Faults) {
        self.due = None;
        self.is_given_up = true;
        self.note(why, faults);
    }

    pub(super) fn decide(
        &mut self,
        point: FaultPoint,
        at: Nanos,
        progress: &Progress,
        withheld: u64,
    ) {
        self.due = Some(Due {
            point,
            at,
            progress: *progress,
            withheld,
        });
    }

    pub(super) fn note(&self, why: FaultObstacle, faults: &mut Faults) {
        if let Some(turn) = &self.turn {
            faults.note_obstacle(&turn.destination, why);
        }
    }

    /// The strike was carried out.
    pub(super) fn note_strike(&self, faults: &mut Faults) {
        if let Some(turn) = &self.turn {
            faults.note_strike(&turn.destination, self.id);
        }
    }
}

/// Why the end of a connection cannot be announced.
pub(super) fn cannot_announce(now: &Progress, fault: FaultRow) -> Option<FaultObstacle> {
    let is_http2 = now.protocol == Some(Protocol::Http2);
    match fault.moment {
        Request if !is_http2 && !now.is_inferred => Some(FaultObstacle::NotHttp2),
        // a response of HTTP/1 would have to be sealed again as a whole
        _ if now.is_tls && !(is_http2 && now.is_sealable) => Some(FaultObstacle::Encrypted),
        _ if is_http2 && !now.is_between_frames => Some(FaultObstacle::NeverIdle),
        _ => None,
    }
}
