//! A summary as Markdown, for a pull request or a CI's own page: verdict, main table, what stands out. Short: the page
//! (`markdown`, `html`) and the JSON have the rest.

use crate::cpu;
use crate::markdown::{plain, prose};
use crate::number::{maybe_percent, maybe_time, reuse};
use intact_findings::bench::BenchFacts;
use intact_findings::compare::{CompareFacts, FindingState};
use intact_findings::traffic::{Destination, ObservedFacts};
use intact_findings::{Finding, Severity};
use intact_ledger::Run;
use intact_units::number::{count, time};
use std::fmt::Write;

/// Destinations that are shown.
const DESTINATIONS: usize = 15;

/// The page of an observed run.
pub fn observed(run: &Run, facts: &ObservedFacts) -> String {
    let mut out = format!("### intact {}", prose(run.producer.as_str()));
    if let Some(subject) = &run.subject {
        let _ = write!(out, ": {}", plain(subject));
    }
    out.push_str("\n\n");
    for (nth, sentence) in facts.verdict.iter().enumerate() {
        let mark = if nth == 0 { "**" } else { "" };
        let _ = writeln!(out, "{mark}{}{mark}  ", prose(sentence));
    }
    destinations(&mut out, &facts.destinations);
    let grave = |finding: &&Finding| finding.severity > Severity::Info;
    findings(&mut out, facts.findings.iter().filter(grave));
    let notes = facts.findings.iter().filter(|one| !grave(one)).count();
    if notes > 0 {
        let _ = writeln!(out, "\n{notes} more worth a note.");
    }
    for line in facts.cpu.iter().flat_map(cpu::lines) {
        let _ = writeln!(out, "\nProcessor time, {}.", prose(&line));
    }
    for caveat in &facts.caveats {
        let _ = writeln!(out, "\n> {}", prose(&caveat.message));
    }
    out
}

/// The page of a bench.
pub fn bench(run: &Run, facts: &BenchFacts) -> String {
    let mut out = String::from("### intact bench");
    if let Some(subject) = &run.subject {
        let _ = write!(out, ": {}", plain(subject));
    }
    out.push_str("\n\n");
    for (nth, sentence) in facts.verdict.iter().enumerate() {
        let mark = if nth == 0 { "**" } else { "" };
        let _ = writeln!(out, "{mark}{}{mark}  ", prose(sentence));
    }
    out.push_str(
        "\n| variant | requests | failed | connections | reused | mean | p50 | p99 |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for one in &facts.variants {
        let latency = &one.latency_ms;
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} | {} |",
            plain(&one.name),
            count(one.requests.total),
            count(one.requests.failures()),
            count(one.connections.opened),
            maybe_percent(one.reuse),
            maybe_time(latency.mean),
            maybe_time(latency.p50),
            maybe_time(latency.p99)
        );
    }
    let grave = |finding: &&Finding| finding.severity > Severity::Info;
    findings(&mut out, facts.findings.iter().filter(grave));
    for caveat in &facts.caveats {
        let _ = writeln!(out, "\n> {}", prose(&caveat.message));
    }
    out
}

/// The page of a comparison of programs.
pub fn compare(facts: &CompareFacts) -> String {
    let mut out = String::from("### intact compare\n\n");
    for (nth, sentence) in facts.verdict.iter().enumerate() {
        let mark = if nth == 0 { "**" } else { "" };
        let _ = writeln!(out, "{mark}{}{mark}  ", prose(sentence));
    }
    let _ = writeln!(
        out,
        "\n| program ({} rounds, means of one run) | wall | CPU | requests | failed | connections | reused | TLS | lookups |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        facts.rounds
    );
    for one in &facts.variants {
        let rounds = one.rounds.len().max(1) as f64;
        let each = |sum: u64| {
            let mean = sum as f64 / rounds;
            format!("{mean:.*}", usize::from(mean.fract() != 0.0))
        };
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            plain(&one.name),
            maybe_time(one.wall_ms.map(|spread| spread.mean)),
            maybe_time(one.cpu_ms.map(|spread| spread.mean)),
            each(one.requests.total),
            each(one.requests.failures()),
            each(one.connections.opened),
            maybe_percent(one.reuse),
            each(one.handshakes.total()),
            each(one.lookups)
        );
    }
    for (fate, word) in [
        (FindingState::Gone, "Gone"),
        (FindingState::New, "New"),
        (FindingState::Unchanged, "Stays"),
    ] {
        let told = facts
            .changes
            .iter()
            .filter(|change| change.fate == fate && change.finding.severity > Severity::Info);
        for (nth, change) in told.enumerate() {
            if nth == 0 {
                out.push('\n');
            }
            let finding = &change.finding;
            let _ = writeln!(
                out,
                "- {word}: **{}** {}: {}",
                finding.rule,
                plain(&finding.subject),
                prose(&finding.claim)
            );
        }
    }
    for caveat in &facts.caveats {
        let _ = writeln!(out, "\n> {}", prose(&caveat.message));
    }
    out
}

fn destinations(out: &mut String, all: &[Destination]) {
    if all.is_empty() {
        return;
    }
    out.push_str(
        "\n| destination | requests | failed | connections | needed | reused | wasted |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for one in all.iter().take(DESTINATIONS) {
        let figures = &one.figures;
        let about = if figures.inferred.is_empty() { "" } else { "~" };
        let blind = figures.requests.total == 0 && figures.opaque > 0;
        let seen = |told: String| if blind { "-".to_owned() } else { told };
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} |",
            plain(&one.origin),
            seen(format!("{about}{}", count(figures.requests.total))),
            seen(count(figures.requests.failures())),
            count(figures.connections.opened),
            count(figures.connections.needed),
            reuse(figures.reuse, figures.reuse_range),
            maybe_time(figures.wasted_ms)
        );
    }
    if all.len() > DESTINATIONS {
        let _ = writeln!(out, "\n{} more destinations.", all.len() - DESTINATIONS);
    }
}

/// A list of findings with cost, evidence, fix and risk.
fn findings<'a>(out: &mut String, findings: impl Iterator<Item = &'a Finding>) {
    for (nth, finding) in findings.enumerate() {
        if nth == 0 {
            out.push('\n');
        }
        let cost = finding
            .cost_ms
            .filter(|ms| *ms > 0.0)
            .map_or_else(String::new, |ms| format!(", costs {}", time(ms)));
        let _ = writeln!(
            out,
            "- **{}** ({}) {}: {}{cost}; {}.\n  Fix: {}.",
            finding.rule,
            finding.severity.as_str(),
            plain(&finding.subject),
            prose(&finding.claim),
            prose(&finding.evidence),
            prose(&finding.fix)
        );
        if let Some(risk) = &finding.risk {
            let _ = writeln!(out, "  But: {}.", prose(risk));
        }
    }
}
