//! The probes, one file each, and the order in which they run. Each fills its part of the card.

mod contact;
mod drain;
mod idle;
mod idle_under_load;
mod max_age;
mod methods;
mod names;
mod old_versions;
mod packets;
mod race;
mod request_limit;
mod state;
mod tls;
mod versions;
mod waterfall;

pub(crate) use drain::most_requests;
pub use packets::Packets;

use crate::budget::{Budget, Part};
use crate::capture::Capture;
use crate::config::{Config, ConfigError, ExtraRequest};
use crate::line::Line;
use crate::plans::Plans;
use crate::prober::{Prober, StopReason};
use crate::server_process::ServerProcess;
use intact_client::{CONNECTION_FIELDS, Clock, RequestSpec};
use intact_ledger::server_profile::{ServerProfile, Skipped};
use intact_ledger::{Event, Method, Protocol};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// Why probes do not run after the time is over.
const OUT_OF_TIME: &str = "the limit of the whole check was reached (--max-time)";

/// The body of a request that the person named, by a method that is known for one.
const EXTRA_BODY: &str = "{}";

/// What a check is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeKind {
    /// Looking the name up.
    Names,
    /// The first request.
    Contact,
    /// HTTP and TLS versions.
    Versions,
    /// Fresh connections against reused ones.
    Waterfall,
    /// Handshake, tickets, resumption, early data.
    Tls,
    /// Other methods.
    Methods,
    /// The packets of one exchange of each version.
    Packets,
    /// Requests on one connection.
    Requests,
    /// Idle limits.
    Idle,
    /// Requests around the idle limit.
    Race,
    /// The idle limit while other connections idle too.
    Held,
    /// A connection that is used now and then.
    Age,
    /// The end of the server's process.
    Drain,
}

impl ProbeKind {
    /// All of them, in order.
    pub const ALL: [ProbeKind; 13] = [
        ProbeKind::Names,
        ProbeKind::Contact,
        ProbeKind::Versions,
        ProbeKind::Waterfall,
        ProbeKind::Tls,
        ProbeKind::Methods,
        ProbeKind::Packets,
        ProbeKind::Requests,
        ProbeKind::Idle,
        ProbeKind::Race,
        ProbeKind::Held,
        ProbeKind::Age,
        ProbeKind::Drain,
    ];

    /// What a person reads.
    pub fn name(self) -> &'static str {
        match self {
            ProbeKind::Names => "names",
            ProbeKind::Contact => "first request",
            ProbeKind::Versions => "versions",
            ProbeKind::Waterfall => "fresh against reused",
            ProbeKind::Tls => "TLS",
            ProbeKind::Methods => "methods",
            ProbeKind::Packets => "packets",
            ProbeKind::Requests => "requests per connection",
            ProbeKind::Idle => "idle limits",
            ProbeKind::Race => "race at the idle limit",
            ProbeKind::Held => "idle limit next to others",
            ProbeKind::Age => "maximum age",
            ProbeKind::Drain => "drain",
        }
    }

    /// The part of the budget that it spends.
    fn part(self) -> Part {
        match self {
            ProbeKind::Requests => Part::Cap,
            ProbeKind::Idle | ProbeKind::Race | ProbeKind::Held | ProbeKind::Age => Part::Idle,
            ProbeKind::Drain => Part::Drain,
            _ => Part::Card,
        }
    }

    /// Whether it belongs to a check of this kind; what does not is no gap in the card.
    fn is_asked_for(self, bench: &ProbeContext<'_>) -> bool {
        let config = bench.config;
        if config.drain.is_some() {
            return matches!(self, ProbeKind::Contact | ProbeKind::Drain);
        }
        match self {
            ProbeKind::Drain => false,
            ProbeKind::Packets => bench.capture.is_some(),
            ProbeKind::Held => config.hold > 0,
            ProbeKind::Age => config.thorough,
            _ => true,
        }
    }
}

/// Hears what happens while a check runs, and says when to stop.
pub trait CheckProgress {
    /// Something happened on the wire.
    fn event(&mut self, event: Event<'_>);
    /// The next probe begins; the card holds what the earlier ones found.
    fn stage(&mut self, stage: ProbeKind, card: &ServerProfile);
    /// Packets were captured, which is done only where [`Check::run`] was given the means.
    fn packets(&mut self, packets: &Packets) {
        let _ = packets;
    }
    /// So long is still to be waited, at most.
    fn waiting(&mut self, left: Duration);
    /// Whether to stop now and keep what is there.
    fn stopped(&self) -> bool;
}

/// Why a check could not be run.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// What was asked cannot be done.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The event loop does not work.
    #[error("the event loop: {0}")]
    Loop(#[from] io::Error),
    /// The server's process cannot be signalled or observed.
    #[error("the server's command: {0}")]
    Server(#[source] io::Error),
}

/// A check, ready to run.
#[derive(Debug)]
pub struct Check {
    config: Config,
    budget: Budget,
}

impl Check {
    /// Checks a configuration.
    pub fn new(config: Config) -> Result<Check, ConfigError> {
        Plans::new(&config)?.plan(Protocol::Http11, None, false)?;
        request_of(&config)?;
        let budget = Budget::of(&config);
        Ok(Check { config, budget })
    }

    /// What it will send at most.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// What was asked for.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The longest that all of it may take, but for the watching of idle connections.
    fn time_limit(&self) -> Duration {
        let config = &self.config;
        // one request, and the pace that was asked for, fit in any case
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

    /// Runs the probes. What they found until the observer wanted to stop is in the card. With a capture, packets of one exchange
    /// of each version go to the observer too.
    pub fn run(
        &self,
        clock: Clock,
        capture: Option<Capture>,
        observer: &mut dyn CheckProgress,
    ) -> Result<ServerProfile, CheckError> {
        self.run_with(clock, capture, None, observer)
    }

    /// Measures the end of a server's process, by [`Config::drain`]. The process listens already.
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
        let mut bench = ProbeContext {
            config: &self.config,
            plans,
            request,
            caller: Prober::new(clock, self.config.timeout, self.budget, observer)?
                .at_most(self.config.requests_per_s)
                .within(self.time_limit()),
            card: ServerProfile::default(),
            http: self.config.http.unwrap_or(Protocol::Http11),
            peer: None,
            capture,
            server,
        };
        let mut halted: Option<&'static str> = None;
        for stage in ProbeKind::ALL {
            if !stage.is_asked_for(&bench) {
                continue;
            }
            let ProbeContext { caller, card, .. } = &mut bench;
            card.requests_sent = caller.budget.spent();
            let why = halted.or_else(|| bench.reason_to_skip(stage));
            if let Some(why) = why {
                bench.skip(stage, why, halted.is_some());
                continue;
            }
            let ProbeContext { caller, card, .. } = &mut bench;
            caller.budget.turn_to(stage.part());
            caller.observer.stage(stage, card);
            match bench.probe(stage) {
                Ok(()) => {}
                Err(Ended::Halt(StopReason::Stopped)) => halted = Some("stopped"),
                Err(Ended::Halt(StopReason::OutOfTime)) => {
                    halted = Some(OUT_OF_TIME);
                    bench.skip(
                        stage,
                        "cut off by the limit of the whole check (--max-time)",
                        true,
                    );
                }
                Err(Ended::Halt(StopReason::Spent)) => {
                    bench.skip(stage, "the budget is spent", true);
                }
                Err(Ended::Halt(StopReason::Own(error))) => return Err(error.into()),
                Err(Ended::Halt(StopReason::Server(error))) => {
                    return Err(CheckError::Server(error));
                }
                Err(Ended::Config(error)) => return Err(error.into()),
            }
        }
        bench.card.requests_sent = bench.caller.budget.spent();
        Ok(bench.card)
    }
}

/// Why a probe did not come to its end.
pub(crate) enum Ended {
    Halt(StopReason),
    Config(ConfigError),
}

impl From<StopReason> for Ended {
    fn from(halt: StopReason) -> Ended {
        Ended::Halt(halt)
    }
}

impl From<ConfigError> for Ended {
    fn from(error: ConfigError) -> Ended {
        Ended::Config(error)
    }
}

/// What a probe works with.
pub(crate) struct ProbeContext<'a> {
    config: &'a Config,
    plans: Plans<'a>,
    /// What is asked, wherever nothing else is said.
    request: RequestSpec,
    caller: Prober<'a>,
    card: ServerProfile,
    /// The version for probes that use only one.
    http: Protocol,
    /// The address that answered the first request.
    peer: Option<SocketAddr>,
    /// Until packets were captured.
    capture: Option<Capture>,
    /// Until its end was measured.
    server: Option<&'a mut dyn ServerProcess>,
}

impl ProbeContext<'_> {
    fn probe(&mut self, stage: ProbeKind) -> Result<(), Ended> {
        match stage {
            ProbeKind::Names => names::probe(self),
            ProbeKind::Contact => contact::probe(self),
            ProbeKind::Versions => {
                versions::probe(self)?;
                old_versions::probe(self)
            }
            ProbeKind::Waterfall => waterfall::probe(self),
            ProbeKind::Tls => tls::probe(self),
            ProbeKind::Methods => methods::probe(self),
            ProbeKind::Packets => packets::probe(self),
            ProbeKind::Requests => request_limit::probe(self),
            ProbeKind::Idle => idle::probe(self),
            ProbeKind::Race => race::probe(self),
            ProbeKind::Held => idle_under_load::probe(self),
            ProbeKind::Age => max_age::probe(self),
            ProbeKind::Drain => drain::probe(self),
        }
    }

    /// Why a probe makes no sense here, or was not asked for.
    fn reason_to_skip(&self, stage: ProbeKind) -> Option<&'static str> {
        if matches!(stage, ProbeKind::Names | ProbeKind::Contact) {
            return None;
        }
        let answered = self
            .card
            .contact
            .as_ref()
            .is_some_and(|contact| contact.outcome.is_ok());
        if !answered {
            return Some("the first request failed");
        }
        match stage {
            ProbeKind::Tls if !self.plans.is_secure() => Some("no TLS"),
            ProbeKind::Idle | ProbeKind::Race | ProbeKind::Held | ProbeKind::Age
                if !self.config.idle =>
            {
                Some("--no-idle")
            }
            ProbeKind::Packets => packets::reason_to_skip(self),
            ProbeKind::Race => race::reason_to_skip(self),
            _ => None,
        }
    }

    fn skip(&mut self, stage: ProbeKind, why: &str, cut_off: bool) {
        self.card.skipped.push(Skipped {
            probe: stage.name().to_owned(),
            why: why.to_owned(),
            cut_off,
        });
    }

    /// What is asked where connections are to be kept: with `Connection: keep-alive`, which HTTP/1.0 needs, many HTTP/1.1 clients
    /// send, and some servers announce their limits to only then (Apache, Tomcat).
    fn keeping_request(&self) -> RequestSpec {
        self.light_request().saying("keep-alive")
    }

    /// What is asked where the person named a request.
    fn extra_request(&self, tried: &ExtraRequest) -> RequestSpec {
        let request = self.request.by(tried.method.clone()).at(&tried.path);
        let request = match tried.method.as_str() {
            "POST" | "PUT" | "PATCH" => request.carrying(EXTRA_BODY),
            _ => request,
        };
        request.saying("keep-alive")
    }

    /// What is asked where the body does not matter.
    fn light_request(&self) -> RequestSpec {
        let by_head = self
            .card
            .contact
            .as_ref()
            .is_some_and(|contact| contact.by_head);
        if by_head {
            self.request.by(Method::HEAD)
        } else {
            self.request.clone()
        }
    }
}

/// The request that a configuration asks for.
fn request_of(config: &Config) -> Result<RequestSpec, ConfigError> {
    let refuse = |name: &str| match name {
        "content-length" => Some("the body, where there is one, is ours"),
        name if CONNECTION_FIELDS.contains(&name) => {
            Some("what is said about the connection is what is measured here")
        }
        _ => None,
    };
    let (address, method) = (&config.address, config.method.clone());
    let spec = RequestSpec::new(address, method, &config.user_agent, &config.headers, refuse)?;
    Ok(spec)
}

fn close_all(bench: &mut ProbeContext<'_>, lines: &mut Vec<Line>) {
    for line in lines.drain(..) {
        bench.caller.close(line);
    }
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
