//! `tls-never-resumed`: every handshake is a full one.

use super::{Attribution, RuleRow};
use intact_document::finding::{Finding, RuleDoc, Severity};
use intact_document::statement::{Statement, Value, nanos, statement};
use intact_ledger::{Evidence, Handshake, TlsVersion};

/// Full handshakes from which on it speaks, and from which on it is more than a note.
const LEAST: u64 = 3;
const SEVERAL: u64 = 10;

pub(super) static RULE: RuleRow = RuleRow {
    doc: RuleDoc {
        id: "tls-never-resumed",
        what: "Connections to the same destination all make a full TLS handshake. A resumed one saves the certificate, its verification and the server's signature, in TLS 1.2 also a round trip.",
        evidence: "Handshakes by kind; whether the client offered to resume, whether the server sent tickets; the mean time of a handshake.",
        threshold: "Three full handshakes that began after an earlier one of the same process had ended, and not one resumed. A warning from ten on. Handshakes of an unknown kind do not count.",
        false_positives: "Short connections that end before the server sends a ticket. Where connections are reused, resumption saves little.",
        fix: "Reuse connections first; then keep the session cache with the client, and let the servers share their ticket keys",
        risk: "Ticket keys without rotation expose recorded traffic in TLS 1.2; early data (0-RTT) can be replayed, so only for idempotent requests",
        needs: &[Evidence::Handshakes],
    },
    fold: || Box::new(findings),
};

fn findings(attribution: &mut Attribution<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (_, name, counts) in attribution.destinations() {
        let of = |which: &dyn Fn(Handshake) -> bool| -> u64 {
            let kinds = counts.tls.iter();
            kinds
                .filter(|((_, kind), _)| kind.is_some_and(which))
                .map(|(_, count)| count)
                .sum()
        };
        let full = of(&|kind| kind == Handshake::Full);
        // the first of an environment, and those that begin together with it, have nothing to
        // resume
        let of_environments = full.saturating_sub(counts.environments.len() as u64);
        let could = of_environments.min(counts.full_after_another);
        if could < LEAST || of(&|kind| kind != Handshake::Full) > 0 {
            continue;
        }
        // in TLS 1.2 tickets come in the clear, in 1.3 they do not
        let visible = counts
            .tls
            .keys()
            .any(|(version, _)| *version < Some(TlsVersion::Tls13));
        let why = match (counts.resumption_offered, counts.ticketed) {
            (0, 0) if !visible => "the client never offered to resume",
            (0, 0) => "the client never offered to resume, and no ticket of the server was seen",
            (0, _) => "the server sent tickets, and the client never offered one",
            (_, 0) => "the client offered to resume, and the server did not take it",
            _ => "the server sent tickets, but took none that the client offered",
        };
        let mut evidence = Statement::from(why);
        if let Some(mean) = counts.setup[2].mean() {
            evidence = evidence.and(statement!(
                "a handshake takes {handshake} on average",
                handshake = nanos(mean)
            ));
        }
        let severity = Severity::Info.unless(could >= SEVERAL, Severity::Warning);
        let said = statement!(
            "all {handshakes} were full ones",
            handshakes = Value::Count(full, "TLS handshake")
        );
        findings.push(Finding::by(&RULE.doc, severity, name, said, evidence));
    }
    findings
}
