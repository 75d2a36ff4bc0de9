//! What programs did under faults, compared with the baseline. Must not judge a program: its card
//! does.

use super::variant::ProgramFacts;
use intact_ledger::{FaultKind, kinds};
use intact_servers::fault::{FaultCell, FaultFacts, FaultOutcome};
use serde::Serialize;

kinds! {
    json
    /// How a program fares under a fault, compared with the baseline.
    pub enum FaultResult, words {
        /// Something is lost, repeated or stuck that was not before.
        Worse = "worse",
        /// Nothing is lost, repeated or stuck any more.
        Better = "better",
        /// As before.
        Same = "same",
        /// The fault showed nothing of one of them.
        NotShown = "not shown",
    }
}

/// What two programs did under a kind of fault at one destination.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FaultChange {
    /// The baseline.
    pub a: String,
    /// The program compared with it.
    pub b: String,
    /// The kind of fault.
    pub kind: FaultKind,
    /// Scheme, host and port; empty where the program opened no connection.
    pub destination: String,
    /// The outcome of `a`; absent where it did not call the destination.
    pub a_outcome: Option<FaultOutcome>,
    /// The outcome of `b`.
    pub b_outcome: FaultOutcome,
    /// The two compared.
    pub result: FaultResult,
    /// The outcomes in a few words.
    pub a_words: String,
    /// See `a_words`.
    pub b_words: String,
}

/// Compares the cards of all programs with that of the first.
pub(super) fn changes(programs: &[ProgramFacts], cards: &[FaultFacts]) -> Vec<FaultChange> {
    let mut all = programs.iter().zip(cards);
    let Some((first, card)) = all.next() else {
        return Vec::new();
    };
    let each = all.flat_map(|(other, theirs)| {
        let suited = theirs.cells.iter().filter(|cell| cell.is_suited());
        suited.map(move |cell| change(&first.name, &other.name, counterpart(card, cell), cell))
    });
    let mut changes: Vec<FaultChange> = each.collect();
    changes.sort_by_key(|one| (one.result, one.kind));
    changes
}

/// The same kind at the same destination; or at the only one, whose port may be another one in each
/// run.
fn counterpart<'a>(card: &'a FaultFacts, cell: &FaultCell) -> Option<&'a FaultCell> {
    let of_kind = || {
        card.cells
            .iter()
            .filter(|one| (one.kind, one.scope) == (cell.kind, cell.scope))
    };
    let same = of_kind().find(|one| one.destination == cell.destination);
    same.or_else(|| of_kind().next().filter(|_| of_kind().count() == 1))
}

fn change(a: &str, b: &str, ours: Option<&FaultCell>, theirs: &FaultCell) -> FaultChange {
    let before = ours.map(|cell| cell.outcome);
    FaultChange {
        a: a.to_owned(),
        b: b.to_owned(),
        kind: theirs.kind,
        destination: theirs.destination.clone(),
        a_outcome: before,
        b_outcome: theirs.outcome,
        result: result(before, theirs.outcome),
        a_words: ours.map_or_else(String::new, FaultCell::words),
        b_words: theirs.words(),
    }
}

/// A program that keeps no connection loses none: one that does now is compared with it too.
fn result(before: Option<FaultOutcome>, after: FaultOutcome) -> FaultResult {
    let is_bad = |outcome: FaultOutcome| outcome >= FaultOutcome::Failed;
    let is_good = |outcome: FaultOutcome| {
        matches!(outcome, FaultOutcome::Unaffected | FaultOutcome::Recovered)
    };
    match before {
        Some(before) if is_bad(before) && is_bad(after) && after == before => FaultResult::Same,
        Some(before) if is_bad(before) && is_bad(after) && after < before => FaultResult::Better,
        _ if is_bad(after) => FaultResult::Worse,
        Some(before) if is_bad(before) && is_good(after) => FaultResult::Better,
        Some(before) if is_good(before) && is_good(after) => FaultResult::Same,
        _ => FaultResult::NotShown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_now_is_worse_also_where_nothing_was_kept_before() {
        use FaultOutcome::{Duplicated, Failed, NotApplied, Recovered, Unaffected, Undecided};
        for (before, after, expected) in [
            (Some(NotApplied), Failed, FaultResult::Worse),
            (None, Duplicated, FaultResult::Worse),
            (Some(Failed), Duplicated, FaultResult::Worse),
            (Some(Failed), Failed, FaultResult::Same),
            (Some(Duplicated), Failed, FaultResult::Better),
            (Some(Failed), Recovered, FaultResult::Better),
            (Some(Unaffected), Recovered, FaultResult::Same),
            (Some(Failed), NotApplied, FaultResult::NotShown),
            (Some(Failed), Undecided, FaultResult::NotShown),
        ] {
            assert_eq!(result(before, after), expected, "{before:?} {after:?}");
        }
    }
}
