//! Targets that are checked: the configuration, the budget and the duration of each check.

use super::{Kind, Plan, Target};
use intact_check::{Check, Config, ConfigError};
use intact_units::duration::{self, DurationError};
use std::time::Duration;

/// Default limit of the idle time that is measured.
const IDLE_LIMIT: Duration = Duration::from_secs(90);
/// A race is run at idle limits up to this value, and takes as long again.
const RACE: Duration = Duration::from_secs(30);
/// Duration of the probes on a slow path.
const CARD: Duration = Duration::from_secs(30);

/// Why a target cannot be checked.
#[derive(Debug, thiserror::Error)]
pub enum CheckTargetError {
    /// `idle-limit` is no duration.
    #[error("idle-limit: {0}")]
    IdleLimit(#[from] DurationError),
    /// A key that applies to benches only.
    #[error("{0} is for benches: a check goes where its url leads")]
    ForBenches(&'static str),
    /// URL, header fields or roots are invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

impl Target {
    /// The check of this target, with at most this number of requests per second.
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
        config.expect = self.expect;
        config.user_agent = concat!("intact-fleet/", env!("CARGO_PKG_VERSION")).to_owned();
        config.credentials = self.credentials();
        config.route = self.route();
        config.requests_per_s = Some(requests_per_s);
        config.max_time = CARD;
        config.idle = !idle_limit.is_zero();
        config.idle_limit = idle_limit;
        Ok(Check::new(config)?)
    }

    fn idle_limit(&self) -> Result<Duration, DurationError> {
        self.idle_limit
            .as_deref()
            .map_or(Ok(IDLE_LIMIT), duration::with_unit)
    }

    /// Limit of the duration of a check: its requests at this rate, the idle limit, the race at
    /// that limit, and the probes.
    pub(super) fn longest_check(&self, requests_per_s: f64) -> Result<Duration, CheckTargetError> {
        let asking = Duration::try_from_secs_f64(f64::from(self.budget()?) / requests_per_s);
        let idle = self.idle_limit()?;
        let waiting = idle.saturating_add(idle.min(RACE)).saturating_add(CARD);
        Ok(asking.unwrap_or(Duration::MAX).saturating_add(waiting))
    }

    /// Limit of the requests of a check of this target.
    pub(super) fn budget(&self) -> Result<u32, CheckTargetError> {
        Ok(self.check(1.0)?.budget().requests())
    }
}

impl Plan {
    /// Whether the checks of a target fit into the limits of the plan; otherwise the key that is
    /// too small. `limit` is the plan's limit for a message, if it has one.
    pub(super) fn has_room_for(
        &self,
        target: &Target,
        limit: Option<Duration>,
    ) -> Result<(), (&'static str, String)> {
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
                    "a check of {name} sends up to {budget} requests; {} checks, each delivered up to {} times, need a limit of {least}",
                    self.len_of(target),
                    self.limits.deliveries
                ),
            ));
        }
        let longest = target.longest_check(self.rate_of_worker()).map_err(wrong)?;
        match limit {
            Some(limit) if limit < longest => Err((
                "slice",
                format!(
                    "a check of {name} may take {} s; raise the slice to this, or lower `idle-limit` (0 skips the wait)",
                    longest.as_secs_f64().ceil()
                ),
            )),
            _ => Ok(()),
        }
    }
}
