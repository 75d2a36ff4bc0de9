//! Targets that are checked: what `check` is told, what it sends at most, how long it takes.

use super::{Kind, Plan, Target};
use check::{Check, Config, ConfigError};
use ledger::duration::{self, DurationError};
use std::time::Duration;

/// The idle limit that is looked for unless the plan says another.
const IDLE_LIMIT: Duration = Duration::from_secs(90);
/// A race is run at idle limits up to this, and takes it once more.
const RACE: Duration = Duration::from_secs(30);
/// The card itself, on a slow path.
const CARD: Duration = Duration::from_secs(30);

/// Why a target cannot be checked.
#[derive(Debug, thiserror::Error)]
pub enum CheckTargetError {
    /// `idle-limit` is no time.
    #[error("idle-limit: {0}")]
    IdleLimit(#[from] DurationError),
    /// A key that only a bench has a use for.
    #[error("{0} is for benches: a check goes where its url leads")]
    ForBenches(&'static str),
    /// URL, header fields or roots cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

impl Target {
    /// The check of this target, at no more than so many requests a second.
    pub fn check(&self, requests_per_s: f64) -> Result<Check, CheckTargetError> {
        if self.plain_port.is_some() {
            return Err(CheckTargetError::ForBenches("plain-port"));
        }
        if self.tls_port.is_some() {
            return Err(CheckTargetError::ForBenches("tls-port"));
        }
        let idle_limit = self.idle_limit()?;
        let mut config = Config::new(&self.url)?;
        config.headers.clone_from(&self.headers);
        config.user_agent = concat!("intact-fleet/", env!("CARGO_PKG_VERSION")).to_owned();
        config.credentials = self.credentials();
        config.route = self.route();
        config.requests_per_s = Some(requests_per_s);
        config.idle = !idle_limit.is_zero();
        config.idle_limit = idle_limit;
        Ok(Check::new(config)?)
    }

    fn idle_limit(&self) -> Result<Duration, DurationError> {
        self.idle_limit
            .as_deref()
            .map_or(Ok(IDLE_LIMIT), duration::with_unit)
    }

    /// Requests that a check of this target sends at most.
    pub(super) fn budget(&self) -> Result<u32, CheckTargetError> {
        Ok(self.check(1.0)?.budget().requests())
    }
}

impl Plan {
    /// Whether a target's checks fit into what the plan allows them, or the key that is in their way.
    pub(super) fn has_room_for(&self, target: &Target) -> Result<(), (&'static str, String)> {
        if target.measure == Kind::Bench {
            return match &target.idle_limit {
                Some(_) => Err(("idle-limit", "is for measure = \"check\"".to_owned())),
                None => Ok(()),
            };
        }
        let name = &target.name;
        let wrong = |error: CheckTargetError| ("target", format!("{name}: {error}"));
        let budget = target.budget().map_err(wrong)?;
        let share = self.requests_per_delivery(target);
        if share < u64::from(budget) {
            let least = self.len_of(target) * u64::from(self.limits.deliveries) * u64::from(budget);
            return Err((
                "limits.requests",
                format!(
                    "a check of {name} sends up to {budget} requests; with {} checks, each delivered up to {} times, that takes {least}",
                    self.len_of(target),
                    self.limits.deliveries
                ),
            ));
        }
        let idle = target.idle_limit().map_err(|error| wrong(error.into()))?;
        let asking = Duration::try_from_secs_f64(f64::from(budget) / self.rate_of_worker());
        let longest = asking
            .unwrap_or(Duration::MAX)
            .saturating_add(idle + idle.min(RACE) + CARD);
        if Duration::from_millis(self.slice_ms) < longest {
            return Err((
                "slice",
                format!(
                    "a check of {name} may take {} s, which is how long its worker holds the message: make `duration` and `slice` as long, or `idle-limit` shorter (0 leaves it out)",
                    longest.as_secs_f64().ceil()
                ),
            ));
        }
        Ok(())
    }
}
