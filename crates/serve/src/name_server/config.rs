//! What the name server knows and how badly it answers: names, TTL, a rate limit, a delay,
//! failures. Opens no socket.

use crate::delay::Delay;
use crate::fault::Faults;
use crate::named_variants::{UnknownChoice, choices, find};
use intact_wire::dns;
use serde::{Deserialize, Serialize};
use std::net::{AddrParseError, IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::str::FromStr;

choices! {
    /// How a query to the name server fails.
    LookupFault, "failure of a lookup";
    Nxdomain "nxdomain" "there is no such name (getaddrinfo: EAI_NONAME, Node: ENOTFOUND)",
    Servfail "servfail" "the server could not do it (EAI_AGAIN)",
    Refused "refused" "the server does not want to (EAI_AGAIN)",
    Timeout "timeout" "no response (EAI_AGAIN, after the client's timeout)",
}

impl LookupFault {
    /// The response code; absent where there is no response.
    pub(super) fn code(self) -> Option<u8> {
        Some(match self {
            LookupFault::Nxdomain => dns::NXDOMAIN,
            LookupFault::Servfail => dns::SERVFAIL,
            LookupFault::Refused => dns::REFUSED,
            LookupFault::Timeout => return None,
        })
    }

    /// The error in a ledger's row, as an observer of the same traffic has it.
    pub(super) fn error(self) -> &'static str {
        self.code().and_then(dns::code_name).unwrap_or("no answer")
    }
}

/// Why an option of the name server could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameServerError {
    /// No failure has that name.
    #[error(transparent)]
    Unknown(#[from] UnknownChoice),
    /// Not a rate.
    #[error("{0:?} is no limit: write 20/s, or 20/s:nxdomain")]
    Rate(String),
    /// Not a name with its addresses.
    #[error("{0:?} is no name with addresses: write api.test=127.0.0.1, or more with commas")]
    Record(String),
    /// An address.
    #[error("{0:?}: {1}")]
    Address(String, AddrParseError),
}

/// A name and its addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameRecord {
    /// In lower case, without the final dot.
    name: String,
    addresses: Vec<IpAddr>,
}

impl FromStr for NameRecord {
    type Err = NameServerError;

    /// Reads `api.test=127.0.0.1,::1`.
    fn from_str(text: &str) -> Result<NameRecord, NameServerError> {
        let wrong = || NameServerError::Record(text.to_owned());
        let (name, addresses) = text.split_once('=').ok_or_else(wrong)?;
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        // what cannot be asked for would never be answered
        dns::query(0, &name, dns::A).ok_or_else(wrong)?;
        let address = |text: &str| {
            let parsed = text.parse();
            parsed.map_err(|error| NameServerError::Address(text.to_owned(), error))
        };
        Ok(NameRecord {
            name,
            addresses: addresses
                .split(',')
                .map(address)
                .collect::<Result<_, _>>()?,
        })
    }
}

/// How many queries a second are answered, and what happens to the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateLimit {
    /// Queries a second, and the most at a time.
    pub(super) per_second: NonZeroU32,
    pub(super) beyond: LookupFault,
}

impl FromStr for RateLimit {
    type Err = NameServerError;

    /// Reads `20/s` (no response beyond) or `20/s:nxdomain`.
    fn from_str(text: &str) -> Result<RateLimit, NameServerError> {
        let (rate, beyond) = match text.split_once(':') {
            Some((rate, beyond)) => (rate, find(beyond)?),
            None => (text, LookupFault::Timeout),
        };
        let per_second = rate.strip_suffix("/s").and_then(|rate| rate.parse().ok());
        Ok(RateLimit {
            per_second: per_second.ok_or_else(|| NameServerError::Rate(text.to_owned()))?,
            beyond,
        })
    }
}

/// Everything about a name server.
#[derive(Clone, Debug)]
pub struct NameServerConfig {
    /// Where it listens, over UDP and TCP.
    pub listen: SocketAddr,
    /// The names that there are; none: every name is there, with `usual` as its address.
    pub names: Vec<NameRecord>,
    /// The address of every name where none is given.
    pub usual: IpAddr,
    /// How long an address is valid, in seconds.
    pub ttl_s: u32,
    /// The pause before each response.
    pub delay: Delay,
    /// How many queries a second are answered; absent: all.
    pub rate_limit: Option<RateLimit>,
    /// Which queries fail, how often.
    pub faults: Faults<LookupFault>,
}

impl NameServerConfig {
    /// The addresses of a name; `None` if there is no such name.
    pub(super) fn addresses(&self, name: &str) -> Option<Vec<IpAddr>> {
        if self.names.is_empty() {
            return Some(vec![self.usual]);
        }
        let record = self.names.iter().find(|record| record.name == name);
        record.map(|record| record.addresses.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_with_their_addresses() {
        let record: NameRecord = "API.test.=127.0.0.1,::1".parse().unwrap();
        assert_eq!(record.name, "api.test");
        let addresses = ["127.0.0.1", "::1"].map(|text| text.parse::<IpAddr>().unwrap());
        assert_eq!(record.addresses, addresses);
        for bad in [
            "",
            "api.test",
            "=127.0.0.1",
            "a..b=127.0.0.1",
            "a=",
            "a=b",
            "a=1,",
        ] {
            assert!(bad.parse::<NameRecord>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_limit_names_what_happens_beyond_it() {
        let limit = |text: &str| text.parse::<RateLimit>();
        let beyond = |text| limit(text).map(|limit| (limit.per_second.get(), limit.beyond));
        assert_eq!(beyond("20/s"), Ok((20, LookupFault::Timeout)));
        assert_eq!(beyond("1/s:servfail"), Ok((1, LookupFault::Servfail)));
        for bad in ["", "20", "0/s", "-1/s", "1.5/s", "20/m", "20/s:gone"] {
            assert!(limit(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn every_failure_has_a_code_or_no_response_at_all() {
        for fault in LookupFault::ALL {
            assert_eq!(fault.code().is_none(), fault == LookupFault::Timeout);
        }
    }
}
