//! Maximum age: a connection that carries requests at intervals, so that no idle timeout applies.
//!
//! Where a connection ended after some requests, another one carries few in a longer time: if it
//! ends too, the age is the limit.

use crate::budget::{AGE, age_requests};
use crate::context::ProbeContext;
use crate::line::Line;
use crate::prober::Probed;
use intact_ledger::server_profile::{MaxAge, ServerProfile};
use intact_ledger::{Side, Span};

/// Whether a connection ended that may have been too old, or have carried too many requests.
pub(super) fn is_likely(profile: &ServerProfile) -> bool {
    // one that ends with its first responses is not kept at all
    const FEW: u32 = 2 * AGE;
    let limit = profile.requests.as_ref();
    limit.is_some_and(|limit| {
        let is_over = limit.announced.is_none() && limit.ended_after().is_some();
        limit.answered > FEW && (is_over || last_after_idle(profile).is_some())
    })
}

/// The idle time after which the server responded and announced the end, in nanoseconds.
fn last_after_idle(profile: &ServerProfile) -> Option<u64> {
    let samples = profile.idle.iter().flat_map(|idle| &idle.samples);
    let last = samples.filter(|one| one.next.is_some_and(|next| next.is_last));
    last.map(|one| one.span.nanos()).max()
}

pub(super) fn probe(context: &mut ProbeContext<'_>) -> Probed {
    let Some(mut line) = context.open(context.http)? else {
        return Ok(());
    };
    let from = line.active_at;
    let mut answered = 0;
    let done = use_now_and_then(context, &mut line, &mut answered);
    let ended = line.ended();
    let now = context.prober.clock.now();
    let age = MaxAge {
        span: Span::new(from, ended.map_or(now, |(at, _)| at)),
        answered,
        last_announced: line.http.life().announced_by == Some(Side::Server),
        ended: ended.map(|(_, ended)| ended),
    };
    // the short probe shows only whether an age is the limit
    context.profile.age = (age.is_over() || context.config.thorough).then_some(age);
    context.prober.close(line);
    done
}

fn use_now_and_then(context: &mut ProbeContext<'_>, line: &mut Line, answered: &mut u32) -> Probed {
    let request = context.keeping_request();
    let (whole, most) = plan(context);
    let pause = pause(context, whole, most);
    let until = line.active_at.after(whole);
    loop {
        if !context.prober.ask(line, &request, None)?.is_ok() {
            return Ok(());
        }
        *answered += 1;
        if !line.is_usable() {
            return context.prober.linger(line);
        }
        let next = context.prober.clock.now().after(pause).min(until);
        context.prober.listen(std::slice::from_mut(line), next)?;
        if line.ended().is_some() || next == until || *answered == most {
            return Ok(());
        }
    }
}

/// The time of the probe, in nanoseconds, and its requests.
fn plan(context: &ProbeContext<'_>) -> (u64, u32) {
    let limit = context.profile.requests.as_ref();
    let ended = limit.and_then(|limit| limit.ended_after());
    let ended = ended.map(|span| span.nanos());
    // a quarter longer than the connection whose end has to be explained
    let suspected = ended.max(last_after_idle(&context.profile));
    let suspected = suspected.map_or(0, |nanos| nanos / 4 * 5);
    let asked = match context.config.thorough {
        true => context.config.idle_limit.as_nanos() as u64,
        false => 0,
    };
    (asked.max(suspected), age_requests(context.config))
}

/// The interval between requests, in nanoseconds: half the idle timeout, or as the budget of
/// requests allows.
fn pause(context: &ProbeContext<'_>, whole: u64, most: u32) -> u64 {
    let even = whole / u64::from(most - 1);
    let between = context.profile.idle.as_ref().and_then(|idle| idle.between);
    between.map_or(even, |waited| even.min(waited.span.nanos() / 2))
}
