//! The settings of a client for a server's idle limit, derived from measurements only.

use crate::catalogue::{Catalogue, Client, Role, Variant};
use crate::facts::{Idle, LifetimeFacts, Measurement, RequestOutcome};
use crate::faults::{SilentWait, UnderFaults};
use serde::Serialize;
use std::time::Duration;

/// The word in snippets that stands for an idle limit in milliseconds, and the one for seconds.
const IDLE: [(&str, u64); 6] = [
    // includes the sign that a language puts before a name
    ("$idle_seconds", 1000),
    ("IDLE_SECONDS", 1000),
    ("idleMs", 1),
    ("idle_seconds", 1000),
    ("idleSeconds", 1000),
    ("idle_ms", 1),
];

/// The same for a limit on the wait for a response.
const TIMEOUT: [(&str, u64); 3] = [
    ("timeoutMs", 1),
    ("timeout_seconds", 1000),
    ("timeout_ms", 1),
];

/// The same for a limit on the life of a connection.
const LIFE: [(&str, u64); 3] = [("lifeMs", 1), ("life_seconds", 1000), ("life_ms", 1)];

/// The response limit in examples. The caller's real limit is unknown here.
const EXAMPLE_TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum age in examples. It is unknown here how often the addresses of a name change.
const EXAMPLE_LIFE: Duration = Duration::from_secs(300);

/// The setting that limits the wait for a response on a silent connection.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct HangLimit {
    /// The variant whose program was measured.
    pub variant: String,
    /// How long its request waited, with its limit at 2 s.
    pub measured: SilentWait,
    /// The limit in the lines, in seconds: an example.
    pub timeout_s: f64,
    /// The lines, with the limit filled in.
    pub snippet: String,
}

/// The setting that limits the age of a connection in use.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LifeLimit {
    /// The variant whose program was measured.
    pub variant: String,
    /// How long a connection in use lived, with its limit at 4 s.
    pub measured: LifetimeFacts,
    /// The limit in the lines, in seconds: an example.
    pub life_s: f64,
    /// The lines, with the limit filled in.
    pub snippet: String,
}

/// What to do about one client on one runtime.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "action")]
pub enum Advice {
    /// By default the client closes idle connections before the server does.
    Nothing {
        /// The client's own limit in seconds.
        client_idle_s: f64,
        /// The variant whose program was measured.
        variant: String,
        /// The lines.
        snippet: String,
    },
    /// Connections are reused by default, with these lines.
    Keep {
        /// The variant whose program was measured.
        variant: String,
        /// The lines.
        snippet: String,
    },
    /// Set this.
    Set {
        /// The variant whose program was measured.
        variant: String,
        /// The limit that it sets, in seconds; absent when it only turns reuse on.
        client_idle_s: Option<f64>,
        /// The lines, with the limit filled in.
        snippet: String,
    },
    /// The client has no idle limit, so requests on closed connections cannot be avoided.
    Survive {
        /// The variant to use: one that retries if the catalogue has one, else one that reuses
        /// connections.
        variant: String,
        /// The lines.
        snippet: String,
        /// The outcome of a GET that crosses the server's close; absent if not measured.
        get: Option<RequestOutcome>,
        /// The outcome of a POST.
        post: Option<RequestOutcome>,
    },
    /// The client cannot reuse connections, so no request meets a closed one.
    Impossible {
        /// Another client that can.
        instead: Option<String>,
        /// The lines of that client.
        snippet: String,
    },
}

/// The idle limit of a client for a server with that limit: 80 % of it, in whole seconds above 2 s.
pub fn client_idle(server_idle: Duration) -> Duration {
    let most = server_idle.mul_f64(0.8);
    if most >= Duration::from_secs(2) {
        Duration::from_secs(most.as_secs())
    } else {
        Duration::from_millis(most.as_millis() as u64)
    }
}

/// A snippet with its placeholders filled in.
pub fn fill_in(snippet: &str, idle: Duration) -> String {
    replace(snippet, &IDLE, idle)
}

fn replace(snippet: &str, placeholders: &[(&str, u64)], time: Duration) -> String {
    let mut text = snippet.to_owned();
    for &(word, unit) in placeholders {
        let ms = time.as_millis() as u64;
        let value = if ms.is_multiple_of(unit) {
            (ms / unit).to_string()
        } else {
            format!("{}", ms as f64 / unit as f64)
        };
        text = text.replace(word, &value);
    }
    text
}

impl Catalogue {
    /// What to set in a client as it was measured in these versions.
    pub fn advise(
        &self,
        client: &Client,
        like: &Measurement,
        server_idle: Option<Duration>,
    ) -> Option<Advice> {
        let with = |role: Role| self.like(client, role, like);
        let (usual, default) = with(Role::Default)?;
        let set = |(variant, one): (&Variant, &Measurement), idle: Option<Duration>| Advice::Set {
            variant: variant.id.clone(),
            client_idle_s: idle.map(|idle| idle.as_secs_f64()),
            snippet: match idle {
                Some(idle) => fill_in(&variant.snippet(one), idle),
                None => variant.snippet(one),
            },
        };
        let Some(server_idle) = server_idle else {
            if is_reused(default) {
                return Some(Advice::Keep {
                    variant: usual.id.clone(),
                    snippet: usual.snippet(default),
                });
            }
            return Some(match (with(Role::Remedy), with(Role::Limit)) {
                (Some(remedy), _) => set(remedy, None),
                (None, Some(limit)) => set(limit, Some(client_idle(Duration::from_secs(5)))),
                (None, None) => self.impossible(client),
            });
        };
        let ours = client_idle(server_idle);
        if let Some(Idle::Closed { after_s } | Idle::DiscardedAtNextUse { within_s: after_s }) =
            default.facts.idle
            && is_reused(default)
            && after_s <= server_idle.mul_f64(0.9).as_secs_f64()
        {
            return Some(Advice::Nothing {
                client_idle_s: after_s,
                variant: usual.id.clone(),
                snippet: usual.snippet(default),
            });
        }
        if let Some(limit) = with(Role::Limit) {
            return Some(set(limit, Some(ours)));
        }
        let chosen = with(Role::Retry)
            .or_else(|| with(Role::Remedy))
            .unwrap_or((client.variant(Role::Default)?, default));
        let (variant, one) = chosen;
        if !is_reused(one) {
            return Some(self.impossible(client));
        }
        // a program that ends with its requests has no idle connections
        let Some(race) = one.facts.stale.race_fin else {
            return Some(set(chosen, None));
        };
        Some(Advice::Survive {
            variant: variant.id.clone(),
            snippet: variant.snippet(one),
            get: race.get,
            post: race.post,
        })
    }

    /// The setting that limits a hang in a client as it was measured in these versions.
    pub fn hang_limit(&self, client: &Client, like: &Measurement) -> Option<HangLimit> {
        self.limited(client, Role::Timeout, like, |faults| faults.silent_get)
    }

    /// The setting that has HTTP/2 PING end a silent connection, as it was measured in these
    /// versions.
    pub fn ping_limit(&self, client: &Client, like: &Measurement) -> Option<HangLimit> {
        self.limited(client, Role::Ping, like, |faults| faults.silent_http2)
    }

    /// The setting that limits the life of a connection, as it was measured in these versions.
    pub fn life_limit(&self, client: &Client, like: &Measurement) -> Option<LifeLimit> {
        let (variant, one) = self.like(client, Role::Life, like)?;
        Some(LifeLimit {
            variant: variant.id.clone(),
            measured: one.facts.life?,
            life_s: EXAMPLE_LIFE.as_secs_f64(),
            snippet: replace(&variant.snippet(one), &LIFE, EXAMPLE_LIFE),
        })
    }

    fn limited(
        &self,
        client: &Client,
        role: Role,
        like: &Measurement,
        wait: fn(&UnderFaults) -> Option<SilentWait>,
    ) -> Option<HangLimit> {
        let (variant, one) = self.like(client, role, like)?;
        Some(HangLimit {
            variant: variant.id.clone(),
            measured: wait(one.facts.faults.as_ref()?)?,
            timeout_s: EXAMPLE_TIMEOUT.as_secs_f64(),
            snippet: replace(&variant.snippet(one), &TIMEOUT, EXAMPLE_TIMEOUT),
        })
    }

    /// The first variant of a role that was measured on the runtime of another measurement.
    fn like<'a>(
        &'a self,
        client: &'a Client,
        role: Role,
        like: &Measurement,
    ) -> Option<(&'a Variant, &'a Measurement)> {
        let runtime = client.language.id();
        let mut variants = client.variants.iter().filter(|one| one.role == role);
        variants.find_map(|variant| {
            let mut measured = self.of(client, variant);
            let one =
                measured.find(|one| one.versions.get(runtime) == like.versions.get(runtime))?;
            Some((variant, one))
        })
    }

    /// The advice for a client that cannot reuse connections: another client, in the variant that
    /// reuses them.
    fn impossible(&self, client: &Client) -> Advice {
        let other = client.instead.as_ref().and_then(|id| {
            let other = self.clients.iter().find(|other| other.id == *id)?;
            let roles = [Role::Remedy, Role::Default];
            let of = |role| self.of(other, other.variant(role)?).last();
            let reuses = roles.into_iter().find_map(|role| {
                let one = of(role).filter(|one| is_reused(one))?;
                Some(other.variant(role)?.snippet(one))
            });
            Some((other.id.clone(), reuses?))
        });
        let (instead, snippet) = other.unzip();
        Advice::Impossible {
            instead,
            snippet: snippet.unwrap_or_default(),
        }
    }
}

fn is_reused(one: &Measurement) -> bool {
    one.facts
        .plain
        .as_ref()
        .is_some_and(|load| load.sequential.is_reused())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::Language;

    #[test]
    fn the_client_gives_up_before_the_server() {
        for (server, client) in [
            (6000, 4000),
            (60_000, 48_000),
            (5000, 4000),
            (1000, 800),
            (75_000, 60_000),
        ] {
            let idle = client_idle(Duration::from_millis(server));
            assert_eq!(idle, Duration::from_millis(client));
        }
    }

    #[test]
    fn placeholders_are_filled_in_with_their_unit() {
        let idle = Duration::from_secs(4);
        assert_eq!(fill_in("timeout: idleMs", idle), "timeout: 4000");
        assert_eq!(fill_in("expiry=idle_seconds", idle), "expiry=4");
        assert_eq!(
            fill_in("expiry=idle_seconds", Duration::from_millis(800)),
            "expiry=0.8"
        );
    }

    /// Whether a line has code, in any language.
    fn is_code(line: &str) -> bool {
        let line = line.trim();
        let comment = ["//", "#", "import ", "require ", "from ", "use "];
        !line.is_empty() && !comment.iter().any(|mark| line.starts_with(mark))
    }

    fn snippet(advice: &Advice) -> &str {
        match advice {
            Advice::Nothing { snippet, .. }
            | Advice::Keep { snippet, .. }
            | Advice::Set { snippet, .. }
            | Advice::Survive { snippet, .. }
            | Advice::Impossible { snippet, .. } => snippet,
        }
    }

    #[test]
    fn every_advice_has_lines_to_copy() {
        let catalogue = Catalogue::embedded().unwrap();
        for client in &catalogue.clients {
            let default = client.variant(Role::Default).unwrap();
            for like in catalogue.of(client, default) {
                for idle in [None, Some(3), Some(60), Some(600)] {
                    let idle = idle.map(Duration::from_secs);
                    let advice = catalogue.advise(client, like, idle).unwrap();
                    let lines = snippet(&advice);
                    assert!(
                        lines.lines().any(is_code),
                        "{} {idle:?}: {advice:?}",
                        client.id
                    );
                }
            }
        }
    }

    #[test]
    fn a_snippet_has_the_imports_of_its_language() {
        let catalogue = Catalogue::embedded().unwrap();
        for one in &catalogue.measured {
            let client = catalogue
                .clients
                .iter()
                .find(|client| client.id == one.client);
            let code = || one.snippet.lines().filter(|line| is_code(line));
            let (mark, uses): (&str, &[&str]) = match client.unwrap().language {
                Language::Go => (
                    "import",
                    &["http.", "time.", "resty.", "fasthttp.", "s3.", "awshttp."],
                ),
                Language::Java => (
                    "import ",
                    &["HttpClient", "TimeUnit", "Duration.", "TimeValue"],
                ),
                _ => continue,
            };
            if code().any(|line| uses.iter().any(|used| line.contains(used))) {
                assert!(
                    one.snippet.contains(mark),
                    "{}/{}: {}",
                    one.client,
                    one.variant,
                    one.snippet
                );
            }
        }
    }

    #[test]
    fn a_ruby_snippet_ends_what_it_begins() {
        let catalogue = Catalogue::embedded().unwrap();
        for one in catalogue
            .measured
            .iter()
            .filter(|one| one.client.starts_with("ruby"))
        {
            let count =
                |is: fn(&str) -> bool| one.snippet.lines().filter(|line| is(line.trim())).count();
            let (begun, ended) = (
                count(|line| line.starts_with("def ")),
                count(|line| line == "end"),
            );
            assert_eq!(begun, ended, "{}", one.snippet);
        }
    }

    #[test]
    fn a_setting_that_limits_a_hang_ended_the_wait_where_it_was_measured() {
        let catalogue = Catalogue::embedded().unwrap();
        let (mut limits, mut pings) = (0, 0);
        for client in &catalogue.clients {
            let default = client.variant(Role::Default).unwrap();
            for like in catalogue.of(client, default) {
                let (hang, ping) = (
                    catalogue.hang_limit(client, like),
                    catalogue.ping_limit(client, like),
                );
                limits += usize::from(hang.is_some());
                pings += usize::from(ping.is_some());
                for limit in [hang, ping].into_iter().flatten() {
                    // measured with a limit of 2 s; timers of clients are coarse
                    assert!(
                        matches!(limit.measured, SilentWait::Ended { after_s, .. } if (1.5..4.0).contains(&after_s)),
                        "{} {limit:?}",
                        client.id
                    );
                    let is_filled = ["10000", "10)", "10,"]
                        .iter()
                        .any(|ten| limit.snippet.contains(ten));
                    assert!(is_filled, "{} {limit:?}", client.id);
                }
            }
        }
        assert!(limits >= 14, "{limits}");
        assert!(pings >= 3, "{pings}");
    }

    #[test]
    fn a_setting_that_limits_the_life_of_connections_ended_them_where_it_was_measured() {
        let catalogue = Catalogue::embedded().unwrap();
        let mut limits = 0;
        for client in &catalogue.clients {
            let default = client.variant(Role::Default).unwrap();
            for like in catalogue.of(client, default) {
                let Some(limit) = catalogue.life_limit(client, like) else {
                    continue;
                };
                limits += 1;
                // measured with a limit of 4 s and a request every half second
                assert!(
                    matches!(limit.measured, LifetimeFacts::Ended { after_s } if (3.9..6.0).contains(&after_s)),
                    "{} {limit:?}",
                    client.id
                );
                assert!(limit.snippet.contains("300"), "{} {limit:?}", client.id);
            }
        }
        assert!(limits >= 4, "{limits}");
    }

    #[test]
    fn no_limit_is_advised_that_was_not_measured_under_a_fault() {
        let mut catalogue = Catalogue::embedded().unwrap();
        for one in &mut catalogue.measured {
            one.facts.faults = None;
        }
        let client = catalogue.find("requests").unwrap().clients[0];
        let default = client.variant(Role::Default).unwrap();
        let like = catalogue.of(client, default).next().unwrap();
        assert_eq!(catalogue.hang_limit(client, like), None);
    }

    #[test]
    fn a_variable_of_the_environment_is_what_is_printed() {
        let catalogue = Catalogue::embedded().unwrap();
        let client = catalogue.find("aws-sdk-js-2").unwrap().clients[0];
        let default = client.variant(Role::Default).unwrap();
        let like = catalogue.of(client, default).next().unwrap();
        let advice = catalogue.advise(client, like, None).unwrap();
        assert_eq!(snippet(&advice), "AWS_NODEJS_CONNECTION_REUSE_ENABLED=1");
    }

    #[test]
    fn what_was_not_measured_is_no_failure() {
        let catalogue = Catalogue::embedded().unwrap();
        let client = catalogue.find("boto3").unwrap().clients[0];
        let default = client.variant(Role::Default).unwrap();
        let mut like = catalogue.of(client, default).next().unwrap().clone();
        let race = like.facts.stale.race_fin.as_mut().unwrap();
        assert_eq!(race.get, Some(RequestOutcome::SentTwice));
        race.post = None;
        let catalogue = Catalogue {
            measured: vec![like.clone()],
            ..catalogue.clone()
        };
        let client = catalogue.find("boto3").unwrap().clients[0];
        let advice = catalogue.advise(client, &like, Some(Duration::from_secs(60)));
        assert!(
            matches!(advice, Some(Advice::Survive { post: None, .. })),
            "{advice:?}"
        );
    }

    #[test]
    fn every_limit_has_a_placeholder_in_its_snippet() {
        let catalogue = Catalogue::embedded().unwrap();
        for client in &catalogue.clients {
            for variant in &client.variants {
                let placeholders: &[_] = match variant.role {
                    Role::Limit => &IDLE,
                    Role::Timeout | Role::Ping => &TIMEOUT,
                    Role::Life => &LIFE,
                    _ => continue,
                };
                for one in catalogue.of(client, variant) {
                    let filled = replace(&one.snippet, placeholders, Duration::from_millis(1234));
                    assert_ne!(filled, one.snippet, "{}/{}", client.id, variant.id);
                }
            }
        }
    }
}
