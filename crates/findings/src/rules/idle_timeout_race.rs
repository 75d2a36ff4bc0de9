//! `idle-timeout-race`: connections are reused when the server's idle timer is about to fire.

use super::{Attribution, Doc, Remedy, Rule};
use crate::finding::{Finding, Severity};
use crate::traffic::{at_least, danger_from, server_limit};
use intact_units::number::{timer, whole_percent};
use intact_units::plural::counted;

static DOC: Doc = Doc {
    id: "idle-timeout-race",
    what: "Requests go onto connections that have been idle for nearly as long as the server allows. Sooner or later one crosses the server's FIN and fails (\"socket hang up\").",
    evidence: "Idle time before each reuse against the server's limit: `Keep-Alive: timeout=` or the shortest idle time after which it was seen to close, whichever is shorter.",
    threshold: "One reuse in the danger band: the last fifth of the limit, at most its last second. The timer's resolution and the way there both count, so this is where a race can be lost.",
    false_positives: "Servers that announce less than they do (Node keeps connections a second longer than it says); requests that are retried anyway.",
    fix: "Set the client's idle limit below the server's, with room to spare",
    risk: "A shorter limit in the client costs a few more connections; a longer one in the server costs it memory for each silent client",
};

pub(super) struct IdleTimeoutRace;

impl Rule for IdleTimeoutRace {
    fn doc(&self) -> &'static Doc {
        &DOC
    }

    fn findings(&self, bill: &mut Attribution<'_>) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (destination, name, counts) in bill.destinations() {
            let (Some(limit), Some(detail)) = (server_limit(counts), &counts.detail) else {
                continue;
            };
            let risky = at_least(&detail.gaps, danger_from(limit));
            if risky == 0 {
                continue;
            }
            let all = detail.gaps.count();
            let announced = counts.announced_timeout_s.map_or_else(
                || "as seen".to_owned(),
                |timeout| format!("`Keep-Alive: timeout={timeout}`"),
            );
            let mut evidence = format!(
                "the server's idle limit is {} ({announced})",
                timer(limit as f64 / 1e6)
            );
            if let Some(longest) = detail.gaps.max() {
                evidence.push_str(&format!(
                    "; the longest idle time before a reuse was {}",
                    timer(longest as f64 / 1e6)
                ));
            }
            let words = format!(
                "{} of {} ({}) came after an idle time of {} or more",
                risky,
                counted(all, "reuse"),
                whole_percent(risky as f64 / all as f64),
                timer(danger_from(limit) as f64 / 1e6)
            );
            let mut finding = Finding::by(&DOC, Severity::Warning, name, words, evidence);
            finding.fix = format!("{}: below {}", finding.fix, timer(limit as f64 / 1e6));
            findings.push(finding.in_words_of(bill.client(destination), Remedy::ShortenIdle));
        }
        findings
    }
}
