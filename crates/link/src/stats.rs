//! How a link did: the evidence for trusting what was measured on it.

use serde::{Deserialize, Serialize};

/// What was measured and found when a link started.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LinkFacts {
    /// The round trip, measured with SYNs to a closed port.
    pub round_trip: RoundTrip,
    /// The congestion control of both ends.
    pub congestion: String,
    /// Whether the forwarder runs ahead of other processes.
    pub real_time: bool,
    /// Whether the ends have IPv6 addresses.
    pub v6: bool,
    /// What the link lacks on this machine, a sentence each.
    pub caveats: Vec<String>,
}

/// SYN round trips to a closed port, measured before anything else ran on the link.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

/// The lateness of the forwarder: the smaller it is, the closer the link is to its specification.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LinkStats {
    /// How late packets were released. `None`: none were.
    pub lateness: Option<Lateness>,
    /// Packets from client to server.
    pub up: Counts,
    /// Packets from server to client.
    pub down: Counts,
}

/// By how much packets were released after they were due.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Lateness {
    /// Median, in us.
    pub p50_us: f64,
    /// 99th percentile, in us; `None`: fewer than ten packets lie beyond it.
    pub p99_us: Option<f64>,
    /// The worst, in us.
    pub max_us: f64,
    /// The lateness that this link tolerates, in us: 5 % of its round trip, but 0.1 to 1 ms.
    pub tolerance_us: f64,
    /// Packets that were later than that.
    pub late: u64,
}

/// Packets of one direction, by their outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// Packets that the link itself lost, without `loss`: the backlog, the ring or the queue was
    /// full, or a send was refused. The link did not meet its specification.
    pub failed: u64,
}

impl LinkStats {
    /// Whether the link met its specification: at most 1 % of the packets later than tolerated, and
    /// none lost by the link itself.
    pub fn is_punctual(&self) -> bool {
        let late = self.lateness.map_or(0, |lateness| lateness.late);
        late * 100 <= self.delivered() && self.failed() == 0
    }

    /// Packets that went out on the other side, both ways.
    pub fn delivered(&self) -> u64 {
        self.up.delivered + self.down.delivered
    }

    /// Packets lost by the link itself, both ways.
    pub fn failed(&self) -> u64 {
        self.up.failed + self.down.failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(late: u64, failed: u64) -> LinkStats {
        LinkStats {
            lateness: Some(Lateness {
                p50_us: 1.0,
                p99_us: None,
                max_us: 5000.0,
                tolerance_us: 1000.0,
                late,
            }),
            up: Counts {
                delivered: 200,
                failed,
                ..Counts::default()
            },
            down: Counts::default(),
        }
    }

    #[test]
    fn late_packets_and_lost_ones_spoil_a_link() {
        assert!(account(2, 0).is_punctual());
        assert!(!account(3, 0).is_punctual());
        assert!(!account(0, 1).is_punctual());
    }
}
