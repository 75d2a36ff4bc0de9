//! Requests per connection: sends requests on one connection until the server ends it, or the
//! budget is used up.

use crate::context::ProbeContext;
use crate::line::Line;
use crate::prober::Probed;
use intact_ledger::server_profile::RequestLimit;
use intact_ledger::{Side, Span};

pub(super) fn probe(context: &mut ProbeContext<'_>) -> Probed {
    let Some(mut line) = context.open(context.http)? else {
        return Ok(());
    };
    let mut tried = RequestLimit {
        http: context.http,
        wanted: context.prober.budget.cap,
        ..RequestLimit::default()
    };
    let from = line.active_at;
    let done = ask_all(context, &mut line, &mut tried);
    tried.lasted = Some(Span::new(from, context.prober.clock.now()));
    let ended = line.ended();
    tried.ended = ended.map(|(_, ended)| ended);
    if let Some((at, _)) = ended.filter(|_| tried.failed.is_none()) {
        tried.rested = Some(Span::new(line.active_at, at));
    }
    context.prober.close(line);
    let is_unannounced = !tried.last_announced && (tried.ended.is_some() || tried.failed.is_some());
    context.profile.requests = Some(tried);
    done?;
    if is_unannounced {
        context.look_for_outage()?;
    }
    Ok(())
}

fn ask_all(context: &mut ProbeContext<'_>, line: &mut Line, tried: &mut RequestLimit) -> Probed {
    let request = context.keeping_request();
    while tried.answered < tried.wanted && line.is_usable() {
        tried.rested = Some(Span::new(line.active_at, context.prober.clock.now()));
        let answered = context.prober.ask(line, &request, None)?;
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
        tried.last_announced = line.http.life().announced_by == Some(Side::Server);
        context.prober.linger(line)?;
    }
    Ok(())
}
