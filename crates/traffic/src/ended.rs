//! Findings that ended: where reuse became better for good, and a destination opened few from then
//! on, what is said of its openings is past. Must not change a count.

use super::level_shift::LevelShift;
use super::tracker::{Judged, Tracker};
use intact_document::finding::{Finding, Severity};
use intact_document::statement::Statement;
use intact_ledger::Nanos;

/// The rules that are about the openings of connections.
const OF_OPENINGS: [&str; 11] = [
    "body-not-drained",
    "channel-per-call",
    "close-announced-not-kept",
    "connection-close-sent",
    "h2-not-multiplexed",
    "new-client-per-request",
    "new-connection-per-query",
    "new-connection-per-request",
    "pool-per-worker",
    "pool-too-small",
    "server-closes-early",
];

/// How long reuse must have been bad, and then good: a client opens what it keeps when it starts.
const LONG: u64 = 60_000_000_000;

/// With ten requests on each connection there is no finding, whatever ended the connections.
const MANY: u64 = 10;

/// Marks the findings about openings that ended with the last of these changes.
pub(super) fn mark(
    findings: &mut [Finding],
    changes: &[LevelShift],
    tracker: &Tracker,
    judged: &Judged,
) {
    let better = changes.iter().filter(|change| change.is_better_reuse());
    let Some(last) = better.max_by(|one, other| one.at_s.total_cmp(&other.at_s)) else {
        return;
    };
    let since = Nanos((last.at_s * 1e9) as u64);
    let begin = tracker.history.lives().map(|life| life.at).min();
    if begin.is_none_or(|begin| since < begin.after(LONG) || tracker.now < since.after(LONG)) {
        return;
    }
    let of_openings = findings
        .iter_mut()
        .filter(|finding| OF_OPENINGS.contains(&finding.rule) && finding.also.is_empty());
    for finding in of_openings.filter(|finding| finding.severity == Severity::Warning) {
        let names = 0..tracker.destinations.counts.len();
        let mut of_name = names.filter(|&at| tracker.destinations.name(at) == finding.subject);
        if let (Some(destination), None) = (of_name.next(), of_name.next())
            && has_ended(destination, since, tracker, judged)
        {
            finding.severity = Severity::Info;
            let ended = format!("it has ended: since {} reuse is better", last.moment());
            finding.evidence = finding.evidence.clone().and(Statement::text(ended));
        }
    }
}

/// Whether a destination had requests after a time, and opened no more connections than it needs,
/// or one for many requests.
fn has_ended(destination: usize, since: Nanos, tracker: &Tracker, judged: &Judged) -> bool {
    let lives = || {
        tracker
            .history
            .lives()
            .filter(|life| life.destination == destination)
    };
    let later = || lives().filter(|life| life.at > since);
    let (opened, requests) = (
        later().count() as u64,
        later().map(|life| life.carried).sum::<u64>(),
    );
    let is_used = lives().any(|life| life.uses.iter().any(|one| one.span.end > since));
    let is_whole = tracker.history.caveat().is_none();
    let most = judged.needs[destination].least().max(requests / MANY);
    is_whole && is_used && opened <= most
}
