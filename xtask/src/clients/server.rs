//! Runs `intact serve` as the peer of a client, and reads the client's connections from its ledger.

use crate::tool::Process;
use anyhow::{Context, bail};
use intact_fix::Count;
use intact_ledger::store::Reader;
use intact_ledger::{Close, Connection, ConnectionId, Exchange, Handshake, Row};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};

/// A running server with a ledger.
pub(crate) struct Server {
    child: Process,
    output: BufReader<ChildStdout>,
    ready: Ready,
    folder: tempfile::TempDir,
}

#[derive(Deserialize)]
struct Ready {
    plain: SocketAddr,
    tls: SocketAddr,
    ca: String,
}

impl Server {
    /// Starts it with further words.
    pub(crate) fn start(intact: &Path, words: &[&str]) -> anyhow::Result<Server> {
        let folder = tempfile::tempdir()?;
        let ledger = folder.path().join("ledger");
        let ledger = ledger.to_str().context("the temporary folder's name")?;
        let job = intact::server_job(&[&["--ledger", ledger], words].concat())?;
        let mut child = Command::new(intact)
            .arg("internal")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the built-in server")?;
        let (Some(stdin), Some(output)) = (&mut child.stdin, child.stdout.take()) else {
            bail!("the built-in server has no input or output");
        };
        stdin.write_all(job.as_bytes())?;
        let mut output = BufReader::new(output);
        let mut line = String::new();
        output.read_line(&mut line)?;
        let ready: Ready = serde_json::from_str(&line)
            .with_context(|| format!("unexpected output of intact serve {words:?}: {line:?}"))?;
        std::fs::write(folder.path().join("ca.pem"), &ready.ca)?;
        Ok(Server {
            child: Process(child),
            output,
            ready,
            folder,
        })
    }

    /// Where it speaks plain HTTP, without a slash at the end.
    pub(crate) fn plain(&self) -> String {
        format!("http://{}", self.ready.plain)
    }

    /// Where it speaks plain HTTP.
    pub(crate) fn address(&self) -> SocketAddr {
        self.ready.plain
    }

    /// Where it speaks TLS.
    pub(crate) fn secure(&self) -> String {
        format!("https://localhost:{}", self.ready.tls.port())
    }

    /// Where it speaks a scheme.
    pub(crate) fn base(&self, scheme: &str) -> String {
        match scheme {
            "https" => self.secure(),
            _ => self.plain(),
        }
    }

    /// The certificate to trust.
    pub(crate) fn ca(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// Ends it and reads its ledger.
    pub(crate) fn end(mut self) -> anyhow::Result<ServerCounts> {
        drop(self.child.0.stdin.take());
        std::io::copy(&mut self.output, &mut std::io::sink())?;
        self.child.0.wait()?;
        ServerCounts::read(&self.folder.path().join("ledger"))
    }
}

/// What the server saw.
#[derive(Default)]
pub(crate) struct ServerCounts {
    connections: BTreeMap<ConnectionId, Connection>,
    exchanges: Vec<Exchange>,
    closes: BTreeMap<ConnectionId, Close>,
}

impl ServerCounts {
    fn read(folder: &Path) -> anyhow::Result<ServerCounts> {
        let mut counts = ServerCounts::default();
        for row in Reader::open(folder)?.events()? {
            match row {
                Row::Opened(connection) | Row::Revised(connection) => {
                    counts.connections.insert(connection.id, *connection);
                }
                Row::Exchange(exchange) => counts.exchanges.push(*exchange),
                Row::Closed(closed) => {
                    counts.closes.insert(closed.connection, closed.close);
                }
                _ => {}
            }
        }
        counts.exchanges.sort_by_key(|exchange| exchange.at);
        Ok(counts)
    }

    /// All connections.
    pub(crate) fn connections(&self) -> u64 {
        self.connections.len() as u64
    }

    /// Whether HTTP/2 was spoken.
    pub(crate) fn has_http2(&self) -> bool {
        let mut spoken = self.connections.values().filter_map(|one| one.protocol);
        spoken.any(|protocol| protocol.as_str() == "2")
    }

    /// All exchanges.
    pub(crate) fn requests(&self) -> u64 {
        self.exchanges.len() as u64
    }

    /// The exchanges with a path.
    pub(crate) fn asked<'a>(&'a self, path: &'a str) -> impl Iterator<Item = &'a Exchange> {
        self.exchanges.iter().filter(move |exchange| {
            exchange
                .target
                .as_ref()
                .is_some_and(|target| target.as_str() == path)
        })
    }

    /// The connections that requests for a path took. Those opened meanwhile and never used count
    /// too.
    pub(crate) fn count(&self, path: &str, requests: u64, failed: u64) -> anyhow::Result<Count> {
        let begin = self.asked(path).map(|exchange| exchange.at).min();
        let end = self.asked(path).map(|exchange| exchange.end).max();
        let (Some(begin), Some(end)) = (begin, end) else {
            // the client refused to send any
            if failed == requests {
                return Ok(Count {
                    requests,
                    failed,
                    connections: 0,
                    connections_at_most: None,
                    resumed: None,
                    http: String::new(),
                });
            }
            bail!("the server saw no request for {path}");
        };
        let before = self
            .exchanges
            .iter()
            .filter(|exchange| exchange.at < begin)
            .map(|exchange| exchange.at)
            .max();
        let mut used: BTreeSet<ConnectionId> = self
            .asked(path)
            .filter_map(|exchange| exchange.connection)
            .collect();
        let opened = self.connections.values().filter(|connection| {
            before.is_none_or(|before| connection.at > before) && connection.at <= end
        });
        used.extend(opened.map(|connection| connection.id));
        let used: Vec<&Connection> = used
            .iter()
            .filter_map(|id| self.connections.get(id))
            .collect();
        let handshakes = || {
            used.iter()
                .filter_map(|connection| connection.tls.as_ref()?.handshake)
        };
        let versions: BTreeSet<&str> = used
            .iter()
            .filter_map(|connection| Some(connection.protocol?.as_str()))
            .collect();
        Ok(Count {
            requests,
            failed,
            connections: used.len() as u64,
            connections_at_most: None,
            resumed: handshakes().next().map(|_| {
                handshakes()
                    .filter(|&handshake| handshake != Handshake::Full)
                    .count() as u64
            }),
            http: versions.into_iter().collect::<Vec<_>>().join(", "),
        })
    }

    /// How many seconds after the first exchange with a path its connection ended.
    pub(crate) fn end_of(&self, path: &str) -> Option<f64> {
        let exchange = self.asked(path).next()?;
        let close = self.closes.get(&exchange.connection?)?;
        let idle = close.at.0.saturating_sub(exchange.end.0);
        Some(idle as f64 / 1e9)
    }
}
