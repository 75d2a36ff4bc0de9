//! The system's name servers, from `/etc/resolv.conf` (resolv.conf(5)). Reads only the lines of
//! servers and the options `timeout` and `attempts`.

use super::Patience;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Where the configuration is.
const PATH: &str = "/etc/resolv.conf";
/// How many servers glibc asks; more are ignored.
const MOST_SERVERS: usize = 3;
/// The longest timeout and the most tries that glibc accepts.
const LONGEST_S: u64 = 30;
const MOST_TRIES: u32 = 5;

/// The name servers of a system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameServers {
    /// In the order in which they are asked; may be empty.
    pub servers: Vec<SocketAddr>,
    /// How long each is asked, and how often all of them are.
    pub patience: Patience,
}

impl NameServers {
    /// Those of this system; an error where its configuration cannot be read.
    pub fn of_system() -> std::io::Result<NameServers> {
        std::fs::read(PATH).map(|bytes| NameServers::parse(&bytes))
    }

    /// Reads a resolv.conf. Its comments need not be UTF-8.
    pub fn parse(bytes: &[u8]) -> NameServers {
        let text = String::from_utf8_lossy(bytes);
        let mut found = NameServers {
            servers: Vec::new(),
            patience: Patience {
                timeout: Duration::from_secs(5),
                tries: 2,
            },
        };
        for line in text.lines() {
            let mut words = line.split_whitespace();
            match words.next() {
                Some("nameserver") if found.servers.len() < MOST_SERVERS => {
                    let address = words.next().and_then(|word| word.parse::<IpAddr>().ok());
                    let server = address.map(|ip| SocketAddr::new(ip, intact_wire::dns::PORT));
                    found.servers.extend(server);
                }
                Some("options") => words.for_each(|word| found.option(word)),
                _ => {}
            }
        }
        found
    }

    fn option(&mut self, word: &str) {
        let Some((name, value)) = word.split_once(':') else {
            return;
        };
        match (name, value.parse::<u32>()) {
            ("timeout", Ok(seconds)) => {
                self.patience.timeout = Duration::from_secs(u64::from(seconds).clamp(1, LONGEST_S));
            }
            ("attempts", Ok(tries)) => self.patience.tries = tries.clamp(1, MOST_TRIES),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_and_patience_are_read_and_the_rest_is_ignored() {
        let text = "# nameserver 192.0.2.9\nsearch x\nnameserver 192.0.2.1\nnameserver\t::1\nnameserver x\noptions ndots:5 timeout:1 attempts:9\n";
        let found = NameServers::parse(text.as_bytes());
        let servers = ["192.0.2.1:53", "[::1]:53"].map(|one| one.parse().unwrap());
        assert_eq!(found.servers, servers);
        let patience = (found.patience.timeout.as_secs(), found.patience.tries);
        assert_eq!(patience, (1, 5));
        let none = NameServers::parse(b"options x\n");
        assert_eq!(none.servers, []);
        assert_eq!(
            (none.patience.timeout.as_secs(), none.patience.tries),
            (5, 2)
        );
    }

    /// What glibc accepts: at most three servers, each named in the text, and patience within its
    /// bounds.
    fn is_within_bounds(found: &NameServers, bytes: &[u8]) -> bool {
        let text = String::from_utf8_lossy(bytes);
        let mut words = text.split_whitespace();
        let is_named = |server: &SocketAddr| {
            let words = words.by_ref();
            server.port() == 53 && words.any(|word| word.parse() == Ok(server.ip()))
        };
        found.servers.len() <= MOST_SERVERS
            && found.servers.iter().all(is_named)
            && (1..=LONGEST_S).contains(&found.patience.timeout.as_secs())
            && (1..=MOST_TRIES).contains(&found.patience.tries)
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_give_servers_that_they_name_and_patience_within_bounds(
            bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..300),
            lines in proptest::collection::vec(
                "(nameserver|options|search|domain|#|;| )( |\\t|\u{85})(192\\.0\\.2\\.[0-9]{1,3}|::[0-9a-f]{0,5}|fe80::1%eth0|(timeout|attempts|ndots):-?[0-9]{0,12}|.{0,12}){0,3}",
                0..12,
            ),
        ) {
            let text = lines.join("\n");
            let mixed = [text.as_bytes(), &bytes, b"\n", text.as_bytes()].concat();
            for input in [text.as_bytes(), &bytes, &mixed] {
                let found = NameServers::parse(input);
                proptest::prop_assert!(is_within_bounds(&found, input), "{:?}", found);
            }
            // a comment in another encoding changes nothing
            let commented = [b"# \xe9\xff nameserver 192.0.2.77\n".as_slice(), text.as_bytes()].concat();
            proptest::prop_assert_eq!(NameServers::parse(&commented), NameServers::parse(text.as_bytes()));
        }
    }
}
