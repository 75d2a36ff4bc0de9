//! `old-tls`: a TLS version that costs a round trip more, or is no longer safe.

use super::{Attribution, Doc, Rule};
use crate::finding::{Finding, Severity};
use intact_ledger::{Handshake, TlsVersion};
use intact_units::number::time;
use intact_units::plural::counted;

static DOC: Doc = Doc {
    id: "old-tls",
    what: "Connections speak TLS 1.2 or older. A full handshake of TLS 1.2 takes two round trips, one of TLS 1.3 takes one; 1.1 and older are deprecated (RFC 8996).",
    evidence: "The negotiated version of each connection, and how many made a full handshake.",
    threshold: "One connection. A warning for TLS 1.1 and older, a note for TLS 1.2.",
    false_positives: "TLS 1.2 is safe: where connections are reused, its extra round trip is paid once.",
    fix: "Let both sides speak TLS 1.3: update the TLS library of whichever does not, and look for a version pinned in its settings",
    risk: "Middle boxes that inspect TLS may not understand 1.3",
};

pub(super) struct OldTls;

impl Rule for OldTls {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn findings(&self, bill: &mut Attribution<'_>) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (_, name, counts) in bill.destinations() {
            let old = |(version, _): &(Option<TlsVersion>, Option<Handshake>)| {
                version.is_some_and(|version| version < TlsVersion::Tls13)
            };
            let connections: u64 = counts
                .tls
                .iter()
                .filter(|(kind, _)| old(kind))
                .map(|(_, count)| count)
                .sum();
            let oldest = counts
                .tls
                .keys()
                .filter(|kind| old(kind))
                .filter_map(|kind| kind.0)
                .min();
            let Some(oldest) = oldest else { continue };
            let severity = if oldest < TlsVersion::Tls12 {
                Severity::Warning
            } else {
                Severity::Info
            };
            let evidence = counts.setup[2].mean().map_or_else(
                || "the negotiated version".to_owned(),
                |nanos| format!("a TLS handshake takes {} on average", time(nanos / 1e6)),
            );
            let words = format!(
                "{} with TLS {}",
                counted(connections, "connection"),
                if connections > 1 && oldest < TlsVersion::Tls12 {
                    format!("1.2 or older, the oldest {}", oldest.as_str())
                } else {
                    oldest.as_str().to_owned()
                }
            );
            findings.push(Finding::by(&DOC, severity, name, words, evidence));
        }
        findings
    }
}
