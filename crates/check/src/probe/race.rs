//! The race: the outcome of requests sent shortly before and after the server's idle timeout.

use crate::context::ProbeContext;
use crate::line::Line;
use crate::prober::Probed;
use intact_ledger::CloseKind;
use intact_ledger::server_profile::{IdleWait, Race, RaceAttempt};
use std::time::Duration;

/// The longest timeout that is waited for again without `--thorough`.
const LONGEST: Duration = Duration::from_secs(30);
/// A close this soon is no idle timeout.
const SHORTEST: Duration = Duration::from_millis(100);
/// The maximum lead of the first request before the timeout. A server that checks its connections
/// once per second closes up to a second late.
const MARGIN: Duration = Duration::from_secs(1);

/// Why the race is skipped.
pub(super) fn reason_to_skip(context: &ProbeContext<'_>) -> Option<&'static str> {
    let Some((limit, how)) = limit(context) else {
        return Some("no idle limit was found");
    };
    if how == CloseKind::Silent {
        return Some("both sides of QUIC end an idle connection at the same time");
    }
    if limit < SHORTEST.as_nanos() as u64 {
        return Some("connections are not kept");
    }
    let long = limit > LONGEST.as_nanos() as u64;
    (long && !context.config.thorough).then_some(
        "the idle limit is longer than 30 s; pass --thorough to wait for it a second time",
    )
}

/// The measured idle timeout, in nanoseconds, and how the connection ended.
fn limit(context: &ProbeContext<'_>) -> Option<(u64, CloseKind)> {
    let IdleWait { span, ended, .. } = context.profile.idle.as_ref()?.between?;
    ended.map(|ended| (span.nanos(), ended.how))
}

pub(super) fn probe(context: &mut ProbeContext<'_>) -> Probed {
    let Some((limit, _)) = limit(context) else {
        return Ok(());
    };
    let margin = (limit / 4).min(MARGIN.as_nanos() as u64);
    let after = [
        limit - margin,
        limit - margin / 3,
        limit - margin / 20,
        limit + margin / 20,
    ];
    let mut lines = Vec::new();
    let done = open_all(context, &mut lines, after.len());
    let done = done.and_then(|()| {
        let mut race = Race {
            limit_ns: limit,
            attempts: Vec::new(),
        };
        let run = run(context, &mut lines, &after, &mut race);
        context.profile.race = Some(race);
        run
    });
    for line in lines {
        context.prober.close(line);
    }
    done
}

fn open_all(context: &mut ProbeContext<'_>, lines: &mut Vec<Line>, many: usize) -> Probed {
    let request = context.keeping_request();
    for _ in 0..many {
        let Some(line) = context.open(context.http)? else {
            return Ok(());
        };
        lines.push(line);
        if let Some(line) = lines.last_mut() {
            context.prober.ask(line, &request, None)?;
        }
    }
    Ok(())
}

/// Sends one request on each connection, each after its own idle time.
fn run(
    context: &mut ProbeContext<'_>,
    lines: &mut [Line],
    after: &[u64],
    race: &mut Race,
) -> Probed {
    let request = context.keeping_request();
    for (nth, &idle) in after.iter().enumerate().take(lines.len()) {
        let due = lines[nth].active_at.after(idle);
        // with a rate limit, the wait happens here, where a close in the meantime is observed
        let due = due.max(context.prober.next_request());
        context.prober.pause(&mut lines[nth..], due)?;
        let line = &mut lines[nth];
        let idle_ns = context.prober.clock.now().since(line.active_at);
        let outcome = if line.ended().is_some() {
            None
        } else {
            let answered = context.prober.ask(line, &request, None)?;
            Some(answered.exchange.outcome)
        };
        let end = line.ended().filter(|_| outcome.is_none());
        race.attempts.push(RaceAttempt {
            idle_ns,
            outcome,
            ended_ns: end.map(|(at, _)| at.since(line.active_at)),
            ended: line.ended().map(|(_, ended)| ended),
        });
    }
    Ok(())
}
