//! What a server has seen, added up: the document of `/.intact/ledger` and of `--json`
//! (docs/reference/schema/serve.schema.json).
//!
//! Only the shape, and how a tally becomes it; the counting is `server_tally`'s.

use crate::disturbance::Disturbance;
use crate::fault::Fault;
use crate::name_server::LookupFault;
use intact_ledger::{
    EndedBy, Exchange, Failure, Handshake, Histogram, Protocol, Reuse, Run, Tally, TlsVersion,
};
use serde::Serialize;
use std::collections::BTreeMap;

/// Everything up to a moment. Questions about the server itself, and connections that asked nothing
/// else, are not in it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Totals {
    /// `intact.serve/1`.
    pub schema: &'static str,
    /// The head of the server's ledger.
    pub run: Run,
    /// Seconds since the server started.
    pub uptime_s: f64,
    /// Exchanges.
    pub requests: Requests,
    /// Connections.
    pub connections: Connections,
    /// Exchanges that were not the first on their connection.
    pub reused: u64,
    /// Their share of all; absent while there are none.
    pub reuse: Option<f64>,
    /// The same per HTTP version that was spoken.
    pub versions: Vec<Version>,
    /// Faults that were made, by id.
    pub faults: BTreeMap<Fault, u64>,
    /// Responses that the script had an effect on, by its steps.
    pub disturbed: BTreeMap<Disturbance, u64>,
    /// Queries to the name server; absent without one.
    pub lookups: Option<Lookups>,
    /// Calls that responses waited for; absent without an upstream.
    pub upstream: Option<UpstreamCalls>,
    /// The last exchanges, oldest first, as the ledger has them.
    pub last: Vec<Exchange>,
    /// All counts and histograms.
    #[serde(skip)]
    pub tally: Tally,
}

/// Counts of exchanges.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Requests {
    /// Over, well or not.
    pub total: u64,
    /// Answered in full.
    pub ok: u64,
    /// Not answered in full, by the kind that a careful client counts.
    pub failed: BTreeMap<Failure, u64>,
    /// Responses by status, where one was sent.
    pub status: BTreeMap<u16, u64>,
}

/// Counts of calls to the upstream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UpstreamCalls {
    /// All.
    pub total: u64,
    /// Those that failed, by kind; a status from 400 on is `unexpected-status`.
    pub failed: BTreeMap<Failure, u64>,
    /// Connections opened for them.
    pub connections: u64,
}

/// Counts of queries to the name server. A program's lookup is often two queries: one for IPv4, one
/// for IPv6.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Lookups {
    /// All.
    pub total: u64,
    /// Those that failed, by how.
    pub failed: BTreeMap<LookupFault, u64>,
}

/// Counts of connections.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Connections {
    /// Accepted, and the TLS handshake over.
    pub opened: u64,
    /// Of those, the ones that are still there.
    pub open: u64,
    /// TLS handshakes that failed, by kind; in `opened` too.
    pub failed: BTreeMap<Failure, u64>,
    /// TLS handshakes that did not.
    pub handshakes: Vec<Handshakes>,
    /// Ended ones by who ended them.
    pub ended_by: BTreeMap<EndedBy, u64>,
}

/// TLS handshakes of one version and kind.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Handshakes {
    /// The version.
    pub tls: Option<TlsVersion>,
    /// Full, resumed, or with early data.
    pub kind: Option<Handshake>,
    /// How many.
    pub count: u64,
}

/// Counts of one HTTP version.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Version {
    /// The version of the first request on the connection.
    pub http: Protocol,
    /// Exchanges.
    pub requests: u64,
    /// The connections that carried them.
    pub connections: u64,
    /// Exchanges on a connection that has ended, on average; absent while none has.
    pub requests_per_connection_mean: Option<f64>,
    /// The most exchanges on one connection that has ended.
    pub requests_per_connection_max: Option<u64>,
    /// Ended ones by who ended them.
    pub ended_by: BTreeMap<EndedBy, u64>,
}

/// What is counted of the connections of one HTTP version.
#[derive(Default)]
pub(crate) struct VersionCounts {
    pub(crate) connections: u64,
    pub(crate) requests: u64,
    /// Exchanges on connections that have ended.
    pub(crate) per_connection: Histogram,
    pub(crate) ended_by: BTreeMap<EndedBy, u64>,
}

/// Adds counts by kind to those of others.
pub(crate) fn add_counts<K: Copy + Ord>(sum: &mut BTreeMap<K, u64>, counts: &BTreeMap<K, u64>) {
    for (&kind, count) in counts {
        *sum.entry(kind).or_default() += count;
    }
}

impl VersionCounts {
    pub(crate) fn merge(&mut self, other: &VersionCounts) {
        self.connections += other.connections;
        self.requests += other.requests;
        self.per_connection.merge(&other.per_connection);
        add_counts(&mut self.ended_by, &other.ended_by);
    }

    pub(crate) fn sum_up(self, http: Protocol) -> Version {
        Version {
            http,
            requests: self.requests,
            connections: self.connections,
            requests_per_connection_mean: self.per_connection.mean(),
            requests_per_connection_max: self.per_connection.max(),
            ended_by: self.ended_by,
        }
    }
}

impl Requests {
    /// Counts of a server's tally, which has one cell; and how many exchanges were on reused
    /// connections.
    pub(crate) fn count(tally: &mut Tally, status: BTreeMap<u16, u64>) -> (Requests, u64) {
        let mut requests = Requests {
            status,
            ..Requests::default()
        };
        let mut reused = 0;
        for group in &tally.cell(None, None).groups {
            let count = group.count();
            requests.total += count;
            if group.key.reuse == Some(Reuse::Reused) {
                reused += count;
            }
            match group.key.outcome.failure() {
                None => requests.ok += count,
                Some(kind) => *requests.failed.entry(kind).or_default() += count,
            }
        }
        (requests, reused)
    }
}

impl Connections {
    /// Counts of a server's tally, which has one cell. `waiting`: open ones that have not asked
    /// anything yet.
    pub(crate) fn count(tally: &mut Tally, closed: u64, waiting: u64) -> Connections {
        let counts = &tally.cell(None, None).connections;
        let failed: u64 = counts.failed.values().sum();
        let handshakes = counts.handshakes.iter();
        Connections {
            opened: counts.opened + waiting,
            open: counts.opened.saturating_sub(failed + closed) + waiting,
            failed: counts.failed.clone(),
            handshakes: handshakes
                .map(|&(tls, kind, count)| Handshakes { tls, kind, count })
                .collect(),
            ended_by: counts.ended_by.clone(),
        }
    }
}
