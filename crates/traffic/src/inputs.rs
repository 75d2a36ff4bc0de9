//! What was read of the inputs of an audit. Must not read them.

use serde::Serialize;

/// What was read of one input.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct InputFacts {
    /// The file's name.
    pub name: String,
    /// Its format.
    pub format: String,
    /// What it consists of, in the plural.
    pub unit: String,
    /// How many of them were read.
    pub read: u64,
    /// How many of them had no use.
    pub skipped: u64,
    /// Bytes, after decompression.
    pub bytes: u64,
    /// By what evidence connections were distinguished; absent where the format leaves no choice.
    pub evidence: Option<String>,
    /// Lines for a server's configuration that make its log more useful.
    pub advice: Vec<String>,
    /// What counters show of each upstream; empty for other inputs.
    pub upstreams: Vec<UpstreamFacts>,
}

/// Counters of one upstream, since the start of the program that counts.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct UpstreamFacts {
    /// The upstream, as the program names it.
    pub upstream: String,
    /// Opened connections; absent if no counter shows them.
    pub connections: Option<u64>,
    /// Requests; absent if no counter shows them.
    pub requests: Option<u64>,
    /// Requests for each connection; absent unless both are known.
    pub requests_per_connection: Option<f64>,
    /// It opens many connections for few requests, so a recording is worth it.
    pub worth_a_watch: bool,
}

/// Fewest connections of an upstream that is worth a recording.
const WORTH_CONNECTIONS: u64 = 20;
/// Requests per connection below which an upstream is worth a recording.
const WORTH_RATIO: f64 = 5.0;

impl UpstreamFacts {
    /// The facts of these counters.
    pub fn new(upstream: String, connections: Option<u64>, requests: Option<u64>) -> UpstreamFacts {
        let both = connections.zip(requests);
        let ratio = both
            .filter(|(connections, _)| *connections > 0)
            .map(|(connections, requests)| requests as f64 / connections as f64);
        let is_used = connections.is_some_and(|count| count >= WORTH_CONNECTIONS);
        UpstreamFacts {
            upstream,
            connections,
            requests,
            requests_per_connection: ratio,
            worth_a_watch: is_used && ratio.is_some_and(|ratio| ratio < WORTH_RATIO),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_connections_for_few_requests_are_worth_a_recording() {
        let worth = |connections, requests| {
            UpstreamFacts::new("a".to_owned(), connections, requests).worth_a_watch
        };
        assert!(worth(Some(1000), Some(1100)));
        assert!(!worth(Some(10), Some(10)));
        assert!(!worth(Some(1000), Some(90_000)));
        // what is not counted is no reason
        assert!(!worth(Some(1000), None) && !worth(None, Some(5)));
    }
}
