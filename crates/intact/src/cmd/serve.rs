//! `intact serve`: the instrumented server.

mod options;

use super::builtin::Ready;
use crate::console;
use crate::exit::{self, Failed};
use anyhow::Context;
use ledger::store::Writer;
use ledger::{Event, Handshake, Run, Sink, Vantage};
pub(crate) use options::Args;
use serve::{Addresses, ServeError, Server, Totals, VersionTotals};
use std::fmt::Display;
use std::io::Read;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The server's ledger on disk.
struct Log {
    writer: Writer,
    flushed: Instant,
    lost: u64,
}

/// The way of events to it, from any thread.
struct Pen(Arc<Mutex<Log>>);

impl Sink for Pen {
    fn record(&mut self, event: Event<'_>) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .record(event);
    }
}

impl Log {
    fn record(&mut self, event: Event<'_>) {
        let mut written = self.writer.append(event);
        if self.flushed.elapsed() >= Duration::from_secs(1) {
            self.flushed = Instant::now();
            written = written.and_then(|()| self.writer.flush());
        }
        if let Err(error) = written {
            self.lost += 1;
            if self.lost == 1 {
                console::note(&format!("intact: --ledger: {error}; serving goes on"));
            }
        }
    }
}

/// Serves until a signal, or as a child until standard input ends.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failed> {
    let config = args.config()?;
    let ca = config
        .tls
        .as_ref()
        .and_then(|(_, tls)| tls.authority.ca_pem())
        .unwrap_or_default()
        .to_owned();
    if let Some(path) = args.write_ca() {
        std::fs::write(path, &ca).with_context(|| format!("--write-ca {}", path.display()))?;
    }
    let server = Server::bind(config).map_err(|error| match error {
        ServeError::Listen { .. } | ServeError::Authority(_) => Failed::usage(error),
        other => Failed::from(anyhow::Error::from(other)),
    })?;
    let log = log(args)?;
    let pen = log
        .clone()
        .map(|log| Box::new(Pen(log)) as Box<dyn Sink + Send>);
    tell(args, server.addresses(), &ca)?;
    let child = args.child;
    let totals = server
        .run(pen, async move {
            if child {
                end_of_input().await;
            } else {
                signal().await;
            }
        })
        .map_err(anyhow::Error::from)?;
    if let Some(log) = log {
        let writer = &mut log.lock().unwrap_or_else(PoisonError::into_inner).writer;
        writer.flush().context("--ledger")?;
        writer.replace_tally(&totals.tally).context("--ledger")?;
    }
    if child {
        let tally = serde_json::to_string(&totals.tally).map_err(anyhow::Error::from)?;
        console::print(&format!("{tally}\n"));
    } else {
        console::print(&summary(&totals));
    }
    Ok(ExitCode::from(exit::FINE))
}

fn log(args: &Args) -> anyhow::Result<Option<Arc<Mutex<Log>>>> {
    let Some(folder) = &args.ledger else {
        return Ok(None);
    };
    let argv: Vec<String> = std::env::args().collect();
    let head = Run::new(
        "serve",
        env!("CARGO_PKG_VERSION"),
        Vantage::Server,
        jiff::Timestamp::now(),
        super::bench::run_id(),
        &argv,
    );
    Ok(Some(Arc::new(Mutex::new(Log {
        writer: Writer::create(folder, &head).context("--ledger")?,
        flushed: Instant::now(),
        lost: 0,
    }))))
}

/// Says where it listens.
fn tell(args: &Args, addresses: Addresses, ca: &str) -> anyhow::Result<()> {
    let (Some(plain), Some(tls)) = (addresses.plain, addresses.tls) else {
        anyhow::bail!("the server listens nowhere");
    };
    if args.child {
        let ready = Ready {
            plain,
            tls,
            ca: ca.to_owned(),
        };
        console::print(&format!("{}\n", serde_json::to_string(&ready)?));
        return Ok(());
    }
    let trust = match args.write_ca() {
        Some(path) => format!("--cacert {}", path.display()),
        None => "--insecure, or start it with --write-ca ca.pem".to_owned(),
    };
    console::print(&format!(
        "http://{plain}/   https://localhost:{}/ ({trust})\nCtrl-C ends it with a summary; meanwhile: http://{plain}/.intact/ledger\n",
        tls.port()
    ));
    Ok(())
}

/// What is said at the end: per version the connections, the requests on each, and who ended them.
fn summary(totals: &Totals) -> String {
    let mut page = format!(
        "\n{} requests on {} connections",
        totals.exchanges.total, totals.connections.opened
    );
    if totals.connections.open > 0 {
        page += &format!(", {} of them still open", totals.connections.open);
    }
    page += "\n";
    for version in &totals.versions {
        page += &line(version);
    }
    let handshakes = totals.connections.handshakes.iter().map(|handshake| {
        let version = handshake
            .tls
            .map_or_else(String::new, |tls| tls.as_str().to_owned());
        let kind = match handshake.kind {
            Some(Handshake::Full) => "full",
            Some(Handshake::Resumed) => "resumed",
            Some(Handshake::EarlyData) => "with early data",
            None => "of an unknown kind",
        };
        (format!("{version} {kind}"), handshake.count)
    });
    for (name, counts) in [
        ("TLS handshakes", listed(handshakes)),
        ("failed handshakes", listed(&totals.connections.failed)),
        ("failed requests", listed(&totals.exchanges.failed)),
        ("faults made", listed(&totals.faults)),
    ] {
        if !counts.is_empty() {
            page += &format!("{name}: {counts}\n");
        }
    }
    page
}

fn line(version: &VersionTotals) -> String {
    let per = match (version.per_connection_mean, version.per_connection_max) {
        (Some(mean), Some(max)) => format!("{mean:.1} on a closed one, at most {max}"),
        _ => "none closed".to_owned(),
    };
    format!(
        "  {:<9}{:>9} requests on {} connections: {per}; ended by {}\n",
        format!("HTTP/{}", version.http.as_str()),
        version.exchanges,
        version.connections,
        Some(listed(&version.ended_by))
            .filter(|counts| !counts.is_empty())
            .unwrap_or_else(|| "nobody".to_owned())
    )
}

/// `fin 3, rst 1`.
fn listed(counts: impl IntoIterator<Item = (impl Display, impl Display)>) -> String {
    let parts: Vec<String> = counts
        .into_iter()
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    parts.join(", ")
}

/// Waits for Ctrl-C, SIGTERM or SIGHUP.
async fn signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let signals = [
        SignalKind::interrupt(),
        SignalKind::terminate(),
        SignalKind::hangup(),
    ];
    let [Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)] = signals.map(signal) else {
        // without signals there is only kill -9, which needs no help
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hangup.recv() => {}
    }
}

/// Waits until standard input ends. Signals meant for the parent (Ctrl-C reaches both) are ignored meanwhile.
async fn end_of_input() {
    let (sender, ended) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let mut rest = [0; 64];
        while matches!(std::io::stdin().read(&mut rest), Ok(count) if count > 0) {}
        let _ = sender.send(());
    });
    tokio::select! {
        _ = ended => {}
        () = async { loop { signal().await } } => {}
    }
}
