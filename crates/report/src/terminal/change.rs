//! What changed over time, in two lines.

use super::number::{count, percent, time};
use super::page::Page;
use super::{Ink, Paper};
use findings::change::{ChangeFacts, SideFacts};

/// A step in latency; `at` is its wall time.
pub fn change(change: &ChangeFacts, at: &str, paper: Paper) -> String {
    let mut page = Page::on(paper);
    page.title("What changed over time");
    page.wrapped(
        Some(Ink::Strong),
        &format!(
            "From {at} on (within {}) a request took {} instead of {}",
            time(change.within_ms),
            time(change.after.latency_ms),
            time(change.before.latency_ms)
        ),
        "  ",
    );
    for (name, side) in [("before", change.before), ("after", change.after)] {
        page.wrapped(None, &words(name, side), "  ");
    }
    let told = "latencies are geometric means; that one came with the other is no proof that it caused it (`intact compare` gives one)";
    page.wrapped(Some(Ink::Faint), told, "  ");
    page.text
}

fn words(name: &str, side: SideFacts) -> String {
    format!(
        "{name}: {} requests, {} of them reused a connection, {:.2} new connections a request",
        count(side.requests),
        percent(side.reuse),
        side.opened_per_request
    )
}
