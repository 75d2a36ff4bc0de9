//! JSON documents: `schema`, `run`, then the facts as they are.

use crate::inputs::InputFacts;
use intact_findings::bench::BenchFacts;
use intact_findings::body_arrival::BodyArrivalFacts;
use intact_findings::check::CheckFacts;
use intact_findings::compare::CompareFacts;
use intact_findings::lambda::LambdaFacts;
use intact_findings::traffic::{LevelShift, ObservedFacts};
use intact_fix::{Advice, Catalogue, Client, Measurement};
use intact_ledger::{Host, Run};
use intact_model::{Fit, Forecast};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// The schema of a bench's document.
pub const BENCH_SCHEMA: &str = "intact.bench/1";

#[derive(Serialize, JsonSchema)]
pub(crate) struct Document<'a> {
    schema: &'a str,
    run: &'a Run,
    environment: Environment<'a>,
    #[serde(flatten)]
    facts: &'a BenchFacts,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Environment<'a> {
    #[serde(flatten)]
    host: &'a Host,
    sockets: &'a [intact_ledger::Sockets],
}

impl<'a> Document<'a> {
    fn new(run: &'a Run, facts: &'a BenchFacts) -> Document<'a> {
        Document {
            schema: BENCH_SCHEMA,
            run,
            environment: Environment {
                host: &run.host,
                sockets: &facts.sockets,
            },
            facts,
        }
    }
}

/// The document of a bench, pretty-printed, with a newline at its end.
pub fn bench(run: &Run, facts: &BenchFacts) -> serde_json::Result<String> {
    let mut text = serde_json::to_string_pretty(&Document::new(run, facts))?;
    text.push('\n');
    Ok(text)
}

/// The same as a value, to be put into another document.
pub fn bench_value(run: &Run, facts: &BenchFacts) -> serde_json::Result<serde_json::Value> {
    serde_json::to_value(Document::new(run, facts))
}

/// The same without a blank too many, to be put into a page.
pub(crate) fn bench_compact(run: &Run, facts: &BenchFacts) -> serde_json::Result<String> {
    serde_json::to_string(&Document::new(run, facts))
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Observed<'a> {
    schema: String,
    run: &'a Run,
    #[serde(flatten)]
    facts: &'a ObservedFacts,
}

impl<'a> Observed<'a> {
    fn new(run: &'a Run, facts: &'a ObservedFacts) -> Observed<'a> {
        Observed {
            schema: format!("intact.{}/1", run.producer),
            run,
            facts,
        }
    }
}

/// The same without a blank too many, to be put into a page.
pub(crate) fn observed_compact(run: &Run, facts: &ObservedFacts) -> serde_json::Result<String> {
    serde_json::to_string(&Observed::new(run, facts))
}

/// The document of an observed run, `intact.watch/1`, `intact.audit/1` and so on after its producer, pretty-printed, with a newline at its end.
pub fn observed(run: &Run, facts: &ObservedFacts) -> serde_json::Result<String> {
    let mut text = serde_json::to_string_pretty(&Observed::new(run, facts))?;
    text.push('\n');
    Ok(text)
}

/// The schema of a comparison's document.
pub const COMPARE_SCHEMA: &str = "intact.compare/1";

#[derive(Serialize, JsonSchema)]
pub(crate) struct Compare<'a> {
    schema: &'a str,
    run: &'a Run,
    #[serde(flatten)]
    facts: &'a CompareFacts,
}

impl<'a> Compare<'a> {
    fn new(run: &'a Run, facts: &'a CompareFacts) -> Compare<'a> {
        Compare {
            schema: COMPARE_SCHEMA,
            run,
            facts,
        }
    }
}

/// The same without a blank too many, to be put into a page.
pub(crate) fn compare_compact(run: &Run, facts: &CompareFacts) -> serde_json::Result<String> {
    serde_json::to_string(&Compare::new(run, facts))
}

/// The document of a comparison, pretty-printed, with a newline at its end.
pub fn compare(run: &Run, facts: &CompareFacts) -> serde_json::Result<String> {
    let mut text = serde_json::to_string_pretty(&Compare::new(run, facts))?;
    text.push('\n');
    Ok(text)
}

/// The schema of a document about a function's invocations.
pub const LAMBDA_SCHEMA: &str = "intact.lambda/1";

#[derive(Serialize, JsonSchema)]
pub(crate) struct Lambda<'a> {
    schema: &'a str,
    run: &'a Run,
    #[serde(flatten)]
    facts: &'a LambdaFacts,
}

impl<'a> Lambda<'a> {
    fn new(run: &'a Run, facts: &'a LambdaFacts) -> Lambda<'a> {
        Lambda {
            schema: LAMBDA_SCHEMA,
            run,
            facts,
        }
    }
}

/// The document of a function's invocations, pretty-printed, with a newline at its end.
pub fn lambda(run: &Run, facts: &LambdaFacts) -> serde_json::Result<String> {
    let mut text = serde_json::to_string_pretty(&Lambda::new(run, facts))?;
    text.push('\n');
    Ok(text)
}

/// The schema of a model's document. It has no `run`: nothing is run.
pub const MODEL_SCHEMA: &str = "intact.model/1";

#[derive(Serialize, JsonSchema)]
pub(crate) struct Model<'a> {
    schema: &'a str,
    subject: &'a str,
    #[serde(flatten)]
    forecast: &'a Forecast,
    /// How it was worked out from a ledger.
    fit: Option<&'a Fit>,
}

/// The document of a model, pretty-printed, with a newline at its end.
pub fn model(subject: &str, forecast: &Forecast, fit: Option<&Fit>) -> serde_json::Result<String> {
    let document = Model {
        schema: MODEL_SCHEMA,
        subject,
        forecast,
        fit,
    };
    let mut text = serde_json::to_string_pretty(&document)?;
    text.push('\n');
    Ok(text)
}

/// The same without a blank too many, to be put into a page.
pub(crate) fn lambda_compact(run: &Run, facts: &LambdaFacts) -> serde_json::Result<String> {
    serde_json::to_string(&Lambda::new(run, facts))
}

/// The schema of a check's document.
pub const CHECK_SCHEMA: &str = "intact.check/1";

#[derive(Serialize, JsonSchema)]
pub(crate) struct Checked<'a> {
    schema: &'a str,
    run: &'a Run,
    #[serde(flatten)]
    facts: &'a CheckFacts,
}

impl<'a> Checked<'a> {
    fn new(run: &'a Run, facts: &'a CheckFacts) -> Checked<'a> {
        Checked {
            schema: CHECK_SCHEMA,
            run,
            facts,
        }
    }
}

/// The same on one line, to be carried inside a page.
pub(crate) fn check_compact(run: &Run, facts: &CheckFacts) -> serde_json::Result<String> {
    serde_json::to_string(&Checked::new(run, facts))
}

/// The document of a check, pretty-printed, with a newline at its end.
pub fn check(run: &Run, facts: &CheckFacts) -> serde_json::Result<String> {
    let mut text = serde_json::to_string_pretty(&Checked::new(run, facts))?;
    text.push('\n');
    Ok(text)
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Audit<'a> {
    #[serde(flatten)]
    observed: Observed<'a>,
    inputs: &'a [InputFacts],
    answers: &'a [BodyArrivalFacts],
    change: Option<&'a LevelShift>,
}

/// The document of an audit: that of an observed run, what was read of each input, how answers came, what changed over time.
pub fn audit(
    run: &Run,
    facts: &ObservedFacts,
    inputs: &[InputFacts],
    answers: &[BodyArrivalFacts],
    change: Option<&LevelShift>,
) -> serde_json::Result<String> {
    let document = Audit {
        observed: Observed::new(run, facts),
        inputs,
        answers,
        change,
    };
    let mut text = serde_json::to_string_pretty(&document)?;
    text.push('\n');
    Ok(text)
}

/// The schema of what `fix` says.
pub const FIX_SCHEMA: &str = "intact.fix/1";

#[derive(Serialize, JsonSchema)]
pub(crate) struct FixDocument<'a> {
    schema: &'a str,
    server_idle_s: Option<f64>,
    clients: Vec<FixClient<'a>>,
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
                let defaults = client.variant(intact_fix::Role::Default);
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
