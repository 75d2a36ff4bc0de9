//! The requests that a check may send. The budget is printed before the first request and enforced
//! for each part.

use crate::config::Config;

/// Requests for the server profile.
const PROFILE: u32 = 66;
/// Requests for the first contact of a drain measurement, with redirects.
const FIRST: u32 = 11;
/// Requests of the request-limit probe.
const CAP: u32 = 110;
/// Requests of the request-limit probe under `--thorough`.
const CAP_THOROUGH: u32 = 1_100;
/// Requests for the idle waits and the race: one on each of five connections (one of them HTTP/3),
/// two on others meanwhile, one on each of six after the wait, and four in the race.
const IDLE: u32 = 17;
/// Requests that keep a connection in use while its age is measured.
pub(crate) const AGE: u32 = 5;
/// The same under `--thorough`.
const AGE_THOROUGH: u32 = 31;

/// Requests of the probe for a maximum age.
pub(crate) fn age_requests(config: &Config) -> u32 {
    if config.thorough { AGE_THOROUGH } else { AGE }
}

/// A part of a check with a budget of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Part {
    /// Probes that need no waiting.
    #[default]
    Profile,
    /// Requests on one connection.
    Cap,
    /// Idle limits, the race and the maximum age.
    Idle,
    /// The end of the server's process.
    Drain,
}

/// The maximum number of requests of a check, by part. A check sends no more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// Requests for the server profile.
    pub profile: u32,
    /// Requests of the request-limit probe, all on one connection.
    pub cap: u32,
    /// Requests for the idle waits.
    pub idle: u32,
    /// Requests before and after the signal to the server's process.
    pub drain: u32,
    part: Part,
    /// Requests sent in this part.
    spent: u32,
    /// Requests sent in earlier parts.
    before: u32,
}

impl Budget {
    /// The budget of a configuration; `drain`: that of a drain, which runs alone.
    pub(crate) fn of(config: &Config, drain: Option<u32>) -> Budget {
        if let Some(drain) = drain {
            return Budget {
                profile: FIRST,
                drain,
                ..Budget::default()
            };
        }
        // one on each, and another on the one that is measured
        let held = if config.hold > 0 { config.hold + 2 } else { 0 };
        Budget {
            // the request, and another on the same connection
            profile: PROFILE + 2 * config.tries.len() as u32,
            cap: if config.thorough { CAP_THOROUGH } else { CAP },
            idle: match config.idle {
                true => IDLE + age_requests(config) + held,
                false => 0,
            },
            ..Budget::default()
        }
    }

    /// The sum over all parts.
    pub fn requests(&self) -> u32 {
        self.profile + self.cap + self.idle + self.drain
    }

    /// Requests sent so far.
    pub fn spent(&self) -> u32 {
        self.before + self.spent
    }

    /// Starts a part. Requests that an earlier part did not use are not available to it.
    pub(crate) fn turn_to(&mut self, part: Part) {
        if self.part != part {
            self.part = part;
            self.before += self.spent;
            self.spent = 0;
        }
    }

    /// Takes one request from the part's budget. Returns `false` if none is left.
    pub(crate) fn take(&mut self) -> bool {
        let most = match self.part {
            Part::Profile => self.profile,
            Part::Cap => self.cap,
            Part::Idle => self.idle,
            Part::Drain => self.drain,
        };
        let left = self.spent < most;
        self.spent += u32::from(left);
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_beyond_the_budget_of_a_part_is_granted() {
        let mut budget = Budget {
            profile: 2,
            cap: 5,
            idle: 0,
            drain: 0,
            ..Budget::of(&Config::new("http://h/").unwrap(), None)
        };
        let mut granted = |part| {
            budget.turn_to(part);
            (0..5).filter(|_| budget.take()).count()
        };
        assert_eq!(granted(Part::Profile), 2);
        assert_eq!(granted(Part::Cap), 5);
        assert_eq!(granted(Part::Idle), 0);
        assert_eq!(budget.spent(), 7);
    }

    #[test]
    fn the_usual_budget_stays_below_200() {
        let config = Config::new("https://example.org/").unwrap();
        assert!(Budget::of(&config, None).requests() < 200);
    }
}
