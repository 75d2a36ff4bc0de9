//! Follows a struck connection until it is over for the program.
//!
//! What the program sends is read and shown to the observation, and never passed on.

use super::strike::{CROSSING, Mode, Strike};
use crate::platform::relay::{Relay, RelayedPair, observe};
use intact_ledger::{
    Certainty, CloseKind, ConnectionId, Event, FaultEvent, FaultPoint, FaultStrike, Nanos, StallEnd,
};
use intact_observe::{RunContext as _, Side};
use intact_sys::socket;
use std::io::{self, Read};
use std::time::{Duration, Instant};

/// Between looks at the socket of a program that hears nothing: its kernel may have given up.
const LOOK: Duration = Duration::from_millis(20);
impl Relay<'_> {
    /// Follows a connection that was struck.
    pub(in crate::platform::relay) fn pump_struck(&mut self, id: ConnectionId) {
        let Some(link) = self.links.get_mut(&id) else {
            return;
        };
        let Some(faults) = self.faults.as_deref() else {
            return;
        };
        let wait = faults.config.wait;
        let clock = self.clock;
        let RelayedPair {
            near,
            observed,
            strike,
            fault,
            out,
            ..
        } = &mut **link;
        let (Some(strike), Some(target)) = (strike.as_deref_mut(), fault.as_deref_mut()) else {
            return;
        };
        let process = target.process;
        let closed = |at: Nanos| (end_of(process), at);
        while strike.ended.is_none() && strike.half_closed.is_none() {
            let how = match near.read(&mut self.scratch) {
                Ok(0) => CloseKind::Fin,
                Ok(count) => {
                    let at = clock.now();
                    let bytes = &self.scratch[..count];
                    observe(observed, &mut self.run, |seen, run| {
                        seen.read(Side::Client, bytes, at, run);
                    });
                    strike.withheld += count as u64;
                    let progress = observed.as_ref().and_then(|seen| seen.progress());
                    if strike.begins_request(progress) {
                        strike.note_used(at);
                        if let Mode::HalfClosed { resets: true, at } = &mut strike.mode {
                            at.get_or_insert_with(|| Instant::now() + CROSSING);
                        }
                    }
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => CloseKind::Rst,
            };
            let at = clock.now();
            observe(observed, &mut self.run, |seen, run| {
                seen.end(Side::Client, how, at, run);
            });
            match (how, strike.mode) {
                (CloseKind::Fin, Mode::Silent) => strike.half_closed = Some(at),
                _ => strike.ended = Some(closed(at)),
            }
        }
        let now = Instant::now();
        if strike.ended.is_none() && strike.mode == Mode::Silent {
            let program = target.place.as_ref().and_then(|place| place.copy());
            let at = clock.now();
            if let Some(program) = &program {
                strike.look_at_held(program, at);
            }
            if program.as_ref().is_none_or(socket::is_idle) {
                // the program has closed it, or its kernel has given it up
                strike.ended = Some(closed(strike.half_closed.unwrap_or(at)));
                observe(observed, &mut self.run, |seen, run| {
                    seen.end(Side::Client, CloseKind::Silent, at, run);
                });
            }
        }
        let limit = strike.stalls_since().map(|since| since + wait);
        if strike.ended.is_none() && limit.is_some_and(|limit| now >= limit) {
            let at = clock.now();
            if strike.mode == Mode::Silent {
                observe(observed, &mut self.run, |seen, run| {
                    seen.note_acknowledged(out.passed_on());
                    seen.end(Side::Server, CloseKind::Rst, at, run);
                });
            }
            strike.ended = Some((StallEnd::Limit, at));
        }
        let crossed = match strike.mode {
            Mode::HalfClosed { at, .. } => at,
            _ => None,
        };
        if strike.ended.is_none() && crossed.is_some_and(|at| now >= at) {
            strike.ended = Some((StallEnd::Fault, clock.now()));
        }
        if strike.ended.is_some() {
            if strike.mode == Mode::Silent {
                let program = target.place.as_ref().and_then(|place| place.copy());
                program.iter().for_each(|program| {
                    let _ = socket::undeafen(program);
                });
                socket::outshout(near);
            }
            // nothing is left of it at the program's end either
            socket::reset_on_close(near);
            self.close(id);
            return;
        }
        let look = (strike.mode == Mode::Silent).then(|| now + LOOK);
        if let Some(next) = [look, limit, crossed].into_iter().flatten().min() {
            self.arrivals.insert((next, id));
        }
    }

    /// Records that a connection which is over led to the server that a fault put at its address:
    /// nothing of its requests reached the program's own server.
    pub(in crate::platform::relay) fn record_elsewhere(&mut self, link: &RelayedPair) {
        let Some(faults) = self.faults.as_deref() else {
            return;
        };
        let (Some(seen), true) = (
            &link.observed,
            link.fault.as_ref().is_some_and(|one| one.is_elsewhere),
        ) else {
            return;
        };
        let (about, progress) = (seen.connection(), seen.progress());
        let (done, open) = progress.map_or((0, 0), |now| (now.done, now.open));
        // a handshake that the program ended has no request
        if done + open == 0 {
            return;
        }
        let place = faults.place;
        let row = FaultEvent::Struck(FaultStrike {
            variant: place.map(|place| place.variant),
            round: place.map(|place| place.round),
            kind: faults.config.kind,
            connection: about.id,
            at: about.at,
            point: FaultPoint::Request,
            exchanges_before: 0,
            in_flight: done + open,
            reached: 0,
            withheld: link.out.taken,
            used_at: Some(about.at),
            held: None,
            end: self.clock.now(),
            ended: StallEnd::Fault,
            certainty: certainty(progress.is_some_and(|now| now.is_inferred)),
        });
        self.run.record(Event::Fault(&row));
    }

    /// Records the strike of a connection that is over.
    pub(in crate::platform::relay) fn record_strike(&mut self, id: ConnectionId, strike: &Strike) {
        let Some(faults) = self.faults.as_deref() else {
            return;
        };
        let (ended, end) = strike
            .ended
            .unwrap_or((StallEnd::EndOfRun, self.clock.now()));
        let place = faults.place;
        let row = FaultEvent::Struck(FaultStrike {
            variant: place.map(|place| place.variant),
            round: place.map(|place| place.round),
            kind: strike.kind,
            connection: id,
            at: strike.due.at,
            point: strike.due.point,
            exchanges_before: strike.due.progress.done,
            in_flight: strike.due.progress.open,
            reached: strike.reached,
            withheld: strike.withheld,
            used_at: strike.used.map(|(at, _)| at),
            held: strike.held,
            end,
            ended,
            certainty: certainty(strike.due.progress.is_inferred),
        });
        self.run.record(Event::Fault(&row));
    }
}

/// How certain exchanges are.
fn certainty(is_inferred: bool) -> Certainty {
    match is_inferred {
        true => Certainty::Inferred(
            "TLS that is not read: exchanges are inferred from the order of records".into(),
        ),
        false => Certainty::Exact,
    }
}

/// Who closed the program's socket: the program, or the kernel at the end of its process.
fn end_of(process: Option<u32>) -> StallEnd {
    let descriptors = process.and_then(|pid| std::fs::read_dir(format!("/proc/{pid}/fd")).ok());
    // a process that ends has none any more
    match descriptors.is_some_and(|mut all| all.next().is_some()) {
        true => StallEnd::ProgramClosed,
        false => StallEnd::EndOfRun,
    }
}
