//! The first sentences of a page: what the waste is, where most of it goes, what could not be seen.

use super::distributions::server_limit;
use super::facts::{Destination, ObservedFacts};
use super::figures::Figures;
use super::lookups::LookupCounts;
use super::loss::{Loss, NOTEWORTHY};
use super::next_steps::program_at;
use super::open_connection::UPGRADE;
use super::open_reason::OpenReason;
use super::tracker::{Judged, Tracker};
use intact_document::error_responses::ErrorResponses;
use intact_document::finding::{Finding, Severity};
use intact_document::statement::{Value, connections, counts, timer_nanos};
use intact_document::{Claim, ClaimKind, Claims};
use intact_ledger::{
    Caveat, Evidence, Failure, Handshake, Producer, SetupPhase, TlsVersion, Vantage,
};
use intact_units::number::{count, time, whole_percent};
use intact_units::plural::{self, counted};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Reuses right after a response from which on requests may have waited for a connection.
const REUSES: u64 = 5;

/// What an observer found out, in sentences.
pub(super) fn claims(tracker: &Tracker, judged: &Judged, facts: &ObservedFacts) -> Claims {
    let totals = &facts.totals;
    let counted = &totals.counted;
    if counted.connections.opened + totals.open_before == 0 && counted.requests.total == 0 {
        return Claims::ranked([nothing(facts, &tracker.lookups)]);
    }
    let all = &tracker.destinations.all;
    let mut claims: Vec<Claim> = failed_lookups(totals, &tracker.lookups)
        .into_iter()
        .chain(error_responses(totals))
        .collect();
    if counted.requests.total == 0 {
        claims.push(without_request(totals, all.unusable, all.unused));
        let (failed, _) = counted.connections.dials();
        if all.unusable < counted.connections.opened || failed > all.unusable {
            claims.extend(failed_dials(totals));
        }
        return Claims::ranked(claims);
    }
    if let Some(claim) = unsuccessful(totals) {
        claims.push(claim);
    } else {
        claims.push(main(tracker, judged, facts));
        claims.extend(partly_seen(totals));
    }
    if counted.requests.begun() > 0 {
        claims.extend(failed_requests(totals));
        claims.extend(undecided_requests(totals));
        claims.extend(left_streams(totals));
        let is_near = facts.is_near(tracker.run());
        claims.extend(needed_setup(tracker, judged, totals).filter(|_| !is_near));
        // what would wait for a connection that a service accepted is another program
        let is_accepting = tracker.run().producer == Producer::Watch && all.pids.is_empty();
        if !is_accepting {
            claims.extend(hidden_queue(facts));
        }
        claims.extend(failed_dials(totals));
    }
    claims.extend(largest_part(facts));
    claims.extend(warned(facts));
    Claims::ranked(claims)
}

/// The requests that ran at the same time, where the client grew to many more connections than
/// that: the second one of Node's `fetch`, or threads that hold theirs.
fn spares(tracker: &Tracker, judged: &Judged, opened: u64) -> Option<Value> {
    let [counts] = &tracker.destinations.counts[..] else {
        return None;
    };
    let peak = counts.single.peak();
    let has_spares = judged.causes.grown(0) == opened && 2 * opened >= 3 * peak;
    has_spares.then_some(Value::Count(peak, "request"))
}

/// What the connections that were opened cost, or that they cost nothing.
fn main(tracker: &Tracker, judged: &Judged, facts: &ObservedFacts) -> Claim {
    let totals = &facts.totals;
    let counted = &totals.counted;
    let missing = counted.unobserved.missing();
    let opened = counted.connections.opened;
    let (seen, needed) = (
        &totals.traffic.connections.opened,
        &totals.traffic.connections.needed,
    );
    let is_client = tracker.run().vantage == Vantage::Client;
    let whose = if tracker.destinations.all.pids.is_empty() && !is_client {
        "the time of these requests"
    } else {
        "the program's outbound time"
    };
    let connections = match seen.is_known() {
        true => format!("{:#}", connections(opened)),
        false => format!("{seen} {} were", plural::of(opened, "connection")),
    };
    let reuse = reuse(totals);
    let claim = |kind: ClaimKind, text: String| Claim::new(kind, 0.0, text);
    if opened == 0 && totals.open_before > 0 && missing.is_none() {
        let why = "No connection was seen to open: the connections were open before the recording";
        return claim(ClaimKind::Well, format!("{reuse}. {why}"));
    }
    if opened == 0 {
        let reason = missing.map_or_else(String::new, |reason| format!(": {reason}"));
        let text = format!("{reuse}. Connections were not observed{reason}");
        return claim(ClaimKind::Unseen, text);
    }
    let perhaps = counted.unobserved.perhaps_by_server;
    let hides_ends = counted.unobserved.lacks(Evidence::Ends);
    let is_open = counted.avoidable == 0 && perhaps > 0 && !hides_ends;
    if (counted.unobserved.spare > 0 || is_open) && missing.is_none() {
        let text = format!(
            "{connections} opened where {needed} would do: {}; {reuse}",
            counted.unobserved.spare_reason()
        );
        return claim(ClaimKind::Opened, text);
    }
    let is_partly = !totals.traffic.reuse.is_known();
    let upgraded = counted.requests.status.get(&UPGRADE).copied();
    if let (0, Some(upgraded), None) = (counted.avoidable, upgraded, &missing) {
        let text = format!(
            "{connections} opened, of which {} changed to another protocol (status {UPGRADE}), such as WebSocket: such a connection serves its user alone until it closes. Whether it had to be opened again cannot be seen; no other connection was avoidable",
            count(upgraded)
        );
        return claim(ClaimKind::Well, text);
    }
    let kept = if_kept(tracker, judged).filter(|_| counted.connections.by_server > 0);
    if counted.avoidable == 0 && kept.is_none() {
        return match missing {
            Some(reason) if totals.traffic.reuse.is_unknown() => claim(
                ClaimKind::Unseen,
                format!(
                    "No avoidable connection was seen, but a part of the traffic was not observed: {reason}"
                ),
            ),
            Some(reason) => claim(
                ClaimKind::Unseen,
                format!(
                    "No avoidable connection was seen, but a part of the traffic was not observed: {reason}. Of what was observed, {reuse}"
                ),
            ),
            None if is_partly => claim(
                ClaimKind::Well,
                format!("{connections} seen, and none was avoidable; {reuse}"),
            ),
            None if totals.open_before > 0 => claim(
                ClaimKind::Well,
                format!(
                    "{connections} opened next to {} that {} open before the recording, and none of those that were seen to open was avoidable; {reuse}",
                    totals.open_before,
                    if totals.open_before == 1 {
                        "was"
                    } else {
                        "were"
                    },
                ),
            ),
            None if !grave(facts, Severity::Error).is_empty() => claim(
                ClaimKind::Well,
                format!("{reuse}, and {connections} needed"),
            ),
            None => claim(
                ClaimKind::Well,
                match spares(tracker, judged, opened) {
                    None => {
                        format!("No connection was avoidable: {reuse}, and {connections} needed")
                    }
                    Some(peak) => format!(
                        "No connection was avoidable: {reuse}. {connections} opened for at most {peak} at a time: the client opens spares, or has connections in hand before it sends"
                    ),
                },
            ),
        };
    }
    if is_partly && counted.inferred.is_empty() {
        let text = format!("{connections} seen where {needed} would do; {reuse}");
        return claim(ClaimKind::Opened, text);
    }
    let would_do = match &kept {
        None => format!("{needed} would do"),
        Some(kept) => {
            let least = count(counted.connections.least());
            let theirs = format!("{least} would do if {kept}");
            match counted.avoidable {
                0 => theirs,
                _ => format!("{needed} would do, and {theirs}"),
            }
        }
    };
    // the setup of connections that cannot be read is no part of the time of requests
    let (with_opaque, lost_ms) = match totals.opaque {
        0 => ("", None),
        _ => (" (including those that cannot be read)", counted.wasted_ms),
    };
    let fact = format!("{connections} opened where {would_do}{with_opaque}; {reuse}");
    let (Some(share), Some(all)) = (totals.counted_wasted_share(), totals.time_ms) else {
        return claim(ClaimKind::Opened, fact);
    };
    let why = match counted.avoidable {
        0 if hides_ends => ", by the client or because the server ended others",
        0 => ", because the server ended connections",
        _ => "",
    };
    let lost = time(lost_ms.unwrap_or(share * all));
    // where a round trip takes no time, what setups cost is no argument
    if facts.is_near(tracker.run()) {
        let far = time(counted.spared() as f64 * round_trips(tracker) * FAR_MS);
        let option = match (&tracker.run().producer, program_at(tracker.run())) {
            (Producer::Watch, Some(_)) => " (`--rtt 30ms`)",
            _ => "",
        };
        let text = format!(
            "{fact}. Setting up the avoidable ones took {lost} on this machine{why}; at a round trip of {FAR_MS} ms it would take about {far}{option}"
        );
        return claim(ClaimKind::Opened, text);
    }
    let text = format!(
        "{fact}. Setting up the avoidable ones took {lost}{why}: {} of {whose}",
        whole_percent(share)
    );
    Claim::new(ClaimKind::Time, share, text)
}

/// A round trip between regions, in milliseconds: that of `--rtt` in the next steps.
const FAR_MS: f64 = 30.0;

/// Round trips that the setup of a connection takes on average: one for TCP (RFC 9293), one for TLS
/// 1.3 (RFC 8446), two for a full handshake of TLS 1.2 (RFC 5246).
fn round_trips(tracker: &Tracker) -> f64 {
    let all = &tracker.destinations.all;
    let of_tls = |(kind, count): (&(Option<TlsVersion>, Option<Handshake>), &u64)| match kind {
        (Some(TlsVersion::Tls13) | None, _) => *count,
        (_, Some(Handshake::Full)) => 2 * count,
        _ => *count,
    };
    let of_tls: u64 = all.tls.iter().map(of_tls).sum();
    1.0 + of_tls as f64 / all.opened.max(1) as f64
}

/// What the server would have to do so that fewer connections are needed: at the destination where
/// that spares most.
fn if_kept(tracker: &Tracker, judged: &Judged) -> Option<String> {
    let needs = judged.needs.iter().enumerate();
    let (at, need) = needs.max_by_key(|(at, need)| (need.by_server_at_most(), Reverse(*at)))?;
    let reasons = judged.causes.reasons(at);
    let reasons = reasons.filter(|(why, _)| why.is_of_server());
    let Some((why, _)) = reasons.max_by_key(|(_, openings)| *openings) else {
        return (need.unseen > 0).then(|| "the server ended none".to_owned());
    };
    Some(match why {
        OpenReason::ServerIdle | OpenReason::PauseTooLong | OpenReason::Stale => {
            let limit = server_limit(&tracker.destinations.counts[at]);
            let than =
                limit.map_or_else(String::new, |limit| format!(" than {}", timer_nanos(limit)));
            format!("the server kept idle connections longer{than}")
        }
        OpenReason::ServerLimit => "the server kept connections longer".to_owned(),
        OpenReason::Broken | OpenReason::ExcessBytes => {
            "the server did not break connections".to_owned()
        }
        _ => "the server kept connections".to_owned(),
    })
}

/// That a part of the traffic is missing, where something is lost all the same.
fn partly_seen(totals: &Figures) -> Option<Claim> {
    let counted = &totals.counted;
    let reason = counted.unobserved.missing()?;
    let is_said = counted.avoidable == 0 || counted.connections.opened == 0;
    let text = format!("A part of the traffic was not observed: {reason}");
    (!is_said).then(|| Claim::new(ClaimKind::Note, 0.0, text))
}

/// The destination to which most of the avoidable connections belong.
fn largest_part(facts: &ObservedFacts) -> Option<Claim> {
    let totals = &facts.totals.counted;
    let by_count = |one: &&Destination| one.figures.counted.spared();
    let largest = facts.destinations.iter().max_by_key(by_count)?;
    let counted = &largest.figures.counted;
    let is_said = facts.destinations.len() > 1
        && totals.unobserved.spare == 0
        && 2 * counted.spared() > totals.spared();
    let cost = counted.wasted_ms;
    let cost = cost.map_or(String::new(), |wasted| {
        format!(", {} of setup", time(wasted))
    });
    is_said.then(|| {
        let connections = &largest.figures.traffic.connections;
        let would_do = match counted.connections.by_server {
            0 => format!("{} would do", connections.needed),
            _ => format!(
                "{} would do if the server kept connections",
                count(counted.connections.least())
            ),
        };
        let text = format!(
            "Most of the avoidable connections belong to {}: {} where {would_do}{cost}",
            largest.origin, connections.opened,
        );
        Claim::new(ClaimKind::Where, 0.0, text)
    })
}

/// What the findings warn of in addition.
fn warned(facts: &ObservedFacts) -> Vec<Claim> {
    let counted = &facts.totals.counted;
    let hides_ends = counted.unobserved.lacks(Evidence::Ends);
    if counted.avoidable > 0 || hides_ends && counted.spared() > 0 {
        let broken = grave(facts, Severity::Error);
        let text = format!(
            "In addition to the cost, something breaks: {}",
            broken.join(", ")
        );
        let claim = Claim::new(ClaimKind::Warned, 0.0, text);
        return Vec::from_iter((!broken.is_empty()).then_some(claim));
    }
    let Some(worst) = worst(facts) else {
        return Vec::new();
    };
    // what is bad comes first, that no connection was avoidable comes after it
    let kind = match worst.severity {
        Severity::Error => ClaimKind::Failed,
        _ => ClaimKind::Warned,
    };
    let text = format!("{} ({})", worst.claim, worst.rule);
    let mut claims = vec![Claim::new(kind, 0.0, text)];
    let mut others = grave(facts, Severity::Warning);
    others.retain(|rule| *rule != worst.rule);
    if !others.is_empty() {
        let text = format!("Further warnings: {}", others.join(", "));
        claims.push(Claim::new(ClaimKind::Note, 0.0, text));
    }
    claims
}

/// Responses with an error status, where not all of them have one.
fn error_responses(totals: &Figures) -> Option<Claim> {
    let errors = ErrorResponses::among(&totals.counted.requests.status, None);
    let share = errors.count() as f64 / totals.counted.requests.ok.max(1) as f64;
    let kind = match errors.are_challenges() {
        true => ClaimKind::Note,
        false => ClaimKind::Errors,
    };
    errors.share().map(|said| Claim::new(kind, share, said))
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
    totals.counted.reused > 0
        && totals.lost_ms == Some(0.0)
        && is_little(totals.setup_wait_share)
        && is_little(totals.counted_wasted_share().or(Some(0.0)))
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
fn hidden_queue(facts: &ObservedFacts) -> Option<Claim> {
    let totals = &facts.totals;
    let decides = totals.counted.avoidable == 0
        && totals.counted.unobserved.missing().is_none()
        && may_have_queued(totals)
        && is_otherwise_without_gain(facts);
    decides.then(|| {
        let text = "Whether requests waited in the program for a free connection cannot be seen: compare with a larger pool";
        Claim::new(ClaimKind::Note, 0.0, text.to_owned())
    })
}

/// Requests that failed: a single one is what the caller saw, however little it cost.
fn failed_requests(totals: &Figures) -> Option<Claim> {
    let requests = &totals.counted.requests;
    let (failed, all) = (requests.lost(), requests.total);
    let time = match (totals.lost_ms, totals.outbound_ms, totals.lost_share) {
        (Some(lost), Some(outbound), Some(share)) if share >= NOTEWORTHY => format!(
            ": {} of {} waiting ({})",
            time(lost),
            time(outbound),
            whole_percent(share)
        ),
        _ => String::new(),
    };
    (failed > 0).then(|| {
        let mut kinds_of = requests.failed.clone();
        let left = kinds_of.entry(Failure::ClientClosed.id()).or_default();
        *left -= requests.left.min(*left);
        kinds_of.retain(|_, count| *count > 0);
        let kinds = kinds(&kinds_of);
        let of_all = counted(all, "request");
        let text = format!(
            "{} of {of_all} got no complete response ({kinds}){time}",
            count(failed)
        );
        let share = Loss::Requests.share(totals).max(Loss::Time.share(totals));
        Claim::new(ClaimKind::Failed, share, text)
    })
}

/// Requests of which the recording does not show the outcome, where they are more than a few
/// percent.
fn undecided_requests(totals: &Figures) -> Option<Claim> {
    let requests = &totals.counted.requests;
    let undecided = requests.undecided.count();
    let share = undecided as f64 / requests.total.max(1) as f64;
    (share >= NOTEWORTHY).then(|| {
        let of_all = counted(requests.total, "request");
        let text = format!(
            "{} of {of_all} had no complete response in the recording: whether they failed is unknown",
            count(undecided)
        );
        Claim::new(ClaimKind::Unseen, share, text)
    })
}

/// Responses that the client ended: the server had answered, and what the
/// client wanted of them may have been complete.
fn left_streams(totals: &Figures) -> Option<Claim> {
    let requests = &totals.counted.requests;
    (requests.left > 0).then(|| {
        let text = format!(
            "{} of {} had a response that the client left before its end (`client-closed`): it may have had what it wanted",
            count(requests.left),
            counted(requests.total, "request")
        );
        Claim::new(ClaimKind::Note, 0.0, text)
    })
}

/// The setup of needed connections, where it is more than a few percent of the time of requests.
fn needed_setup(tracker: &Tracker, judged: &Judged, totals: &Figures) -> Option<Claim> {
    let (needed, all) = (totals.needed_setup_ms?, totals.outbound_ms?);
    let is_worth_it = needed >= NOTEWORTHY * all && all > 0.0;
    is_worth_it.then(|| {
        // one connection with streams takes the place of several
        let mut each = judged.needs.iter().zip(&tracker.destinations.counts);
        let would_share = each.any(|(need, counts)| {
            need.all() > 1 && !counts.protocols.keys().any(|one| one.has_streams())
        });
        let also = match would_share {
            true => ", or send several requests at the same time on each (HTTP/2)",
            false => "",
        };
        let text = format!(
            "Requests waited {} of {} ({}) for the setup of connections that were needed. To avoid that, open them before the requests{also}",
            time(needed),
            time(all),
            whole_percent(needed / all)
        );
        // after what reuse removes
        Claim::new(ClaimKind::Where, needed / all, text)
    })
}

/// Dials that failed, where they are more than a few among all.
fn failed_dials(totals: &Figures) -> Option<Claim> {
    let connections = &totals.counted.connections;
    let (failed, all) = connections.dials();
    let share = failed as f64 / all.max(1) as f64;
    (failed > 0 && share >= NOTEWORTHY).then(|| {
        let (failed, dials) = (count(failed), counted(all, "connection attempt"));
        let text = format!(
            "{failed} of {dials} failed ({})",
            kinds(&connections.failed)
        );
        Claim::new(ClaimKind::Failed, share, text)
    })
}

/// Lookups that failed, where they are more than a few among all, or concern a name that was found
/// at other times (`sporadic`).
fn failed_lookups(totals: &Figures, counts: &LookupCounts) -> Option<Claim> {
    let (lookups, sporadic) = (&totals.lookups, counts.sporadic());
    let share = lookups.failed as f64 / lookups.seen.max(1) as f64;
    let is_worth_it = lookups.failed > 0 && (share >= NOTEWORTHY || sporadic > 0);
    is_worth_it.then(|| {
        let mut sentence = format!(
            "{} of {} failed ({}{})",
            lookups.failed,
            counted(lookups.seen, "lookup"),
            kinds(&lookups.errors),
            of_names(counts)
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
        Claim::new(ClaimKind::Failed, share, sentence)
    })
}

/// `: db.internal and 2 other names`.
fn of_names(counts: &LookupCounts) -> String {
    let names = counts.never_found();
    names.map_or_else(String::new, |names| format!(": {names}"))
}

/// The sentence for a run without connections and requests.
fn nothing(facts: &ObservedFacts, counts: &LookupCounts) -> Claim {
    let unseen = counts.all.without_result;
    let totals = &facts.totals;
    let missing = totals.counted.unobserved.missing();
    let elsewhere = facts
        .caveats
        .iter()
        .filter(|one| [Caveat::UNIX_SOCKETS, Caveat::UDP].contains(&&*one.id));
    let elsewhere = elsewhere.map(|one| &*one.message).collect::<Vec<_>>();
    let elsewhere = elsewhere.join("; ");
    let failures = &totals.counted.connections.failed;
    let lookups = &totals.lookups;
    let failed: u64 = failures.values().sum();
    let kind = match failed + lookups.failed {
        0 => ClaimKind::Unseen,
        _ => ClaimKind::Failed,
    };
    let text = match (failed, missing) {
        (0, _) if lookups.failed > 0 => {
            let failed = counted(lookups.failed, "lookup");
            let kinds = format!("{}{}", kinds(&lookups.errors), of_names(counts));
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
            let only = failures.keys().next().filter(|_| failures.len() == 1);
            match only.and_then(|kind| kind.parse::<Failure>().ok()) {
                Some(kind) => {
                    let why = kind.words();
                    format!("No connection could be opened: {attempts} failed, because {why}")
                }
                None => {
                    let kinds = kinds(failures);
                    format!("No connection could be opened: {attempts} failed ({kinds})")
                }
            }
        }
    };
    Claim::new(kind, 1.0, text)
}

/// The sentence for connections without a request that was seen, of which `refused` failed in TLS
/// and `unused` carried nothing.
fn without_request(totals: &Figures, refused: u64, unused: u64) -> Claim {
    let opened = totals.counted.connections.opened;
    if opened == 0 {
        let before = totals.open_before;
        let (were, they) = if before == 1 {
            ("was", "it")
        } else {
            ("were", "they")
        };
        let connections = connections(before);
        let text = format!(
            "No connection was seen to open; {connections} {were} open before the recording, and what {they} carried cannot be seen"
        );
        return Claim::new(ClaimKind::Unseen, 0.0, text);
    }
    let connections = connections(opened);
    if refused == opened {
        // others failed before
        let is_of_tls = |kind: &Failure| kind.setup_phase() == Some(SetupPhase::Ssl);
        let mut kinds = totals.counted.connections.failed.clone();
        kinds.retain(|kind, _| kind.parse().is_ok_and(|kind| is_of_tls(&kind)));
        let kinds = self::kinds(&kinds);
        let text =
            format!("No request was sent: the TLS handshake of {connections} failed ({kinds})");
        return Claim::new(ClaimKind::Failed, 1.0, text);
    }
    if unused == opened {
        let text =
            format!("{connections:#} opened and carried nothing: there is no request to judge");
        return Claim::new(ClaimKind::Unseen, 0.0, text);
    }
    if unused > 0 {
        let unused = count(unused);
        let text = format!(
            "{connections:#} opened: {unused} carried nothing, and what the others carried cannot be seen, so neither can reuse"
        );
        return Claim::new(ClaimKind::Unseen, 0.0, text);
    }
    let they = if opened == 1 { "it" } else { "they" };
    let text =
        format!("{connections:#} opened; what {they} carried cannot be seen, so neither can reuse");
    Claim::new(ClaimKind::Unseen, 0.0, text)
}

/// How many requests reused a connection.
fn reuse(totals: &Figures) -> String {
    let counted = &totals.counted;
    let unobserved = &counted.unobserved;
    let is_bound = unobserved.guessed == 0 && unobserved.opaque > 0;
    let about = match counted.inferred.is_empty() || is_bound {
        true => "",
        false => "~",
    };
    let mut requests = plural::counted(counted.requests.total, "request");
    // what was not seen is in no share
    if is_bound {
        requests += " that can be read";
    } else if !totals.traffic.requests.total.is_known() && counted.inferred.is_empty() {
        requests += " that were seen";
    }
    let known = counted.reuse_known;
    match (counted.reuse, counted.requests.total.saturating_sub(known)) {
        (None, _) => {
            format!("{about}{requests}; whether a connection was reused cannot be seen")
        }
        (Some(reuse), 0) => format!(
            "{about}{} of {about}{requests} reused a connection",
            whole_percent(reuse)
        ),
        (Some(_), unknown) => {
            let share = |count: u64| count as f64 / counted.requests.total as f64;
            format!(
                "{about}{} to {} of {about}{requests} reused a connection",
                whole_percent(share(counted.reused)),
                whole_percent(share(counted.reused + unknown))
            )
        }
    }
}

/// The sentence for a run in which no response was a success: its reuse is that of error responses.
fn unsuccessful(totals: &Figures) -> Option<Claim> {
    let requests = &totals.counted.requests;
    if requests.begun() == 0 && requests.failures() == 0 {
        let all = plural::of(requests.total, "request");
        let text = match requests.undecided.unknown {
            0 => format!("No {all} had a complete response when the recording ended"),
            _ => format!("The outcome of no {all} is known: the recording lacks their responses"),
        };
        return Some(Claim::new(ClaimKind::Failed, 1.0, text));
    }
    if requests.begun() == 0 {
        let failed = counted(requests.failures(), "request");
        let kinds = kinds(&requests.failed);
        let text = match requests.undecided.unknown {
            0 => format!("No request got a complete response: {failed} failed ({kinds})"),
            unknown => format!(
                "{failed} failed ({kinds}); the outcome of the other {} is not known",
                count(unknown)
            ),
        };
        return Some(Claim::new(ClaimKind::Failed, 1.0, text));
    }
    requests.only_errors().map(|errors| {
        let text = format!(
            "Every response was {} ({} of {}): error responses do not show what reuse would gain",
            errors.names(),
            count(errors.count()),
            count(errors.count())
        );
        Claim::new(ClaimKind::Failed, 1.0, text)
    })
}

/// Failures by kind: `refused 3, timeout 2`.
fn kinds(failed: &BTreeMap<&'static str, u64>) -> Value {
    counts(failed.iter().map(|(kind, &count)| (kind, count)))
}
