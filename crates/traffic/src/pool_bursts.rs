//! What a client keeps from one burst of requests to the next, and what it closes without bursts:
//! the two signs by which a pool without room differs from a client per task.
//!
//! Must not know why a single connection was opened.

use super::history::Life;
use intact_ledger::Nanos;

/// Openings, or closes, that follow each other on average in bursts.
const CLUSTER: usize = 3;
/// The part of the moments between bursts at which a pool keeps the same number.
const SAME: f64 = 0.7;
/// Moments between bursts from which on they show a pool.
const SEVERAL: usize = 3;
/// The least probability of what happens by chance.
const BY_CHANCE: f64 = 0.02;

/// A pool whose connections are opened in bursts, and closed after them.
#[derive(Clone, Copy)]
pub(super) struct Bursts {
    /// Connections that stay open between the closes of one burst and the openings of the next, at
    /// most of these moments.
    pub(super) kept: usize,
    /// Connections that were kept over such a moment, and closed right after a later response.
    pub(super) closed: usize,
}

impl Bursts {
    /// None where closes and openings alternate, or another number stays open each time: a client
    /// per task ends when its task does.
    pub(super) fn of(lives: &[&Life]) -> Option<Bursts> {
        let used = || lives.iter().filter(|life| life.carried > 0);
        let opened = used().map(|life| (life.at, true));
        let closed = used().filter_map(|life| Some((life.closed_by_client()?.at, false)));
        let mut changes: Vec<(Nanos, bool)> = opened.chain(closed).collect();
        changes.sort_unstable();
        let pairs = || changes.windows(2);
        let runs = 1 + pairs().filter(|two| two[0].1 != two[1].1).count();
        let between = pairs().filter(|two| !two[0].1 && two[1].1);
        let between: Vec<Nanos> = between.map(|two| two[0].0).collect();
        let mut openings: Vec<Nanos> = used().map(|life| life.at).collect();
        let mut ends: Vec<Nanos> = used().map(|life| life.until()).collect();
        openings.sort_unstable();
        ends.sort_unstable();
        let until = |times: &[Nanos], at: Nanos| times.partition_point(|time| *time <= at);
        let open = |at: &Nanos| until(&openings, *at).saturating_sub(until(&ends, *at));
        let mut kept: Vec<usize> = between.iter().map(open).collect();
        kept.sort_unstable();
        let usual = *kept.get(kept.len() / 2)?;
        let same = kept.iter().filter(|one| **one == usual).count();
        let is_constant = kept.len() >= SEVERAL && same as f64 >= SAME * kept.len() as f64;
        if !is_constant || changes.len() < CLUSTER * runs {
            return None;
        }
        let is_later = |life: &&&Life| {
            let next = between.get(until(&between, life.at));
            let closed = life.closed_by_client();
            closed.is_some_and(|end| next.is_some_and(|next| *next < end.at))
        };
        Some(Bursts {
            kept: usual,
            closed: used().filter(is_later).count(),
        })
    }
}

/// Whether a client closes connections whatever they have carried: a pool without room does not
/// know. A client per task, which makes some calls, closes few after the first, and all after the
/// last. Where the client opens next to none after its first close, or closes next to none before
/// its last opening, its work ends, and nothing differs.
pub(super) fn ends_at_any_use(lives: &[&Life]) -> bool {
    let ends = || lives.iter().filter_map(|life| life.closed_after_use());
    let openings = || lives.iter().map(|life| life.at);
    let first_close = ends().min().unwrap_or_default();
    let last_opening = openings().max().unwrap_or_default();
    let opened_later = openings().filter(|at| *at > first_close).count();
    let closed_earlier = ends().filter(|at| *at < last_opening).count();
    if opened_later < SEVERAL || closed_earlier < SEVERAL {
        return true;
    }
    let (mut first, mut closed, mut connections, mut uses, mut most) = (0, 0, 0, 0, 0);
    for life in lives.iter().filter(|life| life.carried > 0) {
        let is_closed = u64::from(life.closed_after_use().is_some());
        first += if life.carried == 1 { is_closed } else { 0 };
        closed += is_closed;
        connections += 1;
        uses += life.carried;
        most = most.max(life.carried);
    }
    let share = closed as f64 / uses.max(1) as f64;
    let connections = f64::from(connections);
    // connections that would carry more than any did, were each use the last one by chance
    let beyond = connections * (1.0 - share).powf(most as f64);
    at_most(first, connections * share) >= BY_CHANCE && at_most(0, beyond) >= BY_CHANCE
}

/// The probability of at most N events where `mean` are expected (Poisson).
fn at_most(events: u64, mean: f64) -> f64 {
    let mut term = (-mean).exp();
    let mut sum = term;
    for nth in 1..=events {
        term *= mean / nth as f64;
        sum += term;
    }
    sum
}
