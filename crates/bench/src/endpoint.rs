//! Where the connections of a variant lead: the scheme's port, a proxy, a socket, a rule that leads elsewhere.

use crate::config::{Config, ConfigError, Target};
use intact_client::{ConnectOverride, Endpoint, Proxy, ServerUrl};
use intact_experiment::TlsChoice;
use intact_ledger::Scheme;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

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

/// Looks a name up, for no longer than `timeout`: getaddrinfo(3) has no limit of its own.
fn look_up(host: &str, port: u16, timeout: Duration) -> Result<Vec<SocketAddr>, String> {
    let (sender, receiver) = channel();
    let name = (host.to_owned(), port);
    thread::spawn(move || {
        let found = name.to_socket_addrs().map(Iterator::collect);
        // who asked may have given up
        let _ = sender.send(found);
    });
    let found: std::io::Result<Vec<SocketAddr>> = receiver
        .recv_timeout(timeout)
        .map_err(|_| "no answer of the name server within --timeout".to_owned())?;
    found.map_err(|error| error.to_string())
}

impl Config {
    /// Where to connect to for an address: a proxy, a socket, what `--resolve` and `--connect-to` say, or the host itself.
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
                return Err(ConfigError::Value {
                    option: "--proxy",
                    reason: "only http:// proxies are spoken to".to_owned(),
                });
            }
            let route = ConnectOverride {
                family: self.route.family,
                ..ConnectOverride::default()
            };
            let endpoint = self.reach(&route, &at.host, at.port)?;
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
        let endpoint = self.reach(&self.route, &address.host, address.port)?;
        Ok((endpoint, Proxy::Transparent))
    }

    fn reach(
        &self,
        route: &ConnectOverride,
        host: &str,
        port: u16,
    ) -> Result<Endpoint, ConfigError> {
        match route.endpoint(host, port)? {
            Endpoint::Name { host, port, family } if self.look_up_once => {
                let found =
                    look_up(&host, port, self.timeout).map_err(|error| ConfigError::Value {
                        option: "--dns once",
                        reason: format!("{host}: {error}"),
                    })?;
                let found: Vec<_> = found
                    .into_iter()
                    .filter(|address| family.allows(address))
                    .collect();
                Ok(Endpoint::Addresses(found.into()))
            }
            endpoint => Ok(endpoint),
        }
    }
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
