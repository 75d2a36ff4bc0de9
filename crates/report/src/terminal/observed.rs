//! The page of an observed run: verdict, destinations, what stands out and what to change, idle gaps, cold against warm.

use super::page::Page;
use super::phases;
use super::table::Column;
use super::{Style, TerminalOptions, escape};
use crate::cpu;
use crate::number::{maybe_percent, maybe_time, reuse};
use intact_findings::traffic::{Destination, Figures, Gaps, ObservedFacts, Phases};
use intact_findings::{Finding, Severity};
use intact_ledger::{Run, Vantage};
use intact_units::number::{count, percent, tick, time};
use intact_units::plural::counted;

/// Destinations that the page shows.
const DESTINATIONS: usize = 20;
/// Findings that the page shows.
const FINDINGS: usize = 12;
/// Notes that the page shows, a line or two each; `--json` tells the rest of them.
const NOTES: usize = 8;
/// The widest that a destination's name may be.
const NAME: usize = 34;

/// The page of an observed run (`watch`, `audit`, a server's ledger).
pub fn observed(run: &Run, facts: &ObservedFacts, paper: TerminalOptions) -> String {
    let mut page = Page::on(paper);
    page.observed_head(run, facts);
    page.destinations(facts);
    page.stands_out(&facts.findings);
    page.gaps(&facts.totals);
    page.cold_and_warm(&facts.totals);
    page.processor_time(facts);
    page.limits(facts);
    page.text
}

impl Page {
    fn observed_head(&mut self, run: &Run, facts: &ObservedFacts) {
        let subject = run.subject.as_deref().unwrap_or("");
        let link = run.link.as_ref().map(|link| format!(" behind {link}"));
        self.line(&format!(
            "{} {}{}",
            self.paper.ink(
                Style::Strong,
                &format!("intact {}", escape(run.producer.as_str()))
            ),
            escape(subject),
            escape(&link.unwrap_or_default())
        ));
        let totals = &facts.totals;
        let about = about(totals);
        let noun = match run.vantage {
            Vantage::Server => "client",
            Vantage::Client | Vantage::OnPath => "destination",
        };
        let mut told = format!(
            "{}, {about}{} on {}",
            counted(facts.destinations.len() as u64, noun),
            counted(totals.requests.total, "request"),
            counted(totals.connections.opened, "connection"),
        );
        if let Some(outbound) = totals.outbound_ms {
            told.push_str(&format!(", {} of waiting for answers", time(outbound)));
        }
        if totals.lookups.total > 0 {
            told.push_str(&format!(", {}", counted(totals.lookups.total, "lookup")));
            if let Some(took) = totals.lookups.ms.filter(|took| *took > 0.0) {
                told.push_str(&format!(" in {}", time(took)));
            }
            if totals.lookups.failed > 0 {
                told.push_str(&format!(" ({} failed)", count(totals.lookups.failed)));
            }
            if let Some(each) = totals.lookups.per_connection.filter(|each| *each >= 0.05) {
                told.push_str(&format!(", {each:.1} per connection"));
            }
        }
        self.wrapped(Some(Style::Faint), &told, "");
        self.line("");
        for (nth, sentence) in facts.verdict.iter().enumerate() {
            let ink = (nth == 0).then_some(Style::Strong);
            self.wrapped(ink, &escape(sentence), "  ");
        }
    }

    fn destinations(&mut self, facts: &ObservedFacts) {
        if facts.destinations.is_empty() {
            return;
        }
        self.title("Destinations");
        let shown = &facts.destinations[..facts.destinations.len().min(DESTINATIONS)];
        let column = |head, rank, cell: &dyn Fn(&Destination) -> String| Column {
            head,
            rank,
            cells: shown.iter().map(cell).collect(),
        };
        let figures =
            |cell: &'static dyn Fn(&Figures) -> String| move |one: &Destination| cell(&one.figures);
        let mut columns = vec![
            column("destination", 0, &|one| shorten(&escape(&one.origin), NAME)),
            column("requests", 0, &|one| requests(&one.figures)),
            column("conns", 0, &figures(&|one| count(one.connections.opened))),
            column("needed", 1, &figures(&|one| count(one.connections.needed))),
            column("reused", 0, &|one| {
                let about = one.figures.reuse.map_or("", |_| about(&one.figures));
                format!(
                    "{about}{}",
                    reuse(one.figures.reuse, one.figures.reuse_range)
                )
            }),
            column("wasted", 0, &figures(&|one| maybe_time(one.wasted_ms))),
            column("share", 2, &figures(&|one| maybe_percent(one.wasted_share))),
            column(
                "setup",
                4,
                &figures(&|one| maybe_time(one.setup_mean_ms.total)),
            ),
            column("TLS", 6, &|one| tls(one)),
            column("HTTP", 5, &|one| join(one.protocols.keys().copied())),
            column("ended by", 8, &figures(&ended_by)),
            column("program", 7, &|one| {
                shorten(&escape(&join(one.programs())), 20)
            }),
        ];
        if shown.iter().any(|one| one.figures.requests.failures() > 0) {
            let failed = figures(&|one| match one.requests.total {
                0 => "-".to_owned(),
                _ => count(one.requests.failures()),
            });
            columns.insert(2, column("failed", 0, &failed));
        }
        self.table(columns);
        let more = facts.destinations.len() - shown.len();
        if more > 0 {
            self.wrapped(
                Some(Style::Faint),
                &format!("{more} more destinations: see --json"),
                "",
            );
        }
    }

    pub(super) fn stands_out(&mut self, findings: &[Finding]) {
        if findings.is_empty() {
            return;
        }
        let (notes, grave): (Vec<&Finding>, Vec<&Finding>) = findings
            .iter()
            .partition(|finding| finding.severity == Severity::Info);
        let mut hidden = 0;
        if !grave.is_empty() {
            self.title("What stands out, and what to change");
            for finding in grave.iter().take(FINDINGS) {
                self.one_finding(finding);
            }
            hidden += grave.len().saturating_sub(FINDINGS);
        }
        if !notes.is_empty() {
            self.trim();
            self.title("Worth a note");
            for finding in notes.iter().take(NOTES) {
                let said = format!("{} [{}]", claim(finding), finding.rule);
                self.wrapped(None, &said, "  ");
            }
            hidden += notes.len().saturating_sub(NOTES);
        }
        if hidden > 0 {
            let told = format!("{hidden} more findings: see --json");
            self.wrapped(Some(Style::Faint), &told, "");
        }
    }

    fn one_finding(&mut self, finding: &Finding) {
        let ink = (finding.severity != Severity::Info).then_some(Style::Alarm);
        let said = format!("{} [{}]", claim(finding), finding.rule);
        self.wrapped(ink, &said, "  ");
        self.wrapped(None, &escape(&finding.evidence), "  ");
        self.wrapped(None, &format!("-> {}", escape(&finding.fix)), "   ");
        if let Some(risk) = &finding.risk {
            self.wrapped(Some(Style::Faint), &format!("but: {}", escape(risk)), "   ");
        }
        self.line("");
    }

    fn gaps(&mut self, totals: &Figures) {
        let Some(gaps) = totals.idle_gaps.as_ref().filter(|gaps| gaps.count >= 10) else {
            return;
        };
        self.trim();
        self.title("Idle time before a connection was used again");
        self.gap_rows(gaps);
        if gaps.in_danger > 0 {
            let told = format!(
                "{} of {} came when the server was about to close, or had",
                count(gaps.in_danger),
                count(gaps.count)
            );
            self.wrapped(Some(Style::Alarm), &told, "");
        }
    }

    fn gap_rows(&mut self, gaps: &Gaps) {
        let room = self.paper.width.saturating_sub(36).clamp(10, 60);
        let most = gaps.buckets.iter().map(|(_, _, seen)| *seen).max();
        let most = most.unwrap_or(1).max(1);
        for &(from, to, seen) in gaps.buckets.iter().filter(|(_, _, seen)| *seen > 0) {
            let range = match to {
                Some(to) => format!("{} - {}", tick(from * 1e3), tick(to * 1e3)),
                None => format!("{} and more", tick(from * 1e3)),
            };
            let length = (seen * room as u64).div_ceil(most) as usize;
            let bar = self.paper.ink(Style::Reused, &"█".repeat(length));
            self.line(&format!("  {range:>20}  {:>8}  {bar}", count(seen)));
        }
    }

    fn cold_and_warm(&mut self, totals: &Figures) {
        let Some(Phases {
            fresh: cold,
            reused: warm,
        }) = &totals.phases_ms
        else {
            return;
        };
        let rows = [("fresh", cold), ("reused", warm)];
        let rows = rows
            .into_iter()
            .filter(|(_, phases)| phases.values().any(Option::is_some));
        let rows: Vec<_> = rows.collect();
        let names = rows.iter().map(|(name, _)| (*name).to_owned()).collect();
        let columns = phases::columns("connection", names, |row, phase| {
            Some(rows[row].1.get(phase.id())?.as_ref()?.mean)
        });
        if columns.len() > 1 {
            self.trim();
            self.title("Phases, mean over the requests that had them");
            self.table(columns);
        }
    }

    fn processor_time(&mut self, facts: &ObservedFacts) {
        let Some(cpu) = &facts.cpu else { return };
        self.trim();
        self.title("Processor time");
        for line in cpu::lines(cpu) {
            self.wrapped(None, &escape(&line), "  ");
        }
    }

    fn limits(&mut self, facts: &ObservedFacts) {
        let inferred = &facts.totals.inferred;
        if facts.caveats.is_empty() && inferred.is_empty() {
            return;
        }
        self.trim();
        self.line("");
        if !inferred.is_empty() {
            let told = format!("~ worked out, not seen: {}", escape(&inferred.join("; ")));
            self.wrapped(Some(Style::Faint), &told, "  ");
        }
        for caveat in &facts.caveats {
            let told = format!("caveat: {}", escape(&caveat.message));
            self.wrapped(Some(Style::Alarm), &told, "  ");
        }
    }

    /// Leaves no more than one line break at the end.
    fn trim(&mut self) {
        while self.text.ends_with("\n\n") {
            self.text.pop();
        }
    }
}

fn about(figures: &Figures) -> &'static str {
    if figures.inferred.is_empty() { "" } else { "~" }
}

/// Subject, claim and cost of a finding.
fn claim(finding: &Finding) -> String {
    let cost = match (finding.cost_ms, finding.cost_share) {
        (Some(ms), Some(share)) if ms > 0.0 => {
            format!(", costs {} ({})", time(ms), percent(share))
        }
        (Some(ms), None) if ms > 0.0 => format!(", costs {}", time(ms)),
        _ => String::new(),
    };
    format!(
        "{}: {}{cost}",
        escape(&finding.subject),
        escape(&finding.claim)
    )
}

/// The count of requests; a dash where connections do not show theirs.
fn requests(figures: &Figures) -> String {
    match figures.requests.total {
        0 if figures.opaque > 0 => "-".to_owned(),
        total => format!("{}{}", about(figures), count(total)),
    }
}

fn join<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let words: Vec<&str> = words.collect();
    if words.is_empty() {
        "-".to_owned()
    } else {
        words.join(", ")
    }
}

/// Cuts the middle out of a long name.
fn shorten(name: &str, width: usize) -> String {
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= width {
        return name.to_owned();
    }
    // of a client the beginning tells it from others, of an origin both ends
    let half = match name.strip_prefix("client ") {
        Some(client) => return shorten_end(client, width),
        None => (width - 1) / 2,
    };
    let head: String = letters[..width - 1 - half].iter().collect();
    let tail: String = letters[letters.len() - half..].iter().collect();
    format!("{head}…{tail}")
}

fn shorten_end(name: &str, width: usize) -> String {
    if name.chars().count() <= width {
        return name.to_owned();
    }
    name.chars().take(width - 1).chain(['…']).collect()
}

fn tls(one: &Destination) -> String {
    let mut told: Vec<String> = Vec::new();
    for kind in &one.tls {
        let version = kind.version.map_or("?", |version| version.as_str());
        if !told.iter().any(|known| known == version) {
            told.push(version.to_owned());
        }
    }
    join(told.iter().map(String::as_str))
}

fn ended_by(figures: &Figures) -> String {
    let ends: Vec<String> = figures
        .connections
        .ended_by
        .iter()
        .map(|(by, seen)| format!("{by} {}", count(*seen)))
        .collect();
    join(ends.iter().map(String::as_str))
}
