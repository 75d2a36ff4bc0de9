//! `lambda --fault`: the faults of `watch --fault` strike the connections that a function keeps
//! across a freeze.
//!
//! The function runs once without a fault where there is something to compare, then once for each
//! kind, in environments of its own. Must not judge: `findings::fault` does.

use super::Args;
use super::Turn;
use crate::cmd::fault_options;
use crate::exit::Failed;
use anyhow::anyhow;
use intact_lambda::{Function, RunPosition};
use intact_ledger::{FaultEnd, FaultInvocations, Nanos, Span, Variant};
use intact_watch::FaultConfig;
use std::time::Duration;

/// The turns: without a fault, then with each kind.
///
/// # Errors
/// The options leave nothing to strike or to observe.
pub(super) fn turns(args: &Args, functions: &[(Variant, Function)]) -> Result<Vec<Turn>, Failed> {
    let refused = |words: &'static str| Err(Failed::usage(anyhow!(words)));
    let [(_, function)] = functions else {
        return refused("--fault compares kinds of faults: name one function, without --variants");
    };
    if !args.watch {
        return refused("--fault acts on connections that are followed: leave --watch off out");
    }
    if args.rounds.is_some_and(|rounds| rounds > 1) {
        return refused("--fault runs each kind once: leave --rounds out");
    }
    if args.idle.iter().all(Duration::is_zero) {
        return refused("--fault strikes while the function rests: add --idle 1s");
    }
    let planned = args.faults.planned()?;
    // a function may have something to do between its last response and the freeze
    let rests = args.idle.iter().filter(|idle| !idle.is_zero());
    let half = rests
        .min()
        .map(|rest| rest.div_f64(2.0 * args.time_scale.unwrap_or(1.0)));
    let turn = |fault: Option<FaultConfig>| Turn {
        variant: fault_options::variant(fault.as_ref()),
        function: function.clone(),
        fault: fault.map(|fault| FaultConfig {
            idle: half.map_or(fault.idle, |half| half.max(fault.idle)),
            ..fault
        }),
    };
    Ok(planned.into_iter().map(turn).collect())
}

/// The end of a turn, for the ledger.
pub(super) fn end(
    place: RunPosition,
    [began, ended]: [Duration; 2],
    invocations: FaultInvocations,
) -> FaultEnd {
    let at = |since: Duration| Nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX));
    FaultEnd {
        variant: Some(place.variant),
        round: Some(place.round),
        span: Span::new(at(began), at(ended)),
        code: None,
        signal: None,
        invocations: Some(invocations),
    }
}
