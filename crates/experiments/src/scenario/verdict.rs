//! The sentences of a scenario: what clients did, the modes of the latency, and why nothing
//! succeeded. Must not compute figures.

use super::ScenarioFacts;
use crate::bench::{Mode, no_success_claim};
use intact_document::population::Population;
use intact_document::statement::counts;
use intact_document::{Claim, ClaimKind, Claims};
use intact_ledger::{Exchange, Reuse, Tally};
use intact_units::number::{count, time, whole_percent};
use intact_units::plural::counted;

/// What is claimed of the sessions.
pub(super) fn claims(facts: &ScenarioFacts, tally: &Tally, first: &[Exchange]) -> Claims {
    if let Some(claim) = no_success_claim(&facts.counted, &facts.errors, tally, first) {
        return Claims::ranked([claim]);
    }
    let of = |kind: ClaimKind, sentence: String| Claim::new(kind, 0.0, sentence);
    let idle = facts.sessions.iter();
    let idle = idle.filter(|one| one.counted.requests.total == 0);
    let idle = idle.map(|one| format!("No client picked the session {:?}.", one.name));
    let notes = std::iter::once(clients(facts)).chain(idle);
    let claims = [
        (ClaimKind::Failed, failed(facts)),
        (
            ClaimKind::Errors,
            facts.errors.share().map(|share| format!("{share}.")),
        ),
        (ClaimKind::Time, modes(facts)),
    ];
    let claims = claims
        .into_iter()
        .filter_map(|(kind, sentence)| Some(of(kind, sentence?)));
    Claims::ranked(claims.chain(notes.map(|note| of(ClaimKind::Note, note))))
}

/// Requests that failed, if any.
fn failed(facts: &ScenarioFacts) -> Option<String> {
    let failed = facts.counted.requests.failures();
    let all = counted(facts.counted.requests.total, "request");
    let kinds = facts.counted.requests.failed.iter();
    let kinds = counts(kinds.map(|(kind, &count)| (kind, count)));
    (failed > 0).then(|| format!("{} of {all} failed ({kinds}).", count(failed)))
}

/// What new and reused connections took; where all are of one kind, the two modes of the histogram.
fn modes(facts: &ScenarioFacts) -> Option<String> {
    let begin = match facts.is_bimodal {
        true => "The latency has two modes: ",
        false => "",
    };
    let of = |reuse: Reuse| {
        facts
            .populations
            .iter()
            .find(|one| one.reuse == Some(reuse))
    };
    if let (Some(new), Some(reused)) = (of(Reuse::Fresh), of(Reuse::Reused)) {
        let all: u64 = facts.populations.iter().map(|one| one.count).sum();
        let share = |one: &Population| whole_percent(one.count as f64 / all as f64);
        return Some(format!(
            "{begin}{} of the requests waited for a new connection and took {}, {} reused one and took {}.",
            share(new),
            typical(new),
            share(reused),
            typical(reused)
        ));
    }
    let [fast, slow] = facts.modes.as_slice() else {
        return None;
    };
    let one = |mode: &Mode| format!("{} took {}", whole_percent(mode.share), time(mode.mean_ms));
    Some(format!("{begin}{}, {} on average.", one(fast), one(slow)))
}

/// The median, or the mean where there are too few values.
fn typical(one: &Population) -> String {
    match one.p50_ms {
        Some(median) => format!("{} at the median", time(median)),
        None => format!("{} on average", time(one.mean_ms)),
    }
}

fn clients(facts: &ScenarioFacts) -> String {
    let requests = counted(facts.counted.requests.total, "request");
    let connections = counted(facts.counted.connections.opened, "connection");
    let within = facts.seconds.map_or_else(String::new, |seconds| {
        format!(" in {}", time(seconds * 1e3))
    });
    let Some(clients) = facts.clients else {
        return format!("{requests} on {connections}{within}.");
    };
    let unfinished = clients.started - clients.finished.min(clients.started);
    let left = match unfinished {
        0 => String::new(),
        some => format!("; {some} of them did not finish"),
    };
    format!(
        "{} sent {requests} on {connections}{within}{left}.",
        counted(clients.started, "client")
    )
}
