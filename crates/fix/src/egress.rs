//! The configuration of a local proxy that keeps connections for a program that cannot: nginx or
//! HAProxy, for the destinations of a run. Tests run what this writes.
//!
//! A host has a pool of its own, and a request for another host is refused. Must not write a name
//! that is no host name: names come from ledgers.

use intact_ledger::{Origin, Scheme};
use std::fmt::Write;
use std::net::SocketAddr;

/// A proxy that a configuration is written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Egress {
    /// nginx 1.22 or later.
    Nginx,
    /// HAProxy 2.6 or later.
    Haproxy,
}

/// Why there is no configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EgressError {
    /// Only nginx and HAProxy are supported.
    #[error(
        "--pool-for writes a configuration of nginx or haproxy: intact fix nginx --pool-for DIR"
    )]
    Product,
    /// No destination.
    #[error("the ledger has no HTTP destination")]
    Nothing,
    /// A name that is no host name.
    #[error("{0:?} is no host name")]
    Host(String),
    /// Too many destinations of TLS, each of which has a port.
    #[error("{0} destinations of TLS do not fit above port {1}: listen at a lower one")]
    Ports(usize, u16),
}

/// The store of certificates of Debian, which the connections of a pool are checked against.
const AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// A destination with its port at the proxy.
struct Pool<'a> {
    name: String,
    origin: &'a Origin,
    /// `host:port`, as in the field `Host` and in the address.
    address: String,
    /// The `Host` field that a client sends: without a default port.
    host: String,
    listen: SocketAddr,
}

impl Pool<'_> {
    fn is_secure(&self) -> bool {
        self.origin.scheme == Scheme::Https
    }
}

impl Egress {
    /// The proxy of this name.
    ///
    /// # Errors
    /// If it is another product.
    pub fn named(name: &str) -> Result<Egress, EgressError> {
        match name.to_ascii_lowercase().as_str() {
            "nginx" => Ok(Egress::Nginx),
            "haproxy" => Ok(Egress::Haproxy),
            _ => Err(EgressError::Product),
        }
    }

    /// The configuration for these destinations. Plain HTTP is accepted at one address, of a
    /// program with that proxy; each destination of TLS at a port above it.
    ///
    /// # Errors
    /// If there is nothing to write, or a name is no host name.
    pub fn configuration(
        self,
        origins: &[Origin],
        listen: SocketAddr,
    ) -> Result<String, EgressError> {
        let mut pools: Vec<Pool<'_>> = Vec::new();
        let secure = origins.iter().filter(|one| one.scheme == Scheme::Https);
        let secure = secure.count();
        let ports = u16::try_from(secure).ok();
        if ports
            .and_then(|ports| listen.port().checked_add(ports))
            .is_none()
        {
            return Err(EgressError::Ports(secure, listen.port()));
        }
        let mut next = listen.port();
        for (nth, origin) in origins.iter().enumerate() {
            let is_letter = |one: char| one.is_ascii_alphanumeric() || ".-_:".contains(one);
            if origin.host.is_empty() || !origin.host.chars().all(is_letter) {
                return Err(EgressError::Host(origin.host.to_string()));
            }
            let host = match origin.host.contains(':') {
                true => format!("[{}]", origin.host),
                false => origin.host.to_string(),
            };
            let mut own = listen;
            if origin.scheme == Scheme::Https {
                next += 1;
                own.set_port(next);
            }
            let address = format!("{host}:{}", origin.port);
            pools.push(Pool {
                name: format!("pool_{}", nth + 1),
                origin,
                host: match origin.scheme.default_port() == Some(origin.port) {
                    true => host,
                    false => address.clone(),
                },
                address,
                listen: own,
            });
        }
        if pools.is_empty() {
            return Err(EgressError::Nothing);
        }
        let head = head(&pools, listen);
        Ok(match self {
            Egress::Nginx => head + &nginx(&pools, listen),
            Egress::Haproxy => head + &haproxy(&pools, listen),
        })
    }
}

/// How the program gets there, and what must not.
fn head(pools: &[Pool<'_>], listen: SocketAddr) -> String {
    let mut text = String::new();
    if pools.iter().any(|pool| !pool.is_secure()) {
        let _ = writeln!(text, "# Start the program with http_proxy=http://{listen}");
    }
    for pool in pools.iter().filter(|pool| pool.is_secure()) {
        let _ = writeln!(
            text,
            "# In its settings, write http://{} in place of {}",
            pool.listen, pool.origin
        );
    }
    text + "# Not for logins that are bound to a connection (NTLM, Negotiate): others would share them.\n\
        # Names are looked up when the proxy starts: reload it when an address changes.\n"
}

fn nginx(pools: &[Pool<'_>], listen: SocketAddr) -> String {
    let mut text = "events {}
http {
    access_log off;
    client_max_body_size 0;
    merge_slashes off;
    ignore_invalid_headers off;
    underscores_in_headers on;
    proxy_buffering off;
    proxy_request_buffering off;
    proxy_pass_header Server;
    proxy_pass_header Date;
    proxy_http_version 1.1;
    proxy_set_header Connection \"\";
"
    .to_owned();
    for pool in pools {
        let _ = write!(
            text,
            "    upstream {} {{
        server {};
        keepalive 32;
        keepalive_timeout 4s;  # below the limit of the server
    }}
",
            pool.name, pool.address
        );
    }
    let plain: Vec<&Pool<'_>> = pools.iter().filter(|pool| !pool.is_secure()).collect();
    if !plain.is_empty() {
        text.push_str("    map $http_host $pool {\n");
        for pool in &plain {
            let _ = writeln!(text, "        {} {};", pool.host, pool.name);
        }
        let _ = write!(
            text,
            "        default \"\";
    }}
    server {{
        listen {listen};
        location / {{
            if ($pool = \"\") {{
                return 421;
            }}
            proxy_pass http://$pool;
            proxy_set_header Connection \"\";
            proxy_set_header Host $http_host;
        }}
    }}
"
        );
    }
    for pool in pools.iter().filter(|pool| pool.is_secure()) {
        let _ = write!(
            text,
            "    server {{
        listen {};
        location / {{
            proxy_pass https://{};
            proxy_set_header Connection \"\";
            proxy_set_header Host {};
            proxy_ssl_server_name on;
            proxy_ssl_name {};
            proxy_ssl_verify on;
            proxy_ssl_verify_depth 5;
            proxy_ssl_trusted_certificate {AUTHORITIES};
        }}
    }}
",
            pool.listen, pool.name, pool.host, pool.origin.host
        );
    }
    text + "}\n"
}

fn haproxy(pools: &[Pool<'_>], listen: SocketAddr) -> String {
    let mut text = "defaults
    mode http
    timeout connect 10s
    timeout client 1h
    timeout server 1h
"
    .to_owned();
    let plain: Vec<&Pool<'_>> = pools.iter().filter(|pool| !pool.is_secure()).collect();
    if !plain.is_empty() {
        let hosts: Vec<&str> = plain.iter().map(|pool| pool.host.as_str()).collect();
        let _ = write!(
            text,
            "frontend plain
    bind {listen}
    http-request deny deny_status 421 unless {{ req.hdr(host) -i {} }}
    http-request set-uri %[pathq]
",
            hosts.join(" ")
        );
        for pool in &plain {
            let (name, host) = (&pool.name, &pool.host);
            let _ = writeln!(
                text,
                "    use_backend {name} if {{ req.hdr(host) -i {host} }}"
            );
        }
    }
    for pool in pools {
        let (name, address) = (&pool.name, &pool.address);
        let tls = match pool.is_secure() {
            false => String::new(),
            true => {
                let (own, host) = (pool.listen, &pool.origin.host);
                let _ = write!(
                    text,
                    "frontend {name}_tls\n    bind {own}\n    http-request set-header Host {}\n    default_backend {name}\n",
                    pool.host
                );
                format!(
                    " ssl verify required ca-file {AUTHORITIES} verifyhost {host} sni str({host})"
                )
            }
        };
        let _ = write!(
            text,
            "backend {name}
    http-reuse always
    server origin {address} pool-purge-delay 2s{tls}
"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(scheme: Scheme, host: &str, port: u16) -> Origin {
        Origin {
            scheme,
            host: host.into(),
            port,
        }
    }

    const LISTEN: ([u8; 4], u16) = ([127, 0, 0, 1], 8081);

    #[test]
    fn each_destination_has_a_pool_and_tls_a_port() {
        let origins = [
            origin(Scheme::Http, "a.example", 80),
            origin(Scheme::Https, "b.example", 443),
            origin(Scheme::Https, "::1", 8443),
        ];
        for egress in [Egress::Nginx, Egress::Haproxy] {
            let text = egress.configuration(&origins, LISTEN.into()).unwrap();
            for part in [
                "a.example:80",
                "b.example:443",
                "[::1]:8443",
                "pool_3",
                ":8083",
            ] {
                assert!(text.contains(part), "{part}: {text}");
            }
        }
    }

    #[test]
    fn a_name_that_is_no_host_name_is_not_written() {
        for host in ["a; }", "a b", "", "a\nb", "a\"", "a{"] {
            let origins = [origin(Scheme::Http, host, 80)];
            let done = Egress::Nginx.configuration(&origins, LISTEN.into());
            assert_eq!(done, Err(EgressError::Host(host.to_owned())));
        }
        let none = Egress::Nginx.configuration(&[], LISTEN.into());
        assert_eq!(none, Err(EgressError::Nothing));
        let tls = [origin(Scheme::Https, "a", 443)];
        let high = ([127, 0, 0, 1], u16::MAX).into();
        let done = Egress::Haproxy.configuration(&tls, high);
        assert_eq!(done, Err(EgressError::Ports(1, u16::MAX)));
    }
}
