//! The verdict of one kind of fault at one destination: a fold over the strikes on its connections.
//! Must not write sentences.

use super::card::{FaultCell, FaultOutcome, Obstacle};
use super::repeats::{Repeat, repeats};
use super::run_rows::{RunRows, SentRequest};
use super::strike_counts::may_be;
use intact_ledger::{
    FaultEnding, FaultMoment, FaultNotApplied, FaultObstacle, FaultRow, FaultStrike, StallEnd,
};
use intact_reading::{Reading, Why};
use std::collections::{BTreeMap, HashSet};

/// Why it is not known which requests reached the server.
const UNREAD_BYTES: Why = Why::cannot_see("the bytes that reached the server show no request");
/// A request that waits for less is not called hung, in nanoseconds.
const HANG: u64 = 1_000_000_000;

/// Whether a request reached the server.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reached {
    No,
    Maybe,
    Yes,
}

/// A request that a strike affected.
#[derive(Clone, Copy)]
pub(super) struct AffectedRequest {
    pub(super) request: usize,
    pub(super) strike: usize,
    pub(super) reached: Reached,
}

/// One run, with its affected requests and their repeats.
pub(super) struct RunJudge<'a> {
    pub(super) run: &'a RunRows,
    pub(super) baseline: Option<&'a RunRows>,
    pub(super) affected: BTreeMap<usize, AffectedRequest>,
    pub(super) repeats: BTreeMap<usize, Repeat>,
}

impl<'a> RunJudge<'a> {
    pub(super) fn new(run: &'a RunRows, baseline: Option<&'a RunRows>) -> RunJudge<'a> {
        let mut all = BTreeMap::new();
        for (nth, strike) in run.strikes.iter().enumerate() {
            let own = affected(run, strike);
            let reached = match (strike.reached, own.len()) {
                (0, _) => Reached::No,
                (_, 1) => Reached::Yes,
                _ => Reached::Maybe,
            };
            for index in own {
                let request = AffectedRequest {
                    request: index,
                    strike: nth,
                    reached,
                };
                all.insert(index, request);
            }
        }
        let failed: Vec<usize> = all.keys().copied().collect();
        RunJudge {
            run,
            baseline,
            repeats: repeats(run, &failed, baseline),
            affected: all,
        }
    }

    fn strikes(&self, destination: &str) -> impl Iterator<Item = (usize, &'a FaultStrike)> {
        let strikes = self.run.strikes.iter().enumerate();
        strikes.filter(move |(_, strike)| {
            let place = self.run.connections.get(&strike.connection);
            place.is_some_and(|place| *place.name == *destination)
        })
    }

    /// Why nothing was shown at a destination, where that is known before its strikes are looked
    /// at.
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
        let requests = self.requests(&cell.destination);
        cell.sent = requests.count() as u64;
        // what cannot be read may be no request
        let is_unread = |(index, one): &(usize, &SentRequest)| {
            let place = self.run.place_of(one);
            let is_own = place.is_some_and(|place| *place.name == *cell.destination);
            is_own && one.method.is_none() && !self.affected.contains_key(index)
        };
        let all = self.run.requests.iter().enumerate();
        let unread = all.filter(is_unread).count() as u64;
        let own = self.affected.values().filter(|one| {
            let strike = &self.run.strikes[one.strike];
            let place = self.run.connections.get(&strike.connection);
            place.is_some_and(|place| *place.name == *cell.destination)
        });
        let (mut doubtful, mut withheld) = (0, 0);
        for one in own {
            doubtful += u64::from(one.reached != Reached::Yes);
            withheld += u64::from(one.reached == Reached::No);
        }
        // a request that no row has
        for (_, strike) in self
            .strikes(&cell.destination)
            .filter(|(nth, strike)| self.is_unread(*nth, strike))
        {
            cell.sent += 1;
            doubtful += 1;
            withheld += u64::from(strike.reached == 0);
        }
        let least = cell.sent.saturating_sub(doubtful + unread);
        let most = cell.sent.saturating_sub(withheld);
        cell.counted.reached = Reading::between(least as f64, most as f64, UNREAD_BYTES);
    }

    pub(super) fn fill(&self, cell: &mut FaultCell) {
        let to_it: Vec<&SentRequest> = self.requests(&cell.destination).collect();
        let mut obstacle = None;
        let mut is_shown = false;
        for (nth, strike) in self.strikes(&cell.destination.clone()) {
            cell.counted.struck += 1;
            match self.shows(nth, strike, &to_it) {
                Ok(is_leaked) => {
                    is_shown = true;
                    cell.counted.leaked += u64::from(is_leaked);
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

    pub(super) fn own(&self, strike: usize) -> impl Iterator<Item = &AffectedRequest> {
        let affected = self.affected.values();
        affected.filter(move |one| one.strike == strike)
    }

    /// Whether bytes were sent on the struck connection, and no request can be read in them.
    pub(super) fn is_unread(&self, nth: usize, strike: &FaultStrike) -> bool {
        let ends =
            |one: &SentRequest| one.connection == Some(strike.connection) && one.end >= strike.at;
        strike.used_at.is_some()
            && self.own(nth).next().is_none()
            && !self.run.requests.iter().any(ends)
    }

    /// Whether a strike that affected no request shows what the program does, and whether the
    /// program then kept the connection.
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
        let is_leaked =
            ends_visibly(strike.kind.row()) && self.is_left_open(strike, others().count());
        let is_used = strike.used_at.is_some() || strike.held.is_some();
        if self.own(nth).next().is_some() || is_used {
            return Ok(is_leaked);
        }
        let served_on = to_it.iter().any(|one| {
            one.connection == Some(strike.connection) && one.at > strike.at && one.is_ok
        });
        if strike.kind.row().is_silent() && !self.is_ever_reused(to_it) {
            // a program that closes each connection notices nothing
            return Err(Obstacle::Fault(FaultObstacle::NeverReused));
        }
        if self.was_refused(strike) {
            return Ok(is_leaked);
        }
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
        let is_noticed = was_closed || (!strike.kind.row().is_silent() && opened_another());
        match is_noticed || is_leaked {
            true => Ok(is_leaked),
            false => Err(Obstacle::NotUsed),
        }
    }

    /// Whether a connection to the destination carried two requests, here or without a fault.
    fn is_ever_reused(&self, to_it: &[&SentRequest]) -> bool {
        let before = self.baseline.into_iter();
        let before = before.flat_map(|rows| &rows.requests);
        has_second(to_it.iter().copied()) || has_second(before)
    }

    /// Whether the program dialled the address again that its server had moved from, and was
    /// refused, or refused the certificate there.
    pub(super) fn was_refused(&self, strike: &FaultStrike) -> bool {
        let place = self.run.connections.get(&strike.connection);
        let peer = place.and_then(|place| place.peer);
        let refused = peer.map_or(0, |peer| self.run.refused_since(strike.at, peer));
        strike.kind.row().is_of_address && refused > 0
    }

    /// Whether the program kept a connection that the peer had closed, although it sent `further`
    /// requests to the destination.
    fn is_left_open(&self, strike: &FaultStrike, further: usize) -> bool {
        let last = self.run.requests.iter().map(|one| one.end).max();
        match strike.ended {
            StallEnd::EndOfRun | StallEnd::Limit => further > 0,
            // with the program's end its sockets are closed; one further request may be what made
            // it look
            StallEnd::ProgramClosed => further > 1 && last.is_some_and(|last| strike.end >= last),
            StallEnd::Fault => false,
        }
    }
}

/// Whether two of the requests used one connection.
fn has_second<'r>(requests: impl IntoIterator<Item = &'r SentRequest>) -> bool {
    let mut seen = HashSet::new();
    let mut requests = requests.into_iter();
    requests.any(|one| !seen.insert(one.connection))
}

/// The requests that a strike affected, as indices: on its connection, over after it, and without a
/// complete response. A response whose body ends with the connection looks complete where it was
/// cut. Nothing passes after a strike: what began then got no response, although an inferred
/// exchange may look complete.
fn affected(run: &RunRows, strike: &FaultStrike) -> Vec<usize> {
    let moment = strike.kind.row().moment;
    let cuts = matches!(moment, FaultMoment::Headers | FaultMoment::Body);
    let is_cut = |request: &SentRequest| cuts && request.at < strike.at;
    let requests = run.requests.iter().enumerate();
    requests
        .filter(|(_, one)| one.connection == Some(strike.connection) && one.end >= strike.at)
        .filter(|(_, one)| !one.is_ok || one.at >= strike.at || is_cut(one))
        .map(|(index, _)| index)
        .collect()
}

/// Whether the program receives a FIN, so that it knows that the connection is of no more use.
fn ends_visibly(fault: FaultRow) -> bool {
    match fault.ending {
        FaultEnding::Silence => false,
        FaultEnding::Reset => fault.moment == FaultMoment::Request,
        _ => true,
    }
}

/// The worst that a cell shows.
fn outcome(cell: &FaultCell) -> FaultOutcome {
    let counted = &cell.counted;
    let waited = counted.hung_ms.unwrap_or(0.0) * 1e6 >= HANG as f64;
    let is_unresolved = may_be(&counted.failed);
    if counted.duplicated.is_positive() {
        FaultOutcome::Duplicated
    } else if may_be(&counted.duplicated) {
        FaultOutcome::PossiblyDuplicated
    } else if may_be(&counted.truncated) {
        FaultOutcome::Truncated
    } else if counted.misled > 0 {
        FaultOutcome::Misled
    } else if counted.is_open_ended || (waited && is_unresolved) {
        FaultOutcome::Hung
    } else if counted.failed.is_positive() {
        FaultOutcome::Failed
    } else if is_unresolved {
        FaultOutcome::Undecided
    } else if counted.leaked > 0 {
        FaultOutcome::Leaked
    } else if may_be(&counted.recovered) {
        FaultOutcome::Recovered
    } else {
        FaultOutcome::Unaffected
    }
}
