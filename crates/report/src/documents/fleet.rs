//! The page of many checks of one server from one place, as a campaign collects them.

use crate::page::*;
use intact_findings::Severity;
use intact_findings::fleet::{CardsFacts, Spread};
use intact_units::Quantity::{Count, Time, Timer};

/// The page of these checks.
pub fn cards<'a>(facts: &CardsFacts, subject: String) -> Page<'a> {
    let mut page = Page {
        command: "fleet".to_owned(),
        subject,
        verdict: verdict(facts),
        facts: vec![
            Fact::counted(facts.cards, "check"),
            Fact::counted(facts.requests, "request"),
        ],
        ..Page::default()
    };
    page.section(figures(facts));
    let findings = facts.findings.iter().map(|finding| {
        let emphasis = match finding.severity {
            Severity::Info => Emphasis::Normal,
            Severity::Warning | Severity::Error => Emphasis::Alarm,
        };
        let (severity, claim) = (finding.severity.as_str(), Text::prose(&finding.claim));
        let words = "{} {}, in {}: {}";
        Block::Paragraph(
            emphasis,
            text!(
                words,
                severity,
                finding.rule,
                of_all(finding.cards, facts),
                claim
            ),
        )
    });
    page.section(
        Section::new("findings", "What stands out").summary(findings.collect::<Vec<Block>>()),
    );
    let skipped = facts
        .skipped
        .iter()
        .map(|(probe, why, cards)| note(text!("{}, in {}: {}", probe, of_all(*cards, facts), why)));
    page.section(Section::new("skipped", "Not probed").summary(skipped.collect::<Vec<Block>>()));
    page
}

fn verdict(facts: &CardsFacts) -> Vec<Text> {
    if facts.cards == 0 {
        return vec!["No check has a result.".into()];
    }
    let kept = match (facts.kept, facts.not_kept) {
        (0, 0) => None,
        (_, 0) => Some("Connections are kept alive.".into()),
        (0, _) => Some("Connections are closed after each response.".into()),
        (kept, not_kept) => {
            let words = "Connections are kept alive in {}, closed after each response in {}: servers with this name differ.";
            Some(text!(words, of_all(kept, facts), of_all(not_kept, facts)))
        }
    };
    let latency = facts.fresh_ms.zip(facts.reused_ms).map(|(fresh, reused)| {
        let words = "A request takes {} on a new connection, {} on a reused one.";
        text!(words, Time(fresh.median), Time(reused.median))
    });
    let failed = facts.failed.iter().map(|(kind, cards)| {
        text!(
            "The first request failed in {}: {}.",
            of_all(*cards, facts),
            *kind
        )
    });
    kept.into_iter().chain(latency).chain(failed).collect()
}

/// A figure over all checks, and how it is printed.
type Figure = (&'static str, Option<Spread>, fn(f64) -> Cell);

fn figures(facts: &CardsFacts) -> Section {
    let rows: [Figure; 7] = [
        ("idle limit", facts.idle_timeout_s, |s| {
            Timer(s * 1e3).into()
        }),
        ("idle limit", facts.idle_timeout_at_least_s, |s| {
            at_least(Timer(s * 1e3))
        }),
        ("announced", facts.idle_timeout_announced_s, |s| {
            Timer(s * 1e3).into()
        }),
        ("requests per connection", facts.max_requests, |n| {
            Count(n as u64).into()
        }),
        (
            "requests per connection",
            facts.max_requests_at_least,
            |n| at_least(Count(n as u64)),
        ),
        ("new connection", facts.fresh_ms, |ms| Time(ms).into()),
        ("reused connection", facts.reused_ms, |ms| Time(ms).into()),
    ];
    let rows = rows
        .into_iter()
        .filter_map(|(name, spread, print)| Some((name, spread?, print)));
    let rows: Vec<_> = rows.collect();
    let table = Rows::of(&rows)
        .column("figure", |(name, ..)| *name)
        .column("median", |(_, spread, print)| print(spread.median))
        .ranked(1, "smallest", |(_, spread, print)| print(spread.min))
        .ranked(1, "largest", |(_, spread, print)| print(spread.max))
        .ranked(2, "checks", |(_, spread, _)| spread.cards);
    Section::new("figures", "Over all checks").summary(table.table())
}

fn at_least(value: Quantity) -> Cell {
    Cell::measured(None, Some(value))
}

/// `3 of 4 checks`.
fn of_all(cards: u64, facts: &CardsFacts) -> Text {
    if cards == facts.cards {
        "all checks".into()
    } else {
        text!("{} of {} checks", cards, facts.cards)
    }
}
