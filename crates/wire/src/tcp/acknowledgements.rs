//! When the peer's TCP acknowledged a request: by then the request had reached its machine,
//! whatever the program there did. From the counts of our own kernel. Must not conclude who was
//! slow.

/// The kernel's counts of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledgements {
    /// The smoothed round trip (RFC 6298), in microseconds.
    pub smoothed_us: u32,
    /// Segments that were sent again, including the SYN.
    pub retransmissions: u32,
    /// Segments with data that were sent.
    pub segments: u32,
}

impl Acknowledgements {
    /// Counts in the order of `intact_sys::socket::acknowledgements`.
    pub fn new([smoothed_us, retransmissions, segments]: [u32; 3]) -> Acknowledgements {
        Acknowledgements {
            smoothed_us,
            retransmissions,
            segments,
        }
    }

    /// How long the only segment since `before` took to be acknowledged, in nanoseconds, to 16 us;
    /// `None` if there was not exactly one. RFC 6298 adds an eighth of the difference.
    pub fn since(self, before: Acknowledgements) -> Option<u64> {
        let is_one = self.segments.checked_sub(before.segments) == Some(1)
            && self.retransmissions == before.retransmissions;
        let eighths = 8 * u64::from(self.smoothed_us);
        let last_us = eighths.checked_sub(7 * u64::from(before.smoothed_us))?;
        is_one.then_some(last_us * 1_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_is_derived_from_the_smoothed_one_if_there_was_only_one() {
        let counts = |smoothed_us, segments| Acknowledgements {
            smoothed_us,
            segments,
            retransmissions: 0,
        };
        // as in tcp_rtt_estimator: 28 ms, and then one of 42 ms
        let before = counts(28_000, 3);
        let after = counts(28_000 + (42_000 - 28_000) / 8, 4);
        assert_eq!(after.since(before), Some(42_000_000));
        assert_eq!(counts(29_750, 5).since(before), None);
        assert_eq!(counts(28_000, 3).since(before), None);
        let lost = Acknowledgements {
            retransmissions: 1,
            ..after
        };
        assert_eq!(lost.since(before), None);
    }
}
