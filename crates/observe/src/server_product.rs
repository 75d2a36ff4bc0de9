//! The product that a server names in `Server`, or the last proxy before the client in `Via`.
//! Comments contain hosts, modules and builds, and are not stored.

use crate::user_agent::product;
use intact_ledger::Origin;
use intact_wire::exchange::Response;
use std::collections::HashSet;
use std::sync::Arc;

/// Limit of remembered origins and products.
const MOST: usize = 4096;

/// The product of the server or proxy at the other end of the connection. The last `Via` names it
/// (RFC 9110 section 7.6.3), or `Server` if there is none (section 10.2.4).
pub fn server_product(server: Option<&str>, via: Option<&str>) -> Option<Arc<str>> {
    match via.and_then(last_proxy) {
        Some(proxy) => product(proxy),
        None => {
            let server = server?;
            // Python's own servers name the language first
            let named = server
                .split(' ')
                .find(|word| !word.is_empty() && !word.starts_with("Python/"));
            product(named.unwrap_or(server))
        }
    }
}

/// The last proxy in a `Via`: the product in its comment, else its pseudonym.
fn last_proxy(via: &str) -> Option<&str> {
    let via = via.trim();
    let (entry, comment) = match via.strip_suffix(')').and_then(|rest| rest.rsplit_once('(')) {
        Some((entry, comment)) => (entry, Some(comment)),
        None => (via, None),
    };
    let entry = entry.rsplit(',').next()?;
    // a version of the protocol, then the recipient
    let name = entry.split_ascii_whitespace().nth(1)?;
    Some(comment.filter(|text| !text.is_empty()).unwrap_or(name))
}

/// The product of an observed response.
pub(crate) fn of_response(response: &Response) -> Option<Arc<str>> {
    let [server, via] = [&response.server, &response.via].map(|field| {
        field
            .as_deref()
            .and_then(|field| str::from_utf8(field).ok())
    });
    server_product(server, via)
}

/// The products that the connections of a run have named. For each origin and product, one
/// connection has it in its row.
#[derive(Debug, Default)]
pub struct KnownServers {
    known: HashSet<(Option<Origin>, Arc<str>)>,
}

impl KnownServers {
    /// Whether no connection to this origin has named the product yet.
    pub fn is_new(&mut self, origin: Option<&Origin>, product: &Arc<str>) -> bool {
        self.known.len() < MOST && self.known.insert((origin.cloned(), product.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_its_product_and_a_proxy_before_it_takes_precedence() {
        let of = |server: &str, via: &str| {
            let via = (!via.is_empty()).then_some(via);
            let product = server_product(Some(server), via);
            product.map(|name| name.to_string()).unwrap_or_default()
        };
        assert_eq!(of("nginx/1.22.1", ""), "nginx/1.22.1");
        assert_eq!(of("Apache/2.4.62 (Debian) OpenSSL/3", ""), "Apache/2.4.62");
        assert_eq!(of("Jetty(9.4.z-SNAPSHOT)", ""), "Jetty");
        assert_eq!(of("Python/3.11 aiohttp/3.9.1", ""), "aiohttp/3.9.1");
        assert_eq!(of("BaseHTTP/0.6 Python/3.11.2", ""), "BaseHTTP/0.6");
        assert_eq!(of("nginx", "1.1 varnish (Varnish/7.1)"), "Varnish/7.1");
        assert_eq!(of("nginx", "1.1 a.internal, 1.1 google"), "google");
        assert_eq!(of("nginx", "2 Caddy"), "Caddy");
        assert_eq!(of("", ""), "");
        assert_eq!(of("\u{1b}[31m", ""), "");
    }

    #[test]
    fn a_long_product_is_cut() {
        let long = "x".repeat(10_000);
        assert_eq!(server_product(Some(&long), None).unwrap().len(), 64);
    }

    #[test]
    fn an_origin_has_each_product_once() {
        let mut servers = KnownServers::default();
        let nginx: Arc<str> = "nginx".into();
        assert!(servers.is_new(None, &nginx));
        assert!(!servers.is_new(None, &nginx));
        assert!(servers.is_new(None, &"envoy".into()));
    }
}
