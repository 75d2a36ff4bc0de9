//! What a client keeps from one burst of requests to the next, and what it closes without bursts:
//! the two signs by which a pool without room differs from a client per task.
//!
//! Must not know why a single connection was opened.

use super::history::Life;
use super::pool_rests::{Intervals, before, margin};
use intact_ledger::{Nanos, Span};

/// Openings, or closes, that follow each other on average in bursts.
const CLUSTER: usize = 3;
/// The part of the moments between bursts at which a pool keeps the same number.
const SAME: f64 = 0.6;
/// Moments between bursts from which on they show a pool.
const SEVERAL: usize = 3;
/// Fewer moments that show one if the number is the same at each.
const FEW: usize = 2;
/// How many more connections are open in a burst than a full pool keeps after it. A client that
/// renews its connections never has more.
const MORE: usize = 2;
/// Uses before a close, and as many after it, that it is compared with.
const NEAR: usize = 10;
/// Standard deviations that chance exceeds rarely.
const BEYOND_CHANCE: f64 = 2.0;
/// And those that it does not exceed, though closes next to each other are not independent.
const FAR_BEYOND_CHANCE: f64 = 4.0;
/// How many times greater than by chance the square of ranks is where each close is the last use of
/// a task of the same number.
const WIDER: f64 = 2.0;

/// A pool whose connections are opened in bursts, and closed after them.
#[derive(Clone, Copy)]
pub(super) struct Bursts {
    /// Connections that stay idle between the closes of one burst and the openings of the next, at
    /// most of these moments.
    pub(super) kept: usize,
    /// Connections that were kept over such a moment, and closed right after a later response.
    pub(super) closed: usize,
}

impl Bursts {
    /// None where another number stays open each time: a client per task ends when its task does.
    /// Where a server responds so fast that closes and openings alternate within a burst, pauses
    /// show what stays.
    pub(super) fn of(lives: &[&Life]) -> Option<Bursts> {
        let used = || lives.iter().filter(|life| life.carried > 0);
        let opened = used().map(|life| (life.at, true));
        let closed = used().filter_map(|life| Some((life.closed_by_client()?.at, false)));
        let mut changes: Vec<(Nanos, bool)> = opened.chain(closed).collect();
        changes.sort_unstable();
        let pairs = || changes.windows(2);
        let runs = 1 + pairs().filter(|two| two[0].1 != two[1].1).count();
        let between = pairs().filter(|two| !two[0].1 && two[1].1);
        let open = Intervals::new(used().map(|life| (life.at, life.until())));
        let uses = used().flat_map(|life| &life.uses);
        let busy = Intervals::new(uses.map(|one| (one.span.start, one.span.end)));
        // those that a client closes late are busy no more, but others may still be
        let between = between.map(|two| match busy.last_end(two[1].0) {
            Some(end) => end.max(two[0].0),
            None => two[0].0,
        });
        let idle = |at: &Nanos| open.at(*at).saturating_sub(busy.at(*at));
        let kept = |moments: &[Nanos]| usual(moments.iter().map(idle).collect());
        let is_clustered = changes.len() >= CLUSTER * runs;
        let between: Vec<Nanos> = between.filter(|_| is_clustered).collect();
        let (between, usual) = match kept(&between) {
            Some(usual) => (between, usual),
            None => {
                let between = full_before(&pauses(lives), &changes, &open);
                let usual = kept(&between)?;
                (between, usual)
            }
        };
        let is_later = |life: &&&Life| {
            let first = life.uses.first().map(|one| one.span.end);
            let next = between.get(between.partition_point(|at| Some(*at) < first));
            let is_used = |next: &Nanos| life.uses.iter().any(|one| *next < one.span.start);
            life.closed_by_client().is_some() && next.is_some_and(is_used)
        };
        Some(Bursts {
            kept: usual,
            closed: used().filter(is_later).count(),
        })
    }
}

/// The number that nearly all of these are, in moments enough to show a pool.
fn usual(mut kept: Vec<usize>) -> Option<usize> {
    kept.sort_unstable();
    let usual = *kept.get(kept.len() / 2)?;
    let same = kept.iter().filter(|one| **one == usual).count();
    let is_constant = match kept.len() < SEVERAL {
        true => kept.len() == FEW && same == FEW,
        false => same as f64 >= SAME * kept.len() as f64,
    };
    is_constant.then_some(usual)
}

/// The last moments of the times in which a pool neither opened a connection nor used one, for
/// longer than its client takes to write.
fn pauses(lives: &[&Life]) -> Vec<Nanos> {
    let used = lives.iter().filter(|life| life.carried > 0);
    let work = used.flat_map(|life| {
        let uses = life.uses.iter().map(|one| one.span);
        uses.chain([Span::new(life.at, life.ready.max(life.at))])
    });
    let mut work: Vec<Span> = work.collect();
    work.sort_unstable_by_key(|span| span.start);
    let margin = margin(lives);
    let mut until: Option<Nanos> = None;
    let ends = work.into_iter().filter_map(|span| {
        let is_pause = until.is_some_and(|until| span.start > until.after(margin));
        until = until.max(Some(span.end));
        is_pause.then(|| before(span.start, 1))
    });
    ends.collect()
}

/// The pauses before which more connections were open than during them, if any stayed.
fn full_before(pauses: &[Nanos], changes: &[(Nanos, bool)], open: &Intervals) -> Vec<Nanos> {
    let mut begin = Nanos(0);
    let full = pauses.iter().filter(|pause| {
        let first = changes.partition_point(|(at, _)| *at <= begin);
        let burst = changes[first..].iter().take_while(|(at, _)| at <= *pause);
        let most = burst.map(|(at, _)| open.at(*at)).max();
        begin = **pause;
        let kept = open.at(**pause);
        kept > 0 && most.is_some_and(|most| most >= kept + MORE)
    });
    full.copied().collect()
}

/// Whether a client closes connections whatever they have carried: a pool without room does not
/// know. A client per task closes each after the last call of its task, so next to connections that
/// have carried fewer. What is near in time is compared, before and after each close: the number of
/// requests grows as long as the program runs. What it closes from `until` on is its end. Where
/// connections `are_left` at the end, which tasks do not leave, it takes more to show tasks.
pub(super) fn ends_at_any_use(lives: &[&Life], until: Nanos, are_left: bool) -> bool {
    let uses = lives.iter().flat_map(|life| {
        let followed = life.uses.len().saturating_sub(1);
        let ends = life.uses[..followed].iter().map(|one| one.span.end);
        ends.zip(1..)
    });
    let mut returns: Vec<(Nanos, usize)> = uses.collect();
    returns.sort_unstable();
    let is_closed = |life: &&&Life| life.closed_after_use().is_some_and(|at| at < until);
    let closed = lives.iter().filter(is_closed);
    let ranks = closed.filter_map(|life| rank(&returns, life.last_end()?, life.uses.len()));
    let (mut sum, mut squares, mut variance) = (0.0, 0.0, 0.0);
    for (rank, own) in ranks {
        sum += rank;
        squares += rank * rank;
        variance += own;
    }
    let is_same = squares > WIDER * variance;
    let limit = if are_left && !is_same {
        FAR_BEYOND_CHANCE
    } else {
        BEYOND_CHANCE
    };
    sum <= limit * variance.sqrt()
}

/// The rank of a close among the uses next to it that another one followed, from -0.5 to 0.5, and
/// the variance of that rank if it was one of them at random. None at the start and at the end,
/// where few uses are before or after it: all end with their highest number.
fn rank(returns: &[(Nanos, usize)], at: Nanos, carried: usize) -> Option<(f64, f64)> {
    let before = returns.partition_point(|(end, _)| *end <= at);
    let near = NEAR.min(before).min(returns.len() - before);
    if 2 * near < NEAR {
        return None;
    }
    let near = returns[before - near..before + near].iter();
    let mut near: Vec<usize> = near.map(|(_, nth)| *nth).chain([carried]).collect();
    near.sort_unstable();
    let among = |nth: usize| {
        let below = near.partition_point(|other| *other < nth);
        let up_to = near.partition_point(|other| *other <= nth);
        (below + up_to) as f64 / (2 * near.len()) as f64 - 0.5
    };
    let squares = near.iter().map(|nth| among(*nth).powi(2));
    Some((among(carried), squares.sum::<f64>() / near.len() as f64))
}
