//! The verdict of one kind of fault at one destination: a fold over the strikes on its connections. Must not write sentences.

use super::card::{Bounds, FaultCell, FaultOutcome, Obstacle};
use super::repeats::{Repeat, repeats};
use super::run_rows::{RunRows, SentRequest};
use intact_ledger::{FaultKind, FaultNotApplied, FaultStrike, StallEnd};
use std::collections::BTreeMap;

/// A request that waits for less is not called hung, in nanoseconds.
const HANG: u64 = 1_000_000_000;
const UNREADABLE: &str = "the requests on the connection cannot be read";
const UNSENT: &str = "a request on a connection that was reset fails before any byte of it is sent; `--fault each` compares with a run without a fault";
const FEWER: &str = "a request on a connection that was reset fails before any byte of it is sent, and the program sent fewer requests than without a fault";
const CUT: &str = "intact does not see what the program does with a response that was cut short";

/// Whether a request reached the server.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reached {
    No,
    Maybe,
    Yes,
}

/// A request that a strike affected.
#[derive(Clone, Copy)]
struct Victim {
    request: usize,
    strike: usize,
    reached: Reached,
}

/// One run, with its affected requests and their repeats.
pub(super) struct RunJudge<'a> {
    run: &'a RunRows,
    baseline: Option<&'a RunRows>,
    victims: BTreeMap<usize, Victim>,
    repeats: BTreeMap<usize, Repeat>,
}

impl<'a> RunJudge<'a> {
    pub(super) fn new(run: &'a RunRows, baseline: Option<&'a RunRows>) -> RunJudge<'a> {
        let mut victims = BTreeMap::new();
        for (nth, strike) in run.strikes.iter().enumerate() {
            let own = affected(run, strike);
            let reached = match (strike.reached, own.len()) {
                (0, _) => Reached::No,
                (_, 1) => Reached::Yes,
                _ => Reached::Maybe,
            };
            for request in own {
                let victim = Victim {
                    request,
                    strike: nth,
                    reached,
                };
                victims.insert(request, victim);
            }
        }
        let failed: Vec<usize> = victims.keys().copied().collect();
        RunJudge {
            run,
            baseline,
            repeats: repeats(run, &failed, baseline),
            victims,
        }
    }

    fn strikes(&self, destination: &str) -> impl Iterator<Item = (usize, &'a FaultStrike)> {
        let strikes = self.run.strikes.iter().enumerate();
        strikes.filter(move |(_, strike)| {
            let place = self.run.connections.get(&strike.connection);
            place.is_some_and(|place| *place.name == *destination)
        })
    }

    /// Why nothing was shown at a destination, where that is known before its strikes are looked at.
    pub(super) fn obstacle(&self, destination: &str) -> Option<Obstacle> {
        if self.run.end.is_none() {
            return Some(Obstacle::NotRun);
        }
        if self.strikes(destination).next().is_some() {
            return None;
        }
        let missed = self.run.not_applied.iter();
        let named = |missed: &&FaultNotApplied| {
            let origin = missed.origin.as_ref().map(ToString::to_string);
            let address = missed.peer.map(|peer| format!("tcp://{peer}"));
            match origin.or(address) {
                Some(name) => name == destination,
                None => true,
            }
        };
        let why = missed.filter(named).map(|missed| missed.why).next();
        Some(why.map_or(Obstacle::NotReached, Obstacle::Fault))
    }

    /// Counts the requests on both sides.
    pub(super) fn count(&self, cell: &mut FaultCell) {
        cell.sent = self.requests(&cell.destination).count() as u64;
        let own = self.victims.values().filter(|victim| {
            let strike = &self.run.strikes[victim.strike];
            let place = self.run.connections.get(&strike.connection);
            place.is_some_and(|place| *place.name == *cell.destination)
        });
        let (mut doubtful, mut withheld) = (0, 0);
        for victim in own {
            doubtful += u64::from(victim.reached != Reached::Yes);
            withheld += u64::from(victim.reached == Reached::No);
        }
        cell.reached = Bounds {
            least: cell.sent.saturating_sub(doubtful),
            most: cell.sent.saturating_sub(withheld),
        };
    }

    pub(super) fn fill(&self, cell: &mut FaultCell) {
        let to_it: Vec<&SentRequest> = self.requests(&cell.destination).collect();
        let mut obstacle = None;
        let mut is_shown = false;
        for (nth, strike) in self.strikes(&cell.destination.clone()) {
            cell.struck += 1;
            match self.shows(nth, strike, &to_it) {
                Ok(is_leaked) => {
                    is_shown = true;
                    cell.leaked += u64::from(is_leaked);
                    self.add(cell, nth, strike, &to_it);
                }
                Err(reason) => obstacle = Some(reason),
            }
        }
        match obstacle {
            Some(obstacle) if !is_shown => cell.set_obstacle(obstacle),
            _ => cell.outcome = outcome(cell),
        }
    }

    fn requests(&self, destination: &str) -> impl Iterator<Item = &'a SentRequest> {
        self.run.requests_to(destination)
    }

    fn own(&self, strike: usize) -> impl Iterator<Item = &Victim> {
        let victims = self.victims.values();
        victims.filter(move |victim| victim.strike == strike)
    }

    /// Whether a strike that affected no request shows what the program does, and whether the program then kept the connection.
    fn shows(
        &self,
        nth: usize,
        strike: &FaultStrike,
        to_it: &[&SentRequest],
    ) -> Result<bool, Obstacle> {
        let others = || {
            let others = to_it.iter();
            others.filter(|one| one.connection != Some(strike.connection) && one.at > strike.at)
        };
        let is_leaked = ends_visibly(strike.kind) && self.is_left_open(strike, others().count());
        if self.own(nth).next().is_some() || strike.used_at.is_some() {
            return Ok(is_leaked);
        }
        let served_on = to_it.iter().any(|one| {
            one.connection == Some(strike.connection) && one.at > strike.at && one.is_ok
        });
        if others().next().is_none() && !served_on {
            return Err(Obstacle::NoFurtherRequest);
        }
        let was_closed =
            strike.ended == StallEnd::ProgramClosed && others().any(|one| one.at >= strike.end);
        let opened_another = || {
            others().any(|one| {
                let place = self.run.place_of(one);
                place.is_some_and(|place| place.at >= strike.at)
            })
        };
        let is_noticed = was_closed || (!strike.kind.is_silent() && opened_another());
        match is_noticed || is_leaked {
            true => Ok(is_leaked),
            false => Err(Obstacle::NotUsed),
        }
    }

    /// Whether the program kept a connection that the peer had closed, although it sent `further` requests to the destination.
    fn is_left_open(&self, strike: &FaultStrike, further: usize) -> bool {
        let last = self.run.requests.iter().map(|one| one.end).max();
        match strike.ended {
            StallEnd::EndOfRun | StallEnd::Limit => further > 0,
            // with the program's end its sockets are closed; one further request may be what made it look
            StallEnd::ProgramClosed => further > 1 && last.is_some_and(|last| strike.end >= last),
            StallEnd::Fault => false,
        }
    }

    /// Adds what a strike did.
    fn add(&self, cell: &mut FaultCell, nth: usize, strike: &FaultStrike, to_it: &[&SentRequest]) {
        cell.hung_ms = cell.hung_ms.or(Some(0.0));
        let mut is_any = false;
        for victim in self.own(nth) {
            is_any = true;
            cell.affected += 1;
            self.add_duplicate(cell, victim);
            let is_repeat = self.repeats.values().any(|one| one.index == victim.request);
            if !is_repeat {
                self.add_first(cell, victim);
            }
            self.add_wait(cell, victim);
        }
        if is_any {
            return;
        }
        let ends =
            |one: &&&SentRequest| one.connection == Some(strike.connection) && one.end >= strike.at;
        if strike.used_at.is_some() && to_it.iter().find(ends).is_none() {
            // bytes were sent, and no request can be read
            cell.affected += 1;
            cell.failed.add(false);
            cell.recovered.add(false);
            cell.duplicated.add(false);
            cell.undecided = Some(UNREADABLE);
            self.wait(
                cell,
                strike,
                strike.used_at.map_or(0, |at| at.0),
                strike.end.0,
            );
            return;
        }
        if strike.kind == FaultKind::Rst {
            self.add_unsent(cell);
        }
        let next = to_it
            .iter()
            .filter(|one| one.connection != Some(strike.connection) && one.at > strike.at);
        let setup = next.min_by_key(|one| one.at).map_or(0, |one| one.setup);
        cell.cost_ms = longest(cell.cost_ms, setup);
    }

    /// Counts a request that may have failed on a reset socket: its bytes never left the program.
    fn add_unsent(&self, cell: &mut FaultCell) {
        let before = self.baseline.map(|rows| {
            let requests = rows.requests_to(&cell.destination);
            requests.count() as u64
        });
        let missing = before.map_or(u64::MAX, |before| before.saturating_sub(cell.sent));
        if missing > cell.failed.most {
            cell.failed.add(false);
            cell.undecided = Some(if before.is_some() { FEWER } else { UNSENT });
        }
    }

    /// The outcome of a request that the program wanted, over all of its attempts.
    fn add_first(&self, cell: &mut FaultCell, victim: &Victim) {
        let first = &self.run.requests[victim.request];
        let (mut last, mut doubt) = (victim.request, None);
        let mut steps = 0;
        while let Some(repeat) = self.repeats.get(&last).filter(|_| steps < 1_000) {
            (last, steps) = (repeat.index, steps + 1);
            doubt = doubt.or(repeat.doubt);
        }
        let end = &self.run.requests[last];
        let is_unread = first.method.is_none();
        let later = self
            .run
            .requests
            .iter()
            .any(|one| one.at > first.at && one.is_ok);
        if is_unread && later {
            doubt = doubt.or(Some(UNREADABLE));
        }
        let is_recovered = steps > 0 && end.is_ok;
        let example = first.label().or_else(|| cell.example.take());
        cell.example = cell.example.take().or(example);
        match (is_recovered, doubt) {
            (true, None) => {
                cell.recovered.add(true);
                cell.cost_ms = longest(cell.cost_ms, end.at.since(first.at) + end.setup);
                return;
            }
            (false, None) => cell.failed.add(true),
            (_, Some(reason)) => {
                cell.recovered.add(false);
                cell.failed.add(false);
                if is_unread && victim.reached != Reached::No {
                    cell.duplicated.add(false);
                }
                cell.undecided = Some(reason);
            }
        }
        // a later request that succeeded may be a new one
        let cut = if end.is_ok && steps > 0 { first } else { end };
        if cut.has_status && !self.is_reported(cut) {
            cell.truncated.add(false);
            cell.undecided = cell.undecided.or(Some(CUT));
        }
    }

    /// Whether the program reported a failed request: it ended with a failure, and sent nothing after that request.
    fn is_reported(&self, failed: &SentRequest) -> bool {
        let has_failed = self.run.end.as_ref().is_some_and(|end| end.code != Some(0));
        has_failed && self.run.requests.iter().all(|one| one.at <= failed.end)
    }

    /// Whether the request was sent again after bytes of it had reached the server.
    fn add_duplicate(&self, cell: &mut FaultCell, victim: &Victim) {
        let request = &self.run.requests[victim.request];
        let Some(repeat) = self.repeats.get(&victim.request) else {
            return;
        };
        let again = self.victims.get(&repeat.index);
        let again = again.map_or(Reached::Yes, |again| again.reached);
        let is_idempotent = request
            .method
            .as_ref()
            .is_some_and(|one| one.is_idempotent());
        if is_idempotent || victim.reached == Reached::No || again == Reached::No {
            return;
        }
        let is_certain = repeat.doubt.is_none()
            && request.method.is_some()
            && (victim.reached, again) == (Reached::Yes, Reached::Yes);
        cell.duplicated.add(is_certain);
        cell.example = request.label().or_else(|| cell.example.take());
    }

    /// How long the request waited on the connection.
    fn add_wait(&self, cell: &mut FaultCell, victim: &Victim) {
        let strike = &self.run.strikes[victim.strike];
        let request = &self.run.requests[victim.request];
        // what the server took before the strike is no stall
        let from = strike.at.max(request.at);
        let repeat = self
            .repeats
            .get(&victim.request)
            .filter(|one| one.doubt.is_none());
        let again = repeat.map(|one| self.run.requests[one.index].at);
        match again.filter(|&again| again < strike.end) {
            // the program gave up on the request before its connection was over
            Some(again) => {
                let until = StallEnd::ProgramClosed;
                self.longest_wait(cell, again.since(from), until, false);
            }
            // a FIN or RST ends the wait at once, whenever the program closes the connection
            None if !strike.kind.is_silent() => {
                self.wait(cell, strike, from.0, request.end.min(strike.end).0);
            }
            None => self.wait(cell, strike, from.0, strike.end.0),
        }
    }

    fn wait(&self, cell: &mut FaultCell, strike: &FaultStrike, from: u64, to: u64) {
        if strike.ended == StallEnd::Fault {
            return;
        }
        let is_killed = self
            .run
            .end
            .as_ref()
            .is_some_and(|end| end.signal.is_some());
        let is_open_ended =
            strike.ended == StallEnd::Limit || (strike.ended == StallEnd::EndOfRun && is_killed);
        self.longest_wait(cell, to.saturating_sub(from), strike.ended, is_open_ended);
    }

    fn longest_wait(&self, cell: &mut FaultCell, nanos: u64, until: StallEnd, is_open_ended: bool) {
        let ms = nanos as f64 / 1e6;
        if cell.hung_until.is_none() || cell.hung_ms.is_none_or(|longest| ms > longest) {
            cell.hung_ms = Some(ms);
            cell.hung_until = Some(until);
        }
        cell.hung_at_least |= is_open_ended;
    }
}

/// The requests that a strike affected, as indices: on its connection, over after it, and without a complete response. A response
/// whose body ends with the connection looks complete where it was cut. Nothing passes after a strike: what began then got no
/// response, although an inferred exchange may look complete.
fn affected(run: &RunRows, strike: &FaultStrike) -> Vec<usize> {
    let is_cut = |request: &SentRequest| cuts(strike.kind) && request.at < strike.at;
    let requests = run.requests.iter().enumerate();
    requests
        .filter(|(_, one)| one.connection == Some(strike.connection) && one.end >= strike.at)
        .filter(|(_, one)| !one.is_ok || one.at >= strike.at || is_cut(one))
        .map(|(index, _)| index)
        .collect()
}

fn longest(known: Option<f64>, nanos: u64) -> Option<f64> {
    let ms = nanos as f64 / 1e6;
    Some(known.map_or(ms, |known| known.max(ms)))
}

/// Whether the kind ends a response before it is complete.
fn cuts(kind: FaultKind) -> bool {
    matches!(
        kind,
        FaultKind::ResetMidResponse | FaultKind::EarlyCloseAfterHeaders
    )
}

/// Whether the program receives a FIN, so that it knows that the connection is of no more use.
fn ends_visibly(kind: FaultKind) -> bool {
    !kind.is_silent() && !matches!(kind, FaultKind::Rst | FaultKind::ResetMidResponse)
}

/// The worst that a cell shows.
fn outcome(cell: &FaultCell) -> FaultOutcome {
    let waited = cell.hung_ms.unwrap_or(0.0) * 1e6 >= HANG as f64;
    let is_unresolved = cell.failed.most > 0;
    if cell.duplicated.least > 0 {
        FaultOutcome::Duplicated
    } else if cell.duplicated.most > 0 {
        FaultOutcome::PossiblyDuplicated
    } else if cell.truncated.most > 0 {
        FaultOutcome::Truncated
    } else if cell.hung_at_least || (waited && is_unresolved) {
        FaultOutcome::Hung
    } else if cell.failed.least > 0 {
        FaultOutcome::Failed
    } else if is_unresolved {
        FaultOutcome::Undecided
    } else if cell.leaked > 0 {
        FaultOutcome::Leaked
    } else if cell.recovered.most > 0 {
        FaultOutcome::Recovered
    } else {
        FaultOutcome::Unaffected
    }
}
