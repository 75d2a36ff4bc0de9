//! Which back end the engine uses: readiness (epoll), or completions (io_uring) where Linux allows
//! it.

use crate::config::{ConfigError, IoChoice};
use crate::engine::{IoBackend, LEAST_IN_FLIGHT, Pauses};
use crate::variant_plan::VariantPlan;
use intact_ledger::{EngineIo, Protocol};
use std::sync::Arc;

/// io_uring was named, and is not to be had.
#[derive(Debug, thiserror::Error)]
#[error("--io uring: {reason}; use --io auto or --io epoll")]
pub struct IoUnavailable {
    reason: String,
}

/// The back end of a choice for these variants, and its record for the run.
pub(crate) fn choose(
    choice: IoChoice,
    variant_plans: &[Arc<VariantPlan>],
    threads: u32,
) -> Result<(IoBackend, EngineIo), IoUnavailable> {
    let readiness = |reason| Ok((IoBackend::Readiness, readiness(reason)));
    let has_quic = |one: &Arc<VariantPlan>| one.plan.protocol == Protocol::Http3;
    let uring = match choice {
        IoChoice::Epoll => return readiness(None),
        // the variants of a run are compared, so all have the same back end
        IoChoice::Auto if variant_plans.iter().any(has_quic) => {
            return readiness(Some(NO_QUIC));
        }
        IoChoice::Auto if !pays(variant_plans, threads) => {
            return readiness(Some(NO_GAIN));
        }
        IoChoice::Auto | IoChoice::Uring => uring(),
    };
    match (uring, choice) {
        (Err(reason), IoChoice::Uring) => Err(IoUnavailable { reason }),
        (Err(reason), _) => readiness(Some(&reason)),
        (Ok((_, false)), IoChoice::Auto) => readiness(Some(NO_BATCH)),
        (Ok((uring, _)), _) => {
            let record = EngineIo {
                backend: "io_uring".to_owned(),
                reason: None,
            };
            Ok((uring, record))
        }
    }
}

/// The record of the readiness of this system.
fn readiness(reason: Option<&str>) -> EngineIo {
    EngineIo {
        backend: READINESS.to_owned(),
        reason: reason.map(str::to_owned),
    }
}

/// The record of a scenario's back end, which is the readiness: connections are added while the
/// clients run.
pub(crate) fn of_scenario(choice: IoChoice) -> EngineIo {
    readiness(match choice {
        IoChoice::Auto => Some(NO_SCENARIO),
        IoChoice::Epoll | IoChoice::Uring => None,
    })
}

/// Refuses io_uring by name for a scenario.
pub(crate) fn check_scenario(choice: IoChoice) -> Result<(), ConfigError> {
    match choice {
        IoChoice::Uring => Err(refusal(NO_SCENARIO)),
        IoChoice::Auto | IoChoice::Epoll => Ok(()),
    }
}

/// Refuses io_uring by name where a variant speaks HTTP/3.
pub(crate) fn check_protocols(choice: IoChoice, http: &[Protocol]) -> Result<(), ConfigError> {
    match choice {
        IoChoice::Uring if http.contains(&Protocol::Http3) => Err(refusal(NO_QUIC)),
        IoChoice::Auto | IoChoice::Epoll | IoChoice::Uring => Ok(()),
    }
}

fn refusal(reason: &str) -> ConfigError {
    ConfigError::value(
        "--io uring",
        format!("{reason}; use --io auto or --io epoll"),
    )
}

/// Why `auto` does not use io_uring.
const NO_QUIC: &str = "io_uring receives from streams here, and HTTP/3 uses UDP";
const NO_SCENARIO: &str =
    "a scenario adds connections while it runs, which the io_uring back end does not support";
const NO_GAIN: &str = "io_uring needs less CPU time only if it gathers the responses of many kept connections: from -c 32 to -c 1000 per thread, in a closed loop, without --coalesce off";
const NO_BATCH: &str = "io_uring counts responses in a wait from Linux 6.12 on";

/// More connections of a thread run out of receive buffers, and each receive that pauses costs more
/// than it saves.
const MOST_IN_FLIGHT: u64 = 1_000;

/// Whether io_uring was measured to need less CPU time for one of the variants, and not much more
/// for any (docs/internals/engine.md): only where it waits for responses of several connections.
/// With several streams epoll needs less. With a connection per request it depends on the machine:
/// from 0.92 of the time on epoll to 1.30.
fn pays(variant_plans: &[Arc<VariantPlan>], threads: u32) -> bool {
    let each =
        |variant_plan: &VariantPlan| variant_plan.concurrency as u64 / u64::from(threads.max(1));
    let gains = |variant_plan: &VariantPlan| {
        let gathers = match variant_plan.gather {
            Some(Pauses::Short) => true,
            Some(Pauses::Long) => variant_plan.streams == 1,
            None => false,
        };
        gathers && each(variant_plan) >= LEAST_IN_FLIGHT
    };
    variant_plans.iter().any(|one| gains(one))
        && variant_plans
            .iter()
            .all(|one| one.keepalive && each(one) <= MOST_IN_FLIGHT)
}

/// The name of the readiness of this system.
const READINESS: &str = if cfg!(target_os = "linux") {
    "epoll"
} else if cfg!(unix) {
    "kqueue"
} else {
    "poll"
};

/// io_uring, and whether a pause for a batch ends when the batch is complete; or why there is none
/// here.
#[cfg(target_os = "linux")]
fn uring() -> Result<(IoBackend, bool), String> {
    let counts = intact_sys::uring::Ring::check().map_err(|reason| reason.to_string())?;
    Ok((IoBackend::Uring, counts))
}

/// Only Linux has it.
#[cfg(not(target_os = "linux"))]
fn uring() -> Result<(IoBackend, bool), String> {
    Err("only Linux has io_uring".to_owned())
}
