//! The settings of a bench. [`crate::Bench::new`] checks them before anything is sent.

use crate::machine;
use intact_client::tls::{Credentials, SettingsError};
use intact_client::{AddressError, ConnectOverride, RequestError, ServerUrl, SocketOptionError};
use intact_experiment::Axes;
use intact_ledger::{ExpectedStatus, Rows, Run};
use intact_scenario::ScenarioError;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// Why a configuration cannot be run. Each message names the option that helps.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The URL, or a rule that leads elsewhere, cannot be used.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// A variant needs the other scheme and it is not known on which port that is.
    #[error("--tls {wanted} needs the {scheme} port of {host}: name it with {option} PORT")]
    OtherPort {
        /// The TLS of the variant.
        wanted: &'static str,
        /// `http` or `https`.
        scheme: &'static str,
        /// The host.
        host: String,
        /// The option that names it.
        option: &'static str,
    },
    /// A part of the request cannot be sent as given.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// A target of a file cannot be sent, with its line.
    #[error(transparent)]
    Target(#[from] ScenarioError),
    /// A value makes no sense.
    #[error("{option}: {reason}")]
    Value {
        /// The option.
        option: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// The default number of requests does not suffice.
    #[error(
        "{variants} variants at -c {concurrency} need more than the {requests} requests allowed by default for a remote server; set -n or -z"
    )]
    DefaultBudget {
        /// Variants.
        variants: u64,
        /// The highest concurrency.
        concurrency: u32,
        /// The default.
        requests: u64,
    },
    /// TLS cannot be set up.
    #[error(transparent)]
    Tls(#[from] SettingsError),
    /// An option of TCP sockets cannot be used here.
    #[error("{option}: {source}")]
    Socket {
        /// The option.
        option: &'static str,
        /// Why.
        source: SocketOptionError,
    },
    /// More descriptors are needed than the process may have.
    #[error(
        "{connections} connections need {needed} file descriptors, the limit is {allowed}: raise it with `ulimit -n {needed}` (as root, or in /etc/security/limits.conf), or lower -c"
    )]
    Descriptors {
        /// Connections at once.
        connections: u64,
        /// What is needed.
        needed: u64,
        /// The hard limit.
        allowed: u64,
    },
}

impl ConfigError {
    /// A value of an option that makes no sense.
    pub(crate) fn value(option: &'static str, reason: impl Into<String>) -> ConfigError {
        let reason = reason.into();
        ConfigError::Value { option, reason }
    }
}

/// Where the load goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The URL as given.
    pub url: String,
    /// The port that speaks plain HTTP, where the URL names the TLS one.
    pub plain_port: Option<u16>,
    /// The port that speaks TLS, where the URL names the plain one.
    pub tls_port: Option<u16>,
}

/// How long a variant is measured, over all rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// This number of measured exchanges.
    Exchanges(u64),
    /// For this long.
    Time(Duration),
}

/// When answers may be taken in batches, where they come much faster than a wake-up each is worth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Coalesce {
    /// With several streams on a connection, where one send then carries many requests: much CPU
    /// for little client delay. With many connections for at most 60 us, where the kernel ends
    /// the wait early (io_uring).
    #[default]
    Auto,
    /// With many connections too: some CPU for a client delay as long as the latency.
    Always,
    /// Each answer is read at once.
    Never,
}

/// How the engine waits for the kernel, as the user chooses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum IoChoice {
    /// io_uring where it was measured to need less CPU time and is allowed here, else epoll.
    #[default]
    Auto,
    /// epoll, or the poll of another system.
    Epoll,
    /// io_uring, or an error.
    Uring,
}

/// Which exchanges are handed over as rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowPolicy {
    /// The first of each variant: no ledger and no export was asked for.
    First,
    /// As a ledger needs them.
    Ledger(Rows),
}

/// The requests that a bench sends in turn, instead of one.
#[derive(Clone, Debug, Default)]
pub struct Targets {
    /// Where they come from: the name of a file, or a pattern.
    pub source: String,
    /// The requests, in order.
    pub requests: Vec<intact_scenario::Request>,
}

/// A call of gRPC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrpcCall {
    /// The method as a path.
    pub path: String,
    /// Its header fields as `Name: value`.
    pub headers: Vec<String>,
    /// The message with its prefix.
    pub body: Vec<u8>,
}

/// Everything about a bench.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where the load goes.
    pub target: Target,
    /// What is varied.
    pub axes: Axes,
    /// How long each variant is measured.
    pub length: Length,
    /// Rounds; absent: 20, or fewer where 20 rounds would have too few exchanges each.
    pub rounds: Option<u32>,
    /// Engine threads.
    pub threads: u32,
    /// The seed of the order and of everything else random.
    pub seed: u64,
    /// New connections a second, over all threads; absent: as many as it takes.
    pub opening_per_s: Option<f64>,
    /// Requests a second, over all threads; absent: as many as it takes.
    pub requests_per_s: Option<f64>,
    /// Limit of measured exchanges per variant. It also applies if `length` is a time.
    pub most: Option<u64>,
    /// The limit for one exchange and for one dial.
    pub timeout: Duration,
    /// Method.
    pub method: String,
    /// Header fields as `Name: value`.
    pub headers: Vec<String>,
    /// Request body.
    pub body: Vec<u8>,
    /// What the variants with `--as-grpc on` send instead; absent where the server has no such
    /// method.
    pub call: Option<GrpcCall>,
    /// The requests that are sent in turn; absent: all are alike.
    pub targets: Option<Targets>,
    /// Our `User-Agent`, unless a header names another.
    pub user_agent: String,
    /// The statuses that count as ok; absent: every status.
    pub expect: Option<ExpectedStatus>,
    /// TLS material.
    pub credentials: Credentials,
    /// Where the URL leads.
    pub route: ConnectOverride,
    /// When answers may be taken in batches.
    pub coalesce: Coalesce,
    /// `http://host:port` of a proxy.
    pub proxy: Option<String>,
    /// A Unix domain socket to connect to instead of host and port.
    pub unix_socket: Option<PathBuf>,
    /// How the engine waits for the kernel.
    pub io: IoChoice,
    /// Which rows are kept.
    pub keep: RowPolicy,
    /// The server's process, for its CPU time.
    pub server_pid: Option<u32>,
}

impl Config {
    /// A closed loop of GET requests from one thread, by the defaults of the command line: each
    /// variant sends one request, and a request may take 10 s.
    pub fn new(url: String, axes: Axes) -> Config {
        Config {
            target: Target {
                url,
                plain_port: None,
                tls_port: None,
            },
            axes,
            length: Length::Exchanges(1),
            rounds: None,
            threads: 1,
            seed: 0,
            opening_per_s: None,
            requests_per_s: None,
            most: None,
            timeout: Duration::from_secs(10),
            method: "GET".to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
            call: None,
            targets: None,
            user_agent: concat!("intact/", env!("CARGO_PKG_VERSION")).to_owned(),
            expect: None,
            credentials: Credentials::default(),
            route: ConnectOverride::default(),
            coalesce: Coalesce::Auto,
            proxy: None,
            unix_socket: None,
            io: IoChoice::Auto,
            keep: RowPolicy::First,
            server_pid: None,
        }
    }

    /// The URL, taken apart.
    pub(crate) fn address(&self) -> Result<ServerUrl, ConfigError> {
        Ok(ServerUrl::parse(&self.target.url)?)
    }

    /// Fills in what is known of a run with this configuration.
    pub(crate) fn describe(&self, run: &mut Run) {
        run.host = machine::host();
        run.add_evidence(intact_client::EVIDENCE);
        run.seed = Some(self.seed);
        run.expect = self.expect;
        run.targets = self.targets.as_ref().map(|one| one.source.clone());
        run.rows = match self.keep {
            RowPolicy::First => Rows::Sample,
            RowPolicy::Ledger(rows) => rows,
        };
    }
}
