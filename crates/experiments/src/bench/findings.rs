//! The findings of a bench, next to its comparisons, and the caveats of its figures.

use super::RULES;
use super::variant::{NOT_MODIFIED, VariantFacts, no_success};
use intact_advice::{ServerLimit, server_line};
use intact_document::error_responses::{ErrorResponses, ONLY_ERRORS};
use intact_document::failure_remedy::{BODY_LENGTH, failure_remedy, failure_words};
use intact_document::figures::{TrafficCounts, add_counts};
use intact_document::finding::{Finding, Severity};
use intact_document::reuse_delay::{Arrivals, FIX, ReuseDelay};
use intact_document::statement::{
    Statement, Value, connections, counts, nanos, requests, statement,
};
use intact_document::{Claim, ClaimKind};
use intact_ledger::{Cell, EndedBy, Exchange, Failure, Protocol, Reuse, Run, Tally};
use intact_traffic::rules::{OF_ERRORS, WHY_RESET, are_rare};
use intact_units::number::{count, whole_percent};
use intact_units::plural::counted;
use std::collections::BTreeMap;

/// Requests on a connection, on average, below which the server keeps none.
const ONE_REQUEST: f64 = 1.5;
/// Connections that ended after the same number of requests, from which on that is no chance.
const REGULAR: u64 = 5;
/// The remedy where the server keeps no connection.
const SWITCH_ON: &str = "let the server, and a proxy in front of it, keep connections";
/// The remedy where the server ends connections in order.
const REQUEST_LIMIT: &str = "raise the server's limit of requests per connection";

/// The remedy where the connections carried very different numbers of requests.
const NO_REQUEST_LIMIT: &str = "look for restarts, for an idle limit below the pauses of this run, or for a maximum age at the server";

/// The remedy where each request comes after a pause.
const IDLE_LIMIT: &str = "compare with a run without --idle: if the server keeps connections there, its idle limit is shorter than the pause";

/// The remedy where other connections lived longer.
const SINGLE_CLOSES: &str = "look for a restart, a limit of time or of memory at the server at that moment, and have the client retry requests that are safe to repeat";

pub(super) fn findings(variants: &[VariantFacts], run: &Run, tally: &Tally) -> Vec<Finding> {
    let mut found = slower_when_reused(variants, tally);
    for variant in variants {
        found.extend(server_closes_early(variant));
        found.extend(bytes_after_response(variant));
        found.extend(failures(variant));
        found.extend(statuses(variant, run));
        found.extend(ports(variant, run));
    }
    debug_assert!(
        found.iter().all(|one| RULES.contains(&one.rule)),
        "a finding is missing in RULES"
    );
    found
}

/// Responses on kept connections that come later than those on new ones: of the warm-up, and of the
/// same variant without keep-alive.
fn slower_when_reused(variants: &[VariantFacts], tally: &Tally) -> Vec<Finding> {
    let group = |index: usize, reuse: Reuse| {
        let mut sum = Cell::new(None, None);
        let cells = tally.of_variant(index as u32);
        cells.for_each(|cell| sum.merge(cell));
        sum.merged(|key| key.outcome.is_ok() && key.reuse == Some(reuse))
    };
    let found = variants.iter().enumerate().filter_map(|(index, variant)| {
        let reused = group(index, Reuse::Reused)?;
        let same = variants.iter().enumerate().filter(|(other, one)| {
            *other == index || (!one.keepalive && one.differs_in_keepalive(variant))
        });
        let mut fresh = same.filter_map(|(other, _)| group(other, Reuse::Fresh));
        let mut all = fresh.next()?;
        fresh.for_each(|one| all.merge(&one));
        let arrivals = match variant.concurrency * variant.streams {
            _ if variant.open_loop.is_some() => Arrivals::Scheduled,
            0 | 1 => Arrivals::OneByOne,
            _ => Arrivals::Several,
        };
        let delay = ReuseDelay::of_groups(&all, &reused, arrivals)?;
        let (name, claim) = (variant.name.clone(), delay.claim());
        let found = Finding::new("slower-when-reused", Severity::Warning, name, claim);
        Some(found.evidence(delay.evidence()).fix(FIX))
    });
    found.collect()
}

/// The server ended connections that we wanted to keep.
fn server_closes_early(variant: &VariantFacts) -> Option<Finding> {
    // how connections end after error pages says little of how they end after others
    if !variant.keepalive || variant.no_success.is_some() {
        return None;
    }
    let counted = &variant.counted.connections;
    let announced = counted.ended(EndedBy::ServerAnnounced);
    let resets = counted.ended(EndedBy::ServerReset);
    let silent = counted.ended(EndedBy::Server) + resets;
    let closed = announced + silent;
    if closed == 0 {
        return None;
    }
    let after = variant.server_closed_after?;
    // a limit ends connections with FIN, or is announced
    let are_resets = resets * 2 > closed;
    let manner = match (announced, silent) {
        _ if are_resets => statement!(
            "{resets} of them by a reset",
            resets = Value::Number(resets)
        ),
        (_, 0) => "announced with `Connection: close` or GOAWAY".into(),
        (0, _) => "without an announcement".into(),
        _ => statement!(
            "{announced} of them announced",
            announced = Value::Number(announced)
        ),
    };
    let ended = statement!(
        "the server ended {ended} of {opened}",
        ended = Value::Number(closed),
        opened = connections(counted.opened)
    );
    let needed = statement!("{least} would do", least = Value::Number(counted.least()));
    let (cost_ms, cost_share) = cost_in_vain(variant);
    let carried = requests(after.round() as u64);
    let between = variant.server_closed_between;
    // requests under way at a GOAWAY come on top of a limit
    let different = between.filter(|(least, most)| {
        after >= ONE_REQUEST && most.saturating_sub(*least) > (least / 2).max(2)
    });
    let is_limit = ends_at_a_limit(variant, closed);
    let within = variant.ended_within_exchange;
    let of_errors = variant.ended_with_errors + if is_limit { 0 } else { within };
    let are_errors = of_errors * 2 > closed;
    let pause = variant.pause.filter(|_| after < ONE_REQUEST);
    let beyond = variant.carried_beyond_closes;
    let (severity, claim, fix) = match (pause, beyond, different) {
        _ if are_errors => (
            Severity::Warning,
            statement!(
                "the server ended {of_errors} of {closed} with an error or within a response: no limit explains that",
                of_errors = Value::Number(of_errors),
                closed = connections(closed)
            ),
            OF_ERRORS.to_owned(),
        ),
        _ if are_resets && !is_limit => (
            Severity::Warning,
            statement!(
                "the server resets connections after about {carried}",
                carried = carried
            ),
            WHY_RESET.to_owned(),
        ),
        (Some(pause), ..) => (
            Severity::Warning,
            statement!(
                "the server closes connections after one request or within the pause of {pause} (--idle)",
                pause = nanos(pause.as_nanos() as f64)
            ),
            with_setting(IDLE_LIMIT, ServerLimit::Idle),
        ),
        (None, Some(most), _) => (
            Severity::Info,
            statement!(
                "the server ended {closed} that others outlived: these carried up to {most}",
                closed = connections(closed),
                most = requests(most)
            ),
            SINGLE_CLOSES.to_owned(),
        ),
        (None, None, Some((least, most))) => (
            Severity::Warning,
            statement!(
                "the server closes connections after {least} to {most} requests: no limit of requests explains that",
                least = Value::Number(least),
                most = Value::Number(most)
            ),
            with_setting(NO_REQUEST_LIMIT, ServerLimit::Age),
        ),
        (None, None, None) => (
            Severity::Warning.unless(
                are_rare(closed, variant.counted.requests.total),
                Severity::Info,
            ),
            statement!(
                "the server closes connections after {carried}",
                carried = carried
            ),
            match after < ONE_REQUEST {
                true => with_setting(SWITCH_ON, ServerLimit::EveryResponse),
                false => with_setting(REQUEST_LIMIT, ServerLimit::Requests),
            },
        ),
    };
    let found = Finding::new("server-closes-early", severity, variant.name.clone(), claim)
        .evidence(ended.then(", ", manner).and(needed))
        .costing(cost_ms, cost_share);
    Some(found.fix(fix))
}

/// A remedy with the settings of common servers: which one it is, a bench does not know.
fn with_setting(what: &str, limit: ServerLimit) -> String {
    format!("{what} ({})", server_line(None, limit))
}

/// Whether a limit of requests explains ends within the next exchange: each connection carried the
/// same number. A server that closes without an announcement often meets the next request.
fn ends_at_a_limit(variant: &VariantFacts, closed: u64) -> bool {
    closed >= REGULAR
        && variant.carried_beyond_closes.is_none()
        && variant
            .server_closed_between
            .is_some_and(|(least, most)| least == most && least > 1)
}

/// Connections that we had to close, because the server sent more than its response.
fn bytes_after_response(variant: &VariantFacts) -> Option<Finding> {
    let closed = variant.counted.connections.ended(EndedBy::ExcessBytes);
    if closed == 0 {
        return None;
    }
    let (cost_ms, cost_share) = match variant.keepalive {
        true => cost_in_vain(variant),
        false => (None, None),
    };
    let claim = "the server sends bytes after a response that belong to no response: a client has to close the connection";
    let evidence = statement!(
        "the client closed {closed} of {opened} for that",
        closed = Value::Number(closed),
        opened = connections(variant.counted.connections.opened)
    );
    let name = variant.name.clone();
    let found = Finding::new("bytes-after-response", Severity::Warning, name, claim)
        .evidence(evidence)
        .costing(cost_ms, cost_share);
    Some(found.fix(BODY_LENGTH))
}

/// What the connections cost that our client or the server did not keep: the setup that measured
/// requests waited for, in milliseconds, and as a share of the time of these requests.
fn cost_in_vain(variant: &VariantFacts) -> (Option<f64>, Option<f64>) {
    let connections = &variant.counted.connections;
    let in_vain = connections.opened.saturating_sub(connections.least());
    let Some(waited) = &variant.setup_waited else {
        return (None, None);
    };
    let part = (in_vain as f64 / waited.requests.max(1) as f64).min(1.0);
    let cost = waited.ms * part;
    (Some(cost), Some(cost / waited.of_ms))
}

/// Requests that failed, measured or warm-up.
fn failures(variant: &VariantFacts) -> Option<Finding> {
    let (measured, warmup) = (&variant.counted.requests, &variant.warmup);
    if measured.failures() + warmup.failures() == 0 || measured.total == 0 {
        return None;
    }
    let of_measured = statement!(
        "{failed} of {requests} failed",
        failed = Value::Number(measured.failures()),
        requests = requests(measured.total)
    );
    let of_warmup = statement!(
        "{warmup_failed} of {warmup_requests} of warm-up failed",
        warmup_failed = Value::Number(warmup.failures()),
        warmup_requests = requests(warmup.requests)
    );
    let claim = match (measured.failures(), warmup.failures()) {
        (_, 0) => of_measured,
        (0, _) => of_warmup,
        _ => of_measured.then(", ", of_warmup),
    };
    let mut kinds = measured.failed.clone();
    add_counts(&mut kinds, &warmup.failed);
    let mut evidence = failure_kinds(&kinds);
    let unsent = variant.unsent();
    if unsent > 0 {
        let words = statement!(
            "{unsent} of them never sent, because no connection was free",
            unsent = Value::Number(unsent)
        );
        evidence = evidence.then("; ", words);
    }
    let fix = "Look at them before the figures: a percentile counts timeouts as longer than all other requests, and the other failures are in no latency";
    let name = variant.name.clone();
    let found = Finding::new("failed-requests", Severity::Error, name, claim);
    Some(found.evidence(evidence).fix(fix))
}

/// Failures by kind, with what each kind means.
pub(crate) fn failure_kinds(failed: &BTreeMap<&'static str, u64>) -> Statement {
    let meaning = |kind: &str| kind.parse().map_or("", Failure::words);
    let kinds: Vec<String> = failed
        .iter()
        .map(|(kind, seen)| format!("{} {kind} ({})", count(*seen), meaning(kind)))
        .collect();
    let values = counts(failed.iter().map(|(kind, &count)| (kind, count)));
    Statement::written(kinds.join("; "), vec![("kinds", values)])
}

fn statuses(variant: &VariantFacts, run: &Run) -> Option<Finding> {
    // the user named the statuses that count as ok, so that only those are counted here
    if run.expect.is_some() {
        return None;
    }
    let severity = Severity::Warning.unless(variant.no_success.is_some(), Severity::Error);
    let mut status = variant.counted.requests.status.clone();
    // the status that a revalidation is for
    if variant.not_modified_share.is_some() {
        status.remove(&NOT_MODIFIED);
    }
    not_2xx(&variant.name, &status, severity)
}

/// Responses of other classes than 2xx.
pub(crate) fn not_2xx(
    subject: &str,
    status: &BTreeMap<u16, u64>,
    severity: Severity,
) -> Option<Finding> {
    let others: Vec<(u16, u64)> = status
        .iter()
        .filter(|(status, _)| !(200..300).contains(*status))
        .map(|(&status, &count)| (status, count))
        .collect();
    if others.is_empty() {
        return None;
    }
    let each = others
        .iter()
        .map(|(status, seen)| format!("{} x {status}", count(*seen)));
    let each = each.collect::<Vec<_>>().join(", ");
    let claim = "not all responses are 2xx";
    let found = Finding::new("not-2xx", severity, subject.to_owned(), claim)
        .evidence(Statement::written(each, vec![("statuses", counts(others))]));
    Some(found.fix("check URL, method and credentials; --expect 2xx counts them as failed"))
}

/// At this rate of connections that we close first a real network would run out of ports.
fn ports(variant: &VariantFacts, run: &Run) -> Option<Finding> {
    // QUIC has no TIME_WAIT, and its connections can share a port
    if variant.http == Protocol::Http3.as_str() {
        return None;
    }
    // those that every round must end are not churn, however short the round
    let connections = &variant.counted.connections;
    let ours = connections.ended(EndedBy::Client) + connections.ended(EndedBy::ExcessBytes);
    let ours = ours.saturating_sub(connections.needed);
    let share = ours as f64 / connections.opened.max(1) as f64;
    let opened = variant.churn_per_s.value()?;
    let churn = opened * share;
    let (first, last) = run.host.ephemeral_ports?;
    let ports = f64::from(last - first) + 1.0;
    if churn * 60.0 <= ports {
        return None;
    }
    let claim = statement!(
        "{opened} new connections/s, {share} closed by the client first, are more than one client address can sustain to one server address",
        opened = Value::Rate(opened),
        share = Value::Share(share)
    );
    let evidence = statement!(
        "60 s of TIME_WAIT hold {held}, {ports} are available; loopback reuses them after a second, a network does not",
        held = Value::Count((churn * 60.0).round() as u64, "port"),
        ports = Value::Number(ports as u64)
    );
    let found = Finding::new(
        "ports-running-out",
        Severity::Info,
        variant.name.clone(),
        claim,
    );
    Some(found.evidence(evidence).fix("reuse connections first; more source addresses or a wider ip_local_port_range only after that"))
}

/// The claims about errors next to other responses: their share, and the variants that had nothing
/// else.
pub(super) fn errors_in(variants: &[VariantFacts], errors: &ErrorResponses) -> Vec<Claim> {
    let claim = |loss, sentence| Claim::new(ClaimKind::Errors, loss, sentence);
    let share = errors.share_of_times();
    let share = share.map(|share| claim(1.0, share));
    let only = variants.iter().filter(|one| one.has_only_errors());
    let only: Vec<&str> = only.map(|one| &*one.name).collect();
    let only = (!only.is_empty()).then(|| {
        let names = only.join(", ");
        claim(
            0.0,
            format!("{names}: {ONLY_ERRORS}; not compared with others"),
        )
    });
    share.into_iter().chain(only).collect()
}

/// Lookups that failed, where any did: a variant that opens fewer connections, or keeps answers,
/// needs fewer.
pub(super) fn failed_lookups(variants: &[VariantFacts]) -> Option<Claim> {
    let of = |one: &VariantFacts| {
        format!(
            "{} of {} in {}",
            one.lookups_failed, one.lookups_seen, one.name
        )
    };
    let any = variants.iter().any(|one| one.lookups_failed > 0);
    any.then(|| {
        // a variant that was left out has none
        let with_lookups = variants.iter().filter(|one| one.lookups_seen > 0);
        let all: Vec<String> = with_lookups.map(of).collect();
        let text = format!("Failed lookups: {}", all.join(", "));
        // what they cost is in the failed requests
        Claim::new(ClaimKind::Failed, 0.0, text)
    })
}

/// Requests that failed, where their share is so large that the latency of the others is no
/// headline.
pub(super) fn many_failed(variants: &[VariantFacts], all: &TrafficCounts) -> Option<Claim> {
    let share = super::many_failed(variants, all)?;
    let requests = counted(all.requests.total, "request");
    let failed = whole_percent(share);
    let text =
        format!("{failed} of {requests} failed, so the other sentences are about the rest only");
    Some(Claim::new(ClaimKind::Failed, share, text))
}

/// The claim where no measured request succeeded; the first ones give details.
pub(crate) fn no_success_claim(
    counts: &TrafficCounts,
    errors: &ErrorResponses,
    tally: &Tally,
    first: &[Exchange],
) -> Option<Claim> {
    no_success(counts, errors)?;
    Some(match counts.requests.ok {
        0 => Claim::new(ClaimKind::Failed, 1.0, unmeasured(tally, first)),
        _ => Claim::new(ClaimKind::Errors, 1.0, only_errors(counts, errors)),
    })
}

/// The verdict where every response was an error.
fn only_errors(counts: &TrafficCounts, errors: &ErrorResponses) -> String {
    let requests = &counts.requests;
    let failed = requests.failures();
    let mut counts = format!("{} of {}", count(requests.ok), count(requests.total));
    if failed > 0 {
        counts.push_str(&format!(", {} failed", counted(failed, "request")));
    }
    errors.only_errors(Some(&counts), "these figures measure an error page")
}

/// The verdict where no measured request succeeded: how requests failed, the most frequent way
/// first. The first ones give details.
fn unmeasured(tally: &Tally, first: &[Exchange]) -> String {
    let mut counts: BTreeMap<Failure, u64> = BTreeMap::new();
    for group in tally.cells.iter().flat_map(|cell| &cell.groups) {
        // how the run ended is no cause
        let failure = group.key.outcome.failure();
        if let Some(kind) = failure.filter(|kind| *kind != Failure::Aborted) {
            *counts.entry(kind).or_default() += group.count();
        }
    }
    if counts.is_empty() {
        return "Nothing was measured: the run ended before its first measured request.".to_owned();
    }
    let mut kinds: Vec<(Failure, u64)> = counts.into_iter().collect();
    kinds.sort_by_key(|(_, seen)| std::cmp::Reverse(*seen));
    let lines: Vec<String> = kinds
        .iter()
        .map(|(kind, seen)| {
            let example = first
                .iter()
                .find(|one| one.outcome.failure() == Some(*kind));
            let status = || example?.status.map(|status| format!("status {status}"));
            let detail = example.and_then(|one| one.detail.as_deref().map(str::to_owned));
            let words = failure_words(*kind, detail.or_else(status).as_deref());
            let remedy = remedy(*kind).map_or_else(String::new, |way| format!("; {way}"));
            format!("{} ×{}: {words}{remedy}", kind.id(), count(*seen))
        })
        .collect();
    format!("Nothing could be measured. {}.", lines.join("; "))
}

/// The option that helps.
fn remedy(kind: Failure) -> Option<&'static str> {
    match kind {
        Failure::NotTls => Some("http:// speaks plain HTTP, --tls-port names the TLS port"),
        kind => failure_remedy(kind),
    }
}
