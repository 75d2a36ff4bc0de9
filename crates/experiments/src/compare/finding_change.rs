//! The state of the baseline's findings in each other program, and of the places in the code. Must
//! not weigh them against times.

use super::variant::{Found, ProgramFacts};
use intact_document::finding::{Finding, Place};
use serde::Serialize;
use std::collections::BTreeSet;

/// The state of a finding or of a place in the code in another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FindingState {
    /// In more than half of the program's rounds, and in none of the baseline's.
    New,
    /// In more than half of the baseline's rounds, and in none of the program's. Rules that give
    /// avoidable connections of one destination a cause are counted together.
    Gone,
    /// In more than half of the baseline's rounds and in none of the program's, which did not call
    /// the destination, or whose traffic to it was not observed.
    NotTested,
    /// In rounds of one program only, which are too few to decide.
    Undecided,
    /// In rounds of both.
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
    /// The state of the places in the code that open its connections. Absent where none is known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub place_changes: Vec<PlaceChange>,
    /// Whether it gives avoidable connections a cause, and the baseline has avoidable connections
    /// of another cause there.
    #[serde(skip)]
    pub(super) has_other_cause: bool,
    /// The finding, as the program has it that has it last.
    #[serde(flatten)]
    pub finding: Finding,
}

/// A place in the code and its state. Lines move, so a place is recognised by its function.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PlaceChange {
    /// The outcome: `new`, `gone`, or `unchanged`, also with another number of connections.
    pub fate: FindingState,
    /// The source file, relative to the code root.
    pub file: String,
    /// The line, from 1, in the program that has it last.
    pub line: u32,
    /// The name of the function.
    pub function: String,
    /// Connections that it opened in one run of `a`.
    pub a_connections: u64,
    /// The same of `b`.
    pub b_connections: u64,
}

impl PlaceChange {
    /// `app/billing.py:41 charge`.
    pub fn words(&self) -> String {
        format!("{}:{} {}", self.file, self.line, self.function)
    }
}

impl FindingChange {
    /// The places in one state.
    pub fn places(&self, fate: FindingState) -> impl Iterator<Item = &PlaceChange> {
        let places = self.place_changes.iter();
        places.filter(move |place| place.fate == fate)
    }
}

pub(super) fn changes(programs: &[ProgramFacts]) -> Vec<FindingChange> {
    let Some((first, rest)) = programs.split_first() else {
        return Vec::new();
    };
    let mut changes = Vec::new();
    for other in rest {
        let pair = ProgramPair { a: first, b: other };
        let gone_or_there = first.findings.iter().map(|ours| {
            let theirs = other.findings.iter();
            let mut same = theirs.filter(|theirs| theirs.is(ours.finding.rule, &ours.keys));
            pair.change(Some(ours), same.next())
        });
        let new = other.findings.iter().filter(|theirs| {
            let before = &mut first.findings.iter();
            !before.any(|ours| ours.is(theirs.finding.rule, &theirs.keys))
        });
        let new = new.map(|theirs| pair.change(None, Some(theirs)));
        changes.extend(gone_or_there.chain(new).flatten());
    }
    changes.sort_by(|a, b| (a.fate, b.finding.severity).cmp(&(b.fate, a.finding.severity)));
    changes
}

/// The baseline and a program that is compared with it.
struct ProgramPair<'a> {
    a: &'a ProgramFacts,
    b: &'a ProgramFacts,
}

impl ProgramPair<'_> {
    fn change(&self, ours: Option<&Found>, theirs: Option<&Found>) -> Option<FindingChange> {
        let (a, b) = (self.a, self.b);
        let rounds = |one: Option<&Found>| one.map_or(0, |one| one.rounds);
        let (a_rounds, b_rounds) = (rounds(ours), rounds(theirs));
        let found = theirs.or(ours)?;
        let finding = &found.finding;
        let not_tested = self.not_tested(found).filter(|_| b_rounds == 0);
        let is_gone = ours.is_some_and(|ours| is_most(a, ours) || self.is_of_a_gone_cause(ours));
        let fate = match (a_rounds, b_rounds) {
            (_, 0) if is_gone && not_tested.is_some() => FindingState::NotTested,
            (_, 0) if is_gone && !b.rounds.is_empty() => FindingState::Gone,
            (0, _) if is_most(b, found) && !a.rounds.is_empty() => FindingState::New,
            (0, _) | (_, 0) => FindingState::Undecided,
            _ => FindingState::Unchanged,
        };
        let causes = of_openings(a, &found.keys);
        Some(FindingChange {
            a: a.name.clone(),
            b: b.name.clone(),
            fate,
            a_rounds,
            b_rounds,
            not_tested: not_tested.filter(|_| fate == FindingState::NotTested),
            place_changes: match fate {
                FindingState::NotTested => Vec::new(),
                _ => self.places(ours, theirs),
            },
            has_other_cause: a_rounds == 0 && finding.is_of_openings && causes.count() > 0,
            finding: finding.clone(),
        })
    }

    /// Whether the rules that give the avoidable connections there a cause stood in most rounds of
    /// the baseline together, and in no round of the program.
    fn is_of_a_gone_cause(&self, ours: &Found) -> bool {
        if !ours.finding.is_of_openings {
            return false;
        }
        let rounds = of_openings(self.a, &ours.keys).flat_map(|one| &one.numbers);
        let rounds: BTreeSet<&u32> = rounds.collect();
        let is_most = rounds.len() * 2 > self.a.rounds.len();
        is_most && of_openings(self.b, &ours.keys).next().is_none()
    }

    /// The places of a finding in both. One that opens connections there for any other finding is
    /// neither gone nor new.
    fn places(&self, ours: Option<&Found>, theirs: Option<&Found>) -> Vec<PlaceChange> {
        let of = |one: Option<&Found>| one.map_or(Vec::new(), |one| one.finding.places.clone());
        let (before, after) = (of(ours), of(theirs));
        // where one side shows no place at all, nothing is known of it
        let is_hidden = |found: Option<&Found>, places: &[Place]| {
            found.is_some_and(|one| one.finding.is_of_openings) && places.is_empty()
        };
        if is_hidden(ours, &before) || is_hidden(theirs, &after) {
            return Vec::new();
        }
        let keys = ours
            .or(theirs)
            .map_or_else(BTreeSet::new, |one| one.keys.clone());
        let all = after.iter().chain(&before);
        let mut changes: Vec<PlaceChange> = Vec::new();
        for place in all {
            let is_known = |known: &PlaceChange| {
                (&known.file, &known.function) == (&place.file, &place.function)
            };
            if changes.iter().any(is_known) {
                continue;
            }
            let opened = |places: &[Place]| -> u64 {
                let same = places.iter().filter(|one| is_same(one, place));
                same.map(|one| one.connections).sum()
            };
            let (a_connections, b_connections) = (opened(&before), opened(&after));
            let fate = match (a_connections, b_connections) {
                (_, 0) if !opens(self.b, &keys, place) => FindingState::Gone,
                (0, _) if !opens(self.a, &keys, place) => FindingState::New,
                _ => FindingState::Unchanged,
            };
            changes.push(PlaceChange {
                fate,
                file: place.file.clone(),
                line: place.line,
                function: place.function.clone(),
                a_connections,
                b_connections,
            });
        }
        changes
    }

    /// Why the absence of a finding in `b` does not show that it is gone.
    fn not_tested(&self, found: &Found) -> Option<String> {
        let (a, b) = (self.a, self.b);
        if let Some(reason) = b.no_success() {
            return Some(format!("{} has no success: {reason}", b.name));
        }
        // ledgers that were recorded separately need not have the same load
        if a.wall_ms.is_some() && b.sends_fewer(a) {
            return Some(format!("{} sends fewer requests", b.name));
        }
        let mut called = found.keys.iter().filter_map(|key| b.destinations.get(key));
        match called.next() {
            Some(unobserved) => unobserved.hides_findings(),
            None if found
                .keys
                .iter()
                .any(|key| a.destinations.contains_key(key)) =>
            {
                Some(format!("{} does not call it", b.name))
            }
            None => None,
        }
    }
}

/// Whether a finding stood in more than half of the rounds.
fn is_most(program: &ProgramFacts, found: &Found) -> bool {
    found.rounds * 2 > program.rounds.len() as u32
}

fn is_same(one: &Place, other: &Place) -> bool {
    (&one.file, &one.function) == (&other.file, &other.function)
}

/// Whether a place opens connections of any finding about these destinations.
fn opens(program: &ProgramFacts, keys: &BTreeSet<String>, place: &Place) -> bool {
    let about = program.findings.iter().filter(|one| one.is_about(keys));
    let mut places = about.flat_map(|one| &one.finding.places);
    places.any(|one| is_same(one, place))
}

/// The findings that give avoidable connections to these destinations a cause.
fn of_openings<'a>(
    program: &'a ProgramFacts,
    keys: &'a BTreeSet<String>,
) -> impl Iterator<Item = &'a Found> {
    let findings = program.findings.iter();
    findings.filter(|one| one.finding.is_of_openings && one.is_about(keys))
}
