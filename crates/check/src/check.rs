//! Runs the probes one after the other, and keeps the results when they end early.

use crate::budget::Budget;
use crate::capture::Capture;
use crate::config::{Config, ConfigError};
use crate::context::ProbeContext;
use crate::plans::Plans;
use crate::probe;
use crate::probe_kind::ProbeKind;
use crate::prober::{Prober, StopReason};
use crate::progress::{CheckError, CheckProgress};
use crate::server_process::ServerProcess;
use intact_client::{CONNECTION_FIELDS, Clock, HAS_HTTP3, RequestSpec};
use intact_ledger::Protocol;
use intact_ledger::server_profile::ServerProfile;
use std::time::Duration;

/// Why probes are skipped after the time limit.
const OUT_OF_TIME: &str = "the limit of the whole check was reached (--max-time)";

/// Why probes are skipped after the end of the server.
const GONE: &str = "the server stopped accepting connections";

/// A check, ready to run.
#[derive(Debug)]
pub struct Check {
    config: Config,
    budget: Budget,
}

impl Check {
    /// Validates a configuration.
    pub fn new(config: Config) -> Result<Check, ConfigError> {
        let http = config.http.unwrap_or_default();
        if http == Protocol::Http3 && !HAS_HTTP3 {
            return Err(ConfigError::Http3("this build has no HTTP/3"));
        }
        Plans::new(&config)?.plan(http, None)?;
        request_of(&config)?;
        let drain = config.drain.as_ref();
        let budget = Budget::of(
            &config,
            drain.map(|drain| probe::most_requests(drain.limit)),
        );
        Ok(Check { config, budget })
    }

    /// The budget of requests.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The time limit of the check, without idle waits.
    fn time_limit(&self) -> Duration {
        let config = &self.config;
        // one request, and the configured pace, always fit
        let requests = f64::from(self.budget.requests());
        let paced = config.requests_per_s.map_or(0.0, |rate| requests / rate);
        let paced = Duration::try_from_secs_f64(paced).unwrap_or(Duration::MAX);
        let drain = config
            .drain
            .as_ref()
            .map_or(Duration::ZERO, |drain| drain.limit);
        let probes = config.max_time.max(config.timeout);
        probes.saturating_add(paced).saturating_add(drain)
    }

    /// Runs the probes. If the observer stops the check, the profile holds the results so far. With
    /// a capture, the observer also receives the packets of one exchange per version.
    pub fn run(
        &self,
        clock: Clock,
        capture: Option<Capture>,
        observer: &mut dyn CheckProgress,
    ) -> Result<ServerProfile, CheckError> {
        self.run_with(clock, capture, None, observer)
    }

    /// Measures the end of a server's process by [`Config::drain`]. The process must listen
    /// already.
    pub fn run_drain(
        &self,
        clock: Clock,
        server: &mut dyn ServerProcess,
        observer: &mut dyn CheckProgress,
    ) -> Result<ServerProfile, CheckError> {
        self.run_with(clock, None, Some(server), observer)
    }

    fn run_with<'a>(
        &'a self,
        clock: Clock,
        capture: Option<Capture>,
        server: Option<&'a mut dyn ServerProcess>,
        observer: &'a mut dyn CheckProgress,
    ) -> Result<ServerProfile, CheckError> {
        let plans = Plans::new(&self.config)?;
        let request = request_of(&self.config)?;
        let mut context = ProbeContext {
            config: &self.config,
            plans,
            request,
            prober: Prober::new(clock, self.config.timeout, self.budget, observer)?
                .at_most(self.config.requests_per_s)
                .within(self.time_limit()),
            profile: ServerProfile::default(),
            http: self.config.http.unwrap_or_default(),
            peer: None,
            capture,
            server,
        };
        let mut halted: Option<&'static str> = None;
        for stage in ProbeKind::ALL {
            if !probe::is_asked_for(stage, &context) {
                continue;
            }
            let ProbeContext {
                prober, profile, ..
            } = &mut context;
            profile.requests_sent = prober.budget.spent();
            let why = halted.or_else(|| probe::reason_to_skip(stage, &context));
            if let Some(why) = why {
                context.skip(stage, why, halted.is_some());
                continue;
            }
            let ProbeContext {
                prober, profile, ..
            } = &mut context;
            prober.budget.turn_to(probe::part(stage));
            prober.observer.stage(stage, profile);
            let done = probe::run(stage, &mut context);
            context.profile.outages.clone_from(&context.prober.outages);
            match done {
                Ok(()) if stage == ProbeKind::Contact => context.expect_listener(),
                Ok(()) => {}
                Err(StopReason::Stopped) => halted = Some("stopped"),
                Err(StopReason::OutOfTime) => {
                    halted = Some(OUT_OF_TIME);
                    context.skip(
                        stage,
                        "cut off by the limit of the whole check (--max-time)",
                        true,
                    );
                }
                Err(StopReason::Gone) => {
                    halted = Some(GONE);
                    context.skip(stage, &format!("cut off: {GONE}"), true);
                }
                Err(StopReason::Spent) => context.skip(stage, "the budget is spent", true),
                Err(StopReason::Failed(error)) => return Err(error),
            }
        }
        context.profile.requests_sent = context.prober.budget.spent();
        Ok(context.profile)
    }
}

/// The request of a configuration.
fn request_of(config: &Config) -> Result<RequestSpec, ConfigError> {
    let refuse = |name: &str| match name {
        "content-length" => Some("check sets the length of the body itself"),
        name if CONNECTION_FIELDS.contains(&name) => {
            Some("check sets fields about the connection itself, because it measures their effect")
        }
        _ => None,
    };
    let (address, method) = (&config.address, config.method.clone());
    let spec = RequestSpec::new(address, method, &config.user_agent, &config.headers, refuse)?;
    Ok(spec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_would_spoil_the_measurement_are_refused() {
        for bad in ["Connection: close", "Content-Length: 3", "no colon"] {
            let mut config = Config::new("http://h/").unwrap();
            config.headers = vec![bad.to_owned()];
            let refused = request_of(&config);
            assert!(matches!(refused, Err(ConfigError::Request(_))), "{bad:?}");
        }
    }
}
