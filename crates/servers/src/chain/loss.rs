//! Requests that are expected to be lost on a hop, from the idle times that a log shows. Must not
//! know a limit's origin.
//!
//! The server closes at its limit `S`. Its FIN takes half a round trip; a request that is sent
//! within the round trip before the close arrives crosses it. So of the idle times around `S`, the
//! part that falls into one round trip is lost. A client that does not look at its connections
//! before it sends loses every request with an idle time between `S` and its own limit.

use super::HopFacts;
use intact_document::statement::{Statement, Value, requests, statement};
use intact_ledger::Histogram;
use intact_timers::Hop;
use intact_traffic::{at_least, danger_from};
use intact_units::number;
use intact_units::plural::counted;
use serde::Serialize;
use std::time::Duration;

/// Idle times of kept connections, and what they apply to.
#[derive(Clone, Debug)]
pub struct HopGaps {
    /// Idle times before connections were used again, in nanoseconds.
    pub gaps: Histogram,
    /// Requests of the log.
    pub requests: u64,
    /// The time that the log covers.
    pub length: Duration,
    /// The round trip between two hops.
    pub round_trip: Duration,
    /// The hop whose accepted connections the log is about; absent for all.
    pub server: Option<usize>,
}

/// The idle times that losses are computed from.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct GapFacts {
    /// The hop whose accepted connections they are of; absent where they stand for every hop.
    pub hop: Option<String>,
    /// How many idle times.
    pub count: u64,
    /// Requests of the log.
    pub requests: u64,
    /// The longest idle time, in seconds.
    pub longest_s: Option<f64>,
    /// The time that the log covers, in seconds.
    pub length_s: f64,
    /// The round trip that is assumed, in milliseconds.
    pub round_trip_ms: f64,
}

/// The requests that are expected to be lost on a hop.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LossFacts {
    /// Idle times in the danger band of the server's limit: its last fifth, at most its last
    /// second.
    pub near: u64,
    /// Requests lost by a client that notices each close at once, as a share of all.
    pub lost_share: f64,
    /// The same per hour.
    pub lost_per_h: f64,
    /// Requests lost by a client that does not look before it sends, as a share of all.
    pub lost_share_at_most: f64,
    /// The same per hour.
    pub lost_per_h_at_most: f64,
    /// The longest idle time of the log is shorter than the limit: connections may have ended
    /// before.
    pub is_beyond_the_log: bool,
}

impl GapFacts {
    pub(super) fn of(gaps: &HopGaps, chain: &[Hop]) -> GapFacts {
        GapFacts {
            hop: gaps
                .server
                .and_then(|nth| chain.get(nth))
                .map(|hop| hop.name.clone()),
            count: gaps.gaps.count(),
            requests: gaps.requests,
            longest_s: gaps.gaps.max().map(|nanos| nanos as f64 / 1e9),
            length_s: gaps.length.as_secs_f64(),
            round_trip_ms: gaps.round_trip.as_secs_f64() * 1e3,
        }
    }
}

impl LossFacts {
    /// The loss on the hop at this place, if its server may close first and the log is about it.
    pub(super) fn of(all: &HopGaps, nth: usize, hop: &HopFacts) -> Option<LossFacts> {
        let is_about = all.server.is_none_or(|server| server == nth + 1);
        if !is_about || !hop.order.is_race() || all.requests == 0 {
            return None;
        }
        let limit = hop.server_idle.nanos()?;
        let from = danger_from(limit);
        let at_limit = at_least(&all.gaps, limit);
        let near = at_least(&all.gaps, from).saturating_sub(at_limit);
        let window = all.round_trip.as_nanos() as f64 / (limit - from).max(1) as f64;
        let crossed = near as f64 * window.min(1.0);
        // beyond the client's own limit it opens another connection
        let beyond = hop
            .client_idle
            .nanos()
            .map_or(0, |client| at_least(&all.gaps, client.max(limit)));
        let unnoticed = crossed + at_limit.saturating_sub(beyond) as f64;
        let of_requests = |lost: f64| lost / all.requests as f64;
        let hours = all.length.as_secs_f64() / 3600.0;
        let per_h = |lost: f64| if hours > 0.0 { lost / hours } else { 0.0 };
        Some(LossFacts {
            near,
            lost_share: of_requests(crossed),
            lost_per_h: per_h(crossed),
            lost_share_at_most: of_requests(unnoticed),
            lost_per_h_at_most: per_h(unnoticed),
            is_beyond_the_log: all.gaps.max().is_none_or(|longest| longest < from),
        })
    }

    pub(super) fn statement(&self) -> Statement {
        if self.is_beyond_the_log {
            return Statement::from(
                "the log shows no idle time as long as the server's limit: no loss can be computed",
            );
        }
        statement!(
            "{near} of the log came shortly before the server's limit; expected losses: {per_million} of a million requests if the client notices a close at once, {per_million_at_most} if it does not look",
            near = requests(self.near),
            per_million = Value::Text(number::mean(self.lost_share * 1e6)),
            per_million_at_most = Value::Text(number::mean(self.lost_share_at_most * 1e6))
        )
    }

    pub(super) fn sentence(&self) -> String {
        if self.is_beyond_the_log {
            return "The log shows no idle time as long as the server's limit: no loss can be computed from it.".to_owned();
        }
        format!(
            "Expected at its traffic: {} lost an hour, {} if the client does not look before it sends ({} shortly before the limit).",
            number::mean(self.lost_per_h),
            number::mean(self.lost_per_h_at_most),
            counted(self.near, "request")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::ChainFacts;
    use super::*;
    use intact_timers::Idle;

    const MS: u64 = 1_000_000;

    fn facts(gaps_ms: &[(u64, u64)], round_trip_ms: u64) -> ChainFacts {
        let idle = |seconds| Idle::After(Duration::from_secs(seconds));
        let chain = [
            Hop::given("client", idle(60), idle(60), true),
            Hop::given("app", idle(5), idle(5), true),
        ];
        let mut gaps = Histogram::new();
        for &(ms, count) in gaps_ms {
            gaps.record_many(ms * MS, count);
        }
        let gaps = HopGaps {
            requests: 10_000,
            length: Duration::from_secs(7_200),
            round_trip: Duration::from_millis(round_trip_ms),
            server: None,
            gaps,
        };
        ChainFacts::new(&chain, Some(&gaps))
    }

    #[test]
    fn the_part_of_a_round_trip_in_the_danger_band_is_lost() {
        // 100 idle times in the last second before the limit, a round trip of 10 ms: one is lost,
        // in two hours
        let facts = facts(&[(10, 9_000), (4_500, 100), (20_000, 40), (90_000, 5)], 10);
        let loss = facts.hops[0].loss.as_ref().unwrap();
        assert_eq!(loss.near, 100);
        assert!((loss.lost_share - 1e-4).abs() < 1e-9, "{}", loss.lost_share);
        assert!((loss.lost_per_h - 0.5).abs() < 1e-6);
        // between the limits are 40: those beyond the client's own are on another connection
        assert!((loss.lost_share_at_most - 41e-4).abs() < 1e-9);
        assert!(!loss.is_beyond_the_log);
    }

    #[test]
    fn a_log_without_such_idle_times_says_nothing() {
        let facts = facts(&[(10, 9_000), (1_000, 3)], 1);
        let loss = facts.hops[0].loss.as_ref().unwrap();
        assert!(loss.is_beyond_the_log);
        assert!(
            facts.verdict[1]
                .statement
                .contains("no loss can be computed")
        );
    }
}
