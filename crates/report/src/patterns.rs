//! Recommendations of articles, with the verdict of today's measurements: the table in docs/fix.md.
//!
//! Only the choice of patterns is written by hand. Their effects come from the catalogue.

use crate::documents::fix::version_key;
use crate::page::{Rows, Text};
use intact_fix::{Catalogue, ClientFacts, Count, Measurement};

/// A line for each recommendation: the advice, the client, the variant that follows it, the variant that does not.
const PATTERNS: &str = "\
`fetch(url, { agent })` | fetch | agent | default
axios: `httpsAgent` with `keepAlive: true` | axios | keepalive | default
axios: `httpsAgent: new https.Agent()` | axios | no-keepalive | default
http: an agent's `maxSockets`, so that requests queue | node-http | max-sockets | new-agent
AWS SDK 2: `AWS_NODEJS_CONNECTION_REUSE_ENABLED=1` | aws-sdk-js-2 | variable | default
AWS SDK 3: `https.Agent({ keepAlive: true })` | aws-sdk-js-3 | agent-true | default
AWS SDK 3: `https.Agent({ keepAlive: false })` | aws-sdk-js-3 | agent-false | default
AWS SDK 3: `https.Agent({ keepAlive: undefined })` | aws-sdk-js-3 | agent-undefined | default
AWS SDK 3: the client outside the handler | aws-sdk-js-3 | default | per-call
`requests.session()` at module level | requests | module-session | default
`requests.session()` per call | requests | per-call-session | default
boto3: the client outside the handler | boto3 | default | per-call
Go: one client for all calls | go-net-http | default | per-call
Go: the body read to its end | go-net-http | default | not-drained
AWS SDK for Go 2: the client outside the handler | aws-sdk-go-2 | default | per-call
Apache 4: `EntityUtils.consume` | apache-httpclient-4 | default | not-consumed
AWS SDK for Java 2: the client outside the handler | aws-sdk-java-2 | default | per-call";

/// A recommendation.
struct Pattern {
    advice: &'static str,
    client: &'static str,
    with: &'static str,
    without: &'static str,
}

fn patterns() -> impl Iterator<Item = Pattern> {
    PATTERNS.lines().filter_map(|line| {
        let mut fields = line.split(" | ");
        Some(Pattern {
            advice: fields.next()?,
            client: fields.next()?,
            with: fields.next()?,
            without: fields.next()?,
        })
    })
}

/// The table of recommendations, a row for each runtime.
pub fn markdown(catalogue: &Catalogue) -> String {
    let patterns: Vec<Pattern> = patterns().collect();
    let mut rows: Vec<(&Pattern, &Measurement, &Measurement)> = Vec::new();
    for pattern in &patterns {
        let of = |variant: &'static str| {
            let ours = catalogue.measured.iter();
            ours.filter(move |one| one.client == pattern.client && one.variant == variant)
        };
        let mut with: Vec<&Measurement> = of(pattern.with).collect();
        with.sort_by_key(|one| version_key(one.versions.get("node")));
        rows.extend(with.into_iter().filter_map(|one| {
            let without = of(pattern.without).find(|other| other.versions == one.versions)?;
            Some((pattern, without, one))
        }));
    }
    let table = Rows::of(&rows)
        .column("recommended", |(pattern, ..)| Text::prose(pattern.advice))
        .column("measured as", |(pattern, ..)| {
            Text::prose(&format!("`{}/{}`", pattern.client, pattern.with))
        })
        .column("versions", |(.., with)| with.versions_told())
        .column("10: without, with", |(_, without, with)| {
            both(in_turn(&without.facts), in_turn(&with.facts))
        })
        .column("3x10: without, with", |(_, without, with)| {
            both(at_once(&without.facts), at_once(&with.facts))
        })
        .column("verdict", |(_, without, with)| {
            verdict(&without.facts, &with.facts)
        });
    crate::markdown::table(&table.table())
}

fn in_turn(facts: &ClientFacts) -> Option<&Count> {
    facts.plain.as_ref().map(|load| &load.sequential)
}

fn at_once(facts: &ClientFacts) -> Option<&Count> {
    facts.plain.as_ref()?.concurrent.as_ref()
}

fn both(without: Option<&Count>, with: Option<&Count>) -> String {
    let printed = |count: Option<&Count>| {
        count.map_or_else(|| "-".to_owned(), |count| count.connections.to_string())
    };
    format!("{}, {}", printed(without), printed(with))
}

fn verdict(without: &ClientFacts, with: &ClientFacts) -> &'static str {
    let reuses = |facts| in_turn(facts).map(Count::is_reused);
    let fewer_at_once = at_once(with)
        .zip(at_once(without))
        .is_some_and(|(with, without)| with.connections < without.connections);
    match (reuses(without), reuses(with)) {
        (Some(false), Some(true)) => "turns reuse on",
        (Some(true), Some(false)) => "turns reuse off",
        (Some(true), Some(true)) => "no effect: it reuses anyway",
        (Some(false), Some(false)) if fewer_at_once => "reuses only while requests wait",
        (Some(false), Some(false)) => "no effect: no reuse either way",
        _ => "not measured",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_was_measured_with_and_without() {
        let catalogue = Catalogue::embedded().unwrap();
        let made = markdown(&catalogue);
        assert_eq!(patterns().count(), PATTERNS.lines().count());
        for pattern in patterns() {
            let row = format!("`{}/{}`", pattern.client, pattern.with);
            assert!(made.contains(&row), "{} has no row", pattern.advice);
        }
        assert!(!made.contains("not measured"));
    }
}
