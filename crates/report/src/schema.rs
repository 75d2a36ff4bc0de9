//! The JSON Schemas of the documents, derived from their types (docs/reference/schema). Must not
//! describe what the types do not have.

use crate::json;
use intact_findings::document::SCHEMAS;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};

/// The schema of a document of type `T`: its id in `schema`, and the commands that print it.
pub fn of<T: JsonSchema>(id: &str, commands: &str) -> Schema {
    made(id, commands, SchemaGenerator::into_root_schema_for::<T>)
}

fn made(id: &str, commands: &str, root: fn(SchemaGenerator) -> Schema) -> Schema {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut schema = root(settings.into_generator());
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
fn observed(mut schema: Schema) -> Schema {
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
    let of_runs = SCHEMAS.into_iter().map(|(name, commands, root)| {
        let schema = made(&format!("intact.{name}/1"), commands, root);
        match name {
            "observed" => ("traffic", observed(schema)),
            name => (name, schema),
        }
    });
    let others = [
        (
            "fix",
            of::<json::FixDocument<'_>>(json::FIX_SCHEMA, "`intact fix`"),
        ),
        (
            "model",
            of::<json::Model<'_>>(json::MODEL_SCHEMA, "`intact model`"),
        ),
    ];
    of_runs.chain(others).collect()
}
