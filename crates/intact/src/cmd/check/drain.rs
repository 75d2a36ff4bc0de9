//! `check --drain`: the options, and the start of the server's command.

use crate::cmd::bench::time;
use crate::cmd::server_command::{NotListening, PATIENCE, ServerCommand, await_listening, how};
use crate::exit::{Failed, refuse};
use crate::system::{self, Channel};
use anyhow::anyhow;
use intact_check::{DrainConfig, EndSignal, ExtraRequest};
use intact_client::Endpoint;
use std::ffi::OsString;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::process::Command;
use std::time::Duration;

/// The longest that a connection to a listening server on this machine takes.
const CONNECT: Duration = Duration::from_secs(1);

/// The options.
#[derive(clap::Args)]
#[command(next_help_heading = "Drain")]
pub(crate) struct DrainArgs {
    /// Start CMD, end it by a signal under kept connections, and count the requests that are lost;
    /// the other probes do not run
    #[arg(long, requires = "command", conflicts_with_all = ["no_idle", "idle_connections", "thorough", "tries", "ladder", "pcapng", "max_time"])]
    drain: bool,
    /// How long the server may take to end before SIGKILL
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "30s", requires = "drain")]
    drain_time: Duration,
    /// The signal: TERM, INT, QUIT, HUP, USR1, USR2 or WINCH
    #[arg(long, value_name = "SIGNAL", value_parser = signal, default_value = "TERM", requires = "drain")]
    drain_signal: EndSignal,
    /// A slow request, to be in flight at the signal; POST, PUT and PATCH carry {}
    #[arg(long, value_name = "[METHOD ]PATH", requires = "drain")]
    drain_slow: Option<ExtraRequest>,
    /// The server's command and its arguments
    #[arg(last = true, value_name = "CMD", requires = "drain")]
    command: Vec<OsString>,
}

fn signal(text: &str) -> Result<EndSignal, String> {
    EndSignal::read(text).ok_or_else(|| {
        let names: Vec<&str> = EndSignal::ALL.iter().map(|one| one.name()).collect();
        format!("{text:?} is none of {}", names.join(", "))
    })
}

impl DrainArgs {
    /// How the end of the server is measured, where that is wanted.
    pub(super) fn config(&self) -> Option<DrainConfig> {
        self.drain.then(|| DrainConfig {
            signal: self.drain_signal,
            limit: self.drain_time,
            slow: self.drain_slow.clone(),
        })
    }

    /// Starts the command, and waits until it listens; absent without `--drain`.
    pub(super) fn start(
        &self,
        config: &intact_check::Config,
    ) -> Result<Option<ServerCommand>, Failed> {
        let Some(program) = self.command.first().filter(|_| self.drain) else {
            return Ok(None);
        };
        if !system::HAS_SIGNALS {
            return Err(Failed::forbidden(anyhow!(
                "--drain ends the server by a signal, which this system does not have: run it in a container of Linux"
            )));
        }
        if !config.is_local() {
            refuse!(
                "--drain starts the server on this machine, and {} is not on it: name a URL on localhost",
                config.url()
            );
        }
        let endpoint = config
            .route
            .endpoint(&config.address.host, config.address.port)
            .map_err(Failed::usage)?;
        if is_listening(&endpoint) {
            refuse!(
                "a server listens at {} already: end it, or name another port",
                config.url()
            );
        }
        let name = program.display();
        let mut command = Command::new(program);
        let mut server = ServerCommand::start(command.args(&self.command[1..]))
            .map_err(|error| Failed::usage(anyhow!("cannot run {name}: {error}")))?;
        let look = || Ok(is_listening(&endpoint).then_some(()));
        match await_listening(server.child(), look)? {
            Ok(()) => Ok(Some(server)),
            Err(NotListening::Ended(status)) => Err(Failed::unreachable(anyhow!(
                "{name} ended ({}) before it listened at {}",
                how(status),
                config.url()
            ))),
            Err(NotListening::TooLate) => Err(Failed::unreachable(anyhow!(
                "{name} does not listen at {} after {} s: name the URL at which it listens",
                config.url(),
                PATIENCE.as_secs()
            ))),
        }
    }
}

/// Whether a connection to the endpoint is accepted.
fn is_listening(endpoint: &Endpoint) -> bool {
    let accepts = |address: &SocketAddr| TcpStream::connect_timeout(address, CONNECT).is_ok();
    match endpoint {
        Endpoint::Addresses(addresses) => addresses.iter().any(accepts),
        Endpoint::Name { host, port, .. } => {
            let addresses = (&**host, *port).to_socket_addrs();
            addresses.is_ok_and(|mut all| all.any(|address| accepts(&address)))
        }
        Endpoint::Unix(path) => Channel::connect(path).is_ok(),
    }
}
