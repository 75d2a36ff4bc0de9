//! What `intact watch` counts, held against what the server counts, with real clients; and what the clients say under it, held
//! against what they say without.
//!
//! A client is run twice for each scheme, each time with a server of its own: as it is, and watched.

use super::environment::Launch;
use super::measure::trust;
use super::program::{About, Skill};
use super::server::Server;
use anyhow::{Context, bail};
use serde_json::Value;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::Stdio;

/// Connections and requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) connections: u64,
    pub(super) requests: u64,
}

/// What came of one client over one scheme.
pub(super) struct Watched {
    pub(super) scheme: &'static str,
    pub(super) server: Counts,
    pub(super) watch: Counts,
    /// Why requests are inferred, if they are.
    pub(super) inferred: Vec<String>,
    /// What the program said that it did not say unwatched, or the other way round.
    pub(super) differences: Vec<String>,
}

impl Watched {
    /// Whether both count the same and the program said the same.
    pub(super) fn holds(&self) -> bool {
        self.server == self.watch && self.differences.is_empty()
    }
}

/// All that a program said, byte for byte.
struct Said {
    output: Vec<u8>,
    errors: Vec<u8>,
    status: Option<i32>,
}

/// Runs a client over plain HTTP and over TLS.
pub(super) fn hold(intact: &Path, launch: &Launch) -> anyhow::Result<Vec<Watched>> {
    let mut all = Vec::new();
    for scheme in ["http", "https"] {
        let alone = Server::start(intact, &[])?;
        let Some(unwatched) = converse(launch, &alone, scheme)? else {
            continue;
        };
        drop(alone);
        let server = Server::start(intact, &[])?;
        let folder = tempfile::tempdir()?;
        let document = folder.path().join("watch.json");
        let mut words: Vec<OsString> = vec!["watch".into(), "--quiet".into()];
        words.push(format!("--json={}", document.display()).into());
        words.push("--".into());
        let watched = converse(&launch.inside(intact, words), &server, scheme)?
            .context("watched, it cannot do what it could")?;
        let port = server
            .base(scheme)
            .rsplit(':')
            .next()
            .unwrap_or_default()
            .to_owned();
        let books = server.end()?;
        let text = std::fs::read(&document).context("`intact watch` wrote no document")?;
        let (watch, inferred) = counts(&serde_json::from_slice(&text)?, &port)?;
        all.push(Watched {
            scheme,
            server: Counts {
                connections: books.connections(),
                requests: books.requests(),
            },
            watch,
            inferred,
            differences: differences(&unwatched, &watched),
        });
    }
    Ok(all)
}

/// What the document says of the destinations with that port.
fn counts(document: &Value, port: &str) -> anyhow::Result<(Counts, Vec<String>)> {
    let all = document["destinations"]
        .as_array()
        .context("no destinations")?;
    let ours = all.iter().filter(|one| {
        one["origin"]
            .as_str()
            .is_some_and(|origin| origin.trim_end_matches('/').ends_with(&format!(":{port}")))
    });
    let mut counts = Counts {
        connections: 0,
        requests: 0,
    };
    let mut inferred = Vec::new();
    for one in ours {
        let number = |value: &Value| value.as_u64().context("no number");
        counts.connections += number(&one["connections"]["opened"])?;
        counts.requests += number(&one["requests"]["total"])?;
        let reasons = one["inferred"].as_array().into_iter().flatten();
        inferred.extend(reasons.filter_map(|reason| Some(reason.as_str()?.to_owned())));
    }
    Ok((counts, inferred))
}

/// Has a program make ten requests in turn, three rounds of ten at once and two POSTs, as far as it can. `None`: not over this scheme.
fn converse(launch: &Launch, server: &Server, scheme: &str) -> anyhow::Result<Option<Said>> {
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
    if scheme == "https" && about.can.contains(&Skill::PlainOnly) {
        drop(input);
        child.wait()?;
        return Ok(None);
    }
    let base = server.base(scheme);
    let mut steps = vec![format!("10 in-turn GET read {base}/bytes/100\n")];
    if about.can.contains(&Skill::Concurrent) {
        steps.extend(vec![format!("10 at-once GET read {base}/delay/100\n"); 3]);
    }
    if about.can.contains(&Skill::Post) {
        steps.push(format!("2 in-turn POST read {base}/bytes/100\n"));
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
        errors,
        status,
    }))
}

fn differences(unwatched: &Said, watched: &Said) -> Vec<String> {
    let mut told = Vec::new();
    if unwatched.status != watched.status {
        told.push(format!(
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
            told.push(format!("{what}: {:?} became {:?}", text(before), text(now)));
        }
    }
    told
}
