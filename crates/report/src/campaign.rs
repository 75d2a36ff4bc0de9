//! The report of a campaign, for a terminal and as JSON. Must not compute.

use crate::terminal::{self, TerminalOptions};
use intact_findings::fleet::{CampaignFacts, CardsFacts, Outlier};
use intact_ledger::CampaignProgress;
use intact_units::number;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
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

/// The schema of a campaign's document.
pub const SCHEMA: &str = "intact.fleet/1";

/// The merged results of a campaign.
#[derive(Serialize, JsonSchema)]
pub struct CampaignDocument<'a> {
    /// `intact.fleet/1`.
    schema: &'static str,
    /// The plan's name, and the first 8 hexadecimal digits of the SHA-256 of its content.
    plan: &'a str,
    /// How many messages are in which state.
    messages: &'a CampaignProgress,
    /// Workers most of whose messages took far longer than others of their kind.
    outliers: &'a [Outlier],
    /// The benches, by target and label, in the plan's order.
    groups: Vec<Group<'a>>,
    /// The checks, by target and label, in the plan's order.
    checks: Vec<Checks<'a>>,
}

/// All bench messages of a target and label.
#[derive(Serialize, JsonSchema)]
struct Group<'a> {
    /// The target's name in the plan.
    target: &'a str,
    /// The label of the workers.
    label: &'a str,
    /// One bench whose rounds are the repetitions, see bench.schema.json.
    bench: Value,
}

/// All check messages of a target and label.
#[derive(Serialize, JsonSchema)]
struct Checks<'a> {
    /// The target's name in the plan.
    target: &'a str,
    /// The label of the workers.
    label: &'a str,
    /// The server profiles, merged; each alone is in the store.
    cards: &'a CardsFacts,
}

/// The same as JSON.
pub fn json(facts: &CampaignFacts) -> serde_json::Result<String> {
    let groups = facts.benches.iter().map(|one| {
        Ok(Group {
            target: &one.target,
            label: &one.label,
            bench: crate::json::bench_value(&one.run, &one.facts)?,
        })
    });
    let checks = facts.checks.iter().map(|one| Checks {
        target: &one.target,
        label: &one.label,
        cards: &one.facts,
    });
    let document = CampaignDocument {
        schema: SCHEMA,
        plan: &facts.plan,
        messages: &facts.messages,
        outliers: &facts.outliers,
        groups: groups.collect::<serde_json::Result<_>>()?,
        checks: checks.collect(),
    };
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}
