//! What one strike did to the requests that it affected: who got a response in the end, what
//! arrived twice, how long it took. Must not write sentences.

use super::card::{FaultCell, HELD};
use super::judge::{AffectedRequest, Reached, RunJudge};
use super::run_rows::SentRequest;
use super::strike_counts::{add, may_add};
use intact_ledger::{FaultEnding, FaultMoment, FaultStrike, HeldBytes, StallEnd};
use intact_reading::{Reading, Why};

const UNREADABLE: &str = "some requests of the program cannot be read";
const UNSENT: &str = "after an RST or a GOAWAY a request can fail before any byte of it is sent; `--fault none,KIND` compares with a run without a fault";
const FEWER: &str = "after an RST or a GOAWAY a request can fail before any byte of it is sent, and the program sent fewer requests than without a fault";
const REFUSED: &str = "the server has moved, and the program dialled its old address without a lookup: a request for which it does is not sent";
const CUT: &str = "intact does not see what the program does with a response that was cut short";

impl RunJudge<'_> {
    /// Adds what a strike did.
    pub(super) fn add(
        &self,
        cell: &mut FaultCell,
        nth: usize,
        strike: &FaultStrike,
        to_it: &[&SentRequest],
    ) {
        cell.counted.hung_ms = cell.counted.hung_ms.or(Some(0.0));
        let is_request = |held: HeldBytes| {
            strike.ended != StallEnd::ProgramClosed || held.bytes > HeldBytes::MOST_CONTROL
        };
        if strike.held.is_some_and(is_request) {
            cell.has_held = true;
            cell.undecided = cell.undecided.or(Some(HELD));
        }
        let mut is_any = false;
        for affected in self.own(nth) {
            is_any = true;
            cell.counted.affected += 1;
            let again = self.repeats.get(&affected.request);
            let meets_again = again.is_some_and(|one| self.affected.contains_key(&one.index));
            cell.counted.met_again += u64::from(meets_again);
            self.add_duplicate(cell, affected);
            let mut repeats = self.repeats.values();
            if repeats.all(|one| one.index != affected.request) {
                self.add_first(cell, affected);
            }
            self.add_wait(cell, affected);
        }
        if is_any {
            if self.was_refused(strike) {
                self.add_refused(cell);
            }
            return;
        }
        if self.is_unread(nth, strike) {
            cell.counted.affected += 1;
            may_add(&mut cell.counted.failed, UNREADABLE);
            may_add(&mut cell.counted.recovered, UNREADABLE);
            may_add(&mut cell.counted.duplicated, UNREADABLE);
            cell.undecided = Some(UNREADABLE);
            self.wait(
                cell,
                strike,
                strike.used_at.map_or(0, |at| at.0),
                strike.end.0,
            );
            return;
        }
        let mut waited = 0;
        match strike.held {
            Some(held) if strike.ended == StallEnd::ProgramClosed => {
                waited = strike.end.since(held.at);
                match self.add_unsent(cell, HELD, HELD) {
                    true => cell.has_held = true,
                    false => self.wait(cell, strike, held.at.0, strike.end.0),
                }
            }
            Some(_) => {
                may_add(&mut cell.counted.failed, HELD);
                cell.undecided = Some(HELD);
            }
            None if self.was_refused(strike) => self.add_refused(cell),
            None if self.can_fail_unsent(strike) => {
                self.add_unsent(cell, UNSENT, FEWER);
            }
            None => {}
        }
        let next = to_it
            .iter()
            .filter(|one| one.connection != Some(strike.connection) && one.at > strike.at);
        let setup = next.min_by_key(|one| one.at).map_or(0, |one| one.setup);
        cell.cost_ms = longest(cell.cost_ms, waited + setup);
    }

    /// Whether the next request on the connection fails within the program: on a reset socket, or
    /// in a session of HTTP/2 that has received GOAWAY and was not taken out of use yet.
    fn can_fail_unsent(&self, strike: &FaultStrike) -> bool {
        let place = self.run.connections.get(&strike.connection);
        let fault = strike.kind.row();
        match fault.moment {
            FaultMoment::Idle => fault.ending == FaultEnding::Reset,
            FaultMoment::Request => fault.is_announced,
            FaultMoment::Age | FaultMoment::Shutdown => place.is_some_and(|place| place.is_http2),
            _ => false,
        }
    }

    /// Counts the requests whose dial or handshake was refused, and that were not sent: of those
    /// that are missing one at least, unless that was the retry of one that failed.
    fn add_refused(&self, cell: &mut FaultCell) {
        if cell.counted.has_refused {
            return;
        }
        cell.counted.has_refused = true;
        match self.missing(cell) {
            Some(0) => {}
            Some(missing) => {
                let failed = &mut cell.counted.failed;
                let least = if failed.high() == 0.0 { 1.0 } else { 0.0 };
                let why = Why::cannot_see(REFUSED);
                *failed = failed.plus(&Reading::between(least, missing as f64, why));
            }
            None => {
                self.add_unsent(cell, REFUSED, REFUSED);
            }
        }
    }

    /// How many requests fewer than without a fault were sent; `None` without such a run.
    fn missing(&self, cell: &FaultCell) -> Option<u64> {
        let before = self.baseline?.requests_to(&cell.destination).count() as u64;
        Some(before.saturating_sub(cell.sent))
    }

    /// Counts a request that may have failed there, as its bytes never left the program, with the
    /// reason for the doubt: without a run to compare with, and where that run has more
    /// requests. Returns whether it may have failed.
    fn add_unsent(&self, cell: &mut FaultCell, alone: &'static str, fewer: &'static str) -> bool {
        let known = self.missing(cell);
        let missing = known.unwrap_or(u64::MAX);
        if missing as f64 > cell.counted.failed.high() {
            let why = if known.is_some() { fewer } else { alone };
            may_add(&mut cell.counted.failed, why);
            cell.undecided = Some(why);
        }
        missing > 0
    }

    /// The outcome of a request that the program wanted, over all of its attempts.
    fn add_first(&self, cell: &mut FaultCell, affected: &AffectedRequest) {
        let first = &self.run.requests[affected.request];
        let (mut last, mut doubt) = (affected.request, None);
        let mut steps = 0;
        while let Some(repeat) = self.repeats.get(&last).filter(|_| steps < 1_000) {
            (last, steps) = (repeat.index, steps + 1);
            doubt = doubt.or(repeat.doubt);
        }
        let end = &self.run.requests[last];
        // a later request may repeat this one where one of them cannot be read
        let may_repeat = |one: &SentRequest| {
            let is_unread = one.method.is_none() && one.connection != first.connection;
            one.at > first.at && one.is_ok && (first.method.is_none() || is_unread)
        };
        let is_unread = steps == 0 && self.run.requests.iter().any(may_repeat);
        if is_unread {
            doubt = doubt.or(Some(UNREADABLE));
        }
        let met = self.affected.get(&last);
        let is_recovered = steps > 0 && end.is_ok && met.is_none();
        let example = first.label().or_else(|| cell.example.take());
        cell.example = cell.example.take().or(example);
        match (is_recovered, doubt) {
            (true, None) => {
                add(&mut cell.counted.recovered);
                cell.cost_ms = longest(cell.cost_ms, end.at.since(first.at) + end.setup);
                return;
            }
            (false, None) => add(&mut cell.counted.failed),
            // the attempts were one request or several, and none of them succeeded
            (false, Some(reason)) if steps > 0 => {
                add(&mut cell.counted.failed);
                may_add(&mut cell.counted.failed, reason);
            }
            (_, Some(reason)) => {
                may_add(&mut cell.counted.recovered, reason);
                may_add(&mut cell.counted.failed, reason);
                if is_unread && affected.reached != Reached::No && !first.is_idempotent() {
                    may_add(&mut cell.counted.duplicated, reason);
                }
                cell.undecided = Some(reason);
            }
        }
        let is_misled = |met: &AffectedRequest| {
            end.is_ok && self.run.strikes[met.strike].kind.row().has_other_server()
        };
        if met.is_some_and(is_misled) {
            cell.counted.misled += 1;
            return;
        }
        // a later request that succeeded may be a new one
        let cut = if end.is_ok && steps > 0 { first } else { end };
        // a program that reads on gets the error of a reset, whatever its client compares
        let is_reset = self.run.strikes[affected.strike].kind.row().moment == FaultMoment::Body;
        if cut.has_status && !is_reset && !self.is_reported(cut) {
            may_add(&mut cell.counted.truncated, CUT);
            cell.undecided = cell.undecided.or(Some(CUT));
        }
    }

    /// Whether the program reported a failed request: it ended with a failure, and either no other
    /// request failed, or it sent nothing after that one.
    fn is_reported(&self, failed: &SentRequest) -> bool {
        let has_failed = self.run.end.as_ref().is_some_and(|end| !end.is_success());
        let is_last = || self.run.requests.iter().all(|one| one.at <= failed.end);
        // nothing else disturbed the program: it noticed what it ended with
        has_failed && (self.affected.len() == 1 || is_last())
    }

    /// Whether the request was sent again after bytes of it had reached the server.
    fn add_duplicate(&self, cell: &mut FaultCell, affected: &AffectedRequest) {
        let request = &self.run.requests[affected.request];
        let Some(repeat) = self.repeats.get(&affected.request) else {
            return;
        };
        let again = self.affected.get(&repeat.index);
        let again = again.map_or(Reached::Yes, |again| again.reached);
        if request.is_idempotent() || affected.reached == Reached::No || again == Reached::No {
            return;
        }
        let is_certain = repeat.doubt.is_none()
            && request.method.is_some()
            && (affected.reached, again) == (Reached::Yes, Reached::Yes);
        match (is_certain, repeat.doubt) {
            (true, _) => add(&mut cell.counted.duplicated),
            (false, doubt) => may_add(&mut cell.counted.duplicated, doubt.unwrap_or(UNREADABLE)),
        }
        cell.example = request.label().or_else(|| cell.example.take());
    }

    /// How long the request waited on the connection.
    fn add_wait(&self, cell: &mut FaultCell, affected: &AffectedRequest) {
        let strike = &self.run.strikes[affected.strike];
        let request = &self.run.requests[affected.request];
        // what the server took before the strike is no stall
        let from = strike.at.max(request.at);
        let repeat = self
            .repeats
            .get(&affected.request)
            .filter(|one| one.doubt.is_none());
        let again = repeat.map(|one| self.run.requests[one.index].at);
        match again.filter(|&again| again < strike.end) {
            // the program gave up on the request before its connection was over
            Some(again) => {
                let until = StallEnd::ProgramClosed;
                self.longest_wait(cell, again.since(from), until, false);
            }
            // a FIN or RST ends the wait at once, whenever the program closes the connection
            None if !strike.kind.row().is_silent() => {
                self.wait(cell, strike, from.0, request.end.min(strike.end).0);
            }
            None => self.wait(cell, strike, from.0, strike.end.0),
        }
    }

    /// Adds a wait on the connection, unless the fault itself ended it.
    fn wait(&self, cell: &mut FaultCell, strike: &FaultStrike, from: u64, to: u64) {
        if strike.ended == StallEnd::Fault {
            return;
        }
        let end = self.run.end.as_ref();
        let is_open_ended = match strike.ended {
            StallEnd::Limit => true,
            StallEnd::EndOfRun => end.is_some_and(|end| end.was_ended()),
            // the platform ends a function at its limit, and the kernel closes what it left
            StallEnd::ProgramClosed => {
                let invocations = end.and_then(|end| end.invocations);
                invocations.is_some_and(|all| all.timed_out > 0)
            }
            StallEnd::Fault => false,
        };
        if let (true, Some(held)) = (is_open_ended, strike.held) {
            // the program may have given the request up then
            let waited = held.at.0.saturating_sub(from);
            return self.longest_wait(cell, waited, StallEnd::ProgramClosed, true);
        }
        self.longest_wait(cell, to.saturating_sub(from), strike.ended, is_open_ended);
    }

    fn longest_wait(&self, cell: &mut FaultCell, nanos: u64, until: StallEnd, is_open_ended: bool) {
        let ms = nanos as f64 / 1e6;
        let counted = &mut cell.counted;
        if cell.hung_until.is_none() || counted.hung_ms.is_none_or(|longest| ms > longest) {
            counted.hung_ms = Some(ms);
            cell.hung_until = Some(until);
        }
        counted.is_open_ended |= is_open_ended;
    }
}

fn longest(known: Option<f64>, nanos: u64) -> Option<f64> {
    let ms = nanos as f64 / 1e6;
    Some(known.map_or(ms, |known| known.max(ms)))
}
