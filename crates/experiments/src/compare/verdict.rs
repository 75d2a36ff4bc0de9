//! The first sentences of a comparison: the differences that were shown and those that were not,
//! the other counts, the findings.

use super::count_difference::{CountDifference, CountStatistic};
use super::finding_change::{FindingChange, FindingState, PlaceChange};
use super::outcome::{FigureChange, Outcome};
use super::variant::ProgramFacts;
use intact_document::finding::Severity;
use intact_document::{Claim, ClaimKind, Claims};
use intact_statistics::{MIN_ROUNDS, NoInterval};
use intact_units::number::{count, mean, whole_percent};

/// Shares of reused requests that differ by less are alike, and memory by this share of it.
const ALIKE: f64 = 0.1;

pub(super) fn claims(
    programs: &[ProgramFacts],
    outcomes: &[Outcome],
    counts: &[CountDifference],
    changes: &[FindingChange],
    is_experiment: bool,
) -> Claims {
    // a foreign ledger may name no program at all
    let complete = programs.split_first();
    let complete = complete.filter(|_| programs.iter().all(|one| !one.rounds.is_empty()));
    let Some((first, others)) = complete else {
        let text = "No program has come to the end of a round: nothing to compare";
        return Claims::ranked([of(ClaimKind::Unseen, text)]);
    };
    if let Some(nothing) = nothing_succeeded(programs) {
        let failed = others.iter().flat_map(|other| failures(first, other));
        return Claims::ranked(std::iter::once(nothing).chain(failed));
    }
    let mut claims = Vec::new();
    for (outcome, other) in outcomes.iter().zip(others) {
        let failed = failures(first, other);
        // what failed is no work
        let is_failed = |one: &ProgramFacts| one.no_success().is_some();
        let kind = match failed.is_empty() && !is_failed(first) && !is_failed(other) {
            true => ClaimKind::Unseen,
            false => ClaimKind::Failed,
        };
        claims.extend(failed);
        if is_experiment {
            claims.extend(unlike(outcome).map(|text| of(kind, text)));
            let times = [
                shown(outcome),
                not_shown(outcome),
                few_rounds(outcome, other.rounds.len()),
            ];
            let times = times.into_iter().flatten();
            claims.extend(times.map(|text| of(ClaimKind::Time, text)));
        } else {
            claims.push(behaviour(first, other));
        }
        let whose = (others.len() > 1).then_some(&*other.name);
        let further = counts.iter().filter(|one| one.b == other.name);
        let further = further_counts(further, whose, is_experiment);
        claims.extend(further.map(|text| of(ClaimKind::Where, text)));
        claims.extend(findings(outcome, changes, is_experiment));
    }
    if !is_experiment {
        claims.push(of(
            ClaimKind::Note,
            "The ledgers were recorded separately, so their load may differ: `intact compare -- CMD_A -- CMD_B` measures what a change does",
        ));
    }
    Claims::ranked(claims)
}

fn of(kind: ClaimKind, text: impl Into<String>) -> Claim {
    Claim::new(kind, 0.0, text.into())
}

/// That no program had a success, and why.
fn nothing_succeeded(programs: &[ProgramFacts]) -> Option<Claim> {
    let reason = |one: &ProgramFacts| Some(format!("{}: {}", one.name, one.no_success()?));
    let reasons: Vec<String> = programs.iter().map(reason).collect::<Option<_>>()?;
    let text = format!("No program had a success: {}", reasons.join("; "));
    Some(Claim::new(ClaimKind::Failed, 1.0, text))
}

/// What the claims of a likeness leave out and no table of the page has.
pub(super) fn with_production(programs: &[ProgramFacts]) -> Vec<Claim> {
    let Some((first, others)) = programs.split_first() else {
        return Vec::new();
    };
    let mut claims = Vec::new();
    for other in others {
        let nothing = no_requests(first, other);
        claims.extend(nothing.map(|text| of(ClaimKind::Unseen, text)));
        claims.extend(failures(first, other));
    }
    claims
}

fn no_requests(first: &ProgramFacts, other: &ProgramFacts) -> Option<String> {
    let programs = [first, other];
    let empty = programs
        .iter()
        .find(|one| one.counted.requests.total == 0)?;
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

/// Requests, dials and lookups that failed, where any did: of all rounds.
fn failures(first: &ProgramFacts, other: &ProgramFacts) -> Vec<Claim> {
    type Counts = fn(&ProgramFacts) -> (u64, u64);
    let all: [(&str, Counts); 3] = [
        ("requests", |one| {
            let requests = &one.counted.requests;
            (requests.total, requests.failures())
        }),
        ("connection attempts", |one| {
            let (failed, all) = one.counted.connections.dials();
            (all, failed)
        }),
        ("lookups", |one| one.lookups_seen),
    ];
    let failed = all.into_iter().filter_map(|(what, counts)| {
        let words = |one: &ProgramFacts| {
            let (all, failed) = counts(one);
            format!("{} of {} in {}", count(failed), count(all), one.name)
        };
        let any = counts(first).1 + counts(other).1 > 0;
        let text = format!("Failed {what}: {}, {}", words(first), words(other));
        any.then(|| of(ClaimKind::Failed, text))
    });
    failed.collect()
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
fn behaviour(first: &ProgramFacts, other: &ProgramFacts) -> Claim {
    let (a, b) = (&first.name, &other.name);
    if let Some(empty) = no_requests(first, other) {
        return of(ClaimKind::Unseen, empty);
    }
    let (Some(ours), Some(theirs)) = (first.counted.reuse, other.counted.reuse) else {
        let name = if first.counted.reuse.is_none() { a } else { b };
        let text = format!("Whether {name}'s requests reused a connection is unknown");
        return of(ClaimKind::Unseen, text);
    };
    let per_request = |one: &ProgramFacts| {
        let requests = one.counted.requests.total.max(1) as f64;
        format!("{:.2}", one.counted.connections.opened as f64 / requests)
    };
    let does = match (theirs - ours).abs() < ALIKE {
        true => "behaves like",
        false => "does not behave like",
    };
    let text = format!(
        "{b} {does} {a}: {} of its requests reused a connection, {} of {a}'s; it opens {} connections per request, {a} opens {}",
        whole_percent(theirs),
        whole_percent(ours),
        per_request(other),
        per_request(first)
    );
    of(ClaimKind::Opened, text)
}

/// The counts that the first sentence does not have.
fn further_counts<'a>(
    counts: impl Iterator<Item = &'a CountDifference>,
    whose: Option<&str>,
    is_experiment: bool,
) -> Option<String> {
    let differ = counts.filter(|one| {
        let is_said = is_experiment && one.count == CountStatistic::Connections;
        // memory differs a little in every run
        let is_alike = (one.a_mean - one.b_mean).abs() < ALIKE * one.a_mean;
        let is_noise =
            one.count == CountStatistic::Memory && (is_alike || one.significant != Some(true));
        one.a_mean != one.b_mean && !is_said && !is_noise
    });
    let all: Vec<String> = differ
        .map(|one| {
            let (a, b) = (mean(one.a_mean), mean(one.b_mean));
            format!("{} {a} → {b}", one.count.words())
        })
        .collect();
    let begin = match (whose, is_experiment) {
        (None, true) => "In each run also".to_owned(),
        (Some(name), true) => format!("{name}, in each run also"),
        (None, false) => "Counts".to_owned(),
        (Some(name), false) => format!("Counts of {name}"),
    };
    (!all.is_empty()).then(|| format!("{begin}: {}", all.join(", ")))
}

fn findings(outcome: &Outcome, changes: &[FindingChange], is_experiment: bool) -> Vec<Claim> {
    let (a, b) = (&outcome.a, &outcome.b);
    let mut claims = Vec::new();
    for fate in [
        FindingState::Gone,
        FindingState::New,
        FindingState::NotTested,
    ] {
        let ours = changes
            .iter()
            .filter(|change| change.b == *b && change.fate == fate)
            .filter(|change| change.finding.severity > Severity::Info);
        let mut rules: Vec<String> = ours.map(|change| with_places(change, fate)).collect();
        rules.dedup();
        let (kind, label) = match (fate, is_experiment) {
            (FindingState::Gone, true) => (ClaimKind::Well, format!("Gone with {b}")),
            (FindingState::Gone, false) => (ClaimKind::Well, format!("Only in {a}")),
            (FindingState::New, true) => (ClaimKind::Warned, format!("New with {b}")),
            (FindingState::New, false) => (ClaimKind::Warned, format!("Only in {b}")),
            _ => (ClaimKind::Note, format!("Not tested with {b}")),
        };
        if !rules.is_empty() {
            claims.push(of(kind, format!("{label}: {}", rules.join(", "))));
        }
    }
    claims
}

/// A rule, with the first places in the code that are in the same state.
fn with_places(change: &FindingChange, fate: FindingState) -> String {
    let rule = change.finding.rule;
    let places: Vec<String> = change.places(fate).map(PlaceChange::words).collect();
    match &places[..] {
        [] => rule.to_owned(),
        [one] => format!("{rule} ({one})"),
        [one, others @ ..] => format!("{rule} ({one} and {} more)", others.len()),
    }
}
