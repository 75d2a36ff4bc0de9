//! How a link did, so that one can tell how far to trust what was measured on it.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// SYN round trips to a closed port, measured before anything else ran on the link.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundTrip {
    /// How many were measured.
    pub count: usize,
    /// The shortest, in ms.
    pub min_ms: f64,
    /// The median, in ms.
    pub p50_ms: f64,
    /// The longest, in ms.
    pub max_ms: f64,
}

/// How the forwarder did: the link is what it says as far as this is small.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Account {
    /// How late packets were released. `None`: none were.
    pub lateness: Option<Lateness>,
    /// Packets from client to server.
    pub up: Counts,
    /// Packets from server to client.
    pub down: Counts,
}

/// By how much packets were released after they were due.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lateness {
    /// Median, in us.
    pub p50_us: f64,
    /// 99th percentile, in us; `None`: fewer than ten packets lie beyond it.
    pub p99_us: Option<f64>,
    /// The worst, in us.
    pub max_us: f64,
}

/// Packets of one direction, by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Came in.
    pub arrived: u64,
    /// Went out on the other side.
    pub delivered: u64,
    /// Lost, as `loss` asks.
    pub lost: u64,
    /// Dropped by `drop`, or thrown away on their way.
    pub dropped: u64,
    /// Dropped because the queue before a `rate` was full.
    pub tail_dropped: u64,
    /// Of a flow that the middle box had forgotten.
    pub forgotten: u64,
    /// Lost by us, which no link was asked to do: kernel ring or queue full, sending refused. The link is not what it says.
    pub failed: u64,
}

impl Account {
    /// Whether the forwarder was on time enough for a link of this round trip: at least 99 of 100 packets within a twentieth of
    /// it (but 0.1 to 1 ms), and none lost by us.
    pub fn is_punctual(&self, round_trip: Duration) -> bool {
        let limit_us = (round_trip.as_secs_f64() * 1e6 / 20.0).clamp(100.0, 1000.0);
        let late = self.lateness.is_some_and(|lateness| {
            // with few packets the worst stands in for the percentile that they do not give
            lateness.p99_us.unwrap_or(lateness.max_us) > limit_us
        });
        !late && self.up.failed + self.down.failed == 0
    }

    /// Packets that went out on the other side, both ways.
    pub fn delivered(&self) -> u64 {
        self.up.delivered + self.down.delivered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(p99_us: Option<f64>, max_us: f64, failed: u64) -> Account {
        Account {
            lateness: Some(Lateness {
                p50_us: 1.0,
                p99_us,
                max_us,
            }),
            up: Counts {
                failed,
                ..Counts::default()
            },
            down: Counts::default(),
        }
    }

    #[test]
    fn a_late_forwarder_or_a_lost_packet_spoils_a_link() {
        let thirty = Duration::from_millis(30);
        assert!(account(Some(900.0), 5000.0, 0).is_punctual(thirty));
        assert!(!account(Some(1100.0), 5000.0, 0).is_punctual(thirty));
        assert!(!account(None, 5000.0, 0).is_punctual(thirty));
        assert!(!account(Some(1.0), 1.0, 1).is_punctual(thirty));
        assert!(!account(Some(300.0), 300.0, 0).is_punctual(Duration::from_millis(5)));
    }
}
