//! The configuration of a check, validated before anything is sent.

use crate::server_process::EndSignal;
use intact_client::tls::{Credentials, SettingsError};
use intact_client::{AddressError, ConnectOverride, Endpoint, Family, RequestError, ServerUrl};
use intact_ledger::{ExpectedStatus, Method, Protocol};
use std::str::FromStr;
use std::time::Duration;

/// The default limit for all probes together.
pub const MAX_TIME: Duration = Duration::from_secs(60);

/// Why a configuration is refused. Each message names the option to change.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The URL, or a rule of `--connect-to` or `--resolve`, is invalid.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// A method, header field or body is invalid.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// An additional request (`--try`) is invalid.
    #[error(
        "{0:?} is not a valid request: write 'METHOD /path' or '/path', with the slash and without spaces in the path"
    )]
    Try(String),
    /// The TLS configuration failed.
    #[error(transparent)]
    Tls(#[from] SettingsError),
    /// HTTP/3 was requested where it is not possible.
    #[error("--http 3: {0}")]
    Http3(&'static str),
}

/// An additional request to the same server (`POST /orders`, or `/empty` for a GET). The check
/// reports whether its connection stays open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtraRequest {
    /// The method. POST, PUT and PATCH carry `{}` as `application/json`.
    pub method: Method,
    /// The path with its query.
    pub path: String,
}

impl FromStr for ExtraRequest {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<ExtraRequest, ConfigError> {
        let (method, path) = text.trim().split_once(' ').unwrap_or(("GET", text));
        let path = path.trim();
        let is_path = path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic());
        let is_method = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase());
        if !is_path || !is_method || method == "CONNECT" {
            return Err(ConfigError::Try(text.to_owned()));
        }
        Ok(ExtraRequest {
            method: Method::new(method),
            path: path.to_owned(),
        })
    }
}

/// The configuration of a check.
#[derive(Clone, Debug)]
pub struct Config {
    /// The URL.
    pub address: ServerUrl,
    /// The method; GET by default.
    pub method: Method,
    /// Header fields as `Name: value`.
    pub headers: Vec<String>,
    /// The default `User-Agent`.
    pub user_agent: String,
    /// Trusted certificates and the client's certificate.
    pub credentials: Credentials,
    /// How addresses are found.
    pub route: ConnectOverride,
    /// The limit for one request, and for one dial.
    pub timeout: Duration,
    /// The limit for all probes together. Idle waits and the pacing of [`Config::requests_per_s`]
    /// do not count.
    pub max_time: Duration,
    /// The maximum of requests per second; absent: no limit.
    pub requests_per_s: Option<f64>,
    /// The HTTP version of probes that use a single version; absent: 1.1 if the server supports
    /// it, else a version that it supports.
    pub http: Option<Protocol>,
    /// The statuses of the first response that count as ok; absent: every status.
    pub expect: Option<ExpectedStatus>,
    /// Whether redirects are followed.
    pub follow: bool,
    /// Whether idle limits are measured at all.
    pub idle: bool,
    /// The longest wait on an idle connection.
    pub idle_limit: Duration,
    /// Idle connections during the second measurement of the idle limit; 0 skips it.
    pub hold: u32,
    /// Send more requests and wait longer.
    pub thorough: bool,
    /// Additional requests (`--try`).
    pub tries: Vec<ExtraRequest>,
    /// If present, only the end of the server's process is measured.
    pub drain: Option<DrainConfig>,
}

/// How the end of a server's process is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrainConfig {
    /// The signal that asks the server to end.
    pub signal: EndSignal,
    /// How long after the signal the process is killed.
    pub limit: Duration,
    /// A request with a slow response, to be in flight at the signal.
    pub slow: Option<ExtraRequest>,
}

impl Default for DrainConfig {
    fn default() -> DrainConfig {
        DrainConfig {
            signal: EndSignal::Term,
            limit: Duration::from_secs(30),
            slow: None,
        }
    }
}

impl Config {
    /// The URL without its query.
    pub fn url(&self) -> String {
        bare(&self.address)
    }

    /// Whether the server is on this machine, decided without a lookup.
    pub fn is_local(&self) -> bool {
        let endpoint = self.route.endpoint(&self.address.host, self.address.port);
        endpoint.is_ok_and(|endpoint| is_local(&endpoint))
    }

    /// The defaults for a URL.
    pub fn new(url: &str) -> Result<Config, ConfigError> {
        Ok(Config {
            address: ServerUrl::parse(url)?,
            method: Method::GET,
            headers: Vec::new(),
            user_agent: concat!("intact/", env!("CARGO_PKG_VERSION")).to_owned(),
            credentials: Credentials::default(),
            route: ConnectOverride {
                family: Family::Any,
                ..ConnectOverride::default()
            },
            timeout: Duration::from_secs(10),
            max_time: MAX_TIME,
            requests_per_s: None,
            http: None,
            expect: None,
            follow: false,
            idle: true,
            idle_limit: Duration::from_secs(90),
            hold: 0,
            thorough: false,
            tries: Vec::new(),
            drain: None,
        })
    }
}

/// The URL without its query.
pub(crate) fn bare(address: &ServerUrl) -> String {
    let path = address.path.split('?').next().unwrap_or("/");
    format!("{}{path}", address.origin())
}

/// Whether an endpoint is on this machine, decided without a lookup.
pub(crate) fn is_local(endpoint: &Endpoint) -> bool {
    match endpoint {
        Endpoint::Addresses(addresses) => {
            addresses.iter().all(|address| address.ip().is_loopback())
        }
        Endpoint::Name { host, .. } => &**host == "localhost" || host.ends_with(".localhost"),
        Endpoint::Unix(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_try_is_a_method_and_a_path() {
        let tried = |text: &str| text.parse::<ExtraRequest>();
        let post = tried("POST /orders?dry=1").unwrap();
        assert_eq!(
            (post.method.as_str(), &*post.path),
            ("POST", "/orders?dry=1")
        );
        assert_eq!(tried("/empty").unwrap().method, Method::GET);
        for bad in [
            "",
            "POST",
            "post /a",
            "POST a",
            "POST /a b",
            "POST /a\r\nx: y",
            "CONNECT /a",
            "http://h/a",
        ] {
            assert!(matches!(tried(bad), Err(ConfigError::Try(_))), "{bad:?}");
        }
    }

    #[test]
    fn only_what_leads_to_this_machine_is_local() {
        let local = |url: &str, connect_to: &[&str]| {
            let mut config = Config::new(url).unwrap();
            config.route.connect_to = connect_to.iter().map(|&rule| rule.to_owned()).collect();
            config.is_local()
        };
        assert!(local("http://127.0.0.1:8/", &[]));
        assert!(local("http://[::1]/", &[]));
        assert!(local("https://a.localhost/", &[]));
        assert!(!local("http://192.0.2.1/", &[]));
        assert!(!local("http://example.org/", &[]));
        assert!(local("http://example.org/", &["::127.0.0.1:8080"]));
        assert!(!local("http://localhost/", &["::192.0.2.1:80"]));
    }
}
