//! What can be switched on a link while it runs.

use super::Blocked;
use super::read::{BLOCKED, Delays, LONGEST_DELAY, SHARE, SpecError, pairs};
use intact_units::share;
use serde::{Deserialize, Serialize};
use std::str::FromStr;
use std::time::Duration;

const KEYS: [&str; 6] = ["drop", "rtt", "up", "down", "loss", "forget"];
/// What `forget` takes.
const FORGET: &str = "queued (packets on their way) or flows (what a nat-idle box knows)";

/// A change to a running link: `drop=both`, `rtt=80ms,loss=1%`, `forget=queued`. It takes effect on
/// what arrives from then on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkChange {
    /// Where everything is dropped from now on.
    pub drop: Option<Blocked>,
    /// One-way delays, up and down.
    pub delays: Option<(Duration, Duration)>,
    /// Packets lost of a million.
    pub loss_ppm: Option<u32>,
    /// Whether packets on their way are thrown away: else they still arrive after a `drop`.
    pub forget_queued: bool,
    /// Whether the middle box forgets all flows (needs `nat-idle`).
    pub forget_flows: bool,
}

impl LinkChange {
    /// Drops everything in these directions, also what is on its way in any.
    pub fn freeze(blocked: Blocked) -> LinkChange {
        LinkChange {
            drop: Some(blocked),
            forget_queued: blocked != Blocked::None,
            ..LinkChange::default()
        }
    }

    fn forget(&mut self, what: &str) -> Option<()> {
        match what {
            "queued" => self.forget_queued = true,
            "flows" => self.forget_flows = true,
            _ => return None,
        }
        Some(())
    }
}

impl FromStr for LinkChange {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<LinkChange, SpecError> {
        let mut change = LinkChange::default();
        let mut delays = Delays::default();
        for pair in pairs(text, &KEYS)? {
            match pair.key {
                "drop" => change.drop = Some(pair.read(BLOCKED, |text| text.parse().ok())?),
                "rtt" => delays.round_trip = Some(pair.time(LONGEST_DELAY * 2)?),
                "up" => delays.up = Some(pair.time(LONGEST_DELAY)?),
                "down" => delays.down = Some(pair.time(LONGEST_DELAY)?),
                "loss" => change.loss_ppm = Some(pair.read(SHARE, share::read)?),
                _ => pair.read(FORGET, |text| change.forget(text))?,
            }
        }
        change.delays = delays.resolve()?;
        Ok(change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_read_and_what_cannot_change_is_refused() {
        let change: LinkChange = "drop=both,forget=queued".parse().unwrap();
        assert_eq!(change, LinkChange::freeze(Blocked::Both));
        let change: LinkChange = "rtt=80ms,loss=1%".parse().unwrap();
        let forty = Duration::from_millis(40);
        assert_eq!(
            (change.delays, change.loss_ppm),
            (Some((forty, forty)), Some(10_000))
        );
        let error = "rate=1mbit".parse::<LinkChange>().unwrap_err().to_string();
        assert!(error.contains("keys are drop, rtt"), "{error}");
    }
}
