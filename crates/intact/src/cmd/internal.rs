//! `intact internal`: the hidden entry point of processes that this program starts. A process is
//! needed where CPU time must be counted separately: the built-in server, the workers of a fleet.
//! It is needed too inside the namespaces of a link, which a process with threads cannot enter
//! (setns(2)).
//!
//! The process takes a [`Job`], one line of JSON, from standard input: the `Config` of a command,
//! never its command line. Standard input then stays open. Its end is the end of the parent, and on
//! a link both sides send further lines. Must not have options.

#[cfg(feature = "fleet")]
use super::fleet;
use super::{bench, builtin, lambda, on_link, serve};
use crate::exit::Failed;
use crate::system;
use anyhow::{Context, bail};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Command, ExitCode};

/// The subcommand.
const NAME: &str = "internal";

/// Standard input after the job; also the way back, where standard input is a socket.
pub(crate) type Control = BufReader<File>;

/// What the process has to do.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Job {
    /// The built-in server, until standard input ends.
    Serve(Box<serve::Config>),
    /// A bench on the client side of a link.
    Bench(Box<bench::Config>, on_link::Surroundings),
    /// A function and its platform on the client side of a link.
    Lambda(Box<lambda::Config>, on_link::Surroundings),
    /// A service under `watch`, until it ends.
    Service(Box<bench::watched_service::ServiceJob>),
    #[cfg(feature = "fleet")]
    /// One delivery of a message of a fleet, at most until standard input ends.
    Work(Box<fleet::Delivery>),
}

/// This program, to be started for a job.
pub(crate) fn command() -> anyhow::Result<Command> {
    let mut command = builtin::ourselves()?;
    command.arg(NAME);
    Ok(command)
}

/// Writes one line.
pub(crate) fn send(message: &impl Serialize, to: &mut impl Write) -> io::Result<()> {
    let mut line = serde_json::to_string(message)?;
    line.push('\n');
    to.write_all(line.as_bytes())
}

/// Reads one line.
pub(crate) fn receive<T: DeserializeOwned>(from: &mut impl BufRead) -> anyhow::Result<T> {
    let mut line = String::new();
    if from.read_line(&mut line)? == 0 {
        bail!("standard input has ended");
    }
    Ok(serde_json::from_str(&line)?)
}

/// Does the job that standard input names.
pub(crate) fn run() -> Result<ExitCode, Failed> {
    let mut control = BufReader::new(system::standard_input().context("standard input")?);
    let job = receive(&mut control)
        .context("intact starts this itself: there is no job on standard input")
        .map_err(Failed::usage)?;
    match job {
        Job::Serve(config) => serve::run_as_child(&config, control),
        Job::Bench(config, surroundings) => {
            bench::measure(&config, Some(on_link::Near::new(control, surroundings)))
        }
        Job::Lambda(config, surroundings) => {
            let near = on_link::Near::new(control, surroundings);
            lambda::run_on_link(&config, near).map_err(Failed::of_wrapper)
        }
        Job::Service(job) => bench::watched_service::run_as_child(&job).map_err(Failed::of_wrapper),
        #[cfg(feature = "fleet")]
        Job::Work(delivery) => fleet::work_as_child(*delivery, control),
    }
}
