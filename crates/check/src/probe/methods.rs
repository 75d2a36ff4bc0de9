//! Whether a connection stays open after other methods and statuses. HEAD is always sent, and
//! further safe methods (RFC 9110 section 9.2.1) under `--thorough`. A method that is not safe is
//! sent only if the user names it.

use crate::context::ProbeContext;
use crate::line::Line;
use crate::prober::Probed;
use intact_client::RequestSpec;
use intact_ledger::Method;
use intact_ledger::server_profile::MethodResult;

/// A path that is expected to give 404.
const NOT_THERE: &str = "/intact-check-a-path-that-is-not-there";

pub(super) fn probe(context: &mut ProbeContext<'_>) -> Probed {
    let head = context.request.by(Method::HEAD).saying("keep-alive");
    try_one(context, "HEAD", &head)?;
    if context.config.thorough {
        for (what, request) in thorough(&context.request) {
            try_one(context, what, &request.saying("keep-alive"))?;
        }
    }
    for tried in &context.config.tries {
        let path = tried.path.split('?').next().unwrap_or("/");
        let what = format!("{} {path}", tried.method);
        let request = context.extra_request(tried);
        try_one(context, &what, &request)?;
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

fn try_one(context: &mut ProbeContext<'_>, what: &str, request: &RequestSpec) -> Probed {
    let Some(mut line) = context.open(context.http)? else {
        return Ok(());
    };
    let tried = ask_both(context, &mut line, what, request);
    context.prober.close(line);
    let tried = tried?;
    context.profile.methods.push(tried);
    Ok(())
}

fn ask_both(
    context: &mut ProbeContext<'_>,
    line: &mut Line,
    what: &str,
    request: &RequestSpec,
) -> Probed<MethodResult> {
    let first = context.prober.ask(line, request, None)?.exchange;
    let mut tried = MethodResult {
        what: what.to_owned(),
        status: first.status,
        outcome: first.outcome,
        kept: None,
    };
    if first.outcome.is_ok() {
        let usual = context.keeping_request();
        tried.kept = Some(line.is_usable() && context.prober.ask(line, &usual, None)?.is_ok());
    }
    Ok(tried)
}
