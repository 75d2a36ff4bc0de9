//! Which product accepted the connections, where it names itself, and its lines of configuration.
//!
//! It is the product of `Via` or `Server` that the ledger has. Must not guess from anything else:
//! without one product that is known, advice names several.

use crate::Counts;

/// What a server does to connections that are still wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerLimit {
    /// It ends each after one response.
    EveryResponse,
    /// It ends them after a number of requests.
    Requests,
    /// It ends them when they are idle.
    Idle,
    /// It ends them when its process ends.
    Drain,
}

/// A product, and the lines of its configuration that keep connections, or end them in good order;
/// absent where it has none.
#[derive(Debug, PartialEq, Eq)]
pub struct Server {
    name: &'static str,
    /// Beginnings of its product, in lower case.
    products: &'static [&'static str],
    every_response: Option<&'static str>,
    requests: Option<&'static str>,
    idle: Option<&'static str>,
    drain: Option<&'static str>,
}

/// Later rows are more general.
static SERVERS: [Server; 19] = [
    Server {
        name: "nginx",
        products: &["nginx", "openresty", "tengine"],
        every_response: Some(
            "`keepalive_timeout 75s;` (0 switches keep-alive off) and `keepalive_requests 1000;` (1 ends each connection with its first response)",
        ),
        requests: Some("`keepalive_requests 100000;` (1,000 by default, 100 before 1.19.10)"),
        idle: Some("`keepalive_timeout 75s;`, the default, or more"),
        drain: Some(
            "end it by SIGQUIT (`STOPSIGNAL SIGQUIT`, `KillSignal=SIGQUIT`): SIGTERM is its fast shutdown",
        ),
    },
    // Tomcat up to 8.0, before Apache
    Server {
        name: "Tomcat",
        products: &["apache-coyote", "apache tomcat"],
        every_response: Some(
            "`maxKeepAliveRequests=\"-1\"` on the Connector (1 switches keep-alive off)",
        ),
        requests: Some("`maxKeepAliveRequests=\"-1\"` on the Connector (100 by default)"),
        idle: Some(
            "`keepAliveTimeout=\"75000\"` on the Connector (`connectionTimeout` by default)",
        ),
        drain: None,
    },
    Server {
        name: "Apache",
        products: &["apache"],
        every_response: Some("`KeepAlive On`"),
        requests: Some("`MaxKeepAliveRequests 0` (100 by default)"),
        idle: Some("`KeepAliveTimeout 75` (5 s by default)"),
        drain: Some("end it by SIGWINCH (`apachectl graceful-stop`): SIGTERM stops it at once"),
    },
    Server {
        name: "lighttpd",
        products: &["lighttpd"],
        every_response: Some("`server.max-keep-alive-requests = 1000` (0 switches keep-alive off)"),
        requests: Some("`server.max-keep-alive-requests = 100000`"),
        idle: Some("`server.max-keep-alive-idle = 75` (5 s by default)"),
        drain: None,
    },
    Server {
        name: "LiteSpeed",
        products: &["litespeed", "openlitespeed"],
        every_response: Some("`maxKeepAliveReq 10000`"),
        requests: Some("`maxKeepAliveReq 10000`"),
        idle: Some("`keepAliveTimeout 75`"),
        drain: None,
    },
    Server {
        name: "Caddy",
        products: &["caddy"],
        every_response: None,
        requests: None,
        idle: Some("`servers { timeouts { idle 5m } }` in the global options (5 min by default)"),
        drain: Some("`shutdown_delay 10s` and `grace_period 20s` in the global options"),
    },
    Server {
        name: "Envoy",
        products: &["envoy", "istio-envoy"],
        every_response: Some(
            "`max_requests_per_connection` in `common_http_protocol_options`: leave it out, or raise it",
        ),
        requests: Some(
            "`max_requests_per_connection` in `common_http_protocol_options`: leave it out, or raise it",
        ),
        idle: Some("`idle_timeout` in `common_http_protocol_options` (1 h by default)"),
        drain: None,
    },
    Server {
        name: "Varnish",
        products: &["varnish"],
        every_response: None,
        requests: None,
        idle: Some("`-p timeout_idle=75` (5 s by default)"),
        drain: None,
    },
    Server {
        name: "AWS load balancer",
        products: &["awselb"],
        every_response: None,
        requests: None,
        idle: Some("the attribute `idle_timeout.timeout_seconds` (60 s by default)"),
        drain: None,
    },
    Server {
        name: "gunicorn",
        products: &["gunicorn"],
        every_response: Some(
            "`--worker-class gthread --keep-alive 75` (sync workers close after each response)",
        ),
        requests: Some("`--max-requests` restarts the worker: raise it"),
        idle: Some("`--keep-alive 75` (2 s by default)"),
        drain: Some("`--graceful-timeout 30`, the default, or more"),
    },
    Server {
        name: "uvicorn",
        products: &["uvicorn"],
        every_response: Some("`--timeout-keep-alive 75`"),
        requests: Some("`--limit-max-requests` ends the worker: raise it"),
        idle: Some("`--timeout-keep-alive 75` (5 s by default)"),
        drain: Some("`--timeout-graceful-shutdown 25` (no limit by default)"),
    },
    Server {
        name: "hypercorn",
        products: &["hypercorn"],
        every_response: None,
        requests: Some("`keep_alive_max_requests = 100000` (1,000 by default)"),
        idle: Some("`keep_alive_timeout = 75` (5 s by default)"),
        drain: None,
    },
    Server {
        name: "aiohttp",
        products: &["aiohttp"],
        every_response: None,
        requests: None,
        idle: Some("`web.run_app(app, keepalive_timeout=75)`"),
        drain: None,
    },
    Server {
        name: "Werkzeug",
        products: &["werkzeug"],
        every_response: Some(
            "a development server: `WSGIRequestHandler.protocol_version = \"HTTP/1.1\"`, or a server for production",
        ),
        requests: None,
        idle: None,
        drain: None,
    },
    Server {
        name: "Python http.server",
        products: &["basehttp", "simplehttp", "wsgiserver"],
        every_response: Some("`protocol_version = \"HTTP/1.1\"` on the handler class"),
        requests: None,
        idle: None,
        drain: None,
    },
    Server {
        name: "Jetty",
        products: &["jetty"],
        every_response: None,
        requests: None,
        idle: Some("`jetty.http.idleTimeout=75000` (30 s by default)"),
        drain: None,
    },
    Server {
        name: "IIS",
        products: &["microsoft-iis", "microsoft-httpapi"],
        every_response: Some("`<httpProtocol allowKeepAlive=\"true\" />`"),
        requests: None,
        idle: Some("`connectionTimeout` in `<limits>` of the site (2 min by default)"),
        drain: None,
    },
    Server {
        name: "Kestrel",
        products: &["kestrel"],
        every_response: None,
        requests: None,
        idle: Some("`options.Limits.KeepAliveTimeout` (130 s by default)"),
        drain: None,
    },
    Server {
        name: "Node",
        products: &["node"],
        every_response: Some("`server.maxRequestsPerSocket = 0`"),
        requests: Some("`server.maxRequestsPerSocket = 0`, the default: no limit"),
        idle: Some("`server.keepAliveTimeout = 75_000` (5 s by default)"),
        drain: Some(
            "`server.close()` in a handler of the signal, and `setTimeout(() => server.closeAllConnections(), 25_000)`",
        ),
    },
];

impl Server {
    /// The server of a destination whose connections name one product that is known.
    pub fn recognise(counts: &Counts) -> Option<&'static Server> {
        let mut named = counts.servers.keys().map(|product| Server::named(product));
        let first = named.next()??;
        named.all(|other| other == Some(first)).then_some(first)
    }

    /// The server that calls itself so.
    pub fn named(product: &str) -> Option<&'static Server> {
        let product = product.to_ascii_lowercase();
        let is_it = |server: &&Server| server.products.iter().any(|one| product.starts_with(one));
        SERVERS.iter().find(is_it)
    }

    /// Its line of configuration against that limit, after its name.
    pub fn advice(&self, limit: ServerLimit) -> Option<String> {
        let line = match limit {
            ServerLimit::EveryResponse => self.every_response,
            ServerLimit::Requests => self.requests,
            ServerLimit::Idle => self.idle,
            ServerLimit::Drain => self.drain,
        }?;
        Some(format!("{}: {line}", self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ServerLimit::{EveryResponse, Idle, Requests};

    fn counts(products: &[&str]) -> Counts {
        Counts {
            servers: products.iter().map(|name| ((*name).into(), 1)).collect(),
            ..Counts::default()
        }
    }

    #[test]
    fn a_server_is_recognised_where_all_its_names_are_of_one_product() {
        let of = |products: &[&str]| Server::recognise(&counts(products)).map(|one| one.name);
        assert_eq!(of(&["nginx/1.22.1"]), Some("nginx"));
        assert_eq!(of(&["nginx", "openresty/1.25.3.1"]), Some("nginx"));
        assert_eq!(of(&["Apache-Coyote/1.1"]), Some("Tomcat"));
        assert_eq!(of(&["Apache/2.4.62"]), Some("Apache"));
        assert_eq!(
            of(&["nginx", "gunicorn"]),
            None,
            "which one ends them is unknown"
        );
        assert_eq!(of(&["nginx", "shop/1.0"]), None);
        assert_eq!(of(&["shop/1.0"]), None);
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn each_limit_has_its_own_line() {
        let nginx = Server::named("nginx").unwrap();
        let line = |limit| nginx.advice(limit).unwrap();
        assert!(line(Requests).starts_with("nginx: `keepalive_requests"));
        assert!(line(Idle).starts_with("nginx: `keepalive_timeout"));
        let caddy = Server::named("Caddy").unwrap();
        assert_eq!(caddy.advice(EveryResponse), None);
    }

    #[test]
    fn no_product_hides_a_later_one() {
        for server in &SERVERS {
            for product in server.products {
                assert_eq!(
                    Server::named(product).map(|one| one.name),
                    Some(server.name)
                );
            }
        }
    }
}
