//! `lambda --fault`: the faults of `watch --fault` strike the connections that a function keeps across a freeze.
//!
//! The function runs once without a fault where there is something to compare, then once for each kind, in environments of its own.
//! Must not judge: `findings::fault` does.

use super::Turn;
use super::args::{Args, OnOff};
use crate::cmd::fault_options;
use crate::exit::Failed;
use anyhow::anyhow;
use intact_lambda::{Function, RunPosition};
use intact_ledger::{FaultEnd, FaultInvocations, Nanos, Span, Variant};
use std::time::Duration;

/// The turns: without a fault, then with each kind.
///
/// # Errors
/// The options leave nothing to strike or to observe.
pub(super) fn turns(args: &Args, functions: Vec<(Variant, Function)>) -> Result<Vec<Turn>, Failed> {
    let refused = |words: &'static str| Err(Failed::usage(anyhow!(words)));
    let [(_, function)] = &functions[..] else {
        return refused("--fault compares kinds of faults: name one function, without --variants");
    };
    if args.watch == OnOff::Off {
        return refused("--fault acts on connections that are followed: leave --watch off out");
    }
    if args.rounds.is_some_and(|rounds| rounds > 1) {
        return refused("--fault runs each kind once: leave --rounds out");
    }
    if args.idle.iter().all(Duration::is_zero) {
        return refused("--fault strikes while the function rests: add --idle 1s");
    }
    let planned = args.faults.planned()?;
    let turn = |fault| Turn {
        variant: fault_options::variant(Option::as_ref(&fault)),
        function: function.clone(),
        fault,
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
