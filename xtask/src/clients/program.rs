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
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Longer than any client's own default that we want to see end.
const DEADLINE: Duration = Duration::from_secs(30);
/// A virtual machine on a busy computer takes its time.
const START: Duration = Duration::from_secs(60);

/// A running client program.
pub(crate) struct Program {
    child: Process,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
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
        Ok(program)
    }

    /// Whether it has a skill.
    pub(crate) fn can(&self, skill: Skill) -> bool {
        self.about.can.contains(&skill)
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
            Ok(line) => serde_json::from_str(&line)
                .with_context(|| format!("the program answered {line:?}")),
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

    /// Ends it by ending its input.
    pub(crate) fn end(mut self) -> anyhow::Result<()> {
        self.input = None;
        // it has nothing more to say: the end of its output is its end
        if !matches!(
            self.lines.recv_timeout(DEADLINE),
            Err(RecvTimeoutError::Disconnected)
        ) {
            self.child.0.kill()?;
        }
        self.child.0.wait()?;
        Ok(())
    }
}
