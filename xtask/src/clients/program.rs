//! A client program under measurement. It reads commands line by line and reports the outcome of
//! each request.
//!
//! The protocol is in clients/README.md. A program that hangs is a result, too: each step has a
//! deadline, and its unfinished requests count as timeouts.

use crate::tool::{Process, line, not_started};
use anyhow::{Context, bail};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Longer than any client's own default that we want to see end.
const DEADLINE: Duration = Duration::from_secs(30);
/// A virtual machine on a busy computer takes its time.
const START: Duration = Duration::from_secs(60);

/// Long enough that ten requests overlap even on a busy computer.
pub(crate) const SLOW: &str = "/delay/100";

/// A running client program.
pub(crate) struct Program {
    child: Process,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    /// What it has printed.
    printed: Vec<String>,
    pub(crate) about: About,
}

/// What a program says of itself when it is ready.
#[derive(Clone, Default, Deserialize)]
pub(crate) struct About {
    /// Versions of runtime and library, as they report them.
    pub(crate) versions: BTreeMap<String, String>,
    /// What it can do beyond one request after the other.
    pub(crate) can: Vec<Skill>,
}

/// Something that not every client can do.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Skill {
    /// Several requests at once.
    Concurrent,
    /// Leaving a body unread.
    Unread,
    /// POST.
    Post,
    /// Handling a status other than 200 without the body that the client's service would send.
    Status,
    /// Nothing but plain HTTP.
    PlainOnly,
    /// Nothing but HTTP/2.
    Http2Only,
    /// Only POST, for any requested method.
    PostOnly,
    /// Keeping its connections while it waits for the next step.
    Pause,
}

/// The outcome of one request as the program saw it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(crate) enum Outcome {
    /// The status of a complete answer.
    Status(u16),
    /// The error in the library's words.
    Error(String),
}

impl Outcome {
    /// Whether the program got no complete response.
    pub(crate) fn is_error(&self) -> bool {
        matches!(self, Outcome::Error(_))
    }
}

/// One step: `count` requests, one after the other or at once.
pub(crate) struct ProgramStep<'a> {
    pub(crate) count: u64,
    pub(crate) at_once: bool,
    pub(crate) method: &'a str,
    pub(crate) read: bool,
    pub(crate) url: &'a str,
}

impl<'a> ProgramStep<'a> {
    /// One GET whose body is read.
    pub(crate) fn get(url: &'a str) -> ProgramStep<'a> {
        ProgramStep {
            count: 1,
            at_once: false,
            method: "GET",
            read: true,
            url,
        }
    }

    /// One POST.
    pub(crate) fn post(url: &'a str) -> ProgramStep<'a> {
        ProgramStep {
            method: "POST",
            ..ProgramStep::get(url)
        }
    }

    /// That many, one after the other.
    pub(crate) fn times(self, count: u64) -> ProgramStep<'a> {
        ProgramStep { count, ..self }
    }

    /// All of them together.
    pub(crate) fn at_once(self) -> ProgramStep<'a> {
        ProgramStep {
            at_once: true,
            ..self
        }
    }

    /// Without reading bodies.
    pub(crate) fn unread(self) -> ProgramStep<'a> {
        ProgramStep {
            read: false,
            ..self
        }
    }
}

impl Program {
    /// Starts it and waits until it is ready.
    pub(crate) fn start(mut command: Command) -> anyhow::Result<Program> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| not_started(&command))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            bail!("{} has no input or output", line(&command));
        };
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let mut program = Program {
            child: Process(child),
            input: Some(input),
            lines,
            printed: Vec::new(),
            about: About::default(),
        };
        let ready = program.lines.recv_timeout(START).with_context(|| {
            format!(
                "{} did not get ready: see stderr.log in its folder",
                line(&command)
            )
        })?;
        program.about = serde_json::from_str(&ready)
            .with_context(|| format!("{} said {ready:?}", line(&command)))?;
        program.printed.push(ready);
        Ok(program)
    }

    /// Whether it has a skill.
    pub(crate) fn can(&self, skill: Skill) -> bool {
        self.about.can.contains(&skill)
    }

    /// Whether it was ended because a step did not end in time.
    pub(crate) fn hangs(&self) -> bool {
        self.input.is_none()
    }

    /// Has it make requests. Each request of a step that does not end in time counts as a timeout.
    pub(crate) fn run(&mut self, step: &ProgramStep<'_>) -> anyhow::Result<Vec<Outcome>> {
        let order = if step.at_once { "at-once" } else { "in-turn" };
        let body = if step.read { "read" } else { "unread" };
        let line = format!(
            "{} {order} {} {body} {}\n",
            step.count, step.method, step.url
        );
        let Some(input) = &mut self.input else {
            bail!("the program has ended");
        };
        input
            .write_all(line.as_bytes())
            .context("the program has ended")?;
        match self.lines.recv_timeout(DEADLINE) {
            Ok(line) => {
                let outcomes = serde_json::from_str(&line);
                let outcomes = outcomes.with_context(|| format!("the program answered {line:?}"));
                self.printed.push(line);
                outcomes
            }
            Err(RecvTimeoutError::Timeout) => {
                self.child.0.kill()?;
                self.input = None;
                Ok(vec![
                    Outcome::Error("hangs".to_owned());
                    step.count as usize
                ])
            }
            Err(RecvTimeoutError::Disconnected) => {
                bail!("the program ended before it reported the result of {line:?}")
            }
        }
    }

    /// Three rounds of ten requests at once, to a path that overlaps them; how many failed, if the
    /// program can do that.
    pub(crate) fn run_at_once(&mut self, base: &str) -> anyhow::Result<Option<u64>> {
        if !self.can(Skill::Concurrent) {
            return Ok(None);
        }
        let url = format!("{base}{SLOW}");
        let mut all = 0;
        for _ in 0..3 {
            all += failed(&self.run(&ProgramStep::get(&url).times(10).at_once())?);
        }
        Ok(Some(all))
    }

    /// Ends it by ending its input.
    pub(crate) fn end(self) -> anyhow::Result<()> {
        self.finish().map(drop)
    }

    /// Ends it by ending its input. All lines that it printed, and its status.
    pub(crate) fn finish(mut self) -> anyhow::Result<(Vec<String>, ExitStatus)> {
        self.input = None;
        // the end of its output is its end
        loop {
            match self.lines.recv_timeout(DEADLINE) {
                Ok(line) => self.printed.push(line),
                Err(RecvTimeoutError::Timeout) => self.child.0.kill()?,
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        Ok((self.printed, self.child.0.wait()?))
    }
}

/// How many requests failed.
pub(crate) fn failed(outcomes: &[Outcome]) -> u64 {
    outcomes.iter().filter(|one| one.is_error()).count() as u64
}
