//! What is checked of a configuration before a bench sends anything, and the rounds that its length
//! allows.

use crate::config::{Config, ConfigError, Length};
use crate::connection_checks;
use crate::io_backend;
use crate::machine;
use intact_experiment::{AxisValues, RequestRate, TlsChoice, WhenBusy};
use intact_ledger::Protocol;

/// The default number of rounds.
const ROUNDS: u32 = 20;
/// The least requests that fall due in a round of an open loop whose rounds are not set.
const LEAST_DUE: f64 = 10.0;
/// Descriptors that are not connections.
pub(crate) const OTHER_DESCRIPTORS: u64 = 64;

/// Rounds: as asked, or 20, or as many as leave two exchanges for each place in each round. An open
/// loop at one rate is not interrupted if there is nothing to compare it with.
pub(crate) fn rounds_for(config: &Config, choices: &[AxisValues]) -> u32 {
    if let Some(rounds) = config.rounds {
        return rounds;
    }
    let rates = || choices.iter().filter_map(|one| Some(one.open_loop?.rate));
    if let Some(lowest) = rates().map(RequestRate::mean).reduce(f64::min) {
        if choices.len() == 1 && !rates().any(RequestRate::is_ramp) {
            return 1;
        }
        let due = due_in(config.length, lowest);
        return (due / LEAST_DUE).clamp(1.0, f64::from(ROUNDS)) as u32;
    }
    let Length::Exchanges(exchanges) = config.length else {
        return ROUNDS;
    };
    let places = choices
        .iter()
        .map(|choice| u64::from(choice.concurrency) * u64::from(choice.streams))
        .max()
        .unwrap_or(1);
    // no places are refused later
    (exchanges / (2 * places).max(1)).clamp(1, u64::from(ROUNDS)) as u32
}

/// How many requests fall due at this mean rate.
fn due_in(length: Length, per_second: f64) -> f64 {
    match length {
        Length::Exchanges(exchanges) => exchanges as f64,
        Length::Time(time) => per_second * time.as_secs_f64(),
    }
}

/// Refuses a schedule without a request in a round, and options of an open loop that have no
/// effect.
fn check_open_loop(config: &Config, choices: &[AxisValues]) -> Result<(), ConfigError> {
    let refuse = |option, reason: String| Err(ConfigError::value(option, reason));
    let axes = &config.axes;
    if axes.load.when_busy == WhenBusy::Open && axes.keepalive.iter().all(|kept| !kept) {
        let words = "without keep-alive each request opens a connection; add --keepalive on";
        return refuse("--when-busy", words.to_owned());
    }
    let rounds = rounds_for(config, choices);
    for rate in &axes.load.rate {
        if rate.is_ramp() && matches!(config.length, Length::Exchanges(_)) {
            let words = "the rate changes over the time of the run; set it with -z";
            return refuse("--ramp", words.to_owned());
        }
        let usable = |rate: f64| rate.is_finite() && rate > 0.0;
        if !usable(rate.from) || !usable(rate.to) {
            return refuse("--rate", format!("{rate} is no rate; write 500/s"));
        }
        if due_in(config.length, rate.from.min(rate.to)) < f64::from(rounds) {
            return refuse(
                "--rate",
                format!(
                    "at {rate} less than one request falls due in each of {rounds} rounds; raise -z or lower --rounds"
                ),
            );
        }
    }
    Ok(())
}

/// Refuses options that no variant can use. One that some variants can use applies to those; the
/// others run once.
fn check_axes(config: &Config) -> Result<(), ConfigError> {
    let refuse = |option, reason: &str| Err(ConfigError::value(option, reason));
    let axes = &config.axes;
    check_http3(config)?;
    io_backend::check_protocols(config.io, &config.axes.http)?;
    if !axes.http.iter().any(|http| http.has_streams()) && axes.streams != [1] {
        return refuse(
            "--streams",
            "only HTTP/2 and HTTP/3 have streams, and no variant speaks either; add --http 2",
        );
    }
    if axes.early_data.contains(&true) {
        check_early_data(config)?;
    }
    if axes.tls.iter().all(|&tls| tls == TlsChoice::None) && axes.resume != [false] {
        return refuse(
            "--resume",
            "plain HTTP has no TLS session to resume; name an https:// URL, or add --tls",
        );
    }
    Ok(())
}

/// Refuses early data that no variant can send, and requests that a replay could execute twice.
fn check_early_data(config: &Config) -> Result<(), ConfigError> {
    let refuse = |reason: &str| Err(ConfigError::value("--early-data", reason));
    let choices = config.axes.choices();
    if choices.iter().all(|one| one.early_data.is_none()) {
        return refuse(
            "only a resumed session of TLS 1.3 sends it; add --resume on, and TLS 1.3 (--tls 1.3, an https:// URL, or --http 3)",
        );
    }
    let targets = config.targets.iter().flat_map(|one| &one.requests);
    let mut methods = targets.map(|one| &one.method).chain([&config.method]);
    if !methods.all(|method| matches!(method.as_str(), "GET" | "HEAD")) {
        return refuse("a server may execute an early request twice; use GET or HEAD");
    }
    Ok(())
}

/// Refuses HTTP/3 where it cannot be spoken: without TLS 1.3, and through what carries no UDP.
fn check_http3(config: &Config) -> Result<(), ConfigError> {
    let axes = &config.axes;
    if !axes.http.contains(&Protocol::Http3) {
        return Ok(());
    }
    let refuse = |option, reason: &str| Err(ConfigError::value(option, reason));
    let has_quic = |one: &AxisValues| one.http == Protocol::Http3;
    if !intact_client::HAS_HTTP3 {
        return refuse(
            "--http 3",
            "this build was made without it; cargo build --release --features http3 has it",
        );
    }
    if !axes.choices().iter().any(has_quic) {
        return refuse(
            "--http 3",
            "HTTP/3 contains TLS 1.3; name an https:// URL, or add --tls 1.3",
        );
    }
    if config.proxy.is_some() {
        return refuse("--proxy", "no HTTP proxy carries UDP; leave out --http 3");
    }
    if config.unix_socket.is_some() {
        return refuse("--unix-socket", "it carries no UDP; leave out --http 3");
    }
    Ok(())
}

/// Refuses values that make no sense, options without effect, and more connections than
/// descriptors.
pub(crate) fn check(config: &Config, choices: &[AxisValues]) -> Result<(), ConfigError> {
    check_axes(config)?;
    check_open_loop(config, choices)?;
    connection_checks::check(config, choices, rounds_for(config, choices))?;
    let positive = |option, value: u64| match value {
        0 => Err(ConfigError::value(option, "has to be at least 1")),
        _ => Ok(()),
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
        .map(AxisValues::connections)
        .max()
        .unwrap_or(1);
    let needed = connections + OTHER_DESCRIPTORS;
    machine::allow_descriptors(needed).map_err(|allowed| ConfigError::Descriptors {
        connections,
        needed,
        allowed,
    })
}
