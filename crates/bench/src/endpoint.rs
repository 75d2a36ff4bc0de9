//! Where the connections of a variant lead: the scheme's port, a proxy, a socket, a rule that leads
//! elsewhere.

use crate::config::{Config, ConfigError, Target};
use intact_client::dns::{NameServers, StubResolver};
use intact_client::{ConnectOverride, Endpoint, Proxy, ServerUrl};
use intact_experiment::{NameLookup, TlsChoice};
use intact_ledger::Scheme;
use std::net::IpAddr;
use std::sync::Arc;

/// The same host by the scheme that a variant's TLS asks for.
pub(crate) fn by_scheme(
    address: &ServerUrl,
    tls: TlsChoice,
    target: &Target,
) -> Result<ServerUrl, ConfigError> {
    let scheme = if tls == TlsChoice::None {
        Scheme::Http
    } else {
        Scheme::Https
    };
    if scheme == address.scheme {
        return Ok(address.clone());
    }
    let (named, option) = match scheme {
        Scheme::Http => (target.plain_port, "--plain-port"),
        _ => (target.tls_port, "--tls-port"),
    };
    let port = match named {
        Some(port) => port,
        None if address.explicit_port => {
            return Err(ConfigError::OtherPort {
                wanted: tls.as_str(),
                scheme: scheme.as_str(),
                host: address.host.clone(),
                option,
            });
        }
        None => scheme.default_port().unwrap_or(address.port),
    };
    Ok(ServerUrl {
        scheme,
        port,
        ..address.clone()
    })
}

impl Config {
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

    /// Where to connect to for an address: a proxy, a socket, what `--resolve` and `--connect-to`
    /// say, or the host itself.
    pub(crate) fn endpoint(
        &self,
        address: &ServerUrl,
        tunnel: bool,
    ) -> Result<(Endpoint, Proxy), ConfigError> {
        if let Some(path) = &self.unix_socket {
            return Ok((Endpoint::Unix(path.clone()), Proxy::Transparent));
        }
        if let Some(proxy) = &self.proxy {
            let at = ServerUrl::parse(proxy)?;
            if at.scheme != Scheme::Http {
                let words = "only http:// proxies are spoken to";
                return Err(ConfigError::value("--proxy", words));
            }
            let route = ConnectOverride {
                family: self.route.family,
                ..ConnectOverride::default()
            };
            let endpoint = route.endpoint(&at.host, at.port)?;
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
        let endpoint = self.route.endpoint(&address.host, address.port)?;
        Ok((endpoint, Proxy::Transparent))
    }
}

/// What resolves the name of an endpoint where the system does not; an error where there is no
/// name, or no name server to ask.
pub(crate) fn names(
    dns: Option<NameLookup>,
    endpoint: &Endpoint,
) -> Result<Option<Arc<StubResolver>>, ConfigError> {
    let new = match dns {
        Some(NameLookup::Cached) => StubResolver::caching,
        Some(NameLookup::PerConnection) => StubResolver::asking,
        Some(NameLookup::System) | None => return Ok(None),
    };
    let refuse =
        |reason: String| ConfigError::value("--dns cached and --dns per-connection", reason);
    let Endpoint::Name { host, .. } = endpoint else {
        let words = "connections lead to an address, so no name is looked up; name a host in the URL, and leave --resolve out";
        return Err(refuse(words.to_owned()));
    };
    if is_own_name(host) {
        let words = "is this machine by definition, and no name server is asked for it (RFC 6761); name another host, or leave --dns out";
        return Err(refuse(format!("{host} {words}")));
    }
    let servers = NameServers::of_system()
        .map_err(|error| refuse(format!("/etc/resolv.conf: {error}; use --dns system")))?;
    if servers.servers.is_empty() {
        let words = "/etc/resolv.conf names no name server; use --resolver ADDRESS";
        return Err(refuse(words.to_owned()));
    }
    Ok(Some(Arc::new(new(servers))))
}

/// Whether a name is this machine's wherever it is used.
pub(crate) fn is_own_name(host: &str) -> bool {
    host == "localhost" || host.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_scheme_needs_a_port_when_the_url_names_one() {
        let target = Target {
            url: "http://h:8080".to_owned(),
            plain_port: None,
            tls_port: None,
        };
        let address = ServerUrl::parse(&target.url).unwrap();
        assert!(matches!(
            by_scheme(&address, TlsChoice::Any, &target),
            Err(ConfigError::OtherPort { .. })
        ));
        let named = Target {
            tls_port: Some(8443),
            ..target
        };
        assert_eq!(
            by_scheme(&address, TlsChoice::Any, &named).unwrap().port,
            8443
        );
        let bare = ServerUrl::parse("http://h").unwrap();
        assert_eq!(by_scheme(&bare, TlsChoice::Any, &named).unwrap().port, 8443);
    }
}
