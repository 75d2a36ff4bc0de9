//! Maximum age: a connection that carries requests at intervals, so that no idle timeout applies.

use super::{Ended, ProbeContext};
use crate::budget::AGE;
use crate::line::Line;
use intact_ledger::server_profile::MaxAge;
use intact_ledger::{Side, Span};
use std::time::Duration;

/// How long to wait for a close that was announced.
const LINGER: Duration = Duration::from_secs(1);

pub(super) fn probe(bench: &mut ProbeContext<'_>) -> Result<(), Ended> {
    let plan = bench.plans.plan(bench.http, None, false)?;
    let Ok(mut line) = bench.caller.open(&plan)? else {
        return Ok(());
    };
    let from = line.active_at;
    let mut answered = 0;
    let done = use_now_and_then(bench, &mut line, &mut answered);
    let ended = line.ended();
    let now = bench.caller.clock.now();
    bench.card.age = Some(MaxAge {
        span: Span::new(from, ended.map_or(now, |(at, _)| at)),
        answered,
        last_announced: line.http.announced_by() == Some(Side::Server),
        ended: ended.map(|(_, ended)| ended),
    });
    bench.caller.close(line);
    done
}

fn use_now_and_then(
    bench: &mut ProbeContext<'_>,
    line: &mut Line,
    answered: &mut u32,
) -> Result<(), Ended> {
    let request = bench.keeping_request();
    let pause = pause(bench);
    let until = line
        .active_at
        .after(bench.config.idle_limit.as_nanos() as u64);
    loop {
        if !bench.caller.ask(line, &request, None)?.is_ok() {
            return Ok(());
        }
        *answered += 1;
        if !line.is_usable() {
            return Ok(bench.caller.linger(line, LINGER)?);
        }
        let next = bench.caller.clock.now().after(pause).min(until);
        bench.caller.listen(std::slice::from_mut(line), next)?;
        if line.ended().is_some() || next == until || *answered == AGE {
            return Ok(());
        }
    }
}

/// The interval between requests, in nanoseconds: half the idle timeout, or as the budget of requests allows.
fn pause(bench: &ProbeContext<'_>) -> u64 {
    let whole = bench.config.idle_limit.as_nanos() as u64;
    let even = whole / u64::from(AGE - 1);
    let between = bench.card.idle.as_ref().and_then(|idle| idle.between);
    between.map_or(even, |waited| even.min(waited.span.nanos() / 2))
}
