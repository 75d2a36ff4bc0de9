//! The report of a campaign, for a terminal and as JSON. Must not compute.

use crate::terminal::{self, TerminalOptions};
use intact_findings::fleet::CampaignFacts;
use intact_units::number;
use serde_json::{Value, json};
use std::fmt::Write;

/// Dead letters that the page names; the JSON has all.
const NAMED: usize = 10;

/// The report of a campaign.
pub fn terminal(facts: &CampaignFacts, paper: TerminalOptions) -> String {
    let progress = &facts.messages;
    let mut page = format!(
        "intact fleet {}\n  {} of {} messages have a result",
        facts.plan,
        number::count(progress.finished),
        number::count(progress.planned)
    );
    if progress.missing > 0 {
        let _ = write!(page, ", {} are missing", number::count(progress.missing));
    }
    if progress.duplicates > 0 {
        let _ = write!(
            page,
            "; {} results of further deliveries are not counted",
            number::count(progress.duplicates)
        );
    }
    page.push_str(".\n");
    if !progress.dead.is_empty() {
        let _ = writeln!(page, "  {} were given up:", progress.dead.len());
        for letter in progress.dead.iter().take(NAMED) {
            let _ = writeln!(page, "    {}: {}", letter.message, letter.reason);
        }
    }
    for outlier in &facts.outliers {
        let _ = writeln!(
            page,
            "  worker {} stands out: {} of its {} messages took {:.1} times the median of their kind (a cold function, a noisy host?)",
            outlier.worker, outlier.far, outlier.messages, outlier.factor
        );
    }
    for one in &facts.benches {
        let _ = writeln!(page, "\n{} from {}", one.target, one.label);
        page.push_str(&terminal::bench(&one.run, &one.facts, paper));
    }
    for one in &facts.checks {
        let _ = writeln!(page, "\n{} from {}", one.target, one.label);
        page.push_str(&terminal::cards(&one.facts, paper));
    }
    page
}

/// The same as JSON.
pub fn json(facts: &CampaignFacts) -> serde_json::Result<String> {
    let mut groups = Vec::new();
    for one in &facts.benches {
        let bench = crate::json::bench_value(&one.run, &one.facts)?;
        groups.push(json!({"target": one.target, "label": one.label, "bench": bench}));
    }
    let checks: Vec<Value> = facts
        .checks
        .iter()
        .map(|one| json!({"target": one.target, "label": one.label, "cards": one.facts}))
        .collect();
    let document = json!({
        "schema": "intact.fleet/1",
        "plan": facts.plan,
        "messages": facts.messages,
        "outliers": facts.outliers,
        "groups": groups,
        "checks": checks,
    });
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}
