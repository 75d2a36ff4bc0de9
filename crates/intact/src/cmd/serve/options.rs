//! The words of `intact serve`'s command line, and the server's configuration that they make.

use super::name_server::{self, NameServerOptions};
use super::upstream::UpstreamOptions;
use crate::cmd::json::JsonTarget;
use crate::cmd::{config, missing_feature, options};
use crate::exit::Failed;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use intact_ledger::TlsVersion;
use intact_link::{SERVER_NAME, SERVER_V4};
use intact_serve::{
    Accept, Announce, CachingConfig, Certificate, CertificateAuthority, Close, Delay, Disturbance,
    Disturbances, Fault, Faults, NamedVariants, TlsConfig,
};
use intact_units::duration::or_seconds;
use intact_units::size;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// An instrumented server: HTTP/1.0, 1.1, 2 and 3, plain and TLS, with its own ledger of the same
/// traffic.
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize)]
#[command(after_help = AFTER)]
pub(crate) struct Args {
    /// Address for plain HTTP
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Address for TLS
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8443")]
    tls_listen: SocketAddr,
    /// Speak HTTP/3 too, on the UDP port with the number of the TLS port, and announce it there by
    /// `Alt-Svc` (feature http3)
    #[arg(long)]
    http3: bool,
    /// Congestion control of the connections, by the kernel's name (cubic, bbr): it acts on what
    /// the server sends
    #[arg(long, value_name = "NAME")]
    congestion: Option<String>,
    /// Take data with the SYN from clients that have a cookie (RFC 7413); needs
    /// net.ipv4.tcp_fastopen=3, which a link has
    #[arg(long)]
    tcp_fastopen: bool,
    /// Threads that serve; connections go to them in turn
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = threads)]
    threads: usize,
    /// Keep the server's ledger in a new folder
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(super) ledger: Option<PathBuf>,
    #[command(flatten)]
    tls: Tls,
    #[command(flatten)]
    answers: ResponseOptions,
    #[command(flatten)]
    limits: Limits,
    #[command(flatten)]
    wrongs: FaultOptions,
    #[command(flatten)]
    names: NameServerOptions,
    #[command(flatten)]
    upstream: UpstreamOptions,
    /// Print the counts at the end as JSON, or write them to a file
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-", help_heading = "Output")]
    pub(super) json: Option<JsonTarget>,
    /// Put the server at the far end of an emulated link and run CMD on the near one: short for
    /// `intact link SPEC -- CMD`
    #[arg(long, value_name = "SPEC", help_heading = "Link")]
    pub(super) link: Option<intact_link::Spec>,
    /// The command that runs on the client side of --link
    #[arg(trailing_var_arg = true, value_name = "CMD")]
    pub(super) command: Vec<OsString>,
    /// Where it listens.
    #[arg(skip)]
    place: Place,
}

/// All that a server depends on.
pub(crate) type Config = config::Config<Args>;

/// Where a server listens.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
enum Place {
    /// At the addresses of the options.
    #[default]
    Chosen,
    /// At free ports of this machine.
    FreePorts,
    /// At ports 80 and 443 of the server side of a link.
    Link,
}

#[derive(Clone, Debug, clap::Args, Serialize, Deserialize)]
#[command(next_help_heading = "TLS")]
struct Tls {
    /// Write the certificate of the server's CA here, so that clients can verify
    #[arg(long, value_name = "FILE")]
    write_ca: Option<PathBuf>,
    /// Fault of the certificate
    #[arg(long, value_name = "KIND", default_value = "good", value_parser = one_of::<Certificate>())]
    cert_kind: Certificate,
    /// Certificate chain (PEM) [default: a generated one]
    #[arg(
        long,
        value_name = "FILE",
        requires = "key",
        conflicts_with = "cert_kind"
    )]
    cert: Option<PathBuf>,
    /// Its key (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// Further names for the certificate
    #[arg(long, value_name = "NAME")]
    name: Vec<String>,
    /// TLS versions
    #[arg(
        long = "tls",
        value_name = "1.2,1.3",
        value_delimiter = ',',
        value_parser = options::words(VERSIONS),
        default_value = "1.2,1.3"
    )]
    versions: Vec<TlsVersion>,
    /// TLS 1.3 tickets per handshake; 0: sessions cannot be resumed
    #[arg(long, value_name = "N", default_value_t = 2)]
    tickets: usize,
    /// Take up to this many bytes of early data (0-RTT) from resuming clients
    #[arg(
        long,
        value_name = "BYTES",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "16384"
    )]
    early_data: Option<u32>,
}

#[derive(Clone, Debug, clap::Args, Serialize, Deserialize)]
#[command(next_help_heading = "Responses")]
struct ResponseOptions {
    /// Bytes of the body, or its size (20kB, 3MB)
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = bytes)]
    body: u64,
    /// Status
    #[arg(long, value_name = "CODE", default_value_t = 200, value_parser = clap::value_parser!(u16).range(200..1000))]
    status: u16,
    /// A further field of every response, sent as given
    #[arg(long, value_name = "NAME: VALUE", value_parser = header)]
    header: Vec<(String, String)>,
    /// Send an `ETag`, and 304 (Not Modified) without a body to a client that sends it back in
    /// `If-None-Match`
    #[arg(long)]
    etag: bool,
    /// Send `Cache-Control: max-age` with this time in whole seconds: how long a cache may use the
    /// response without a request
    #[arg(long, value_name = "TIME", value_parser = whole_seconds)]
    cache_max_age: Option<u32>,
    /// Compress bodies of up to 1 MiB for clients that accept gzip, and send `Vary:
    /// accept-encoding`
    #[arg(long)]
    compress: bool,
    /// Pause before each response: a time, or exp:20ms for exponentially distributed ones with
    /// that mean
    #[arg(long, value_name = "[exp:]TIME", default_value = "0ms")]
    delay: Delay,
    /// Further pause before the first response on each connection, as if a cache had to warm up
    #[arg(long, value_name = "TIME", value_parser = or_seconds, default_value = "0ms")]
    first_request_cost: Duration,
    /// Send HTTP/2's HEADERS and DATA in two writes, this far apart
    #[arg(
        long,
        value_name = "TIME",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "0ms",
        value_parser = or_seconds
    )]
    split_h2: Option<Duration>,
}

#[derive(Clone, Debug, clap::Args, Serialize, Deserialize)]
#[command(next_help_heading = "Connection limits")]
struct Limits {
    /// Close connections that idle for this long
    #[arg(long, value_name = "TIME", value_parser = or_seconds)]
    idle_timeout: Option<Duration>,
    /// Close connections after this many requests
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_requests: Option<u64>,
    /// Close connections of this age, when idle or after the response
    #[arg(long, value_name = "TIME", value_parser = or_seconds)]
    max_age: Option<Duration>,
    /// Announce the limits in `Keep-Alive`: honest, off, or other words that are sent as given
    #[arg(
        long,
        value_name = "honest|off|WORDS",
        num_args = 0..=1,
        require_equals = true,
        default_value = "off",
        default_missing_value = "honest"
    )]
    announce: Announce,
    /// How connections are closed
    #[arg(long, value_name = "HOW", default_value = "goaway", value_parser = one_of::<Close>())]
    close: Close,
    /// How long connections may finish after the signal that ends the server; 0s: they are cut off
    #[arg(long, value_name = "TIME", value_parser = or_seconds, default_value = "5s")]
    drain_time: Duration,
}

#[derive(Clone, Debug, clap::Args, Serialize, Deserialize)]
#[command(next_help_heading = "Faults")]
struct FaultOptions {
    /// Fault of accepted connections, before their first byte
    #[arg(long, value_name = "HOW", default_value = "serve", value_parser = one_of::<Accept>())]
    accept: Accept,
    /// Answer badly, each fault with its probability: stall=0.1,garbage=0.05
    #[arg(
        long,
        value_name = "FAULT=SHARE,...",
        default_value = "",
        hide_default_value = true,
        long_help = faults()
    )]
    fault: Faults,
    /// Disturb responses at set times, counted from the first request: pause=1s/10s,slow=200ms/100
    #[arg(
        long,
        value_name = "NAME=TIME[@START][/EVERY],...",
        default_value = "",
        hide_default_value = true,
        long_help = disturbances()
    )]
    script: Disturbances,
    /// Repeats the same delays and faults (with one thread)
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
}

const VERSIONS: &[(&str, TlsVersion)] = &[("1.2", TlsVersion::Tls12), ("1.3", TlsVersion::Tls13)];

impl Args {
    /// Where the certificate of our CA is to be written.
    pub(super) fn write_ca(&self) -> Option<&PathBuf> {
        self.tls.write_ca.as_ref()
    }
}

impl Config {
    /// The built-in server without an option, at free ports of this machine.
    pub(crate) fn of_builtin() -> Config {
        let mut options: Args = options::defaults(&[]);
        options.place = Place::FreePorts;
        Config {
            options,
            words: ["intact", "serve"].map(str::to_owned).into(),
        }
    }

    /// The same with these options.
    pub(crate) fn with_options(words: &[&str]) -> Result<Config, clap::Error> {
        let mut config = Config::of_builtin();
        config.options = Args {
            place: config.options.place,
            ..options::parse(words)?
        };
        config.words.extend(words.iter().map(ToString::to_string));
        Ok(config)
    }

    /// The same server on the server side of a link.
    pub(crate) fn on_link(mut self) -> Config {
        self.options.place = Place::Link;
        let names = [SERVER_NAME.to_owned(), SERVER_V4.to_string()];
        self.options.tls.name.extend(names);
        self
    }

    /// Where programs on the link look names up, if this server serves them.
    pub(super) fn resolver_on_link(&self) -> Option<IpAddr> {
        self.options.names.is_on().then_some(SERVER_V4.into())
    }

    /// The configuration of the server itself.
    pub(super) fn server(&self) -> Result<intact_serve::Config, Failed> {
        let args = &self.options;
        let address = |chosen: SocketAddr, well_known: u16| match args.place {
            Place::Chosen => chosen,
            Place::FreePorts => SocketAddr::from(([127, 0, 0, 1], 0)),
            Place::Link => SocketAddr::from((SERVER_V4, well_known)),
        };
        let plain = address(args.listen, 80);
        if args.http3 {
            let missing = |words: String| Failed::usage(anyhow::anyhow!("--http3: {words}"));
            missing_feature::http3().map_err(missing)?;
        }
        Ok(intact_serve::Config {
            plain: Some(plain),
            tls: Some((address(args.tls_listen, 443), args.tls.config()?)),
            http3: args.http3,
            upstream: args.upstream.config()?,
            congestion: args.congestion.clone(),
            fast_open: args.tcp_fastopen,
            threads: args.threads,
            seed: args.wrongs.seed,
            body: args.answers.body,
            status: args.answers.status,
            headers: args.answers.header.clone(),
            caching: CachingConfig {
                etag: args.answers.etag,
                max_age_s: args.answers.cache_max_age,
                compress: args.answers.compress,
            },
            idle_timeout: args.limits.idle_timeout,
            max_requests: args.limits.max_requests,
            max_age: args.limits.max_age,
            announce: args.limits.announce.clone(),
            delay: args.answers.delay,
            first_request_cost: args.answers.first_request_cost,
            split: args.answers.split_h2,
            accept: args.wrongs.accept,
            close: args.limits.close,
            drain: match args.place {
                Place::Chosen => args.limits.drain_time,
                // a server of our own command ends with it
                Place::FreePorts | Place::Link => Duration::ZERO,
            },
            faults: args.wrongs.fault.clone(),
            script: args.wrongs.script.clone(),
            name_server: args
                .names
                .config(|chosen| address(chosen, name_server::PORT), plain.ip())?,
            names: args.tls.name.clone(),
        })
    }
}

impl Tls {
    fn config(&self) -> Result<TlsConfig, Failed> {
        let authority = match (&self.cert, &self.key) {
            (Some(cert), Some(key)) => CertificateAuthority::read(cert, key),
            _ => CertificateAuthority::issue(&self.name, self.cert_kind),
        }
        .map_err(Failed::usage)?;
        Ok(TlsConfig {
            authority: Arc::new(authority),
            versions: self.versions.clone(),
            tickets: self.tickets,
            early_data: self.early_data.unwrap_or(0),
        })
    }
}

/// Takes the ids of a choice, and lists them with their words in `--help`.
fn one_of<T: NamedVariants + Send + Sync>() -> impl TypedValueParser<Value = T> {
    let possible = |choice: &T| PossibleValue::new(choice.id()).help(choice.words());
    PossibleValuesParser::new(T::VARIANTS.iter().map(possible)).try_map(|id| id.parse::<T>())
}

/// The help of `--fault`, with all of them.
fn faults() -> String {
    let help = "Answer badly, each fault with its probability: stall=0.1,garbage=0.05\n\nFaults:";
    help.to_owned() + &list::<Fault>()
}

/// The help of `--script`, with all of them.
fn disturbances() -> String {
    let help = "Disturb responses at set times, counted from the first request: pause=1s/10s \
                (every 10 s), pause=1s@5s (once, after 5 s), slow=200ms/100 (every 100th). Other \
                threads and connections go on; the server's ledger has the true times\n\nNames:";
    help.to_owned() + &list::<Disturbance>()
}

/// A line for each of a choice.
pub(super) fn list<T: NamedVariants>() -> String {
    let line = |choice: &T| format!("\n- {:<22} {}", format!("{}:", choice.id()), choice.words());
    T::VARIANTS.iter().map(line).collect()
}

fn bytes(word: &str) -> Result<u64, &'static str> {
    let bytes = word.parse().ok().or_else(|| size::read(word));
    bytes.ok_or("a number of bytes, or a size such as 512B, 20kB or 3MB")
}

fn threads(word: &str) -> Result<usize, String> {
    match word.parse() {
        Ok(count @ 1..=1024) => Ok(count),
        _ => Err("a number from 1 to 1024".to_owned()),
    }
}

/// The seconds of `max-age`, which caches have to support up to 2^31 (RFC 9111 section 1.2.2).
fn whole_seconds(word: &str) -> Result<u32, String> {
    let time = or_seconds(word).map_err(|error| error.to_string())?;
    let seconds = u32::try_from(time.as_secs()).unwrap_or(u32::MAX);
    match time.subsec_nanos() == 0 && seconds <= 1 << 31 {
        true => Ok(seconds),
        false => Err("max-age has whole seconds, at most 2147483648".to_owned()),
    }
}

fn header(line: &str) -> Result<(String, String), String> {
    let (name, value) = line
        .split_once(':')
        .ok_or("write it as `Name: value`".to_owned())?;
    if line.contains(['\r', '\n', '\0']) {
        return Err("a field has one line".to_owned());
    }
    if name.is_empty() || name.contains(char::is_whitespace) {
        return Err(format!("{name:?} is no name of a field"));
    }
    Ok((name.to_owned(), value.trim().to_owned()))
}

const AFTER: &str = "Paths: /bytes/N /chunked/N /status/CODE /delay/MS /close /echo /redirect /fault/NAME; all others respond alike.
On loopback only: /.intact/ledger (JSON) and /.intact/health. Ctrl-C prints a summary and stops the server.

Examples:
  intact serve
  intact serve --listen 127.0.0.1:8080 --tls-listen 127.0.0.1:8443 \\
    --write-ca ca.pem
  intact serve --max-requests 5 --announce
  intact serve --idle-timeout 5s --announce=timeout=60,max=1000 --close rst
  intact serve --delay exp:20ms --first-request-cost 150ms --threads 2
  intact serve --fault stall=0.01,reset-mid-body=0.05 --seed 7
  intact serve --script pause=1s/10s,slow=200ms/100 --ledger truth
  intact serve --upstream http://127.0.0.1:9000/ --calls 3 \\
    --upstream-keepalive off
  intact serve --dns=127.0.0.9 --dns-rate-limit 20/s:servfail --dns-ttl 0
  intact serve --idle-timeout 5s --link rtt=30ms -- node client.js";
