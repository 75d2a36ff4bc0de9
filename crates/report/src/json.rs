//! JSON documents: `schema`, `run`, then the facts as they are.

use intact_experiments::bench::BenchFacts;
use intact_findings::fleet::{CampaignFacts, CardsFacts, Outlier};
use intact_findings::{Document, OfRun};
use intact_fix::{
    Advice, Catalogue, Client, Found, HangLimit, Hop, HopMeasurement, Library, LifeLimit,
    Measurement, Role,
};
use intact_ledger::CampaignProgress;
use intact_model::{Fit, Forecast};
use intact_reading::BOUNDS;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// The schema of a model's document. It has no `run`: nothing is run.
pub const MODEL_SCHEMA: &str = "intact.model/1";
/// The schema of the document of `fix`. It has no `run`: nothing is run.
pub const FIX_SCHEMA: &str = "intact.fix/1";
/// The schema of a campaign's document. It has no `run`: each bench in it has one.
pub const FLEET_SCHEMA: &str = "intact.fleet/1";

/// A document, pretty-printed, with a newline at its end.
///
/// # Errors
/// It cannot be written as JSON.
pub fn document(document: &Document) -> serde_json::Result<String> {
    let mut value = intact_reading::with_bounds(document)?;
    // a list has no bounds of its own
    let facts = document.facts();
    let count = facts.unobserved().findings(facts.findings().len());
    if let (Some(bounds), Some(fields)) = (count.bounds(), value.as_object_mut()) {
        let all = fields.entry(BOUNDS).or_insert_with(|| json!({}));
        all["findings"] = bounds;
    }
    written(&value)
}

fn pretty(document: &impl Serialize) -> serde_json::Result<String> {
    written(&intact_reading::with_bounds(document)?)
}

fn written(document: &Value) -> serde_json::Result<String> {
    let mut text = serde_json::to_string_pretty(document)?;
    text.push('\n');
    Ok(text)
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Model<'a> {
    schema: &'a str,
    subject: &'a str,
    #[serde(flatten)]
    forecast: &'a Forecast,
    /// How it was derived from a ledger.
    fit: Option<&'a Fit>,
}

/// The document of a model.
pub fn model(subject: &str, forecast: &Forecast, fit: Option<&Fit>) -> serde_json::Result<String> {
    pretty(&Model {
        schema: MODEL_SCHEMA,
        subject,
        forecast,
        fit,
    })
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct FixDocument<'a> {
    schema: &'a str,
    server_idle_s: Option<f64>,
    /// The library above these clients, or a driver, if one was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    library: Option<&'a Library>,
    clients: Vec<FixClient<'a>>,
    /// Proxies and servers.
    hops: Vec<FixHop<'a>>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct FixHop<'a> {
    #[serde(flatten)]
    hop: &'a Hop,
    measured: Vec<&'a HopMeasurement>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct FixClient<'a> {
    #[serde(flatten)]
    client: &'a Client,
    advice: Vec<FixAdvice<'a>>,
    measured: Vec<&'a Measurement>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct FixAdvice<'a> {
    versions: &'a BTreeMap<String, String>,
    #[serde(flatten)]
    advice: Advice,
    /// What limits the wait for a response on a connection that went silent; absent where it was
    /// not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    hang_limit: Option<HangLimit>,
    /// The setting that has HTTP/2 PING end a silent connection, where one was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    ping_limit: Option<HangLimit>,
    /// The setting that limits the life of a connection, where one was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    life_limit: Option<LifeLimit>,
}

/// The document of `fix`: these clients with everything that was measured of them.
pub fn fix(
    catalogue: &Catalogue,
    found: &Found<'_>,
    server_idle: Option<Duration>,
) -> serde_json::Result<String> {
    let hops = found.hops.iter().map(|hop| FixHop {
        hop,
        measured: catalogue
            .hops
            .of(hop)
            .into_iter()
            .map(|(_, one)| one)
            .collect(),
    });
    let clients = found.clients.iter().map(|client| FixClient {
        client,
        advice: advice(catalogue, client, server_idle),
        measured: catalogue
            .measured
            .iter()
            .filter(|one| one.client == client.id)
            .collect(),
    });
    pretty(&FixDocument {
        schema: FIX_SCHEMA,
        server_idle_s: server_idle.map(|idle| idle.as_secs_f64()),
        library: found.library,
        clients: clients.collect(),
        hops: hops.collect(),
    })
}

/// What to set, for each version of the client's default.
fn advice<'a>(
    catalogue: &'a Catalogue,
    client: &'a Client,
    server_idle: Option<Duration>,
) -> Vec<FixAdvice<'a>> {
    let defaults = client.variant(Role::Default).into_iter();
    let defaults = defaults.flat_map(|variant| catalogue.of(client, variant));
    let advice = defaults.filter_map(|one| {
        Some(FixAdvice {
            versions: &one.versions,
            advice: catalogue.advise(client, one, server_idle)?,
            hang_limit: catalogue.hang_limit(client, one),
            ping_limit: catalogue.ping_limit(client, one),
            life_limit: catalogue.life_limit(client, one),
        })
    });
    advice.collect()
}

/// The merged results of a campaign.
#[derive(Serialize, JsonSchema)]
pub struct FleetDocument<'a> {
    /// `intact.fleet/1`.
    schema: &'a str,
    /// The plan's name, and the first 8 hexadecimal digits of the SHA-256 of its content.
    plan: &'a str,
    /// How many messages are in which state.
    messages: &'a CampaignProgress,
    /// Workers most of whose messages took far longer than others of their kind.
    outliers: &'a [Outlier],
    /// The benches, by target and label, in the plan's order.
    groups: Vec<FleetGroup<'a>>,
    /// The checks, by target and label, in the plan's order.
    checks: Vec<FleetChecks<'a>>,
}

/// All bench messages of a target and label.
#[derive(Serialize, JsonSchema)]
struct FleetGroup<'a> {
    /// The target's name in the plan.
    target: &'a str,
    /// The label of the workers.
    label: &'a str,
    /// One bench whose rounds are the repetitions, see bench.schema.json.
    #[schemars(with = "serde_json::Value")]
    bench: OfRun<'a, &'a BenchFacts>,
}

/// All check messages of a target and label.
#[derive(Serialize, JsonSchema)]
struct FleetChecks<'a> {
    /// The target's name in the plan.
    target: &'a str,
    /// The label of the workers.
    label: &'a str,
    /// The server profiles, merged; each alone is in the store.
    cards: &'a CardsFacts,
}

/// The document of a campaign.
pub fn fleet(facts: &CampaignFacts) -> serde_json::Result<String> {
    let groups = facts.benches.iter().map(|one| FleetGroup {
        target: &one.target,
        label: &one.label,
        bench: OfRun {
            schema: "intact.bench/1",
            run: &one.run,
            parts: &one.facts,
        },
    });
    let checks = facts.checks.iter().map(|one| FleetChecks {
        target: &one.target,
        label: &one.label,
        cards: &one.facts,
    });
    pretty(&FleetDocument {
        schema: FLEET_SCHEMA,
        plan: &facts.plan,
        messages: &facts.messages,
        outliers: &facts.outliers,
        groups: groups.collect(),
        checks: checks.collect(),
    })
}
