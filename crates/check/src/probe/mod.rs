//! The probes, one file each, and their order. Each fills its part of the server profile.

mod contact;
mod drain;
mod http3;
mod idle;
mod idle_under_load;
mod max_age;
mod methods;
mod names;
mod next_request;
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
use crate::prober::{Opened, Probed, Prober, StopReason};
use crate::server_process::ServerProcess;
use intact_client::{CONNECTION_FIELDS, Clock, HAS_HTTP3, RequestSpec};
use intact_ledger::server_profile::{ServerProfile, Skipped};
use intact_ledger::{Event, Method, Protocol, TlsVersion, kinds};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// Why probes are skipped after the time limit.
const OUT_OF_TIME: &str = "the limit of the whole check was reached (--max-time)";

/// A process that ends closes its connections before its listener, or after it. A dial in between
/// is accepted and then reset.
const ENDING: Duration = Duration::from_millis(100);

/// Why probes are skipped after the end of the server.
const GONE: &str = "the server stopped accepting connections";

/// The body of an additional request whose method has a body.
const EXTRA_BODY: &str = "{}";

kinds! {
    /// A stage of a check.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ProbeKind, name {
        /// The lookup of the name.
        Names = "names",
        /// The first request.
        Contact = "first request",
        /// HTTP and TLS versions.
        Versions = "versions",
        /// Fresh and reused connections compared.
        Waterfall = "fresh against reused",
        /// Handshake, tickets, resumption, early data.
        Tls = "TLS",
        /// Other methods.
        Methods = "methods",
        /// The packets of one exchange per version.
        Packets = "packets",
        /// Requests on one connection.
        Requests = "requests per connection",
        /// Idle timeouts.
        Idle = "idle limits",
        /// Requests shortly before and after the idle timeout.
        Race = "race at the idle limit",
        /// The idle timeout while other connections idle.
        Held = "idle limit next to others",
        /// The maximum age of a connection.
        Age = "maximum age",
        /// The end of the server's process.
        Drain = "drain",
    }
}

impl ProbeKind {
    /// The part of the budget that the stage uses.
    fn part(self) -> Part {
        match self {
            ProbeKind::Requests => Part::Cap,
            ProbeKind::Idle | ProbeKind::Race | ProbeKind::Held | ProbeKind::Age => Part::Idle,
            ProbeKind::Drain => Part::Drain,
            _ => Part::Profile,
        }
    }

    /// Whether the stage belongs to a check of this kind. A stage that does not is no gap in the
    /// profile.
    fn is_asked_for(self, context: &ProbeContext<'_>) -> bool {
        let config = context.config;
        if config.drain.is_some() {
            return matches!(self, ProbeKind::Contact | ProbeKind::Drain);
        }
        match self {
            ProbeKind::Drain => false,
            ProbeKind::Packets => context.capture.is_some(),
            ProbeKind::Held => config.hold > 0,
            ProbeKind::Age => config.thorough || max_age::is_likely(&context.profile),
            _ => true,
        }
    }
}

/// Observes a running check and can stop it.
pub trait CheckProgress {
    /// A ledger event.
    fn event(&mut self, event: Event<'_>);
    /// The next stage starts. The profile holds the results of the earlier ones.
    fn stage(&mut self, stage: ProbeKind, profile: &ServerProfile);
    /// Packets were captured. Called only if [`Check::run`] has a capture.
    fn packets(&mut self, packets: &Packets) {
        let _ = packets;
    }
    /// A wait of at most this length.
    fn waiting(&mut self, left: Duration);
    /// Whether to stop now and keep the results.
    fn stopped(&self) -> bool;
}

/// Why a check did not run.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The event loop failed.
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
    /// Validates a configuration.
    pub fn new(config: Config) -> Result<Check, ConfigError> {
        let http = config.http.unwrap_or_default();
        if http == Protocol::Http3 && !HAS_HTTP3 {
            return Err(ConfigError::Http3("this build has no HTTP/3"));
        }
        Plans::new(&config)?.plan(http, None)?;
        request_of(&config)?;
        let budget = Budget::of(&config);
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
            if !stage.is_asked_for(&context) {
                continue;
            }
            let ProbeContext {
                prober, profile, ..
            } = &mut context;
            profile.requests_sent = prober.budget.spent();
            let why = halted.or_else(|| context.reason_to_skip(stage));
            if let Some(why) = why {
                context.skip(stage, why, halted.is_some());
                continue;
            }
            let ProbeContext {
                prober, profile, ..
            } = &mut context;
            prober.budget.turn_to(stage.part());
            prober.observer.stage(stage, profile);
            let done = context.probe(stage);
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

/// The context of a probe.
pub(crate) struct ProbeContext<'a> {
    config: &'a Config,
    plans: Plans<'a>,
    /// The default request.
    request: RequestSpec,
    prober: Prober<'a>,
    profile: ServerProfile,
    /// The version for probes that use one version.
    http: Protocol,
    /// The address that answered the first request.
    peer: Option<SocketAddr>,
    /// The capture, until its packets are taken.
    capture: Option<Capture>,
    /// The server's process, until its end is measured.
    server: Option<&'a mut dyn ServerProcess>,
}

impl ProbeContext<'_> {
    fn probe(&mut self, stage: ProbeKind) -> Probed {
        match stage {
            ProbeKind::Names => names::probe(self),
            ProbeKind::Contact => contact::probe(self),
            ProbeKind::Versions => {
                versions::probe(self)?;
                http3::probe(self)?;
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

    /// Whether the first request had a response that counts.
    fn has_responded(&self) -> bool {
        let contact = self.profile.contact.as_ref();
        contact.is_some_and(|contact| contact.outcome.is_ok())
    }

    /// After the first response a refused dial is an outage. A drain ends the server itself.
    fn expect_listener(&mut self) {
        if self.has_responded() && self.config.drain.is_none() {
            self.prober.expect_listener(self.http);
        }
    }

    /// Sends a request on a new connection, where an end without an announcement may be the end of
    /// the server: a refused dial shows that.
    fn look_for_outage(&mut self) -> Probed {
        self.let_end()?;
        let Some(line) = self.open(self.http)? else {
            return Ok(());
        };
        match self.prober.ask_once(line, &self.light_request()) {
            // the dial was accepted, and that is enough
            Ok(_) | Err(StopReason::Spent) => Ok(()),
            Err(stopped) => Err(stopped),
        }
    }

    /// Opens a connection of this version; `None`: the dial failed, which is recorded.
    fn open(&mut self, http: Protocol) -> Probed<Option<Line>> {
        Ok(self.dial(http, None)?.ok())
    }

    /// Opens a connection with this TLS version, or with any.
    fn dial(&mut self, http: Protocol, tls: Option<TlsVersion>) -> Probed<Opened> {
        let plan = self.plans.plan(http, tls)?;
        self.prober.open(&plan)
    }

    /// Runs a part of a probe in which the server has at most this time for each reaction.
    fn with_patience<T>(
        &mut self,
        most: Duration,
        part: impl FnOnce(&mut Self) -> Probed<T>,
    ) -> Probed<T> {
        let usual = self.prober.patience;
        self.prober.patience = usual.min(most);
        let done = part(self);
        self.prober.patience = usual;
        done
    }

    /// Waits for [`ENDING`].
    fn let_end(&mut self) -> Probed {
        let until = self.prober.clock.now().after(ENDING.as_nanos() as u64);
        self.prober.pause(&mut [], until)
    }

    /// Why a probe is skipped here.
    fn reason_to_skip(&self, stage: ProbeKind) -> Option<&'static str> {
        if matches!(stage, ProbeKind::Names | ProbeKind::Contact) {
            return None;
        }
        if !self.has_responded() {
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
        self.profile.skipped.push(Skipped {
            probe: stage.name().to_owned(),
            why: why.to_owned(),
            cut_off,
        });
    }

    /// The request for connections that must stay open. It has `Connection: keep-alive`, which
    /// HTTP/1.0 needs. Apache and Tomcat announce their limits only in response to it.
    fn keeping_request(&self) -> RequestSpec {
        self.light_request().saying("keep-alive")
    }

    /// An additional request.
    fn extra_request(&self, tried: &ExtraRequest) -> RequestSpec {
        let request = self.request.by(tried.method.clone()).at(&tried.path);
        let request = match tried.method.as_str() {
            "POST" | "PUT" | "PATCH" => request.carrying(EXTRA_BODY),
            _ => request,
        };
        request.saying("keep-alive")
    }

    /// The request where the body does not matter.
    fn light_request(&self) -> RequestSpec {
        let by_head = self
            .profile
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

fn close_all(context: &mut ProbeContext<'_>, lines: &mut Vec<Line>) {
    for line in lines.drain(..) {
        context.prober.close(line);
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
