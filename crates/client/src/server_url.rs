//! The parts of a URL, and curl's two ways to redirect a connection (`--resolve`, `--connect-to`).
//!
//! Does no lookup and no I/O; the result is an [`Endpoint`] for a dial.

use crate::dns::Family;
use crate::plan::Endpoint;
use http::Uri;
use intact_ledger::{Origin, Scheme};
use intact_wire::http1::check_target;
use percent_encoding::{AsciiSet, utf8_percent_encode};
use std::net::{IpAddr, SocketAddr};

/// Why a URL or a rule is invalid. Each message names the remedy.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// The URL is invalid.
    #[error("{url}: {reason}")]
    Url {
        /// The URL, without its query.
        url: String,
        /// The problem.
        reason: String,
    },
    /// A `--resolve` or `--connect-to` is invalid.
    #[error("{option}: {reason}")]
    Rule {
        /// The option.
        option: &'static str,
        /// The problem.
        reason: String,
    },
}

/// The parts of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerUrl {
    /// `http` or `https`.
    pub scheme: Scheme,
    /// A name in lower case, or an address without brackets.
    pub host: String,
    /// The port of the URL, or the default port of the scheme.
    pub port: u16,
    /// Path and query as sent.
    pub path: String,
    /// Whether the URL contains the port.
    pub explicit_port: bool,
}

impl ServerUrl {
    /// Parses a URL. Without a scheme it is `http://`.
    pub fn parse(url: &str) -> Result<ServerUrl, AddressError> {
        let wrong = |reason: &str| AddressError::Url {
            url: intact_ledger::redact::url(url),
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
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let slash = if path.starts_with('/') { "" } else { "/" };
        // bytes outside of ASCII are encoded (RFC 3986 section 2.1), as browsers do
        let path = format!("{slash}{}", utf8_percent_encode(path, &AsciiSet::EMPTY));
        check_target(&path).map_err(wrong)?;
        Ok(ServerUrl {
            scheme,
            host,
            port,
            path,
            explicit_port: after_host.contains(':'),
        })
    }

    /// The value of `Host` or `:authority`.
    pub fn authority(&self) -> String {
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

    /// Scheme, host and port.
    pub fn origin(&self) -> Origin {
        Origin {
            scheme: self.scheme,
            host: self.host.as_str().into(),
            port: self.port,
        }
    }
}

/// Replaces the addresses of URLs, with curl's rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectOverride {
    /// `host:port:address[,address]`: use these addresses for the name.
    pub resolve: Vec<String>,
    /// `host1:port1:host2:port2`: connect to the second pair if the URL has the first; empty parts
    /// match everything.
    pub connect_to: Vec<String>,
    /// The accepted address families.
    pub family: Family,
}

impl ConnectOverride {
    /// The endpoint of a host and port. Every rule is checked, also those that do not match.
    pub fn endpoint(&self, host: &str, port: u16) -> Result<Endpoint, AddressError> {
        let (host, port) = self.other_end(host, port)?;
        let mut resolved = None;
        for rule in &self.resolve {
            let wrong = || AddressError::Rule {
                option: "--resolve",
                reason: format!("{rule:?} is not HOST:PORT:ADDRESS[,ADDRESS]"),
            };
            let mut parts = rule.splitn(3, ':');
            let (Some(name), Some(at), Some(to)) = (parts.next(), parts.next(), parts.next())
            else {
                return Err(wrong());
            };
            let at: u16 = at.parse().map_err(|_| wrong())?;
            if name.is_empty() || !is_host(name) {
                return Err(wrong());
            }
            let mut addresses = Vec::new();
            for address in to.split(',') {
                let bare = address.trim_start_matches('[').trim_end_matches(']');
                let ip: IpAddr = bare.parse().map_err(|_| wrong())?;
                addresses.push(SocketAddr::new(ip, port));
            }
            let fits = name.eq_ignore_ascii_case(&host) && at == port;
            if fits && resolved.is_none() {
                addresses.retain(|address| self.family.allows(address));
                if addresses.is_empty() {
                    return Err(AddressError::Rule {
                        option: "--resolve",
                        reason: format!(
                            "{rule:?} has no address of the family that -4 or -6 asks for"
                        ),
                    });
                }
                resolved = Some(Endpoint::Addresses(addresses.into()));
            }
        }
        if let Some(endpoint) = resolved {
            return Ok(endpoint);
        }
        if let Ok(ip) = host.parse::<IpAddr>() {
            return Ok(Endpoint::Addresses([SocketAddr::new(ip, port)].into()));
        }
        Ok(Endpoint::Name {
            host: host.into(),
            port,
            family: self.family,
        })
    }

    /// Host and port after the first `--connect-to` that matches.
    fn other_end(&self, host: &str, port: u16) -> Result<(String, u16), AddressError> {
        let wrong = |reason: String| AddressError::Rule {
            option: "--connect-to",
            reason,
        };
        let mut other = None;
        for rule in &self.connect_to {
            let parts = split_hosts(rule);
            let [from, from_port, to, to_port] = parts.as_slice() else {
                return Err(wrong(format!("{rule:?} is not HOST1:PORT1:HOST2:PORT2")));
            };
            if let Some(bad) = [from, to].into_iter().find(|host| !is_host(host)) {
                return Err(wrong(format!("{bad:?} is no host")));
            }
            let number = |text: &str| match text {
                "" => Ok(port),
                other => other
                    .parse::<u16>()
                    .map_err(|_| wrong(format!("{other:?} is no port"))),
            };
            let (from_port, to_port) = (number(from_port)?, number(to_port)?);
            let fits = (from.is_empty() || from == host) && from_port == port;
            if fits && other.is_none() {
                let to = if to.is_empty() { host } else { to };
                other = Some((to.to_owned(), to_port));
            }
        }
        Ok(other.unwrap_or_else(|| (host.to_owned(), port)))
    }
}

/// Whether a text is a name that can be resolved, or an address. An empty text matches every host.
fn is_host(text: &str) -> bool {
    let may_stand = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:%".contains(&byte);
    text.bytes().all(may_stand)
}

/// Splits at colons outside of brackets, and removes the brackets.
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
    fn a_url_is_split_into_its_parts() {
        let address = ServerUrl::parse("https://Example.org/a?b=1").unwrap();
        assert_eq!(address.authority(), "example.org");
        assert_eq!((address.port, &*address.path), (443, "/a?b=1"));
        assert_eq!(
            ServerUrl::parse("http://[::1]:8080").unwrap().authority(),
            "[::1]:8080"
        );
        assert_eq!(
            ServerUrl::parse("localhost:9000/x").unwrap().authority(),
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
                matches!(ServerUrl::parse(url), Err(AddressError::Url { .. })),
                "{url}"
            );
        }
        let error = ServerUrl::parse("http://u:secret@host/?q=secret")
            .unwrap_err()
            .to_string();
        assert!(!error.contains("secret"), "{error}");
    }

    #[test]
    fn a_path_is_sent_as_ascii_and_never_ends_its_line() {
        let path = |url: &str| ServerUrl::parse(url).unwrap().path;
        assert_eq!(path("http://h/\u{e4}?q=\u{e4}#x"), "/%C3%A4?q=%C3%A4");
        assert_eq!(path("http://h?a=1"), "/?a=1");
        for bad in [
            "\r\nX: 1",
            "\n",
            " HTTP/1.1",
            "\t",
            "\0",
            "\u{7f}",
            "\u{1b}",
        ] {
            let urls = [
                format!("http://h/{bad}"),
                format!("http://h/?{bad}"),
                format!("http://h{bad}/"),
            ];
            for url in urls {
                assert!(ServerUrl::parse(&url).is_err(), "{url:?}");
            }
        }
    }

    #[test]
    fn a_rule_with_an_invalid_host_is_refused_even_if_it_does_not_match() {
        for bad in [
            "a\r\nb:1:127.0.0.1",
            "a b:1:127.0.0.1",
            ":1:127.0.0.1",
            "x:1:nowhere",
            "x:1",
        ] {
            let route = ConnectOverride {
                resolve: vec!["a:80:127.0.0.9".to_owned(), bad.to_owned()],
                ..ConnectOverride::default()
            };
            assert!(route.endpoint("a", 80).is_err(), "{bad:?}");
        }
        for bad in [
            "x:1:b\r\n:2",
            "x:1:b c:2",
            "x:1:b:70000",
            "x:y:b:2",
            "a/:1:b:2",
            "x:1",
        ] {
            let route = ConnectOverride {
                connect_to: vec!["a:80:b:8".to_owned(), bad.to_owned()],
                ..ConnectOverride::default()
            };
            assert!(route.endpoint("a", 80).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn brackets_protect_colons() {
        assert_eq!(
            split_hosts("a:80:[::1]:8080"),
            ["a", "80", "::1", "8080"].map(str::to_owned)
        );
    }

    #[test]
    fn the_first_rule_that_matches_applies() {
        let route = ConnectOverride {
            resolve: vec!["b:8:127.0.0.9".to_owned()],
            connect_to: vec!["a:80:b:8".to_owned()],
            family: Family::Any,
        };
        let elsewhere = Endpoint::Addresses(["127.0.0.9:8".parse().unwrap()].into());
        assert_eq!(route.endpoint("a", 80).unwrap(), elsewhere);
        let asked =
            |endpoint| matches!(endpoint, Endpoint::Name { host, port: 81, .. } if &*host == "a");
        assert!(asked(route.endpoint("a", 81).unwrap()));
    }
}
