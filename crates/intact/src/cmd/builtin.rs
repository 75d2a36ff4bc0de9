//! The built-in server as a child process, so that the client's CPU time is the client's.

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;

/// The line by which a child says that it listens.
#[derive(Serialize, Deserialize)]
pub(crate) struct Ready {
    pub(crate) plain: SocketAddr,
    pub(crate) tls: SocketAddr,
    pub(crate) ca: String,
}

/// The running child. It ends when its standard input does, that is, with us, however we end.
pub(crate) struct Builtin {
    child: Child,
    _out: BufReader<ChildStdout>,
    ready: Ready,
}

impl Builtin {
    /// Starts it and waits until it listens.
    pub(crate) fn start() -> anyhow::Result<Builtin> {
        let program = std::env::current_exe().context("cannot find our own program file")?;
        let mut child = Command::new(program)
            .args(["serve", "--child"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the built-in server")?;
        let Some(out) = child.stdout.take() else {
            bail!("the built-in server has no output");
        };
        let mut out = BufReader::new(out);
        let mut line = String::new();
        out.read_line(&mut line)
            .context("the built-in server does not answer")?;
        let ready = serde_json::from_str(&line)
            .with_context(|| format!("the built-in server did not start (it said {line:?})"))?;
        Ok(Builtin {
            child,
            _out: out,
            ready,
        })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.ready.plain)
    }

    pub(crate) fn tls_port(&self) -> u16 {
        self.ready.tls.port()
    }

    pub(crate) fn roots(&self) -> Arc<[u8]> {
        self.ready.ca.as_bytes().into()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Builtin {
    fn drop(&mut self) {
        // closing its standard input ends it
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
