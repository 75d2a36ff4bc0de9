//! The waterfall: repeatedly sends a first request on a new connection, and further ones on the
//! same. The ledger has the times. This probe only causes the exchanges, and passes the responses
//! to [`super::state`].

use super::state;
use crate::context::ProbeContext;
use crate::line::{Answered, Line};
use crate::prober::Probed;
use intact_ledger::server_profile::WATERFALL;

/// Connections.
const CONNECTIONS: usize = 5;
/// Requests on each.
const REQUESTS: usize = 3;

pub(super) fn probe(context: &mut ProbeContext<'_>) -> Probed {
    let mut answers: Vec<Vec<Answered>> = Vec::new();
    let mut done = Ok(());
    for _ in 0..CONNECTIONS {
        let Some(mut line) = context.open(context.http)? else {
            continue;
        };
        let mut on_this = Vec::new();
        done = ask_all(context, &mut line, &mut on_this);
        context.prober.close(line);
        answers.push(on_this);
        if done.is_err() {
            break;
        }
    }
    context.profile.state = Some(state::compare(&answers));
    done
}

fn ask_all(context: &mut ProbeContext<'_>, line: &mut Line, answers: &mut Vec<Answered>) -> Probed {
    let request = context.keeping_request();
    while answers.len() < REQUESTS && line.is_usable() {
        let answered = context.prober.ask(line, &request, Some(WATERFALL))?;
        let ok = answered.is_ok();
        answers.push(answered);
        if !ok {
            break;
        }
    }
    Ok(())
}
