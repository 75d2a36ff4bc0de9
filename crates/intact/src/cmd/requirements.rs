//! `--require`, the same for every command: read before anything runs, held at the end, listed by
//! `--require help`.

use crate::console;
use crate::exit::Failed;
use anyhow::anyhow;
#[cfg(feature = "fleet")]
use intact_document::Facts;
use intact_document::requirement::{DocumentKind, Requirement};
use intact_findings::check_requirement;
use intact_report::terminal::Length;

/// Reads the requirements before anything is sent. Where one of them is `help`, what can be asked
/// is printed, and the command ends.
pub(crate) fn begin(
    expressions: &[String],
    document: DocumentKind,
) -> Result<Vec<Requirement>, Failed> {
    if expressions.iter().any(|one| one.trim() == "help") {
        let width = console::paper(Length::Full).width;
        console::print(&intact_report::catalogue::text(document, width));
        return Err(Failed::helped());
    }
    let mut requirements = Vec::new();
    for expression in expressions {
        let requirement: Requirement = expression
            .parse()
            .map_err(|fault| Failed::usage(anyhow!("--require: {fault}")))?;
        check_requirement(&requirement, document)
            .map_err(|fault| Failed::usage(anyhow!("--require: {fault}")))?;
        requirements.push(requirement);
    }
    Ok(requirements)
}

/// Compares the facts with the requirements and prints each result; to standard error, so that JSON
/// stays alone.
#[cfg(feature = "fleet")]
pub(crate) fn hold(requirements: &[Requirement], facts: &dyn Facts) -> bool {
    let mut kept = true;
    for requirement in requirements {
        let verdict = requirement.evaluate(facts);
        kept &= verdict.passed();
        console::note_lines(&verdict.to_string());
    }
    kept
}
