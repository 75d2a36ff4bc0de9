//! The metrics of `--require`, from findings' own table: a list for a terminal.

use intact_findings::requirement::{Dimension, Document, METRICS, SELECTORS};
use std::fmt::Write;

/// The grammar of a requirement.
pub(crate) const FORM: &str = "[selector(,selector)*:] metric op value[unit]";

/// The metrics and selectors of one command, as text.
pub fn text(document: Document) -> String {
    let command = document.command();
    let mut out = format!("--require '{FORM}'    op: < <= > >= == !=\n\nMetrics of `{command}`:\n");
    for entry in METRICS
        .iter()
        .filter(|entry| entry.documents.contains(&document))
    {
        let (name, meaning, units) = (entry.name, entry.meaning, units(entry.dimension));
        let _ = writeln!(out, "  {name:<26} {meaning} [{units}]");
    }
    out.push_str("\nSelectors (none: all subjects):\n");
    for entry in SELECTORS
        .iter()
        .filter(|entry| entry.documents.contains(&document))
    {
        let _ = writeln!(out, "  {:<26} {}", entry.key, entry.meaning);
    }
    out
}

/// The units that a value of this dimension may have.
pub fn units(dimension: Dimension) -> &'static str {
    match dimension {
        Dimension::Count | Dimension::Ratio => "a number",
        Dimension::Share => "%, or 0 to 1",
        Dimension::Time => "ns us ms s min h",
        Dimension::Rate => "/s",
        Dimension::Bytes => "B kB MB KiB MiB",
    }
}
