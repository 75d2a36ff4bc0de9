//! What a person asked for, checked before anything is sent.

use crate::plans::is_local;
use crate::server_process::EndSignal;
use intact_client::tls::{Credentials, SettingsError};
use intact_client::{AddressError, ConnectOverride, Family, RequestError, ServerUrl};
use intact_ledger::{ExpectedStatus, Method, Protocol};
use std::str::FromStr;
use std::time::Duration;

/// The limit for all probes together, where none is given.
pub const MAX_TIME: Duration = Duration::from_secs(60);

/// Why a configuration cannot be run. Each message names the option that helps.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The URL, or a rule that leads elsewhere, cannot be used.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// A part of the request cannot be sent as given.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// A request that was named beside the URL's cannot be sent as given.
    #[error(
        "{0:?} is no request to try: write 'METHOD /path' or '/path', the path with its slash and without spaces"
    )]
    Try(String),
    /// TLS cannot be set up.
    #[error(transparent)]
    Tls(#[from] SettingsError),
}

/// Another request of the same server, after which its connection is to be looked at: `POST /orders`, or `/empty` for a GET.
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

/// Everything about a check.
#[derive(Clone, Debug)]
pub struct Config {
    /// The URL, taken apart.
    pub address: ServerUrl,
    /// GET, or what the person named.
    pub method: Method,
    /// Header fields as `Name: value`.
    pub headers: Vec<String>,
    /// Our `User-Agent`, unless a header names another.
    pub user_agent: String,
    /// TLS material.
    pub credentials: Credentials,
    /// Where the URL leads.
    pub route: ConnectOverride,
    /// The limit for one request and for one dial.
    pub timeout: Duration,
    /// The limit for all probes together, without the time that idle connections are watched or that [`Config::requests_per_s`] takes.
    pub max_time: Duration,
    /// Requests a second that must not be exceeded; absent: as fast as the server answers.
    pub requests_per_s: Option<f64>,
    /// The version that requests per connection and idle limits are measured with; absent: 1.1, or what there is.
    pub http: Option<Protocol>,
    /// The statuses of the first response that count as ok; absent: every status.
    pub expect: Option<ExpectedStatus>,
    /// Whether redirects are followed.
    pub follow: bool,
    /// Whether idle limits are measured at all.
    pub idle: bool,
    /// The longest that an idle connection is watched.
    pub idle_limit: Duration,
    /// Connections that idle beside the one whose idle limit is measured once more; 0: that is left out.
    pub hold: u32,
    /// More requests and longer waits.
    pub thorough: bool,
    /// Requests that the person has named beside the URL's.
    pub tries: Vec<ExtraRequest>,
    /// The end of the server's process is measured, and nothing else; absent: everything else is.
    pub drain: Option<DrainConfig>,
}

/// How the end of a server's process is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrainConfig {
    /// The signal that asks it to end.
    pub signal: EndSignal,
    /// When it is killed.
    pub limit: Duration,
    /// A request whose response takes its time, to be in flight at the signal.
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

    /// Whether the server is on this machine, as far as that can be told without a lookup.
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

/// An address as a URL without its query.
pub(crate) fn bare(address: &ServerUrl) -> String {
    let path = address.path.split('?').next().unwrap_or("/");
    format!("{}{path}", address.origin())
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
