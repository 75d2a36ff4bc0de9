//! Whether a connection survives HEAD, and under `--thorough` a 404: servers that keep it after a GET with 200 do not always.

use super::{Bench, Ended};
use crate::line::Line;
use crate::request::Request;
use ledger::Method;
use ledger::card::MethodTried;

/// A path that no server has.
const NOT_THERE: &str = "/intact-check-a-path-that-is-not-there";

pub(super) fn probe(bench: &mut Bench<'_>) -> Result<(), Ended> {
    let head = bench.request.by(Method::HEAD).saying("keep-alive");
    try_one(bench, "HEAD", &head)?;
    if bench.config.thorough {
        let not_there = bench.request.by(Method::GET).at(NOT_THERE);
        try_one(bench, "GET of a path that is not there", &not_there)?;
    }
    Ok(())
}

fn try_one(bench: &mut Bench<'_>, what: &str, request: &Request) -> Result<(), Ended> {
    let plan = bench.plans.plan(bench.http, None, false)?;
    let Ok(mut line) = bench.caller.open(&plan)? else {
        return Ok(());
    };
    let tried = ask_both(bench, &mut line, what, request);
    bench.caller.close(line);
    let tried = tried?;
    bench.card.methods.push(tried);
    Ok(())
}

fn ask_both(
    bench: &mut Bench<'_>,
    line: &mut Line,
    what: &str,
    request: &Request,
) -> Result<MethodTried, Ended> {
    let first = bench.caller.ask(line, request, None)?.exchange;
    let mut tried = MethodTried {
        what: what.to_owned(),
        status: first.status,
        outcome: first.outcome,
        kept: None,
    };
    if first.outcome.is_ok() {
        let usual = bench.keeping_request();
        tried.kept = Some(line.is_usable() && bench.caller.ask(line, &usual, None)?.is_ok());
    }
    Ok(tried)
}
