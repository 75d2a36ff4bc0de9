//! The waterfall: repeatedly sends a first request on a new connection, and further ones on the
//! same. The ledger has the times. This probe only causes the exchanges, and passes the responses
//! to [`super::state`].

use super::{Ended, ProbeContext, state};
use crate::line::{Answered, Line};
use intact_ledger::server_profile::WATERFALL;

/// Connections.
const CONNECTIONS: usize = 5;
/// Requests on each.
const REQUESTS: usize = 3;

pub(super) fn probe(bench: &mut ProbeContext<'_>) -> Result<(), Ended> {
    let plan = bench.plans.plan(bench.http, None, false)?;
    let mut answers: Vec<Vec<Answered>> = Vec::new();
    for _ in 0..CONNECTIONS {
        let Ok(mut line) = bench.caller.open(&plan)? else {
            continue;
        };
        let mut on_this = Vec::new();
        let done = ask_all(bench, &mut line, &mut on_this);
        bench.caller.close(line);
        answers.push(on_this);
        if let Err(ended) = done {
            bench.card.state = Some(state::compare(&answers));
            return Err(ended);
        }
    }
    bench.card.state = Some(state::compare(&answers));
    Ok(())
}

fn ask_all(
    bench: &mut ProbeContext<'_>,
    line: &mut Line,
    answers: &mut Vec<Answered>,
) -> Result<(), Ended> {
    let request = bench.keeping_request();
    while answers.len() < REQUESTS && line.is_usable() {
        let answered = bench.caller.ask(line, &request, Some(WATERFALL))?;
        let ok = answered.is_ok();
        answers.push(answered);
        if !ok {
            break;
        }
    }
    Ok(())
}
