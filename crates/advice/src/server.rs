//! Servers: the product in `Server` or `Via` by which each is recognised, and its line of
//! configuration against each limit.

use crate::table;
use serde::Deserialize;
use std::collections::BTreeMap;

/// What a server does to connections that are still wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServerLimit {
    /// It ends each after one response.
    EveryResponse,
    /// It ends them after a number of requests.
    Requests,
    /// It ends them at an age.
    Age,
    /// It ends them when they are idle.
    Idle,
    /// It ends them when its process ends.
    Drain,
}

impl ServerLimit {
    /// What its line reaches, as the object of *to*.
    pub fn purpose(self) -> &'static str {
        match self {
            ServerLimit::EveryResponse => "keep connections",
            ServerLimit::Requests => "keep them for more requests",
            ServerLimit::Age => "keep them to a higher age",
            ServerLimit::Idle => "keep idle ones for longer",
            ServerLimit::Drain => "end in good order",
        }
    }
}

/// A product, and the lines of its configuration that keep connections, or end them in good order;
/// absent where it has none.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    name: String,
    /// Beginnings of its product, in lower case.
    products: Vec<String>,
    limit: BTreeMap<ServerLimit, String>,
}

impl Server {
    /// The server whose products these are, if all are of one that is known.
    pub fn recognise<'a>(products: impl IntoIterator<Item = &'a str>) -> Option<&'static Server> {
        let mut named = products.into_iter().map(Server::named);
        let first = named.next()??;
        let is_first = |other: Option<&Server>| other.is_some_and(|one| one.name == first.name);
        named.all(is_first).then_some(first)
    }

    /// The server of this name.
    pub fn of_name(name: &str) -> Option<&'static Server> {
        table().server.iter().find(|one| one.name == name)
    }

    /// Its lines of configuration, each with the limit that it is against.
    pub fn settings(&self) -> impl Iterator<Item = (ServerLimit, &str)> {
        let limits = self.limit.iter();
        limits.map(|(&limit, line)| (limit, line.as_str()))
    }

    /// The server that calls itself so. Later rows of the file are more general.
    fn named(product: &str) -> Option<&'static Server> {
        let product = product.to_ascii_lowercase();
        let is_it = |server: &&Server| server.products.iter().any(|one| product.starts_with(one));
        table().server.iter().find(is_it)
    }

    /// Its line of configuration against that limit, after its name.
    pub fn advice(&self, limit: ServerLimit) -> Option<String> {
        let line = self.limit.get(&limit)?;
        Some(format!("{}: {line}", self.name))
    }
}

/// The line against that limit of the server, where it is recognised and has one, else the lines
/// of several products.
pub fn server_line(server: Option<&Server>, limit: ServerLimit) -> String {
    let own = server.and_then(|server| server.advice(limit));
    let several = || table().any_server.get(&limit).cloned();
    own.or_else(several).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ServerLimit::{EveryResponse, Idle, Requests};

    #[test]
    fn a_server_is_recognised_where_all_its_names_are_of_one_product() {
        let of = |products: &[&str]| {
            let server = Server::recognise(products.iter().copied());
            server.map(|one| &*one.name)
        };
        assert_eq!(of(&["nginx/1.22.1"]), Some("nginx"));
        assert_eq!(of(&["nginx", "openresty/1.25.3.1"]), Some("nginx"));
        assert_eq!(of(&["Apache-Coyote/1.1"]), Some("Tomcat"));
        assert_eq!(of(&["Apache/2.4.62"]), Some("Apache"));
        // which one ends the connections is unknown
        assert_eq!(of(&["nginx", "gunicorn"]), None);
        assert_eq!(of(&["nginx", "shop/1.0"]), None);
        assert_eq!(of(&["shop/1.0"]), None);
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn each_limit_has_its_own_line() {
        let nginx = Server::named("nginx");
        assert!(server_line(nginx, Requests).starts_with("nginx: `keepalive_requests"));
        assert!(server_line(nginx, Idle).starts_with("nginx: `keepalive_timeout"));
        let caddy = Server::named("Caddy").unwrap();
        assert_eq!(caddy.advice(EveryResponse), None);
        assert!(server_line(Some(caddy), EveryResponse).contains("Apache"));
    }

    #[test]
    fn no_product_hides_a_later_one() {
        for server in &table().server {
            for product in &server.products {
                let found = Server::named(product).map(|one| &one.name);
                assert_eq!(found, Some(&server.name), "{product}");
            }
        }
    }
}
