//! The metrics about requests and connections, from the figures that every document about traffic
//! has. Must not know the document.

use super::{Measured, NoData, TrafficMetric};
use crate::figures::TrafficCounts;
use crate::unobserved::Unobserved;
use intact_ledger::Evidence;
use intact_ledger::Failure;

/// The figures that the metrics are computed from. A figure that the document does not have is the
/// reason why.
pub struct TrafficSource<'a> {
    pub counts: &'a TrafficCounts,
    /// Counts are those of one run on average.
    pub runs: f64,
    pub avoidable: u64,
    pub reuse_known: u64,
    pub lookups: u64,
    /// Failed lookups before which no request was sent; 0 where they count as failed requests.
    pub lookups_in_vain: u64,
    pub requests_per_connection: Option<f64>,
    /// The smallest and the largest share, where some handshakes are of an unknown kind.
    pub resumed_share: Option<[f64; 2]>,
    pub churn_per_s: Result<f64, NoData>,
    pub bytes_per_request: Result<f64, NoData>,
    pub header_bytes_per_request: Result<f64, NoData>,
    pub unobserved: &'a Unobserved,
}

impl TrafficSource<'_> {
    /// What was measured of a metric, or the bounds where a part was not observed. Zero is a value
    /// of a count, but a gate on traffic that went elsewhere must not pass: without any traffic
    /// only the amount of traffic is zero.
    pub fn value(&self, metric: TrafficMetric) -> Result<Measured, NoData> {
        let unobserved = self.unobserved;
        if self.counts.is_empty() && !is_amount(metric) && unobserved.missing().is_none() {
            return Err(NoData::NoTraffic);
        }
        let TrafficCounts {
            requests,
            connections,
            reused,
            ..
        } = self.counts;
        let (total, opened) = (requests.total, connections.opened);
        let of_requests = |count: u64| unobserved.requests(count, total);
        let of_connections = |count: u64| unobserved.connections(count, opened);
        let failed_with = |kind: Failure| {
            let count = requests.failed_with(kind);
            if count == 0 {
                unobserved.sees(evidence_of(kind))?;
            }
            of_requests(count)
        };
        // of what waited for a lookup that failed, nothing was sent; that may be several requests
        let unsent = (self.lookups_in_vain).saturating_sub(requests.failed_with(Failure::Lookup));
        let all_failed = || match unsent {
            0 => of_requests(requests.failures()),
            unsent => Ok(Measured::count(requests.failures() + unsent, false)),
        };
        let count = match metric {
            TrafficMetric::Requests => of_requests(total),
            TrafficMetric::Ok => of_requests(requests.ok),
            TrafficMetric::Failed => all_failed(),
            TrafficMetric::FailedShare => {
                let failed = all_failed()?;
                if total == 0 {
                    return Err(NoData::NothingHappened);
                }
                return Ok(match failed.is_exact() {
                    true => failed.divided_by(total as f64),
                    false => Measured::between(0.0, 1.0),
                });
            }
            TrafficMetric::FailedWith(Failure::Lookup) if unsent > 0 => {
                Ok(Measured::count(self.lookups_in_vain, false))
            }
            TrafficMetric::FailedWith(kind) => failed_with(kind),
            TrafficMetric::Stale => failed_with(Failure::Stale),
            TrafficMetric::Status(status) => of_requests(requests.of_status(status)),
            TrafficMetric::Connections => unobserved.opened(opened),
            TrafficMetric::ConnectionsFailed => {
                unobserved.sees(&[Evidence::Attempts])?;
                of_connections(connections.failed.values().sum())
            }
            TrafficMetric::Needed => unobserved.needed(connections.needed, opened),
            TrafficMetric::Avoidable => unobserved.avoidable(self.avoidable, opened),
            TrafficMetric::Reused => unobserved.reused(*reused, self.reuse_known, total),
            TrafficMetric::Lookups => {
                unobserved.sees(&[Evidence::Lookups])?;
                Ok(Measured::count(self.lookups, unobserved.traffic.is_none()))
            }
            TrafficMetric::Reuse => return unobserved.reuse(*reused, self.reuse_known, total),
            TrafficMetric::RequestsPerConnection => {
                of_requests(total)?;
                of_connections(opened)?;
                let ratio = self.requests_per_connection;
                return ratio
                    .map(|ratio| unobserved.ratio(ratio))
                    .ok_or(NoData::NothingHappened);
            }
            TrafficMetric::ResumedShare => {
                let share = self.resumed_share.ok_or(NoData::NothingHappened)?;
                return Ok(unobserved.share_of_connections(share));
            }
            TrafficMetric::Churn => {
                let churn = self.churn_per_s?;
                of_connections(opened)?;
                return Ok(unobserved.at_least_connections(churn));
            }
            TrafficMetric::BytesPerRequest => {
                return Ok(unobserved.statistic(self.bytes_per_request?));
            }
            TrafficMetric::HeaderBytesPerRequest => {
                return Ok(unobserved.statistic(self.header_bytes_per_request?));
            }
        };
        Ok(count?.divided_by(self.runs))
    }
}

/// Whether it is how much traffic there was, and not how it was.
fn is_amount(metric: TrafficMetric) -> bool {
    matches!(
        metric,
        TrafficMetric::Requests
            | TrafficMetric::Connections
            | TrafficMetric::ConnectionsFailed
            | TrafficMetric::Lookups
            | TrafficMetric::Churn
    )
}

/// Without which a recording has no request that failed in this way.
fn evidence_of(kind: Failure) -> &'static [Evidence] {
    match kind {
        Failure::Stale => &[Evidence::Attempts, Evidence::Ends],
        kind if kind.precedes_the_request() => &[Evidence::Attempts],
        _ => &[],
    }
}
