//! The last lines of an audit's page: what was read, and by what evidence.

use super::page::Page;
use super::{Style, TerminalOptions, escape};
use crate::inputs::InputFacts;
use intact_units::number::count;

/// Inputs that the page names.
const SHOWN: usize = 20;

/// What was read of each input.
pub fn inputs(inputs: &[InputFacts], paper: TerminalOptions) -> String {
    let mut page = Page::on(paper);
    page.line("");
    for one in inputs.iter().take(SHOWN) {
        let skipped = match one.skipped {
            0 => String::new(),
            skipped => format!(", {} of them of no use here", count(skipped)),
        };
        let evidence = one
            .evidence
            .as_deref()
            .map_or(String::new(), |evidence| format!("; {evidence}"));
        let told = format!(
            "read: {} ({}), {} {}{skipped}{evidence}",
            escape(&one.name),
            one.format,
            count(one.read),
            one.unit,
        );
        page.wrapped(Some(Style::Faint), &told, "  ");
        if !one.advice.is_empty() {
            page.line("");
            page.wrapped(
                None,
                "To make it tell, put this into the configuration:",
                "",
            );
            // never wrapped: it is there to be pasted
            for line in &one.advice {
                page.line(line);
            }
            page.line("");
        }
    }
    if inputs.len() > SHOWN {
        let told = format!("read: {} more files, see --json", inputs.len() - SHOWN);
        page.wrapped(Some(Style::Faint), &told, "");
    }
    page.text
}
