//! The built-in server as a child process, so that the client's CPU time is the client's.

use super::internal::{self, Job};
use super::serve;
use anyhow::{Context, bail};
use intact_ledger::Tally;
use intact_link::{Link, LinkEnd};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;

/// The line by which a child says that it listens.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Ready {
    pub(crate) plain: SocketAddr,
    pub(crate) tls: SocketAddr,
    pub(crate) ca: String,
    /// Its process, as others behind the same doors see it.
    pub(crate) pid: u32,
}

/// The running child. It ends when its standard input does, that is, with us, however we end.
pub(crate) struct Builtin {
    child: Child,
    out: BufReader<ChildStdout>,
    ready: Ready,
}

impl Builtin {
    /// Starts it and waits until it listens.
    pub(crate) fn start(config: serve::Config) -> anyhow::Result<Builtin> {
        Builtin::spawn(&mut internal::command()?, config)
    }

    /// Starts it on the server side of a link.
    pub(crate) fn start_on(link: &Link, config: serve::Config) -> anyhow::Result<Builtin> {
        let mut command = internal::command()?;
        link.enter(LinkEnd::Server, &mut command);
        Builtin::spawn(&mut command, config.on_link())
    }

    fn spawn(command: &mut Command, config: serve::Config) -> anyhow::Result<Builtin> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the built-in server")?;
        let (Some(stdin), Some(out)) = (&mut child.stdin, child.stdout.take()) else {
            bail!("the built-in server has no input or output");
        };
        internal::send(&Job::Serve(Box::new(config)), stdin)
            .context("cannot start the built-in server")?;
        let mut out = BufReader::new(out);
        let mut line = String::new();
        out.read_line(&mut line)
            .context("the built-in server does not respond")?;
        let ready = serde_json::from_str(&line)
            .with_context(|| format!("the built-in server did not start (it said {line:?})"))?;
        Ok(Builtin { child, out, ready })
    }

    /// Ends it; its tally of all traffic.
    pub(crate) fn end(mut self) -> anyhow::Result<Tally> {
        drop(self.child.stdin.take());
        let mut text = String::new();
        self.out
            .read_to_string(&mut text)
            .context("the built-in server does not say what it counted")?;
        serde_json::from_str(&text).context("the built-in server does not say what it counted")
    }

    /// Where it is and whom to trust.
    pub(crate) fn ready(&self) -> &Ready {
        &self.ready
    }
}

impl Ready {
    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.plain)
    }

    pub(crate) fn tls_port(&self) -> u16 {
        self.tls.port()
    }

    pub(crate) fn roots(&self) -> Arc<[u8]> {
        self.ca.as_bytes().into()
    }
}

/// Our own program, to be started again.
pub(crate) fn ourselves() -> anyhow::Result<Command> {
    let program = std::env::current_exe().context("cannot find our own program file")?;
    Ok(Command::new(program))
}

impl Drop for Builtin {
    fn drop(&mut self) {
        // closing its standard input ends it; unread, its tally could fill the pipe and keep it
        // alive
        drop(self.child.stdin.take());
        let _ = std::io::copy(&mut self.out, &mut std::io::sink());
        let _ = self.child.wait();
    }
}
