//! What is checked of the axes about the life of connections: each has to have an effect in at
//! least one variant.

use crate::config::{Config, ConfigError, Length};
use intact_client::{TcpEnd, check_congestion, check_fast_open};
use intact_experiment::{AxisRow, AxisValues, CacheUse, Period};
use std::time::Duration;

type Checked = Result<(), ConfigError>;

fn refuse(option: &'static str, reason: impl Into<String>) -> Checked {
    Err(ConfigError::value(option, reason))
}

/// Refuses axes that no variant can use, values that never act, and what this machine does not
/// have.
pub(crate) fn check(config: &Config, choices: &[AxisValues], rounds: u32) -> Checked {
    check_meaning(config, choices)?;
    check_limits(config, choices, rounds)?;
    check_pauses(config, choices, rounds)?;
    check_heartbeats(config, choices)?;
    check_cache(config)?;
    if config.axes.connection.as_grpc.contains(&true) && config.call.is_none() {
        let words = "only the built-in server has a method with the content of /; leave the URL and the options of the request out";
        return refuse("--as-grpc", words);
    }
    check_machine(config)
}

/// Refuses axes that have no meaning in any variant.
fn check_meaning(config: &Config, choices: &[AxisValues]) -> Checked {
    let given = config.axes.connection.given();
    let given: Vec<&AxisRow> = given
        .filter(|(_, values)| *values > 0)
        .map(|(axis, _)| axis)
        .collect();
    for axis in &given {
        let has_meaning = |one: &AxisValues| axis.meaning.includes(one.keepalive, one.http);
        if !choices.iter().any(has_meaning) {
            return refuse(axis.option, axis.meaning.missing());
        }
    }
    let mut of_tcp = given.iter().filter(|axis| axis.meaning.is_of_tcp());
    match of_tcp.next() {
        Some(axis) if config.unix_socket.is_some() => refuse(
            axis.option,
            "a Unix socket has no TCP; leave one of them out",
        ),
        _ => Ok(()),
    }
}

/// Refuses limits that no connection reaches in a round: every round opens its own connections.
fn check_limits(config: &Config, choices: &[AxisValues], rounds: u32) -> Checked {
    let rounds = u64::from(rounds.max(1));
    for one in choices {
        let limit = one
            .connection
            .most_requests()
            .map(|most| u64::from(most.get()));
        if let (Some(limit), Length::Exchanges(exchanges)) = (limit, config.length) {
            // the first on each connection is warm-up
            let most = exchanges.div_ceil(rounds * u64::from(one.concurrency.max(1))) + 1;
            if limit >= most {
                return refuse(
                    "--reuse",
                    format!(
                        "a connection carries at most {most} requests in each of {rounds} rounds, so a limit of {limit} has no effect; raise -n or lower --rounds"
                    ),
                );
            }
        }
        let age = one.connection.max_age.and_then(Period::time);
        if age.is_some_and(|age| age.is_zero()) {
            return refuse(
                "--max-age",
                "has to be longer than 0; --reuse 1 closes after each request",
            );
        }
        if let (Some(age), Length::Time(time)) = (age, config.length) {
            let round = time / rounds as u32;
            if age >= round {
                return refuse(
                    "--max-age",
                    format!(
                        "each of {rounds} rounds lasts {round:?} and opens its own connections, so none gets {age:?} old; raise -z or lower --rounds"
                    ),
                );
            }
        }
    }
    Ok(())
}

/// Refuses pauses that another setting contradicts.
fn check_pauses(config: &Config, choices: &[AxisValues], rounds: u32) -> Checked {
    let Some(longest) = config.axes.connection.idle.iter().max().copied() else {
        return Ok(());
    };
    if !config.axes.load.rate.is_empty() {
        return refuse(
            "--idle",
            "in an open loop the schedule decides when requests are due; leave out --rate or --ramp",
        );
    }
    if choices.iter().any(|one| one.streams > 1) {
        return refuse(
            "--idle",
            "with several streams a connection does not idle between its requests; leave out --streams",
        );
    }
    if let Length::Time(time) = config.length {
        let round = time / rounds.max(1);
        if longest >= round {
            return refuse(
                "--idle",
                format!(
                    "each of {rounds} rounds lasts {round:?}, no longer than the pause of {longest:?}; raise -z, lower --rounds, or set -n"
                ),
            );
        }
    }
    Ok(())
}

/// Refuses probes and PINGs that are never sent because no connection idles that long.
fn check_heartbeats(config: &Config, choices: &[AxisValues]) -> Checked {
    let is_open_loop = !config.axes.load.rate.is_empty();
    for one in choices {
        let life = &one.connection;
        let idles_for = life.idle.unwrap_or(Duration::ZERO);
        let beats = [
            ("--tcp-keepalive", life.tcp_keepalive),
            ("--ping", life.ping),
        ];
        for (option, beat) in beats {
            let Some(time) = beat.and_then(Period::time) else {
                continue;
            };
            if time.is_zero() || option == "--tcp-keepalive" && time.subsec_nanos() != 0 {
                return refuse(
                    option,
                    "the kernel and HTTP/2 need a time above 0, TCP in whole seconds",
                );
            }
            let idles = config.axes.connection.idle.iter().any(|idle| *idle > time);
            if !is_open_loop && !idles && idles_for <= time {
                return refuse(
                    option,
                    format!(
                        "no connection idles for longer than {time:?}, so nothing would be sent; add a longer pause, --idle {:?}",
                        time * 3
                    ),
                );
            }
        }
    }
    Ok(())
}

/// Refuses revalidation of what a cache does not answer, and of a request that has an entity tag of
/// its own.
fn check_cache(config: &Config) -> Checked {
    let given = &config.axes.connection.cache;
    if !given.contains(&CacheUse::Revalidate) {
        return Ok(());
    }
    if !matches!(config.method.as_str(), "GET" | "HEAD") {
        return refuse(
            "--cache",
            format!(
                "a cache revalidates GET and HEAD, not {} (RFC 9110 section 13.1.2); leave it out",
                config.method
            ),
        );
    }
    if let Some(expect) = config.expect.filter(|expect| !expect.allows(304)) {
        let words = format!("--expect {expect} makes each 304 a failure; leave one of them out");
        return refuse("--cache", words);
    }
    let fields = config.headers.iter().filter_map(|one| one.split_once(':'));
    let conditions = ["if-none-match", "if-modified-since", "range"];
    for (name, _) in fields {
        if conditions.contains(&name.trim().to_ascii_lowercase().as_str()) {
            let words = format!("-H {name} decides about the body already; leave one of them out");
            return refuse("--cache", words);
        }
    }
    Ok(())
}

/// Refuses what the kernel does not have, or does not allow.
fn check_machine(config: &Config) -> Checked {
    let given = &config.axes.connection;
    if given.fast_open.contains(&true) {
        check_fast_open(TcpEnd::Client).map_err(|source| ConfigError::Socket {
            option: "--tcp-fastopen",
            source,
        })?;
    }
    for name in &given.congestion {
        check_congestion(name).map_err(|source| ConfigError::Socket {
            option: "--congestion",
            source,
        })?;
    }
    Ok(())
}
