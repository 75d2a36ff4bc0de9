//! Whether the loop closes for real clients: a program that wastes connections gets a finding, the
//! gate that its page prints fails for it, and passes for the remedy that the catalogue has for the
//! same client. A program that keeps its connections passes `--fail-on warning`.

use super::environment::Launch;
use super::watch_counts::{Order, run_watched};
use anyhow::Context;
use serde_json::Value;
use std::path::Path;

/// Connections beyond those needed that some clients open by design.
const SPARE: u64 = 2;

/// A run under `intact watch --fail-on warning`.
struct Run {
    /// Connections that the server counted.
    connections: u64,
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
    pub(super) broken: Vec<&'static str>,
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
    let Some(first) = run(intact, launch, order, &[])? else {
        return Ok(None);
    };
    let mut broken = Vec::new();
    let mut hold = |holds: bool, what: &'static str| {
        if !holds {
            broken.push(what);
        }
    };
    if first.connections > first.needed + SPARE {
        hold(!first.passes, "no finding");
        hold(!first.gates.is_empty(), "no gate");
        let again = run(intact, launch, order, &first.gates)?.context("no second run")?;
        hold(
            again.warned == first.warned,
            "other findings in the second run",
        );
        hold(!again.passes, "the printed gate passes without the remedy");
        if let Some(remedy) = remedy {
            let fixed = run(intact, remedy, order, &first.gates)?.context("no remedy")?;
            hold(fixed.passes, "the printed gate fails on the remedy");
        }
    } else {
        hold(first.passes, "it keeps connections, and does not pass");
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
    let Some(watched) = run_watched(intact, launch, "http", order, &options)? else {
        return Ok(None);
    };
    let document = watched.document;
    let list = |key: &str| document[key].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let findings = list("findings");
    let warned = findings.iter().filter(|one| one["severity"] != "info");
    let next = list("next");
    let kept = next.iter().filter(|step| step["purpose"] == "keep it");
    Ok(Some(Run {
        connections: watched.server.connections(),
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
