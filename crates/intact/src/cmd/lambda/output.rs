//! The page, and the files that were asked for.

use super::Args;
use crate::cmd::json;
use crate::cmd::page::write_all;
use crate::console;
use anyhow::Context;
use intact_findings::lambda::LambdaFacts;
use intact_findings::requirement::Verdict;
use intact_ledger::Run;
use intact_report::documents::{LambdaRun, Source};

/// Writes them; JSON on standard output takes the place of the page.
pub(super) fn write(
    args: &Args,
    run: &Run,
    facts: &LambdaFacts,
    verdicts: &[Verdict],
) -> anyhow::Result<()> {
    if let Some(path) = &args.csv {
        std::fs::write(
            path,
            intact_report::invocations::csv(run, &facts.invocations),
        )
        .with_context(|| format!("--csv {}: cannot be written", path.display()))?;
    }
    let mut page = Source::Lambda(LambdaRun { run, facts }).page();
    page.requirements = verdicts.to_vec();
    let to = args.json.as_deref();
    json::tell(to, || intact_report::json::lambda(run, facts))?;
    if !json::takes_output(to) {
        console::print(&intact_report::terminal::write(&page, console::paper()));
    }
    write_all(&args.report, &[page])?;
    Ok(())
}
