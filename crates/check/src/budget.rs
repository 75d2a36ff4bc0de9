//! What a check will send, said before it does, and held to.

use crate::config::Config;
use ledger::Scheme;

/// Requests that the card may take.
const CARD: u32 = 60;
/// Requests of the cap probe.
const CAP: u32 = 110;
/// Requests of the cap probe under `--thorough`.
const CAP_THOROUGH: u32 = 1_100;
/// Requests around the idle waits and the race.
const IDLE: u32 = 12;
/// Requests that keep a connection in use while its age is watched, under `--thorough`.
pub(crate) const AGE: u32 = 31;

/// The most that a check sends, by part. [`Budget::take`] refuses what goes beyond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Requests of the card.
    pub card: u32,
    /// Requests of the cap probe, all on one connection.
    pub cap: u32,
    /// Requests around the idle waits.
    pub idle: u32,
    spent: u32,
}

impl Budget {
    /// The budget of a configuration.
    pub(crate) fn of(config: &Config) -> Budget {
        let held = if config.hold > 0 { config.hold + 1 } else { 0 };
        Budget {
            card: match config.address.scheme {
                Scheme::Https => CARD,
                _ => CARD / 2,
            },
            cap: if config.thorough { CAP_THOROUGH } else { CAP },
            idle: match config.idle {
                true if config.thorough => IDLE + AGE + held,
                true => IDLE + held,
                false => 0,
            },
            spent: 0,
        }
    }

    /// All requests together.
    pub fn requests(&self) -> u32 {
        self.card + self.cap + self.idle
    }

    /// Requests sent so far.
    pub fn spent(&self) -> u32 {
        self.spent
    }

    /// Takes one request out of it; `false`: none is left.
    pub(crate) fn take(&mut self) -> bool {
        let left = self.spent < self.requests();
        self.spent += u32::from(left);
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_beyond_the_budget_is_granted() {
        let mut budget = Budget {
            card: 2,
            cap: 1,
            idle: 0,
            spent: 0,
        };
        let granted: Vec<bool> = (0..5).map(|_| budget.take()).collect();
        assert_eq!(granted, [true, true, true, false, false]);
        assert_eq!(budget.spent(), 3);
    }

    #[test]
    fn the_usual_budget_stays_below_200() {
        let config = Config::new("https://example.org/").unwrap();
        assert!(Budget::of(&config).requests() < 200);
    }
}
