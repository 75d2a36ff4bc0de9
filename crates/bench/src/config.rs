//! The settings of a bench. [`crate::Bench::new`] checks them before anything is sent.

use crate::endpoint::{by_scheme, is_own_name, names};
use crate::engine::Pauses;
use crate::io_backend::IoChoice;
use crate::machine;
use crate::recorder::RowPolicy;
use crate::response_cache::ResponseCache;
use crate::targets::{RequestWriter, Targets};
use crate::variant_plan::{ConnectionLife, VariantPlan};
use intact_client::tls::{self, Credentials, Settings, Trust};
use intact_client::{
    AddressError, ConnectOverride, Detail, Endpoint, Plan, Proxy, Request, RequestError,
    RequestSpec, ServerUrl, SocketOptionError, SocketSettings,
};
use intact_experiment::{Axes, AxisValues, CacheUse, Period, TlsChoice};
use intact_ledger::{ExpectedStatus, Method, Protocol, Rows, Run, Scheme};
use intact_scenario::ScenarioError;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
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
    Tls(#[from] tls::SettingsError),
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

    /// Makes one variant ready to run.
    pub(crate) fn variant_plan(
        &self,
        variant: u32,
        choice: &AxisValues,
        trust: &Trust,
        kernel_stamps: bool,
    ) -> Result<VariantPlan, ConfigError> {
        let address = by_scheme(&self.address()?, choice.tls, &self.target)?;
        let secure = address.scheme == Scheme::Https;
        let (endpoint, proxy) =
            self.endpoint(&address, secure || choice.http == Protocol::Http2)?;
        let through_proxy = self.proxy.is_some() && proxy == Proxy::Transparent;
        let tls = if secure {
            let settings = Settings {
                version: match choice.tls {
                    TlsChoice::Version(version) => Some(version),
                    TlsChoice::Any | TlsChoice::None => None,
                },
                protocol: choice.http,
                resume: choice.resume,
                certificate: self.credentials.certificate.clone(),
            };
            let client = tls::Client::new(&address.host, &settings, trust)?;
            Some(match choice.early_data {
                Some(true) => client.allowing_early_requests(),
                _ => client,
            })
        } else {
            None
        };
        let writer = RequestWriter {
            source: self.targets.as_ref().map_or("", |one| &one.source),
            config: &Config {
                targets: None,
                ..self.clone()
            },
            choice,
            target: &self.address()?,
            address: &address,
            is_absolute: through_proxy,
        };
        let targets = self.targets.iter().flat_map(|one| &one.requests);
        let targets = targets.map(|one| writer.write(one).map(Arc::new));
        let targets = targets.collect::<Result<Arc<[_]>, _>>()?;
        let request = match targets.first() {
            Some(first) => first.clone(),
            None => Arc::new(self.request(&address, choice, through_proxy)?),
        };
        let connection = &choice.connection;
        let nanos = |time: Duration| time.as_nanos() as u64;
        let plan_stamps = kernel_stamps && self.unix_socket.is_none();
        let plan = Plan {
            origin: address.origin(),
            names: names(choice.dns, &endpoint)?,
            endpoint,
            proxy,
            tls,
            protocol: choice.http,
            stamps: plan_stamps,
            socket: SocketSettings {
                fast_open: connection.fast_open == Some(true),
                congestion: connection.congestion.as_deref().map(Arc::from),
                keepalive: connection.tcp_keepalive.and_then(Period::time),
            },
            local_address: matches!(self.keep, RowPolicy::Ledger(_)),
            header_table: connection.header_table,
        };
        Ok(VariantPlan {
            variant,
            plan: Arc::new(plan),
            request,
            targets,
            cache: match connection.cache {
                Some(CacheUse::Revalidate) => Some(Arc::new(ResponseCache::default())),
                Some(CacheUse::Off) | None => None,
            },
            detail: match connection.cache {
                Some(_) => Detail::Fields,
                None => Detail::Outcome,
            },
            keepalive: choice.keepalive,
            life: ConnectionLife {
                requests: connection.most_requests().map(|most| most.get().into()),
                age: connection.max_age.and_then(Period::time).map(nanos),
                pause: connection.idle.map(nanos),
                ping: connection.ping.and_then(Period::time),
            },
            concurrency: choice.connections() as usize,
            streams: choice.streams_each() as usize,
            timeout: self.timeout.as_nanos() as u64,
            open_loop: choice.open_loop,
            // without the kernel's stamps the wait would be in the latency
            gather: match self.coalesce {
                _ if !plan_stamps => None,
                Coalesce::Auto if choice.streams_each() > 1 => Some(Pauses::Long),
                // a pause would delay the start of requests that are due
                Coalesce::Auto if choice.open_loop.is_some() => None,
                Coalesce::Auto => Some(Pauses::Short),
                Coalesce::Always => Some(Pauses::Long),
                Coalesce::Never => None,
            },
        })
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

    /// Whether the load stays on this machine.
    pub fn is_local(&self) -> Result<bool, ConfigError> {
        if self.unix_socket.is_some() {
            return Ok(true);
        }
        if self.proxy.is_some() {
            return Ok(false);
        }
        let address = self.address()?;
        let local = |ip: IpAddr| ip.is_loopback();
        Ok(match self.endpoint(&address, false)?.0 {
            Endpoint::Addresses(addresses) => addresses.iter().all(|address| local(address.ip())),
            Endpoint::Name { host, .. } => is_own_name(&host),
            Endpoint::Unix(_) => true,
        })
    }

    /// The request of a variant. `absolute`: to a proxy, in absolute form.
    pub(crate) fn request(
        &self,
        address: &ServerUrl,
        choice: &AxisValues,
        absolute: bool,
    ) -> Result<Request, ConfigError> {
        let call = self.call.as_ref();
        let call = call.filter(|_| choice.connection.as_grpc == Some(true));
        let (address, method, headers, body) = match call {
            Some(call) => {
                let path = call.path.clone();
                let address = ServerUrl {
                    path,
                    ..address.clone()
                };
                (address, "POST", &call.headers, &call.body)
            }
            None => (address.clone(), &*self.method, &self.headers, &self.body),
        };
        let method = Method::new(method);
        let refuse = |name: &str| {
            matches!(name, "content-length" | "transfer-encoding")
                .then_some("the length of the body is ours to say: use -d")
        };
        let mut spec = RequestSpec::new(&address, method, &self.user_agent, headers, refuse)?;
        spec.body = body.as_slice().into();
        spec.expect = self.expect;
        spec.absolute = absolute.then(|| format!("http://{}", address.authority()));
        spec.connection = match (choice.http, choice.keepalive) {
            (Protocol::Http10, true) => Some("keep-alive"),
            (Protocol::Http11, false) => Some("close"),
            _ => None,
        };
        let mut request = spec.format(choice.http);
        request.closes |= !choice.keepalive && !choice.http.has_streams();
        Ok(request)
    }
}
