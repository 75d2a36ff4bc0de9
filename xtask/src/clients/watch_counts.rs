//! Compares the counts of `intact watch` with the server's counts, for real clients. Also compares
//! a client's output under `watch` with its output without.
//!
//! No client may get a finding about a broken path, a full server or a drain, because none of these
//! occurs here.
//!
//! A client runs twice for each scheme, without and with `watch`, each time with a new server.

use super::environment::Launch;
use super::measure::trust;
use super::program::{Program, ProgramStep, Skill};
use super::server::{Server, ServerCounts};
use anyhow::Context;
use serde_json::Value;
use std::path::Path;

/// Rules that need a broken path, a limit or a shutdown of the server, or a program that leaks.
const ABSENT_HERE: [&str; 6] = [
    "cold-pool",
    "dead-connection-reused",
    "h2-stream-limit",
    "leaked-connections",
    "lost-in-drain",
    "unbalanced-by-reuse",
];

/// Connections and requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) connections: u64,
    pub(super) requests: u64,
}

/// How requests are made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Ten GETs and two POSTs, each after the one before.
    InTurn,
    /// Three rounds of ten GETs.
    AtOnce,
}

impl Order {
    pub(super) const ALL: [Order; 2] = [Order::InTurn, Order::AtOnce];

    /// Has the program make the requests. `false`: it cannot make them in this order.
    fn run(self, program: &mut Program, base: &str) -> anyhow::Result<bool> {
        match self {
            Order::InTurn => {
                let url = format!("{base}/bytes/100");
                program.run(&ProgramStep::get(&url).times(10))?;
                if program.can(Skill::Post) {
                    program.run(&ProgramStep::post(&url).times(2))?;
                }
                Ok(true)
            }
            Order::AtOnce => Ok(program.run_at_once(base)?.is_some()),
        }
    }
}

/// The result of one client over one scheme.
pub(super) struct Watched {
    pub(super) scheme: &'static str,
    pub(super) order: Order,
    pub(super) server: Counts,
    pub(super) watch: Counts,
    /// Requests were inferred from the direction of the bytes.
    pub(super) is_inferred: bool,
    /// Over HTTP/2.
    pub(super) is_http2: bool,
    /// Output that appears only with `watch`, or only without.
    pub(super) differences: Vec<String>,
    /// Rules of [`ABSENT_HERE`] with a finding.
    pub(super) wrong_findings: Vec<String>,
}

impl Watched {
    /// Whether both counts and both outputs are equal. With inferred requests over HTTP/2, the
    /// counts may differ by one: SETTINGS and tickets can look like a response. Concurrent requests
    /// on one connection cannot be inferred, so their number is not compared.
    pub(super) fn holds(&self) -> bool {
        let off = self.server.requests.abs_diff(self.watch.requests);
        let most = match (self.is_inferred && self.is_http2, self.order) {
            (false, _) => 0,
            (true, Order::InTurn) => 1,
            (true, Order::AtOnce) => u64::MAX,
        };
        self.server.connections == self.watch.connections
            && off <= most
            && self.differences.is_empty()
            && self.wrong_findings.is_empty()
    }
}

/// The complete output of a program.
pub(super) struct Said {
    output: String,
    errors: String,
    pub(super) status: Option<i32>,
}

/// Runs a client over plain HTTP and over TLS, with requests in turn and at once, where it can.
pub(super) fn hold(intact: &Path, launch: &Launch) -> anyhow::Result<Vec<Watched>> {
    let mut all = Vec::new();
    for scheme in ["http", "https"] {
        for order in Order::ALL {
            all.extend(hold_one(intact, launch, scheme, order)?);
        }
    }
    Ok(all)
}

fn hold_one(
    intact: &Path,
    launch: &Launch,
    scheme: &'static str,
    order: Order,
) -> anyhow::Result<Option<Watched>> {
    let alone = Server::start(intact, &[])?;
    let Some(unwatched) = converse(launch, &alone, scheme, order)? else {
        return Ok(None);
    };
    drop(alone);
    let watched = run_watched(intact, launch, &[], scheme, order, &[])?
        .context("under `intact watch` the program cannot make requests that it made without")?;
    let WatchedRun {
        base,
        document,
        server,
        said,
    } = watched;
    let (watch, is_inferred) = counts(&document, &base)?;
    Ok(Some(Watched {
        scheme,
        order,
        server: Counts {
            connections: server.connections(),
            requests: server.requests(),
        },
        is_http2: server.has_http2(),
        watch,
        is_inferred,
        differences: differences(&unwatched, &said),
        wrong_findings: wrong_findings(&document)?,
    }))
}

/// One run of a program under `intact watch`.
pub(super) struct WatchedRun {
    /// The address of the server.
    base: String,
    /// What `watch` wrote.
    pub(super) document: Value,
    /// What the server counted.
    pub(super) server: ServerCounts,
    pub(super) said: Said,
}

/// Runs a program under `intact watch` with these options and a new server. `None`: it does not
/// support this order or this scheme.
pub(super) fn run_watched(
    intact: &Path,
    launch: &Launch,
    server: &[&str],
    scheme: &str,
    order: Order,
    options: &[String],
) -> anyhow::Result<Option<WatchedRun>> {
    let server = Server::start(intact, server)?;
    let folder = tempfile::tempdir()?;
    let document = folder.path().join("watch.json");
    let mut words = options.to_vec();
    words.push(format!("--json={}", document.display()));
    let Some(said) = converse(&launch.watched(intact, words), &server, scheme, order)? else {
        return Ok(None);
    };
    let text = std::fs::read(&document).context("`intact watch` wrote no document")?;
    Ok(Some(WatchedRun {
        base: server.base(scheme),
        document: serde_json::from_slice(&text)?,
        server: server.end()?,
        said,
    }))
}

/// The counts of the document for that server, and whether requests are inferred.
fn counts(document: &Value, base: &str) -> anyhow::Result<(Counts, bool)> {
    let port = base.rsplit(':').next().unwrap_or_default();
    let is_ours = |one: &&Value| {
        let origin = one["origin"].as_str().unwrap_or_default();
        origin.trim_end_matches('/').ends_with(&format!(":{port}"))
    };
    let all = document["destinations"]
        .as_array()
        .context("no destinations")?;
    let mut counts = Counts {
        connections: 0,
        requests: 0,
    };
    let mut is_inferred = false;
    for one in all.iter().filter(is_ours) {
        let number = |group: &str, key: &str| {
            let bounds = &one[group]["bounds"][key];
            let stated = [&one[group][key], &bounds["inferred"], &bounds["low"]];
            let number = stated.into_iter().find_map(Value::as_u64);
            number.with_context(|| format!("no number in {group}.{key}"))
        };
        counts.connections += number("connections", "opened")?;
        counts.requests += number("requests", "total")?;
        is_inferred |= one["inferred"]
            .as_array()
            .is_some_and(|why| !why.is_empty());
    }
    Ok((counts, is_inferred))
}

/// The rules of [`ABSENT_HERE`] that have a finding.
fn wrong_findings(document: &Value) -> anyhow::Result<Vec<String>> {
    let all = document["findings"].as_array().context("no findings")?;
    let rules = all.iter().filter_map(|one| one["rule"].as_str());
    Ok(rules
        .filter(|rule| ABSENT_HERE.contains(rule))
        .map(str::to_owned)
        .collect())
}

/// Lets a program make its requests. `None`: it does not support this order or this scheme.
fn converse(
    launch: &Launch,
    server: &Server,
    scheme: &str,
    order: Order,
) -> anyhow::Result<Option<Said>> {
    let mut command = launch.command()?;
    trust(&mut command, server);
    let errors = tempfile::NamedTempFile::new()?;
    command.stderr(errors.reopen()?);
    let mut program = Program::start(command)?;
    let is_plain_only = program.can(Skill::PlainOnly);
    if scheme == "https" && is_plain_only || !order.run(&mut program, &server.base(scheme))? {
        program.end()?;
        return Ok(None);
    }
    let (output, status) = program.finish()?;
    let errors = std::fs::read(errors.path())?;
    // Node puts its process number before its warnings
    let number = regex::Regex::new(r"(?m)^\(node:[0-9]+")?;
    let errors = String::from_utf8_lossy(&errors);
    Ok(Some(Said {
        output: output.join("\n"),
        errors: number.replace_all(&errors, "(node:").into_owned(),
        status: status.code(),
    }))
}

fn differences(unwatched: &Said, watched: &Said) -> Vec<String> {
    let mut changes = Vec::new();
    if unwatched.status != watched.status {
        changes.push(format!(
            "ended with {:?}, not {:?}",
            watched.status, unwatched.status
        ));
    }
    for (what, before, now) in [
        ("output", &unwatched.output, &watched.output),
        ("errors", &unwatched.errors, &watched.errors),
    ] {
        if before != now {
            changes.push(format!("{what}: {before:?} became {now:?}"));
        }
    }
    changes
}
