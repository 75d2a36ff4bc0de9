//! `intact serve`: the instrumented server.

mod log;
mod name_server;
mod options;
mod upstream;

use super::builtin::Ready;
use super::internal::Control;
use super::json;
use super::link;
use super::run_header;
use crate::console;
use crate::exit::{self, Failed, refuse};
use crate::interrupt;
use crate::system;
use anyhow::Context;
use intact_ledger::{Producer, Sink, Vantage};
use intact_serve::{Addresses, ServeError, Server};
use log::Log;
pub(crate) use options::{Args, Config};
use std::cell::Cell;
use std::io::Read;
use std::process::ExitCode;

/// Serves until a signal, and prints a summary; on a link until the command there ends.
pub(crate) fn run(config: Config) -> Result<ExitCode, Failed> {
    if let Some(spec) = config.options.link.clone() {
        return behind(&spec, config);
    }
    if let Some(word) = config.options.command.first() {
        let word = word.to_string_lossy();
        refuse!(
            "{word:?} is a command, and only a link has a place for one: --link SPEC -- CMD. To listen at an address: --listen {word}"
        );
    }
    serve(&config, None)
}

/// Serves until standard input ends: prints a line of JSON when ready, and the tally as JSON at the
/// end.
pub(super) fn run_as_child(config: &Config, parent: Control) -> Result<ExitCode, Failed> {
    serve(config, Some(parent))
}

fn serve(config: &Config, parent: Option<Control>) -> Result<ExitCode, Failed> {
    let args = &config.options;
    let server = config.server()?;
    let ca = server
        .tls
        .as_ref()
        .and_then(|(_, tls)| tls.authority.ca_pem())
        .unwrap_or_default()
        .to_owned();
    if let Some(path) = args.write_ca() {
        std::fs::write(path, &ca).with_context(|| format!("--write-ca {}", path.display()))?;
    }
    let server = Server::bind(server).map_err(|error| match error {
        ServeError::NameServer { ref source, .. }
            if source.kind() == std::io::ErrorKind::PermissionDenied =>
        {
            Failed::forbidden(error)
        }
        ServeError::Listen { .. }
        | ServeError::Socket { .. }
        | ServeError::NameServer { .. }
        | ServeError::Authority(_) => Failed::usage(error),
        other => Failed::from(anyhow::Error::from(other)),
    })?;
    let run = run_header::head(Producer::Serve, Vantage::Server, &config.words)
        .with_evidence(intact_serve::EVIDENCE);
    let folder = args.ledger.as_ref();
    let log = folder.map(|folder| Log::create(folder, &run)).transpose()?;
    let sink = log.clone().map(|log| Box::new(log) as Box<dyn Sink + Send>);
    let is_child = parent.is_some();
    if is_child {
        // those that reach the group, as Ctrl-C does, are the parent's
        let _ = system::on_each_ending_signal(|_| {});
    }
    announce(args, is_child, server.addresses(), &ca)?;
    let code = Cell::new(exit::FINE);
    let totals = server
        .run(run, sink, async {
            match parent {
                Some(parent) => end_of_input(parent).await,
                None => code.set(exit::by_signal(interrupt::first_signal().await)),
            }
        })
        .map_err(anyhow::Error::from)?;
    if let Some(log) = log {
        log.finish(&totals.tally);
    }
    if is_child {
        let tally = serde_json::to_string(&totals.tally).map_err(anyhow::Error::from)?;
        console::print_written(&format!("{tally}\n"));
        return Ok(ExitCode::from(exit::FINE));
    }
    let to = args.json.as_ref();
    json::deliver(to, || Ok(serde_json::to_string_pretty(&totals)? + "\n"))?;
    if !json::takes_output(to) {
        console::print(&intact_serve::summary(&totals));
    }
    // a signal is the usual end, and no reason to hide that an output is missing
    Ok(ExitCode::from(match console::is_incomplete() {
        true => exit::INTERNAL_ERROR,
        false => code.get(),
    }))
}

/// Serves on a link, and runs the command on the other side.
fn behind(spec: &intact_link::Spec, config: Config) -> Result<ExitCode, Failed> {
    let command = config.options.command.clone();
    if command.is_empty() {
        refuse!("only a command on the link reaches the server: --link {spec} -- CMD");
    }
    link::run(link::Config {
        words: config.words.clone(),
        options: link::Args {
            spec: spec.clone(),
            server: None,
            port: None,
            control: None,
            resolver: config.resolver_on_link(),
            json: None,
            command,
            builtin: Some(Box::new(config)),
        },
    })
}

/// Says where it listens.
fn announce(args: &Args, is_child: bool, addresses: Addresses, ca: &str) -> anyhow::Result<()> {
    let (Some(plain), Some(tls)) = (addresses.plain, addresses.tls) else {
        anyhow::bail!("the server listens nowhere");
    };
    if is_child {
        let ready = Ready {
            plain,
            tls,
            ca: ca.to_owned(),
            pid: std::process::id(),
        };
        console::print_written(&format!("{}\n", serde_json::to_string(&ready)?));
        return Ok(());
    }
    let trust = match args.write_ca() {
        Some(path) => format!("--cacert {}", path.display()),
        None => "--insecure, or start it with --write-ca ca.pem".to_owned(),
    };
    let say = if json::takes_output(args.json.as_ref()) {
        console::note_lines
    } else {
        console::print
    };
    let names = addresses.names.map_or_else(String::new, |names| {
        format!(
            "dns://{names}   (programs ask it under --resolver {} of watch, compare, bench, link)\n",
            names.ip()
        )
    });
    say(&format!(
        "http://{plain}/\nhttps://localhost:{}/   ({trust})\n{names}live: http://{plain}/.intact/ledger   Ctrl-C ends it with a summary\n",
        tls.port()
    ));
    Ok(())
}

/// Waits until standard input ends.
async fn end_of_input(mut parent: Control) {
    let (sender, ended) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let mut rest = [0; 64];
        while matches!(parent.read(&mut rest), Ok(count) if count > 0) {}
        let _ = sender.send(());
    });
    let _ = ended.await;
}
