//! JSON documents: `schema`, `run`, then the facts as they are.

use crate::documents::InputFacts;
use intact_document::body_arrival::BodyArrivalFacts;
use intact_experiments::bench::BenchFacts;
use intact_experiments::capacity::CapacityFacts;
use intact_experiments::compare::CompareFacts;
use intact_experiments::lambda::LambdaFacts;
use intact_experiments::scenario::ScenarioFacts;
use intact_findings::fleet::{CampaignFacts, CardsFacts, Outlier};
use intact_fix::{Advice, Catalogue, Client, HangLimit, LifeLimit, Measurement, Role};
use intact_ledger::{CampaignProgress, Host, Run, Sockets};
use intact_model::{Fit, Forecast};
use intact_servers::chain::ChainFacts;
use intact_servers::check::CheckFacts;
use intact_servers::fault::FaultFacts;
use intact_traffic::{LevelShift, ObservedFacts};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// The schema of a bench's document.
pub const BENCH_SCHEMA: &str = "intact.bench/1";
/// The schema of a scenario's document.
pub const SCENARIO_SCHEMA: &str = "intact.scenario/1";
/// The schema of a capacity's document.
pub const CAPACITY_SCHEMA: &str = "intact.capacity/1";
/// The schema of a comparison's document.
pub const COMPARE_SCHEMA: &str = "intact.compare/1";
/// The schema of the card of `watch --fault`.
pub const FAULT_SCHEMA: &str = "intact.fault/1";
/// The schema of a document about a function's invocations.
pub const LAMBDA_SCHEMA: &str = "intact.lambda/1";
/// The schema of a model's document. It has no `run`: nothing is run.
pub const MODEL_SCHEMA: &str = "intact.model/1";
/// The schema of a check's document.
pub const CHECK_SCHEMA: &str = "intact.check/1";
/// The schema of a chain's document.
pub const CHAIN_SCHEMA: &str = "intact.chain/1";
/// The schema of the document of `fix`. It has no `run`: nothing is run.
pub const FIX_SCHEMA: &str = "intact.fix/1";
/// The schema of a campaign's document. It has no `run`: each bench in it has one.
pub const FLEET_SCHEMA: &str = "intact.fleet/1";

/// A document about a run.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Document<'a, F> {
    schema: &'a str,
    run: &'a Run,
    #[serde(flatten)]
    facts: F,
}

/// A document about a run, pretty-printed, with a newline at its end.
fn of_run(schema: &str, run: &Run, facts: impl Serialize) -> serde_json::Result<String> {
    pretty(&Document { schema, run, facts })
}

fn pretty(document: &impl Serialize) -> serde_json::Result<String> {
    let mut text = serde_json::to_string_pretty(document)?;
    text.push('\n');
    Ok(text)
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Bench<'a> {
    environment: Environment<'a>,
    #[serde(flatten)]
    facts: &'a BenchFacts,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Environment<'a> {
    #[serde(flatten)]
    host: &'a Host,
    sockets: &'a [Sockets],
}

fn bench_document<'a>(run: &'a Run, facts: &'a BenchFacts) -> Document<'a, Bench<'a>> {
    let environment = Environment {
        host: &run.host,
        sockets: &facts.sockets,
    };
    Document {
        schema: BENCH_SCHEMA,
        run,
        facts: Bench { environment, facts },
    }
}

/// The document of a bench.
pub fn bench(run: &Run, facts: &BenchFacts) -> serde_json::Result<String> {
    pretty(&bench_document(run, facts))
}

/// The document of a scenario.
pub fn scenario(run: &Run, facts: &ScenarioFacts) -> serde_json::Result<String> {
    of_run(SCENARIO_SCHEMA, run, facts)
}

/// The document of a search for a capacity.
pub fn capacity(run: &Run, facts: &CapacityFacts) -> serde_json::Result<String> {
    of_run(CAPACITY_SCHEMA, run, facts)
}

/// The document of observed traffic: `intact.watch/1`, `intact.audit/1` and so on after its
/// producer.
pub fn observed(run: &Run, facts: &ObservedFacts) -> serde_json::Result<String> {
    of_run(&format!("intact.{}/1", run.producer), run, facts)
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Audit<'a> {
    #[serde(flatten)]
    facts: &'a ObservedFacts,
    inputs: &'a [InputFacts],
    answers: &'a [BodyArrivalFacts],
    /// The lasting changes, those of reuse first, then by size.
    changes: &'a [LevelShift],
}

/// The document of an audit: that of observed traffic, what was read of each input, how responses
/// arrived, what changed over time.
pub fn audit(
    run: &Run,
    facts: &ObservedFacts,
    inputs: &[InputFacts],
    answers: &[BodyArrivalFacts],
    changes: &[LevelShift],
) -> serde_json::Result<String> {
    let audit = Audit {
        facts,
        inputs,
        answers,
        changes,
    };
    of_run(&format!("intact.{}/1", run.producer), run, audit)
}

/// The document of a comparison.
pub fn compare(run: &Run, facts: &CompareFacts) -> serde_json::Result<String> {
    of_run(COMPARE_SCHEMA, run, facts)
}

/// The card of a program under faults.
pub fn fault(run: &Run, facts: &FaultFacts) -> serde_json::Result<String> {
    of_run(FAULT_SCHEMA, run, facts)
}

/// The document of a function's invocations.
pub fn lambda(run: &Run, facts: &LambdaFacts) -> serde_json::Result<String> {
    of_run(LAMBDA_SCHEMA, run, facts)
}

/// The document of a check.
pub fn check(run: &Run, facts: &CheckFacts) -> serde_json::Result<String> {
    of_run(CHECK_SCHEMA, run, facts)
}

/// The document of a chain of idle limits.
pub fn chain(run: &Run, facts: &ChainFacts) -> serde_json::Result<String> {
    of_run(CHAIN_SCHEMA, run, facts)
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct FixDocument<'a> {
    schema: &'a str,
    server_idle_s: Option<f64>,
    clients: Vec<FixClient<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct FixClient<'a> {
    #[serde(flatten)]
    client: &'a Client,
    advice: Vec<FixAdvice<'a>>,
    measured: Vec<&'a Measurement>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    clients: &[&Client],
    server_idle: Option<Duration>,
) -> serde_json::Result<String> {
    let clients = clients.iter().map(|client| FixClient {
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
        clients: clients.collect(),
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
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct FleetGroup<'a> {
    /// The target's name in the plan.
    target: &'a str,
    /// The label of the workers.
    label: &'a str,
    /// One bench whose rounds are the repetitions, see bench.schema.json.
    #[cfg_attr(feature = "schema", schemars(with = "serde_json::Value"))]
    bench: Document<'a, Bench<'a>>,
}

/// All check messages of a target and label.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
        bench: bench_document(&one.run, &one.facts),
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
