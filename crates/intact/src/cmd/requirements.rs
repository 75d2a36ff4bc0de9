//! `--require`, the same for every command: read before anything runs, held at the end, listed by `--require help`.

use crate::console;
use crate::exit::Failed;
use anyhow::anyhow;
#[cfg(feature = "fleet")]
use intact_findings::requirement::MetricSource;
use intact_findings::requirement::{Document, Requirement};

/// Prints what can be asked of this command, if that was asked.
pub(crate) fn list_if_asked(expressions: &[String], document: Document) -> bool {
    let asked = expressions
        .iter()
        .any(|expression| expression.trim() == "help");
    if asked {
        console::print(&intact_report::catalogue::text(document));
    }
    asked
}

/// Reads the requirements before anything is sent.
pub(crate) fn parse(
    expressions: &[String],
    document: Document,
) -> Result<Vec<Requirement>, Failed> {
    let mut requirements = Vec::new();
    for expression in expressions {
        let requirement: Requirement = expression
            .parse()
            .map_err(|fault| Failed::usage(anyhow!("--require: {fault}")))?;
        requirement
            .check_for(document)
            .map_err(|fault| Failed::usage(anyhow!("--require: {fault}")))?;
        requirements.push(requirement);
    }
    Ok(requirements)
}

/// Holds the facts against the requirements and says what came of each; to standard error, so that JSON stays alone.
#[cfg(feature = "fleet")]
pub(crate) fn hold(requirements: &[Requirement], facts: &impl MetricSource) -> bool {
    let mut kept = true;
    for requirement in requirements {
        let verdict = requirement.evaluate(facts);
        kept &= verdict.passed();
        console::note(&verdict.to_string());
    }
    kept
}
