//! The options of `intact bench`.

use super::capacity_options::CapacityOptions;
use super::connection_options::ConnectionOptions;
use super::grpc::GrpcOptions;
use super::service::ServiceOptions;
use super::targets::TargetsFile;
use crate::cmd::conclusion::Output;
use crate::cmd::connect_options::ConnectOptions;
use crate::cmd::expect::Expect;
use crate::cmd::gates::Gates;
#[cfg(feature = "metrics")]
use crate::cmd::metrics::MetricsOptions;
use crate::cmd::missing_feature;
use crate::cmd::options;
use intact_bench::{Coalesce, IoChoice};
use intact_client::{TcpEnd, check_fast_open};
use intact_document::requirement::DocumentKind;
use intact_experiment::{
    Arrivals, CONNECTION_AXES, CacheUse, Load, NameLookup, RequestRate, TlsChoice, WhenBusy,
};
use intact_ledger::{Protocol, Rows, TlsVersion};
use intact_units::rate::RateError;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// What does a new connection per request cost, and what does each remedy save?
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// URL to load; without it the built-in server
    pub(in crate::cmd) url: Option<String>,

    /// Measured requests per variant, over all rounds
    #[arg(short = 'n', value_name = "N", conflicts_with = "time")]
    pub(in crate::cmd) requests: Option<u64>,
    /// Time per variant, over all rounds (10s, 2m, 500ms)
    #[arg(short = 'z', value_name = "TIME", value_parser = time)]
    pub(in crate::cmd) time: Option<Duration>,
    /// Rounds; every variant runs in each [default: 20, fewer where -n is too small]
    #[arg(long, value_name = "N")]
    pub(in crate::cmd) rounds: Option<u32>,
    /// Engine threads
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(in crate::cmd) threads: u32,
    /// Batch responses when they arrive faster than one wake-up each is worth (auto: with several
    /// streams, and briefly on io_uring); less CPU, longer client delay
    #[arg(long, value_name = "auto|on|off", value_parser = options::words(COALESCE), default_value = "auto")]
    pub(in crate::cmd) coalesce: Coalesce,
    /// How the engine waits for the kernel (auto: io_uring with 32 to 1,000 kept connections per
    /// thread where it is allowed, else epoll)
    #[arg(long, value_name = "auto|epoll|uring", value_parser = options::words(IO), default_value = "auto")]
    pub(in crate::cmd) io: IoChoice,
    /// Seed of the order of the variants and of the samples [default: random, and printed]
    #[arg(long, value_name = "N")]
    pub(in crate::cmd) seed: Option<u64>,

    #[command(flatten)]
    pub(in crate::cmd) axes: AxisOptions,
    #[command(flatten)]
    pub(in crate::cmd) open_loop: OpenLoopOptions,
    #[command(flatten)]
    pub(in crate::cmd) capacity: CapacityOptions,
    #[command(flatten)]
    pub(in crate::cmd) service: ServiceOptions,
    #[command(flatten)]
    pub(in crate::cmd) scenario: ScenarioOptions,
    #[command(flatten)]
    pub(in crate::cmd) request: RequestOptions,
    #[command(flatten)]
    pub(in crate::cmd) reach: ConnectOptions,
    /// Look names up at this name server, such as `intact serve --dns=127.0.0.9` (port 53)
    #[arg(long, value_name = "ADDRESS", value_parser = crate::cmd::resolver::address, conflicts_with = "link", help_heading = "Connection")]
    pub(in crate::cmd) resolver: Option<IpAddr>,
    /// HTTP proxy
    #[arg(long, short = 'x', value_name = "URL", help_heading = "Connection")]
    pub(in crate::cmd) proxy: Option<String>,
    /// Connect to a Unix domain socket
    #[arg(long, value_name = "PATH", help_heading = "Connection")]
    pub(in crate::cmd) unix_socket: Option<PathBuf>,
    /// Put the built-in server at the far end of an emulated link: rtt=30ms and more, see `intact
    /// link --help`
    #[arg(long, value_name = "SPEC", help_heading = "Connection")]
    pub(in crate::cmd) link: Option<intact_link::Spec>,
    /// Port for --tls none where the URL is https with a port
    #[arg(long, value_name = "PORT", help_heading = "Connection")]
    pub(in crate::cmd) plain_port: Option<u16>,
    /// Port for --tls 1.x where the URL is http with a port
    #[arg(long, value_name = "PORT", help_heading = "Connection")]
    pub(in crate::cmd) tls_port: Option<u16>,
    /// Process id of the server; reports its CPU time
    #[arg(long, value_name = "PID", help_heading = "Connection")]
    pub(in crate::cmd) server_pid: Option<u32>,

    #[command(flatten)]
    pub(in crate::cmd) output: Output,
    /// Show the run on the whole terminal; q stops it and keeps what was measured. Runs over 5 s
    /// show a block of lines by default
    #[arg(long, conflicts_with_all = ["link", "scenario"], help_heading = "Output")]
    pub(in crate::cmd) live: bool,
    /// One row per request, hey's columns first
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(in crate::cmd) csv: Option<PathBuf>,
    /// Latencies for readers of HdrHistogram: an interval log (V2) by round; to FILE.hgrm the
    /// percentiles of each variant
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(in crate::cmd) hdr: Option<PathBuf>,
    #[cfg(feature = "metrics")]
    #[command(flatten)]
    pub(in crate::cmd) metrics: MetricsOptions,
    /// Keep the ledger in a new folder
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(in crate::cmd) ledger: Option<PathBuf>,
    /// Compare with the stored ledger of an earlier bench
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(in crate::cmd) baseline: Option<PathBuf>,
    /// Compare how connections are used with this ledger of production, recorded by `watch` or
    /// `audit`
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(in crate::cmd) like: Option<PathBuf>,
    /// Draw where the client's threads and the server's process (ours, or --server-pid) spent
    /// processor time, a graph for each variant
    #[arg(long, value_name = "FILE.svg", help_heading = "Output")]
    pub(in crate::cmd) flamegraph: Option<PathBuf>,
    /// Which requests have a row in the ledger [default: sample; all with --csv, --prometheus and
    /// --otlp]
    #[arg(
        long,
        value_name = "all|sample",
        value_parser = options::words(ROWS),
        conflicts_with_all = row_outputs(),
        help_heading = "Output"
    )]
    pub(in crate::cmd) rows: Option<Rows>,
    #[command(flatten)]
    pub(in crate::cmd) gates: Gates,

    /// Half as long where neither -n nor -z sets the length.
    #[arg(skip)]
    pub(in crate::cmd) is_short: bool,
    /// Whether the page ends with the conclusion of the demonstration.
    #[arg(skip)]
    pub(in crate::cmd) is_demonstration: bool,
}

/// The values of each axis.
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize)]
#[command(next_help_heading = "Variants (comma lists; every combination is measured)")]
pub(crate) struct AxisOptions {
    /// Connections at once [default: 1]
    #[arg(short = 'c', value_name = "N,..", value_delimiter = ',', value_parser = count)]
    pub(in crate::cmd) concurrency: Vec<u32>,
    /// Keep connections, or open one per request (in HTTP/2 too)
    #[arg(
        long,
        value_name = "on,off",
        value_delimiter = ',',
        value_parser = options::words(options::SWITCH),
        default_value = "on,off"
    )]
    pub(in crate::cmd) keepalive: Vec<bool>,
    /// HTTP version; 3 is QUIC, and contains TLS 1.3 (feature http3) [default: 1.1]
    #[arg(long, value_name = "1.0,1.1,2,3", value_delimiter = ',', value_parser = http_version)]
    pub(in crate::cmd) http: Vec<Protocol>,
    /// TLS: none, 1.2, 1.3, or any (negotiated) [default: as the URL says]
    #[arg(long, value_name = "none,1.2,1.3", value_delimiter = ',', value_parser = tls_choice)]
    pub(in crate::cmd) tls: Vec<TlsChoice>,
    /// Resume TLS sessions, or make a full handshake each time
    #[arg(
        long,
        value_name = "off,on",
        value_delimiter = ',',
        value_parser = options::words(options::SWITCH),
        default_value = "off"
    )]
    pub(in crate::cmd) resume: Vec<bool>,
    /// Send the first request of a resumed connection of TLS 1.3 or HTTP/3 before the server
    /// responds (0-RTT); only GET and HEAD, because it may be replayed
    #[arg(
        long,
        value_name = "off,on",
        value_delimiter = ',',
        value_parser = options::words(options::SWITCH),
        default_value = "off"
    )]
    pub(in crate::cmd) early_data: Vec<bool>,
    /// Look the name up for each connection with getaddrinfo (system) or at the name server
    /// (per-connection), or keep the server's answer for its TTL (cached)
    #[arg(
        long,
        value_name = "system,cached,per-connection",
        value_delimiter = ',',
        default_value = "system"
    )]
    pub(in crate::cmd) dns: Vec<NameLookup>,
    /// Streams at once on each connection of HTTP/2 and HTTP/3
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "1")]
    pub(in crate::cmd) streams: Vec<u32>,
    #[command(flatten)]
    pub(in crate::cmd) connection: ConnectionOptions,
    /// Compare remedies with a new connection per request and a full handshake: each alone, and
    /// the best combination; of the built-in server also HTTP/3, gRPC, header compression, TCP Fast
    /// Open and caches, with --link of names too
    #[arg(long, conflicts_with_all = ["keepalive", "resume", "early_data"])]
    pub(in crate::cmd) remedies: bool,
}

/// When requests are due in an open loop.
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize)]
#[command(next_help_heading = "Open loop (requests are due by a schedule)")]
pub(crate) struct OpenLoopOptions {
    /// Requests per second (500/s, 30/min), several to compare; latency counts from the moment a
    /// request was due
    #[arg(long, value_name = "RATE,..", value_delimiter = ',', value_parser = rate, group = "schedule")]
    pub(in crate::cmd) rate: Vec<RequestRate>,
    /// A rate that changes linearly over -z, from round to round
    #[arg(long, value_name = "RATE..RATE", value_parser = ramp, group = "schedule")]
    pub(in crate::cmd) ramp: Option<RequestRate>,
    /// At equal distances, or at random as from many users [default: constant; poisson for the
    /// clients of a scenario]
    #[arg(long, value_name = "constant|poisson", requires = "schedule")]
    pub(in crate::cmd) arrivals: Option<Arrivals>,
    /// If every connection is busy, a request waits, or opens another one up to -c [default:
    /// queue]
    #[arg(long, value_name = "queue|open", requires = "schedule")]
    pub(in crate::cmd) when_busy: Option<WhenBusy>,
}

impl OpenLoopOptions {
    /// What they choose; without a rate a closed loop.
    pub(in crate::cmd) fn load(&self) -> Load {
        Load {
            rate: self.rate.iter().copied().chain(self.ramp).collect(),
            arrivals: self.arrivals.unwrap_or_default(),
            when_busy: self.when_busy.unwrap_or_default(),
        }
    }
}

/// Simulated clients.
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize)]
#[command(next_help_heading = "Scenario (simulated clients; -n counts clients, -c those at once)")]
pub(crate) struct ScenarioOptions {
    /// Run the clients that this definition describes: JavaScript (.js) or TOML (.toml)
    #[arg(long, value_name = "FILE", group = "schedule", conflicts_with_all = not_in_scenarios())]
    pub(in crate::cmd) scenario: Option<PathBuf>,
    /// Print the plan of the scenario as TOML, or with --json as JSON; send nothing
    #[arg(long, requires = "scenario")]
    pub(in crate::cmd) dry_run: bool,
}

/// What a scenario says itself, or what would have no effect in one.
fn not_in_scenarios() -> impl IntoIterator<Item = &'static str> {
    let others = [
        "like",
        "flamegraph",
        "when_busy",
        "rounds",
        "coalesce",
        "keepalive",
        "tls",
        "resume",
        "streams",
        "remedies",
        "method",
        "data",
        "body_file",
        "content_type",
        "plain_port",
        "tls_port",
        "baseline",
        "rate",
        "ramp",
    ];
    let of_connections = CONNECTION_AXES.iter().map(|axis| axis.name());
    others.into_iter().chain(of_connections)
}

/// What says itself what is sent.
const NOT_WITH_TARGETS: [&str; 6] = ["method", "data", "body_file", "grpc", "cache", "scenario"];

/// The request that every exchange sends.
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize)]
#[command(next_help_heading = "Request")]
pub(crate) struct RequestOptions {
    /// Method [default: GET, or POST with a body]
    #[arg(short = 'X', short_alias = 'm', long, value_name = "METHOD")]
    pub(in crate::cmd) method: Option<String>,
    /// Header field, may be repeated
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    pub(in crate::cmd) headers: Vec<String>,
    /// Body, or @FILE to read it from a file (@-: from standard input); with -D a body may begin
    /// with @
    #[arg(
        short = 'd',
        long = "data",
        value_name = "TEXT|@FILE",
        conflicts_with = "body_file"
    )]
    pub(in crate::cmd) data: Option<String>,
    /// Body from a file, as it is
    #[arg(short = 'D', long, value_name = "FILE")]
    pub(in crate::cmd) body_file: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cmd) grpc: GrpcOptions,
    /// Send the requests of a file in turn: vegeta's text or JSON, or a URL in each line as for
    /// h2load
    #[arg(long, value_name = "FILE", value_parser = TargetsFile::parser(), conflicts_with_all = NOT_WITH_TARGETS)]
    pub(in crate::cmd) targets: Option<TargetsFile>,
    /// Send requests for 10,000 paths in turn that match a regular expression, drawn by the seed:
    /// '/item/[0-9]{1,6}'
    #[arg(long, value_name = "REGEX", conflicts_with_all = NOT_WITH_TARGETS, conflicts_with = "targets")]
    pub(in crate::cmd) random_path: Option<String>,
    /// Content-Type of the body
    #[arg(short = 'T', long, value_name = "TYPE")]
    pub(in crate::cmd) content_type: Option<String>,
    /// The longest a request, or a dial, may take
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "10s")]
    pub(in crate::cmd) timeout: Duration,
    #[command(flatten)]
    pub(in crate::cmd) expect: Expect,
}

impl RequestOptions {
    /// The method; without one by whether there is a body.
    pub(in crate::cmd) fn method(&self) -> &str {
        let has_body = self.grpc.is_any() || self.data.is_some() || self.body_file.is_some();
        let default = if has_body { "POST" } else { "GET" };
        self.method.as_deref().unwrap_or(default)
    }

    /// Whether a server may execute the request twice.
    pub(in crate::cmd) fn is_repeatable(&self) -> bool {
        self.targets.is_none() && matches!(self.method(), "GET" | "HEAD")
    }
}

/// The outputs that need a row of every request.
fn row_outputs() -> impl IntoIterator<Item = &'static str> {
    let prometheus = cfg!(feature = "prometheus").then_some("prometheus");
    let otlp = cfg!(feature = "otlp").then_some("otlp");
    ["csv"].into_iter().chain(prometheus).chain(otlp)
}

const EXAMPLES: &str = "Examples:
  # keep-alive on against off, polite: 200 requests at most
  intact bench https://my.server/health
  intact bench https://my.server/ -n 2000 -c 1,10 --http 1.1,2 --tls 1.2,1.3
  intact bench https://my.server/ --keepalive off --resume off,on
  # what each remedy saves there, and its risk
  intact bench https://my.server/ --remedies
  # what a heartbeat saves
  intact bench --http 2 --idle 4s --ping off,1s -n 32 --rounds 8 \\
    --link rtt=30ms,nat-idle=3s
  # A/A: how far apart are two equal variants?
  intact bench http://localhost:8080/ -z 10s --keepalive on,on
  # open loop: latency from the moment each request was due
  intact bench http://localhost:8080/ -z 60s --rate 500/s -c 50 --keepalive on
  intact bench http://localhost:8080/ -z 60s --ramp 100/s..2000/s -c 50
  # what a cache of names saves, with and without reuse
  intact bench http://api.internal/ --dns system,cached,per-connection
  # the highest rate, with and without reuse
  intact bench http://localhost:8080/ --find-max 'p99 < 100ms, failed < 0.1 %'
  # and how it recovers from more
  intact bench http://localhost:8080/ --find-max 'p99 < 100ms' \\
    --overload 1.2x --for 20s
  intact bench http://localhost:8080/ --rate 500/s --holds 'p99 < 100ms' \\
    --overload 1.2x --keepalive on
  # two versions of your service, and its own calls
  intact bench http://127.0.0.1:3000/ --service 'node before.js' \\
    --service 'node after.js'
  # calls of gRPC, a kept channel against one per call
  intact bench http://localhost:50051/ --grpc grpc.health.v1.Health/Check
  # the message as JSON, its types from the server
  intact bench http://localhost:50051/ --grpc shop.Cart/Add \\
    --grpc-json @item.json
  # the built-in server, 30 ms away
  intact bench --link rtt=30ms --tls 1.2,1.3
  # the plan of a load-test definition, as TOML
  intact bench --scenario clients.js --dry-run
  intact bench --scenario clients.js \\
    --connect-to api.example.com:443:127.0.0.1:8443 -k --report page.html
  intact bench https://my.server/ --require 'keepalive=on: p99 < 50ms' \\
    --fail-on warning --junit bench.xml
  # does the test use connections as production does?
  intact bench https://staging/ -c 20 --like production/ \\
    --require 'unlike == 0'
  intact bench http://localhost:8080/ --server-pid 4711 --flamegraph time.svg
  intact bench --json | jq '.comparisons[0].saved_ms'

-n and -z are per variant over all rounds. Under keep-alive the first request on each connection that a round opens is warm-up.";

const COALESCE: &[(&str, Coalesce)] = &[
    ("auto", Coalesce::Auto),
    ("on", Coalesce::Always),
    ("off", Coalesce::Never),
];

const IO: &[(&str, IoChoice)] = &[
    ("auto", IoChoice::Auto),
    ("epoll", IoChoice::Epoll),
    ("uring", IoChoice::Uring),
];

const ROWS: &[(&str, Rows)] = &[("all", Rows::All), ("sample", Rows::Sample)];

impl Args {
    /// The document that they make.
    pub(in crate::cmd) fn document(&self) -> DocumentKind {
        match self.scenario.scenario {
            Some(_) => DocumentKind::Scenario,
            None if self.capacity.is_any() => DocumentKind::Capacity,
            None => DocumentKind::Bench,
        }
    }

    /// Adds to `--remedies` what the built-in server has, and other servers or URLs may not have.
    /// What the user gave stays.
    pub(super) fn add_remedies_of_builtin(&mut self) {
        let has_load = self.capacity.is_any() || self.service.is_any();
        let is_plain = self.request.method() == "GET" && self.request.expect.expect.is_none();
        if !self.axes.remedies || self.url.is_some() || has_load || !is_plain {
            return;
        }
        let has_tls = self.axes.tls.iter().all(|&tls| tls != TlsChoice::None);
        if self.axes.http.is_empty() && has_tls {
            // the last of each are in the combination
            let mut http = vec![Protocol::Http11, Protocol::Http3, Protocol::Http2];
            http.retain(|&http| http != Protocol::Http3 || intact_client::HAS_HTTP3);
            self.axes.http = http;
        }
        let has_link = self.link.is_some();
        if has_link && self.axes.dns == [NameLookup::System] {
            self.axes
                .dns
                .extend([NameLookup::PerConnection, NameLookup::Cached]);
        }
        fn add<T: Clone>(axis: &mut Vec<T>, is_possible: bool, values: &[T]) {
            if axis.is_empty() && is_possible {
                axis.extend_from_slice(values);
            }
        }
        let axes = &mut self.axes.connection.axes;
        let mut ends = [TcpEnd::Client, TcpEnd::Server].into_iter();
        let is_allowed = has_link || ends.all(|end| check_fast_open(end).is_ok());
        add(&mut axes.fast_open, is_allowed, &[false, true]);
        add(
            &mut axes.cache,
            true,
            &[CacheUse::Off, CacheUse::Revalidate],
        );
        let has_http2 = self.axes.http.contains(&Protocol::Http2);
        add(&mut axes.header_table, has_http2, &[false, true]);
        add(&mut axes.as_grpc, has_http2, &[false, true]);
    }

    /// Whether the built-in server serves names next to it: at the far end of a link, where names
    /// are looked up otherwise than by the system.
    pub(super) fn serves_names(&self) -> bool {
        let asks_server = self.axes.dns != [NameLookup::System];
        self.url.is_none() && self.link.is_some() && asks_server
    }

    /// Whether an output needs a row of every request.
    pub(super) fn needs_all_rows(&self) -> bool {
        #[cfg(feature = "metrics")]
        if self.metrics.is_any() {
            return true;
        }
        self.csv.is_some()
    }

    /// The options of `intact bench` without an argument.
    pub(in crate::cmd) fn defaults() -> Args {
        options::defaults(&[])
    }
}

/// `1.0`, `1.1`, `2` or `3`.
pub(crate) fn http_version(word: &str) -> Result<Protocol, String> {
    match word {
        "1.0" => Ok(Protocol::Http10),
        "1.1" | "1" => Ok(Protocol::Http11),
        "2" | "2.0" => Ok(Protocol::Http2),
        "3" | "3.0" => missing_feature::http3().map(|()| Protocol::Http3),
        _ => Err("one of 1.0, 1.1, 2, 3".to_owned()),
    }
}

fn count(word: &str) -> Result<u32, &'static str> {
    word.parse()
        .map_err(|_| "a number, or several as in -c 1,10")
}

pub(super) fn rate(word: &str) -> Result<RequestRate, RateError> {
    intact_units::rate::read(word).map(RequestRate::constant)
}

fn ramp(word: &str) -> Result<RequestRate, String> {
    RequestRate::ramp(word).map_err(|error| format!("{error}; a ramp is written 100/s..2000/s"))
}

fn tls_choice(word: &str) -> Result<TlsChoice, String> {
    match word {
        "none" => Ok(TlsChoice::None),
        "any" | "auto" => Ok(TlsChoice::Any),
        "1.2" => Ok(TlsChoice::Version(TlsVersion::Tls12)),
        "1.3" => Ok(TlsChoice::Version(TlsVersion::Tls13)),
        _ => Err("one of none, any, 1.2, 1.3".to_owned()),
    }
}

/// `10s`, `500ms`, `2m`, `1h`; a number alone is seconds, as in hey.
pub(crate) use intact_units::duration::or_seconds as time;
