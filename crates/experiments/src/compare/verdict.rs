//! The first sentences of a comparison: the differences that were shown and those that were not,
//! the other counts, the findings.

use super::count_difference::{CountDifference, CountStatistic};
use super::finding_change::{FindingChange, FindingState};
use super::outcome::{FigureChange, Outcome};
use super::variant::ProgramFacts;
use intact_document::finding::Severity;
use intact_statistics::{MIN_ROUNDS, NoInterval};
use intact_units::number::{mean, whole_percent};

/// Shares of reused requests that differ by less are alike.
const ALIKE: f64 = 0.1;

pub(super) fn sentences(
    programs: &[ProgramFacts],
    outcomes: &[Outcome],
    counts: &[CountDifference],
    changes: &[FindingChange],
    is_experiment: bool,
) -> Vec<String> {
    let nothing =
        || vec!["No program has come to the end of a round: nothing to compare".to_owned()];
    // a foreign ledger may name no program at all
    let Some((first, others)) = programs.split_first() else {
        return nothing();
    };
    if programs.iter().any(|one| one.rounds.is_empty()) {
        return nothing();
    }
    let mut said = Vec::new();
    for (outcome, other) in outcomes.iter().zip(others) {
        if is_experiment {
            said.extend(unlike(outcome));
            said.extend(shown(outcome));
            said.extend(not_shown(outcome));
            said.extend(few_rounds(outcome, other.rounds.len()));
        } else {
            said.push(behaviour(first, other));
        }
        said.extend(failed_lookups(first, other));
        let further = counts.iter().filter(|one| one.b == other.name);
        said.extend(further_counts(further, is_experiment));
        said.extend(findings(outcome, changes, is_experiment));
    }
    if !is_experiment {
        said.push(
            "The ledgers were recorded separately, so their load may differ: `intact compare -- CMD_A -- CMD_B` measures what a change does"
                .to_owned(),
        );
    }
    said
}

/// What the sentences of a likeness leave out and no table of the page has.
pub(super) fn with_production(programs: &[ProgramFacts]) -> Vec<String> {
    let Some((first, others)) = programs.split_first() else {
        return Vec::new();
    };
    let mut said = Vec::new();
    for other in others {
        said.extend(no_requests(first, other));
        said.extend(failed_lookups(first, other));
    }
    said
}

fn no_requests(first: &ProgramFacts, other: &ProgramFacts) -> Option<String> {
    let programs = [first, other];
    let empty = programs.iter().find(|one| one.requests.total == 0)?;
    Some(format!(
        "{} has no requests: nothing to compare",
        empty.name
    ))
}

/// `new against old: 95 % fewer connections (20 → 1), 44 % less wall time (1.30 s → 730 ms, 95 %:
/// 37 to 51 %)`.
fn shown(outcome: &Outcome) -> Option<String> {
    let all: Vec<String> = outcome.shown().map(difference).collect();
    (!all.is_empty()).then(|| format!("{} against {}: {}", outcome.b, outcome.a, all.join(", ")))
}

/// Lookups that failed, where any did: a program that opens fewer connections needs fewer.
fn failed_lookups(first: &ProgramFacts, other: &ProgramFacts) -> Option<String> {
    let of =
        |one: &ProgramFacts| format!("{} of {} in {}", one.lookups_failed, one.lookups, one.name);
    (first.lookups_failed + other.lookups_failed > 0)
        .then(|| format!("Failed lookups: {}, {}", of(first), of(other)))
}

fn difference(one: &FigureChange) -> String {
    let from_to = from_to(one);
    let Some(amount) = one.amount() else {
        return format!("{} ({from_to})", one.compared_name());
    };
    let interval = one.interval();
    let interval = interval.map_or_else(String::new, |ends| format!(", 95 %: {ends}"));
    format!("{amount} {} ({from_to}{interval})", one.compared_name())
}

fn from_to(one: &FigureChange) -> String {
    format!("{} → {}", one.value(one.a), one.value(one.b))
}

fn unlike(outcome: &Outcome) -> Option<String> {
    let reasons = outcome.unlike.join("; ");
    (!reasons.is_empty()).then(|| format!("The programs did not do the same work: {reasons}"))
}

fn not_shown(outcome: &Outcome) -> Option<String> {
    let each = |one: &FigureChange| match one.interval() {
        Some(ends) => format!("{} ({}, 95 %: {ends})", one.name(), from_to(one)),
        None if one.value(one.a) == one.value(one.b) => {
            format!("{} ({} each)", one.name(), one.value(one.b))
        }
        None => format!("{} ({})", one.name(), from_to(one)),
    };
    let all: Vec<String> = outcome.not_shown().map(each).collect();
    let whose = if outcome.shown().next().is_some() {
        String::new()
    } else {
        format!(" between {} and {}", outcome.a, outcome.b)
    };
    (!all.is_empty()).then(|| format!("No difference{whose} was shown in {}", all.join(" or ")))
}

/// What was measured in too few rounds.
fn few_rounds(outcome: &Outcome, rounds: usize) -> Option<String> {
    let unknown = outcome.figures.iter();
    let unknown = unknown.filter(|one| one.significant.is_none());
    let all: Vec<String> = unknown
        .map(|one| format!("{} {}", one.name(), from_to(one)))
        .collect();
    let too_few = NoInterval::TooFewRounds {
        rounds,
        needed: MIN_ROUNDS,
    };
    let reason = if rounds < MIN_ROUNDS {
        too_few.to_string()
    } else {
        "there is no interval".to_owned()
    };
    let (a, b) = (&outcome.a, &outcome.b);
    (!all.is_empty()).then(|| format!("{b} against {a}: {}; {reason}", all.join(", ")))
}

/// Whether two ledgers show the same use of connections: a difference may be that of their load.
fn behaviour(first: &ProgramFacts, other: &ProgramFacts) -> String {
    let (a, b) = (&first.name, &other.name);
    if let Some(empty) = no_requests(first, other) {
        return empty;
    }
    let unknown = |name: &str| format!("Whether {name}'s requests reused a connection is unknown");
    let per_request = |one: &ProgramFacts| {
        let requests = one.requests.total.max(1) as f64;
        format!("{:.2}", one.connections.opened as f64 / requests)
    };
    match (first.reuse, other.reuse) {
        (None, _) => unknown(a),
        (_, None) => unknown(b),
        (Some(ours), Some(theirs)) => {
            let does = if (theirs - ours).abs() < ALIKE {
                "behaves like"
            } else {
                "does not behave like"
            };
            format!(
                "{b} {does} {a}: {} of its requests reused a connection, {} of {a}'s; it opens {} connections per request, {a} opens {}",
                whole_percent(theirs),
                whole_percent(ours),
                per_request(other),
                per_request(first)
            )
        }
    }
}

/// The counts that the first sentence does not have.
fn further_counts<'a>(
    counts: impl Iterator<Item = &'a CountDifference>,
    is_experiment: bool,
) -> Option<String> {
    let differ = counts.filter(|one| {
        let is_said = is_experiment && one.count == CountStatistic::Connections;
        one.a_mean != one.b_mean && !is_said
    });
    let all: Vec<String> = differ
        .map(|one| {
            let (a, b) = (mean(one.a_mean), mean(one.b_mean));
            format!("{} {a} → {b}", one.count.words())
        })
        .collect();
    let whose = if is_experiment {
        "In each run also"
    } else {
        "Counts"
    };
    (!all.is_empty()).then(|| format!("{whose}: {}", all.join(", ")))
}

fn findings(outcome: &Outcome, changes: &[FindingChange], is_experiment: bool) -> Vec<String> {
    let (a, b) = (&outcome.a, &outcome.b);
    let mut said = Vec::new();
    for fate in [
        FindingState::Gone,
        FindingState::New,
        FindingState::NotTested,
    ] {
        let mut rules: Vec<&str> = changes
            .iter()
            .filter(|change| change.b == *b && change.fate == fate)
            .filter(|change| change.finding.severity > Severity::Info)
            .map(|change| change.finding.rule)
            .collect();
        rules.dedup();
        let label = match (fate, is_experiment) {
            (FindingState::Gone, true) => format!("Gone with {b}"),
            (FindingState::Gone, false) => format!("Only in {a}"),
            (FindingState::New, true) => format!("New with {b}"),
            (FindingState::New, false) => format!("Only in {b}"),
            _ => format!("Not tested with {b}"),
        };
        if !rules.is_empty() {
            said.push(format!("{label}: {}", rules.join(", ")));
        }
    }
    said
}
