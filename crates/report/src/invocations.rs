//! The invocations of a function as CSV, a row for each.

use intact_experiments::lambda::{FrozenConnection, InvocationFacts};
use intact_ledger::Run;
use intact_ledger::export::csv::quote;
use std::fmt::Write as _;

/// The columns, then a row for each invocation.
pub fn csv(run: &Run, calls: &[InvocationFacts]) -> String {
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
