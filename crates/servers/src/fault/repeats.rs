//! Which request repeats which: by fingerprint, and by the number of equal requests in the run
//! without a fault. Must not judge.

use super::run_rows::{RunRows, SentRequest};
use intact_ledger::{Fingerprint, Method, Target};
use std::collections::{BTreeMap, HashMap, HashSet};

/// The program sends equal requests, and there is no run to compare with.
pub(super) const NO_COMPARISON: &str = "the program sends equal requests, so that a retry looks like the next one; `--fault none,KIND` compares with a run without a fault";
/// Equal requests that begin within this time, in nanoseconds, may be parallel. The relay sees two
/// connections in any order.
const TOGETHER: u64 = 20_000_000;
/// The counts of equal requests do not decide it.
const OTHER_COUNT: &str = "the program sends equal requests, and their number differs from that of the run without a fault";

/// A later request that repeats a failed one.
#[derive(Clone, Copy)]
pub(super) struct Repeat {
    /// Index of the later request.
    pub(super) index: usize,
    /// Why it may be a new request instead; absent where it is a repeat for certain.
    pub(super) doubt: Option<&'static str>,
}

/// What requests are recognised by.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Identity {
    /// Method, full target and body.
    Whole(Fingerprint),
    /// Method and path, where the request was not complete.
    Part(String, String),
}

impl Identity {
    fn of(request: &SentRequest) -> Option<Identity> {
        match request.fingerprint {
            Some(fingerprint) => Some(Identity::Whole(fingerprint)),
            None => {
                let (method, target) = named(request)?;
                Some(Identity::Part(method.to_string(), target.to_string()))
            }
        }
    }

    fn is_of(&self, request: &SentRequest) -> bool {
        match self {
            Identity::Whole(fingerprint) => request.fingerprint == Some(*fingerprint),
            Identity::Part(method, target) => named(request)
                .is_some_and(|(own, path)| own.as_str() == method && path.to_string() == *target),
        }
    }
}

fn named(request: &SentRequest) -> Option<(&Method, &Target)> {
    request.method.as_ref().zip(request.target.as_ref())
}

/// The repeats of `failed` requests (indices into the rows' requests), by the index of the failed
/// one.
pub(super) fn repeats(
    rows: &RunRows,
    failed: &[usize],
    baseline: Option<&RunRows>,
) -> BTreeMap<usize, Repeat> {
    let mut groups: HashMap<Identity, Vec<usize>> = HashMap::new();
    for &index in failed {
        if let Some(identity) = Identity::of(&rows.requests[index]) {
            groups.entry(identity).or_default().push(index);
        }
    }
    let mut all = BTreeMap::new();
    for (identity, mut failed) in groups {
        failed.sort_by_key(|&index| rows.requests[index].at);
        let mut equal: Vec<usize> = (0..rows.requests.len())
            .filter(|&index| identity.is_of(&rows.requests[index]))
            .collect();
        equal.sort_by_key(|&index| rows.requests[index].at);
        let pairs = pairs(rows, &failed, &equal);
        let before = baseline.map(|rows| {
            let equal = rows.requests.iter().filter(|one| identity.is_of(one));
            equal.count()
        });
        let mut both = pairs
            .iter()
            .map(|&(one, two)| (&rows.requests[one], &rows.requests[two]));
        let is_parallel = both.any(|(one, two)| are_parallel(one, two));
        let is_whole = matches!(identity, Identity::Whole(_));
        // no further request of this kind
        let is_only_one = is_whole && !is_parallel && equal.len() <= pairs.len() + 1;
        match decide(is_only_one, equal.len(), pairs.len(), before) {
            Decision::AreNew => {}
            Decision::AreRepeats(doubt) => {
                let repeat = |(failed, index)| (failed, Repeat { index, doubt });
                all.extend(pairs.into_iter().map(repeat));
            }
        }
    }
    all.extend(recorded(rows, failed));
    all
}

/// For each failed request, in their order, the next equal one on another connection, each of them
/// once. Of two that failed the later one is the repeat, so that no chain of them is a circle.
fn pairs(rows: &RunRows, failed: &[usize], equal: &[usize]) -> Vec<(usize, usize)> {
    let mut used = HashSet::new();
    let mut pairs = Vec::new();
    for (nth, &index) in failed.iter().enumerate() {
        let one = &rows.requests[index];
        // what was over before the first began is no repeat; which of the two was seen first shows
        // nothing
        let may_repeat = |&other: &usize| {
            let later = &rows.requests[other];
            let is_earlier = failed[..nth].contains(&other);
            let is_free = !is_earlier && !used.contains(&other);
            later.end > one.at && later.connection != one.connection && is_free
        };
        let after_its_end = |&other: &usize| rows.requests[other].at >= one.end;
        let candidates = || equal.iter().copied().filter(may_repeat);
        let next = candidates()
            .find(after_its_end)
            .or_else(|| candidates().next());
        if let Some(next) = next {
            used.insert(next);
            pairs.push((index, next));
        }
    }
    pairs
}

/// Whether two equal requests began together, and the first failed only later.
fn are_parallel(first: &SentRequest, other: &SentRequest) -> bool {
    let apart = first.at.0.abs_diff(other.at.0);
    apart < TOGETHER && first.end.since(first.at) > 2 * TOGETHER
}

enum Decision {
    AreNew,
    AreRepeats(Option<&'static str>),
}

/// Whether the later ones of `equal` requests are repeats: `pairs` of them may be, and `before`
/// were sent without a fault.
///
/// One equal request after the failure can be the program's next one as well; only the run without
/// a fault shows it.
fn decide(is_only_one: bool, equal: usize, pairs: usize, before: Option<usize>) -> Decision {
    match before {
        None => Decision::AreRepeats(Some(NO_COMPARISON)),
        // such as a request with the time in its target
        Some(0) if is_only_one => Decision::AreRepeats(None),
        Some(before) if equal == before => Decision::AreNew,
        Some(before @ 1..) if equal == before + pairs => Decision::AreRepeats(None),
        Some(_) => Decision::AreRepeats(Some(OTHER_COUNT)),
    }
}

/// Repeats that their producer recorded.
fn recorded<'a>(
    rows: &'a RunRows,
    failed: &'a [usize],
) -> impl Iterator<Item = (usize, Repeat)> + 'a {
    let all = rows.requests.iter().enumerate();
    all.filter_map(|(index, request)| {
        let first = request.retry_of?;
        let failed = failed.iter().find(|&&one| rows.requests[one].id == first)?;
        Some((*failed, Repeat { index, doubt: None }))
    })
}
