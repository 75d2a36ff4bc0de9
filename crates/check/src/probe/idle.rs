//! Idle timeouts, between requests and before the first request.
//!
//! Several connections idle at the same time. A server that serves one connection at a time does
//! not respond on a second one; with such a server, connections idle one after the other.
//!
//! Some servers check their connections at intervals and close them up to one interval late. So
//! several connections start to idle at slightly different times. Their idle times show this
//! spread.

use super::{http3, next_request, race};
use crate::context::ProbeContext;
use crate::line::{Answered, Line};
use crate::prober::Probed;
use intact_ledger::server_profile::{Ended, IdleLimits, IdleWait};
use intact_ledger::{Failure, Nanos, Outcome, Span};
use std::time::Duration;

/// How long a request on another connection may take before the server counts as blocked.
const BLOCKED: Duration = Duration::from_secs(3);
/// The delays after which the other connections start to idle. No delay is a multiple of another,
/// or a whole second.
const STAGGER: [Duration; 3] = [
    Duration::from_millis(350),
    Duration::from_millis(1_100),
    Duration::from_millis(2_600),
];
/// A close this soon after a response is no idle timeout: the connection was not kept.
const AT_ONCE: Duration = Duration::from_millis(100);

pub(super) fn probe(context: &mut ProbeContext<'_>) -> Probed {
    context.profile.idle = Some(IdleLimits {
        http: context.http,
        ..IdleLimits::default()
    });
    let mut lines = Vec::new();
    let done = measure(context, &mut lines);
    context.close_all(&mut lines);
    done?;
    let samples = context.profile.idle.iter().flat_map(|idle| &idle.samples);
    let is_ended = samples.filter_map(|one| one.ended).next().is_some();
    match race::reason_to_skip(context) {
        _ if !is_ended => Ok(()),
        Some(_) => context.look_for_outage(),
        // the race opens connections
        None => context.let_end(),
    }
}

fn limits<'a>(context: &'a mut ProbeContext<'_>) -> Option<&'a mut IdleLimits> {
    context.profile.idle.as_mut()
}

/// A connection that has carried one request.
fn open_used(context: &mut ProbeContext<'_>) -> Probed<Option<Line>> {
    let Some(mut line) = context.open(context.http)? else {
        return Ok(None);
    };
    let request = context.keeping_request();
    match context.prober.ask(&mut line, &request, None) {
        Ok(answered) => {
            if let Some(idle) = limits(context) {
                idle.announced_s = announced_s(&line, &answered);
            }
            Ok(Some(line))
        }
        Err(halt) => {
            context.prober.close(line);
            Err(halt)
        }
    }
}

/// The idle timeout that the server announces, in seconds: in the response, or for QUIC in the
/// handshake.
fn announced_s(line: &Line, answered: &Answered) -> Option<u32> {
    let in_handshake = || {
        let millis = line.http.transport_parameters()?.max_idle_timeout_ms;
        u32::try_from(millis / 1_000).ok().filter(|_| millis > 0)
    };
    answered.exchange.terms.timeout_s.or_else(in_handshake)
}

fn measure(context: &mut ProbeContext<'_>, lines: &mut Vec<Line>) -> Probed {
    lines.extend(open_used(context)?);
    // a connection that is closed immediately blocks no other
    let soon = context.prober.clock.now().after(AT_ONCE.as_nanos() as u64);
    context.prober.listen(lines, soon)?;
    // where the server announced the end and leaves the close to the client, there is no idle
    // timeout
    if let Some(over) = lines.pop_if(|line| !line.is_usable() && line.ended().is_none()) {
        context.prober.close(over);
    }
    let others = answers_another(context)?;
    note_others(context, others);
    if others != Some(true) {
        wait(context, lines)?;
        context.close_all(lines);
        lines.extend(context.open(context.http)?);
        return wait(context, lines);
    }
    lines.extend(context.open(context.http)?);
    let others = answers_another(context)?;
    note_others(context, others);
    if others == Some(true) {
        lines.extend(http3::open_idle(context)?);
        open_samples(context, lines)?;
        return wait(context, lines);
    }
    // while the silent connection may block the server, it cannot close the other one
    let unused = lines.pop();
    context.close_all(lines);
    lines.extend(unused);
    wait(context, lines)?;
    context.close_all(lines);
    lines.extend(open_used(context)?);
    wait(context, lines)
}

/// Opens the other connections, with one request each, while the first ones idle.
fn open_samples(context: &mut ProbeContext<'_>, lines: &mut Vec<Line>) -> Probed {
    let kept =
        |line: &&Line| line.http.exchanges() > 0 && !line.is_secondary && line.ended().is_none();
    let Some(from) = lines.first().filter(kept).map(|line| line.active_at) else {
        return Ok(());
    };
    for after in STAGGER {
        // the time of a request to a remote server is part of the delay
        let from = from.after(after.as_nanos() as u64);
        context.prober.pause(lines, from)?;
        match open_used(context)? {
            Some(line) if line.is_usable() => lines.push(line),
            Some(over) => context.prober.close(over),
            None => {}
        }
    }
    Ok(())
}

fn note_others(context: &mut ProbeContext<'_>, others: Option<bool>) {
    if let Some(idle) = limits(context) {
        idle.answers_others = others;
    }
}

/// Whether the server responds now on a further connection. Only silence shows that it is blocked:
/// after any other failure it is unknown.
fn answers_another(context: &mut ProbeContext<'_>) -> Probed<Option<bool>> {
    let request = context.keeping_request();
    let failure = context.with_patience(BLOCKED, |context| {
        Ok(match context.dial(context.http, None)? {
            Ok(line) => {
                let answered = context.prober.ask_once(line, &request)?;
                answered.exchange.outcome.failure()
            }
            Err(refused) => refused.failed.map(|failed| failed.kind),
        })
    });
    Ok(match failure? {
        None => Some(true),
        Some(Failure::Timeout | Failure::ConnectTimeout) => Some(false),
        Some(_) => None,
    })
}

/// Waits until all connections have ended or the limit is reached. Then it sends a request on those
/// that are left. Records the result, also after Ctrl-C.
fn wait(context: &mut ProbeContext<'_>, lines: &mut [Line]) -> Probed {
    let limit = context.config.idle_limit.as_nanos() as u64;
    let own = lines.iter().filter(|line| !line.is_secondary);
    let Some(latest) = own.map(|line| line.active_at).max() else {
        return Ok(());
    };
    let mut done: Probed = context.prober.listen(lines, latest.after(limit));
    let now = context.prober.clock.now();
    let used: Vec<bool> = lines.iter().map(|line| line.http.exchanges() > 0).collect();
    let mut waits: Vec<IdleWait> = lines.iter().map(|line| waited(line, now)).collect();
    if done.is_ok() {
        done = confirm(context, lines, &mut waits);
    }
    for ((line, waited), is_used) in lines.iter().zip(waits).zip(used) {
        if line.is_secondary {
            http3::note_idle(context, waited);
        } else if let Some(idle) = limits(context) {
            if is_used {
                idle.samples.push(waited);
            } else {
                idle.before_first = Some(waited);
            }
        }
    }
    if let Some(idle) = limits(context) {
        idle.samples.sort_by_key(|waited| waited.span.start);
        // an end with an error response is no idle timeout
        let is_limit = |ended: Ended| ended.error.is_none();
        let ended = idle.samples.iter();
        let ended = ended.filter(|waited| waited.ended.is_some_and(is_limit));
        let first = ended.min_by_key(|waited| waited.span.nanos());
        // without an end, the longest wait is the lower bound
        let waits = || idle.samples.iter().filter(|waited| waited.ended.is_none());
        let longest = || waits().max_by_key(|waited| waited.span.nanos());
        idle.between = first.or_else(longest).copied();
    }
    done
}

/// How long a connection was idle until now, or until its end.
pub(super) fn waited(line: &Line, now: Nanos) -> IdleWait {
    let ended = line.ended();
    IdleWait {
        span: Span::new(line.active_at, ended.map_or(now, |(at, _)| at)),
        ended: ended.map(|(_, ended)| ended),
        next: None,
    }
}

/// Sends a request on each connection without an end, and adds the results.
pub(super) fn confirm(
    context: &mut ProbeContext<'_>,
    lines: &mut [Line],
    waits: &mut [IdleWait],
) -> Probed {
    let results = next_request::ask_all(context, lines)?;
    for ((line, waited), next) in lines.iter().zip(waits).zip(results) {
        let crossed = |outcome| {
            let by_end = [Failure::Stale, Failure::Refusal];
            by_end.map(Outcome::Failed).contains(&outcome)
        };
        match (next, line.ended()) {
            // the server's end and the request crossed: an end like the others
            (Some(next), Some((at, ended))) if crossed(next.outcome) => {
                waited.span = Span::new(waited.span.start, at);
                waited.ended = Some(ended);
            }
            (next, _) => waited.next = next,
        }
    }
    Ok(())
}
