//! A GOAWAY within a burst (`partial-goaway`): the first requests of HTTP/2 that are in flight
//! pass, and get their responses. Later ones are withheld, and the GOAWAY says that they were not
//! processed (RFC 9113 section 6.8).
//!
//! What is withheld passes after all where the responses do not end in time.

use super::target::FaultTarget;
use super::{Faults, Shown};
use crate::platform::relay::direction::Passed;
use intact_ledger::{FaultObstacle, Protocol};
use intact_observe::{Progress, Side};
use std::time::{Duration, Instant};

/// How long the responses of the requests that passed are awaited. Acknowledgements and windows
/// of the program are withheld too, so that a long response may need them.
const WAIT: Duration = Duration::from_secs(2);

/// A burst whose later requests are withheld.
pub(super) struct Burst {
    /// What the program sent from the first of them on.
    withheld: Vec<u8>,
    /// How many they are.
    requests: u64,
    since: Instant,
}

impl FaultTarget {
    /// Takes bytes of the program, and withholds them from the first request on that begins while
    /// another one is in flight.
    pub(super) fn take_burst(
        &mut self,
        bytes: &[u8],
        before: &Progress,
        faults: &mut Faults,
        seen: &mut Shown<'_, '_>,
    ) -> Passed {
        if let Some(why) = obstacle(before) {
            seen.show(Side::Client, bytes);
            self.note(why, faults);
            return Passed::All;
        }
        // the last end of a frame, and the requests that were in flight there
        let mut whole = before.is_between_client_frames.then_some((0, before.open));
        let (mut passed, mut is_together) = (None, false);
        for (nth, byte) in bytes.iter().enumerate() {
            seen.show(Side::Client, std::slice::from_ref(byte));
            let Some(now) = seen.progress() else { continue };
            if let Some((at, open)) = whole
                && passed.is_none()
                && open > 0
                && now.open > open
            {
                passed = Some((at, open));
            }
            // several requests in one record cannot be parted
            is_together |= whole.is_some_and(|(_, open)| open == 0 && now.open > 1);
            if now.is_between_client_frames {
                whole = Some((nth + 1, now.open));
            }
        }
        let Some(((at, open), now)) = passed.zip(seen.progress()) else {
            if is_together {
                self.note(FaultObstacle::Encrypted, faults);
            }
            return Passed::All;
        };
        self.before_request = self.sent + at as u64;
        self.burst = Some(Burst {
            withheld: bytes[at..].to_vec(),
            requests: now.open.saturating_sub(open),
            since: Instant::now(),
        });
        Passed::First(at)
    }

    /// Whether the requests that passed have their responses.
    pub(super) fn is_burst_over(&self, now: &Progress) -> bool {
        let burst = self.burst.as_ref();
        now.is_between_frames && burst.is_some_and(|burst| now.open <= burst.requests)
    }

    /// The number of bytes that are withheld.
    pub(super) fn withheld(&self) -> u64 {
        let burst = self.burst.as_ref();
        burst.map_or(0, |burst| burst.withheld.len() as u64)
    }

    /// Until when responses are awaited.
    pub(super) fn awaits_burst(&self) -> Option<Instant> {
        self.burst.as_ref().map(|burst| burst.since + WAIT)
    }

    /// Whether the responses did not end in time.
    pub(super) fn has_late_burst(&self) -> bool {
        let burst = self.burst.as_ref();
        burst.is_some_and(|burst| burst.since.elapsed() >= WAIT)
    }

    /// Ends the burst. The bytes that were withheld.
    pub(super) fn take_withheld(&mut self) -> Option<Vec<u8>> {
        self.burst.take().map(|burst| burst.withheld)
    }
}

/// Why there is no burst that could be cut.
fn obstacle(now: &Progress) -> Option<FaultObstacle> {
    let is_http2 = now.protocol == Some(Protocol::Http2);
    match (now.is_inferred, is_http2) {
        (true, _) => Some(FaultObstacle::Encrypted),
        (false, false) => Some(FaultObstacle::NotHttp2),
        (false, true) => (now.is_tls && !now.is_sealable).then_some(FaultObstacle::Encrypted),
    }
}
