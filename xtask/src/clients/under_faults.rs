//! What a client does when its connection fails, under `intact watch --fault`.
//!
//! Each request has a separate program, server and fault, and is the second request on its
//! connection. The program reports the result for the caller. The server's ledger counts how often
//! the request arrived; the fault card of `watch` must agree.

use super::measure::{Bench, trust};
use super::program::{Outcome, Program, ProgramStep, Skill};
use super::server::Server;
use anyhow::{Context, bail};
use intact_fix::{RequestOutcome, RequestOutcomes, SilentWait, UnderFaults, UserTimeout};
use intact_ledger::Row;
use intact_ledger::store::Reader;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

const WARM: &str = "/warm/x";
const NEXT: &str = "/struck/x";
/// Longer than the relay takes to notice that a connection is idle, and shorter than any client's
/// idle limit.
const PAUSE: Duration = Duration::from_millis(400);
/// After this time without data from the peer, the connection is reset. The harness waits 30 s for
/// a program.
const WAIT: &str = "20s";
/// The response limit of programs that set one. It is shorter than in other scenarios, where it
/// must not end a request.
const TIMEOUT_MS: &str = "2000";

/// One request under a fault.
struct Faulted {
    outcome: RequestOutcome,
    /// The row of the card.
    cell: Value,
    user_timeout: Option<UserTimeout>,
    is_http2: bool,
}

/// All faults that a program can be put under; `None` where it cannot keep a connection between its
/// requests.
pub(super) fn measure(bench: &Bench<'_>) -> anyhow::Result<Option<UnderFaults>> {
    let about = bench.start(None)?;
    let (can_pause, can_post) = (about.can(Skill::Pause), about.can(Skill::Post));
    let (has_get, has_tls) = (!about.can(Skill::PostOnly), !about.can(Skill::PlainOnly));
    about.end()?;
    if !can_pause {
        return Ok(None);
    }
    let over = |scheme, kind: &'static str, method| -> anyhow::Result<Option<Faulted>> {
        let is_possible = match method {
            "GET" => has_get,
            _ => can_post,
        };
        match is_possible {
            true => one(bench, scheme, kind, method).with_context(|| format!("{kind}, {method}")),
            false => Ok(None),
        }
    };
    let run = |kind, method| over("http", kind, method);
    let outcome = |one: Option<Faulted>| one.map(|one| one.outcome);
    let get = run("black-hole", "GET")?;
    let post = run("black-hole", "POST")?;
    let secure = match has_tls {
        true => over("https", "black-hole", "GET")?,
        false => None,
    };
    let http2 = secure.filter(|one| one.is_http2);
    let reset = RequestOutcomes {
        get: outcome(run("reset-mid-response", "GET")?),
        post: outcome(run("reset-mid-response", "POST")?),
    };
    let faults = UnderFaults {
        user_timeout: get.as_ref().and_then(|one| one.user_timeout),
        silent_get: get.map(|one| wait(&one)),
        silent_post: post.map(|one| wait(&one)),
        silent_http2: http2.map(|one| wait(&one)),
        reset: (reset.get.is_some() || reset.post.is_some()).then_some(reset),
        cut: outcome(run("early-close-after-headers", "GET")?).map(Into::into),
    };
    Ok((faults != UnderFaults::default()).then_some(faults))
}

/// `None`: the client did not use the connection again, so there was nothing to fail.
fn one(
    bench: &Bench<'_>,
    scheme: &str,
    kind: &str,
    method: &'static str,
) -> anyhow::Result<Option<Faulted>> {
    let server = Server::start(bench.intact, &["--body", "100"])?;
    let folder = tempfile::tempdir()?;
    let (card, ledger) = (
        folder.path().join("card.json"),
        folder.path().join("ledger"),
    );
    let options = vec![
        format!("--fault={kind}"),
        format!("--fault-wait={WAIT}"),
        format!("--json={}", card.display()),
        format!("--ledger={}", ledger.display()),
    ];
    let mut command = bench.launch.watched(bench.intact, options).command()?;
    command.env("INTACT_TIMEOUT_MS", TIMEOUT_MS);
    trust(&mut command, &server);
    let mut program = Program::start(command)?;
    let (warm, next) = (server.base(scheme) + WARM, server.base(scheme) + NEXT);
    let first = ProgramStep {
        method: if program.can(Skill::PostOnly) {
            "POST"
        } else {
            "GET"
        },
        ..ProgramStep::get(&warm)
    };
    program.run(&first)?;
    std::thread::sleep(PAUSE);
    let step = ProgramStep {
        method,
        ..ProgramStep::get(&next)
    };
    let outcomes = program.run(&step)?;
    program.end()?;
    let counts = server.end()?;
    let text = std::fs::read(&card).context("`intact watch` wrote no card")?;
    let card: Value = serde_json::from_slice(&text)?;
    let Some(cell) = cell(&card, counts.requests())? else {
        return Ok(None);
    };
    let [outcome] = &outcomes[..] else {
        bail!("one request, {} outcomes", outcomes.len());
    };
    if *outcome == Outcome::Error("hangs".to_owned()) {
        bail!("the program hangs although the connection was reset");
    }
    Ok(Some(Faulted {
        outcome: super::measure::fate(outcome, counts.asked(NEXT).count()),
        cell,
        user_timeout: user_timeout(&ledger)?,
        is_http2: counts.has_http2(),
    }))
}

/// The row of the card whose fault was applied and affected a request. Its count of the server must
/// equal the server's own count.
fn cell(card: &Value, served: u64) -> anyhow::Result<Option<Value>> {
    let cells = card["cells"].as_array().context("a card without rows")?;
    let applied = |cell: &&Value| cell["not_applied"].is_null();
    let Some(cell) = cells.iter().find(applied) else {
        return Ok(None);
    };
    let (least, most) = bounds(cell, "reached");
    if !(least..=most).contains(&(served as f64)) {
        bail!("the server counted {served} requests, the card {least} to {most}");
    }
    let is_met = bounds(cell, "affected").0 > 0.0;
    Ok(is_met.then(|| cell.clone()))
}

/// The bounds of a figure of a cell; those of a known one are equal.
fn bounds(cell: &Value, name: &str) -> (f64, f64) {
    let bound = |end: &str| cell[name].as_f64().or(cell["bounds"][name][end].as_f64());
    let least = bound("low").unwrap_or(0.0);
    (least, bound("high").unwrap_or(f64::INFINITY))
}

fn wait(one: &Faulted) -> SilentWait {
    let (waited, most) = bounds(&one.cell, "hung_ms");
    let seconds = (waited / 100.0).round() / 10.0;
    let outcome = one.outcome;
    match most.is_finite() {
        false => SilentWait::Endless {
            for_s: seconds,
            outcome,
        },
        true => SilentWait::Ended {
            after_s: seconds,
            outcome,
        },
    }
}

/// What `watch` read from the program's sockets; `None` where it read none.
fn user_timeout(ledger: &Path) -> anyhow::Result<Option<UserTimeout>> {
    let mut closes = Reader::open(ledger)?.events()?.filter_map(|row| match row {
        Row::Closed(closed) => Some(closed.close.probes),
        _ => None,
    });
    Ok(closes.next().map(|probes| match probes.user_timeout_ms {
        Some(limit) => UserTimeout::On {
            after_s: f64::from(limit) / 1e3,
        },
        None => UserTimeout::Off,
    }))
}
