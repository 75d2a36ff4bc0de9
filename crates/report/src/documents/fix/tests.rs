//! The tables of docs/fix.md and docs/fix-table.md, made from the catalogue. Of the recommendations only the choice is written by
//! hand: their effects were measured.

use super::*;
use crate::tests::{hold, whole};
use std::fmt::Write;

#[test]
fn the_table_of_recommendations_is_made_from_the_catalogue() {
    const BEGIN: &str = "<!-- made by the tests: recommendations -->\n";
    const END: &str = "<!-- end -->\n";
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/fix.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the mark of the table");
    let (_, after) = rest.split_once(END).expect("the table's end");
    let table = recommendations(&Catalogue::embedded().unwrap());
    hold("fix.md", &format!("{before}{BEGIN}{table}{END}{after}"));
}

#[test]
fn the_table_of_clients_is_made_from_the_catalogue() {
    let catalogue = Catalogue::embedded().unwrap();
    hold("fix-table.md", &fix_table(&catalogue));
}

#[test]
fn every_client_is_in_the_reference() {
    let catalogue = Catalogue::embedded().unwrap();
    let reference = fix_table(&catalogue);
    for client in &catalogue.clients {
        assert!(reference.contains(&format!("(`intact fix {}`)", client.id)));
        let measured = catalogue
            .measured
            .iter()
            .filter(|one| one.client == client.id);
        let rows = reference.lines().filter(|line| line.starts_with("| "));
        assert!(rows.count() >= measured.count());
    }
}

#[test]
fn a_client_that_was_not_measured_is_named_as_such() {
    let mut catalogue = Catalogue::embedded().unwrap();
    let is_axios = |one: &Measurement| one.client == "axios";
    catalogue
        .measured
        .retain(|one| !is_axios(one) || one.variant == "keepalive");
    let axios = catalogue.clients.iter().find(|one| one.id == "axios");
    let axios = axios.unwrap();
    let others = axios.variants.iter().filter(|one| one.id != "keepalive");
    let others: Vec<&str> = others.map(|one| one.id.as_str()).collect();
    let missing = format!("Not measured: {}.", others.join(", "));
    assert!(fix_table(&catalogue).contains(&missing), "{missing}");

    catalogue.measured.retain(|one| !is_axios(one));
    let page = terminal(&fix_client(&catalogue, axios, FixRequest::default()));
    assert!(
        page.contains("axios: not measured, so its reuse is unknown."),
        "{page}"
    );
    assert!(page.contains("Not measured: default, "), "{page}");
    let list = terminal(&fix_list(&catalogue, &[axios]));
    assert!(list.contains("Not measured: axios."), "{list}");
}

fn terminal(page: &Page<'_>) -> String {
    let options = crate::terminal::TerminalOptions {
        width: 100,
        colour: false,
    };
    crate::terminal::write(page, options)
}

#[test]
fn every_pattern_was_measured_with_and_without() {
    let catalogue = Catalogue::embedded().unwrap();
    let made = recommendations(&catalogue);
    assert_eq!(patterns().count(), PATTERNS.lines().count());
    for pattern in patterns() {
        let row = format!("`{}/{}`", pattern.client, pattern.with);
        assert!(made.contains(&row), "{} has no row", pattern.advice);
    }
    assert!(!made.contains("not measured"));
}

/// The page docs/fix-table.md.
fn fix_table(catalogue: &Catalogue) -> String {
    let mut out = REFERENCE.to_owned();
    let all: Vec<&Client> = catalogue.clients.iter().collect();
    let variants = all
        .iter()
        .flat_map(|client| client.variants.iter().map(move |one| (*client, one)));
    let every: Vec<Row<'_>> = variants
        .flat_map(|(client, one)| rows(catalogue, client, one))
        .collect();
    for column in measured(Rows::of(&every)).columns {
        let _ = writeln!(out, "- *{}*: {}", column.head, column.meaning);
    }
    for (language, clients) in by_language(&all) {
        let _ = write!(out, "\n## {}\n", title(language));
        for client in clients {
            let _ = write!(
                out,
                "\n### {} (`intact fix {}`)\n\n",
                client.name, client.id
            );
            if let Some(since) = &client.since {
                let _ = writeln!(out, "Reuses connections by default: {since}.\n");
            }
            if let Some(life) = &client.life {
                let _ = writeln!(
                    out,
                    "Option that limits a connection's life, as documented and not measured: {life}.\n"
                );
            }
            let of = |variant| rows(catalogue, client, variant);
            let rows: Vec<Row<'_>> = client.variants.iter().flat_map(of).collect();
            let table = Rows::of(&rows)
                .column("variant", |row| {
                    text!("{}: {}", &row.variant.id, Text::prose(&row.variant.title))
                })
                .column("versions", |row| row.one.versions_told());
            out.push_str(&whole(&measured(table)));
            if let Some(missing) = unmeasured_variants(client, &rows) {
                let _ = writeln!(out, "{missing}\n");
            }
            for (_, title, lines) in notes(client).into_iter().filter(|one| !one.2.is_empty()) {
                let _ = write!(out, "{title}:\n\n");
                lines.iter().for_each(|line| {
                    let _ = writeln!(out, "- {line}");
                });
                out.push('\n');
            }
        }
    }
    out.truncate(out.trim_end().len());
    out + "\n"
}

const REFERENCE: &str = "# What HTTP clients do with their connections

Generated from `clients/catalogue.toml` and `clients/measured.json`; a test compares this page with them. [fix.md](fix.md) describes the measurement. The server
counts connections. The columns:

";

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
fn recommendations(catalogue: &Catalogue) -> String {
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
            pair_of(plain_in_turn(&without.facts), plain_in_turn(&with.facts))
        })
        .column("3x10: without, with", |(_, without, with)| {
            pair_of(plain_at_once(&without.facts), plain_at_once(&with.facts))
        })
        .column("verdict", |(_, without, with)| {
            effect(&without.facts, &with.facts)
        });
    whole(&table.table())
}

fn plain_in_turn(facts: &ClientFacts) -> Option<&Count> {
    facts.plain.as_ref().map(|load| &load.sequential)
}

fn plain_at_once(facts: &ClientFacts) -> Option<&Count> {
    facts.plain.as_ref()?.concurrent.as_ref()
}

fn pair_of(without: Option<&Count>, with: Option<&Count>) -> String {
    let printed = |count: Option<&Count>| {
        count.map_or_else(|| "-".to_owned(), |count| count.connections.to_string())
    };
    format!("{}, {}", printed(without), printed(with))
}

fn effect(without: &ClientFacts, with: &ClientFacts) -> &'static str {
    let reuses = |facts| plain_in_turn(facts).map(Count::is_reused);
    let fewer_at_once = plain_at_once(with)
        .zip(plain_at_once(without))
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
