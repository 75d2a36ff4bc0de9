//! A stub resolver for one client. It queries the name servers for each connection, or caches each
//! answer for its TTL.
//!
//! The caller passes the time. An answer enters the cache when the caller takes it, so connections
//! that open before send their own query. Failures are not cached.

use super::{Answer, Family, NameServers, Patience, QueryError, ask};
use intact_ledger::Nanos;
use intact_wire::dns;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::{Mutex, PoisonError};

/// Nanoseconds in a second of a TTL.
const SECOND: u64 = 1_000_000_000;

/// A resolver, with a cache of its own or without one.
#[derive(Debug)]
pub struct StubResolver {
    servers: NameServers,
    cache: Option<Mutex<Cache>>,
}

/// The result of asking.
#[derive(Debug)]
pub(crate) struct StubAnswer {
    /// The addresses to try in turn, or the error of the server that was asked last.
    pub(crate) addresses: Result<Vec<IpAddr>, String>,
    /// How long they are valid, in seconds.
    pub(crate) ttl_s: Option<u32>,
    /// The server that answered, or was asked last.
    pub(crate) server: Option<SocketAddr>,
}

impl StubResolver {
    /// A resolver that asks each time.
    pub fn asking(servers: NameServers) -> StubResolver {
        StubResolver {
            servers,
            cache: None,
        }
    }

    /// A resolver that keeps answers for their TTL.
    pub fn caching(servers: NameServers) -> StubResolver {
        StubResolver {
            cache: Some(Mutex::default()),
            ..StubResolver::asking(servers)
        }
    }

    /// The addresses of a name that were kept and are valid at `now`.
    pub(crate) fn kept(&self, host: &str, family: Family, now: Nanos) -> Option<Vec<IpAddr>> {
        let cache = self.cache.as_ref()?;
        let cache = cache.lock().unwrap_or_else(PoisonError::into_inner);
        let (addresses, until) = cache.get(&(host.to_owned(), family))?;
        (now < *until).then(|| addresses.clone())
    }

    /// Keeps the addresses of a name for their TTL, if there is a cache.
    pub(crate) fn keep(&self, host: &str, family: Family, addresses: &[IpAddr], until: Nanos) {
        if let Some(cache) = &self.cache {
            let mut cache = cache.lock().unwrap_or_else(PoisonError::into_inner);
            let key = (host.to_owned(), family);
            cache.insert(key, (addresses.to_vec(), until));
        }
    }

    /// When addresses of this TTL expire.
    pub(crate) fn expiry(ttl_s: u32, now: Nanos) -> Nanos {
        now.after(u64::from(ttl_s) * SECOND)
    }

    /// Asks the servers in turn, as often as their configuration says. Blocks.
    pub(crate) fn ask(&self, host: &str, family: Family) -> StubAnswer {
        let mut last = StubAnswer {
            addresses: Err("/etc/resolv.conf names no name server".to_owned()),
            ttl_s: None,
            server: None,
        };
        let once = Patience {
            tries: 1,
            ..self.servers.patience
        };
        for _ in 0..self.servers.patience.tries {
            for &server in &self.servers.servers {
                let answers = match family {
                    Family::V4 => ask(server, host, [false], once).to_vec(),
                    Family::V6 => ask(server, host, [true], once).to_vec(),
                    Family::Any => ask(server, host, [true, false], once).to_vec(),
                };
                let (joined, is_final) = join(answers);
                last = StubAnswer {
                    server: Some(server),
                    ..joined
                };
                if is_final {
                    return last;
                }
            }
        }
        last
    }
}

/// Merges the answers for both families. Also returns whether they are final, so that no other
/// server has to be asked.
fn join(answers: Vec<Answer>) -> (StubAnswer, bool) {
    let mut found = StubAnswer {
        addresses: Ok(Vec::new()),
        ttl_s: None,
        server: None,
    };
    let (mut addresses, mut errors) = (Vec::new(), Vec::new());
    for answer in answers {
        match answer {
            Ok(answer) => {
                let ttl = answer.ttl_s.into_iter().chain(found.ttl_s).min();
                found.ttl_s = ttl;
                addresses.extend(answer.addresses);
            }
            Err(error) => errors.push(error),
        }
    }
    if !addresses.is_empty() {
        // getaddrinfo has those last that no route leads to (RFC 6724 section 6, rule 1)
        addresses.sort_by_key(|address| address.is_ipv6() && !has_route(*address));
        found.addresses = Ok(addresses);
        return (found, true);
    }
    let is_absent = |error: &QueryError| *error == QueryError::Code(dns::NXDOMAIN);
    let absent = errors.iter().find(|error| is_absent(error));
    match absent.or(errors.first()) {
        Some(error) => {
            let is_final = is_absent(error) || matches!(error, QueryError::Name);
            found.addresses = Err(name_of(error));
            (found, is_final)
        }
        None => {
            found.addresses = Err("the name has no address of that family".to_owned());
            (found, true)
        }
    }
}

/// The error as ledgers have it: the name of a code, or a message.
fn name_of(error: &QueryError) -> String {
    match error {
        QueryError::Code(code) => dns::code_name(*code).unwrap_or_default().to_owned(),
        QueryError::NoAnswer => "no answer".to_owned(),
        QueryError::Truncated => format!("{error}; --dns system asks for it over TCP"),
        other => other.to_string(),
    }
}

/// Whether the kernel knows how to reach an address. Sends nothing.
fn has_route(address: IpAddr) -> bool {
    let socket = UdpSocket::bind((std::net::Ipv6Addr::UNSPECIFIED, 0));
    socket.is_ok_and(|socket| socket.connect((address, 9)).is_ok())
}

/// The addresses of names, and when they expire.
type Cache = BTreeMap<(String, Family), (Vec<IpAddr>, Nanos)>;

#[cfg(test)]
mod tests {
    use super::*;
    use intact_ledger::server_profile::NameAnswer;
    use std::net::Ipv4Addr;
    use std::time::Duration;

    fn servers(servers: Vec<SocketAddr>) -> NameServers {
        NameServers {
            servers,
            patience: Patience {
                timeout: Duration::from_millis(20),
                tries: 2,
            },
        }
    }

    fn found(address: &str, ttl_s: u32) -> Answer {
        Ok(NameAnswer {
            addresses: vec![address.parse().unwrap()],
            ttl_s: Some(ttl_s),
            ..NameAnswer::default()
        })
    }

    #[test]
    fn an_answer_is_kept_for_its_ttl_and_only_with_a_cache() {
        let address = [IpAddr::from(Ipv4Addr::LOCALHOST)];
        let now = Nanos(5);
        let until = StubResolver::expiry(2, now);
        for (resolver, is_kept) in [
            (StubResolver::caching(servers(vec![])), true),
            (StubResolver::asking(servers(vec![])), false),
        ] {
            resolver.keep("a.test", Family::Any, &address, until);
            let kept = |now| resolver.kept("a.test", Family::Any, now).is_some();
            assert_eq!(kept(now), is_kept);
            assert_eq!(kept(Nanos(2 * SECOND + 4)), is_kept);
            assert!(!kept(Nanos(2 * SECOND + 5)));
            assert_eq!(resolver.kept("a.test", Family::V4, now), None);
            assert_eq!(resolver.kept("b.test", Family::Any, now), None);
        }
    }

    #[test]
    fn the_families_are_joined_and_the_shorter_ttl_holds() {
        let (joined, is_final) = join(vec![found("::1", 60), found("127.0.0.1", 7)]);
        assert_eq!(
            (joined.addresses.unwrap().len(), joined.ttl_s),
            (2, Some(7))
        );
        assert!(is_final);
        // one family failed: the other is used, as getaddrinfo does
        let servfail = || Err(QueryError::Code(dns::SERVFAIL));
        let (joined, is_final) = join(vec![servfail(), found("127.0.0.1", 7)]);
        assert!(joined.addresses.is_ok() && is_final);
        for (answers, error, wanted) in [
            (vec![servfail(), servfail()], "SERVFAIL", false),
            (vec![Err(QueryError::NoAnswer)], "no answer", false),
            (
                vec![servfail(), Err(QueryError::Code(dns::NXDOMAIN))],
                "NXDOMAIN",
                true,
            ),
        ] {
            let (joined, is_final) = join(answers);
            assert_eq!(
                (joined.addresses.unwrap_err().as_str(), is_final),
                (error, wanted)
            );
        }
    }

    #[test]
    fn a_server_that_does_not_answer_is_asked_again_and_none_is_an_error() {
        let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
        let resolver = StubResolver::asking(servers(vec![silent.local_addr().unwrap()]));
        let answer = resolver.ask("a.test", Family::V4);
        assert_eq!(answer.addresses.unwrap_err(), "no answer");
        silent.set_nonblocking(true).unwrap();
        let mut buffer = [0; 512];
        let mut queries = 0;
        while silent.recv(&mut buffer).is_ok() {
            queries += 1;
        }
        assert_eq!(queries, 2);
        let none = StubResolver::asking(servers(vec![])).ask("a.test", Family::Any);
        assert!(none.addresses.unwrap_err().contains("no name server"));
    }
}
