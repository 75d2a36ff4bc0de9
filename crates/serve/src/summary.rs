//! The page at the end of a server's run: per HTTP version the connections, the requests on each,
//! and which side closed them. Must not print: the caller does.

use crate::totals::{Totals, UpstreamCalls, Version};
use intact_ledger::Handshake;
use intact_units::number::{count, percent};
use intact_units::plural::counted;
use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::fmt::Display;

/// The page.
pub fn summary(totals: &Totals) -> String {
    let connections = &totals.connections;
    let mut page = format!(
        "\n{} on {}",
        counted(totals.requests.total, "request"),
        counted(connections.opened, "connection")
    );
    if let Some(reuse) = totals.reuse {
        page += &format!("; {} reused one", percent(reuse));
    }
    if connections.open > 0 {
        page += &format!("; {} still open", count(connections.open));
    }
    page += "\n";
    for version in &totals.versions {
        page += &line(version);
    }
    let used: u64 = totals
        .versions
        .iter()
        .map(|version| version.connections)
        .sum();
    let failed: u64 = connections.failed.values().sum();
    let unused = connections.opened.saturating_sub(used + failed);
    if unused > 0 {
        page += &format!("  without a request: {}\n", counted(unused, "connection"));
    }
    let handshakes = connections.handshakes.iter().map(|handshakes| {
        let version = handshakes
            .tls
            .map_or("of an unknown version", |tls| tls.as_str());
        let kind = match handshakes.kind {
            Some(Handshake::Full) => "full",
            Some(Handshake::Resumed) => "resumed",
            Some(Handshake::EarlyData) => "with early data",
            None => "of an unknown kind",
        };
        (format!("{version} {kind}"), handshakes.count)
    });
    for (name, counts) in [
        ("TLS handshakes", listed(handshakes)),
        ("failed handshakes", listed(&connections.failed)),
        ("failed requests", listed(&totals.requests.failed)),
        ("faults made", listed(&totals.faults)),
        (
            "calls to the upstream",
            totals.upstream.as_ref().map_or_else(String::new, calls),
        ),
        (
            "queries to the name server",
            totals.lookups.as_ref().map_or_else(String::new, |lookups| {
                with_failed(count(lookups.total), &lookups.failed)
            }),
        ),
        ("disturbed by the script", listed(&totals.disturbed)),
    ] {
        if !counts.is_empty() {
            page += &wrapped(&format!("{name}: {counts}"));
        }
    }
    page
}

/// `12 on 3 connections, of which failed: reset 1`.
fn calls(calls: &UpstreamCalls) -> String {
    let on = counted(calls.connections, "connection");
    with_failed(format!("{} on {on}", count(calls.total)), &calls.failed)
}

/// `12, of which failed: nxdomain 3`.
fn with_failed<K: Display>(total: String, failed: &BTreeMap<K, u64>) -> String {
    match listed(failed) {
        failed if failed.is_empty() => total,
        failed => format!("{total}, of which failed: {failed}"),
    }
}

fn line(version: &Version) -> String {
    let mean = version.requests_per_connection_mean;
    let each = match (mean, version.requests_per_connection_max) {
        (Some(mean), Some(max)) => {
            format!(", {mean:.1} on each that ended, at most {}", count(max))
        }
        _ => String::new(),
    };
    let ended = listed(&version.ended_by);
    format!(
        "  HTTP/{:<3}  {} on {}{each}\n            ended by: {}\n",
        version.http.as_str(),
        counted(version.requests, "request"),
        counted(version.connections, "connection"),
        if ended.is_empty() { "none" } else { &ended },
    )
}

/// `client 3, server 1`.
fn listed(counts: impl IntoIterator<Item = (impl Display, impl Borrow<u64>)>) -> String {
    let parts: Vec<String> = counts
        .into_iter()
        .map(|(name, number)| format!("{name} {}", count(*number.borrow())))
        .collect();
    parts.join(", ")
}

/// Lines of up to 80 columns, broken behind commas.
fn wrapped(text: &str) -> String {
    let mut lines = String::new();
    let mut column = 0;
    for part in text.split_inclusive(", ") {
        if column > 0 && column + part.trim_end().len() > 80 {
            lines.truncate(lines.trim_end().len());
            lines += "\n  ";
            column = 2;
        }
        lines += part;
        column += part.len();
    }
    lines + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_broken_behind_commas() {
        let parts: Vec<String> = (10..40).map(|number| format!("kind {number}")).collect();
        let list = parts.join(", ");
        let lines = wrapped(&list);
        assert!(lines.lines().all(|line| line.len() <= 80), "{lines}");
        assert!(lines.lines().count() > 2);
        let back: Vec<&str> = lines.lines().map(str::trim_start).collect();
        assert_eq!(back.join(" "), list);
    }
}
