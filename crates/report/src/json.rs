//! JSON documents: `schema`, `run`, then the facts as they are.

use findings::bench::BenchFacts;
use fix::{Advice, Catalogue, Client, Measurement};
use ledger::{Host, Run};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// The schema of a bench's document.
pub const BENCH_SCHEMA: &str = "intact.bench/1";

#[derive(Serialize)]
struct Document<'a> {
    schema: &'a str,
    run: &'a Run,
    environment: Environment<'a>,
    #[serde(flatten)]
    facts: &'a BenchFacts,
}

#[derive(Serialize)]
struct Environment<'a> {
    #[serde(flatten)]
    host: &'a Host,
    sockets: &'a [ledger::Sockets],
}

/// The document of a bench, pretty-printed, with a newline at its end.
pub fn bench(run: &Run, facts: &BenchFacts) -> serde_json::Result<String> {
    let document = Document {
        schema: BENCH_SCHEMA,
        run,
        environment: Environment {
            host: &run.host,
            sockets: &facts.sockets,
        },
        facts,
    };
    let mut text = serde_json::to_string_pretty(&document)?;
    text.push('\n');
    Ok(text)
}

/// The schema of what `fix` says.
pub const FIX_SCHEMA: &str = "intact.fix/1";

#[derive(Serialize)]
struct FixDocument<'a> {
    schema: &'a str,
    server_idle_s: Option<f64>,
    clients: Vec<FixClient<'a>>,
}

#[derive(Serialize)]
struct FixClient<'a> {
    #[serde(flatten)]
    client: &'a Client,
    advice: Vec<FixAdvice<'a>>,
    measured: Vec<&'a Measurement>,
}

#[derive(Serialize)]
struct FixAdvice<'a> {
    versions: &'a BTreeMap<String, String>,
    #[serde(flatten)]
    advice: Advice,
}

/// The document of `fix`: these clients with everything measured of them. It has no `run`: nothing was run.
pub fn fix(
    catalogue: &Catalogue,
    clients: &[&Client],
    server_idle: Option<Duration>,
) -> serde_json::Result<String> {
    let document = FixDocument {
        schema: FIX_SCHEMA,
        server_idle_s: server_idle.map(|idle| idle.as_secs_f64()),
        clients: clients
            .iter()
            .map(|client| {
                let measured: Vec<&Measurement> = catalogue
                    .measured
                    .iter()
                    .filter(|one| one.client == client.id)
                    .collect();
                let defaults = client.variant(fix::Role::Default);
                let advice = defaults
                    .into_iter()
                    .flat_map(|variant| catalogue.of(client, variant))
                    .filter_map(|one| {
                        Some(FixAdvice {
                            versions: &one.versions,
                            advice: catalogue.advise(client, one, server_idle)?,
                        })
                    })
                    .collect();
                FixClient {
                    client,
                    advice,
                    measured,
                }
            })
            .collect(),
    };
    let mut text = serde_json::to_string_pretty(&document)?;
    text.push('\n');
    Ok(text)
}
