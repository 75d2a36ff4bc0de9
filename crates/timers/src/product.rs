//! Products whose default idle limits are known, each with the document that states them. Must not
//! guess: a side without a documented default is unknown.

use crate::hop::{Idle, Place, Timer};
use std::num::ParseIntError;
use std::str::FromStr;
use std::time::Duration;

/// A product on the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the products")]
pub enum Product {
    Nginx,
    Haproxy,
    Apache,
    Caddy,
    Alb,
    GoogleCloud,
    Heroku,
    Envoy,
    Node,
    Go,
    Tomcat,
    Gunicorn,
    Uvicorn,
}

/// A version, by its numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version(Vec<u32>);

impl FromStr for Version {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Version, ParseIntError> {
        let numbers = text.split('.').map(str::parse);
        Ok(Version(numbers.collect::<Result<_, _>>()?))
    }
}

impl Version {
    /// Whether it is that one or later; `None` where its numbers do not decide it.
    pub(crate) fn is_from(&self, other: [u32; 3]) -> Option<bool> {
        let differs = self.0.iter().zip(other).find(|(own, other)| *own != other);
        match differs {
            Some((own, other)) => Some(*own > other),
            None => (self.0.len() >= other.len()).then_some(true),
        }
    }
}

/// What is documented of a product.
struct Row {
    product: Product,
    /// How it may be called in a chain.
    names: &'static [&'static str],
    /// Names, or ends of names, of its configuration files; empty if they are not supported.
    files: &'static [&'static str],
    accepts: Idle,
    keeps: Idle,
    source: &'static str,
}

const fn s(seconds: u64) -> Idle {
    Idle::After(Duration::from_secs(seconds))
}

const NOT_A_CLIENT: Idle = Idle::Unknown("it depends on the client library of the program");

#[rustfmt::skip] // a table is read by its rows
static ROWS: &[Row] = &[
    Row { product: Product::Nginx, names: &["nginx"], files: &["nginx.conf"], accepts: s(75), keeps: s(60), source: "nginx.org ngx_http_core_module and ngx_http_upstream_module, keepalive_timeout" },
    Row { product: Product::Haproxy, names: &["haproxy"], files: &["haproxy.cfg"], accepts: Idle::Unlimited, keeps: Idle::Unlimited, source: "HAProxy configuration manual, timeout http-keep-alive and pool-purge-delay" },
    Row { product: Product::Apache, names: &["apache", "apache2", "httpd"], files: &["apache2.conf", "httpd.conf"], accepts: s(5), keeps: Idle::Unlimited, source: "httpd.apache.org core KeepAliveTimeout, mod_proxy ttl" },
    Row { product: Product::Caddy, names: &["caddy"], files: &["Caddyfile"], accepts: s(300), keeps: s(120), source: "caddyserver.com global options timeouts idle, reverse_proxy keepalive" },
    Row { product: Product::Alb, names: &["alb"], files: &[], accepts: s(60), keeps: s(60), source: "AWS Application Load Balancer, idle_timeout.timeout_seconds" },
    Row { product: Product::GoogleCloud, names: &["gcp"], files: &[], accepts: s(610), keeps: s(600), source: "Google Cloud external Application Load Balancer, keepalive timeouts" },
    Row { product: Product::Heroku, names: &["heroku"], files: &[], accepts: s(90), keeps: s(90), source: "Heroku router 2.0, keepalives" },
    Row { product: Product::Envoy, names: &["envoy"], files: &[], accepts: s(3600), keeps: s(3600), source: "envoyproxy.io HttpProtocolOptions idle_timeout" },
    Row { product: Product::Node, names: &["node"], files: &[], accepts: s(5), keeps: NOT_A_CLIENT, source: "nodejs.org server.keepAliveTimeout" },
    Row { product: Product::Go, names: &["go"], files: &[], accepts: Idle::Unlimited, keeps: s(90), source: "pkg.go.dev net/http Server.IdleTimeout, DefaultTransport.IdleConnTimeout" },
    Row { product: Product::Tomcat, names: &["tomcat"], files: &[], accepts: s(20), keeps: NOT_A_CLIENT, source: "tomcat.apache.org HTTP connector keepAliveTimeout (connectionTimeout in server.xml)" },
    Row { product: Product::Gunicorn, names: &["gunicorn"], files: &[], accepts: s(2), keeps: NOT_A_CLIENT, source: "docs.gunicorn.org keepalive (threaded and async workers)" },
    Row { product: Product::Uvicorn, names: &["uvicorn"], files: &[], accepts: s(5), keeps: NOT_A_CLIENT, source: "uvicorn.dev --timeout-keep-alive" },
];

impl Product {
    fn row(self) -> &'static Row {
        let found = ROWS.iter().find(|row| row.product == self);
        found.expect("a test finds each product in the table")
    }

    /// The product of this name.
    pub fn named(name: &str) -> Option<Product> {
        let row = ROWS
            .iter()
            .find(|row| row.names.iter().any(|one| one.eq_ignore_ascii_case(name)))?;
        Some(row.product)
    }

    /// The product whose configuration is usually called so.
    pub fn of_file(name: &str) -> Option<Product> {
        let row = ROWS.iter().find(|row| row.files.contains(&name))?;
        Some(row.product)
    }

    /// All names, for messages.
    pub fn names() -> String {
        let names: Vec<&str> = ROWS.iter().map(|row| row.names[0]).collect();
        names.join(", ")
    }

    /// Its first name.
    pub fn name(self) -> &'static str {
        self.row().names[0]
    }

    /// All names of it.
    pub fn aliases(self) -> &'static [&'static str] {
        self.row().names
    }

    /// Whether its configuration files can be read here.
    pub fn has_files(self) -> bool {
        !self.row().files.is_empty()
    }

    /// Whether one setting rules both sides.
    pub(crate) fn has_one_limit(self) -> bool {
        matches!(self, Product::Alb | Product::Heroku)
    }

    /// The default limit of connections that it accepts.
    pub fn default_accepts(self) -> Timer {
        self.timer(self.row().accepts)
    }

    /// The default limit of connections that it opens.
    pub fn default_keeps(self) -> Timer {
        self.timer(self.row().keeps)
    }

    fn timer(self, idle: Idle) -> Timer {
        Timer::new(idle, Place::Default(self.row().source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_compared_by_its_numbers() {
        let is_from = |text: &str| text.parse::<Version>().unwrap().is_from([1, 29, 7]);
        assert_eq!(is_from("1.22"), Some(false));
        assert_eq!(is_from("1.29.6"), Some(false));
        assert_eq!(is_from("1.29.7"), Some(true));
        assert_eq!(is_from("1.30"), Some(true));
        assert_eq!(is_from("1.29"), None);
        assert_eq!(is_from("1"), None);
        assert!("1.x".parse::<Version>().is_err());
    }

    #[test]
    fn each_product_is_in_the_table_once() {
        for product in [
            Product::Nginx,
            Product::Haproxy,
            Product::Apache,
            Product::Caddy,
            Product::Alb,
            Product::GoogleCloud,
            Product::Heroku,
            Product::Envoy,
            Product::Node,
            Product::Go,
            Product::Tomcat,
            Product::Gunicorn,
            Product::Uvicorn,
        ] {
            assert_eq!(ROWS.iter().filter(|row| row.product == product).count(), 1);
            assert_eq!(Product::named(product.name()), Some(product));
            assert!(
                matches!(product.default_accepts().place, Place::Default(source) if !source.is_empty())
            );
        }
    }
}
