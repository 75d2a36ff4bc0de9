//! `old-tls`: a TLS version that costs a round trip more, or is no longer safe.

use super::{Attribution, RuleRow};
use intact_document::finding::{Finding, RuleDoc, Severity};
use intact_document::statement::{Statement, connections, nanos, statement, text};
use intact_ledger::{Evidence, Handshake, TlsVersion};

pub(super) static RULE: RuleRow = RuleRow {
    doc: RuleDoc {
        id: "old-tls",
        what: "Connections speak TLS 1.2 or older. A full handshake of TLS 1.2 takes two round trips, one of TLS 1.3 takes one; 1.1 and older are deprecated (RFC 8996).",
        evidence: "The negotiated version of each connection, and how many made a full handshake.",
        threshold: "One connection. A warning for TLS 1.1 and older, informational for TLS 1.2.",
        false_positives: "TLS 1.2 is safe: where connections are reused, its extra round trip is paid once.",
        fix: "Let both sides speak TLS 1.3: update the older TLS library, and look for a pinned version in its settings",
        risk: "Middleboxes that inspect TLS may not support 1.3",
        needs: &[Evidence::Handshakes],
    },
    fold: || Box::new(findings),
};

fn findings(attribution: &mut Attribution<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (_, name, counts) in attribution.destinations() {
        let old = |(version, _): &(Option<TlsVersion>, Option<Handshake>)| {
            version.is_some_and(|version| version < TlsVersion::Tls13)
        };
        let old_ones: u64 = counts
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
        let severity = Severity::Info.unless(oldest < TlsVersion::Tls12, Severity::Warning);
        let evidence = counts.setup[2].mean().map_or_else(
            || Statement::from("the negotiated version"),
            |mean| {
                statement!(
                    "a TLS handshake takes {handshake} on average",
                    handshake = nanos(mean)
                )
            },
        );
        let version = text(oldest.as_str());
        let said = if old_ones > 1 && oldest < TlsVersion::Tls12 {
            statement!(
                "{connections} with TLS 1.2 or older, the oldest {version}",
                connections = connections(old_ones),
                version = version
            )
        } else {
            statement!(
                "{connections} with TLS {version}",
                connections = connections(old_ones),
                version = version
            )
        };
        findings.push(Finding::by(&RULE.doc, severity, name, said, evidence));
    }
    findings
}
