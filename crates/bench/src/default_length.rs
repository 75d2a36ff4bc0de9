//! How long a bench measures by default: a few seconds on this machine, a few requests elsewhere.
//! Must not choose the rounds of a bench on this machine: those follow from its length.

use crate::config::{Config, ConfigError, Length};
use std::time::Duration;

/// Requests that a remote server gets by default, preflight and warm-up included.
pub(crate) const REMOTE_REQUESTS: u64 = 200;
/// New connections a second that a remote server gets by default.
pub(crate) const REMOTE_OPENING_PER_S: f64 = 10.0;
/// Rounds at a remote server, if the requests suffice for this number.
const REMOTE_ROUNDS: u32 = 20;
/// The least rounds that give an interval.
const INTERVAL_ROUNDS: u64 = 8;
/// Requests of each connection in a round with pauses between them.
const PAUSED_REQUESTS: u64 = 2;
/// The least time of a variant.
const LEAST_TIME: Duration = Duration::from_secs(1);

impl Config {
    /// Sets the length of a bench that names neither requests nor time. On this machine all
    /// variants share `local`. A remote server gets at most 200 requests and 10 new connections
    /// a second. `is_ours`: the target is the built-in server.
    pub fn set_default_length(
        &mut self,
        is_ours: bool,
        local: Duration,
    ) -> Result<(), ConfigError> {
        let variants = self.axes.choices().len().max(1) as u64;
        if (is_ours || self.is_local()?) && !self.axes.connection.idle.is_empty() {
            // a share of a time would be shorter than the pauses
            let most = self.axes.concurrency.iter().max().copied().unwrap_or(1);
            self.rounds = Some(self.rounds.unwrap_or(INTERVAL_ROUNDS as u32));
            let rounds = u64::from(self.rounds.unwrap_or(1));
            self.length = Length::Exchanges(PAUSED_REQUESTS * rounds * u64::from(most));
            return Ok(());
        }
        if is_ours || self.is_local()? {
            self.length = Length::Time((local / variants as u32).max(LEAST_TIME));
            return Ok(());
        }
        self.opening_per_s = Some(REMOTE_OPENING_PER_S);
        let concurrency = *self.axes.concurrency.iter().max().unwrap_or(&1);
        // a preflight for each variant, and a warm-up request on each connection of a round
        let left = |rounds: u64| {
            (REMOTE_REQUESTS / variants).checked_sub(1 + u64::from(concurrency) * rounds)
        };
        let rounds = u64::from(self.rounds.unwrap_or(REMOTE_ROUNDS));
        let (rounds, requests) = [rounds, rounds.min(INTERVAL_ROUNDS), 1]
            .into_iter()
            .filter_map(|rounds| Some((rounds, left(rounds)?)))
            .find(|(rounds, requests)| requests >= rounds)
            .ok_or(ConfigError::DefaultBudget {
                variants,
                concurrency,
                requests: REMOTE_REQUESTS,
            })?;
        self.rounds = Some(rounds as u32);
        self.length = Length::Exchanges(requests);
        Ok(())
    }
}
