//! What to set, given how long the server keeps idle connections. Worked out from measurements alone.

use crate::catalogue::{Catalogue, Client, Role, Variant};
use crate::facts::{Idle, Measurement, RequestOutcome};
use schemars::JsonSchema;
use serde::Serialize;
use std::time::Duration;

/// The word in snippets that stands for an idle limit in milliseconds, and the one for seconds.
const PLACEHOLDERS: [(&str, u64); 6] = [
    // with the mark that its language puts before a name
    ("$idle_seconds", 1000),
    ("IDLE_SECONDS", 1000),
    ("idleMs", 1),
    ("idle_seconds", 1000),
    ("idleSeconds", 1000),
    ("idle_ms", 1),
];

/// What to do about one client on one runtime.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "action")]
pub enum Advice {
    /// The default gives idle connections up before the server does.
    Nothing {
        /// The client's own limit in seconds.
        client_idle_s: f64,
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
    /// It has no idle limit of its own: dead connections have to be lived with.
    Survive {
        /// The variant to use: one that repeats requests where there is one, else the one that reuses.
        variant: String,
        /// The lines.
        snippet: String,
        /// Whether a GET that meets the server's close is answered all the same.
        get: bool,
        /// Whether a POST is.
        post: bool,
    },
    /// It cannot reuse connections, so none can be dead.
    Impossible,
}

/// How long a client should keep idle connections to a server with that limit: four fifths of it, whole seconds above two.
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
    let mut text = snippet.to_owned();
    for (word, unit) in PLACEHOLDERS {
        let ms = idle.as_millis() as u64;
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
        let runtime = client.language.id();
        let with = |role: Role| {
            let mut variants = client
                .variants
                .iter()
                .filter(|variant| variant.role == role);
            variants.find_map(|variant| {
                let mut measured = self.of(client, variant);
                let one =
                    measured.find(|one| one.versions.get(runtime) == like.versions.get(runtime))?;
                Some((variant, one))
            })
        };
        let (_, default) = with(Role::Default)?;
        let set = |(variant, one): (&Variant, &Measurement), idle: Option<Duration>| Advice::Set {
            variant: variant.id.clone(),
            client_idle_s: idle.map(|idle| idle.as_secs_f64()),
            snippet: match idle {
                Some(idle) => fill_in(&one.snippet, idle),
                None => one.snippet.clone(),
            },
        };
        let Some(server_idle) = server_idle else {
            if is_reused(default) {
                return None;
            }
            return Some(match with(Role::Remedy) {
                Some(remedy) => set(remedy, None),
                None => with(Role::Limit).map_or(Advice::Impossible, |limit| {
                    set(limit, Some(client_idle(Duration::from_secs(5))))
                }),
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
            return Some(Advice::Impossible);
        }
        // a program that ends with its requests has no idle connections
        let Some(race) = one.facts.stale.race_fin else {
            return Some(set(chosen, None));
        };
        let survives = |fate: Option<RequestOutcome>| {
            matches!(fate, Some(RequestOutcome::Fine | RequestOutcome::SentTwice))
        };
        Some(Advice::Survive {
            variant: variant.id.clone(),
            snippet: one.snippet.clone(),
            get: survives(race.get),
            post: survives(race.post),
        })
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

    #[test]
    fn every_limit_has_a_placeholder_in_its_snippet() {
        let catalogue = Catalogue::embedded().unwrap();
        for client in &catalogue.clients {
            for variant in client.variants.iter().filter(|one| one.role == Role::Limit) {
                for one in catalogue.of(client, variant) {
                    let filled = fill_in(&one.snippet, Duration::from_millis(1234));
                    assert_ne!(filled, one.snippet, "{}/{}", client.id, variant.id);
                }
            }
        }
    }
}
