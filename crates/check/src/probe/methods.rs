//! Whether a connection stays open after other methods and statuses. HEAD is always sent, and
//! further safe methods (RFC 9110 section 9.2.1) under `--thorough`. A method that is not safe is
//! sent only if the user names it.

use super::{Ended, ProbeContext};
use crate::line::Line;
use intact_client::RequestSpec;
use intact_ledger::Method;
use intact_ledger::server_profile::MethodResult;

/// A path that is expected to give 404.
const NOT_THERE: &str = "/intact-check-a-path-that-is-not-there";

pub(super) fn probe(bench: &mut ProbeContext<'_>) -> Result<(), Ended> {
    let head = bench.request.by(Method::HEAD).saying("keep-alive");
    try_one(bench, "HEAD", &head)?;
    if bench.config.thorough {
        for (what, request) in thorough(&bench.request) {
            try_one(bench, what, &request.saying("keep-alive"))?;
        }
    }
    for tried in &bench.config.tries {
        let path = tried.path.split('?').next().unwrap_or("/");
        let what = format!("{} {path}", tried.method);
        let request = bench.extra_request(tried);
        try_one(bench, &what, &request)?;
    }
    Ok(())
}

/// Requests that get a status other than 200: 404, 204, and errors.
fn thorough(request: &RequestSpec) -> [(&'static str, RequestSpec); 4] {
    let get = request.by(Method::GET);
    [
        ("GET of a path that is not there", get.at(NOT_THERE)),
        ("OPTIONS", request.by(Method::new("OPTIONS"))),
        (
            "GET of a range that is not there",
            get.with("range", "bytes=9007199254740991-"),
        ),
        (
            "GET with an unknown expectation",
            get.with("expect", "intact-check"),
        ),
    ]
}

fn try_one(bench: &mut ProbeContext<'_>, what: &str, request: &RequestSpec) -> Result<(), Ended> {
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
    bench: &mut ProbeContext<'_>,
    line: &mut Line,
    what: &str,
    request: &RequestSpec,
) -> Result<MethodResult, Ended> {
    let first = bench.caller.ask(line, request, None)?.exchange;
    let mut tried = MethodResult {
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
