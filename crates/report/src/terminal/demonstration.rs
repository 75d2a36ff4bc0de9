//! The last words of the demonstration: what a connection costs, and the next command to type.

use super::page::Page;
use super::{Style, TerminalOptions};
use intact_findings::bench::BenchFacts;
use intact_units::number::{time, whole_percent};

/// The lines below the page of a demonstration.
pub fn demonstration(facts: &BenchFacts, paper: TerminalOptions) -> String {
    let mut page = Page::on(paper);
    let saved = facts.comparisons.iter().find_map(|compared| {
        let share = compared.saved_share.as_ref()?;
        let about = compared.axis.as_deref() == Some("keepalive") && compared.statistic == "mean";
        (about && share.value > 0.0).then_some((compared, share))
    });
    if let Some((compared, share)) = saved {
        let sentence = format!(
            "A request on a new connection takes {}, on a reused one {}: {} of the time is waste.",
            time(compared.a_ms),
            time(compared.b_ms),
            whole_percent(share.value)
        );
        page.line("");
        page.wrapped(Some(Style::Strong), &sentence, "");
    }
    page.wrapped(None, "Now yours: intact bench https://your.server/", "");
    page.text
}
