//! The origin of a connection and the target of an exchange, redacted by construction.

use crate::redact;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

kinds! {
    json
    /// The scheme of an origin.
    pub enum Scheme, as_str {
        /// HTTP without TLS.
        Http = "http",
        /// HTTP over TLS or QUIC.
        Https = "https",
        /// Bytes that are not known to be HTTP.
        Tcp = "tcp",
    }
}

impl Scheme {
    /// The default port, if the scheme has one.
    pub fn default_port(self) -> Option<u16> {
        match self {
            Scheme::Http => Some(80),
            Scheme::Https => Some(443),
            Scheme::Tcp => None,
        }
    }
}

/// Scheme, host and port (RFC 6454).
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct Origin {
    /// The scheme.
    pub scheme: Scheme,
    /// A name in lower case, or an address without brackets.
    pub host: Arc<str>,
    /// The port.
    pub port: u16,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (open, close) = if self.host.contains(':') {
            ("[", "]")
        } else {
            ("", "")
        };
        write!(f, "{}://{open}{}{close}", self.scheme.as_str(), self.host)?;
        if self.scheme.default_port() != Some(self.port) {
            write!(f, ":{}", self.port)?;
        }
        Ok(())
    }
}

/// A request method.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Method(Cow<'static, str>);

impl Method {
    /// GET.
    pub const GET: Method = Method(Cow::Borrowed("GET"));
    /// HEAD.
    pub const HEAD: Method = Method(Cow::Borrowed("HEAD"));
    /// POST.
    pub const POST: Method = Method(Cow::Borrowed("POST"));

    /// The method with this name; common ones do not allocate.
    pub fn new(name: &str) -> Method {
        Method(match name {
            "GET" => Cow::Borrowed("GET"),
            "HEAD" => Cow::Borrowed("HEAD"),
            "POST" => Cow::Borrowed("POST"),
            "PUT" => Cow::Borrowed("PUT"),
            "DELETE" => Cow::Borrowed("DELETE"),
            "OPTIONS" => Cow::Borrowed("OPTIONS"),
            "PATCH" => Cow::Borrowed("PATCH"),
            "CONNECT" => Cow::Borrowed("CONNECT"),
            other => Cow::Owned(other.to_owned()),
        })
    }

    /// Its name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether repeating it is safe by definition (RFC 9110 section 9.2.2).
    pub fn is_idempotent(&self) -> bool {
        matches!(
            self.as_str(),
            "GET" | "HEAD" | "PUT" | "DELETE" | "OPTIONS" | "TRACE"
        )
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The path of a request. It cannot hold a query string, a fragment or userinfo.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Target(Arc<str>);

impl Target {
    /// The path of a request target in any of the four forms of RFC 9112 section 3.2, without
    /// query, userinfo and parameters of segments.
    pub fn new(raw: &str) -> Target {
        let path = path_of(raw).split(['?', '#']).next().unwrap_or("");
        Target(redact::path(path).into())
    }

    /// The path, or the authority of a CONNECT.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Strips scheme and authority of an absolute-form target, and userinfo of an authority-form one.
fn path_of(raw: &str) -> &str {
    if raw.starts_with('/') || raw == "*" {
        return raw;
    }
    if let Some((_, rest)) = raw.split_once("://") {
        return match rest.find(['/', '?', '#']) {
            Some(at) if rest.as_bytes()[at] == b'/' => &rest[at..],
            _ => "/",
        };
    }
    let authority = raw.split(['/', '?', '#']).next().unwrap_or("");
    authority.rsplit('@').next().unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_drops_query_fragment_and_userinfo() {
        assert_eq!(Target::new("/a/b?token=secret#x").as_str(), "/a/b");
        assert_eq!(Target::new("/a;jsessionid=secret/b").as_str(), "/a;…/b");
        assert_eq!(Target::new("http://user:pw@host:1/p?q=1").as_str(), "/p");
        assert_eq!(Target::new("http://user:pw@host?q=1").as_str(), "/");
        assert_eq!(Target::new("user:pw@host:443").as_str(), "host:443");
        assert_eq!(Target::new("*").as_str(), "*");
    }

    #[test]
    fn an_origin_prints_as_in_a_url() {
        let origin = |scheme, host: &str, port| {
            Origin {
                scheme,
                host: host.into(),
                port,
            }
            .to_string()
        };
        assert_eq!(origin(Scheme::Https, "a.example", 443), "https://a.example");
        assert_eq!(origin(Scheme::Http, "::1", 8080), "http://[::1]:8080");
        assert_eq!(origin(Scheme::Tcp, "db", 5432), "tcp://db:5432");
    }
}
