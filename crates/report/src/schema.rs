//! The JSON Schemas of the documents, derived from their types (docs/reference/schema). Must not
//! describe what the types do not have.

use crate::json;
use intact_experiments::capacity::CapacityFacts;
use intact_experiments::compare::CompareFacts;
use intact_experiments::lambda::LambdaFacts;
use intact_experiments::scenario::ScenarioFacts;
use intact_findings::{BenchParts, ObservedParts, OfRun};
use intact_servers::chain::ChainFacts;
use intact_servers::check::CheckFacts;
use intact_servers::fault::FaultFacts;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};

/// The schema of a document of type `T`: its id in `schema`, and the commands that print it.
pub fn of<T: JsonSchema>(id: &str, commands: &str) -> Schema {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.insert("$id".to_owned(), id.into());
    schema.insert("title".to_owned(), format!("The JSON of {commands}").into());
    schema.insert(
        "description".to_owned(),
        "A number is in the unit at the end of its name. Absent is null, never zero. Further keys may be added within version 1.".into(),
    );
    if let Some(key) = schema.pointer_mut("/properties/schema") {
        key["const"] = id.into();
    }
    let mut all = schema.clone().to_value();
    intact_reading::add_bounds(&mut all);
    // so that a change of a type moves nothing else
    all.sort_all_objects();
    Schema::try_from(all).unwrap_or(schema)
}

/// The schema of every observer's document. Only `intact audit` has the keys of its inputs.
fn traffic() -> Schema {
    let mut schema = of::<OfRun<'_, ObservedParts>>(
        "intact.observed/1",
        "`intact watch`, `intact audit` and every other observer",
    );
    if let Some(required) = schema
        .get_mut("required")
        .and_then(|keys| keys.as_array_mut())
    {
        required.retain(|key| key != "inputs" && key != "answers" && key != "changes");
    }
    if let Some(key) = schema.pointer_mut("/properties/schema") {
        if let Some(key) = key.as_object_mut() {
            key.remove("const");
        }
        key["pattern"] = r"^intact\.[a-z]+/1$".into();
    }
    schema
}

/// The schemas of this crate's documents: the name of the file, and its content.
pub fn all() -> Vec<(&'static str, Schema)> {
    vec![
        (
            "bench",
            of::<OfRun<'_, BenchParts>>("intact.bench/1", "`intact bench`"),
        ),
        (
            "capacity",
            of::<OfRun<'_, &CapacityFacts>>(
                "intact.capacity/1",
                "`intact bench --find-max` and `--overload`",
            ),
        ),
        (
            "chain",
            of::<OfRun<'_, &ChainFacts>>("intact.chain/1", "`intact check --chain`"),
        ),
        (
            "check",
            of::<OfRun<'_, &CheckFacts>>("intact.check/1", "`intact check`"),
        ),
        (
            "compare",
            of::<OfRun<'_, &CompareFacts>>("intact.compare/1", "`intact compare`"),
        ),
        (
            "fault",
            of::<OfRun<'_, &FaultFacts>>("intact.fault/1", "`intact watch --fault`"),
        ),
        (
            "fix",
            of::<json::FixDocument<'_>>(json::FIX_SCHEMA, "`intact fix`"),
        ),
        (
            "lambda",
            of::<OfRun<'_, &LambdaFacts>>("intact.lambda/1", "`intact lambda`"),
        ),
        (
            "model",
            of::<json::Model<'_>>(json::MODEL_SCHEMA, "`intact model`"),
        ),
        (
            "scenario",
            of::<OfRun<'_, &ScenarioFacts>>("intact.scenario/1", "`intact bench --scenario`"),
        ),
        ("traffic", traffic()),
    ]
}
