//! The page of many cards of one server from one place, as a campaign collects them.

use super::page::Page;
use super::table::Column;
use super::{Style, TerminalOptions, escape};
use intact_findings::Severity;
use intact_findings::fleet::{CardsFacts, Spread};
use intact_units::number::{count, time};

/// The page of many cards.
pub fn cards(facts: &CardsFacts, paper: TerminalOptions) -> String {
    let mut page = Page::on(paper);
    page.wrapped(
        Some(Style::Faint),
        &format!(
            "{} checks with {} requests",
            count(facts.cards),
            count(facts.requests)
        ),
        "",
    );
    for (nth, sentence) in gist(facts).iter().enumerate() {
        page.wrapped((nth == 0).then_some(Style::Strong), sentence, "  ");
    }
    figures(&mut page, facts);
    if !facts.findings.is_empty() {
        page.title("What stands out");
    }
    for finding in &facts.findings {
        let ink = (finding.severity > Severity::Info).then_some(Style::Alarm);
        let told = format!(
            "{} {}, in {}: {}",
            finding.severity.as_str(),
            finding.rule,
            of_all(finding.cards, facts),
            escape(&finding.claim)
        );
        page.wrapped(ink, &told, "  ");
    }
    for (probe, why, cards) in &facts.skipped {
        let told = format!(
            "not probed in {}: {}, {}",
            of_all(*cards, facts),
            escape(probe),
            escape(why)
        );
        page.wrapped(Some(Style::Faint), &told, "  ");
    }
    page.text
}

/// The gist in a few sentences.
fn gist(facts: &CardsFacts) -> Vec<String> {
    let mut told = Vec::new();
    if facts.cards == 0 {
        return vec!["No check has a result.".to_owned()];
    }
    match (facts.kept, facts.not_kept) {
        (0, 0) => {}
        (_, 0) => told.push("Connections are kept alive.".to_owned()),
        (0, _) => told.push("Connections are closed after each answer.".to_owned()),
        (kept, not_kept) => told.push(format!(
            "Connections are kept alive in {}, closed after each answer in {}: servers behind this name differ.",
            of_all(kept, facts),
            of_all(not_kept, facts)
        )),
    }
    if let (Some(cold), Some(warm)) = (facts.fresh_ms, facts.reused_ms) {
        told.push(format!(
            "A request takes {} on a new connection, {} on a reused one.",
            time(cold.median),
            time(warm.median)
        ));
    }
    for (kind, cards) in &facts.failed {
        told.push(format!(
            "The first request failed in {}: {kind}.",
            of_all(*cards, facts)
        ));
    }
    told
}

fn figures(page: &mut Page, facts: &CardsFacts) {
    let seconds = |value: f64| format!("{} s", (value * 10.0).round() / 10.0);
    let whole = |value: f64| format!("{value:.0}");
    let at_least = |value: String| format!("at least {value}");
    type Words<'a> = &'a dyn Fn(f64) -> String;
    let rows: [(&str, Option<Spread>, Words<'_>); 7] = [
        ("idle limit", facts.idle_timeout_s, &seconds),
        ("idle limit", facts.idle_timeout_at_least_s, &|value| {
            at_least(seconds(value))
        }),
        ("announced", facts.idle_timeout_announced_s, &seconds),
        ("requests a connection", facts.max_requests, &whole),
        (
            "requests a connection",
            facts.max_requests_at_least,
            &|value| at_least(whole(value)),
        ),
        ("new connection", facts.fresh_ms, &time),
        ("reused connection", facts.reused_ms, &time),
    ];
    let rows: Vec<_> = rows
        .iter()
        .filter_map(|(name, spread, words)| spread.map(|spread| (name, spread, words)))
        .collect();
    if rows.is_empty() {
        return;
    }
    page.title("Over all cards");
    let column = |head, rank, cell: &dyn Fn(&Spread, Words<'_>) -> String| Column {
        head,
        rank,
        cells: rows
            .iter()
            .map(|(_, spread, words)| cell(spread, words))
            .collect(),
    };
    let names = rows.iter().map(|(name, ..)| (**name).to_owned()).collect();
    page.table(vec![
        Column {
            head: "figure",
            rank: 0,
            cells: names,
        },
        column("middle", 0, &|spread, words| words(spread.median)),
        column("smallest", 1, &|spread, words| words(spread.min)),
        column("largest", 1, &|spread, words| words(spread.max)),
        column("cards", 2, &|spread, _| count(spread.cards)),
    ]);
}

/// `3 of 4 cards`.
fn of_all(cards: u64, facts: &CardsFacts) -> String {
    if cards == facts.cards {
        "all cards".to_owned()
    } else {
        format!("{} of {} cards", count(cards), count(facts.cards))
    }
}
