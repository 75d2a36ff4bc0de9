//! The page, and the files that were asked for.

use super::Args;
use crate::cmd::json;
use crate::console;
use anyhow::Context;
use intact_findings::lambda::LambdaFacts;
use intact_ledger::Run;
use intact_report::page::LambdaRun;

/// Writes them; JSON on standard output takes the place of the page.
pub(super) fn write(args: &Args, run: &Run, facts: &LambdaFacts) -> anyhow::Result<()> {
    if let Some(path) = &args.csv {
        std::fs::write(
            path,
            intact_report::invocations::csv(run, &facts.invocations),
        )
        .with_context(|| format!("--csv {}: cannot be written", path.display()))?;
    }
    if let Some(file) = &args.report {
        file.write(&[LambdaRun { run, facts }.into()])?;
    }
    let to = args.json.as_deref();
    json::tell(to, || intact_report::json::lambda(run, facts))?;
    if !json::takes_output(to) {
        console::print(&intact_report::terminal::lambda(
            run,
            facts,
            console::paper(),
        ));
    }
    Ok(())
}
