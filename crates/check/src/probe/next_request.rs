//! The request after an idle time: it shows whether a connection without an end is still open. A
//! NAT or a firewall that forgets a connection sends nothing, and neither does a server that hangs.

use super::ProbeContext;
use crate::line::Line;
use crate::prober::StopReason;
use intact_ledger::server_profile::NextRequest;
use intact_ledger::{Failure, Nanos, Side};

/// Sends one request on each connection that seems open, and waits for all responses together: a
/// timeout each would take too long. Returns the result by connection.
pub(super) fn ask_all(
    context: &mut ProbeContext<'_>,
    lines: &mut [Line],
) -> Result<Vec<Option<NextRequest>>, StopReason> {
    let request = context.keeping_request();
    let prober = &mut context.prober;
    let timeout = u64::try_from(prober.patience().as_nanos()).unwrap_or(u64::MAX);
    let mut due: Vec<Option<Nanos>> = vec![None; lines.len()];
    let mut begun = Ok(());
    for (line, due) in lines.iter_mut().zip(&mut due) {
        if !line.is_usable() || line.ended().is_some() {
            continue;
        }
        match prober.begin(line, &request, true) {
            Ok(sent_at) => *due = Some(sent_at.after(timeout)),
            // the requests that were sent are recorded in any case
            Err(stopped) => {
                begun = Err(stopped);
                break;
            }
        }
    }
    let mut next = vec![None; lines.len()];
    loop {
        let stopped = prober.may_go_on();
        let now = prober.clock.now();
        let mut more = false;
        for ((line, due), next) in lines.iter_mut().zip(&mut due).zip(&mut next) {
            let Some(deadline) = *due else { continue };
            let (mut answered, is_more) = prober.pump(line, None);
            more |= is_more;
            if answered.is_none() && (stopped.is_err() || now >= deadline) {
                let kind = match stopped {
                    Ok(()) => Failure::Timeout,
                    Err(_) => Failure::Aborted,
                };
                line.give_up(kind, now);
                answered = prober.take_answered(line, None);
            }
            if let Some(answered) = answered {
                *due = None;
                *next = Some(NextRequest {
                    outcome: answered.exchange.outcome,
                    is_last: line.http.announced_by() == Some(Side::Server),
                });
            }
        }
        stopped?;
        let Some(deadline) = due.iter().flatten().min() else {
            return begun.map(|()| next);
        };
        if !more {
            let timer = lines.iter_mut().filter_map(Line::timer).min();
            let until = timer.map_or(*deadline, |timer| timer.min(*deadline));
            prober.wait(until)?;
        }
    }
}
