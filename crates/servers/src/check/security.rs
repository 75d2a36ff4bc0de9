//! What TLS and HTTP/2 on this server mean for the price of a connection, and what is offered that
//! should not be.

use super::{CheckFacts, finding};
use intact_document::finding::{Finding, Severity};
use intact_document::statement::{Value, list, statement};
use intact_ledger::server_profile::EarlyData;

/// Bytes that a server may send before it must wait for us: ten segments of 1,460 (RFC 6928).
const FIRST_WINDOW: u64 = 14_600;
const TICKETS: &str = "turn session tickets on (nginx `ssl_session_tickets on`, shared keys on several servers): an unavoidable new connection costs less then";
const EARLY_DATA: &str =
    "the server accepts early data (0-RTT): a resumed connection costs no round trip for TLS";
const TWO_WINDOWS: &str = "the server's handshake exceeds the first window: each full handshake takes one more round trip";
/// HEADERS and DATA this far apart are worth a word, in milliseconds.
const APART: f64 = 1.0;

pub(super) fn findings(facts: &CheckFacts) -> Vec<Finding> {
    let mut found: Vec<Finding> = old_versions(facts).into_iter().collect();
    found.extend(resumption(facts));
    found.extend(early_data(facts));
    found.extend(large_chain(facts));
    found.extend(forbidden(facts));
    found.extend(apart(facts));
    found
}

fn old_versions(facts: &CheckFacts) -> Option<Finding> {
    let taken: Vec<&str> = facts
        .tls_older
        .iter()
        .filter(|old| old.accepted == Some(true))
        .map(|old| old.version.as_str())
        .collect();
    if taken.is_empty() {
        return None;
    }
    let claim = statement!("the server accepts TLS {versions}", versions = list(taken));
    let found = finding(facts, "old-tls-accepted", Severity::Warning, claim)
        .evidence("it responded to a hello of that version with its own")
        .fix("offer TLS 1.2 and 1.3 only (RFC 8996)");
    Some(found)
}

fn resumption(facts: &CheckFacts) -> Option<Finding> {
    let first = facts.resumption.first()?;
    if facts.resumption.iter().any(|one| one.accepted) {
        return None;
    }
    let mut evidence = statement!(
        "a second connection made a full handshake again in TLS {versions}",
        versions = list(facts.resumption.iter().map(|one| one.version))
    );
    if let Some(tickets) = facts.tls.iter().find_map(|tls| tls.tickets) {
        let tickets = Value::Count(tickets.into(), "ticket");
        evidence = evidence.and(statement!("{tickets} in TLS 1.3", tickets = tickets));
    }
    let claim = statement!(
        "TLS sessions are never resumed: each new connection pays the full handshake, {handshake}",
        handshake = Value::Duration(first.full_handshake_ms)
    );
    let found = finding(facts, "tls-never-resumed", Severity::Warning, claim)
        .evidence(evidence)
        .costing(Some(first.full_handshake_ms), None)
        .fix(TICKETS);
    Some(found)
}

fn early_data(facts: &CheckFacts) -> Option<Finding> {
    let is_accepted = |one: Option<EarlyData>| one == Some(EarlyData::Accepted);
    let mut over_tcp = facts.resumption.iter().map(|one| one.early_data);
    let over_quic = facts.http3.as_ref().and_then(|seen| seen.early_data);
    let evidence = match (over_tcp.any(is_accepted), is_accepted(over_quic)) {
        (false, false) => return None,
        (true, false) => "a GET in the first flight of a resumed connection got a response",
        (false, true) => "a GET in the first flight of a resumed HTTP/3 connection got a response",
        (true, true) => {
            "a GET in the first flight of a resumed connection got a response, also over HTTP/3"
        }
    };
    let found = finding(facts, "early-data-accepted", Severity::Info, EARLY_DATA)
        .evidence(evidence)
        .fix("respond with 425 (RFC 8470) to early requests that are not safe to repeat")
        .risk("anyone who observes early data can replay it");
    Some(found)
}

fn large_chain(facts: &CheckFacts) -> Option<Finding> {
    let tls = facts.tls.iter().max_by_key(|tls| tls.received)?;
    let evidence = statement!(
        "{handshake} of handshake, {chain} of them in {certificates}; the first window has {window}",
        handshake = Value::Bytes(tls.received),
        chain = Value::Bytes(tls.chain_bytes),
        certificates = Value::Count(tls.certificates.into(), "certificate"),
        window = Value::Bytes(FIRST_WINDOW)
    );
    let found = finding(
        facts,
        "certificate-chain-large",
        Severity::Warning,
        TWO_WINDOWS,
    )
    .evidence(evidence)
    .fix("send no root and no needless intermediates; ECDSA certificates are smaller");
    (tls.received > FIRST_WINDOW).then_some(found)
}

fn forbidden(facts: &CheckFacts) -> Option<Finding> {
    let fields = facts
        .versions
        .iter()
        .find(|version| !version.forbidden.is_empty())
        .map(|version| list(&version.forbidden))?;
    let claim = "HTTP/2 responses have connection-specific fields";
    let evidence = statement!(
        "fields of the response: {fields} (RFC 9113 section 8.2.2)",
        fields = fields
    );
    let found = finding(facts, "http2-connection-fields", Severity::Warning, claim)
        .evidence(evidence)
        .fix("do not add them in HTTP/2: strict clients treat the response as malformed");
    Some(found)
}

fn apart(facts: &CheckFacts) -> Option<Finding> {
    let gaps = &facts.http2.as_ref()?.headers_to_data_ms;
    let known: Vec<f64> = gaps.iter().flatten().copied().collect();
    let least = known.iter().copied().reduce(f64::min)?;
    let claim = "HTTP/2 responses arrive in two parts: HEADERS, then DATA after a gap";
    let evidence = statement!(
        "{responses}, at least {least} each",
        responses = Value::Count(known.len() as u64, "response"),
        least = Value::Duration(least)
    );
    let found = finding(facts, "http2-headers-and-data-apart", Severity::Info, claim)
        .evidence(evidence)
        .costing(Some(least), None)
        .fix("let the server flush HEADERS and DATA together");
    (least > APART).then_some(found)
}
