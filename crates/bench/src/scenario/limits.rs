//! What a scenario may send: the amount that a remote server gets by default, an end for every run,
//! and places for clients. Must not run anything.

use super::error::ScenarioConfigError;
use super::script::picked;
use crate::config::{Config, ConfigError};
use crate::default_length::{REMOTE_OPENING_PER_S, REMOTE_REQUESTS};
use crate::machine;
use crate::validation::OTHER_DESCRIPTORS;
use intact_experiment::Arrivals;
use intact_scenario::Plan;
use std::time::Duration;

/// Clients at once where none arrive by phases.
const CLOSED_CLIENTS: u32 = 10;
/// Clients at once, at the most, where they arrive by phases.
const OPEN_CLIENTS: u32 = 10_000;

/// How many clients there are, and when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    /// How the arrivals of a phase are spaced.
    pub spacing: Arrivals,
    /// Clients in all; absent: as many as the phases or the time have.
    pub clients: Option<u64>,
    /// How long clients arrive, at the most.
    pub time: Option<Duration>,
    /// Clients at once; absent: 10, or at most 10,000 where they arrive by phases.
    pub at_once: Option<u32>,
}

/// Limits what a remote server gets by default: requests in all, and new connections a second.
pub(super) fn keep_polite(
    config: &mut Config,
    plan: &Plan,
    arrival: &mut Arrival,
) -> Result<(), ScenarioConfigError> {
    if arrival.clients.is_some() || arrival.time.is_some() {
        return Ok(());
    }
    let refuse = |words: String| Err(ConfigError::value("--scenario", words).into());
    let most = match plan.most_requests() {
        None => {
            return refuse(format!(
                "a session repeats without an end, and a remote server gets {REMOTE_REQUESTS} requests by default; set the time with -z"
            ));
        }
        Some(most) if most > REMOTE_REQUESTS => {
            return refuse(format!(
                "one client sends up to {most} requests, more than the {REMOTE_REQUESTS} allowed by default for a remote server; set the number of clients with -n, or the time with -z"
            ));
        }
        Some(most) => most.max(1),
    };
    arrival.clients = Some(REMOTE_REQUESTS / most);
    config.opening_per_s = Some(REMOTE_OPENING_PER_S);
    Ok(())
}

/// Refuses a session without an end in a run without one.
pub(super) fn check_ends(
    plan: &Plan,
    file: &str,
    arrival: &Arrival,
) -> Result<(), ScenarioConfigError> {
    if !plan.phases.is_empty() || arrival.time.is_some() {
        return Ok(());
    }
    let endless = picked(plan).find(|session| session.requests().is_none());
    endless.map_or(Ok(()), |session| {
        let words = format!(
            "the session {:?} repeats without an end, and there are no arrival phases: set the time with -z",
            session.name
        );
        Err(ScenarioConfigError::at(file, session.line, words))
    })
}

/// Clients at once, as asked or by default; as many as there may be descriptors for.
pub(super) fn clients_at_once(plan: &Plan, arrival: &Arrival) -> Result<u32, ConfigError> {
    let is_open = !plan.phases.is_empty();
    let most = arrival.at_once.unwrap_or(match is_open {
        true => OPEN_CLIENTS,
        false => {
            let all = arrival.clients.unwrap_or(u64::MAX);
            all.min(CLOSED_CLIENTS.into()) as u32
        }
    });
    if most == 0 {
        return Err(ConfigError::value("-c", "has to be at least 1"));
    }
    let needed = u64::from(most) + OTHER_DESCRIPTORS;
    match machine::allow_descriptors(needed) {
        Ok(()) => Ok(most),
        // the default is no demand
        Err(allowed) if arrival.at_once.is_none() && allowed > OTHER_DESCRIPTORS => {
            Ok((allowed - OTHER_DESCRIPTORS) as u32)
        }
        Err(allowed) => Err(ConfigError::Descriptors {
            connections: most.into(),
            needed,
            allowed,
        }),
    }
}
