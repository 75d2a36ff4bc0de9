//! A function behind a link. The function and its Runtime API are in a process on the client side,
//! which asks that the link drops everything while the function is frozen.

use super::Config;
use crate::cmd::internal::{self, Job};
use crate::cmd::link::{self, Server, ServerSide};
use crate::cmd::on_link::{self, Asked, Near, Surroundings};
use crate::console;
use crate::exit::Failed;
use anyhow::Context;
use intact_lambda::FreezeHook;
use intact_link::Spec;
use intact_link::document;
use std::io;
use std::process::ExitCode;

/// Runs a function on the client side of a link, with a server on the other; the exit code of its
/// process.
pub(super) fn run(spec: &Spec, server: Server, config: Config) -> Result<ExitCode, Failed> {
    let signals = link::signals()?;
    let link = link::start(spec, None).inspect_err(|_| {
        console::note("without --link the function runs and is stopped between invocations all the same; not emulated are then the round trip and the network that does not respond for it");
    })?;
    let far = ServerSide::start(&link, server)?;
    console::note_lines(&document::beginning(&link, far.environment()));
    let mut command = internal::command()?;
    for (name, value) in far.environment() {
        command.env(name, value);
    }
    let job = Job::Lambda(Box::new(config), Surroundings::of(&link, None));
    let code = on_link::run_job(&link, signals, command, &job, |_| {})?;
    let served = far.end()?;
    let account = link.account().context("the link")?;
    console::note_lines(&document::end(&link, &account, served.as_ref()));
    Ok(code)
}

/// What happens to the link around a freeze.
pub(super) struct LinkFreeze {
    pub(super) near: Near,
    /// Whether a frozen function is cut off.
    pub(super) drops: bool,
}

impl LinkFreeze {
    fn ask(&mut self, asked: Asked) -> io::Result<()> {
        if self.drops {
            self.near.ask(asked).map_err(io::Error::other)?;
        }
        Ok(())
    }
}

impl FreezeHook for LinkFreeze {
    fn close(&mut self) -> io::Result<()> {
        self.ask(Asked::Close)
    }

    fn open(&mut self) -> io::Result<()> {
        self.ask(Asked::Open)
    }
}
