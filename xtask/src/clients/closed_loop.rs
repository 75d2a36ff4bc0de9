//! Whether the loop closes for real clients: a program that wastes connections gets a finding, the
//! gate that its page prints fails for it, and passes for the remedy that the catalogue has for the
//! same client. A program that keeps its connections passes `--fail-on warning`.

use super::environment::Launch;
use super::server::Server;
use super::watch_counts::{Order, converse};
use anyhow::Context;
use serde_json::Value;
use std::ffi::OsString;
use std::path::Path;

/// Connections from which on requests in turn waste them: some clients use two by design.
const WASTEFUL: u64 = 3;

/// A run under `intact watch --fail-on warning`.
struct Run {
    /// Connections that the server counted.
    connections: u64,
    /// Rules with a warning or an error.
    warned: Vec<String>,
    /// The gates that the page prints.
    gates: Vec<String>,
    /// Whether gates and `--fail-on` were met.
    passes: bool,
}

/// How the loop went for one variant.
pub(super) struct Loop {
    /// Connections of ten requests in turn.
    pub(super) connections: u64,
    /// Rules with a warning.
    pub(super) rules: Vec<String>,
    /// The gates that the page printed.
    pub(super) gates: Vec<String>,
    /// What did not hold.
    pub(super) broken: Vec<String>,
}

/// Runs a variant, and the remedy of its client where the variant wastes connections.
pub(super) fn close(
    intact: &Path,
    launch: &Launch,
    remedy: Option<&Launch>,
) -> anyhow::Result<Loop> {
    let of = |launch, order, gates: &[String]| run(intact, launch, order, gates);
    let first = of(launch, Order::InTurn, &[])?.context("it cannot make requests in turn")?;
    let mut broken = Vec::new();
    let mut hold = |holds: bool, what: &str| {
        if !holds {
            broken.push(what.to_owned());
        }
    };
    if first.connections < WASTEFUL {
        hold(first.passes, "it keeps connections, and does not pass");
        let at_once = of(launch, Order::AtOnce, &[])?;
        let passes = at_once.as_ref().is_none_or(|one| one.passes);
        let rules = at_once.map_or_else(Vec::new, |one| one.warned);
        hold(passes, &format!("requests at once: {}", rules.join(", ")));
    } else {
        hold(!first.warned.is_empty(), "no finding");
        hold(!first.gates.is_empty(), "no gate");
        let again = of(launch, Order::InTurn, &first.gates)?.context("no second run")?;
        hold(again.gates == first.gates, "another gate in the second run");
        hold(!again.passes, "the printed gate passes without the remedy");
        if let Some(remedy) = remedy {
            let fixed = of(remedy, Order::InTurn, &first.gates)?.context("no remedy")?;
            hold(fixed.passes, "the printed gate fails on the remedy");
        }
    }
    Ok(Loop {
        connections: first.connections,
        rules: first.warned,
        gates: first.gates,
        broken,
    })
}

/// `None`: the program cannot make requests in this order.
fn run(
    intact: &Path,
    launch: &Launch,
    order: Order,
    gates: &[String],
) -> anyhow::Result<Option<Run>> {
    let server = Server::start(intact, &[])?;
    let folder = tempfile::tempdir()?;
    let document = folder.path().join("watch.json");
    let mut words = vec!["watch".to_owned(), "--quiet".to_owned()];
    words.push(format!("--json={}", document.display()));
    // with a gate of its own, findings need not decide
    match gates {
        [] => words.extend(["--fail-on", "warning"].map(str::to_owned)),
        _ => words.extend(gates.iter().map(|gate| format!("--require={gate}"))),
    }
    words.push("--".to_owned());
    let words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
    let Some(said) = converse(&launch.inside(intact, words), &server, "http", order)? else {
        return Ok(None);
    };
    let text = std::fs::read(&document).context("`intact watch` wrote no document")?;
    let document: Value = serde_json::from_slice(&text)?;
    let list = |key: &str| document[key].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let findings = list("findings");
    let warned = findings.iter().filter(|one| one["severity"] != "info");
    let next = list("next");
    let kept = next.iter().filter(|step| step["purpose"] == "keep it");
    Ok(Some(Run {
        connections: server.end()?.connections(),
        warned: warned.map(|one| text(&one["rule"])).collect(),
        gates: kept
            .flat_map(|step| required(&text(&step["command"])))
            .collect(),
        passes: said.status == Some(0),
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
