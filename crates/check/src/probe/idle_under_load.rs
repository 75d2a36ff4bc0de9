//! The idle timeout while many other connections idle: some servers close idle connections sooner
//! under load.

use super::idle;
use crate::context::ProbeContext;
use crate::line::Line;
use crate::prober::Probed;
use intact_ledger::server_profile::IdleUnderLoad;

pub(super) fn probe(context: &mut ProbeContext<'_>) -> Probed {
    let mut lines = Vec::new();
    let done = hold(context, &mut lines);
    context.close_all(&mut lines);
    done
}

fn hold(context: &mut ProbeContext<'_>, lines: &mut Vec<Line>) -> Probed {
    let request = context.keeping_request();
    // the last connection is the one to measure
    for _ in 0..=context.config.hold {
        let Some(line) = context.open(context.http)? else {
            break;
        };
        lines.push(line);
        if let Some(line) = lines.last_mut()
            && !context.prober.ask(line, &request, None)?.is_ok()
        {
            break;
        }
    }
    let connections = lines.len().saturating_sub(1) as u32;
    context.profile.idle_under_load = Some(IdleUnderLoad {
        connections,
        waited: None,
    });
    let Some(watched) = lines.last_mut().filter(|line| line.is_usable()) else {
        return Ok(());
    };
    let until = (watched.active_at).after(context.config.idle_limit.as_nanos() as u64);
    let watched = std::slice::from_mut(watched);
    let mut done = context.prober.listen(watched, until);
    let mut waited = idle::waited(&watched[0], context.prober.clock.now());
    if done.is_ok() {
        done = idle::confirm(context, watched, std::slice::from_mut(&mut waited));
    }
    context.profile.idle_under_load = Some(IdleUnderLoad {
        connections,
        waited: Some(waited),
    });
    done
}
