//! What TLS and HTTP/2 on this server mean for the price of a connection, and what is offered that should not be.

use super::{CheckFacts, finding};
use crate::finding::{Finding, Severity};
use intact_ledger::server_profile::EarlyData;
use intact_units::number::time;

/// Bytes that a server may send before it must wait for us: ten segments of 1,460 (RFC 6928).
const FIRST_WINDOW: u64 = 14_600;
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
        .map(|old| old.version)
        .collect();
    if taken.is_empty() {
        return None;
    }
    Some(Finding {
        evidence: "it answered a hello of that version with one of its own".to_owned(),
        fix: "offer TLS 1.2 and 1.3 only (RFC 8996)".to_owned(),
        ..finding(
            facts,
            "old-tls-accepted",
            Severity::Warning,
            format!("TLS {} is accepted", taken.join(" and ")),
        )
    })
}

fn resumption(facts: &CheckFacts) -> Option<Finding> {
    let first = facts.resumption.first()?;
    if facts.resumption.iter().any(|one| one.accepted) {
        return None;
    }
    let tickets = facts
        .tls
        .iter()
        .find_map(|tls| tls.tickets)
        .map_or_else(String::new, |tickets| {
            format!("; {tickets} tickets in TLS 1.3")
        });
    Some(Finding {
        evidence: format!(
            "a second connection made a full handshake again in TLS {}{tickets}",
            facts
                .resumption
                .iter()
                .map(|one| one.version)
                .collect::<Vec<_>>()
                .join(" and ")
        ),
        cost_ms: Some(first.full_handshake_ms),
        fix: "turn session tickets on (nginx `ssl_session_tickets on`, shared keys on several servers): a connection that must be new costs less then".to_owned(),
        ..finding(
            facts,
            "tls-never-resumed",
            Severity::Warning,
            format!(
                "TLS sessions are never resumed: each new connection pays the full handshake, {}",
                time(first.full_handshake_ms)
            ),
        )
    })
}

fn early_data(facts: &CheckFacts) -> Option<Finding> {
    let accepted = facts
        .resumption
        .iter()
        .any(|one| one.early_data == Some(EarlyData::Accepted));
    accepted.then(|| Finding {
        evidence: "a GET in the first flight of a resumed connection was answered".to_owned(),
        fix: "answer 425 (RFC 8470) to early requests that are not safe to repeat".to_owned(),
        risk: Some("early data can be replayed by whoever sees it".to_owned()),
        ..finding(
            facts,
            "early-data-accepted",
            Severity::Info,
            "early data (0-RTT) is accepted: a resumed connection costs no round trip for TLS"
                .to_owned(),
        )
    })
}

fn large_chain(facts: &CheckFacts) -> Option<Finding> {
    let tls = facts.tls.iter().max_by_key(|tls| tls.received)?;
    (tls.received > FIRST_WINDOW).then(|| Finding {
        evidence: format!(
            "{} bytes of handshake, {} of them in {} certificates; ten segments are {FIRST_WINDOW}",
            tls.received, tls.chain_bytes, tls.certificates
        ),
        fix: "send no root and no needless intermediates; ECDSA certificates are smaller".to_owned(),
        ..finding(
            facts,
            "certificate-chain-large",
            Severity::Warning,
            "the server's handshake does not fit into the first window: a round trip more for each full handshake".to_owned(),
        )
    })
}

fn forbidden(facts: &CheckFacts) -> Option<Finding> {
    let fields = facts
        .versions
        .iter()
        .find(|version| !version.forbidden.is_empty())
        .map(|version| version.forbidden.join(", "))?;
    Some(Finding {
        evidence: format!("fields of the answer: {fields} (RFC 9113 section 8.2.2)"),
        fix: "do not add them where HTTP/2 is spoken: strict clients treat the answer as malformed"
            .to_owned(),
        ..finding(
            facts,
            "http2-connection-fields",
            Severity::Warning,
            "HTTP/2 answers carry fields that belong to a connection".to_owned(),
        )
    })
}

fn apart(facts: &CheckFacts) -> Option<Finding> {
    let gaps = &facts.http2.as_ref()?.headers_to_data_ms;
    let known: Vec<f64> = gaps.iter().flatten().copied().collect();
    let least = known.iter().copied().reduce(f64::min)?;
    (least > APART).then(|| Finding {
        evidence: format!("{} answers, at least {} each", known.len(), time(least)),
        cost_ms: Some(least),
        fix: "let the server flush HEADERS and DATA together".to_owned(),
        ..finding(
            facts,
            "http2-headers-and-data-apart",
            Severity::Info,
            "HTTP/2 answers come in two: HEADERS, and after a gap DATA".to_owned(),
        )
    })
}
