//! What is checked of a configuration before a bench sends anything, and the rounds that its length allows.

use crate::config::{Config, ConfigError, Length};
use crate::machine;
use intact_experiment::{AxisValues, TlsChoice};
use intact_ledger::Protocol;

/// Rounds when nothing else is said.
const ROUNDS: u32 = 20;
/// Descriptors that are not connections.
const OTHER_DESCRIPTORS: u64 = 64;

/// Rounds: as asked, or 20, or as many as leave two exchanges for each place in each round.
pub(crate) fn rounds_for(config: &Config, choices: &[AxisValues]) -> u32 {
    if let Some(rounds) = config.rounds {
        return rounds;
    }
    let Length::Exchanges(exchanges) = config.length else {
        return ROUNDS;
    };
    let places = choices
        .iter()
        .map(|choice| u64::from(choice.concurrency) * u64::from(choice.streams))
        .max()
        .unwrap_or(1);
    (exchanges / (2 * places)).clamp(1, u64::from(ROUNDS)) as u32
}

/// Refuses options that no variant can use. One that some variants can use applies to those; the others run once.
fn check_axes(config: &Config) -> Result<(), ConfigError> {
    let refuse = |option, reason: &str| {
        Err(ConfigError::Value {
            option,
            reason: reason.to_owned(),
        })
    };
    let axes = &config.axes;
    if !axes.http.contains(&Protocol::Http2) && axes.streams != [1] {
        return refuse(
            "--streams",
            "only HTTP/2 has streams, and no variant speaks it; add --http 2",
        );
    }
    if axes.tls.iter().all(|&tls| tls == TlsChoice::None) && axes.resume != [false] {
        return refuse(
            "--resume",
            "plain HTTP has no TLS session to resume; name an https:// URL, or add --tls",
        );
    }
    Ok(())
}

/// Refuses values that make no sense, options without effect, and more connections than descriptors.
pub(crate) fn check(config: &Config, choices: &[AxisValues]) -> Result<(), ConfigError> {
    check_axes(config)?;
    let positive = |option, value: u64| {
        if value > 0 {
            return Ok(());
        }
        Err(ConfigError::Value {
            option,
            reason: "has to be at least 1".to_owned(),
        })
    };
    for choice in choices {
        positive("-c", u64::from(choice.concurrency))?;
        positive("--streams", u64::from(choice.streams))?;
    }
    positive("--threads", u64::from(config.threads))?;
    positive("--rounds", u64::from(config.rounds.unwrap_or(1)))?;
    match config.length {
        Length::Exchanges(exchanges) => positive("-n", exchanges)?,
        Length::Time(time) => positive("-z", time.as_nanos() as u64)?,
    }
    positive("--timeout", config.timeout.as_nanos() as u64)?;
    let connections = choices
        .iter()
        .map(|choice| u64::from(choice.concurrency))
        .max()
        .unwrap_or(1);
    let needed = connections + OTHER_DESCRIPTORS;
    machine::allow_descriptors(needed).map_err(|allowed| ConfigError::Descriptors {
        connections,
        needed,
        allowed,
    })
}
