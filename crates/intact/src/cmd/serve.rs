//! `intact serve`: the instrumented server.

use super::builtin::Ready;
use crate::console;
use crate::exit::{self, Failed};
use anyhow::Context;
use clap::ValueEnum;
use ledger::store::Writer;
use ledger::{Event, Run, Sink, Tally, TlsVersion, Vantage};
use serve::{Addresses, Authority, Close, Config, ServeError, Server, TlsConfig};
use std::cell::RefCell;
use std::ffi::OsString;
use std::io::Read;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// An instrumented server: HTTP/1.0, 1.1 and 2, plain and TLS, with its own ledger of the same traffic.
#[derive(clap::Args)]
#[command(
    after_help = "Paths: /bytes/N, /status/CODE, /delay/MS, /close; all others answer alike. Ctrl-C ends it with a summary.

Examples:
  intact serve
  intact serve --listen 127.0.0.1:8080 --tls-listen 127.0.0.1:8443 --write-ca ca.pem
  intact serve --max-requests 5 --announce
  intact serve --idle-timeout 5s --delay 20ms
  intact serve --idle-timeout 5s --link rtt=30ms -- node client.js"
)]
pub(crate) struct Args {
    /// Address for plain HTTP
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Address for TLS
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8443")]
    tls_listen: SocketAddr,
    /// Write the certificate of our CA here, so that clients can verify
    #[arg(long, value_name = "FILE")]
    write_ca: Option<PathBuf>,
    /// Certificate chain (PEM) instead of one of our own
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// Its key (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// Further names for our certificate
    #[arg(long, value_name = "NAME")]
    name: Vec<String>,
    /// TLS versions
    #[arg(
        long,
        value_name = "1.2,1.3",
        value_delimiter = ',',
        default_value = "1.2,1.3"
    )]
    tls: Vec<Version>,
    /// TLS 1.3 tickets per handshake; 0: sessions cannot be resumed
    #[arg(long, value_name = "N", default_value_t = 2)]
    tickets: usize,
    /// Bytes of the body
    #[arg(long, value_name = "N", default_value_t = 100)]
    body: usize,
    /// Status
    #[arg(long, value_name = "CODE", default_value_t = 200, value_parser = clap::value_parser!(u16).range(200..1000))]
    status: u16,
    /// Close connections that idle for this long
    #[arg(long, value_name = "TIME", value_parser = super::bench::time)]
    idle_timeout: Option<Duration>,
    /// Close connections after this many requests
    #[arg(long, value_name = "N")]
    max_requests: Option<u64>,
    /// Announce both in `Keep-Alive`
    #[arg(long)]
    announce: bool,
    /// Pause before each answer
    #[arg(long, value_name = "TIME", value_parser = super::bench::time, default_value = "0s")]
    delay: Duration,
    /// Further pause before the first answer on each connection
    #[arg(long, value_name = "TIME", value_parser = super::bench::time, default_value = "0s")]
    first_request_cost: Duration,
    /// How connections are closed
    #[arg(long, value_name = "fin|rst", default_value = "fin")]
    close: How,
    /// Keep the server's ledger in a new folder
    #[arg(long, value_name = "DIR")]
    ledger: Option<PathBuf>,
    /// Put the server at the far end of an emulated link and run CMD on the near one: short for `intact link SPEC -- CMD`
    #[arg(long, value_name = "SPEC")]
    link: Option<link::Spec>,
    /// The command that runs on the client side of --link
    #[arg(last = true, value_name = "CMD", requires = "link")]
    command: Vec<OsString>,
    /// For our own use: free ports, a line of JSON when ready, the tally as JSON at the end, which is that of standard input
    #[arg(long, hide = true)]
    child: bool,
    /// For our own use: with --child, ports 80 and 443 of the server side of a link
    #[arg(long, hide = true, requires = "child")]
    on_link: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Version {
    #[value(name = "1.2")]
    Tls12,
    #[value(name = "1.3")]
    Tls13,
}

#[derive(Clone, Copy, ValueEnum)]
enum How {
    Fin,
    Rst,
}

/// Takes the server's events.
struct Books {
    tally: Tally,
    ledger: Option<Writer>,
    flushed: Instant,
    lost: u64,
}

impl Sink for Books {
    fn record(&mut self, event: Event<'_>) {
        self.tally.record(event);
        let Some(ledger) = &mut self.ledger else {
            return;
        };
        let mut written = ledger.append(event);
        if self.flushed.elapsed() >= Duration::from_secs(1) {
            self.flushed = Instant::now();
            written = written.and_then(|()| ledger.flush());
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
    if let Some(spec) = args.link.as_ref().filter(|_| !args.child) {
        return behind(spec, &args.command);
    }
    let config = config(args)?;
    let ca = config
        .tls
        .as_ref()
        .and_then(|(_, tls)| tls.authority.ca_pem())
        .unwrap_or_default()
        .to_owned();
    if let Some(path) = &args.write_ca {
        std::fs::write(path, &ca).with_context(|| format!("--write-ca {}", path.display()))?;
    }
    let server = Server::bind(config).map_err(|error| match error {
        ServeError::Listen { .. } | ServeError::Authority(_) => Failed::usage(error),
        other => Failed::from(anyhow::Error::from(other)),
    })?;
    let argv: Vec<String> = std::env::args().collect();
    let head = Run::new(
        "serve",
        env!("CARGO_PKG_VERSION"),
        Vantage::Server,
        jiff::Timestamp::now(),
        super::bench::run_id(),
        &argv,
    );
    let ledger = args
        .ledger
        .as_ref()
        .map(|folder| Writer::create(folder, &head).context("--ledger"))
        .transpose()?;
    let books = Rc::new(RefCell::new(Books {
        tally: Tally::new(),
        ledger,
        flushed: Instant::now(),
        lost: 0,
    }));
    tell(args, server.addresses(), &ca)?;
    let child = args.child;
    server
        .run(books.clone(), async move {
            if child {
                end_of_input().await;
            } else {
                signal().await;
            }
        })
        .map_err(anyhow::Error::from)?;
    sum_up(args, &mut books.borrow_mut())?;
    Ok(ExitCode::from(exit::FINE))
}

/// Serves on a link, with the words that we were given.
fn behind(spec: &link::Spec, command: &[OsString]) -> Result<ExitCode, Failed> {
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

fn config(args: &Args) -> Result<Config, Failed> {
    let authority = match (&args.cert, &args.key) {
        (Some(cert), Some(key)) => Authority::read(cert, key),
        _ => Authority::make(&args.name),
    }
    .map_err(Failed::usage)?;
    let place = |asked: SocketAddr, well_known: u16| match (args.child, args.on_link) {
        (true, true) => SocketAddr::from((link::SERVER_V4, well_known)),
        (true, false) => SocketAddr::from(([127, 0, 0, 1], 0)),
        (false, _) => asked,
    };
    let tls = TlsConfig {
        authority: Arc::new(authority),
        versions: args
            .tls
            .iter()
            .map(|version| match version {
                Version::Tls12 => TlsVersion::Tls12,
                Version::Tls13 => TlsVersion::Tls13,
            })
            .collect(),
        tickets: args.tickets,
    };
    Ok(Config {
        plain: Some(place(args.listen, 80)),
        tls: Some((place(args.tls_listen, 443), tls)),
        body: args.body,
        status: args.status,
        idle_timeout: args.idle_timeout,
        max_requests: args.max_requests,
        announce: args.announce,
        delay: args.delay,
        first_request_cost: args.first_request_cost,
        close: match args.close {
            How::Fin => Close::Fin,
            How::Rst => Close::Rst,
        },
    })
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
    let trust = match &args.write_ca {
        Some(path) => format!("--cacert {}", path.display()),
        None => "--insecure, or start it with --write-ca ca.pem".to_owned(),
    };
    console::print(&format!(
        "http://{plain}/   https://localhost:{}/ ({trust})\nCtrl-C ends it with a summary\n",
        tls.port()
    ));
    Ok(())
}

fn sum_up(args: &Args, books: &mut Books) -> anyhow::Result<()> {
    if let Some(ledger) = &mut books.ledger {
        ledger.flush().context("--ledger")?;
        ledger.replace_tally(&books.tally).context("--ledger")?;
    }
    if args.child {
        console::print(&format!("{}\n", serde_json::to_string(&books.tally)?));
        return Ok(());
    }
    let cell = books.tally.cell(None, None);
    let requests: u64 = cell.groups.iter().map(ledger::Group::count).sum();
    let connections = &cell.connections;
    let per = connections.exchanges.mean().map_or(String::new(), |mean| {
        format!(", {mean:.1} requests on a closed connection")
    });
    let (resumed, handshakes) = connections.resumed_of_handshakes();
    let ended: Vec<String> = connections
        .ended_by
        .iter()
        .map(|(by, count)| format!("{by} {count}"))
        .collect();
    console::print(&format!(
        "\n{requests} requests on {} connections{per}; ended by: {}; TLS handshakes: {handshakes}, {resumed} resumed\n",
        connections.opened,
        if ended.is_empty() {
            "-".to_owned()
        } else {
            ended.join(", ")
        },
    ));
    Ok(())
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
