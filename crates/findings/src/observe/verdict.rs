//! The first sentences of a page: what the waste is, where most of it goes, what could not be seen.

use super::books::Books;
use super::facts::{Destination, Figures};
use crate::finding::{Finding, Severity};
use crate::words::{many, ms, percent};
use ledger::Vantage;

pub(super) fn sentences(
    books: &Books,
    totals: &Figures,
    destinations: &[Destination],
    findings: &[Finding],
) -> Vec<String> {
    let mut said = vec![first(books, totals)];
    if let Some(dearest) = destinations.first()
        && destinations.len() > 1
        && totals.avoidable > 0
        && dearest.figures.avoidable > 0
    {
        said.push(format!(
            "Most of it goes to {}: {} where {} would do{}",
            dearest.origin,
            many(dearest.figures.connections.opened, "connection"),
            dearest.figures.connections.needed,
            dearest
                .figures
                .wasted_ms
                .map_or(String::new(), |wasted| format!(
                    ", {} of set-up",
                    ms(wasted)
                ))
        ));
    }
    let mut broken: Vec<&str> = findings
        .iter()
        .filter(|finding| finding.severity == Severity::Error)
        .map(|finding| finding.rule)
        .collect();
    broken.dedup();
    if !broken.is_empty() {
        said.push(format!(
            "Beside the cost, something breaks: {}",
            broken.join(", ")
        ));
    }
    said
}

fn first(books: &Books, totals: &Figures) -> String {
    let opened = totals.connections.opened;
    let needed = totals.connections.needed;
    let requests = totals.requests.total;
    let whose = if books.all.pids.is_empty() && books.run().vantage != Vantage::Client {
        "the time of these requests"
    } else {
        "the program's outbound time"
    };
    let connections = many(opened, "connection");
    let were = if opened == 1 { "was" } else { "were" };
    let about = if totals.inferred.is_empty() { "" } else { "~" };
    if opened == 0 && requests == 0 {
        return match totals.connections.failed.values().sum::<u64>() {
            0 if books
                .caveats
                .iter()
                .any(|caveat| caveat.id.starts_with("unwatched-")) =>
            {
                "No connection was followed: whether any is reused cannot be told".to_owned()
            }
            0 => "No connection was opened: nothing to reuse".to_owned(),
            failed => {
                let kinds = totals.connections.failed.iter();
                let kinds: Vec<String> = kinds
                    .map(|(kind, count)| format!("{kind} {count}"))
                    .collect();
                format!(
                    "No connection could be opened: {} failed ({})",
                    many(failed, "attempt"),
                    kinds.join(", ")
                )
            }
        };
    }
    if requests == 0 {
        return format!(
            "{connections} {were} opened; what they carried cannot be seen, so neither can reuse"
        );
    }
    let reuse = match totals.reuse {
        Some(reuse) => format!(
            "{about}{} of {about}{requests} requests reused a connection",
            percent(reuse)
        ),
        None => {
            format!("{about}{requests} requests; whether they reused a connection cannot be seen")
        }
    };
    if opened == 0 {
        return reuse;
    }
    if totals.avoidable == 0 {
        return format!("Nothing to gain: {reuse}, and {connections} {were} needed");
    }
    match (totals.wasted_share, totals.outbound_ms) {
        (Some(share), Some(outbound)) => format!(
            "{} of {whose} is set-up of connections that were not needed: {opened} were opened where {needed} would do, {} lost; {reuse}",
            percent(share),
            ms(share * outbound)
        ),
        _ => format!("{connections} {were} opened where {needed} would do; {reuse}"),
    }
}
