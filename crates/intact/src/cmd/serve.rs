//! `intact serve`: the instrumented server.

mod log;
mod options;
mod summary;

use super::builtin::Ready;
use super::json;
use super::run_header;
use crate::console;
use crate::exit::{self, Failed};
use anyhow::Context;
use intact_ledger::{Producer, Sink, Vantage};
use intact_serve::{Addresses, ServeError, Server};
use log::Log;
pub(crate) use options::Args;
use std::cell::Cell;
use std::ffi::OsString;
use std::io::Read;
use std::process::ExitCode;

/// Serves until a signal, or as a child until standard input ends.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failed> {
    if let Some(spec) = args.link.as_ref().filter(|_| !args.child) {
        return behind(spec, &args.command);
    }
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
    let run = run_header::head(Producer::Serve, Vantage::Server);
    let log = match &args.ledger {
        None => None,
        Some(folder) => Some(Log::create(folder, &run)?),
    };
    let sink = log.clone().map(|log| Box::new(log) as Box<dyn Sink + Send>);
    tell(args, server.addresses(), &ca)?;
    let child = args.child;
    let code = Cell::new(exit::FINE);
    let totals = server
        .run(run, sink, async {
            if child {
                end_of_input().await;
            } else {
                code.set(exit::by_signal(signal().await));
            }
        })
        .map_err(anyhow::Error::from)?;
    if let Some(log) = log {
        log.finish(&totals.tally)?;
    }
    if child {
        let tally = serde_json::to_string(&totals.tally).map_err(anyhow::Error::from)?;
        console::print(&format!("{tally}\n"));
        return Ok(ExitCode::from(exit::FINE));
    }
    let to = args.json.as_deref();
    json::tell(to, || Ok(serde_json::to_string_pretty(&totals)? + "\n"))?;
    if !json::takes_output(to) {
        console::print(&summary::page(&totals));
    }
    Ok(ExitCode::from(code.get()))
}

/// Serves on a link, with the words that we were given.
fn behind(spec: &intact_link::Spec, command: &[OsString]) -> Result<ExitCode, Failed> {
    if command.is_empty() {
        // not left to clap: our own child has the option and no command
        return Err(Failed::usage(anyhow::anyhow!(
            "only a command on the link reaches the server: --link {spec} -- CMD"
        )));
    }
    // the program's name and `serve`
    let words = std::env::args_os().skip(2);
    let words = words.take_while(|word| word != "--").collect();
    super::link::Job {
        spec,
        server: super::link::Server::Builtin(words),
        control: None,
        json: None,
        command,
    }
    .run()
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
            pid: std::process::id(),
        };
        console::print(&format!("{}\n", serde_json::to_string(&ready)?));
        return Ok(());
    }
    let trust = match args.write_ca() {
        Some(path) => format!("--cacert {}", path.display()),
        None => "--insecure, or start it with --write-ca ca.pem".to_owned(),
    };
    let say = if json::takes_output(args.json.as_deref()) {
        console::note
    } else {
        console::print
    };
    say(&format!(
        "http://{plain}/\nhttps://localhost:{}/   ({trust})\nlive: http://{plain}/.intact/ledger   Ctrl-C ends it with a summary\n",
        tls.port()
    ));
    Ok(())
}

/// Waits for Ctrl-C, SIGTERM or SIGHUP; the number of the one that came.
async fn signal() -> usize {
    use tokio::signal::unix::{SignalKind, signal};
    let kinds = [
        SignalKind::interrupt(),
        SignalKind::terminate(),
        SignalKind::hangup(),
    ];
    let [Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)] = kinds.map(signal) else {
        // without signals there is only kill -9, which needs no help
        return std::future::pending().await;
    };
    let came = tokio::select! {
        _ = interrupt.recv() => kinds[0],
        _ = terminate.recv() => kinds[1],
        _ = hangup.recv() => kinds[2],
    };
    came.as_raw_value() as usize
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
        () = async { loop { signal().await; } } => {}
    }
}
