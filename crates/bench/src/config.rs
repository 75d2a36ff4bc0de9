//! What a person asked for, checked before anything is sent.

use crate::axes::{Axes, Choice, TlsChoice};
use crate::recipe::{Expect, Recipe};
use crate::recorder::Keep;
use crate::request;
use dial::tls::{self, ClientCertificate, Settings, Trust, Verify};
use dial::{Endpoint, Family, Plan, Proxy};
use http::Uri;
use ledger::{Method, Origin, Protocol, Scheme};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Why a configuration cannot be run. Each message names the option that helps.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The URL cannot be used.
    #[error("{url}: {reason}")]
    Url {
        /// The URL, without its query.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
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
    /// A header field cannot be sent as given.
    #[error("-H {field:?}: {reason}")]
    Header {
        /// The field's name.
        field: String,
        /// What is wrong.
        reason: &'static str,
    },
    /// A value makes no sense.
    #[error("{option}: {reason}")]
    Value {
        /// The option.
        option: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// TLS cannot be set up.
    #[error(transparent)]
    Tls(#[from] tls::SettingsError),
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
    /// So many measured exchanges.
    Exchanges(u64),
    /// For this long.
    Time(Duration),
}

/// When answers may be taken in batches, where they come much faster than a wake-up each is worth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Coalesce {
    /// With several streams on a connection, where one send then carries many requests: much CPU for little own queue.
    #[default]
    Streams,
    /// With many connections too: some CPU for an own queue as long as the latency.
    Always,
    /// Each answer is read at once.
    Never,
}

/// TLS material.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Credentials {
    /// Check neither chain nor name.
    pub insecure: bool,
    /// Trust the roots in this PEM text only.
    pub roots: Option<Arc<[u8]>>,
    /// Our certificate and its key.
    pub certificate: Option<(PathBuf, PathBuf)>,
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
    /// Rounds; absent: 20, or fewer where there are not enough exchanges for so many.
    pub rounds: Option<u32>,
    /// Engine threads.
    pub threads: u32,
    /// The seed of the order and of everything else random.
    pub seed: u64,
    /// New connections a second, over all threads; absent: as many as it takes.
    pub opening_per_s: Option<f64>,
    /// Requests a second, over all threads; absent: as many as it takes.
    pub requests_per_s: Option<f64>,
    /// Measured exchanges per variant that are never exceeded, whatever the length says.
    pub most: Option<u64>,
    /// The limit for one exchange and for one dial.
    pub timeout: Duration,
    /// Method.
    pub method: String,
    /// Header fields as `Name: value`.
    pub headers: Vec<String>,
    /// Request body.
    pub body: Vec<u8>,
    /// Our `User-Agent`, unless a header names another.
    pub user_agent: String,
    /// Which answers are `ok`.
    pub expect: Expect,
    /// TLS material.
    pub credentials: Credentials,
    /// `host:port:address[,address]` (curl's `--resolve`).
    pub resolve: Vec<String>,
    /// `host1:port1:host2:port2` (curl's `--connect-to`).
    pub connect_to: Vec<String>,
    /// Address family.
    pub family: Family,
    /// When answers may be taken in batches.
    pub coalesce: Coalesce,
    /// Look the name up once, instead of once per connection.
    pub look_up_once: bool,
    /// `http://host:port` of a proxy.
    pub proxy: Option<String>,
    /// A Unix domain socket to connect to instead of host and port.
    pub unix_socket: Option<PathBuf>,
    /// Which rows are kept.
    pub keep: Keep,
    /// The server's process, for its CPU time.
    pub server_pid: Option<u32>,
}

/// A URL taken apart.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    pub(crate) scheme: Scheme,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) path: String,
    explicit_port: bool,
}

impl Address {
    /// Parses a URL; without a scheme it is `http://`.
    pub(crate) fn parse(url: &str) -> Result<Address, ConfigError> {
        let wrong = |reason: &str| ConfigError::Url {
            url: ledger::redact::url(url),
            reason: reason.to_owned(),
        };
        let whole = if url.contains("://") {
            url.to_owned()
        } else {
            format!("http://{url}")
        };
        let uri: Uri = whole
            .parse()
            .map_err(|error: http::uri::InvalidUri| wrong(&error.to_string()))?;
        let scheme = match uri.scheme_str() {
            Some("http") => Scheme::Http,
            Some("https") => Scheme::Https,
            _ => return Err(wrong("the scheme has to be http or https")),
        };
        let authority = uri.authority().ok_or_else(|| wrong("it names no host"))?;
        if authority.as_str().contains('@') {
            return Err(wrong(
                "a user and password in the URL are not sent: use -H 'Authorization: ...'",
            ));
        }
        let host = authority
            .host()
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_ascii_lowercase();
        if host.is_empty() {
            return Err(wrong("it names no host"));
        }
        let after_host = authority.as_str().rsplit(']').next().unwrap_or("");
        let port = match (after_host.split_once(':'), authority.port_u16()) {
            (None, _) => scheme.default_port().unwrap_or(0),
            (Some(_), Some(port)) if port > 0 => port,
            (Some(_), _) => return Err(wrong("the port has to be a number from 1 to 65535")),
        };
        Ok(Address {
            scheme,
            host,
            port,
            path: uri
                .path_and_query()
                .map_or_else(|| "/".to_owned(), |path| path.as_str().to_owned()),
            explicit_port: after_host.contains(':'),
        })
    }

    /// The same host by the scheme that a variant's TLS asks for.
    fn by_scheme(&self, tls: TlsChoice, target: &Target) -> Result<Address, ConfigError> {
        let scheme = if tls == TlsChoice::None {
            Scheme::Http
        } else {
            Scheme::Https
        };
        if scheme == self.scheme {
            return Ok(self.clone());
        }
        let (named, option) = match scheme {
            Scheme::Http => (target.plain_port, "--plain-port"),
            _ => (target.tls_port, "--tls-port"),
        };
        let port = match named {
            Some(port) => port,
            None if self.explicit_port => {
                return Err(ConfigError::OtherPort {
                    wanted: tls.as_str(),
                    scheme: scheme.as_str(),
                    host: self.host.clone(),
                    option,
                });
            }
            None => scheme.default_port().unwrap_or(self.port),
        };
        Ok(Address {
            scheme,
            port,
            ..self.clone()
        })
    }

    /// The value of `Host` or `:authority`.
    pub(crate) fn authority(&self) -> String {
        let host = if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        };
        if self.scheme.default_port() == Some(self.port) {
            host
        } else {
            format!("{host}:{}", self.port)
        }
    }
}

impl Config {
    /// The URL, taken apart.
    pub(crate) fn address(&self) -> Result<Address, ConfigError> {
        Address::parse(&self.target.url)
    }

    /// Makes one variant ready to run.
    pub(crate) fn recipe(
        &self,
        variant: u32,
        choice: &Choice,
        trust: &Trust,
        kernel_stamps: bool,
    ) -> Result<Recipe, ConfigError> {
        let address = self.address()?.by_scheme(choice.tls, &self.target)?;
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
                verify: self.verify(),
                certificate: self
                    .credentials
                    .certificate
                    .clone()
                    .map(|(chain, key)| ClientCertificate { chain, key }),
            };
            Some(tls::Client::new(&address.host, &settings, trust)?)
        } else {
            None
        };
        let request = request::build(self, &address, choice, through_proxy)?;
        let plan_stamps = kernel_stamps && self.unix_socket.is_none();
        let plan = Plan {
            origin: Origin {
                scheme: address.scheme,
                host: address.host.as_str().into(),
                port: address.port,
            },
            endpoint,
            proxy,
            tls,
            protocol: choice.http,
            stamps: plan_stamps,
            local_address: matches!(self.keep, Keep::Ledger(_)),
        };
        Ok(Recipe {
            variant,
            plan: Arc::new(plan),
            request,
            keepalive: choice.keepalive,
            concurrency: choice.concurrency as usize,
            streams: choice.streams as usize,
            timeout: self.timeout.as_nanos() as u64,
            expect: self.expect,
            // without the kernel's stamps the wait would be in the latency
            gather: plan_stamps
                && match self.coalesce {
                    Coalesce::Streams => choice.streams > 1,
                    Coalesce::Always => true,
                    Coalesce::Never => false,
                },
        })
    }

    /// How far servers are checked.
    pub(crate) fn verify(&self) -> Verify {
        match &self.credentials {
            Credentials { insecure: true, .. } => Verify::Insecure,
            Credentials {
                roots: Some(roots), ..
            } => Verify::Roots(roots.clone()),
            _ => Verify::System,
        }
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
            Endpoint::Name { host, .. } => &*host == "localhost" || host.ends_with(".localhost"),
            Endpoint::Unix(_) => true,
        })
    }

    /// Where to connect to for an address: a proxy, a socket, what `--resolve` and `--connect-to` say, or the host itself.
    fn endpoint(&self, address: &Address, tunnel: bool) -> Result<(Endpoint, Proxy), ConfigError> {
        if let Some(path) = &self.unix_socket {
            return Ok((Endpoint::Unix(path.clone()), Proxy::Transparent));
        }
        if let Some(proxy) = &self.proxy {
            let at = Address::parse(proxy)?;
            if at.scheme != Scheme::Http {
                return Err(ConfigError::Value {
                    option: "--proxy",
                    reason: "only http:// proxies are spoken to".to_owned(),
                });
            }
            let endpoint = self.reach(&at.host, at.port)?;
            let host = if address.host.contains(':') {
                format!("[{}]", address.host)
            } else {
                address.host.clone()
            };
            let how = if tunnel {
                Proxy::Tunnel {
                    authority: format!("{host}:{}", address.port).into(),
                    authorization: None,
                }
            } else {
                Proxy::Transparent
            };
            return Ok((endpoint, how));
        }
        let (mut host, mut port) = (address.host.clone(), address.port);
        for rule in &self.connect_to {
            let parts = split_hosts(rule);
            let [from, from_port, to, to_port] = parts.as_slice() else {
                return Err(ConfigError::Value {
                    option: "--connect-to",
                    reason: format!("{rule:?} is not HOST1:PORT1:HOST2:PORT2"),
                });
            };
            let matches = (from.is_empty() || *from == host)
                && (from_port.is_empty() || *from_port == port.to_string());
            if matches {
                if !to.is_empty() {
                    host.clone_from(to);
                }
                if !to_port.is_empty() {
                    port = to_port.parse().map_err(|_| ConfigError::Value {
                        option: "--connect-to",
                        reason: format!("{to_port:?} is no port"),
                    })?;
                }
                break;
            }
        }
        for rule in &self.resolve {
            let wrong = || ConfigError::Value {
                option: "--resolve",
                reason: format!("{rule:?} is not HOST:PORT:ADDRESS[,ADDRESS]"),
            };
            let mut parts = rule.splitn(3, ':');
            let (Some(name), Some(at), Some(to)) = (parts.next(), parts.next(), parts.next())
            else {
                return Err(wrong());
            };
            let at: u16 = at.parse().map_err(|_| wrong())?;
            let mut addresses = Vec::new();
            for address in to.split(',') {
                let bare = address.trim_start_matches('[').trim_end_matches(']');
                addresses.push(bare.parse::<IpAddr>().map_err(|_| wrong())?);
            }
            if name.eq_ignore_ascii_case(&host) && at == port {
                addresses.retain(|address| match self.family {
                    Family::Any => true,
                    Family::V4 => address.is_ipv4(),
                    Family::V6 => address.is_ipv6(),
                });
                if addresses.is_empty() {
                    return Err(ConfigError::Value {
                        option: "--resolve",
                        reason: format!(
                            "{rule:?} has no address of the family that -4 or -6 asks for"
                        ),
                    });
                }
                let addresses = addresses
                    .iter()
                    .map(|&to| SocketAddr::new(to, port))
                    .collect();
                return Ok((Endpoint::Addresses(addresses), Proxy::Transparent));
            }
        }
        Ok((self.reach(&host, port)?, Proxy::Transparent))
    }

    fn reach(&self, host: &str, port: u16) -> Result<Endpoint, ConfigError> {
        if let Ok(ip) = host.parse::<IpAddr>() {
            return Ok(Endpoint::Addresses(Arc::new([SocketAddr::new(ip, port)])));
        }
        if self.look_up_once {
            use std::net::ToSocketAddrs;
            let found: Vec<SocketAddr> = (host, port)
                .to_socket_addrs()
                .map_err(|error| ConfigError::Value {
                    option: "--dns once",
                    reason: format!("{host}: {error}"),
                })?
                .filter(|address| self.family.allows(address))
                .collect();
            return Ok(Endpoint::Addresses(found.into()));
        }
        Ok(Endpoint::Name {
            host: host.into(),
            port,
            family: self.family,
        })
    }

    /// The method of the request.
    pub(crate) fn method(&self) -> Method {
        Method::new(&self.method)
    }
}

/// Splits at colons, except inside brackets, which are taken off.
fn split_hosts(rule: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut depth = 0;
    for letter in rule.chars() {
        match letter {
            '[' => depth += 1,
            ']' => depth -= 1,
            ':' if depth == 0 => parts.push(String::new()),
            other => {
                if let Some(part) = parts.last_mut() {
                    part.push(other);
                }
            }
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_taken_apart() {
        let address = Address::parse("https://Example.org/a?b=1").unwrap();
        assert_eq!(address.authority(), "example.org");
        assert_eq!((address.port, &*address.path), (443, "/a?b=1"));
        assert_eq!(
            Address::parse("http://[::1]:8080").unwrap().authority(),
            "[::1]:8080"
        );
        assert_eq!(
            Address::parse("localhost:9000/x").unwrap().authority(),
            "localhost:9000"
        );
    }

    #[test]
    fn a_url_that_cannot_be_used_is_refused_with_the_reason() {
        for url in [
            "ftp://x",
            "http://",
            "http://a b",
            "http://host:0",
            "http://host:99999",
            "http://u:p@host",
            "http://host:",
            "",
        ] {
            assert!(
                matches!(Address::parse(url), Err(ConfigError::Url { .. })),
                "{url}"
            );
        }
        let told = Address::parse("http://u:secret@host/?q=secret")
            .unwrap_err()
            .to_string();
        assert!(!told.contains("secret"), "{told}");
    }

    #[test]
    fn the_other_scheme_needs_a_port_when_the_url_names_one() {
        let target = Target {
            url: "http://h:8080".to_owned(),
            plain_port: None,
            tls_port: None,
        };
        let address = Address::parse(&target.url).unwrap();
        assert!(matches!(
            address.by_scheme(TlsChoice::Any, &target),
            Err(ConfigError::OtherPort { .. })
        ));
        let named = Target {
            tls_port: Some(8443),
            ..target
        };
        assert_eq!(
            address.by_scheme(TlsChoice::Any, &named).unwrap().port,
            8443
        );
        let bare = Address::parse("http://h").unwrap();
        assert_eq!(bare.by_scheme(TlsChoice::Any, &named).unwrap().port, 8443);
    }

    #[test]
    fn brackets_protect_colons() {
        assert_eq!(
            split_hosts("a:80:[::1]:8080"),
            ["a", "80", "::1", "8080"].map(str::to_owned)
        );
    }
}
