//! Requests per connection: sends requests on one connection until the server ends it, or the
//! budget is used up.

use super::{Ended, ProbeContext};
use crate::line::Line;
use intact_ledger::server_profile::RequestLimit;
use intact_ledger::{Side, Span};
use std::time::Duration;

/// How long to wait for a close that was announced.
const LINGER: Duration = Duration::from_secs(1);

pub(super) fn probe(bench: &mut ProbeContext<'_>) -> Result<(), Ended> {
    let plan = bench.plans.plan(bench.http, None, false)?;
    let Ok(mut line) = bench.caller.open(&plan)? else {
        return Ok(());
    };
    let mut tried = RequestLimit {
        http: bench.http,
        answered: 0,
        wanted: bench.caller.budget.cap,
        announced: None,
        last_announced: false,
        ended: None,
        failed: None,
        lasted: None,
    };
    let from = line.active_at;
    let done = ask_all(bench, &mut line, &mut tried);
    tried.lasted = Some(Span::new(from, bench.caller.clock.now()));
    tried.ended = line.ended().map(|(_, ended)| ended);
    bench.caller.close(line);
    let is_unannounced = !tried.last_announced && (tried.ended.is_some() || tried.failed.is_some());
    bench.card.requests = Some(tried);
    done?;
    if is_unannounced {
        bench.look_for_outage()?;
    }
    Ok(())
}

fn ask_all(
    bench: &mut ProbeContext<'_>,
    line: &mut Line,
    tried: &mut RequestLimit,
) -> Result<(), Ended> {
    let request = bench.keeping_request();
    while tried.answered < tried.wanted && line.is_usable() {
        let answered = bench.caller.ask(line, &request, None)?;
        let max = answered.exchange.terms.max;
        match tried.answered {
            0 => tried.announced = max,
            // it counts the requests that are left
            1 if max.is_some() && max < tried.announced => {
                tried.announced = tried.announced.map(|left| left.saturating_add(1));
            }
            _ => {}
        }
        if !answered.is_ok() {
            tried.failed = answered.exchange.outcome.failure();
            return Ok(());
        }
        tried.answered += 1;
    }
    if !line.is_usable() {
        tried.last_announced = line.http.announced_by() == Some(Side::Server);
        bench.caller.linger(line, LINGER)?;
    }
    Ok(())
}
