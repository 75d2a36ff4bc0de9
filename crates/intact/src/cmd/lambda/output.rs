//! The page, and the files that were asked for.

use super::Args;
use crate::cmd::json;
use crate::cmd::page::write_all;
use crate::console;
use anyhow::Context;
use intact_findings::lambda::{FrozenConnection, InvocationFacts, LambdaFacts};
use intact_findings::requirement::Verdict;
use intact_ledger::Run;
use intact_ledger::export::csv::quote;
use intact_report::documents::{LambdaRun, Source};
use std::fmt::Write as _;

/// Writes them; JSON on standard output takes the place of the page.
pub(super) fn write(
    args: &Args,
    run: &Run,
    facts: &LambdaFacts,
    verdicts: &[Verdict],
) -> anyhow::Result<()> {
    if let Some(path) = &args.csv {
        std::fs::write(path, csv(run, &facts.invocations))
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

/// A row for each invocation.
fn csv(run: &Run, calls: &[InvocationFacts]) -> String {
    let mut text = "variant,round,environment,at_ms,ms,init_ms,frozen_ms,outcome,duplicate_response,connections,requests,reused,died,saw,detail\n"
        .to_owned();
    let maybe = |ms: Option<f64>| ms.map_or(String::new(), |ms| format!("{ms:.3}"));
    let count = |count: Option<u64>| count.map_or(String::new(), |count| count.to_string());
    for call in calls {
        let died = call.freeze.as_ref().map_or(String::new(), |pause| {
            let dead = pause
                .connection_states
                .iter()
                .filter(|case| case.is_death());
            let words: Vec<&str> = dead.copied().map(FrozenConnection::words).collect();
            words.join("; ")
        });
        let saw = call.freeze.as_ref().map_or("", |pause| pause.effect.id());
        let fields = [
            quote(&run.variants[call.variant].name).into_owned(),
            call.round.to_string(),
            call.environment.to_string(),
            format!("{:.3}", call.at_ms),
            format!("{:.3}", call.duration_ms),
            maybe(call.init_ms),
            maybe(call.frozen_ms),
            call.outcome.to_owned(),
            call.duplicate_response.to_string(),
            count(call.connections),
            count(call.requests),
            count(call.reused),
            quote(&died).into_owned(),
            saw.to_owned(),
            quote(call.detail.as_deref().unwrap_or_default()).into_owned(),
        ];
        let _ = writeln!(text, "{}", fields.join(","));
    }
    text
}
