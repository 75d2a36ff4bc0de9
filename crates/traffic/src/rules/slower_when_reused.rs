//! `slower-when-reused`: the response takes longer on a kept connection than on a new one.

use super::{Attribution, Fold, RuleRow};
use crate::Context;
use intact_document::finding::{Finding, RuleDoc, Severity};
use intact_document::reuse_delay::{Arrivals, FIX, ReuseDelay};
use intact_ledger::{Cell, Event, Evidence, Exchange, Reuse, Target};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};

pub(super) static RULE: RuleRow = RuleRow {
    doc: RuleDoc {
        id: "slower-when-reused",
        what: "Responses take longer on reused connections than on new ones. Usually Nagle's algorithm on one side meets delayed acknowledgements on the other: about 40 ms a request.",
        evidence: "The times of complete requests without setup, fresh and reused separately, as distributions: not every reused response has to be slow. Only responses with the same method, status and target are compared, where numbers in the target stand for one another. A target must be on both sides, or three on each.",
        threshold: "A response is late if it takes 15 ms and 10 % more than the median on new connections. Their share is 25 points larger on reused ones, and chance explains that with 5 % at most (Fisher's test). If each body comes 35 to 60 ms after its header section: 10 %. With fewer than three fresh requests, or if requests overlapped, the medians must differ by 35 to 60 ms and more than the fresh median.",
        false_positives: "A target whose first response is faster than later ones for a reason of its own. This is an observation; `intact bench` measures the cause.",
        fix: FIX,
        risk: "TCP_NODELAY with several writes sends more and smaller packets",
        needs: &[Evidence::Durations],
    },
    fold: || Box::<SlowerWhenReused>::default(),
};

/// Limit of targets whose responses are compared.
const TARGETS: usize = 512;
/// Number of targets that show no order.
const VARIED: usize = 3;
/// Limit of the targets of a kind that are kept.
const MOST_TARGETS: usize = 16;
/// Bytes of a target that distinguish it.
const LONGEST: usize = 128;

/// The exchanges of each kind of request: its destination, method, status and target, where
/// numbers stand for one another. A response to another request may take longer for any reason.
#[derive(Default)]
struct SlowerWhenReused {
    /// By destination and name.
    kinds: BTreeMap<usize, BTreeMap<String, Kind>>,
    count: usize,
    /// Holds the name of a request: there is one per exchange.
    name: String,
}

/// The responses to requests whose targets differ in their numbers at most.
#[derive(Default)]
struct Kind {
    cell: Cell,
    /// Some targets, as hashes: of fresh and of reused exchanges.
    targets: [BTreeSet<u64>; 2],
}

impl Kind {
    fn take(&mut self, exchange: &Exchange) {
        self.cell.exchange(exchange);
        let target = exchange.target.as_ref().map(Target::as_str);
        let targets = &mut self.targets[usize::from(exchange.reuse == Some(Reuse::Reused))];
        if targets.len() < MOST_TARGETS {
            let mut hasher = DefaultHasher::new();
            target.hash(&mut hasher);
            targets.insert(hasher.finish());
        }
    }

    /// Whether like is compared with like: a target is on both sides, or many are on each. One
    /// request that always comes first and another one that always follows are not alike.
    fn is_alike(&self) -> bool {
        let [fresh, reused] = &self.targets;
        !fresh.is_disjoint(reused) || (fresh.len() >= VARIED && reused.len() >= VARIED)
    }
}

/// Writes the name of a request by its method, status and target, with `0` for each number.
fn write_kind(name: &mut String, exchange: &Exchange) {
    let method = exchange
        .method
        .as_ref()
        .map_or("", |method| method.as_str());
    let target = exchange
        .target
        .as_ref()
        .map_or("", |target| target.as_str());
    name.clear();
    let status = exchange.status.unwrap_or_default();
    // writing to a text cannot fail
    let _ = write!(name, "{method} {status} ");
    let mut was_digit = false;
    let mut letters = target.chars().take(LONGEST).peekable();
    while let Some(letter) = letters.next() {
        let is_point =
            letter == '.' && was_digit && letters.peek().is_some_and(char::is_ascii_digit);
        let is_digit = letter.is_ascii_digit() || is_point;
        match (is_digit, was_digit) {
            (true, true) => {}
            (true, false) => name.push('0'),
            (false, _) => name.push(letter),
        }
        was_digit = is_digit;
    }
}

impl Fold for SlowerWhenReused {
    fn observe(&mut self, event: Event<'_>, context: &Context<'_>) {
        let (Event::Exchange(exchange), Some(destination)) = (event, context.destination) else {
            return;
        };
        if exchange.warmup || !exchange.outcome.is_ok() || exchange.measured_latency().is_none() {
            return;
        }
        let has_room = self.count < TARGETS;
        if !has_room && !self.kinds.contains_key(&destination) {
            return;
        }
        write_kind(&mut self.name, exchange);
        let kinds = self.kinds.entry(destination).or_default();
        if let Some(kind) = kinds.get_mut(&self.name) {
            kind.take(exchange);
        } else if has_room {
            self.count += 1;
            kinds.entry(self.name.clone()).or_default().take(exchange);
        }
    }

    fn findings(&self, attribution: &mut Attribution<'_>) -> Vec<Finding> {
        let found = attribution.destinations().filter_map(|(at, name, counts)| {
            let arrivals = match counts.has_overlaps() {
                true => Arrivals::Several,
                false => Arrivals::OneByOne,
            };
            let kinds = self.kinds.get(&at)?;
            let alike = kinds.values().filter(|kind| kind.is_alike());
            let delays = alike.filter_map(|kind| delay(&kind.cell, arrivals));
            // the one that most requests show
            let delay = delays
                .max_by_key(|(reused, _)| *reused)
                .map(|(_, delay)| delay)?;
            let (severity, evidence) = (Severity::Warning, delay.evidence());
            let said = delay.claim();
            Some(Finding::by(&RULE.doc, severity, name, said, evidence))
        });
        found.collect()
    }
}

/// The delay in the exchanges of one kind, with the number of those that reused a connection.
fn delay(cell: &Cell, arrivals: Arrivals) -> Option<(u64, ReuseDelay)> {
    let of = |reuse: Reuse| cell.merged(|key| key.reuse == Some(reuse));
    let reused = of(Reuse::Reused)?;
    let delay = ReuseDelay::of_groups(&of(Reuse::Fresh)?, &reused, arrivals)?;
    Some((reused.count(), delay))
}

#[cfg(test)]
mod tests {
    use super::*;
    use intact_ledger::Nanos;

    #[test]
    fn one_target_that_always_comes_first_is_not_like_the_next_one() {
        let kind = |fresh: &[&str], reused: &[&str]| {
            let mut kind = Kind::default();
            for (targets, reuse) in [(fresh, Reuse::Fresh), (reused, Reuse::Reused)] {
                for target in targets {
                    let mut exchange = Exchange::new(1, Nanos(0));
                    exchange.target = Some(Target::new(target));
                    exchange.reuse = Some(reuse);
                    kind.take(&exchange);
                }
            }
            kind.is_alike()
        };
        assert!(!kind(&["/item/1"], &["/item/2", "/item/3", "/item/4"]));
        assert!(kind(&["/item/1"], &["/item/2", "/item/1"]));
        assert!(kind(
            &["/item/1", "/item/2", "/item/3"],
            &["/item/4", "/item/5", "/item/6"]
        ));
    }
}
