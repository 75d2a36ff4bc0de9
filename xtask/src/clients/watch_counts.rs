//! Compares the counts of `intact watch` with the server's counts, for real clients. Also compares
//! a client's output under `watch` with its output without.
//!
//! No client may get a finding about a broken path, a full server or a drain, because none of these
//! occurs here.
//!
//! A client runs twice for each scheme, without and with `watch`, each time with a new server.

use super::environment::Launch;
use super::measure::trust;
use super::program::{About, Skill};
use super::server::{Server, ServerCounts};
use anyhow::{Context, bail};
use serde_json::Value;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::Stdio;

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

    /// The commands of the program that it can follow.
    fn steps(self, base: &str, about: &About) -> Vec<String> {
        match self {
            Order::InTurn => {
                let mut steps = vec![format!("10 in-turn GET read {base}/bytes/100\n")];
                if about.can.contains(&Skill::Post) {
                    steps.push(format!("2 in-turn POST read {base}/bytes/100\n"));
                }
                steps
            }
            Order::AtOnce if about.can.contains(&Skill::Concurrent) => {
                vec![format!("10 at-once GET read {base}/delay/100\n"); 3]
            }
            Order::AtOnce => Vec::new(),
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

/// The complete output of a program, in bytes.
pub(super) struct Said {
    output: Vec<u8>,
    errors: Vec<u8>,
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
    let watched = run_watched(intact, launch, scheme, order, &[])?
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
    scheme: &str,
    order: Order,
    options: &[String],
) -> anyhow::Result<Option<WatchedRun>> {
    let server = Server::start(intact, &[])?;
    let folder = tempfile::tempdir()?;
    let document = folder.path().join("watch.json");
    let mut words: Vec<OsString> = vec!["watch".into(), "--quiet".into()];
    words.push(format!("--json={}", document.display()).into());
    words.extend(options.iter().map(OsString::from));
    words.push("--".into());
    let Some(said) = converse(&launch.inside(intact, words), &server, scheme, order)? else {
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
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let (Some(mut input), Some(output), Some(mut errors)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        bail!("the program has no input or output");
    };
    let errors = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        errors.read_to_end(&mut bytes).map(|_| bytes)
    });
    let mut output = BufReader::new(output);
    let mut said = Vec::new();
    output.read_until(b'\n', &mut said)?;
    let text = || String::from_utf8_lossy(&said).into_owned();
    let about: About = serde_json::from_slice(&said).with_context(text)?;
    let steps = order.steps(&server.base(scheme), &about);
    if steps.is_empty() || scheme == "https" && about.can.contains(&Skill::PlainOnly) {
        drop(input);
        child.wait()?;
        return Ok(None);
    }
    for step in &steps {
        input.write_all(step.as_bytes())?;
        let before = said.len();
        output.read_until(b'\n', &mut said)?;
        if said.len() == before {
            bail!("the program ended instead of answering {step:?}");
        }
    }
    drop(input);
    output.read_to_end(&mut said)?;
    let status = child.wait()?.code();
    let errors = errors
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    Ok(Some(Said {
        output: said,
        errors: without_number(&errors),
        status,
    }))
}

/// Without its process number, which Node puts before its warnings.
fn without_number(errors: &[u8]) -> Vec<u8> {
    const BEFORE: &[u8] = b"(node:";
    let mut out = Vec::new();
    for line in errors.split_inclusive(|&byte| byte == b'\n') {
        match line.strip_prefix(BEFORE) {
            Some(rest) => {
                let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
                out.extend_from_slice(BEFORE);
                out.extend_from_slice(&rest[digits..]);
            }
            None => out.extend_from_slice(line),
        }
    }
    out
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
            let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
            changes.push(format!("{what}: {:?} became {:?}", text(before), text(now)));
        }
    }
    changes
}
