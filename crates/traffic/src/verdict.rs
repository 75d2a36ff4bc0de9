//! The first sentences of a page: what the waste is, where most of it goes, what could not be seen.

use super::facts::ObservedFacts;
use super::figures::Figures;
use super::loss::{Loss, NOTEWORTHY};
use super::tracker::Tracker;
use intact_document::error_responses::ErrorResponses;
use intact_document::finding::{Finding, Severity};
use intact_document::statement::{Value, connections, counts};
use intact_ledger::{Caveat, Vantage};
use intact_units::number::{count, time, whole_percent};
use intact_units::plural::counted;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Reuses right after a response from which on requests may have waited for a connection.
const REUSES: u64 = 5;

pub(super) fn sentences(tracker: &Tracker, facts: &ObservedFacts) -> Vec<String> {
    let ObservedFacts {
        totals,
        destinations,
        ..
    } = facts;
    let mut said = vec![first(tracker, facts)];
    let mut lost = Vec::new();
    if totals.connections.opened + totals.open_before > 0 || totals.requests.total > 0 {
        lost.extend(failed_lookups(totals, tracker.lookups.sporadic()));
    }
    if totals.requests.ok > 0 {
        lost.extend(failed_requests(totals));
    }
    let leading = totals.leading_loss();
    if matches!(leading, Some((Loss::Time | Loss::Requests, _))) {
        lost.reverse();
    }
    let is_first = totals.avoidable > 0 || worst(facts).is_none();
    if leading.is_some() && is_first && totals.requests.ok > 0 {
        // what costs more than the setup comes before it
        said.splice(0..0, lost);
    } else {
        said.extend(lost);
    }
    if totals.requests.ok > 0 {
        said.extend(needed_setup(totals));
        said.extend(hidden_queue(facts));
        said.extend(failed_dials(totals));
    }
    said.extend(ErrorResponses::among(&totals.requests.status, None).share());
    if let Some(dearest) = destinations.first()
        && destinations.len() > 1
        && totals.avoidable > 0
        && totals.needed_range().is_none()
        && dearest.figures.avoidable > 0
    {
        let is_most = 2 * dearest.figures.avoidable > totals.avoidable;
        said.push(format!(
            "{} to {}: {} where {} would do{}",
            if is_most {
                "Most of the avoidable connections belong"
            } else {
                "The largest part of the avoidable connections belongs"
            },
            dearest.origin,
            count(dearest.figures.connections.opened),
            dearest.figures.connections.needed,
            dearest
                .figures
                .wasted_ms
                .map_or(String::new(), |wasted| format!(
                    ", {} of setup",
                    time(wasted)
                ))
        ));
    }
    let broken = grave(facts, Severity::Error);
    if totals.avoidable > 0 && !broken.is_empty() {
        said.push(format!(
            "In addition to the cost, something breaks: {}",
            broken.join(", ")
        ));
    }
    if totals.avoidable == 0
        && let Some(worst) = worst(facts)
    {
        // what is bad comes first, that no connection was avoidable comes after it
        let waste = std::mem::replace(&mut said[0], format!("{} ({})", worst.claim, worst.rule));
        said.push(waste);
        let mut others = grave(facts, Severity::Warning);
        others.retain(|rule| *rule != worst.rule);
        if !others.is_empty() {
            said.push(format!("Further warnings: {}", others.join(", ")));
        }
    }
    said
}

fn first(tracker: &Tracker, facts: &ObservedFacts) -> String {
    let totals = &facts.totals;
    let missing = totals.unobserved.missing();
    let opened = totals.connections.opened;
    let needed = totals.connections.needed;
    let requests = totals.requests.total;
    let whose =
        if tracker.destinations.all.pids.is_empty() && tracker.run().vantage != Vantage::Client {
            "the time of these requests"
        } else {
            "the program's outbound time"
        };
    let connections = connections(opened);
    if opened + totals.open_before == 0 && requests == 0 {
        return nothing(facts, tracker.lookups.all.without_result, missing);
    }
    if requests == 0 {
        let all = &tracker.destinations.all;
        return without_request(totals, all.unusable, all.unused);
    }
    if let Some(sentence) = unsuccessful(totals) {
        return sentence;
    }
    let reuse = reuse(totals);
    if opened == 0 && totals.open_before > 0 && missing.is_none() {
        return format!("{reuse}. No connection was opened: the connections were open before");
    }
    if opened == 0 {
        let reason = missing.map_or_else(String::new, |reason| format!(": {reason}"));
        return format!("{reuse}. Connections were not observed{reason}");
    }
    if let (Some([least, most]), None) = (totals.needed_range(), &missing) {
        return format!(
            "{connections:#} opened where {least} to {most} would do: {}; {reuse}",
            totals.unobserved.spare_reason()
        );
    }
    if totals.avoidable == 0 {
        return match missing {
            Some(reason) if totals.reuse_range.is_none() && totals.reuse.is_none() => format!(
                "No avoidable connection was seen, but a part of the traffic was not observed: {reason}"
            ),
            Some(reason) => format!(
                "No avoidable connection was seen, but a part of the traffic was not observed: {reason}. Of what was observed, {reuse}"
            ),
            None if totals.reuse_range.is_some() || totals.reuse.is_none() => {
                format!("{connections:#} seen, and none was avoidable; {reuse}")
            }
            None if totals.open_before > 0 => format!(
                "{connections:#} opened next to {} that {} open before the recording, and none was avoidable; {reuse}",
                totals.open_before,
                if totals.open_before == 1 {
                    "was"
                } else {
                    "were"
                },
            ),
            None if has_evidence_of_no_gain(facts) => {
                format!("Nothing to gain from more reuse: {reuse}, and {connections:#} needed")
            }
            None => {
                format!("No connection was avoidable: {reuse}, and {connections:#} needed")
            }
        };
    }
    if totals.reuse_range.is_some() || totals.reuse.is_none() {
        return format!("{connections:#} seen where {needed} would do; {reuse}");
    }
    match (totals.wasted_share, totals.time_ms) {
        // the setup of connections that cannot be read is no part of the time of requests
        (Some(share), Some(_)) if totals.opaque > 0 && totals.wasted_ms.is_some() => format!(
            "{} of {whose} is setup of connections that were not needed. With those that cannot be read, {opened} were opened where {needed} would do, {} of setup; {reuse}",
            whole_percent(share),
            totals.wasted_ms.map_or_else(String::new, time)
        ),
        (Some(share), Some(all)) => format!(
            "{} of {whose} is setup of connections that were not needed: {opened} were opened where {needed} would do, {} lost; {reuse}",
            whole_percent(share),
            time(share * all)
        ),
        _ => format!("{connections:#} opened where {needed} would do; {reuse}"),
    }
}

/// Whether no request waited for anything that reuse, a larger pool or a live connection would have
/// spared.
pub(super) fn has_evidence_of_no_gain(facts: &ObservedFacts) -> bool {
    is_otherwise_without_gain(facts) && !may_have_queued(&facts.totals)
}

/// [`has_evidence_of_no_gain`], except for waiting in the client that cannot be seen.
fn is_otherwise_without_gain(facts: &ObservedFacts) -> bool {
    let totals = &facts.totals;
    let is_little = |share: Option<f64>| share.is_some_and(|share| share < NOTEWORTHY);
    totals.reused > 0
        && totals.lost_ms == Some(0.0)
        && is_little(totals.setup_wait_share)
        && is_little(totals.wasted_share.or(Some(0.0)))
        && failed_dials(totals).is_none()
        && totals.lookups.failed == 0
        && !has_queue(facts)
        && grave(facts, Severity::Warning).is_empty()
}

/// The most severe finding, if it is a warning or an error.
fn worst(facts: &ObservedFacts) -> Option<&Finding> {
    let findings = facts.findings.iter();
    let grave = findings.filter(|finding| finding.severity >= Severity::Warning);
    grave.min_by_key(|finding| Reverse(finding.severity))
}

/// The rules with a finding of at least this severity.
fn grave(facts: &ObservedFacts, least: Severity) -> Vec<&'static str> {
    let findings = facts.findings.iter();
    let grave = findings.filter(|finding| finding.severity >= least);
    let mut rules: Vec<&str> = grave.map(|finding| finding.rule).collect();
    rules.dedup();
    rules
}

/// Whether most requests followed a response so closely that they may have waited in the client for
/// a connection.
fn may_have_queued(totals: &Figures) -> bool {
    totals.back_to_back >= Some(REUSES) && totals.back_to_back_share > Some(0.5)
}

/// Whether a finding infers that requests waited for a connection of the pool.
fn has_queue(facts: &ObservedFacts) -> bool {
    let mut findings = facts.findings.iter();
    findings.any(|one| one.rule == "waiting-for-pool")
}

/// The waiting in the client that cannot be seen, where it alone keeps the page from an all-clear:
/// every loop of one request after the other looks like that.
fn hidden_queue(facts: &ObservedFacts) -> Option<String> {
    let totals = &facts.totals;
    let (reuses, share) = (totals.back_to_back?, totals.back_to_back_share?);
    let decides = totals.avoidable == 0
        && totals.unobserved.missing().is_none()
        && may_have_queued(totals)
        && is_otherwise_without_gain(facts);
    decides.then(|| {
        format!(
            "{} ({}) followed the last response on the connection within 5 ms. Whether they waited in the program for a free connection cannot be seen: compare with a larger pool",
            counted(reuses, "reuse"),
            whole_percent(share)
        )
    })
}

/// Requests that failed, where they or their time are more than a few percent.
fn failed_requests(totals: &Figures) -> Option<String> {
    let (failed, all) = (totals.requests.failures(), totals.requests.total);
    let is_noteworthy = |loss: &Loss| loss.share(totals) >= NOTEWORTHY;
    let time = match (totals.lost_ms, totals.outbound_ms, totals.lost_share) {
        (Some(lost), Some(outbound), Some(share)) if lost > 0.0 => format!(
            ": {} of {} waiting ({})",
            time(lost),
            time(outbound),
            whole_percent(share)
        ),
        _ => String::new(),
    };
    let is_worth_it = [Loss::Time, Loss::Requests].iter().any(is_noteworthy);
    (failed > 0 && is_worth_it).then(|| {
        let requests = counted(all, "request");
        let kinds = kinds(&totals.requests.failed);
        let failed = count(failed);
        format!("{failed} of {requests} got no complete response ({kinds}){time}")
    })
}

/// The setup of needed connections, where it is more than a few percent of the time of requests.
fn needed_setup(totals: &Figures) -> Option<String> {
    let (needed, all) = (totals.needed_setup_ms?, totals.outbound_ms?);
    let is_worth_it = needed >= NOTEWORTHY * all && all > 0.0;
    is_worth_it.then(|| {
        format!(
            "{} of {} ({}) was setup of needed connections that requests waited for. Only two things remove it: open them before the requests, or send several requests at the same time on each (HTTP/2)",
            time(needed),
            time(all),
            whole_percent(needed / all)
        )
    })
}

/// Dials that failed, where they are more than a few among all.
fn failed_dials(totals: &Figures) -> Option<String> {
    let failures = &totals.connections.failed;
    let failed: u64 = failures.values().sum();
    let is_many = failed as f64 >= NOTEWORTHY * (failed + totals.connections.opened) as f64;
    (failed > 0 && is_many)
        .then(|| format!("{} failed ({})", counted(failed, "dial"), kinds(failures)))
}

/// Lookups that failed, where they are more than a few among all, or concern a name that was found
/// at other times (`sporadic`).
fn failed_lookups(totals: &Figures, sporadic: u64) -> Option<String> {
    let lookups = &totals.lookups;
    let is_many = lookups.failed as f64 >= NOTEWORTHY * lookups.total as f64;
    let is_worth_it = lookups.failed > 0 && (is_many || sporadic > 0);
    is_worth_it.then(|| {
        let mut sentence = format!(
            "{} of {} failed ({})",
            lookups.failed,
            counted(lookups.total, "lookup"),
            kinds(&lookups.errors)
        );
        if sporadic > 0 {
            let them = if sporadic == lookups.failed {
                "their names".to_owned()
            } else {
                format!("the names of {sporadic}")
            };
            sentence += &format!(
                ", and {them} were found at other times. A request on a reused connection needs no lookup"
            );
        }
        sentence
    })
}

/// The sentence for a run without connections and requests. The results of `unseen` lookups were
/// not seen.
fn nothing(facts: &ObservedFacts, unseen: u64, missing: Option<String>) -> String {
    let totals = &facts.totals;
    let elsewhere = facts
        .caveats
        .iter()
        .filter(|one| [Caveat::UNIX_SOCKETS, Caveat::UDP].contains(&&*one.id));
    let elsewhere = elsewhere.map(|one| &*one.message).collect::<Vec<_>>();
    let elsewhere = elsewhere.join("; ");
    let failures = &totals.connections.failed;
    let lookups = &totals.lookups;
    match (failures.values().sum(), missing) {
        (0, _) if lookups.failed > 0 => {
            let (failed, kinds) = (counted(lookups.failed, "lookup"), kinds(&lookups.errors));
            match &*elsewhere {
                "" => format!("No connection could be opened: {failed} failed ({kinds})"),
                _ => {
                    format!("No TCP connection was opened: {failed} failed ({kinds}); {elsewhere}")
                }
            }
        }
        (0, Some(reason)) => format!("Nothing was observed: {reason}"),
        (0, None) if unseen > 0 => {
            let results = counted(unseen, "lookup");
            format!("No connection was opened. What {results} found was not seen")
        }
        (0, None) => match &*elsewhere {
            "" => "No connection was opened, so nothing was measured".to_owned(),
            _ => format!("No TCP connection was opened; {elsewhere}"),
        },
        (failed, _) => {
            let attempts = counted(failed, "attempt");
            let kinds = kinds(failures);
            format!("No connection could be opened: {attempts} failed ({kinds})")
        }
    }
}

/// The sentence for connections without a request that was seen, of which `refused` failed in TLS
/// and `unused` carried nothing.
fn without_request(totals: &Figures, refused: u64, unused: u64) -> String {
    let opened = totals.connections.opened;
    if opened == 0 {
        let before = totals.open_before;
        let (were, they) = if before == 1 {
            ("was", "it")
        } else {
            ("were", "they")
        };
        let connections = connections(before);
        return format!(
            "No connection was opened; {connections} {were} open before the recording, and what {they} carried cannot be seen"
        );
    }
    let connections = connections(opened);
    if refused == opened {
        let kinds = kinds(&totals.connections.failed);
        return format!("No request was sent: the TLS handshake of {connections} failed ({kinds})");
    }
    if unused == opened {
        return format!("{connections:#} opened and carried nothing: there is no request to judge");
    }
    let they = if opened == 1 { "it" } else { "they" };
    format!("{connections:#} opened; what {they} carried cannot be seen, so neither can reuse")
}

/// How many requests reused a connection.
fn reuse(totals: &Figures) -> String {
    let requests = totals.requests.total;
    let about = if totals.inferred.is_empty() { "" } else { "~" };
    match (totals.reuse_range, totals.reuse) {
        (Some([low, high]), _) => format!(
            "{about}{} to {} of {about}{} reused a connection",
            whole_percent(low),
            whole_percent(high),
            counted(requests, "request")
        ),
        (None, Some(reuse)) => format!(
            "{about}{} of {about}{} reused a connection",
            whole_percent(reuse),
            counted(requests, "request")
        ),
        (None, None) => {
            format!(
                "{about}{}; whether a connection was reused cannot be seen",
                counted(requests, "request")
            )
        }
    }
}

/// The sentence for a run in which no response was a success: its reuse is that of error responses.
fn unsuccessful(totals: &Figures) -> Option<String> {
    let requests = &totals.requests;
    if requests.ok == 0 {
        let failed = counted(requests.failures(), "request");
        let kinds = kinds(&requests.failed);
        return Some(format!(
            "No request got a complete response: {failed} failed ({kinds})"
        ));
    }
    let errors = ErrorResponses::among(&requests.status, None);
    errors.is_all().then(|| {
        format!(
            "Every response was {} ({} of {}): error responses do not show what reuse would gain",
            errors.names(),
            errors.count(),
            errors.count()
        )
    })
}

/// Failures by kind: `refused 3, timeout 2`.
fn kinds(failed: &BTreeMap<&'static str, u64>) -> Value {
    counts(failed.iter().map(|(kind, &count)| (kind, count)))
}
