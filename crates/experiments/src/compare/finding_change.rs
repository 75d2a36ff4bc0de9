//! The state of the baseline's findings in each other program. Must not weigh them against times.

use super::variant::{Found, ProgramFacts};
use intact_document::finding::Finding;
use serde::Serialize;

/// The state of a finding in another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FindingState {
    /// In more than half of the program's rounds, and in none of the baseline's.
    New,
    /// In more than half of the baseline's rounds, and in none of the program's.
    Gone,
    /// In more than half of the baseline's rounds and in none of the program's, which did not call
    /// the destination, or whose traffic to it was not observed.
    NotTested,
    /// In some rounds of both, or in too few to decide.
    Unchanged,
}

/// A finding of the baseline or of another program, and its state.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FindingChange {
    /// The baseline.
    pub a: String,
    /// The program compared with it.
    pub b: String,
    /// The outcome.
    pub fate: FindingState,
    /// Rounds of `a` that had it.
    pub a_rounds: u32,
    /// Rounds of `b` that had it.
    pub b_rounds: u32,
    /// Why it was not tested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_tested: Option<String>,
    /// The finding, as the program has it that has it last.
    #[serde(flatten)]
    pub finding: Finding,
}

pub(super) fn changes(programs: &[ProgramFacts]) -> Vec<FindingChange> {
    let Some((first, rest)) = programs.split_first() else {
        return Vec::new();
    };
    let mut changes = Vec::new();
    for other in rest {
        let gone_or_there = first.findings.iter().map(|ours| {
            let theirs = other
                .findings
                .iter()
                .find(|theirs| theirs.is(&ours.finding));
            change(first, other, Some(ours), theirs)
        });
        let new = other.findings.iter().filter(|theirs| {
            let before = &mut first.findings.iter();
            !before.any(|ours| ours.is(&theirs.finding))
        });
        let new = new.map(|theirs| change(first, other, None, Some(theirs)));
        changes.extend(gone_or_there.chain(new).flatten());
    }
    changes.sort_by(|a, b| (a.fate, b.finding.severity).cmp(&(b.fate, a.finding.severity)));
    changes
}

fn change(
    a: &ProgramFacts,
    b: &ProgramFacts,
    ours: Option<&Found>,
    theirs: Option<&Found>,
) -> Option<FindingChange> {
    let (a_rounds, b_rounds) = (
        ours.map_or(0, |one| one.rounds),
        theirs.map_or(0, |one| one.rounds),
    );
    let most = |rounds: u32, of: &ProgramFacts| rounds * 2 > of.rounds.len() as u32;
    let finding = &theirs.or(ours)?.finding;
    let not_tested = not_tested(a, b, finding).filter(|_| b_rounds == 0);
    let fate = match (a_rounds, b_rounds) {
        (_, 0) if most(a_rounds, a) && not_tested.is_some() => FindingState::NotTested,
        (_, 0) if most(a_rounds, a) && !b.rounds.is_empty() => FindingState::Gone,
        (0, _) if most(b_rounds, b) && !a.rounds.is_empty() => FindingState::New,
        _ => FindingState::Unchanged,
    };
    Some(FindingChange {
        a: a.name.clone(),
        b: b.name.clone(),
        fate,
        a_rounds,
        b_rounds,
        not_tested: not_tested.filter(|_| fate == FindingState::NotTested),
        finding: finding.clone(),
    })
}

/// Why the absence of a finding in `b` does not show that it is gone.
fn not_tested(a: &ProgramFacts, b: &ProgramFacts, finding: &Finding) -> Option<String> {
    if let Some(reason) = b.no_success() {
        return Some(format!("{} has no success: {reason}", b.name));
    }
    // ledgers that were recorded separately need not have the same load
    if a.wall_ms.is_some() && b.sends_fewer(a) {
        return Some(format!("{} sends fewer requests", b.name));
    }
    match b.destinations.get(&finding.subject) {
        Some(unobserved) => unobserved.hides_findings(),
        None if a.destinations.contains_key(&finding.subject) => {
            Some(format!("{} does not call it", b.name))
        }
        None => None,
    }
}
