//! Whether the loop closes for real clients: a program that wastes connections gets a finding, the
//! gate that its page prints fails for it, and passes for the remedy that the catalogue has for the
//! same client. A program that keeps its connections passes `--fail-on warning`. With a server that
//! ends them after a few requests it gets a finding, whose gate passes without that limit.

use super::environment::Launch;
use super::watch_counts::{Order, run_watched};
use anyhow::Context;
use serde_json::Value;
use std::path::Path;

/// Connections beyond those needed that some clients open by design.
const SPARE: u64 = 2;

/// Options of a server that ends connections, which all clients would reuse.
const LIMIT: [&str; 2] = ["--max-requests", "3"];
/// The requests for which such a server keeps a connection.
const LIMIT_REQUESTS: u64 = 3;
/// The rule that finds it.
const LIMIT_RULE: &str = "server-closes-early";

/// A run under `intact watch --fail-on warning`.
struct Run {
    /// Connections that the server counted.
    connections: u64,
    /// Requests that the server counted.
    requests: u64,
    /// Those of them that the requests needed.
    needed: u64,
    /// Rules with a warning or an error.
    warned: Vec<String>,
    /// The gates that the page prints.
    gates: Vec<String>,
    /// Whether gates and `--fail-on` were met.
    passes: bool,
}

/// How the loop went for one variant and order.
pub(super) struct Loop {
    pub(super) order: Order,
    pub(super) connections: u64,
    /// Rules with a warning.
    pub(super) rules: Vec<String>,
    /// The gates that the page printed.
    pub(super) gates: Vec<String>,
    /// What did not hold.
    pub(super) broken: Vec<String>,
}

/// Runs a variant, and the remedy of its client where the variant wastes connections in turn.
pub(super) fn close(
    intact: &Path,
    launch: &Launch,
    remedy: Option<&Launch>,
) -> anyhow::Result<Vec<Loop>> {
    let mut loops = Vec::new();
    for order in Order::ALL {
        let remedy = remedy.filter(|_| order == Order::InTurn);
        loops.extend(close_one(intact, launch, remedy, order)?);
    }
    Ok(loops)
}

fn close_one(
    intact: &Path,
    launch: &Launch,
    remedy: Option<&Launch>,
    order: Order,
) -> anyhow::Result<Option<Loop>> {
    let Some(first) = run(intact, launch, &[], order, &[])? else {
        return Ok(None);
    };
    let mut broken = Vec::new();
    let mut hold = |holds: bool, what: &str, run: &Run| {
        if !holds {
            let (warned, gates) = (&run.warned, &run.gates);
            let opened = run.connections;
            broken.push(format!("{what} ({opened} opened, {warned:?}, {gates:?})"));
        }
    };
    if first.connections > first.needed + SPARE {
        hold(!first.passes, "no finding", &first);
        hold(!first.gates.is_empty(), "no gate", &first);
        let again = run(intact, launch, &[], order, &first.gates)?.context("no second run")?;
        hold(
            again.warned == first.warned,
            "other findings in the second run",
            &again,
        );
        let passes = "the printed gate passes without the remedy";
        hold(!again.passes, passes, &again);
        if let Some(remedy) = remedy {
            let fixed = run(intact, remedy, &[], order, &first.gates)?.context("no remedy")?;
            let fails = "the printed gate fails on the remedy";
            hold(fixed.passes, fails, &fixed);
        }
    } else {
        let kept = "it keeps connections, and does not pass";
        hold(first.passes, kept, &first);
        if order == Order::InTurn && first.connections <= first.needed {
            let limited = run(intact, launch, &LIMIT, order, &[])?.context("no limited run")?;
            // undici 7.29 uses no connection twice after the server has announced the end of two
            let is_more = limited.connections > limited.requests.div_ceil(LIMIT_REQUESTS);
            let is_found = is_more || limited.warned == [LIMIT_RULE];
            let unseen = "no finding of the server's limit";
            hold(is_found && !limited.passes, unseen, &limited);
            let freed = run(intact, launch, &[], order, &limited.gates)?.context("no free run")?;
            let closes = freed.passes && !limited.gates.is_empty();
            let fails = "the gate of the server's limit fails without it";
            hold(closes, fails, &freed);
        }
    }
    Ok(Some(Loop {
        order,
        connections: first.connections,
        rules: first.warned,
        gates: first.gates,
        broken,
    }))
}

/// `None`: the program cannot make requests in this order.
fn run(
    intact: &Path,
    launch: &Launch,
    server: &[&str],
    order: Order,
    gates: &[String],
) -> anyhow::Result<Option<Run>> {
    // with a gate of its own, findings need not decide
    let options = match gates {
        [] => ["--fail-on", "warning"].map(str::to_owned).to_vec(),
        _ => gates
            .iter()
            .map(|gate| format!("--require={gate}"))
            .collect(),
    };
    let Some(watched) = run_watched(intact, launch, server, "http", order, &options)? else {
        return Ok(None);
    };
    // a client that refuses every request has nothing to close
    if watched.server.requests() == 0 {
        return Ok(None);
    }
    let document = watched.document;
    let list = |key: &str| document[key].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let findings = list("findings");
    let warned = findings.iter().filter(|one| one["severity"] != "info");
    let next = list("next");
    let kept = next
        .iter()
        .filter(|step| text(&step["purpose"]).starts_with("keep it"));
    Ok(Some(Run {
        connections: watched.server.connections(),
        requests: watched.server.requests(),
        needed: (document["connections"]["needed"].as_u64()).context("no needed connections")?,
        warned: warned.map(|one| text(&one["rule"])).collect(),
        gates: kept
            .flat_map(|step| required(&text(&step["command"])))
            .collect(),
        passes: watched.said.status == Some(0),
    }))
}

/// The requirements of a command line, which stand between apostrophes.
fn required(command: &str) -> Vec<String> {
    let mut parts = command.split("--require '");
    parts.next();
    parts
        .filter_map(|part| Some(part.split_once('\'')?.0.to_owned()))
        .collect()
}
