//! The metrics of `--require`, from findings' own table: a list for a terminal.

use crate::terminal::wrap;
use intact_document::requirement::{Dimension, DocumentKind, FIGURES, SELECTORS};
use std::fmt::Write;

/// The grammar of a requirement.
pub(crate) const FORM: &str = "[selector(,selector)*:] metric op value[unit]";

/// Columns of a name and the spaces around it.
const NAMES: usize = 29;

/// The metrics and selectors of one command, as text of this width.
pub fn text(document: DocumentKind, width: usize) -> String {
    let command = document.command();
    let mut out = format!("--require '{FORM}'    op: < <= > >= == !=\n\nMetrics of `{command}`:\n");
    for entry in FIGURES
        .iter()
        .filter(|entry| entry.documents.contains(&document))
    {
        let (meaning, units) = (entry.meaning, units(entry.dimension));
        push(&mut out, entry.name, &format!("{meaning} [{units}]"), width);
    }
    out.push_str("\nSelectors (none: all subjects):\n");
    for entry in SELECTORS
        .iter()
        .filter(|entry| entry.documents.contains(&document))
    {
        push(&mut out, entry.key, entry.meaning, width);
    }
    out
}

/// A name with its meaning, which has a column of its own.
fn push(out: &mut String, name: &str, meaning: &str, width: usize) {
    let meanings = width.saturating_sub(NAMES).max(NAMES);
    for (nth, line) in wrap(meaning, meanings, "").iter().enumerate() {
        let name = if nth == 0 { name } else { "" };
        let _ = writeln!(out, "  {name:<26} {line}");
    }
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
